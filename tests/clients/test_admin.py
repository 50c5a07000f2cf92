"""Admin calls: a real NameServer in memory for its codes, a small broker for the broker's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.clients.admin import AdminClient
from nemesrv.remoting.bodies.register import RegisterBrokerBody, TopicConfigSerializeWrapper
from nemesrv.remoting.bodies.route import DataVersion, TopicConfig
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import ClientError, RemoteProtocolError, ResponseError, TopicNotExist
from nemesrv.remoting.headers.broker import PullMessageRequestHeader
from nemesrv.remoting.headers.namesrv import RegisterBrokerRequestHeader
from nemesrv.remoting.message import StoredMessage
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.transport import RemotingClient

from . import fakes


class World(fakes.World):
    """Two NameServers, of which the second knows nothing; one broker, registered at the first with topic `orders`."""

    def __init__(self) -> None:
        super().__init__()
        self.a = fakes.FakeBroker(self, "broker-a")
        self.name_servers = [Address("10.0.1.1", 9876), Address("10.0.1.2", 9876)]

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[AdminClient]:
        servers = [
            NameServer(self.context(f"ns-{index}"), NamesrvConfig(), listen=address)
            for index, address in enumerate(self.name_servers)
        ]
        for server in servers:
            await server.listen()
            await server.start()
        await self.a.listen()
        remoting = RemotingClient(clock=self.clock, network=self.network, log=fakes.LOG)
        response = await remoting.invoke(self.name_servers[0], self._registration())
        assert response.code == ResponseCode.SUCCESS, response.remark
        async with AdminClient(self.context("admin"), self.name_servers[:1]) as admin:
            yield admin
        await remoting.close()
        for server in servers:
            await server.stop()

    def _registration(self) -> RemotingCommand:
        topics = (TopicConfig(topic_name="orders", read_queue_nums=2, write_queue_nums=2),)
        header = RegisterBrokerRequestHeader(
            broker_name="broker-a",
            broker_addr=str(self.a.address),
            cluster_name="DefaultCluster",
            ha_server_addr="10.0.0.1:10912",
            broker_id=0,
        )
        wrapper = TopicConfigSerializeWrapper.of(topics, DataVersion(timestamp=1, counter=1))
        body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=())
        return RemotingCommand.request(RequestCode.REGISTER_BROKER, header, body.encode())


@pytest.fixture
def world() -> World:
    return World()


async def test_routes_clusters_and_topics_are_read_from_the_chosen_name_server_or_from_the_one_named(
    world: World,
) -> None:
    async with world.admin() as admin:
        route = await admin.topic_route("orders")
        assert [row.broker_name for row in route.queue_datas] == ["broker-a"]
        assert "orders" in await admin.topic_list()
        assert (await admin.cluster_info()).cluster_addr_table == {"DefaultCluster": ("broker-a",)}
        empty = world.name_servers[1]
        assert "orders" not in await admin.topic_list(name_server=empty)
        with pytest.raises(TopicNotExist):
            await admin.topic_route("orders", name_server=empty)


async def test_an_error_code_is_an_error_with_the_peers_remark(world: World) -> None:
    async with world.admin() as admin:
        with pytest.raises(ResponseError, match="no consumer for this group, nobody"):
            await admin.consumer_list(world.a.address, "nobody")


async def read(admin: AdminClient, world: World, queue_id: int = 0) -> list[StoredMessage]:
    return [message async for message in admin.read_queue("orders", world.a.address, queue_id)]


async def test_a_queue_is_read_whole_and_leaves_no_trace(world: World) -> None:
    world.a.first_offsets["orders", 1] = 7
    async with world.admin() as admin:
        for number in range(100):
            await world.a.append("orders", 0, b"%d" % number)
        await world.a.append("orders", 1)
        assert [message.body for message in await read(admin, world)] == [b"%d" % number for number in range(100)]
        assert [message.queue_offset for message in await read(admin, world, 1)] == [7]
        assert await admin.max_offset(world.a.address, "orders", 0) == 100
        assert await admin.min_offset(world.a.address, "orders", 1) == 7
    assert (world.a.committed, world.a.members) == ({}, {})
    pull = world.a.asked(RequestCode.PULL_MESSAGE)[0]
    header = PullMessageRequestHeader.from_ext_fields(pull.command.ext_fields)
    assert (header.consumer_group, header.sys_flag, header.subscription) == ("TOOLS_CONSUMER", 4, "*")


async def test_reading_ends_where_the_queue_ended_when_it_began(world: World) -> None:
    async with world.admin() as admin:
        await world.a.append("orders")
        offsets = []
        async for message in admin.read_queue("orders", world.a.address, 0):
            offsets.append(message.queue_offset)
            await world.a.append("orders")
        assert offsets == [0]
        assert await read(admin, world, 1) == []


async def test_a_read_that_gets_nowhere_fails_instead_of_being_short(world: World) -> None:
    async with world.admin() as admin:
        await world.a.append("orders")
        world.a.answers[RequestCode.PULL_MESSAGE] = lambda _: world.a.pulled(19, ("orders", 0), 0, [])
        with pytest.raises(ClientError, match="NO_NEW_MESSAGE at offset 0, next 0, though the queue ends at 1"):
            await read(admin, world)


async def test_a_damaged_record_fails_the_read(world: World) -> None:
    def damaged(_: fakes.Request) -> RemotingCommand:
        response = world.a.pulled(0, ("orders", 0), 1, world.a.queues["orders", 0])
        response.body = response.body[:-1]
        return response

    async with world.admin() as admin:
        await world.a.append("orders")
        world.a.answers[RequestCode.PULL_MESSAGE] = damaged
        with pytest.raises(RemoteProtocolError):
            await read(admin, world)


async def test_a_broker_tells_its_members_and_its_runtime_info(world: World) -> None:
    table = b'{"table":{"brokerVersionDesc":"V5_3_3","putTps":"1 2 3"}}'
    world.a.answers[RequestCode.GET_BROKER_RUNTIME_INFO] = lambda _: RemotingCommand.response(body=table)
    world.a.answers[RequestCode.GET_CONSUMER_LIST_BY_GROUP] = lambda _: RemotingCommand.response(
        body=b'{"consumerIdList":["b","a"]}'
    )
    async with world.admin() as admin:
        info = await admin.broker_runtime_info(world.a.address)
        assert info == {"brokerVersionDesc": "V5_3_3", "putTps": "1 2 3"}
        assert await admin.consumer_list(world.a.address, "group") == ["b", "a"]
