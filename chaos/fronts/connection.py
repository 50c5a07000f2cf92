"""One connection through a front, from a client to a server, and what the front does to each frame.

    client end ──► _upward ────► server end       plain: bytes are passed on as they came, then decoded;
               ◄── _downward ◄──                  frames: each whole frame is passed on, dropped, answered or rewritten

The front never sends half a frame: it finishes a frame that it began to pass on, even if its behaviour changes. Sockets
are asyncio's transports.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from ...remoting.codes import RequestCode, ResponseCode
from ...remoting.errors import ProtocolError
from ...remoting.frame import decode_frame
from .answers import answer_to, readdressed, told, with_body, without
from .decode import ROUTE, Conversation, Stream
from .observed import Asked, By, Closed, How

if TYPE_CHECKING:
    from ...remoting.node.clock import Timer
    from .front import Front

_WITH_ADDRESSES = frozenset((ROUTE, int(RequestCode.GET_BROKER_CLUSTER_INFO), int(RequestCode.GET_BROKER_MEMBER_GROUP)))

_EXCHANGE_BROKER_HA_INFO = 906
_CONTROLLERS = range(1_002, 1_006)
"""Requests about controllers: election, brokers, metadata of the master and of the controller."""
_NAMES_A_MASTER = frozenset((int(RequestCode.REGISTER_BROKER), _EXCHANGE_BROKER_HA_INFO, *_CONTROLLERS))
"""Requests whose answers have addresses in their header."""
HELD_MAX = 1 << 20
"""Bytes that may wait in a front, for their delay or for the server's end, before it stops reading."""


