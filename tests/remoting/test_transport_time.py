"""Time-outs of the transport: of calls, of connecting, of both together; late and unasked answers."""

import asyncio

import pytest

from nemesrv.remoting import connection as connection_module
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import ConnectError, RequestTimeout, TooManyRequests
from tests.remoting.transport_world import ADDRESS, SlowNetwork, World, request, settle, warnings


async def test_a_call_without_answer_closes_its_channel(caplog: pytest.LogCaptureFixture, world: World) -> None:
    client = world.client()
    with pytest.raises(RequestTimeout, match=r"127.0.0.1:9876> timeout, 3000\(ms\)"):
        await client.invoke(ADDRESS, request(never=1))
    assert world.clock.monotonic_s() == pytest.approx(3)
    assert not client.is_active(ADDRESS)
    await settle(world)
    assert world.closed == [(1, "closed", 3.0)]
    assert world.events == [("open", ADDRESS, "connected"), ("close", ADDRESS, "closed by self")]
    assert (await client.invoke(ADDRESS, request())).code == 0


async def test_each_wait_that_runs_out_is_told_with_how_long_it_was(world: World) -> None:
    waits: list[tuple[int | None, float]] = []
    client = world.client(on_timed_out=lambda address, code, waited_s: waits.append((code, round(waited_s, 3))))
    with pytest.raises(RequestTimeout):
        await client.invoke(ADDRESS, request(never=1), timeout_s=2)
    assert (await client.invoke(ADDRESS, request())).code == 0
    slow = SlowNetwork()
    slow.delay_s = 10
    client.network = slow
    client.close_channel(ADDRESS)
    with pytest.raises(ConnectError):
        await client.connect(ADDRESS)
    assert waits == [(request().code, 2.0), (None, 3.0)]


@pytest.mark.parametrize("how", ["client", "call"])
async def test_a_late_answer_is_dropped_with_one_log_line(
    how: str, caplog: pytest.LogCaptureFixture, world: World
) -> None:
    client = world.client(close_on_timeout=how != "client")
    with pytest.raises(RequestTimeout):
        await client.invoke(ADDRESS, request(s=2), timeout_s=1, close_on_timeout=False if how == "call" else None)
    assert client.is_active(ADDRESS)
    await world.clock.sleep(5)
    assert client.is_active(ADDRESS)
    (line,) = warnings(caplog)
    assert "response to opaque 0 dropped" in line


async def test_an_answer_that_nothing_asked_for_is_told_and_a_late_one_is_not(world: World) -> None:
    client = world.client(close_on_timeout=False)
    with pytest.raises(RequestTimeout):
        await client.invoke(ADDRESS, request(s=2), timeout_s=1)
    await client.invoke(ADDRESS, request())
    await world.clock.sleep(5)
    assert [event for event, _, _ in world.events] == ["open"]
    (server_side,) = world.opened
    answer = RemotingCommand.response(remark="twice")
    answer.opaque = 1
    for _ in range(2):
        server_side.send(answer)
    await world.clock.sleep(1)
    assert world.events[1:] == [("unasked", ADDRESS, "code 0, opaque 1")] * 2


async def test_of_calls_that_were_given_up_a_channel_remembers_the_newest_only(world: World) -> None:
    client = world.client(close_on_timeout=False)
    connection = await client.connect(ADDRESS)
    for opaque in range(connection_module.MAX_GIVEN_UP + 5):
        connection._give_up(opaque)
    assert connection._given_up is not None
    assert len(connection._given_up) == connection_module.MAX_GIVEN_UP
    assert next(iter(connection._given_up)) == 5


@pytest.mark.parametrize(("version", "stays"), [(409, False), (477, True), (None, True)])
async def test_from_5_1_4_on_a_wait_cut_short_by_connecting_keeps_the_channel(version: int | None, stays: bool) -> None:
    async with World(network=SlowNetwork()) as world:
        client = world.client(version=version)
        with pytest.raises(RequestTimeout):
            await client.invoke(ADDRESS, request(never=1), timeout_s=1.05)
        assert client.is_active(ADDRESS) is stays
        with pytest.raises((RequestTimeout, TooManyRequests)):
            await client.invoke(ADDRESS, request(never=1), timeout_s=0.05)
        assert not client.is_active(ADDRESS)  # nothing had cut that wait short: it had all of its time


async def test_a_call_s_time_covers_connecting_and_waiting() -> None:
    async with World(network=SlowNetwork()) as world:
        with pytest.raises(RequestTimeout):
            await world.client().invoke(ADDRESS, request(s=1.7), timeout_s=2.5)
        assert world.clock.monotonic_s() == pytest.approx(2.5)


async def test_a_call_whose_time_goes_into_connecting_was_certainly_not_sent() -> None:
    async with World(network=SlowNetwork()) as world:
        client = world.client()
        with pytest.raises(TooManyRequests) as caught:
            await client.invoke(ADDRESS, request(), timeout_s=0.4)
        assert caught.value.definite
        assert world.clock.monotonic_s() == pytest.approx(0.4)
        assert world.requests == []
        await world.clock.sleep(1)
        assert client.is_active(ADDRESS)  # the attempt went on for whoever comes next


async def test_connecting_gives_up_after_three_seconds_for_everyone_who_waits() -> None:
    class Deaf(SlowNetwork):
        delay_s = 60.0

    async with World(network=Deaf()) as world:
        client = world.client()
        results = await asyncio.gather(
            *(client.invoke(ADDRESS, request(), timeout_s=time_s) for time_s in (3, 10, 30)), return_exceptions=True
        )
        assert [type(result) for result in results] == [ConnectError] * 3
        assert world.clock.monotonic_s() == pytest.approx(3)
        text = "connect to 127.0.0.1:9876 failed: no answer in 3 s"
        assert world.events == [("connect_failed", ADDRESS, text)]


async def test_a_refused_connect_is_an_error_at_once_and_a_new_dial_next_time(world: World) -> None:
    client = world.client()
    world.network.refuse(ADDRESS)
    with pytest.raises(ConnectError, match="refused") as caught:
        await client.invoke(ADDRESS, request())
    assert caught.value.definite
    world.network.refused.clear()
    assert (await client.invoke(ADDRESS, request())).code == 0
    assert world.network.dials == [ADDRESS, ADDRESS]
    assert [event for event, _, _ in world.events] == ["connect_failed", "open"]


async def test_a_caller_that_gives_up_leaves_the_attempt_to_the_others() -> None:
    async with World(network=SlowNetwork()) as world:
        client = world.client()
        first = asyncio.create_task(client.invoke(ADDRESS, request()))
        second = asyncio.create_task(client.invoke(ADDRESS, request()))
        await world.clock.sleep(0.5)
        first.cancel()
        assert (await second).code == 0
        assert first.cancelled()
        assert world.network.dials == [ADDRESS]


async def test_a_cancelled_call_is_forgotten(caplog: pytest.LogCaptureFixture, world: World) -> None:
    client = world.client()
    call = asyncio.create_task(client.invoke(ADDRESS, request(s=1)))
    await world.clock.sleep(0.5)
    call.cancel()
    await world.clock.sleep(1)
    assert "opaque 0 dropped" in warnings(caplog)[0]
    assert client.is_active(ADDRESS)
