"""The transport on a virtual clock and an in-memory network: calls, answers and limits."""

import asyncio
from typing import Any

import pytest

from nemesrv.remoting import connection as connection_module
from nemesrv.remoting.codes import LanguageCode, SerializeType
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import LocalProtocolError, TooManyRequests
from nemesrv.remoting.frame import FRAME_MAX, encode_frame
from nemesrv.remoting.transport import Connection
from tests.remoting.transport_world import ADDRESS, World, frame, request, settle, warnings

# -- calls


@pytest.mark.parametrize("serialize_type", SerializeType)
async def test_a_call_is_answered_in_its_own_header_type(serialize_type: SerializeType, world: World) -> None:
    command = request(b"hello", topic="T")
    command.serialize_type = serialize_type
    response = await world.client().invoke(ADDRESS, command)
    assert response == RemotingCommand(
        0, LanguageCode.JAVA, 409, 0, 1, "echo", {"topic": "T"}, b"hello", serialize_type
    )


async def test_answers_find_their_calls_in_any_order(world: World) -> None:
    client = world.client()
    delays = [2, 0.5, 1, 0.1, 1.5]
    answers = await asyncio.gather(*(client.invoke(ADDRESS, request(s=delay)) for delay in delays))
    assert [answer.ext_fields for answer in answers] == [{"s": str(delay)} for delay in delays]
    assert sorted(answer.opaque for answer in answers) == [0, 1, 2, 3, 4]
    assert world.network.dials == [ADDRESS]


async def test_a_request_that_names_no_version_carries_its_client_s(world: World) -> None:
    client = world.client(language=LanguageCode.JAVA, version=409)
    await client.invoke(ADDRESS, request())
    await client.invoke(ADDRESS, RemotingCommand.request(105, version=317, language=LanguageCode.GO))
    await world.client().invoke(ADDRESS, request())
    assert [(command.language, command.version) for command in world.requests] == [
        (LanguageCode.JAVA, 409),
        (LanguageCode.GO, 317),
        (LanguageCode.PYTHON, 477),
    ]


async def test_a_oneway_is_never_answered_not_even_when_it_fails(world: World) -> None:
    client = world.client()
    await client.oneway(ADDRESS, request())
    await client.oneway(ADDRESS, request(fail="x"))
    await client.oneway(ADDRESS, request(s=1, fail_later=1))
    await world.clock.sleep(2)
    assert all(command.is_oneway for command in world.requests)
    assert len(world.requests) == 3
    bare = await world.socket()
    command = request()
    command.flag = 2
    bare.transport.write(encode_frame(command))
    await settle(world)
    assert bare.chunks == []


@pytest.mark.parametrize(
    ("fields", "remark"), [({"fail": "x"}, "KeyError: 'x'"), ({"s": 1, "fail_later": 1}, "ValueError: too late")]
)
async def test_a_handler_s_exception_is_code_1_with_its_text(
    fields: dict[str, object], remark: str, caplog: pytest.LogCaptureFixture, world: World
) -> None:
    response = await world.client().invoke(ADDRESS, request(**fields))
    assert (response.code, response.remark) == (1, remark)
    assert len(warnings(caplog)) == 1


async def test_a_response_too_long_for_a_frame_is_code_1(caplog: pytest.LogCaptureFixture) -> None:
    async with World(handler=lambda connection, command: RemotingCommand.response(body=bytes(FRAME_MAX))) as world:
        response = await world.client().invoke(ADDRESS, request())
        assert response.code == 1
        assert "exceeds 16777216 B" in str(response.remark)


async def test_a_request_that_cannot_be_written_fails_alone(world: World) -> None:
    client = world.client()
    with pytest.raises(LocalProtocolError):
        await client.invoke(ADDRESS, request(bytes(FRAME_MAX)))
    assert (await client.invoke(ADDRESS, request())).code == 0


async def test_a_server_asks_its_client_on_the_client_s_own_channel(world: World) -> None:
    asked: list[RemotingCommand] = []

    async def answer(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        asked.append(command)
        return RemotingCommand.response(remark="from the client")

    client = world.client(handler=answer)
    await client.invoke(ADDRESS, request())
    response = await world.opened[0].invoke(RemotingCommand.request(307), timeout_s=1)
    assert response.remark == "from the client"
    world.opened[0].send(RemotingCommand.request(40, oneway=True))
    await settle(world)
    assert [(command.code, command.language, command.version) for command in asked] == [
        (307, LanguageCode.JAVA, 409),
        (40, LanguageCode.JAVA, 409),
    ]


async def test_a_client_without_a_handler_says_that_it_supports_nothing(world: World) -> None:
    await world.client().invoke(ADDRESS, request())
    response = await world.opened[0].invoke(RemotingCommand.request(220), timeout_s=1)
    assert (response.code, response.remark) == (3, " request type 220 not supported")


# -- limits


async def test_a_peer_with_too_many_requests_is_read_no_more(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    monkeypatch.setattr(connection_module, "MAX_SERVED", 10)
    bare = await world.socket()
    server_side: Any = world.network.transports[1]
    reading: list[str] = []
    server_side.pause_reading = lambda: reading.append("paused")
    server_side.resume_reading = lambda: reading.append("resumed")
    bare.transport.write(b"".join(frame(number, s=1) for number in range(15)))
    await world.clock.sleep(0.5)
    assert reading == ["paused"]
    await world.clock.sleep(1)
    assert reading == ["paused", "resumed"]
    assert len(bare.commands) == 15


async def test_calls_in_flight_are_bounded(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    monkeypatch.setattr(connection_module, "MAX_IN_FLIGHT", 2)
    client = world.client()
    calls = [client.invoke(ADDRESS, request(s=1)) for _ in range(3)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(result, TooManyRequests) for result in results) == 1
    assert (await client.invoke(ADDRESS, request())).code == 0
