"""The transport on a virtual clock and an in-memory network: calls, answers, time-outs, closings and limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from nemesrv.remoting import connection as connection_module
from nemesrv.remoting.codes import LanguageCode, SerializeType
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import (
    ConnectError,
    ConnectionLost,
    LocalProtocolError,
    RequestTimeout,
    TooManyRequests,
)
from nemesrv.remoting.frame import FRAME_MAX, FrameReader, decode_frame, encode_frame
from nemesrv.remoting.network import Address, Listener, ProtocolFactory
from nemesrv.remoting.transport import Connection, RemotingClient, RemotingServer
from tests.virtual import MemoryNetwork, VirtualClock, run

ADDRESS = Address("127.0.0.1", 9876)
LOG = logging.getLogger("nemesrv.test")


class World:
    """A server that echoes its request's ext fields, and what happened there; clients and bare sockets to it."""

    def __init__(self, network: MemoryNetwork | None = None, **server_options: Any) -> None:
        self.clock = VirtualClock()
        self.network = network or MemoryNetwork()
        self.closed: list[tuple[int, str, float]] = []
        self.opened: list[Connection] = []
        self.events: list[tuple[str, Address, str]] = []
        self.requests: list[RemotingCommand] = []
        options = {"handler": self.handle, **server_options}
        self.server = RemotingServer(
            clock=self.clock,
            network=self.network,
            on_open=self.opened.append,
            on_close=lambda connection, reason: self.closed.append(
                (connection.id, reason, round(self.clock.monotonic_s(), 3))
            ),
            log=LOG,
            **options,
        )

    def handle(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand | Awaitable[RemotingCommand | None] | None:
        """`s`: answer after so many seconds. `fail`: fail. `never`: no answer."""
        self.requests.append(request)
        fields = request.ext_fields or {}
        if "fail" in fields:
            raise KeyError(fields["fail"])
        if "never" in fields:
            return None
        response = RemotingCommand.response(remark="echo", header=fields, body=request.body)
        return self.later(response, fields) if "s" in fields else response

    async def later(self, response: RemotingCommand, fields: dict[str, str]) -> RemotingCommand:
        await self.clock.sleep(float(fields["s"]))
        if "fail_later" in fields:
            raise ValueError("too late")
        return response

    def client(self, **options: Any) -> RemotingClient:
        return RemotingClient(
            clock=self.clock,
            network=self.network,
            log=LOG,
            on_event=lambda event, address, reason: self.events.append((event, address, reason)),
            **options,
        )

    async def socket(self) -> BareSocket:
        protocol = await self.network.connect(ADDRESS, BareSocket)
        assert isinstance(protocol, BareSocket)
        return protocol


class BareSocket(asyncio.Protocol):
    """A peer that writes any bytes it likes."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.closed = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.chunks.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True

    @property
    def commands(self) -> list[RemotingCommand]:
        return list(map(decode_frame, FrameReader().feed(b"".join(self.chunks))))


def in_world(body: Callable[[World], Awaitable[None]], **server_options: Any) -> None:
    async def main() -> None:
        world = World(**server_options)
        await world.server.listen(ADDRESS)
        await body(world)

    run(main)


def request(body: bytes = b"", /, **fields: object) -> RemotingCommand:
    return RemotingCommand.request(105, {key: str(value) for key, value in fields.items()}, body)


def frame(opaque: int = 0, /, **fields: object) -> bytes:
    command = request(**fields)
    command.opaque = opaque
    return encode_frame(command)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def settle(world: World) -> None:
    """Let everything that is under way without a timer happen."""
    await world.clock.sleep(0.001)


# --- calls ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("serialize_type", SerializeType)
def test_a_call_is_answered_in_its_own_header_type(serialize_type: SerializeType) -> None:
    async def body(world: World) -> None:
        command = request(b"hello", topic="T")
        command.serialize_type = serialize_type
        response = await world.client().invoke(ADDRESS, command)
        assert response == RemotingCommand(
            0, LanguageCode.JAVA, 409, 0, 1, "echo", {"topic": "T"}, b"hello", serialize_type
        )

    in_world(body)


def test_answers_find_their_calls_in_any_order() -> None:
    async def body(world: World) -> None:
        client = world.client()
        delays = [2, 0.5, 1, 0.1, 1.5]
        answers = await asyncio.gather(*(client.invoke(ADDRESS, request(s=delay)) for delay in delays))
        assert [answer.ext_fields for answer in answers] == [{"s": str(delay)} for delay in delays]
        assert sorted(answer.opaque for answer in answers) == [0, 1, 2, 3, 4]
        assert world.network.dials == [ADDRESS]

    in_world(body)


def test_any_response_code_is_returned_and_not_raised() -> None:
    async def body(world: World) -> None:
        response = await world.client().invoke(ADDRESS, request())
        assert (response.code, response.remark) == (17, "no")

    in_world(body, handler=lambda connection, command: RemotingCommand.response(17, "no"))


def test_a_request_that_names_no_version_carries_its_client_s() -> None:
    async def body(world: World) -> None:
        client = world.client(language=LanguageCode.JAVA, version=409)
        await client.invoke(ADDRESS, request())
        await client.invoke(ADDRESS, RemotingCommand.request(105, version=317, language=LanguageCode.GO))
        await world.client().invoke(ADDRESS, request())
        assert [(command.language, command.version) for command in world.requests] == [
            (LanguageCode.JAVA, 409),
            (LanguageCode.GO, 317),
            (LanguageCode.PYTHON, 477),
        ]

    in_world(body)


def test_a_oneway_is_never_answered_not_even_when_it_fails() -> None:
    async def body(world: World) -> None:
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

    in_world(body)


@pytest.mark.parametrize(
    ("fields", "remark"), [({"fail": "x"}, "KeyError: 'x'"), ({"s": 1, "fail_later": 1}, "ValueError: too late")]
)
def test_a_handler_s_exception_is_code_1_with_its_text(
    fields: dict[str, object], remark: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(world: World) -> None:
        response = await world.client().invoke(ADDRESS, request(**fields))
        assert (response.code, response.remark) == (1, remark)
        assert len(warnings(caplog)) == 1

    in_world(body)


def test_a_response_too_long_for_a_frame_is_code_1(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: World) -> None:
        response = await world.client().invoke(ADDRESS, request())
        assert response.code == 1
        assert "exceeds 16777216 B" in str(response.remark)

    in_world(body, handler=lambda connection, command: RemotingCommand.response(body=bytes(FRAME_MAX)))


def test_a_request_that_cannot_be_written_fails_alone() -> None:
    async def body(world: World) -> None:
        client = world.client()
        with pytest.raises(LocalProtocolError):
            await client.invoke(ADDRESS, request(bytes(FRAME_MAX)))
        assert (await client.invoke(ADDRESS, request())).code == 0

    in_world(body)


def test_a_server_asks_its_client_on_the_client_s_own_channel() -> None:
    async def body(world: World) -> None:
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

    in_world(body)


def test_a_client_without_a_handler_says_that_it_supports_nothing() -> None:
    async def body(world: World) -> None:
        await world.client().invoke(ADDRESS, request())
        response = await world.opened[0].invoke(RemotingCommand.request(220), timeout_s=1)
        assert (response.code, response.remark) == (3, " request type 220 not supported")

    in_world(body)


# --- time -------------------------------------------------------------------------------------------------------------


def test_a_call_without_answer_times_out_and_closes_its_channel(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: World) -> None:
        client = world.client()
        with pytest.raises(RequestTimeout, match=r"127.0.0.1:9876> timeout, 3000\(ms\)"):
            await client.invoke(ADDRESS, request(never=1))
        assert world.clock.monotonic_s() == pytest.approx(3)
        assert not client.is_active(ADDRESS)
        await settle(world)
        assert world.closed == [(1, "closed", 3.0)]
        assert world.events == [("open", ADDRESS, "connected"), ("close", ADDRESS, "closed")]
        assert (await client.invoke(ADDRESS, request())).code == 0

    in_world(body)


@pytest.mark.parametrize("how", ["client", "call"])
def test_a_late_answer_is_dropped_with_one_log_line(how: str, caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: World) -> None:
        client = world.client(close_on_timeout=how != "client")
        with pytest.raises(RequestTimeout):
            await client.invoke(ADDRESS, request(s=2), timeout_s=1, close_on_timeout=False if how == "call" else None)
        assert client.is_active(ADDRESS)
        await world.clock.sleep(5)
        assert client.is_active(ADDRESS)
        (line,) = warnings(caplog)
        assert "response to opaque 0 dropped" in line

    in_world(body)


def test_an_answer_that_nothing_asked_for_is_told_and_a_late_one_is_not() -> None:
    async def body(world: World) -> None:
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

    in_world(body)


def test_of_calls_that_were_given_up_a_channel_remembers_the_newest_only() -> None:
    async def body(world: World) -> None:
        client = world.client(close_on_timeout=False)
        connection = await client.connect(ADDRESS)
        for opaque in range(connection_module.MAX_GIVEN_UP + 5):
            connection._give_up(opaque)
        assert connection._given_up is not None
        assert len(connection._given_up) == connection_module.MAX_GIVEN_UP
        assert next(iter(connection._given_up)) == 5

    in_world(body)


class SlowNetwork(MemoryNetwork):
    """Connecting takes `delay_s`."""

    delay_s = 1.0

    async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        await VirtualClock().sleep(self.delay_s)
        return await super().connect(address, factory)


@pytest.mark.parametrize(("version", "stays"), [(409, False), (477, True), (None, True)])
def test_from_5_1_4_on_a_wait_cut_short_by_connecting_keeps_the_channel(version: int | None, stays: bool) -> None:
    async def body(world: World) -> None:
        client = world.client(version=version)
        with pytest.raises(RequestTimeout):
            await client.invoke(ADDRESS, request(never=1), timeout_s=1.05)
        assert client.is_active(ADDRESS) is stays
        with pytest.raises((RequestTimeout, TooManyRequests)):
            await client.invoke(ADDRESS, request(never=1), timeout_s=0.05)
        assert not client.is_active(ADDRESS)  # nothing had cut that wait short: it had all of its time

    in_world(body, network=SlowNetwork())


def test_a_call_s_time_covers_connecting_and_waiting() -> None:
    async def body(world: World) -> None:
        with pytest.raises(RequestTimeout):
            await world.client().invoke(ADDRESS, request(s=1.7), timeout_s=2.5)
        assert world.clock.monotonic_s() == pytest.approx(2.5)

    in_world(body, network=SlowNetwork())


def test_a_call_whose_time_goes_into_connecting_was_certainly_not_sent() -> None:
    async def body(world: World) -> None:
        client = world.client()
        with pytest.raises(TooManyRequests) as caught:
            await client.invoke(ADDRESS, request(), timeout_s=0.4)
        assert caught.value.definite
        assert world.clock.monotonic_s() == pytest.approx(0.4)
        assert world.requests == []
        await world.clock.sleep(1)
        assert client.is_active(ADDRESS)  # the attempt went on for whoever comes next

    in_world(body, network=SlowNetwork())


def test_connecting_gives_up_after_three_seconds_for_everyone_who_waits() -> None:
    class Deaf(SlowNetwork):
        delay_s = 60.0

    async def body(world: World) -> None:
        client = world.client()
        results = await asyncio.gather(
            *(client.invoke(ADDRESS, request(), timeout_s=time_s) for time_s in (3, 10, 30)), return_exceptions=True
        )
        assert [type(result) for result in results] == [ConnectError] * 3
        assert world.clock.monotonic_s() == pytest.approx(3)
        text = "connect to 127.0.0.1:9876 failed: no answer in 3 s"
        assert world.events == [("connect_failed", ADDRESS, text)]

    in_world(body, network=Deaf())


def test_a_refused_connect_is_an_error_at_once_and_a_new_dial_next_time() -> None:
    async def body(world: World) -> None:
        client = world.client()
        world.network.refuse(ADDRESS)
        with pytest.raises(ConnectError, match="refused") as caught:
            await client.invoke(ADDRESS, request())
        assert caught.value.definite
        world.network.refused.clear()
        assert (await client.invoke(ADDRESS, request())).code == 0
        assert world.network.dials == [ADDRESS, ADDRESS]
        assert [event for event, _, _ in world.events] == ["connect_failed", "open"]

    in_world(body)


def test_a_caller_that_gives_up_leaves_the_attempt_to_the_others() -> None:
    async def body(world: World) -> None:
        client = world.client()
        first = asyncio.create_task(client.invoke(ADDRESS, request()))
        second = asyncio.create_task(client.invoke(ADDRESS, request()))
        await world.clock.sleep(0.5)
        first.cancel()
        assert (await second).code == 0
        assert first.cancelled()
        assert world.network.dials == [ADDRESS]

    in_world(body, network=SlowNetwork())


def test_a_cancelled_call_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: World) -> None:
        client = world.client()
        call = asyncio.create_task(client.invoke(ADDRESS, request(s=1)))
        await world.clock.sleep(0.5)
        call.cancel()
        await world.clock.sleep(1)
        assert "opaque 0 dropped" in warnings(caplog)[0]
        assert client.is_active(ADDRESS)

    in_world(body)


# --- closing ----------------------------------------------------------------------------------------------------------


def test_calls_in_flight_fail_at_once_when_their_channel_closes() -> None:
    async def body(world: World) -> None:
        client = world.client()
        calls = [asyncio.create_task(client.invoke(ADDRESS, request(never=1), timeout_s=60)) for _ in range(3)]
        await world.clock.sleep(1)
        world.opened[0].close()
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(result) for result in results] == [ConnectionLost] * 3
        assert world.clock.monotonic_s() == pytest.approx(1)

    in_world(body)


def test_closing_a_channel_by_its_address_fails_its_calls() -> None:
    async def body(world: World) -> None:
        client = world.client()
        client.close_channel(ADDRESS)  # there is none yet
        call = asyncio.create_task(client.invoke(ADDRESS, request(never=1)))
        await settle(world)
        assert client.is_active(ADDRESS)
        client.close_channel(ADDRESS)
        assert not client.is_active(ADDRESS)
        with pytest.raises(ConnectionLost):
            await call

    in_world(body)


def test_nothing_can_be_sent_on_a_closed_channel() -> None:
    async def body(world: World) -> None:
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
        assert list(world.server.connections) == []
        assert len(world.closed) == 1

    in_world(body)


def test_an_answer_that_comes_after_its_channel_closed_goes_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: World) -> None:
        bare = await world.socket()
        bare.transport.write(frame(s=1))
        await settle(world)
        bare.transport.close()
        await world.clock.sleep(2)
        assert warnings(caplog) == []
        assert world.closed == [(1, "closed", 0.001)]

    in_world(body)


@pytest.mark.parametrize(
    ("idle_s", "server_says", "client_says"),
    [(120, "closed", "idle"), (121, "idle", "closed")],
    ids=["client", "server"],
)
def test_a_channel_silent_for_120_s_is_closed_as_idle_by_the_end_that_finds_it_so_first(
    idle_s: float, server_says: str, client_says: str
) -> None:
    async def body(world: World) -> None:
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

    in_world(body, idle_s=120.5)


def test_reading_alone_and_writing_alone_keep_a_channel_open() -> None:
    async def body(world: World) -> None:
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

    in_world(body)


def test_a_closing_server_takes_its_channels_with_it() -> None:
    async def body(world: World) -> None:
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

    in_world(body)


def test_a_closed_client_refuses_calls_and_gives_up_its_attempts() -> None:
    async def body(world: World) -> None:
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

    in_world(body, network=SlowNetwork())


def test_a_client_s_end_closes_its_channels() -> None:
    async def body(world: World) -> None:
        client = world.client()
        await client.invoke(ADDRESS, request())
        await client.close()
        await settle(world)
        assert [reason for _, reason, _ in world.closed] == ["closed"]

    in_world(body)


# --- bad input --------------------------------------------------------------------------------------------------------

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
def test_a_malformed_frame_closes_its_channel_and_nothing_else_with_one_log_line(
    data: bytes, fast: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(world: World) -> None:
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

    in_world(body, fast_path=(lambda raw, connection: None) if fast else None)


def test_a_malformed_answer_closes_the_client_s_channel() -> None:
    async def body(world: World) -> None:
        client = world.client()
        call = asyncio.create_task(client.invoke(ADDRESS, request(never=1)))
        await settle(world)
        server_side = world.network.transports[1]
        server_side.write(bytes(4))
        with pytest.raises(ConnectionLost):
            await call
        assert world.clock.monotonic_s() < 1

    in_world(body)


def test_an_answer_to_a_question_nobody_asked_is_dropped_and_the_channel_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body(world: World) -> None:
        bare = await world.socket()
        bare.transport.write(encode_frame(RemotingCommand.response()) + frame(9))
        await settle(world)
        assert len(warnings(caplog)) == 1
        assert [command.opaque for command in bare.commands] == [9]

    in_world(body)


# --- the fast path, and several frames at once ------------------------------------------------------------------------


def test_the_fast_path_answers_raw_frames_and_leaves_the_rest_to_the_handler() -> None:
    def fast(raw: bytes, connection: Connection) -> bytes | None:
        seen.append((raw, connection.id))
        if b"quick" not in raw:
            return None
        command = decode_frame(raw)
        response = RemotingCommand.response(remark="quick")
        response.opaque = command.opaque
        return encode_frame(response)

    seen: list[tuple[bytes, int]] = []

    async def body(world: World) -> None:
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

    in_world(body, fast_path=fast)


def test_a_failing_fast_path_leaves_its_frame_to_the_handler(caplog: pytest.LogCaptureFixture) -> None:
    def fast(raw: bytes, connection: Connection) -> bytes | None:
        raise LookupError("a defect")

    async def body(world: World) -> None:
        assert (await world.client().invoke(ADDRESS, request())).remark == "echo"
        assert len(warnings(caplog)) == 1

    in_world(body, fast_path=fast)


def test_answers_to_one_read_are_written_at_once() -> None:
    async def body(world: World) -> None:
        bare = await world.socket()
        bare.transport.write(b"".join(frame(number) for number in range(20)))
        await settle(world)
        assert [command.opaque for command in bare.commands] == list(range(20))
        assert len(bare.chunks) == 1

    in_world(body)


def test_a_frame_that_comes_byte_by_byte_is_served() -> None:
    async def body(world: World) -> None:
        bare = await world.socket()
        for byte in frame(4):
            bare.transport.write(bytes([byte]))
        await settle(world)
        assert [command.opaque for command in bare.commands] == [4]

    in_world(body)


# --- limits -----------------------------------------------------------------------------------------------------------


def test_no_more_is_read_from_a_peer_while_too_many_of_its_requests_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_module, "MAX_SERVED", 10)

    async def body(world: World) -> None:
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

    in_world(body)


def test_calls_in_flight_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "MAX_IN_FLIGHT", 2)

    async def body(world: World) -> None:
        client = world.client()
        calls = [client.invoke(ADDRESS, request(s=1)) for _ in range(3)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(isinstance(result, TooManyRequests) for result in results) == 1
        assert (await client.invoke(ADDRESS, request())).code == 0

    in_world(body)


def test_a_port_in_use_is_an_os_error() -> None:
    async def body(world: World) -> None:
        with pytest.raises(OSError, match="in use"):
            await World(world.network).server.listen(ADDRESS)

    in_world(body)


def test_what_the_network_is_asked_for_is_only_connect_and_listen() -> None:
    """A network of two verbs is enough for both ends, which is what lets the same code run on any."""

    class Narrow:
        def __init__(self, inner: MemoryNetwork) -> None:
            self._inner = inner

        async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
            return await self._inner.connect(address, factory)

        async def listen(self, address: Address, factory: ProtocolFactory) -> Listener:
            return await self._inner.listen(address, factory)

    async def main() -> None:
        world = World(network=Narrow(MemoryNetwork()))  # type: ignore[arg-type]
        address = await world.server.listen(Address("127.0.0.1", 0))
        assert address.port != 0
        assert (await world.client().invoke(address, request())).code == 0

    run(main)
