"""How channels of the transport end: closed by an end, idle, or with their server or client."""

import asyncio

import pytest

from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.connection import LINGER_S, Connection
from nemesrv.remoting.errors import ConnectError, ConnectionLost
from tests.remoting.transport_world import ADDRESS, SlowNetwork, World, frame, request, settle, warnings


async def test_calls_in_flight_fail_at_once_when_their_channel_closes(world: World) -> None:
    client = world.client()
    calls = [asyncio.create_task(client.invoke(ADDRESS, request(never=1), timeout_s=60)) for _ in range(3)]
    await world.clock.sleep(1)
    world.opened[0].close()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(result) for result in results] == [ConnectionLost] * 3
    assert world.clock.monotonic_s() == pytest.approx(1)


async def test_closing_a_channel_by_its_address_is_told_at_once_and_fails_its_calls(world: World) -> None:
    client = world.client()
    client.close_channel(ADDRESS)  # there is none yet
    call = asyncio.create_task(client.invoke(ADDRESS, request(never=1)))
    await settle(world)
    assert client.is_active(ADDRESS)
    client.close_channel(ADDRESS)
    assert not client.is_active(ADDRESS)
    assert world.events[-1] == ("close", ADDRESS, "closed by self")  # before anybody can find it inactive
    with pytest.raises(ConnectionLost):
        await call


async def test_a_client_closes_although_one_of_its_channels_never_says_that_it_is_gone(world: World) -> None:
    class Deaf(asyncio.Transport):
        """What uvloop leaves of a dial that was given up in the moment in which it was let in."""

        def write(self, data: object) -> None: ...
        def close(self) -> None: ...
        def abort(self) -> None: ...
        def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...
        def get_write_buffer_size(self) -> int:
            return 0

        def is_closing(self) -> bool:
            return False

    client = world.client()
    await client.invoke(ADDRESS, request())
    Connection(client).connection_made(Deaf())
    assert len(client.connections) == 2
    await client.close()
    assert not client.connections
    assert world.clock.monotonic_s() == pytest.approx(2 * LINGER_S)


async def test_nothing_can_be_sent_on_a_closed_channel(world: World) -> None:
    await world.client().invoke(ADDRESS, request())
    (connection,) = world.opened
    connection.close()
    connection.close()
    assert connection.closed
    with pytest.raises(ConnectionLost):
        connection.send(RemotingCommand.request(40, oneway=True))
    with pytest.raises(ConnectionLost):
        await connection.invoke(RemotingCommand.request(40), timeout_s=1)
    await settle(world)
    assert not world.server.connections
    assert len(world.closed) == 1


async def test_an_answer_after_its_channel_closed_goes_nowhere(caplog: pytest.LogCaptureFixture, world: World) -> None:
    bare = await world.socket()
    bare.transport.write(frame(s=1))
    await settle(world)
    bare.transport.close()
    await world.clock.sleep(2)
    assert warnings(caplog) == []
    assert world.closed == [(1, "closed", 0.001)]


@pytest.mark.parametrize(
    ("idle_s", "server_says", "client_says"),
    [(120, "closed", "idle by self"), (121, "idle", "closed by peer")],
    ids=["client", "server"],
)
async def test_a_channel_silent_for_120_s_is_closed_as_idle(idle_s: float, server_says: str, client_says: str) -> None:
    async with World(idle_s=120.5) as world:
        client = world.client(idle_s=idle_s)
        await client.invoke(ADDRESS, request())
        await world.clock.sleep(100)
        await client.invoke(ADDRESS, request())
        await world.clock.sleep(119.9)
        assert client.is_active(ADDRESS)
        await world.clock.sleep(0.7)
        assert not client.is_active(ADDRESS)
        assert world.closed == [(1, server_says, 100 + min(idle_s, 120.5))]
        assert world.events[-1] == ("close", ADDRESS, client_says)


async def test_reading_alone_and_writing_alone_keep_a_channel_open(world: World) -> None:
    await world.socket()
    reader, talker = await world.socket(), await world.socket()
    for _ in range(4):
        await world.clock.sleep(50)
        world.opened[1].send(RemotingCommand.request(40, oneway=True))
        talker.transport.write(frame(never=1))
    await settle(world)
    assert world.closed == [(1, "idle", 120.0)]
    assert len(reader.commands) == 4
    await world.clock.sleep(121)
    assert world.closed[1:] == [(2, "idle", 320.0), (3, "idle", 320.0)]


async def test_a_closing_server_takes_its_channels_with_it(world: World) -> None:
    bare = await world.socket()
    client = world.client()
    call = asyncio.create_task(client.invoke(ADDRESS, request(s=60)))
    await settle(world)
    await world.server.close()
    assert [(channel, reason) for channel, reason, _ in world.closed] == [(1, "closed"), (2, "closed")]
    with pytest.raises(ConnectionLost):
        await call
    await settle(world)
    assert bare.closed
    assert world.network.listening == {}
    with pytest.raises(ConnectError):
        await client.invoke(ADDRESS, request())


async def test_a_closed_client_refuses_calls_and_gives_up_its_attempts() -> None:
    async with World(network=SlowNetwork()) as world:
        client = world.client()
        waiting = asyncio.create_task(client.invoke(ADDRESS, request()))
        await world.clock.sleep(0.5)
        await client.close()
        with pytest.raises(ConnectError, match="client is closed"):
            await waiting
        with pytest.raises(ConnectError, match="client is closed"):
            await client.invoke(ADDRESS, request())
        await world.clock.sleep(5)
        assert world.opened == []


async def test_a_client_s_end_closes_its_channels(world: World) -> None:
    client = world.client()
    await client.invoke(ADDRESS, request())
    await client.close()
    await settle(world)
    assert [reason for _, reason, _ in world.closed] == ["closed"]
