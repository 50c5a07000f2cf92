"""A stand is one test set-up for a program: nemesrv's NameServers and brokers, each behind a TCP proxy (front).

    program ──► front ns-0 ──► NameServer ◄─────────────┐ registers, with RocketMQ's own timers
            ──► front broker-a ──► Broker ──────────────┘ and advertises its front's address
            ──► front address-server ──► AddressServer    if the list is served by HTTP
    feeder ───────────────────────► Broker                messages for consumers, past the fronts

All servers and fronts run in the caller's event loop. `see` gets all observations, including what the stand itself does
(`behave`, `kill` …). `close` ends all servers and fronts, and leaves no open port, task or file.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import shutil
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ..actors.broker.config import BrokerConfig
from ..actors.broker.server import Broker
from ..actors.namesrv.config import NamesrvConfig
from ..actors.namesrv.server import NameServer
from ..actors.standalone import LineLogger
from ..chaos.errors import HarnessError
from ..chaos.experiment.workloads.address_server import AddressServerNode
from ..chaos.fronts.behaviour import PASSES, REFUSES
from ..chaos.fronts.front import Front
from ..chaos.fronts.observed import Asked, Happened, Observation
from ..chaos.fronts.rows import PULLS, SENDS
from ..chaos.topology import ADDRESS_SERVER
from ..clients.config import ProducerConfig
from ..clients.producer.producer import DefaultMQProducer
from ..remoting.codes import PERM_READ, PERM_WRITE
from ..remoting.errors import ConnectError, RocketMQError
from ..remoting.message import Message
from ..remoting.node.clock import Clock
from ..remoting.node.network import Address, Listener, Network, ProtocolFactory, TcpNetwork
from ..remoting.node.node import NodeContext
from ..remoting.node.profile import Profile
from ..remoting.node.tasks import cancel_all
from .situations import (
    KILL,
    NAME_SERVER_LIST,
    QUEUES,
    RESTART,
    SITUATIONS,
    RouteAnswers,
    Situation,
    SituationStep,
    Target,
)
from .subject import Program

TOPIC, GROUP = "nemesrv-conform", "nemesrv-conform-group"
LOOPBACK = "127.0.0.1"
_ANY_PORT = Address(LOOPBACK, 0)
_STORE_FILE = 16 << 20
FEED_EVERY_S = 0.1

Process = Callable[[Address, Address], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformPlan:
    """What `nemesrv conform` runs: the program, the situations by name, and nemesrv's servers."""

    program: Program
    situations: tuple[str, ...] = tuple(SITUATIONS)
    starts: int = 60
    repeats: int = 1
    name_servers: int = 3
    brokers: int = 2
    profile: Profile = Profile.V4_9
    seed: int = 0


