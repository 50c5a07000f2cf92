"""Clients under test: other people's programs. A client under test has a name, and fronts (proxies) that observe its
traffic.

    program ──► front ──► proxy `go->ns-0` ──► ns-0            fronts live in one thread, on one event loop
                  └── rows ──► history of the node `go`        (`go-2`, … for further clients of the same dialler)

A front refuses connections while its server's process is gone or the link is cut, and drops SYNs during `syn_drop`.
Clients connect to the front, and the front to Toxiproxy. Toxiproxy cannot refuse connections or drop SYNs. In
NameServers' answers, fronts replace the brokers' addresses by addresses of fronts, so that all traffic passes through
fronts.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from ...actors.processes import stat_of
from ...remoting.node.clock import Clock
from ...remoting.node.network import Address
from ...remoting.node.recording import Recorder
from ..fronts.behaviour import Unreachable
from ..fronts.dialler import Dialler
from ..fronts.instances import PATIENT_MS, Instance, Instances
from ..fronts.look_ups import HANGS_MS, Rules
from ..fronts.observed import Behaved, Observation
from ..fronts.process_lag import keep_measuring
from ..fronts.rows import ClientRows, TimedRow
from ..fronts.sockets import process_of
from ..history.recorder import HistoryWriter, LagProbe, RecorderSpec
from ..oracle.client_profiles import Advance, Attempts, ClientProfile, Order
from ..topology import NodeKind

log = logging.getLogger("nemesrv.clients")

_LOOKS_EACH_S = 0.5
LAGS_MAX = 200
"""Rows of a minute: a program on a busy machine starts for as long."""
_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """The servers to which a client under test connects, each with its address in the history."""

    name_servers: Mapping[str, Address]
    brokers: Mapping[str, Address]
    dials: Mapping[Address, Address]
    """The proxy for each of these addresses."""
    host: str = "127.0.0.1"
    """Of this machine, at which it dials."""


@dataclass(slots=True, kw_only=True)
class ClientUnderTest:
    """One client under test. The client's programs must use only the addresses that this object gives."""

    name: str
    profile: ClientProfile
    servers: Servers
    clock: Clock
    record: Recorder
    """The harness's recorder."""
    spec: Callable[[str, NodeKind], RecorderSpec]
    _fronts: Dialler = field(init=False)
    _dials: dict[Address, Address] = field(init=False, default_factory=dict)
    _nodes: dict[int, ClientNode] = field(init=False, default_factory=dict)
    _probe: LagProbe = field(init=False, default_factory=LagProbe)
    _lags: deque[TimedRow] = field(init=False, default_factory=lambda: deque(maxlen=LAGS_MAX))
    """How late the fronts were: what a client met before it was seen, too."""
    _instances: Instances = field(init=False)
    _unreachable: Unreachable = field(init=False)
    _behaved: list[Behaved] = field(init=False, default_factory=list)
    """Each front's changes of behaviour, in order of time."""
    _unclear: set[int] = field(init=False, default_factory=set)
    _looking: asyncio.Task[None] | None = field(init=False, default=None)

    @property
    def name_servers(self) -> tuple[str, ...]:
        """Return host:port of each NameServer's front, for the client's programs."""
        return tuple(str(self._fronts.address(name)) for name in self.servers.name_servers)

    @property
    def name_server_list(self) -> str:
        """Return the addresses of the NameServers' fronts as one text, in the format of RocketMQ's `namesrvAddr`."""
        return self._fronts.namesrv_addr

    @property
    def brokers(self) -> dict[str, str]:
        """Return host:port of each broker's front by the broker's node name: broker-a, and broker-a/1 for a slave."""
        return {name: str(self._fronts.address(name)) for name in self.servers.brokers}

    async def open(self) -> None:
        every_request = self.profile.advance is Advance.EVERY_REQUEST
        self._instances = Instances(
            self._came, self._saw, self._went, self.servers.name_servers, every_request=every_request
        )
        self._unreachable = Unreachable(self.name)
        self._dials.update(self.servers.dials)
        self._fronts = Dialler(
            self.clock,
            self._dials.get,
            name_servers=self.servers.name_servers,
            brokers=self.servers.brokers,
            see=self._see,
            vip=self.servers.brokers,
            process=self._whose,
        )
        await self._fronts.open(self.servers.host)
        self._looking = asyncio.get_running_loop().create_task(self._look_and_measure())
        self._probe.start(self._late, self.clock)

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._instances.end(self._now_ms())
        await self._fronts.close()
        await self._probe.stop()

    async def faulted(self, fields: Mapping[str, Any]) -> None:
        """React to a `fault` row: make the fronts refuse connections or drop SYNs, which Toxiproxy cannot do."""
        if self._unreachable.faulted(fields):
            await self._fronts.faulted(self._unreachable.meets)

    async def dials(self, dials: Mapping[Address, Address]) -> None:
        """From now on, make the fronts connect to these proxies, given by the servers' advertised addresses."""
        self._dials.update(dials)

    # --- what is seen -------------------------------------------------------------------------------------------------

    def _now_ms(self) -> float:
        return self.clock.monotonic_s() * 1000.0

    def _whose(self, peer: Address, own: Address) -> int | None:
        known = [each.process for each in self._instances.living() if each.process is not None]
        found = process_of(peer, own, known)
        return found if found is not None else process_of(peer, own, _processes(without=os.getpid()))

    def _see(self, one: Observation) -> None:
        if isinstance(one, Behaved):
            self._behaved.append(one)
        self._instances.see(one)

    def _late(self, event: str, /, **fields: Any) -> None:
        lag = TimedRow(self._now_ms(), event, fields)
        self._lags.append(lag)
        for instance in self._instances.living():
            self._nodes[instance.number].put(lag)

    def _running(self) -> set[int]:
        return {each.process for each in self._instances.living() if each.process is not None}

    def _was_late(self, process: int, fields: dict[str, Any]) -> None:
        lag = TimedRow(self._now_ms(), "timer_lag", fields)
        for instance in self._instances.living():
            if instance.process == process:
                self._nodes[instance.number].put(lag)

    def _saw(self, instance: Instance, one: Observation) -> None:
        self._nodes[instance.number].saw(one)

    async def _look_and_measure(self) -> None:
        await asyncio.gather(self._look(), keep_measuring(self._running, self.clock, self._was_late))

    async def _look(self) -> None:
        while True:
            due_ms = self._now_ms() + 1000 * _LOOKS_EACH_S
            await asyncio.sleep(_LOOKS_EACH_S)
            now_ms = self._now_ms()
            if now_ms - due_ms >= PATIENT_MS:
                why = f"this machine was {(now_ms - due_ms) / 1000:.1f} s late, as long as a call waits: run again"
                for instance in self._instances.living():
                    instance.unclear = instance.unclear or why
            for instance in self._instances.living():
                self._nodes[instance.number].passed(now_ms)
            for instance in self._instances.living():
                self._tell_unclear(instance)
            self._instances.look(now_ms, _lives)

    def _came(self, instance: Instance) -> None:
        name = self.name if instance.number == 0 else f"{self.name}-{instance.number + 1}"

        def note(kind: NodeKind) -> None:
            about = about_client(self.name, self.profile, kind, instance.unclear)
            self.record("node", source=name, address=None, value=about)

        node = self._nodes[instance.number] = ClientNode(
            rules=rules_of(self.profile, len(self.servers.name_servers)),
            name_servers={name: str(at) for name, at in self.servers.name_servers.items()},
            brokers={name: str(at) for name, at in self.servers.brokers.items()},
            since_ms=instance.since_ms,
            note=note,
            spec=lambda kind: self.spec(name, kind),
        )
        for behaved in self._met(instance):
            node.saw(behaved)
        for lag in self._lags:
            node.put(lag)

    def _met(self, instance: Instance) -> Sequence[Behaved]:
        """Return what each front did since the client's process began: the client may have connected before it was
        seen."""
        began_ms = instance.since_ms - (HANGS_MS if instance.process is None else _age_ms(instance.process))
        at_first = {one.front: one for one in self._behaved if one.at_ms <= began_ms}
        return [*at_first.values(), *(one for one in self._behaved if one.at_ms > began_ms)]

    def _went(self, instance: Instance, now_ms: float) -> None:
        stopped = self._looking is not None and not self._looking.cancelled() and not self._looking.cancelling()
        self._nodes[instance.number].end(now_ms, stopped=stopped)
        self._tell_unclear(instance)

    def _tell_unclear(self, instance: Instance) -> None:
        """Record once why it cannot be told what this client did."""
        if instance.unclear and instance.number not in self._unclear:
            self._unclear.add(instance.number)
            self._nodes[instance.number].tell()


