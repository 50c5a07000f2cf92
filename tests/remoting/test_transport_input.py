"""What comes in that is malformed or in pieces, and the fast path for raw frames."""

import asyncio

import pytest

from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import ConnectionLost
from nemesrv.remoting.frame import FRAME_MAX, decode_frame, encode_frame
from nemesrv.remoting.transport import Connection
from tests.remoting.transport_world import ADDRESS, World, frame, request, settle, warnings

# -- bad input

MALFORMED = {
    "total 0": bytes(4),
    "negative total": b"\xff\xff\xff\xff",
    "too long": (FRAME_MAX - 3).to_bytes(4, "big"),
    "an HTTP request": b"GET /topics HTTP/1.1\r\nHost: x\r\n\r\n",
    "serialize type 7": bytes.fromhex("00000008 07000004 7b7d7b7d"),
    "header beyond its frame": bytes.fromhex("00000008 00000009 7b7d7b7d"),
    "no header": bytes.fromhex("00000004 00000000"),
    "no JSON": bytes.fromhex("00000008 00000004") + b"{{{{",
    "a JSON array": bytes.fromhex("00000006 00000002") + b"[]",
    "a cut binary header": bytes.fromhex("00000008 01000004 00690301"),
    "a whole frame, then a bad one": frame(5) + bytes(4),
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED.keys())
@pytest.mark.parametrize("fast", [False, True], ids=["", "with a fast path"])
async def test_a_malformed_frame_closes_its_channel_and_nothing_else_with_one_log_line(
    data: bytes, fast: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with World(fast_path=(lambda raw, connection: None) if fast else None) as world:
        client = world.client()
        call = asyncio.create_task(client.invoke(ADDRESS, request(s=1)))
        bare = await world.socket()
        bad = world.opened[-1]
        bare.transport.write(data)
        await settle(world)
        assert bare.closed
        assert [(channel, reason) for channel, reason, _ in world.closed] == [(bad.id, "closed")]
        (line,) = warnings(caplog)
        assert "malformed frame" in line
        assert [command.opaque for command in bare.commands] == ([5] if data.startswith(frame(5)) else [])
        assert (await call).code == 0
        assert client.is_active(ADDRESS)


async def test_a_malformed_answer_closes_the_client_s_channel(world: World) -> None:
    client = world.client()
    call = asyncio.create_task(client.invoke(ADDRESS, request(never=1)))
    await settle(world)
    server_side = world.network.transports[1]
    server_side.write(bytes(4))
    with pytest.raises(ConnectionLost):
        await call
    assert world.clock.monotonic_s() < 1


async def test_an_answer_that_nobody_asked_for_is_dropped(caplog: pytest.LogCaptureFixture, world: World) -> None:
    bare = await world.socket()
    bare.transport.write(encode_frame(RemotingCommand.response()) + frame(9))
    await settle(world)
    assert len(warnings(caplog)) == 1
    assert [command.opaque for command in bare.commands] == [9]


# -- the fast path, and several frames at once


async def test_the_fast_path_answers_raw_frames_and_leaves_the_rest_to_the_handler() -> None:
    def fast(raw: bytes, connection: Connection) -> bytes | None:
        seen.append((raw, connection.id))
        if b"quick" not in raw:
            return None
        command = decode_frame(raw)
        response = RemotingCommand.response(remark="quick")
        response.opaque = command.opaque
        return encode_frame(response)

    seen: list[tuple[bytes, int]] = []
    async with World(fast_path=fast) as world:
        client = world.client()
        assert (await client.invoke(ADDRESS, request(topic="quick"))).remark == "quick"
        assert (await client.invoke(ADDRESS, request(topic="other"))).remark == "echo"
        assert [command.ext_fields for command in world.requests] == [{"topic": "other"}]
        assert [(raw[:4], channel) for raw, channel in seen] == [(raw[:4], 1) for raw, _ in seen]
        bare = await world.socket()
        bare.transport.write(frame(1, t="quick") + frame(2) + frame(3, t="quick"))
        await settle(world)
        assert [(command.opaque, command.remark) for command in bare.commands] == [
            (1, "quick"),
            (2, "echo"),
            (3, "quick"),
        ]
        assert len(bare.chunks) == 1
        for _ in range(3):
            await world.clock.sleep(100)
            bare.transport.write(frame(t="quick"))
        assert not bare.closed


async def test_a_failing_fast_path_leaves_its_frame_to_the_handler(caplog: pytest.LogCaptureFixture) -> None:
    def fast(raw: bytes, connection: Connection) -> bytes | None:
        raise LookupError("a defect")

    async with World(fast_path=fast) as world:
        assert (await world.client().invoke(ADDRESS, request())).remark == "echo"
        assert len(warnings(caplog)) == 1


async def test_answers_to_one_read_are_written_at_once(world: World) -> None:
    bare = await world.socket()
    bare.transport.write(b"".join(frame(number) for number in range(20)))
    await settle(world)
    assert [command.opaque for command in bare.commands] == list(range(20))
    assert len(bare.chunks) == 1


async def test_a_frame_that_comes_byte_by_byte_is_served(world: World) -> None:
    bare = await world.socket()
    for byte in frame(4):
        bare.transport.write(bytes([byte]))
    await settle(world)
    assert [command.opaque for command in bare.commands] == [4]