class Stand:
    """nemesrv's NameServers and brokers for a program. Call `open`, give the program `name_servers`, call `do` per
    step, call `close`."""

    def __init__(
        self,
        plan: ConformPlan,
        situation: Situation,
        *,
        clock: Clock,
        see: Callable[[Observation], None],
        data: Path,
        log: Path,
        process: Process | None = None,
    ) -> None:
        """`data`: a folder of this stand's own, removed with it. `log`: the file for the servers' warnings."""
        self.clock = clock
        self.topics = [TOPIC]
        name_servers = situation.name_servers or plan.name_servers
        self.names = tuple(f"ns-{n}" for n in range(name_servers))
        self.broker_names = tuple(f"broker-{'abcdefgh'[n]}" for n in range(plan.brokers))
        self._spare = (f"ns-{name_servers}",) if situation.by_http else ()
        """A NameServer that the list by HTTP can gain."""
        self._profile, self._see, self._process = plan.profile, see, process
        self._has_topic, self._by_http = situation.has_topic, situation.by_http
        self._permission = PERM_READ if situation.read_only else PERM_READ | PERM_WRITE
        self._data, self._log_path = data, log
        self._seed: object = plan.seed
        self._log_file: TextIO | None = None
        self.log: logging.Logger = logging.getLogger("nemesrv")
        self.fronts: dict[str, Front] = {}
        self._name_servers: dict[str, NameServer] = {}
        self._name_server_addresses: list[Address] = []
        self._brokers: dict[str, RunningBroker] = {}
        self._addressing: AddressServerNode | None = None
        self._producer: DefaultMQProducer | None = None
        self._feeding: asyncio.Task[None] | None = None
        self._look_ups = RouteAnswers()
        self.answered_last: str | None = None
        """The NameServer that answered the last look-up, with a route where there is one."""
        self.used_last: str | None = None
        """The broker that was last asked for a send or a pull; before any, for anything."""

    # --- up and down --------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start all servers and fronts. Afterwards every NameServer has the routes to every broker. Raises HarnessError
        if a server does not open."""
        self._data.mkdir(parents=True)
        self._log_file = self._log_path.open("a", encoding="utf-8")
        self.log = LineLogger("conform", self._log_file)
        self.log.setLevel(logging.WARNING)
        try:
            for name in (*self.names, *self._spare):
                await self._open_name_server(name)
            for name in self.broker_names:
                await self._open_broker(name)
            if self._by_http:
                await self._open_address_server()
        except BaseException as exc:
            await self.close()
            if isinstance(exc, OSError):
                why = f"a stand cannot be opened: {exc.strerror or exc}; close what uses ports or files"
                raise HarnessError(why) from exc
            raise

    async def _open_name_server(self, name: str) -> None:
        server = NameServer(self.context(name), NamesrvConfig(profile=self._profile), listen=_ANY_PORT)
        self._name_servers[name] = server
        address = await server.listen()
        self._name_server_addresses.append(address)
        await server.start()
        await self._open_front(name, address)

    async def _open_front(self, name: str, upstream: Address | None) -> Front:
        front = self._front(name, upstream)
        await front.open()
        self.fronts[name] = front
        return front

    async def _open_broker(self, name: str) -> None:
        config = BrokerConfig(
            broker_name=name,
            namesrv_addr=tuple(self._name_server_addresses),
            profile=self._profile,
            broker_permission=self._permission,
            auto_create_topic_enable=self._has_topic,
            mapped_file_size_commit_log=_STORE_FILE,
        )
        front = await self._open_front(name, None)
        running = self._brokers[name] = RunningBroker(self, config, front)
        await running.start(dict.fromkeys(self.topics, QUEUES) if self._has_topic else {})

    async def _open_address_server(self) -> None:
        told = [self.fronts[name].address for name in self.names]
        self._addressing = AddressServerNode(self.context(ADDRESS_SERVER), _ANY_PORT, told)
        await self._open_front(ADDRESS_SERVER, await self._addressing.listen())

    def _front(self, name: str, upstream: Address | None) -> Front:
        return Front(name, upstream, self._saw, self.clock, process=self._process, vip=name in self.broker_names)

    def _network(self, links: Mapping[Address, Address] | None = None) -> Network:
        return TcpNetwork(links)

    def mortal_network(self) -> MortalNetwork:
        return MortalNetwork()

    def context(self, name: str, network: Network | None = None) -> NodeContext:
        data = self._data / name
        data.mkdir(exist_ok=True)
        return NodeContext(
            name=name,
            clock=self.clock,
            network=network or self._network(),
            rng=random.Random(f"{self._seed} {name}"),
            log=self.log,
            data_dir=data,
        )

    async def close(self) -> None:
        if self._feeding is not None:
            await cancel_all((self._feeding,))
        if self._producer is not None:
            await self._producer.stop()
        for front in self.fronts.values():
            await front.close()
        for broker in self._brokers.values():
            await broker.die()
        if self._addressing is not None:
            await self._addressing.stop()
        for server in self._name_servers.values():
            await server.stop()
        if self._log_file is not None:
            if isinstance(self.log, LineLogger):
                self.log.flush()
            self.log.disabled = True
            self._log_file.close()
        shutil.rmtree(self._data, ignore_errors=True)

    # --- what the program is told, and what is seen of it -------------------------------------------------------------

    @property
    def name_servers(self) -> tuple[Address, ...]:
        return tuple(self.fronts[name].address for name in self.names)

    @property
    def address_server(self) -> Address | None:
        return self.fronts[ADDRESS_SERVER].address if self._by_http else None

    @property
    def front_of(self) -> dict[Address, str]:
        """Return the name of the front that accepts at each address."""
        return {door: name for name, front in self.fronts.items() for door in front.doors}

    def _saw(self, seen: Observation) -> None:
        if isinstance(seen, Asked) and seen.front in self._brokers:
            is_use = seen.code in (*SENDS, *PULLS)
            self.used_last = seen.front if is_use else self.used_last or seen.front
        answer = self._look_ups.answer(seen)
        if answer is not None and (answer.code == 0 or not self._has_topic):
            self.answered_last = answer.front
        self._see(seen)

    # --- what happens to it -------------------------------------------------------------------------------------------

    async def do(self, step: SituationStep) -> None:
        """Execute one step of a situation. Steps that concern the program itself are ignored."""
        if step.target is Target.LIST:
            self._change_list()
        elif step.do == KILL:
            self._died = self.used_last or self.broker_names[0]
            self.did(KILL, self._died)
            await self.fronts[self._died].behave(REFUSES)
            await self._brokers[self._died].die()
        elif step.do == RESTART:
            await self._brokers[self._died].start({})
            await self.fronts[self._died].behave(PASSES)
            self.did(RESTART, self._died)
        for name, behaviour in step.changes(self.names, self.broker_names, self.answered_last, self.used_last):
            try:
                await self.fronts[name].behave(behaviour)
            except OSError as exc:
                raise HarnessError(
                    f"{name} cannot be made to behave so ({behaviour.dials}): {exc.strerror or exc}"
                ) from exc

    _died = ""

    def _change_list(self) -> None:
        assert self._addressing is not None, "the list is not served by HTTP"
        lost = self.answered_last or self.names[0]
        named = (*(name for name in self.names if name != lost), *self._spare)
        self._addressing.serve([self.fronts[name].address for name in named])
        self.did(NAME_SERVER_LIST, ";".join(named))

    def did(self, what: str, whom: str) -> None:
        """Report an observation that no front can make, such as a broker's kill."""
        self._see(Happened(at_ms=self.clock.monotonic_s() * 1000, what=what, whom=whom))

    async def feed(self) -> None:
        """Send one message each FEED_EVERY_S (0.1 s) until `close`, so that consumers receive messages. The body and
        the key of a message are the message's number."""
        links = {address: address for address in self._name_server_addresses}
        links |= {self.fronts[name].address: broker.address for name, broker in self._brokers.items()}
        config = ProducerConfig(
            namesrv_addr=tuple(self._name_server_addresses), producer_group="nemesrv-feeder", profile=self._profile
        )
        self._producer = DefaultMQProducer(self.context("feeder", self._network(links)), config)
        await self._producer.start()
        self._feeding = asyncio.create_task(self._feed(self._producer))

    async def _feed(self, producer: DefaultMQProducer) -> None:
        for number in itertools.count():
            with suppress(RocketMQError):
                await producer.send(Message.create(TOPIC, b"%d" % number, keys=str(number)))
            await self.clock.sleep(FEED_EVERY_S)


