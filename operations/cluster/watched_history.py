"""What a watch sees, as rows of the history's schema, so that checks, report and inference read it like any run's.

    106 of a NameServer: who is in its table     registration, broker_dropped: at some moment between two looks
    105 of some topics (TOPICS_MAX)              route, likewise
    our own channels and calls                   channel, timed_out, probe: as of a node `watch`
    26, 28 of brokers, 319 of NameServers        settings and lists in run_begin; `started` where bootTimestamp changed

A row of a change has the middle of the time between the look that had the old value and the one that has the new;
`timer_lag` rows say how far these were apart. Whoever was there at the first look counts as there from time 0 on.
Sans-IO: time comes with each look.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...chaos.history.schema import Row
from ...chaos.oracle.timers import Timers, timers_of_nodes
from ...chaos.settings.catalogue import settings_for
from ...chaos.settings.setting import Value
from ...chaos.topology import NodeKind
from ...remoting.codes import V5_0_0
from ...remoting.node.network import Address
from ...remoting.node.profile import Profile
from ...remoting.topics import is_own
from ..logs_to_rows.writing import numbered
from .looks import BrokerId, BrokerLook, Look, Member, NameServerLook, RecordedRoute

WATCH = "watch"
"""The node that looks."""
AS_WATCHED = "as watched"
TOPICS_MAX = 6
"""The routes of so many topics are recorded: those by the clusters' names, which every broker has, first."""
ANSWERED_EACH_MS, NEAR_MS = 600_000.0, 60_000.0
"""So often a row says that a NameServer answers; of anybody each time, so near to what failed anywhere."""
SILENT_MS = 15_000.0
"""Who gave no answer for longer may have done anything meanwhile."""
LAG_EACH_MS = 300_000.0
IDLE_MS, IDLE_NEAR_MS = 120_000.0, 10_000.0
"""serverChannelMaxIdleTimeSeconds, as servers have it."""
OWN_CLOSE_MS, SHORT_GAP_MS = 500.0, 4_000.0


class BlindStretch(NamedTuple):
    """From when to when nobody knows what this node held, or did, and why."""

    node: str
    from_ms: float
    to_ms: float
    says: str


@dataclass(slots=True)
class _Server:
    """One NameServer as it was seen last."""

    node: str
    table: Mapping[BrokerId, str] = field(default_factory=dict)
    asked_ms: float = -math.inf
    """When it was asked what it answered last; -inf: it never answered."""
    routes: dict[str, RecordedRoute | None] = field(default_factory=dict)
    is_lost: bool = False
    """Whether it ended a channel, or refused one, since it answered last."""
    gave_up_ms: float = -math.inf
    """When it was waited for in vain; the channel is then closed from this side."""
    refused_ms: float = -math.inf
    """When it was dialled in vain."""
    lag_ms: float = 0.0
    lag_since_ms: float = 0.0


@dataclass(slots=True)
class _Broker:
    address: str
    lists: frozenset[str] | None = None
    booted_ms: int | None = None
    answered_ms: float = -math.inf


