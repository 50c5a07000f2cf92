"""What the transports of NameServers read from each broker, and the expected table that follows from it
(oracle/name_server.py).

request_read    of a broker: its name and an address that it has; what it registers, or the same as the last time
channel_ended   who ended it, and why

The routes of a process also go by who it says that it dropped for silence: whether it may, no_false_eviction judges.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from ....remoting.codes import MASTER_ID
from ...oracle.intervals import grouped
from ...oracle.name_server import REGISTERED, SCAN, UNREGISTERED, BrokerAtNameServer, Kept, Read, Request, RoutesRead
from ...oracle.promises import PromisedAtNameServer
from ...oracle.recorded import Life
from ...oracle.world import World
from ...topology import broker_name
from ..tolerance import Tolerance, tolerance
from .control import Control, Row, once
from .registered_rows import registered_rows

Machine = BrokerAtNameServer | PromisedAtNameServer
_APART_MS = 1e-6
"""What was read in one moment was read in the order of its rows."""


class Received:
    """Of the facts of a history, made once (`received`)."""

    def __init__(self, control: Control, world: World) -> None:
        self._control, self._world, self._rows = control, world, registered_rows(control, world)
        rows = control.rows("request_read", "channel_ended", "broker_dropped", "scheduled_task")
        self._of_process = grouped((r.process, r) for r in rows if r.event != "scheduled_task" or r.f == SCAN)
        self.is_recorded = bool(control.rows("request_read", "channel_ended"))
        """Whether the transports of our own NameServers recorded what they read."""
        self.memo: dict[Any, Any] = {}

    @once
    def at(self, life: Life, broker: str) -> Machine:
        """This process and this broker."""
        world, servers = self._world, self._world.of_kind("name_server")
        read, is_alone, name = None, True, broker_name(broker)
        if self.was_read(life):
            of = self._read(life)
            own = next(node.addresses for node in world.of_kind("broker", "slave") if node.name == broker)
            read = _of_held(sorted((one, at or "") for at in own for one in of.read.get((name, at or ""), ())))
            named = of.unregistered | {(other, at) for other, _, at in of.registered}
            is_alone = not any(other != name and at in own for other, at in named) and self._leaves_as_itself(life, own)
        if read is None and not any(self._rows.sent(broker, server.name) for server in servers):
            return PromisedAtNameServer(world, life, broker)
        return BrokerAtNameServer(world, life, broker, self._rows.sent(broker, life.node), read, is_alone=is_alone)

    def _leaves_as_itself(self, life: Life, addresses: Collection[str]) -> bool:
        """Whether nobody unregistered one of these addresses under another id than it was last registered: that takes
        its brokerLiveInfo, and leaves the address."""
        id_: int | None = None
        for one in (one for one in self.requests(life) if one.address in addresses):
            if one.f == UNREGISTERED and id_ not in (None, one.id_):
                return False
            id_ = one.id_ if one.f == REGISTERED else id_
        return True

    def must_have(self, life: Life, broker: str, from_ms: float, to_ms: float) -> bool:
        """Whether this process must have the broker, and hear of it, all that time."""
        kept = self._must(life, broker) if broker and self.at(life, broker).is_alone else ()
        return any(one.start_ms <= from_ms and to_ms <= one.end_ms for one in kept)

    @once
    def _must(self, life: Life, broker: str) -> Sequence[Kept]:
        return [*self.at(life, broker).must()]

    def was_read(self, life: Life) -> bool:
        """Whether this process's transport recorded what it read."""
        return self.is_recorded and self._world.is_ours(life.node)

    def every(self) -> Iterator[tuple[Life, str, Machine]]:
        """Each process of a NameServer, and each broker."""
        for life in self._world.lives_of_kind("name_server"):
            for broker in self._world.of_kind("broker", "slave"):
                yield life, broker.name, self.at(life, broker.name)

    def routes(self, life: Life) -> RoutesRead | None:
        """What this process must show; None if its transport did not record what was registered."""
        return self._read(life) if any(one.said.get("topics") for one in self.requests(life)) else None

    def came_uncalled(self, broker: str, name_server: str) -> bool:
        """Whether a broker registered at a NameServer that is on no list of it; if so, the broker is to blame for what
        the table has."""
        return not self._world.lists(broker, name_server) and any(
            True for _ in self._registrations(broker, name_server)
        )

    def was_registered(self, broker: str, name_server: str, from_ms: float, to_ms: float) -> bool:
        """Whether the NameServer read a registration of all topics of the broker at its address in that time, and not
        just at its end: what it read then, it took in."""
        until_ms = to_ms - self._world.timers_of(name_server).delivery_ms
        return any(
            from_ms <= one.at_ms < until_ms and one.address == self._world.address_at(broker, one.at_ms)
            for one in self._registrations(broker, name_server)
            if len(one.said.get("topics") or ()) != 1
        )

    def _registrations(self, broker: str, name_server: str) -> Iterator[Request]:
        """Those of the broker's name that any process of the NameServer read."""
        read = (one for life in self._world.lives_of(name_server) for one in self.requests(life))
        return (one for one in read if (one.f, one.name) == (REGISTERED, broker_name(broker)))

    @once
    def _read(self, life: Life) -> RoutesRead:
        made = RoutesRead(self._world, life)
        for request in (*self.requests(life), Request(min(life.end_ms, self._world.end_ms), "")):
            made.take(request)
        return made

    @once
    def requests(self, life: Life) -> list[Request]:
        """In the order in which the process read, and did, what its routes are made of."""
        said, found = dict[tuple[object, ...], Any](), list[Request]()
        for row in self._of_process.get(life.process, ()):
            one = self._request(row, said)
            found.append(one._replace(at_ms=max(one.at_ms, found[-1].at_ms + _APART_MS if found else -math.inf)))
        return found

    def _request(self, row: Row, said: dict[tuple[object, ...], Any]) -> Request:
        ended = "ended" if row.f == "peer" else "closed"
        f = {"channel_ended": ended, "broker_dropped": "dropped", "scheduled_task": "scanned"}.get(row.event, row.f)
        value, broker = row.said, (row.broker_name, row.broker_id, row.address)
        if f == REGISTERED:
            value = said[broker] = value.get("registers", said.get(broker, {}))
            f, value = ("", {}) if value is None else (f, value)  # nobody can read it
        who = row.broker_name, MASTER_ID if row.broker_id is None else row.broker_id, row.address
        return Request(row.time_ms, f or "", row.op_id or "", row.topic, *who, value, value.get("reason") or "")

    def after(self, life: Life, broker: str, at_ms: float) -> str:
        """Which fault of the broker, or of its way, began last before that; "" for none."""
        faults = (*self._world.process_faults(broker), *self._world.link_faults(broker, life.node))
        began = [(fault.start_ms, fault.fault_id) for fault in faults if fault.start_ms <= at_ms and not fault.by_hand]
        return f"{max(began)[1]} start" if began else ""

    def tolerance(self, life: Life, broker: str, from_ms: float, to_ms: float, timers: int = 1) -> Tolerance:
        """How late the NameServer may be with what it read then; where nobody recorded that, the broker, too."""
        machine = self.at(life, broker)
        nodes = (life.node,) if machine.is_witnessed else (life.node, broker)
        from_ms = from_ms if machine.is_witnessed else from_ms - machine.timers.R_ms
        lag_ms = self._control.lateness.largest(self._world, nodes, from_ms, to_ms)
        return tolerance(machine.timers, lag_ms, timers)


def _of_held(read: Iterable[tuple[Read, str]]) -> list[Read]:
    """Each with its address. Of a broker that has moved, what ends at an address that it had left ends nothing."""
    held, found = None, list[Read]()
    for one, address in read:
        held = address if one.f == REGISTERED else held
        if one.f == "replaced" or held in (None, address):
            found.append(one)
    return found


received = once(Received)
