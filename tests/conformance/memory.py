"""A stand in memory on the virtual clock: our client put through conform's situations, seen as a front sees it.

The fronts are conform's own, on the memory network of tests/virtual.py in place of sockets: their connections decode,
swallow, answer and delay as over TCP. What a socket does before there is a connection (refuse, drop SYNs) is done here.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from nemesrv.chaos.fronts.behaviour import Dials
from nemesrv.chaos.fronts.connection import FrontConnection
from nemesrv.chaos.fronts.front import ANY_PORT, Front
from nemesrv.chaos.fronts.observed import (
    Answered,
    Asked,
    By,
    Closed,
    Dialled,
    GaveUp,
    Observation,
    Opened,
    Reported,
)
from nemesrv.conformance.situations import GET_ROUTEINFO, KILL, SITUATIONS, Role, Situation, Target, Watched
from nemesrv.conformance.stand import GROUP, TOPIC, ConformPlan, MortalNetwork, Stand
from nemesrv.conformance.subject import Program
from nemesrv.remoting.errors import ConnectError, RocketMQError
from nemesrv.remoting.node.network import Address, Listener, Network, ProtocolFactory
from nemesrv.remoting.node.profile import Profile
from tests.conformance.client import Client
from tests.virtual import MemoryNetwork, VirtualClock, run

CLOCK = VirtualClock()
SEND_EVERY_S = 1.0
WORK_LIMIT_S = 12.0
"""So long a process is waited for that finds no route."""
_PEER = Address("127.0.0.1", 50_000)

Plant = Callable[[Client], None]


def _now_ms() -> float:
    return CLOCK.monotonic_s() * 1000


class _NoPort:
    """Stands where a front has its listening socket."""

    def behave(self, dials: Dials) -> None: ...
    def close(self) -> None: ...


class MemoryFront(Front):
    """A front on the memory network."""

    def __init__(
        self, name: str, upstream: Address | None, see: Callable[[Observation], None], stand: MemoryStand
    ) -> None:
        super().__init__(name, upstream, see, CLOCK)
        self._ports: list[Any] = [_NoPort()]
        self._stand = stand
        self.last = 0
        """The number of the connection that it accepted last."""

    async def open(self, address: Address = ANY_PORT) -> Address:
        self._address = (await self._stand.network.listen(address, self._accept)).address
        return self._address

    def _accept(self) -> asyncio.BaseProtocol:
        self.last = next(self._stand.numbers)
        self.see(Opened(at_ms=_now_ms(), front=self.name, connection=self.last, peer=_PEER))
        if self.behaviour.dials is Dials.CLOSED:
            self.see(Closed(at_ms=_now_ms(), front=self.name, connection=self.last, by=By.FRONT))
            return _ClosesAtOnce()
        connection = FrontConnection(self, self.last)
        self._connections.add(connection)
        self._tasks.spawn(self._to_server(connection))
        return connection.client

    async def _to_server(self, connection: FrontConnection) -> None:
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
    """A process's way into the network: each of its dials is seen, and refused or dropped where the front does so.
    `thread`: of a program with several clients, as each of Java's dials from one of its own."""

    def __init__(self, stand: MemoryStand, number: int, thread: int | None = None) -> None:
        self._stand, self._number, self._thread = stand, number, thread
        self.beside: list[_OfProcess] = []
        self._transports: list[asyncio.BaseTransport] = []
        self._is_dead = False

    async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        stand = self._stand
        front = stand.memory_fronts.get(stand.front_of.get(address, ""))
        if self._is_dead:
            raise ConnectError(f"connect to {address} failed: this process is dead")
        if front is None:
            return await stand.network.connect(address, factory)
        dialled = Dialled(
            at_ms=_now_ms(),
            address=address,
            front=front.name,
            process=self._number,
            thread=self._thread,
            local=next(stand.ports),
        )
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
        stand.dialled_by[front.last] = dialled
        self._transports += [end for end in stand.network.transports[before:] if end.protocol is protocol]
        return protocol

    async def listen(self, address: Address, factory: ProtocolFactory) -> Listener:
        raise OSError("a client does not listen")

    def die(self) -> None:
        self._is_dead = True
        for transport in self._transports:
            transport.close()
        for each in self.beside:
            each.die()


class _OfServer(MortalNetwork):
    """A server's way into the network, which its death cuts."""

    def __init__(self, network: MemoryNetwork) -> None:
        super().__init__()
        self._network = network

    async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        if self._is_dead:
            raise ConnectError("dead")
        before = len(self._network.transports)
        protocol = await self._network.connect(address, factory)
        self._transports += (end for end in self._network.transports[before:] if end.protocol is protocol)
        return protocol

    async def listen(self, address: Address, factory: ProtocolFactory) -> Listener:
        listener = await self._network.listen(address, factory)
        self.listens_at = listener.address
        return listener

    def crash(self) -> None:
        if self.listens_at is not None:
            self._network.refuse(self.listens_at)
            self._network.listening.pop(self.listens_at, None)
        super().crash()