def about_client(name: str, profile: ClientProfile, kind: NodeKind, unclear: str = "") -> dict[str, object]:
    """Return the value of a client's `node` row; `kind` is EXTERNAL while the client has done nothing. `unclear` says
    why this client's traffic cannot be distinguished from another client's."""
    about: dict[str, object] = {
        "kind": str(kind),
        "implementation": name,
        "client_profile": profile.name,
        "dialler": name,
    }
    return {**about, "unclear": unclear} if unclear else about


def _lives(process: int) -> bool:
    fields = stat_of(process)
    return fields is not None and fields[0] not in ("Z", "X")


def _age_ms(process: int) -> float:
    fields = stat_of(process)
    if fields is None:
        return HANGS_MS
    return 1000.0 * (time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK"))


def _processes(without: int) -> Sequence[int]:
    """Return the processes, youngest first, because the process that connects was mostly started last."""
    return sorted((int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != without), reverse=True)


class OutsideClients:
    """A thread that runs the fronts of all clients under test. Context manager."""

    def __init__(self) -> None:
        self._clients: dict[str, ClientUnderTest] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def get(self, name: str) -> ClientUnderTest | None:
        return self._clients.get(name)

    def add(self, client: ClientUnderTest) -> None:
        self._start()
        self._do(client.open())
        self._clients[client.name] = client

    def heard(self, event: str, fields: Mapping[str, Any]) -> None:
        if event == "fault" and self._loop is not None:
            for client in tuple(self._clients.values()):
                self._do(client.faulted(fields))

    def redial(self, name: str, dials: Mapping[Address, Address]) -> None:
        client = self._clients.get(name)
        if client is not None and self._loop is not None:
            self._do(client.dials(dials))

    def _start(self) -> None:
        if self._loop is not None:
            return
        import uvloop

        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fronts", daemon=True)
        self._thread.start()

    def _do(self, what: Coroutine[Any, Any, None]) -> None:
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(what, self._loop).result(_LIMIT_S)

    def close(self) -> None:
        with self._lock:
            loop, self._loop = self._loop, None
            if loop is None or self._thread is None:
                return
            for client in self._clients.values():
                try:
                    asyncio.run_coroutine_threadsafe(client.close(), loop).result(_LIMIT_S)
                except Exception:
                    log.exception("the rows of %s are not whole", client.name)
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join(_LIMIT_S)
            loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def rules_of(profile: ClientProfile, name_servers: int) -> Rules:
    """Return the client profile's rules that say which attempts belong to one call (fronts/look_ups.py)."""
    return Rules(
        shuffled=profile.order is Order.SHUFFLED,
        start=profile.start.place(name_servers) or 0,
        every_request=profile.advance is Advance.EVERY_REQUEST,
        tries_max=1 if profile.attempts is Attempts.ONE else None,
        retries=frozenset(map(str, profile.retries)),
    )


WAITS_MS = 5_000.0


class ClientNode:
    """Writes the rows of one client under test into the run's history. In the history the client is a node.

    Rows are kept back, at most for WAITS_MS, until the client's traffic shows whether the client is a producer or a
    consumer. `note` records the client's `node` row; `spec` opens the file for the client's rows.
    """

    def __init__(
        self,
        *,
        rules: Rules,
        name_servers: Mapping[str, str],
        brokers: Mapping[str, str],
        since_ms: float,
        note: Callable[[NodeKind], None],
        spec: Callable[[NodeKind], RecorderSpec],
    ) -> None:
        self._rows = ClientRows(self.put, rules, name_servers, brokers, seen=False)
        self._note, self._spec = note, spec
        self._since_ms = since_ms
        self._held: list[TimedRow] = [TimedRow(since_ms, "started", {})]
        self._record: HistoryWriter | None = None
        self.kind: NodeKind | None = None

    def saw(self, one: Observation) -> None:
        self._rows.saw(one)
        self._decide(one.at_ms)

    def passed(self, now_ms: float) -> None:
        self._rows.passed(now_ms)
        self._decide(now_ms)

    def end(self, now_ms: float, *, stopped: bool) -> None:
        """End the observation of clients. `stopped`: True if the fronts end because the client has ended."""
        self._rows.end(now_ms)
        if stopped:
            self.put(TimedRow(now_ms, "stopped", {}))
        self._decide(math.inf)
        if self._record is not None:
            self._record.close()

    def tell(self) -> None:
        """Record the client's `node` row again with what has become known of the client."""
        if self.kind is not None:
            self._note(self.kind)

    def _decide(self, now_ms: float) -> None:
        """Decide whether the client is a producer or a consumer, once that shows. A client that both sends and reads is
        a consumer, because a consumer's windows are wider."""
        rows = self._rows
        consumes = rows.is_consumer and self.kind is not NodeKind.CONSUMER
        if not consumes and (self.kind is not None or not (rows.is_producer or now_ms - self._since_ms >= WAITS_MS)):
            return
        self.kind = NodeKind.CONSUMER if rows.is_consumer else NodeKind.PRODUCER
        self._note(self.kind)
        if self._record is None:
            self._record = self._spec(self.kind).open()
            held, self._held = self._held, []
            for row in held:
                self.put(row)

    def put(self, row: TimedRow) -> None:
        if self._record is None:
            self._held.append(row)
            return
        self._record.at(row.at_ms, row.event, **row.fields)
