"""A stand in memory on the virtual clock: our client put through conform's situations, seen as a front sees it.

The fronts are conform's own, on the memory network of tests/virtual.py in place of sockets: their connections decode,
swallow, answer and delay as over TCP. What a socket does before there is a connection (refuse, drop SYNs) is done here.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.actors.broker.server import Broker
from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.chaos.experiment.workloads.address_server import AddressServerNode
from nemesrv.chaos.fronts.behaviour import PASSES, REFUSES, Dials
from nemesrv.chaos.fronts.connection import Connection
from nemesrv.chaos.fronts.front import Front
from nemesrv.chaos.fronts.observed import (
    Answered,
    Asked,
    By,
    Closed,
    Dialled,
    GaveUp,
    Happened,
    How,
    Observation,
    Opened,
    Reported,
)
from nemesrv.clients.config import ProducerConfig
from nemesrv.clients.producer.producer import DefaultMQProducer
from nemesrv.conformance.situations import (
    GET_ROUTEINFO,
    KILL,
    NAME_SERVER_LIST,
    RESTART,
    SENDS,
    SITUATIONS,
    Role,
    Situation,
    SituationStep,
    Target,
    Watched,
)
from nemesrv.remoting.errors import ConnectError, RocketMQError
from nemesrv.remoting.message import Message
from nemesrv.remoting.node.network import Address, Listener, ProtocolFactory
from nemesrv.remoting.node.node import NodeContext
from nemesrv.remoting.node.profile import Profile
from tests.conformance.client import Client
from tests.virtual import MemoryNetwork, VirtualClock, run

TOPIC, GROUP, QUEUES = "nemesrv-conform", "nemesrv-conform-group", 4
CLOCK = VirtualClock()
FEED_EVERY_S = 0.5
SEND_EVERY_S = 1.0
WORK_LIMIT_S = 12.0
"""So long a process is waited for that finds no route."""
_PEER = Address("127.0.0.1", 40_000)
_QUIET = logging.getLogger("nemesrv.tests.conform.memory")
_QUIET.disabled = True

Plant = Callable[[Client], None]


def _now_ms() -> float:
    return CLOCK.monotonic_s() * 1000


class _NoPort:
    """Stands where a front has its listening socket."""

    def behave(self, dials: Dials) -> None: ...
    def close(self) -> None: ...


class MemoryFront(Front):
    """A front on the memory network."""

    def __init__(self, name: str, upstream: Address | None, see: Callable[[Observation], None], stand: Stand) -> None:
        super().__init__(name, upstream, see, CLOCK, connections=stand.numbers)
        self._port: Any = _NoPort()
        self._stand = stand
        self.last = 0
        """The number of the connection that it accepted last."""

    async def listen(self, address: Address) -> None:
        await self._stand.network.listen(address, self._accept)
        self._address = address

    def _accept(self) -> asyncio.BaseProtocol:
        self.last = next(self._numbers)
        self.see(Opened(at_ms=_now_ms(), front=self.name, connection=self.last, peer=_PEER))
        if self.behaviour.dials in (Dials.CLOSED, Dials.RESET):
            how = How.FIN if self.behaviour.dials is Dials.CLOSED else How.RST
            self.see(Closed(at_ms=_now_ms(), front=self.name, connection=self.last, by=By.FRONT, how=how))
            return _ClosesAtOnce()
        connection = Connection(self, self.last)
        self._connections.add(connection)
        task = asyncio.get_running_loop().create_task(self._to_server(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return connection.client

    async def _to_server(self, connection: Connection) -> None:
        try:
            upstream = await self.dialled()
            if upstream is None:
                raise ConnectError("there is no server")
            await self._stand.network.connect(upstream, lambda: connection.server)
        except ConnectError:
            connection.unreachable()


class _ClosesAtOnce(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        asyncio.get_running_loop().call_soon(transport.close)


class _OfProcess:
    """A process's way into the network: each of its dials is seen, and refused or dropped where the front does so."""

    def __init__(self, stand: Stand, number: int) -> None:
        self._stand, self._number = stand, number
        self._transports: list[asyncio.BaseTransport] = []
        self._is_dead = False

    async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        stand = self._stand
        front = stand.front_at.get(address)
        if self._is_dead:
            raise ConnectError(f"connect to {address} failed: this process is dead")
        if front is None:
            return await stand.network.connect(address, factory)
        dialled = Dialled(at_ms=_now_ms(), address=address, front=front.name, process=self._number)
        stand.saw_of(self._number, dialled)
        if front.behaviour.dials is Dials.REFUSED:
            await CLOCK.sleep(0.0003)
            raise ConnectError(f"connect to {address} failed: refused")
        if front.behaviour.dials is Dials.DROPPED:
            try:
                await asyncio.Event().wait()
            finally:
                stand.saw_of(self._number, GaveUp(at_ms=_now_ms(), address=address, front=front.name))
        before = len(stand.network.transports)
        protocol = await stand.network.connect(address, factory)
        stand.process_of[front.last] = self._number
        self._transports += [end for end in stand.network.transports[before:] if end.get_protocol() is protocol]
        return protocol

    async def listen(self, address: Address, factory: ProtocolFactory) -> Listener:
        raise OSError("a client does not listen")

    def die(self) -> None:
        self._is_dead = True
        for transport in self._transports:
            transport.close()


