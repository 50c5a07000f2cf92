"""Admin calls at a small broker; what is asked of NameServers: tests/chaos/commands/test_admin.py."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from nemesrv.clients.admin import AdminClient
from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import ClientError, RemoteProtocolError, ResponseError
from nemesrv.remoting.headers.broker import PullMessageRequestHeader
from nemesrv.remoting.message import StoredMessage

from . import fakes


class World(fakes.World):
    """One broker, and who asks it."""

    def __init__(self) -> None:
        super().__init__()
        self.a = fakes.FakeBroker(self, "broker-a")

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[AdminClient]:
        await self.a.listen()
        async with AdminClient(self.context("admin"), ()) as admin:
            yield admin


@pytest.fixture
def world() -> World:
    return World()


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


async def test_a_broker_tells_its_members(world: World) -> None:
    answer = RemotingCommand.response(body=b'{"consumerIdList":["b","a"]}')
    world.a.answers[RequestCode.GET_CONSUMER_LIST_BY_GROUP] = lambda _: answer
    async with world.admin() as admin:
        assert await admin.consumer_list(world.a.address, "group") == ["b", "a"]
