"""Real NameServers, brokers, producers and consumers in one process, on virtual time and a network in memory."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.actors.broker.server import Broker
from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.clients.admin import AdminClient
from nemesrv.clients.config import ProducerConfig
from nemesrv.clients.consumer.consumer import DefaultMQPushConsumer
from nemesrv.clients.producer.producer import DefaultMQProducer
from nemesrv.remoting.message import Message
from nemesrv.remoting.node.network import Address, ProtocolFactory
from nemesrv.remoting.node.node import NodeContext
from nemesrv.remoting.node.profile import Profile

from .clients.consumer.consumers import Consuming
from .virtual import MemoryNetwork, VirtualClock

PROFILES = pytest.mark.parametrize("profile", [Profile.V4_9, Profile.V5_X])
QUEUES = 4
CLOCK = VirtualClock()


class NodeNetwork:
    """One node's way into the shared network, with the connections that it dialled."""

    def __init__(self, shared: MemoryNetwork) -> None:
        self._dialled: list[Any] = []
        self._shared = shared
        self.listen = shared.listen

    async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        protocol = await self._shared.connect(address, factory)
        self._dialled += [end for end in self._shared.transports if end.protocol is protocol]
        return protocol


class Cluster:
    def __init__(self, data: Path, *, name_servers: int, brokers: int, profile: Profile) -> None:
        self._data, self.profile = data, profile
        self.network = MemoryNetwork()
        self.networks: dict[str, NodeNetwork] = {}
        self.name_servers = {f"ns-{n}": Address(f"10.0.1.{n + 1}", 9876) for n in range(name_servers)}
        self.brokers = {f"broker-{'abc'[n]}": Address(f"10.0.2.{n + 1}", 10911) for n in range(brokers)}
        self._nodes: list[NameServer | Broker | DefaultMQProducer | DefaultMQPushConsumer] = []

    @property
    def addresses(self) -> tuple[Address, ...]:
        return tuple(self.name_servers.values())

    def context(self, name: str) -> NodeContext:
        network = self.networks[name] = NodeNetwork(self.network)
        data = self._data / name
        data.mkdir(exist_ok=True)
        return NodeContext(
            name=name, clock=CLOCK, network=network, rng=random.Random(name), record=_nothing, data_dir=data
        )

    async def start(self) -> None:
        for name, address in self.name_servers.items():
            await self._started(NameServer(self.context(name), NamesrvConfig(profile=self.profile), listen=address))
        for name, address in self.brokers.items():
            config = BrokerConfig(broker_name=name, namesrv_addr=self.addresses, profile=self.profile)
            await self._started(Broker(self.context(name), config, listen=address))
        async with AdminClient(self.context("admin"), self.addresses) as admin:
            for address in self.brokers.values():
                await admin.create_topic(address, "orders", read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        await CLOCK.sleep(1)

    async def _started(self, server: NameServer | Broker) -> None:
        await server.listen()
        await server.start()
        self._nodes.append(server)

    async def stop(self) -> None:
        for node in reversed(self._nodes):
            await node.stop()

    async def producer(self) -> DefaultMQProducer:
        settings = ProducerConfig(namesrv_addr=self.addresses, profile=self.profile)
        producer = DefaultMQProducer(self.context("producer-0"), settings)
        await producer.start()
        self._nodes.append(producer)
        return producer

    async def consumer(self, name: str) -> Consuming:
        context = self.context(name)
        consuming = Consuming(
            self.networks[name],
            self.addresses,
            name=name,
            data_dir=context.data_dir,
            record=_nothing,
            profile=self.profile,
        )
        await consuming.consumer.start()
        self._nodes.append(consuming.consumer)
        return consuming


@asynccontextmanager
async def cluster(data: Path, **shape: Any) -> AsyncIterator[Cluster]:
    """A running cluster; two NameServers and two brokers, profile 4.9, unless told otherwise."""
    running = Cluster(data, **({"name_servers": 2, "brokers": 2, "profile": Profile.V4_9} | shape))
    await running.start()
    try:
        yield running
    finally:
        await running.stop()


async def send(producer: DefaultMQProducer, keys: range) -> None:
    for key in keys:
        await producer.send(Message.create("orders", b"%d" % key, keys=f"k{key}"))


def _nothing(event: str, /, **fields: object) -> None:
    pass
