"""Our own servers seen from outside, as Apache's are: beside a virtual run, what a front before each of them, its log
and polls would have shown, and the rows that follow from that. The servers' own rows are the truth.

    with seen_from_outside() as outside:
        folder = record_virtual(scenario, seed, path).path
    rows = outside.instead_of_own(read_rows(folder))         # the same history, but for what servers said of themselves

A tap in the node's own network is the front: it sees the same bytes, at the node's end of each connection.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from nemesrv.actors.actor import NodeActor, NodeSpec, Surroundings
from nemesrv.actors.broker.server import Broker
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.chaos.apache.broker_rows import BrokerRows
from nemesrv.chaos.apache.name_server_rows import NameServerRows
from nemesrv.chaos.apache.server_rows import ServerAbout, ServerRows
from nemesrv.chaos.apache.tables import Table
from nemesrv.chaos.experiment.virtual import cluster
from nemesrv.chaos.experiment.virtual.cluster import VirtualCluster
from nemesrv.chaos.fronts.decode import Conversation, Stream
from nemesrv.chaos.fronts.observed import By, Closed, How, Observation, Opened
from nemesrv.chaos.fronts.rows import TimedRow
from nemesrv.chaos.topology import NodeKind, broker_id, broker_name
from nemesrv.remoting.bodies.route import canonical
from nemesrv.remoting.errors import ProtocolError
from nemesrv.remoting.node.network import Address

OWN = frozenset(
    {
        *("route", "registration", "broker_dropped", "write_perm", "register", "topic", "client_heartbeat"),
        *("client_gone", "commit", "boot", "offset_reset", "scheduled_task", "timed_out", "name_server_list"),
    }
)
"""What a NameServer or broker says of itself, and an Apache one does not."""
TAIL_S = 0.1
POLL_S = 0.25
SERVERS = (NodeKind.NAME_SERVER, NodeKind.BROKER, NodeKind.SLAVE)


@dataclass(slots=True)
class Process:
    """One process of one server."""

    name: str
    kind: NodeKind
    incarnation: int
    now_ms: Callable[[], float]
    rows: list[TimedRow] = field(default_factory=list)
    node: Any = None
    lines: list[str] = field(default_factory=list)
    _derived: ServerRows | None = None
    _early: list[Observation] = field(default_factory=list)

    def saw(self, one: Observation) -> None:
        self.derived.saw(one)

    @property
    def derived(self) -> ServerRows:
        assert self._derived is not None
        return self._derived

    def begin(self, name_servers: Mapping[str, str], profile: Any, timeout_ms: float) -> None:
        about = ServerAbout(
            name=self.name,
            kind=self.kind,
            profile=profile,
            broker_name=broker_name(self.name),
            broker_id=broker_id(self.name) if self.kind is NodeKind.SLAVE else 0,
            name_servers=name_servers,
            register_timeout_ms=timeout_ms,
        )
        kind = NameServerRows if self.kind is NodeKind.NAME_SERVER else BrokerRows
        self._derived = kind(self.rows.append, about)

    def tail(self) -> None:
        lines, self.lines = self.lines, []
        for line in lines:
            self.derived.logged(self.now_ms(), line)
        self.derived.passed(self.now_ms())

    def poll(self) -> None:
        if isinstance(self.node, NameServer):
            table = self.node.table
            told = {topic: table.route(topic) for topic in self.derived.topics()}
            routes = {topic: route and canonical(route) for topic, route in told.items()}
            brokers = {name: dict(group.addrs) for name, group in table.broker_addr_table.items()}
            self.derived.polled(self.now_ms() - 2.0, self.now_ms(), Table(brokers=brokers, routes=routes))

    async def look(self, clock: Any) -> None:
        looks = 0
        while True:
            await clock.sleep(TAIL_S)
            looks += 1
            self.tail()
            if looks % round(POLL_S / TAIL_S) == 0:
                self.poll()


class _Tap(asyncio.Protocol):
    """Between a transport and the node's protocol, on the side of the node."""

    numbers = iter(range(1, 1 << 40))

    def __init__(self, inner: Any, process: Process, front: str, *, dials: bool) -> None:
        self._inner, self._process, self._front, self._dials = inner, process, front, dials
        self._number = next(_Tap.numbers)
        self._conversation = Conversation(front, self._number)
        self._up, self._down = Stream(), Stream()
        self._closes = False
        self.transport: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        peer = Address(*(transport.get_extra_info("peername") or ("?", 0))[:2])
        now_ms = self._process.now_ms()
        self._process.saw(Opened(at_ms=now_ms, front=self._front, connection=self._number, peer=peer))
        self._inner.connection_made(_Wire(self))

    def data_received(self, data: bytes) -> None:
        self._seen(data, of_client=not self._dials)
        self._inner.data_received(data)

    def written(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self._seen(data, of_client=self._dials)

    def closing(self) -> None:
        self._closes = True

    def eof_received(self) -> Any:
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        by_node = By.CLIENT if self._dials else By.SERVER
        other = By.SERVER if self._dials else By.CLIENT
        how = How.FIN if exc is None else How.RST
        self._process.saw(
            Closed(
                at_ms=self._process.now_ms(),
                front=self._front,
                connection=self._number,
                by=by_node if self._closes else other,
                how=how,
            )
        )
        self._inner.connection_lost(exc)

    def _seen(self, data: bytes, *, of_client: bool) -> None:
        stream = self._up if of_client else self._down
        now_ms = self._process.now_ms()
        for frame in stream.feed(data):
            try:
                if of_client:
                    one: Any = self._conversation.of_client(frame, now_ms)
                else:
                    one = self._conversation.of_server(frame, now_ms)
            except ProtocolError:
                continue
            if one is not None:
                self._process.saw(one)


class _Wire:
    def __init__(self, tap: _Tap) -> None:
        self._tap = tap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tap.transport, name)

    def write(self, data: bytes) -> None:
        self._tap.written(bytes(data))
        self._tap.transport.write(data)

    def writelines(self, parts: Sequence[bytes]) -> None:
        self.write(b"".join(parts))

    def close(self) -> None:
        self._tap.closing()
        self._tap.transport.close()

    def abort(self) -> None:
        self._tap.closing()
        self._tap.transport.abort()


