"""A cluster in one process on virtual time whose brokers are started one by one, as a test of doctor or watch needs."""

from contextlib import aclosing
from pathlib import Path
from typing import Any, Self

import pytest

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.actors.broker.server import Broker
from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.clients.admin import AdminClient
from nemesrv.clients.consumer.config import ConsumerConfig
from nemesrv.clients.consumer.consumer import DefaultMQPushConsumer
from nemesrv.operations.cluster.answer_causes import causes_of
from nemesrv.operations.cluster.causes import NoRouteCause
from nemesrv.operations.cluster.server_answers import Questions, ServerAnswers
from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.headers.namesrv import UnRegisterBrokerRequestHeader
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile
from tests.in_one_process import CLOCK, Cluster

PROFILES = pytest.mark.parametrize("profile", [Profile.V4_9, Profile.V5_X])


class World:
    """Three NameServers, and what each test starts beside them."""

    def __init__(self, folder: Path, profile: Profile) -> None:
        self.cluster = Cluster(folder, name_servers=3, brokers=0, profile=profile)
        self.profile = profile
        self.servers: dict[str, NameServer | Broker] = {}
        self.consumers: dict[str, DefaultMQPushConsumer] = {}
        self.asked: tuple[Address, ...] = self.cluster.addresses

    async def __aenter__(self) -> Self:
        for number in range(3):
            await self.name_server(number)
        return self

    async def name_server(self, number: int, **settings: Any) -> None:
        name = f"ns-{number}"
        config = NamesrvConfig(profile=self.profile, **settings)
        await self._begin(name, NameServer(self.cluster.context(name), config, listen=self.cluster.name_servers[name]))

    async def broker(self, name: str, at: str, lists: tuple[int, ...] = (0, 1, 2), **settings: Any) -> Address:
        address = Address(at, 10911)
        listed = tuple(self.cluster.addresses[number] for number in lists)
        config = BrokerConfig(**{"broker_name": name, "namesrv_addr": listed, "profile": self.profile, **settings})
        await self._begin(f"{name}@{at}", Broker(self.cluster.context(f"{name}@{at}"), config, listen=address))
        return address

    async def _begin(self, name: str, server: NameServer | Broker) -> None:
        await server.listen()
        await server.start()
        self.servers[name] = server

    async def topic(self, broker: Address, topic: str = "orders", **what: Any) -> None:
        async with AdminClient(self.cluster.context("admin"), self.cluster.addresses) as admin:
            await admin.create_topic(broker, topic, **what)
        await CLOCK.sleep(1)

    async def consumer(self, name: str, lists: tuple[Address, ...], group: str = "readers") -> None:
        """One that knows these NameServers."""
        config = ConsumerConfig(
            namesrv_addr=lists, profile=self.profile, consumer_group=group, subscriptions=(("orders", "*"),)
        )
        consumer = DefaultMQPushConsumer(self.cluster.context(name), config, lambda _: True)
        await consumer.start()
        self.consumers[name] = consumer

    async def leave(self, name: str) -> None:
        await self.consumers.pop(name).stop()

    async def unregister(self, name: str, address: str, *, at: int) -> None:
        header = UnRegisterBrokerRequestHeader(
            broker_name=name, broker_addr=address, cluster_name="DefaultCluster", broker_id=0
        )
        async with AdminClient(self.cluster.context("admin"), self.cluster.addresses) as admin:
            request = RemotingCommand.request(RequestCode.UNREGISTER_BROKER, header)
            await admin.remoting.invoke(self.cluster.addresses[at], request, timeout_s=3.0)
        await CLOCK.sleep(0.1)

    async def see(self, topic: str = "orders", **how: Any) -> ServerAnswers:
        async with aclosing(Questions(self.cluster.context("doctor"), self.asked, timeout_s=3.0)) as reader:
            return await reader.ask(topic, **how)

    async def causes(self, topic: str = "orders", **how: Any) -> list[NoRouteCause]:
        return [cause for cause in causes_of(await self.see(topic, **how)) if not cause.name.startswith("dialect")]

    async def __aexit__(self, *_: object) -> None:
        for node in (*self.consumers.values(), *self.servers.values()):
            await node.stop()