class WatchedHistory:
    """`looked` with each look, `channel` and `timed_out` as they happen; `framed` is all of it so far."""

    def __init__(
        self,
        watched: Sequence[str],
        *,
        now_s: float,
        wall_ms: float,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.origin_wall_ms = wall_ms
        self.topics: tuple[str, ...] = ()
        """Those whose routes are recorded; none until the NameServers have told what there is."""
        self.blind: list[BlindStretch] = []
        self.roles: dict[str, str] = {f"ns-{at}": str(NodeKind.NAME_SERVER) for at in range(len(watched))}
        self.addresses: dict[str, str] = {f"ns-{at}": address for at, address in enumerate(watched)}
        """Node to its address, the first that it had."""
        self.of_address: dict[str, str] = {address: node for node, address in self.addresses.items()}
        self.changed_ms = 0.0
        """When something was seen last that is not as it was."""
        self.now_ms = 0.0
        self.is_over = False
        """From then on the watch closes its own channels, which says nothing of anybody."""
        self._origin_s, self._clock = now_s, clock
        self._made: list[Row] = []
        self._incarnations: dict[str, int] = defaultdict(int)
        self._servers = {address: _Server(f"ns-{at}") for at, address in enumerate(watched)}
        self._brokers: dict[str, _Broker] = {}
        self._joined: dict[str, float] = {}
        self._clients: dict[Member, tuple[str, frozenset[str]]] = {}
        self._settings: dict[str, dict[str, Value]] = {}
        self._is_5 = False
        self._answered: dict[str, tuple[float, float]] = {}
        """Node to when it answered last, and when a row said so."""
        self._failed_ms = -math.inf
        self.topic_changes: list[tuple[float, str, str, Mapping[str, Any] | None]] = []
        """When, which broker, which topic, and how it has it from then on: None: no longer."""
        self._has: dict[tuple[str, str], Sequence[int] | None] = {}

    # --- what the watch's own channels say ------------------------------------------------------------------------

    def channel(self, event: str, address: Address, reason: str) -> None:
        """As RemotingClient tells it."""
        node = self.of_address.get(str(address))
        if node is None or event == "unasked" or self.is_over:
            return
        at_ms = self._clock_ms()
        if event == "close" and self._was_idle(str(address), at_ms):
            return
        if event in ("close", "connect_failed"):
            self._fails(at_ms)
            server = self._servers.get(str(address))
            if server is not None and event == "connect_failed":
                server.refused_ms = at_ms
            if server is not None and at_ms - server.gave_up_ms > OWN_CLOSE_MS and "no answer" not in reason:
                server.is_lost = True
        self._put(at_ms, WATCH, "channel", f=event, address=str(address), value={"reason": reason, "learnt": "watched"})

    def _was_idle(self, address: str, at_ms: float) -> bool:
        """Whether a broker closes a channel on which nothing was asked for its idle time: a large cluster's brokers are
        asked minutes apart."""
        broker = self._brokers.get(address)
        unused_ms = -math.inf if broker is None else at_ms - broker.answered_ms
        return IDLE_MS - IDLE_NEAR_MS <= unused_ms <= IDLE_MS + IDLE_NEAR_MS

    def timed_out(self, address: Address, code: int | None, waited_s: float) -> None:
        """As RemotingClient tells it."""
        node = self.of_address.get(str(address))
        if node is None:
            return
        at_ms = self._clock_ms()
        self._fails(at_ms)
        if server := self._servers.get(str(address)):
            server.gave_up_ms = at_ms
        what = "connect" if code is None else str(code)
        self._put(
            at_ms,
            WATCH,
            "timed_out",
            f=what,
            address=str(address),
            duration_ms=waited_s * 1000,
            value={"learnt": "watched"},
        )

    def _fails(self, at_ms: float) -> None:
        """What worked before bounds when it began, and what still works where it was."""
        self.changed_ms = self._failed_ms = at_ms
        for node in [*self._answered]:
            self._say_answered(node)

    def _clock_ms(self) -> float:
        return self.now_ms if self._clock is None else (self._clock() - self._origin_s) * 1000

    # --- looks ------------------------------------------------------------------------------------------------------

    def looked(self, look: Look) -> None:
        began_s = look.at_s if look.began_s is None else look.began_s
        began_ms, self.now_ms = (began_s - self._origin_s) * 1000, (look.at_s - self._origin_s) * 1000
        for address, broker in look.brokers.items():
            self._heard_of(address, broker, began_ms)
        for address, server in look.name_servers.items():
            if server.why is None:
                self._server(self._servers[address], server, began_ms)
        for address, broker in look.brokers.items():
            if broker.why is None:
                self._broker(address, broker)
        for member, listed in look.clients.items():
            self._client(member, listed)
        self._topics_of_brokers()
        if not self.topics:
            self._choose_topics(look)

    def _server(self, one: _Server, look: NameServerLook, began_ms: float) -> None:
        first, since_ms = one.asked_ms == -math.inf, one.asked_ms
        # Who gave no answer for longer did nothing meanwhile, or nobody knows it (`blind`): what is new is of its end.
        silent = not first and self.now_ms - since_ms > SILENT_MS
        from_ms = max(since_ms, one.refused_ms, self.now_ms - SHORT_GAP_MS if silent else 0.0)
        at_ms = 0.0 if first else (from_ms + self.now_ms) / 2
        if first and self.now_ms > NEAR_MS:
            self.blind.append(BlindStretch(one.node, 0.0, self.now_ms, f"{one.node} gave no answer until then"))
        gap_ms = self.now_ms - from_ms
        restarted = one.is_lost and not first and bool(one.table.keys() - look.brokers.keys())
        if restarted:
            self._incarnations[one.node] += 1
            self._put(at_ms, one.node, "started", address=self.addresses[one.node], value={"learnt": "poll"})
            self._own(one, look, {}, at_ms)
            one.routes.clear()
        else:
            self._own(one, look, one.table, at_ms)
        for topic, route in look.tables.items():
            if (topic not in one.routes and route is not None) or one.routes.get(topic) != route:
                moment_ms = 0.0 if topic not in one.routes and not restarted else at_ms
                self._put(moment_ms, one.node, "route", f="poll", topic=topic, value=route)
                self.changed_ms = self.now_ms
            one.routes[topic] = route
        if look.settings is not None:
            self._set(one.node, look.settings, NodeKind.NAME_SERVER)
        if silent and not restarted:
            self.blind.append(BlindStretch(one.node, since_ms, self.now_ms, f"{one.node} gave no answer"))
        self._lag(one, gap_ms)
        one.table, one.asked_ms, one.is_lost = look.brokers, began_ms, False
        self._answers(one.node, self.now_ms if look.answered_s is None else (look.answered_s - self._origin_s) * 1000)

    def _own(self, one: _Server, look: NameServerLook, before: Mapping[BrokerId, str], at_ms: float) -> None:
        for broker, address in before.items():
            if broker not in look.brokers:
                said = {"reason": "unknown", "learnt": "poll"}
                self._of_broker(at_ms, one.node, "broker_dropped", broker, address, said)
        for broker, address in look.brokers.items():
            self._there(broker, address, at_ms)
            if before.get(broker) != address:
                self._of_broker(at_ms, one.node, "registration", broker, address, {"learnt": "poll"}, code=0)

    def _of_broker(
        self, at_ms: float, node: str, event: str, broker: BrokerId, address: str, said: Row, **more: object
    ) -> None:
        where = {"broker_name": broker.name, "broker_id": broker.number, "address": address}
        self._put(at_ms, node, event, **where, value=said, **more)
        self.changed_ms = self.now_ms

    def _there(self, broker: BrokerId, address: str, at_ms: float) -> None:
        """Some NameServer holds it."""
        node = str(broker)
        if node not in self.roles:
            self.roles[node] = str(NodeKind.SLAVE if broker.number else NodeKind.BROKER)
            self.addresses[node] = address
            if at_ms > 0:
                self._joined[node] = at_ms
        elif self.addresses[node] != address and address not in self.of_address:
            says = f"{node} had more than one address ({self.addresses[node]}, {address})"
            self.blind.append(BlindStretch(node, 0.0, math.inf, says))
        self.of_address.setdefault(address, node)
        self._brokers.setdefault(address, _Broker(address))

    def _heard_of(self, address: str, look: BrokerLook, began_ms: float) -> None:
        """Before what NameServers say: a process that was started again comes before its registrations."""
        node, one = self.of_address.get(address), self._brokers.get(address)
        if node is None or one is None or look.why is not None:
            return
        if look.booted_ms is not None and one.booted_ms is not None and look.booted_ms > one.booted_ms + 1000:
            said_ms = look.booted_ms - self.origin_wall_ms
            at_ms = said_ms if one.answered_ms <= said_ms <= self.now_ms else (one.answered_ms + self.now_ms) / 2
            self._incarnations[node] += 1
            self._put(at_ms, node, "started", address=address, value={"learnt": "poll"})
            self.changed_ms = self.now_ms
        one.booted_ms = look.booted_ms if look.booted_ms is not None else one.booted_ms
        one.answered_ms = began_ms

    def _broker(self, address: str, look: BrokerLook) -> None:
        node = self.of_address.get(address)
        if node is None:
            return
        one = self._brokers[address]
        one.answered_ms = max(one.answered_ms, self.now_ms)
        if one.booted_ms is None:
            one.booted_ms = look.booted_ms
        self._is_5 = self._is_5 or look.answered_by >= V5_0_0
        self._set(node, look.settings, NodeKind.BROKER)
        if one.lists is not None and one.lists != look.lists:
            self.blind.append(BlindStretch(node, 0.0, math.inf, f"{node} had more than one list of NameServers"))
        one.lists = look.lists
        self._answers(node, self.now_ms)

    def _client(self, member: Member, listed: frozenset[str]) -> None:
        if member not in self._clients:
            node = f"consumer-{len(self._clients)}"
            self.roles[node] = str(NodeKind.CONSUMER)
            self._clients[member] = node, frozenset()
        node, before = self._clients[member]
        if listed != before:
            how = {"f": "fetchNameServerAddr"} if before else {}
            self._put(self.now_ms, node, "name_server_list", value=sorted(listed), **how)
            self._clients[member] = node, listed

    def _set(self, node: str, said: Mapping[str, str], kind: NodeKind) -> None:
        """Those of its settings of which windows are made."""
        found: dict[str, Value] = {}
        for name, setting in settings_for(kind).items():
            text = said.get(name, "")
            if setting.symbol is not None and text:
                value: object = {"true": True, "false": False}.get(text, int(text) if text.isdigit() else text)
                try:
                    found[name] = setting.allowed.taken(value)
                except ValueError:
                    continue
        self._settings[node] = found

    def _topics_of_brokers(self) -> None:
        """What each master has of the recorded topics: what any NameServer shows that holds it."""
        shown: dict[tuple[str, str], list[int]] = {}
        held: set[str] = set()
        for one in self._servers.values():
            held.update(str(broker) for broker in one.table if not broker.number)
            for topic, route in one.routes.items():
                for broker, row in ((route or {}).get("queues") or {}).items():
                    shown.setdefault((broker, topic), list(row))
        for key, row in shown.items():
            if key[0] in held and self._has.get(key) is None:
                self._has_now(key, row)
        for (broker, topic), row in [*self._has.items()]:
            if row is not None and broker in held and (broker, topic) not in shown:
                self._has_now((broker, topic), None)

    def _has_now(self, key: tuple[str, str], row: Sequence[int] | None) -> None:
        first = key not in self._has
        at_ms = self._joined.get(key[0], 0.0) if first else self.now_ms
        self._has[key] = row
        said = None if row is None else {"read": row[0], "write": row[1], "perm": row[2], "version": 1}
        self.topic_changes.append((at_ms, *key, said))

    def _choose_topics(self, look: Look) -> None:
        listed = [server.topics for server in look.name_servers.values() if server.topics]
        clusters = frozenset[str]().union(*(server.clusters for server in look.name_servers.values()))
        if not listed or not self._brokers:
            return
        known = frozenset[str]().union(*listed)
        others = sorted(topic for topic in known - clusters - self.roles.keys() if not is_own(topic))
        first = sorted(clusters & known)[:TOPICS_MAX]
        step = max(1, len(others) // max(1, TOPICS_MAX - len(first)))
        self.topics = tuple([*first, *others[::step]][:TOPICS_MAX])

    # --- rows -------------------------------------------------------------------------------------------------------

    def _answers(self, node: str, at_ms: float) -> None:
        _, said_ms = self._answered.get(node, (-math.inf, -math.inf))
        self._answered[node] = at_ms, said_ms
        each_ms = ANSWERED_EACH_MS if self.roles.get(node) == NodeKind.NAME_SERVER else math.inf
        if self.now_ms - said_ms >= each_ms or self.now_ms - self._failed_ms <= NEAR_MS:
            self._say_answered(node)

    def _say_answered(self, node: str) -> None:
        """A row of the last answer, where none has told of it."""
        last_ms, said_ms = self._answered.get(node, (-math.inf, -math.inf))
        if last_ms > said_ms:
            self._put(last_ms, WATCH, "probe", **_answered_row(node))
            self._answered[node] = last_ms, last_ms

    def _lag(self, one: _Server, gap_ms: float) -> None:
        one.lag_ms = max(one.lag_ms, gap_ms)
        lasted_ms = self.now_ms - one.lag_since_ms
        if lasted_ms >= LAG_EACH_MS or self.changed_ms == self.now_ms:
            self._put_lag(one, lasted_ms)

    def _put_lag(self, one: _Server, lasted_ms: float) -> None:
        self._made.append(self._lag_row(one, lasted_ms))
        one.lag_ms, one.lag_since_ms = 0.0, self.now_ms

    def _put(self, at_ms: float, node: str, event: str, **fields: Any) -> None:
        self._made.append(self._row(at_ms, node, event, **fields))

    def _lag_row(self, one: _Server, lasted_ms: float) -> Row:
        said = {"lag_ms": one.lag_ms, "duration_ms": lasted_ms, "value": {"learnt": "watched"}}
        return self._row(self.now_ms, one.node, "timer_lag", **said)

    def _row(self, at_ms: float, node: str, event: str, **fields: Any) -> Row:
        row: Row = {"time_ms": max(at_ms, 0.0), "node": node, "role": self._role(node), "event": event}
        return row | {"incarnation": self._incarnations[node], **fields}

    def _role(self, node: str) -> str:
        return "client" if node == WATCH else self.roles.get(node, "harness")

    def lists(self) -> dict[str, list[str]]:
        """Broker to its own list, where it is not that of all NameServers, by their names where they are watched."""
        everybody = set(self._servers)
        found = {}
        for one in self._brokers.values():
            node = self.of_address[one.address]
            if one.lists and one.lists & everybody and one.lists != everybody:
                found[node] = sorted(self.of_address.get(at, at) for at in one.lists)
        return found

    def framed(self) -> list[Row]:
        """All rows so far, with those that a harness would have, in the history's order and numbered."""
        rows = [*self._frame(), *self._made, *self._open_lags(), *self._last_answers()]
        rows.append(_harness(self.now_ms + 1.0, "run_end"))
        return numbered(rows)

    def _last_answers(self) -> Iterator[Row]:
        for node, (last_ms, said_ms) in self._answered.items():
            if last_ms > said_ms:
                yield self._row(last_ms, WATCH, "probe", **_answered_row(node))

    def _open_lags(self) -> Iterator[Row]:
        for one in self._servers.values():
            if self.now_ms > one.lag_since_ms and one.lag_ms:
                yield self._lag_row(one, self.now_ms - one.lag_since_ms)

    def _frame(self) -> Iterator[Row]:
        profile = Profile.V5_X if self._is_5 else Profile.V4_9
        servers = {node: NodeKind(role) for node, role in self.roles.items() if role != NodeKind.CONSUMER}
        timers, differing = timers_of_nodes(profile, 1.0, self._settings, servers)
        nodes: dict[str, dict[str, Any]] = {node: {"name_servers": listed} for node, listed in self.lists().items()}
        for node, at_ms in self._joined.items():
            nodes.setdefault(node, {})["joins_at_s"] = round(at_ms / 1000, 3)
        begin = {
            "scenario": "watched",
            "seed": 0,
            "profile": profile.value,
            "time_scale": 1.0,
            "timers": timers.to_json(),
            "node_timers": differing,
            "workload": {"topic": next(iter(self.topics), ""), "client_starts": 0},
            "timeline": [],
            "availability_floor": None,
            "defect": None,
            "clock": "real",
            "origin_wall_ms": self.origin_wall_ms,
            "imported": True,
            "watched": True,
            "doubts": {"clocks": [], "periods": [], "addresses": sorted(self.roles)},
            "nodes": nodes,
        }
        yield _harness(0.0, "run_begin", value=begin)
        for node, role in (*self.roles.items(), (WATCH, "client")):
            about = {"kind": role, "learnt": "watched", "implementation": AS_WATCHED}
            yield _harness(0.0, "node", source=node, address=self.addresses.get(node), value=about)
        yield _harness(0.0, "phase", phase="steady")
        for node, role in self.roles.items():
            if role != NodeKind.CONSUMER:
                row = _harness(self._joined.get(node, 0.0), "started", address=self.addresses.get(node))
                yield row | {"node": node, "role": role, "value": {"learnt": "inferred"}}


def _answered_row(node: str) -> Row:
    return {"source": WATCH, "target": node, "value": {"met": "answered", "learnt": "watched"}}


def timers_in(rows: Iterable[Mapping[str, Any]]) -> Timers:
    """Those that `run_begin` says."""
    return Timers.from_json(next(row["value"] for row in rows if row["event"] == "run_begin"))


def _harness(at_ms: float, event: str, **fields: Any) -> Row:
    return {"time_ms": at_ms, "node": "harness", "role": "harness", "incarnation": 0, "event": event, **fields}