class FrontConnection:
    """One accepted connection. `client` and `server` are the asyncio protocols for the sockets to both peers."""

    def __init__(self, front: Front, number: int) -> None:
        self.client = _End(self, By.CLIENT)
        self.server = _End(self, By.SERVER)
        self.ended = False
        self._front, self._number = front, number
        self._conversation = Conversation(front.name, number)
        self._up, self._down = Stream(), Stream()
        self._is_foreign = False
        self._early: list[bytes] = []  # for the server, whose end is not there yet
        self._begun: asyncio.Future[None] | None = None  # somebody waits for the first of these
        self._between: deque[bytes] = deque()  # answers of the front's own, until the server's frame is whole
        self._delayed: deque[tuple[float, bytes, bytes | None, By]] = deque()
        self._delayed_size = 0
        self._timer: Timer | None = None
        self._server_is_done = False  # its end has come and is kept back: it is swallowed, or answers wait before it
        self._server_is_gone = False

    # --- upward: what the client says ---------------------------------------------------------------------------------

    def of_client(self, data: bytes) -> None:
        front, up = self._front, self._up
        behaviour = front.behaviour
        plain = not (behaviour.swallows or behaviour.codes or front.said)
        if plain and up.unfinished == up.passed:
            self._to_server(data)
            self._look(up, data, self._asked)
            return
        if up.is_broken:
            if not behaviour.swallows:
                self._to_server(data)
            return
        passed, up.passed = up.passed, 0
        frames = up.feed(data)
        for frame in frames:
            if front.said and not passed:
                frame = told(frame, front.said)
            asked = self._asked(frame)
            if passed or not (behaviour.swallows or self._answers(frame, asked)):
                self._to_server(frame[passed:])
            passed = 0
        if up.is_broken:
            if not behaviour.swallows:
                self._to_server(up.rest[passed:])
            self._foreign(up)
        elif not frames:
            up.passed = passed

    def _look(self, stream: Stream, data: bytes, see: Callable[[bytes], object]) -> None:
        for frame in stream.feed(data):
            see(frame)
        stream.passed = stream.unfinished
        if stream.is_broken:
            self._foreign(stream)

    def _asked(self, frame: bytes) -> Asked | None:
        try:
            asked = self._conversation.of_client(frame, self._front.now_ms())
        except ProtocolError:
            self._up.break_off(frame)
            return None
        if asked is not None:
            self._front.see(asked)
        return asked

    def _answers(self, frame: bytes, asked: Asked | None) -> bool:
        """Answer the request itself if the front's behaviour says so. Returns whether it has."""
        if asked is None:
            return False
        code = self._front.behaviour.codes.get(asked.code)
        if code is None or asked.oneway:
            return False
        self._between.append(answer_to(frame, code, asked.fields.get("topic", "")))
        if not self._down.passed:
            self._own_answers()
        return True

    def _to_server(self, data: bytes) -> None:
        if self.server.transport is not None:
            self.server.write(data)
        elif data:
            self._early.append(data)
            self._has_begun()
            if sum(map(len, self._early)) > HELD_MAX:
                self.client.pause()

    async def first_bytes(self) -> bytes:
        """Return the client's first bytes: enough for `front.leads` to choose a server (`tells_by`), or all bytes if
        the client sends no more."""
        while not self.ended and not self.client.is_done and not self._front.tells_by(b"".join(self._early)):
            self._begun = asyncio.get_running_loop().create_future()
            await self._begun
        return b"".join(self._early)

    def _has_begun(self) -> None:
        if self._begun is not None and not self._begun.done():
            self._begun.set_result(None)

    # --- downward: what the server says -------------------------------------------------------------------------------

    def of_server(self, data: bytes) -> None:
        front, down = self._front, self._down
        behaviour = front.behaviour
        changes = behaviour.swallows or behaviour.delay_ms or behaviour.without or front.addresses
        if not (changes or self._delayed or self._between) and down.unfinished == down.passed:
            self.client.write(data)
            self._look(down, data, self._answered)
            return
        if down.is_broken:
            if not behaviour.swallows:
                self._deliver(data, None, By.SERVER)
            return
        passed, down.passed = down.passed, 0
        frames = down.feed(data)
        for frame in frames:
            if passed:
                self._deliver(frame[passed:], frame, By.SERVER)
            elif not behaviour.swallows:
                given = self._rewritten(frame)
                self._deliver(given, given, By.SERVER if given is frame else By.FRONT)
            passed = 0
            self._own_answers()
        if down.is_broken:
            if not behaviour.swallows:
                self._deliver(down.rest[passed:], None, By.SERVER)
            self._foreign(down)
        elif not frames:
            down.passed = passed

    def _rewritten(self, frame: bytes) -> bytes:
        """Return the frame with its route answer changed, if this front changes route answers."""
        front = self._front
        if not (front.behaviour.without or front.addresses):
            return frame
        try:
            command = decode_frame(frame)
            if not command.is_response:
                return frame
            asked, topic = self._conversation.asked_for(command.opaque)
            if asked in _NAMES_A_MASTER:
                return told(frame, front.addresses, answers=True)
            if not command.body:
                return frame
            body: bytes | None = command.body
            if asked == ROUTE and front.behaviour.without:
                body = without(command.body, front.behaviour.without)
            if body is None:
                return answer_to(frame, ResponseCode.TOPIC_NOT_EXIST, topic)
            if asked in _WITH_ADDRESSES:
                body = readdressed(body, front.addresses)
            if body == command.body:
                return frame
            return with_body(frame, body)
        except ProtocolError:
            return frame

    def _own_answers(self) -> None:
        while self._between:
            frame = self._between.popleft()
            self._deliver(frame, frame, By.FRONT)

    def _deliver(self, data: bytes, frame: bytes | None, by: By) -> None:
        """Send to the client, after all that waits and after the delay. Deliver `frame`, which these bytes complete."""
        delay_ms = self._front.behaviour.delay_ms
        if not delay_ms and not self._delayed:
            self._to_client(data, frame, by)
            return
        self._delayed.append((self._front.now_ms() + delay_ms, data, frame, by))
        self._delayed_size += len(data)
        if self._delayed_size > HELD_MAX:
            self.server.pause()
        if self._timer is None:
            self._timer = self._front.clock.call_later(max(delay_ms, 0.0) / 1000.0, self._due)

    def _due(self) -> None:
        self._timer = None
        if self.ended:
            return
        now_ms = self._front.now_ms()
        while self._delayed and self._delayed[0][0] <= now_ms + 0.5:
            _due_ms, data, frame, by = self._delayed.popleft()
            self._delayed_size -= len(data)
            self._to_client(data, frame, by)
        if self._delayed:
            self._timer = self._front.clock.call_later((self._delayed[0][0] - now_ms) / 1000.0, self._due)
        elif self._server_is_done and not self._front.behaviour.swallows:
            self._server_is_done = False
            self.client.write_eof()
        if self._delayed_size <= HELD_MAX:
            self.server.resume()

    def _to_client(self, data: bytes, frame: bytes | None, by: By) -> None:
        self.client.write(data)
        if frame is not None:
            self._answered(frame, by)

    def _answered(self, frame: bytes, by: By = By.SERVER) -> None:
        try:
            self._front.see(self._conversation.of_server(frame, self._front.now_ms(), by))
        except ProtocolError:
            self._down.break_off(frame)

    # --- its ends -----------------------------------------------------------------------------------------------------

    def _foreign(self, broken: Stream) -> None:
        if not self._is_foreign:
            self._is_foreign = True
            self._front.see(self._conversation.foreign(broken.began, self._front.now_ms()))

    def connected(self, end: _End) -> None:
        if self.ended:
            end.abort()
        elif end is self.server:
            early, self._early = self._early, []
            for data in early:
                end.write(data)
            if self.client.is_done:
                end.write_eof()
            self.client.resume()

    def unreachable(self) -> None:
        """Close the connection, because the server refuses or does not exist. A front that swallows requests keeps the
        connection open."""
        self._server_is_gone = True
        if not self._front.behaviour.swallows:
            self.end(By.SERVER, How.FIN)

    def changed(self) -> None:
        """Pass on a server's close that was kept back while the front swallowed requests."""
        if self._front.behaviour.swallows or self.ended:
            return
        if self._server_is_gone:
            self.end(By.SERVER, How.FIN)
        elif self._server_is_done and not self._delayed:
            self._server_is_done = False
            self._closed(By.SERVER, How.FIN)
            self.client.write_eof()

    def eof(self, end: _End) -> None:
        """Pass the end of one peer's stream (FIN) on to the other peer, after all earlier bytes."""
        if end is self.client:
            self._has_begun()
            self._closed(By.CLIENT, How.FIN)
            self.server.write_eof()
        elif self._front.behaviour.swallows:
            self._server_is_done = True
        else:
            self._closed(By.SERVER, How.FIN)
            if self._delayed:
                self._server_is_done = True
            else:
                self.client.write_eof()
        if self.client.is_done and self.server.is_done and not self._delayed and not self._server_is_done:
            self._finish()

    def lost(self, end: _End, reset: bool) -> None:
        """Close the connection to the other peer, after delayed bytes, because the connection to this peer is lost. A
        front that swallows requests keeps the client's connection open when the server's is lost."""
        by = By.CLIENT if end is self.client else By.SERVER
        if end is self.server and self._front.behaviour.swallows and not self.client.is_done:
            self._server_is_gone = True
            return
        if reset:
            self.end(by, How.RST)
        elif end is self.client or not (self._delayed or self._server_is_done):
            self.end(by, How.FIN)

    def end(self, by: By, how: How) -> None:
        """Close the connections to client and server, by FIN or by RST."""
        if self.ended:
            return
        self._closed(by, how)
        self._finish(reset=how is How.RST)

    def _finish(self, reset: bool = False) -> None:
        self.ended = True
        self._has_begun()
        if self._timer is not None:
            self._timer.cancel()
        self._delayed.clear()
        for one in (self.client, self.server):
            one.reset() if reset else one.close()
        self._front.gone(self)

    def _closed(self, by: By, how: How) -> None:
        if not self._is_closed:
            self._is_closed = True
            front = self._front
            front.see(Closed(at_ms=front.now_ms(), front=front.name, connection=self._number, by=by, how=how))

    _is_closed = False