class _OfServer:
    """A server's way into the network, which its death cuts."""

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self._addresses: list[Address] = []
        self._dead = False

    async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        if self._dead:
            raise ConnectError("dead")
        before = len(self._network.transports)
        protocol = await self._network.connect(address, factory)
        self._dialled = [
            *getattr(self, "_dialled", ()),
            *(end for end in self._network.transports[before:] if end.get_protocol() is protocol),
        ]
        return protocol

    async def listen(self, address: Address, factory: ProtocolFactory) -> Listener:
        self._network.refused.discard(address)
        listener = await self._network.listen(address, factory)
        self._addresses.append(listener.address)
        return listener

    def die(self) -> None:
        self._dead = True
        for address in self._addresses:
            self._network.refuse(address)
            self._network.listening.pop(address, None)
        for transport in getattr(self, "_dialled", ()):
            transport.close()


class Stand:
    """NameServers and brokers behind fronts, and the processes that are put through one situation."""

    def __init__(self, situation: Situation, data: Path, *, profile: Profile, seed: int) -> None:
        self.situation, self._data, self._profile, self._seed = situation, data, profile, seed
        self.network = MemoryNetwork()
        self.numbers: Iterator[int] = itertools.count(1)
        self.front_at: dict[Address, MemoryFront] = {}
        self.fronts: dict[str, MemoryFront] = {}
        self.process_of: dict[int, int] = {}
        n = situation.name_servers or 3
        self.names = tuple(f"ns-{k}" for k in range(n))
        self.spare = (f"ns-{n}",) if situation.by_http else ()
        self.brokers = ("broker-a", "broker-b")
        self.address_of: dict[str, Address] = {}
        self._servers: dict[str, Any] = {}
        self._networks: dict[str, _OfServer] = {}
        self._direct: dict[str, Address] = {}
        self._addressing: AddressServerNode | None = None
        self.list_at: Address | None = None
        self._all: list[tuple[int | None, Observation]] = []
        self._look_ups: dict[tuple[int, int], str] = {}
        self.at_work: dict[int, float] = {}
        self.answered_last = self.used_last = ""
        self._died = ""
        self._feeding: asyncio.Task[None] | None = None

    # -- up

    def _context(self, name: str, network: Any) -> NodeContext:
        data = self._data / name
        data.mkdir(parents=True, exist_ok=True)
        rng = random.Random(f"{self._seed} {self.situation.name} {name}")
        return NodeContext(name=name, clock=CLOCK, network=network, rng=rng, data_dir=data, log=_QUIET)

    async def open(self) -> None:
        for number, name in enumerate((*self.names, *self.spare)):
            direct = self._direct[name] = Address(f"10.1.0.{number + 1}", 9876)
            network = self._networks[name] = _OfServer(self.network)
            server = NameServer(self._context(name, network), NamesrvConfig(profile=self._profile), listen=direct)
            await server.listen()
            await server.start()
            self._servers[name] = server
            await self._front(name, Address(f"10.0.0.{number + 1}", 9876), direct)
        for number, name in enumerate(self.brokers):
            self._direct[name] = Address(f"10.1.1.{number + 1}", 10911)
            await self._front(name, Address(f"10.0.1.{number + 1}", 10911), self._direct[name])
            await self._start_broker(name)
        if self.situation.by_http:
            self.list_at = Address("10.0.2.1", 80)
            told = [self.address_of[name] for name in self.names]
            self._addressing = AddressServerNode(self._context("list", _OfServer(self.network)), self.list_at, told)
            await self._addressing.listen()

    async def _front(self, name: str, address: Address, direct: Address) -> None:
        front = self.fronts[name] = self.front_at[address] = MemoryFront(name, direct, self._saw, self)
        self.address_of[name] = address
        await front.listen(address)

    async def _start_broker(self, name: str) -> None:
        network = self._networks[name] = _OfServer(self.network)
        config = BrokerConfig(
            broker_name=name,
            namesrv_addr=tuple(self._direct[each] for each in (*self.names, *self.spare)),
            profile=self._profile,
            auto_create_topic_enable=self.situation.has_topic,
            mapped_file_size_commit_log=16 << 20,
        )
        context = self._context(name, network)
        broker = Broker(context, config, listen=self._direct[name], advertised=self.address_of[name])
        await broker.listen()
        if self.situation.has_topic:
            broker.have_topics({TOPIC: QUEUES})
        await broker.start()
        self._servers[name] = broker

    async def close(self) -> None:
        if self._feeding is not None:
            self._feeding.cancel()
            await asyncio.gather(self._feeding, return_exceptions=True)
        for server in reversed(self._servers.values()):
            await server.stop()

    # -- seen

    def _saw(self, seen: Observation) -> None:
        if isinstance(seen, Asked):
            if seen.code == GET_ROUTEINFO:
                self._look_ups[seen.connection, seen.opaque] = seen.front
            if seen.code in (*SENDS, 11, 361):
                self.used_last = seen.front
        elif isinstance(seen, Answered) and (seen.code == 0 or not self.situation.has_topic):
            front = self._look_ups.pop((seen.connection, seen.opaque), None)
            if front is not None:
                self.answered_last = front
                if seen.code == 0:
                    self.at_work.setdefault(self.process_of[seen.connection], seen.at_ms)
        self._all.append((None, seen))

    def saw_of(self, process: int, seen: Observation) -> None:
        self._all.append((process, seen))

    def seen_by(self, process: int) -> tuple[Observation, ...]:
        found = []
        for of, one in self._all:
            connection = getattr(one, "connection", None)
            owner = of if connection is None else self.process_of.get(connection)
            if owner is None or owner == process:
                found.append(one)
        return tuple(sorted(found, key=lambda one: one.at_ms))

    # -- done

    async def do(self, step: SituationStep) -> None:
        if step.target is Target.LIST:
            assert self._addressing is not None
            now = [*(name for name in self.names if name != self.answered_last), *self.spare]
            self._addressing.serve([self.address_of[name] for name in now])
            self.did(NAME_SERVER_LIST, ";".join(now))
        elif step.do == KILL:
            self._died = self.used_last
            self.did(KILL, self._died)
            await self.fronts[self._died].behave(REFUSES)
            self._networks[self._died].die()
            await self._servers.pop(self._died).stop()
        elif step.do == RESTART:
            await self._start_broker(self._died)
            await self.fronts[self._died].behave(PASSES)
            self.did(RESTART, self._died)
        for name, behaviour in step.changes(self.names, self.brokers, self.answered_last, self.used_last):
            await self.fronts[name].behave(behaviour)

    def did(self, what: str, whom: str) -> None:
        self._all.append((None, Happened(at_ms=_now_ms(), what=what, whom=whom)))

    async def feed(self) -> None:
        network = _Round(self.network, {self.address_of[name]: self._direct[name] for name in self.brokers})
        servers = tuple(self._direct[name] for name in self.names)
        config = ProducerConfig(namesrv_addr=servers, producer_group="feeder", profile=self._profile)
        producer = DefaultMQProducer(self._context("feeder", network), config)
        await producer.start()

        async def send_all() -> None:
            for number in itertools.count():
                with suppress(RocketMQError):
                    await producer.send(Message.create(TOPIC, b"%d" % number, keys=str(number)))
                await CLOCK.sleep(FEED_EVERY_S)

        self._feeding = asyncio.create_task(send_all())

    # -- its course

    async def put_through(self, number: int, plant: Plant | None, profile: Profile, **settings: Any) -> list[Watched]:
        """What was watched of each process, from its start to its end."""
        situation, seats = self.situation, [*range(number, number + self.situation.processes)]
        networks, clients, began = {}, {}, {}
        stopping: dict[int, float] = {}
        for each in seats:
            networks[each] = _OfProcess(self, each)
            context = self._context(f"client-{each}", networks[each])
            place: dict[str, Any] = {"name_servers": [self.address_of[name] for name in self.names]}
            if self.list_at is not None:
                place = {"name_servers": (), "address_server": self.list_at}

            def tell(of: int = each, **said: Any) -> None:
                self.saw_of(of, Reported(at_ms=_now_ms(), f=said.pop("f"), value=said))

            client = clients[each] = Client(
                context,
                **place,
                topic=TOPIC,
                group=GROUP,
                role=situation.role,
                profile=profile,
                every_s=SEND_EVERY_S,
                tell=tell,
                **settings,
            )
            client.situation = situation.name
            if plant is not None:
                plant(client)
            began[each] = _now_ms()
            with suppress(RocketMQError):
                await client.start()
        await self._go_on(seats, clients, networks, stopping)
        for each in seats:
            stopping.setdefault(each, _now_ms())
            networks[each].die()  # its farewell would take time, and nobody looks at it
        for client in clients.values():
            await client.stop()
        return [
            Watched(
                situation=situation.name,
                number=each,
                name_servers=self.names,
                brokers=self.brokers,
                topic=TOPIC,
                group=GROUP,
                process=each,
                began_ms=began[each],
                at_work_ms=self.at_work.get(each),
                stopping_ms=stopping[each],
                ended_ms=stopping[each],
                ended="stopped",
                dials_unseen=None,
                addresses={name: str(address) for name, address in self.address_of.items()},
                seen=self.seen_by(each),
            )
            for each in seats
        ]

    async def _go_on(self, seats: Sequence[int], clients: Any, networks: Any, stopping: dict[int, float]) -> None:
        limit_s = CLOCK.monotonic_s() + WORK_LIMIT_S
        while any(each not in self.at_work for each in seats) and CLOCK.monotonic_s() < limit_s:
            if not self.situation.has_topic:
                break
            await CLOCK.sleep(0.01)
        began_s = max(
            (self.at_work[each] / 1000 for each in seats if each in self.at_work), default=CLOCK.monotonic_s()
        )
        for step in self.situation.steps:
            if step.at_s is None:
                continue
            await CLOCK.sleep(max(0.0, began_s + step.at_s - CLOCK.monotonic_s()))
            if step.target is Target.CLIENT:
                last = seats[-1]
                self.did(str(step.do), str(last))
                stopping[last] = _now_ms()
                if step.do == KILL:
                    networks[last].die()
                else:
                    await clients[last].stop()
            else:
                await self.do(step)
        await CLOCK.sleep(max(0.0, began_s + self.situation.for_s - CLOCK.monotonic_s()))


class _Round:
    """The feeder's network: round the fronts."""

    def __init__(self, network: MemoryNetwork, links: dict[Address, Address]) -> None:
        self._network, self._links = network, links
        self.listen = network.listen

    async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        return await self._network.connect(self._links.get(address, address), factory)


def put_through(
    name: str,
    data: Path,
    *,
    profile: Profile = Profile.V5_X,
    plant: Plant | None = None,
    starts: int = 20,
    seed: int = 0,
    **settings: Any,
) -> list[Watched]:
    """What is watched of our client (with that defect) in that situation; `starts` processes where there are many."""
    situation = SITUATIONS[name]

    async def main() -> list[Watched]:
        stand = Stand(situation, data / f"{name}-{seed}", profile=profile, seed=seed)
        await stand.open()
        for step in situation.steps:
            if step.at_s is None:
                await stand.do(step)
        if situation.role is Role.CONSUMER:
            await stand.feed()
        found = []
        for number in range(starts if situation.many else 1):
            found += await stand.put_through(number, plant, profile, **settings)
        await stand.close()
        return found

    return run(main)