class MemoryStand(Stand):
    """Conform's stand in memory, and the processes that are put through one situation."""

    def __init__(self, situation: Situation, data: Path, *, profile: Profile, seed: str) -> None:
        self.situation = situation
        self.network = MemoryNetwork()
        self.numbers: Iterator[int] = itertools.count(1)
        self.memory_fronts: dict[str, MemoryFront] = {}
        self.ports: Iterator[int] = itertools.count(_PEER.port + 1)
        self.dialled_by: dict[int, Dialled] = {}
        """The connect of each connection."""
        self._all: list[tuple[int | None, Observation]] = []
        self._asked_routes: set[tuple[int, int]] = set()
        self.at_work: dict[int, float] = {}
        plan = ConformPlan(program=Program(()), profile=profile)
        super().__init__(plan, situation, clock=CLOCK, see=self._kept, data=data, log=data.with_suffix(".log"))
        self._seed = f"{seed} {situation.name}"

    def _front(self, name: str, upstream: Address | None) -> Front:
        front = self.memory_fronts[name] = MemoryFront(name, upstream, self._saw, self)
        return front

    def _network(self, links: Mapping[Address, Address] | None = None) -> Network:
        return _Round(self.network, links or {})

    def mortal_network(self) -> MortalNetwork:
        return _OfServer(self.network)

    # -- seen

    def _kept(self, seen: Observation) -> None:
        if isinstance(seen, Asked) and seen.code == GET_ROUTEINFO:
            self._asked_routes.add((seen.connection, seen.opaque))
        elif isinstance(seen, Answered) and seen.code == 0 and (seen.connection, seen.opaque) in self._asked_routes:
            self.at_work.setdefault(self.dialled_by[seen.connection].process, seen.at_ms)
        if isinstance(seen, Asked):
            seen = seen._replace(language="JAVA")  # whose clients are told apart by the thread that dials
        self._all.append((None, seen))

    def saw_of(self, process: int, seen: Observation) -> None:
        self._all.append((process, seen))

    def seen_by(self, process: int) -> tuple[Observation, ...]:
        found = []
        for of, one in self._all:
            dialled = self.dialled_by.get(getattr(one, "connection", 0))
            if isinstance(one, Opened) and dialled is not None:
                one = replace(one, peer=Address(_PEER.host, dialled.local or 0))
            if (of if dialled is None else dialled.process) in (None, process):
                found.append(one)
        return tuple(sorted(found, key=lambda one: one.at_ms))

    # -- its course

    async def put_through(
        self, number: int, plant: Plant | None, profile: Profile, *, beside: int = 0, **settings: Any
    ) -> list[Watched]:
        """What was watched of each process, from its start to its end. `beside`: so many clients more in each process,
        of other topics and groups, without the defect."""
        situation, seats = self.situation, [*range(number, number + self.situation.processes)]
        networks, clients, began = {}, {}, {}
        stopping: dict[int, float] = {}
        others: list[Client] = []
        for each in seats:
            networks[each] = _OfProcess(self, each, thread=1 if beside else None)
            networks[each].beside = [_OfProcess(self, each, thread=2 + other) for other in range(beside)]
            context = self.context(f"client-{each}", networks[each])
            place: dict[str, Any] = {"name_servers": self.name_servers}
            if self.address_server is not None:
                place = {"name_servers": (), "address_server": self.address_server}

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
            if plant is not None:
                plant(client)
            began[each] = _now_ms()
            with suppress(RocketMQError):
                await client.start()
            for other in range(beside):
                name = f"beside-{other}"
                more = {"topic": name, "group": name, "profile": profile, "every_s": SEND_EVERY_S}
                own = self.context(f"client-{each}-{name}", networks[each].beside[other])
                others.append(Client(own, **place, **more))
                with suppress(RocketMQError):
                    await others[-1].start()
        await self._go_on(seats, clients, networks, stopping)
        for each in seats:
            stopping.setdefault(each, _now_ms())
            networks[each].die()  # its farewell would take time, and nobody looks at it
        for client in (*clients.values(), *others):
            await client.stop()
        return [
            Watched(
                situation=situation.name,
                number=each,
                name_servers=self.names,
                brokers=self.broker_names,
                topic=TOPIC,
                process=each,
                began_ms=began[each],
                at_work_ms=self.at_work.get(each),
                stopping_ms=stopping[each],
                ended_ms=stopping[each],
                ended="stopped",
                dials_unseen=None,
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
    """The network with other ends for some addresses."""

    def __init__(self, network: MemoryNetwork, links: Mapping[Address, Address]) -> None:
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
    beside: int = 0,
    for_s: float | None = None,
    **settings: Any,
) -> list[Watched]:
    """What is watched of our client (with that defect) in that situation; `starts` processes where there are many, each
    of which has `beside` other clients in it. `for_s`: the situation lasts so long."""
    situation = SITUATIONS[name]
    if for_s is not None:
        situation = replace(situation, for_s=for_s)

    async def main(time: int) -> list[Watched]:
        drawn = f"{seed}.{time}" if time else f"{seed}"
        stand = MemoryStand(situation, data / f"{name}-{drawn}", profile=profile, seed=drawn)
        stand.topics += (f"beside-{number}" for number in range(beside))
        await stand.open()
        for step in situation.steps:
            if step.at_s is None:
                await stand.do(step)
        if situation.role is Role.CONSUMER:
            await stand.feed()
        found = []
        for number in range(starts if situation.many else 1):
            found += await stand.put_through(number + time, plant, profile, beside=beside, **settings)
        await stand.close()
        return found

    return [one for time in range(situation.times) for one in run(lambda time=time: main(time))]