class _Network:
    def __init__(self, inner: Any, process: Process, names: Mapping[str, str]) -> None:
        self._inner, self._process, self._names = inner, process, names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def connect(self, address: Address, factory: Callable[[], Any]) -> Any:
        front = self._names.get(str(address))
        if front is None:
            return await self._inner.connect(address, factory)
        made: list[Any] = []

        def tapped() -> _Tap:
            made.append(factory())
            return _Tap(made[-1], self._process, front, dials=True)

        await self._inner.connect(address, tapped)
        return made[-1]

    async def listen(self, address: Address, factory: Callable[[], Any]) -> Any:
        return await self._inner.listen(
            address, lambda: _Tap(factory(), self._process, self._process.name, dials=False)
        )


class _Lines(logging.Handler):
    def __init__(self, process: Process) -> None:
        super().__init__()
        self._process = process

    def emit(self, record: logging.LogRecord) -> None:
        self._process.lines.append(f"2026-11-22 20:00:00 {record.levelname} t - {record.getMessage()}")


@dataclass(slots=True)
class _Recorder:
    """The process's own; it tells when the process ends in peace."""

    inner: Any
    process: Process

    def __call__(self, event: str, /, **fields: object) -> None:
        if event == "stopped":
            self.process.tail()
            self.process.derived.end(self.process.now_ms())
        self.inner(event, **fields)

    def close(self) -> None:
        self.inner.close()


@dataclass(slots=True)
class Outside:
    processes: list[Process] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """host:port → name of each NameServer, and back; filled as they listen."""
    name_servers: dict[str, str] = field(default_factory=dict)

    def derived(self) -> list[dict[str, Any]]:
        """The rows, as a history has them."""
        found = []
        for process in self.processes:
            head = {"node": process.name, "role": str(process.kind), "incarnation": process.incarnation}
            for number, row in enumerate(process.rows):
                stamp = {"event": row.event, "time_ms": row.at_ms, "seq": 1_000_000 + number}
                found.append({**head, **stamp, **row.fields})
        return found

    def instead_of_own(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The history as it would be of servers that say nothing of themselves."""
        servers = {process.name for process in self.processes}
        kept: list[dict[str, Any]] = []
        for row in rows:
            if row["node"] in servers and row["event"] in OWN:
                continue
            if row["event"] == "node" and row["source"] in servers:
                row = {**row, "value": {**row["value"], "implementation": "apache-of-ours"}}
            kept.append(dict(row))
        blank = dict.fromkeys(rows[0])
        kept += [{**blank, **row} for row in self.derived()]
        return sorted(kept, key=lambda row: (row["time_ms"], row["node"], row["incarnation"], row["seq"]))


@contextmanager
def seen_from_outside(*, polls: bool = True) -> Iterator[Outside]:
    """Every NameServer and broker of virtual runs within is seen from outside, too. `polls`: and asked."""
    outside = Outside()
    launched = VirtualCluster._launch

    def launch(self: VirtualCluster, spec: NodeSpec) -> Any:
        kind = NodeKind(spec.role) if spec.role in {str(kind) for kind in SERVERS} else None
        if kind is None:
            return launched(self, spec)
        process = Process(spec.name, kind, spec.incarnation, lambda: spec.clock.monotonic_s() * 1000.0)
        outside.processes.append(process)

        def surroundings(*, network: Any, log: logging.Logger, pid: int) -> Surroundings:
            log.addHandler(_Lines(process))
            return Surroundings(network=_Network(network, process, outside.names), log=log, pid=pid)

        def actor(spec: NodeSpec, *, surroundings: Surroundings) -> NodeActor:
            made = NodeActor(spec, surroundings=surroundings)
            listens = made.listen

            async def listen() -> Any:
                made_node = spec.factory

                def factory(context: Any) -> Any:
                    node = process.node = made_node(context)
                    if isinstance(node, NameServer):
                        process.begin({}, node.config.profile, 0.0)
                    elif isinstance(node, Broker):
                        config = node._config
                        process.begin(outside.name_servers, config.profile, config.register_timeout_s * 1000.0)
                        if context.data_dir is not None:
                            for path in context.data_dir.rglob("consumerOffset.json"):
                                process.derived.recovered(path.read_bytes())
                    return node

                object.__setattr__(made._spec, "factory", factory)
                try:
                    listening = await listens()
                finally:
                    object.__setattr__(made._spec, "factory", made_node)
                if kind is NodeKind.NAME_SERVER:
                    outside.names[str(listening.address)] = spec.name
                    outside.name_servers[spec.name] = str(listening.address)
                if made._recorder is not None:
                    recorder = _Recorder(made._recorder, process)
                    made._recorder = made._record = recorder
                asyncio.get_running_loop().create_task(process.look(spec.clock))
                return listening

            made.listen = listen  # type: ignore[method-assign]
            return made

        with mock.patch.object(cluster, "Surroundings", surroundings), mock.patch.object(cluster, "NodeActor", actor):
            return launched(self, spec)

    with mock.patch.object(VirtualCluster, "_launch", launch):
        yield outside