class RunningBroker:
    """A broker of the test set-up that can die like a process, and restart with its files and front at another port."""

    def __init__(self, stand: Stand, config: BrokerConfig, front: Front) -> None:
        self._stand, self._config, self._front = stand, config, front
        self._network: MortalNetwork | None = None
        self._broker: Broker | None = None
        self._listens_at: Address | None = None

    @property
    def address(self) -> Address:
        assert self._listens_at is not None
        return self._listens_at

    async def start(self, topics: dict[str, int]) -> None:
        """Start the broker and wait until it is registered with every NameServer."""
        self._network = self._stand.mortal_network()
        context = self._stand.context(self._config.broker_name, self._network)
        self._broker = Broker(context, self._config, listen=_ANY_PORT, advertised=self._front.address)
        await self._broker.listen()
        self._front.upstream = self._listens_at = self._network.listens_at
        self._broker.have_topics(topics)
        await self._broker.start()

    async def die(self) -> None:
        """Kill the broker: its connections close without a further frame, and its port becomes free."""
        broker, self._broker = self._broker, None
        if self._network is not None:
            self._network.crash()
        if broker is not None:
            self._stand.log.disabled = True  # it cannot unregister, and would log this
            await broker.stop()
            self._stand.log.disabled = False


class MortalNetwork:
    """A network of real sockets that can all close at once, as when a process ends; no connection is possible
    afterwards."""

    def __init__(self) -> None:
        self._tcp = TcpNetwork()
        self._transports: list[asyncio.BaseTransport] = []
        self._is_dead = False
        self.listens_at: Address | None = None

    async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        if self._is_dead:
            raise ConnectError(f"connect to {address} failed: this node is dead")
        try:
            transport, protocol = await asyncio.get_running_loop().create_connection(factory, *address)
        except OSError as exc:
            raise ConnectError(f"connect to {address} failed: {exc.strerror or exc}") from exc
        self._transports = [*(each for each in self._transports if not each.is_closing()), transport]
        if (sock := transport.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return protocol

    async def listen(self, address: Address, factory: ProtocolFactory) -> Listener:
        listener = await self._tcp.listen(address, factory)
        self.listens_at = listener.address
        return listener

    def crash(self) -> None:
        self._is_dead = True
        for transport in self._transports:
            transport.close()