_RESET_AT_CLOSE = b"\x01\x00\x00\x00\x00\x00\x00\x00"
"""With this SO_LINGER the kernel sends RST instead of FIN when the socket closes."""


class _End(asyncio.Protocol):
    def __init__(self, connection: FrontConnection, who: By) -> None:
        self._connection = connection
        self._take = connection.of_client if who is By.CLIENT else connection.of_server
        self.transport: asyncio.Transport | None = None
        self.is_done = False
        """It has said all."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._connection.connected(self)

    def data_received(self, data: bytes) -> None:
        self._take(data)

    def eof_received(self) -> bool:
        self.is_done = True
        self._connection.eof(self)
        return not self._connection.ended

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport, self.is_done = None, True
        if not self._connection.ended:
            self._connection.lost(self, reset=exc is not None)

    @property
    def _other(self) -> _End:
        connection = self._connection
        return connection.server if self is connection.client else connection.client

    def pause_writing(self) -> None:
        self._other.pause()

    def resume_writing(self) -> None:
        self._other.resume()

    def pause(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            with contextlib.suppress(RuntimeError):
                self.transport.pause_reading()

    def resume(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            with contextlib.suppress(RuntimeError):
                self.transport.resume_reading()

    def write(self, data: bytes) -> None:
        if data and self.transport is not None:
            self.transport.write(data)

    def write_eof(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            with contextlib.suppress(OSError, RuntimeError):
                self.transport.write_eof()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def reset(self) -> None:
        """Reset the connection to this peer: the peer gets RST, and unsent bytes are lost."""
        if self.transport is not None:
            taken = self.transport.get_extra_info("socket")
            if taken is not None:
                with contextlib.suppress(OSError):
                    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
            self.transport.abort()
