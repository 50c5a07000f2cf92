"""One channel of a client or server: frames in and out, answers matched to requests, limits for idleness and overload.

An `Endpoint` has the settings that all channels of one server or client share. A channel's bytes are handled in order,
in the event loop's thread.

    bytes -> FrameReader -> fast_path(raw frame) -> raw response                      (no command is made)
                         -> decode -> response: the call that waits for its opaque
                                   -> request:  handler -> response                   (or a task, when it must wait)

Limits keep a peer from using unlimited memory: a channel stores at most one unfinished frame. A channel with more than
MAX_UNSENT bytes that the peer has not read is closed. While MAX_SERVED requests or MAX_SERVED_BYTES of a peer are being
handled, nothing more is read from this peer. Upstream: `NettyRemotingAbstract`, `NettyDecoder`, `IdleStateHandler`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from . import errors
from .codes import FLAG_RESPONSE, LanguageCode, ResponseCode
from .command import DEFAULT_LANGUAGE, DEFAULT_VERSION, RemotingCommand
from .frame import FRAME_MAX, FrameReader, decode_frame, encode_frame
from .node.clock import Clock, Timer
from .node.network import Address
from .witness import Witness

MAX_UNSENT = 2 * FRAME_MAX
MAX_SERVED = 8192
MAX_SERVED_BYTES = 4 * FRAME_MAX
MAX_IN_FLIGHT = 65_535
"""Calls of one endpoint that wait for answers (`clientAsyncSemaphoreValue`)."""
MAX_GIVEN_UP = 1024
"""Calls of one channel whose answers came too late, or never; the oldest are forgotten first."""

GATHERED_FRAMES = 64
GATHERED_FRAME_MAX = 65_536
"""Responses to one read are written at once: so many of them, none longer than this but the last."""

LINGER_S = 3.0
"""How long a closed channel's unsent bytes may keep its socket."""

Handler = Callable[["Connection", RemotingCommand], RemotingCommand | Awaitable[RemotingCommand | None] | None]
FastPath = Callable[[bytes, "Connection"], bytes | None]


@dataclass(kw_only=True, eq=False)
class Endpoint:
    """The settings and callbacks that the channels of one server or client share."""

    clock: Clock
    log: logging.Logger
    handler: Handler | None
    on_open: Callable[[Connection], None] | None = None
    on_close: Callable[[Connection, str], None] | None = None
    on_unasked: Callable[[Connection, RemotingCommand], None] | None = None
    """It gets responses that answer no request of the channel, not even an abandoned request."""
    idle_s: float = 120
    frame_max: int = FRAME_MAX
    fast_path: FastPath | None = None
    witness: Witness | None = None
    language: LanguageCode | None
    version: int | None
    in_flight: int = 0
    at_work: dict[asyncio.Future[RemotingCommand | None], None] = field(init=False, default_factory=dict)
    connections: dict[int, Connection] = field(init=False, default_factory=dict)
    _opaques: Iterator[int] = field(init=False, default_factory=itertools.count)
    _ids: Iterator[int] = field(init=False, default_factory=partial(itertools.count, 1))
    _emptied: asyncio.Event | None = field(init=False, default=None)

    def next_opaque(self) -> int:
        return next(self._opaques) & 0x7FFFFFFF

    def identify(self, command: RemotingCommand) -> None:
        """If a request has the default language or version, set the endpoint's instead."""
        if self.language is not None and command.language == DEFAULT_LANGUAGE:
            command.language = self.language
        if self.version is not None and command.version == DEFAULT_VERSION:
            command.version = self.version

    def opened(self, connection: Connection) -> None:
        connection.id = next(self._ids)
        self.connections[connection.id] = connection
        self.log.debug("channel %s opened", connection)
        if self.on_open is not None:
            self.on_open(connection)

    def shut(self, connection: Connection, reason: str) -> None:
        """Nothing is sent or read on the channel any more; `lost` follows once its socket is closed."""

    def lost(self, connection: Connection, reason: str) -> None:
        if self.connections.pop(connection.id, None) is None:
            return
        self.log.debug("channel %s closed (%s)", connection, reason)
        if self._emptied is not None and not self.connections:
            self._emptied.set()
        if self.witness is not None:
            self.witness.ended(connection, reason)
        if self.on_close is not None:
            self.on_close(connection, reason)

    def unasked(self, connection: Connection, response: RemotingCommand) -> None:
        if self.on_unasked is not None:
            self.on_unasked(connection, response)

    async def close_all(self) -> None:
        """Close every channel and wait until all channels are closed; running handlers are cancelled."""
        at_work = list(self.at_work)
        for answer in at_work:
            answer.cancel()
        for connection in list(self.connections.values()):
            connection.close()
        if self.connections:
            self._emptied = asyncio.Event()
            try:
                async with self.clock.timeout(2 * LINGER_S):
                    await self._emptied.wait()  # at most LINGER_S
            except TimeoutError:  # uvloop never says that a channel is gone whose dial was given up as it was let in
                for connection in list(self.connections.values()):
                    self.lost(connection, "it never said that it is gone")
        await asyncio.gather(*at_work, return_exceptions=True)


class Connection(asyncio.Protocol):
    """One channel. `id` numbers a server's or client's channels from 1; the handler can keep data in `attributes`."""

    def __init__(self, endpoint: Endpoint, remote_address: Address | None = None) -> None:
        """`remote_address`: the peer's own address, if a proxy is in between; None: the socket's address."""
        self.id = 0
        self.closed = False
        self.ended_by_peer = False
        self.malformed = False
        """Whether it was closed because of a frame that cannot be read."""
        self.attributes: dict[str, object] = {}
        self.remote_address = remote_address or _UNKNOWN
        self.local_address = _UNKNOWN
        self._endpoint = endpoint
        self._fast_path = endpoint.fast_path
        self._monotonic_s = endpoint.clock.monotonic_s
        self._last_s = 0.0
        self._reader = FrameReader(endpoint.frame_max)
        self._pending: dict[int, asyncio.Future[RemotingCommand]] = {}
        self._given_up: dict[int, None] | None = None
        self._reason: str | None = None
        self._transport: asyncio.Transport | None = None
        self._idle_timer: Timer | None = None
        self._linger_timer: Timer | None = None
        self._corked = False
        self._unwritten: list[bytes] = []
        self._served = 0
        self._served_bytes = 0
        self._reading_paused = False

    def __repr__(self) -> str:
        return f"#{self.id} {self.local_address} - {self.remote_address}"

    # --- what nodes use ---------------------------------------------------------------------------------------------

    def send(self, command: RemotingCommand) -> None:
        """Send a command without waiting; a request gets its opaque. Raises ConnectionLost if the channel is closed,
        LocalProtocolError if the command cannot be encoded."""
        if not command.flag & FLAG_RESPONSE:
            command.opaque = self._endpoint.next_opaque()
            self._endpoint.identify(command)
        self._write(encode_frame(command))

    async def invoke(self, command: RemotingCommand, *, timeout_s: float) -> RemotingCommand:
        """Send a request, whose opaque is set, and return the peer's response, whatever its code. Raises
        TooManyRequests if MAX_IN_FLIGHT requests are in flight, LocalProtocolError if the request cannot be encoded,
        ConnectionLost if the channel is closed or closes, RequestTimeout after `timeout_s`."""
        endpoint = self._endpoint
        if endpoint.in_flight >= MAX_IN_FLIGHT:
            raise errors.TooManyRequests(f"{MAX_IN_FLIGHT} requests are in flight already")
        opaque = command.opaque = endpoint.next_opaque()
        endpoint.identify(command)
        frame = encode_frame(command)
        future: asyncio.Future[RemotingCommand] = asyncio.get_running_loop().create_future()
        self._pending[opaque] = future
        endpoint.in_flight += 1
        try:
            self._write(frame)
            # not clock.timeout: the timer ends the wait by itself, and costs each call less than a context does
            timer = endpoint.clock.call_later(timeout_s, self._time_out, future, timeout_s)
            try:
                return await future
            finally:
                timer.cancel()
        finally:
            endpoint.in_flight -= 1
            if self._pending.pop(opaque, None) is not None and not self.closed:
                self._give_up(opaque)

    def _time_out(self, future: asyncio.Future[RemotingCommand], timeout_s: float) -> None:
        if not future.done():
            text = f"wait response on the channel <{self.remote_address}> timeout, {round(timeout_s * 1000)}(ms)"
            future.set_exception(errors.RequestTimeout(text))

    def _give_up(self, opaque: int) -> None:
        """Note that the call has ended without a response, so that a late response is not reported as unasked."""
        if self._given_up is None:
            self._given_up = {}
        elif len(self._given_up) >= MAX_GIVEN_UP:
            del self._given_up[next(iter(self._given_up))]
        self._given_up[opaque] = None

    def close(self, reason: str = "closed") -> None:
        """Close the channel: unanswered calls fail at once, and `on_close` gets `reason` as soon as the socket is
        closed."""
        if self.closed:
            return
        self._flush()
        transport = self._shut(reason)
        if transport is not None:
            transport.close()
            if transport.get_write_buffer_size():
                self._linger_timer = self._endpoint.clock.call_later(LINGER_S, transport.abort)

    # --- asyncio's side ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        wire = cast(asyncio.Transport, transport)
        if self.closed:  # given up while it was being dialled
            wire.abort()
            return
        self._transport = wire
        wire.set_write_buffer_limits(high=MAX_UNSENT)
        self.local_address = _socket_address(wire.get_extra_info("sockname"))
        if self.remote_address is _UNKNOWN:
            self.remote_address = _socket_address(wire.get_extra_info("peername"))
        self._last_s = self._monotonic_s()
        self._idle_timer = self._endpoint.clock.call_later(self._endpoint.idle_s, self._check_idle)
        self._endpoint.opened(self)

    def data_received(self, data: bytes) -> None:
        if self.closed:
            return
        self._last_s = self._monotonic_s()
        if self._reader.is_one_frame(data):
            if self._fast_path is not None:
                response = self._fast_response(data)
                if response is not None:
                    self._transport.write(response)  # type: ignore[union-attr]  # there is one while not closed
                    return
            try:
                self._serve(data)
            except errors.RemoteProtocolError as exc:
                self._malformed(exc)
        else:
            self._serve_all(data)

    def _serve_all(self, data: bytes) -> None:
        """Serve every frame that `data` completes. Responses that are ready at once are written at once."""
        self._corked = True
        try:
            for frame in self._reader.feed(data):
                response = None if self._fast_path is None else self._fast_response(frame)
                if response is not None:
                    self._gather(response)
                else:
                    self._serve(frame)
                if self.closed:
                    return
            if self._reader.error is not None:
                raise self._reader.error
        except errors.RemoteProtocolError as exc:
            self._malformed(exc)
        finally:
            self._corked = False
            self._flush()

    def pause_writing(self) -> None:
        if not self.closed and self._transport is not None:
            self._endpoint.log.warning(
                "channel[%s] closed, because its peer is too slow: %d B wait to be sent",
                self.remote_address,
                self._transport.get_write_buffer_size(),
            )
            self._abort("closed")

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended_by_peer = not self.closed
        self._shut("closed" if exc is None else "exception")
        if self._linger_timer is not None:
            self._linger_timer.cancel()
        self._transport = None
        self._endpoint.lost(self, self._reason or "closed")

    # --- requests and responses -------------------------------------------------------------------------------------

    def _fast_response(self, frame: bytes) -> bytes | None:
        try:
            return self._fast_path(frame, self)  # type: ignore[misc]  # asked for only where there is one
        except Exception:
            self._endpoint.log.exception("channel %s: the fast path failed, the ordinary one answers", self)
            return None

    def _serve(self, frame: bytes) -> None:
        command = decode_frame(frame)
        if command.flag & FLAG_RESPONSE:
            future = self._pending.pop(command.opaque, None)
            if future is not None and not future.done():
                future.set_result(command)
                return
            self._endpoint.log.warning(
                "channel %s: response to opaque %d dropped, no call waits for it", self, command.opaque
            )
            given_up = self._given_up is not None and self._given_up.pop(command.opaque, 0) is None
            if future is None and not given_up:
                self._endpoint.unasked(self, command)
            return
        if self._endpoint.witness is not None:
            self._endpoint.witness.received(self, command)
        handler = self._endpoint.handler
        if handler is None:
            remark = f" request type {command.code} not supported"
            self._answer(command, RemotingCommand.response(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark))
            return
        try:
            result = handler(self, command)
        except Exception as exc:
            result = self._failure(command, exc)
        if result is None or isinstance(result, RemotingCommand):
            self._answer(command, result)
        else:
            self._account(1, len(frame))
            # a future needs no task that waits for it: a broker holds thousands of pulls
            at_work = result if isinstance(result, asyncio.Future) else asyncio.ensure_future(result)
            self._endpoint.at_work[at_work] = None
            at_work.add_done_callback(partial(self._serve_later, command, len(frame)))

    def _serve_later(self, command: RemotingCommand, size: int, result: asyncio.Future[RemotingCommand | None]) -> None:
        self._endpoint.at_work.pop(result, None)
        self._account(-1, -size)
        if result.cancelled():
            return
        try:
            response = result.result()
        except Exception as exc:
            response = self._failure(command, exc)
        self._answer(command, response)

    def _account(self, requests: int, size: int) -> None:
        self._served += requests
        self._served_bytes += size
        full = self._served >= MAX_SERVED or self._served_bytes >= MAX_SERVED_BYTES
        if full != self._reading_paused and not self.closed and self._transport is not None:
            self._reading_paused = full
            if full:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _failure(self, command: RemotingCommand, exc: Exception) -> RemotingCommand:
        known = isinstance(exc, errors.RocketMQError)
        self._endpoint.log.warning("channel %s: request %d failed: %r", self, command.code, exc, exc_info=not known)
        return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, f"{type(exc).__name__}: {exc}")

    def _answer(self, request: RemotingCommand, response: RemotingCommand | None) -> None:
        if response is None or request.is_oneway or self.closed:
            return
        endpoint = self._endpoint
        response.opaque = request.opaque
        response.flag |= FLAG_RESPONSE
        response.serialize_type = request.serialize_type
        response.language = DEFAULT_LANGUAGE if endpoint.language is None else endpoint.language
        response.version = DEFAULT_VERSION if endpoint.version is None else endpoint.version
        try:
            frame = encode_frame(response)
        except errors.LocalProtocolError as exc:
            self._answer(request, self._failure(request, exc))
            return
        self._write(frame)

    # --- bytes out, and the end -------------------------------------------------------------------------------------

    def _write(self, frame: bytes) -> None:
        if self.closed or self._transport is None:
            raise errors.ConnectionLost(f"channel to {self.remote_address} is closed")
        if self._corked or self._unwritten:
            self._gather(frame)
        else:
            self._last_s = self._monotonic_s()
            self._transport.write(frame)

    def _gather(self, frame: bytes) -> None:
        unwritten = self._unwritten
        unwritten.append(frame)
        if not self._corked or len(frame) > GATHERED_FRAME_MAX or len(unwritten) >= GATHERED_FRAMES:
            self._flush()

    def _flush(self) -> None:
        frames = self._unwritten
        if frames and self._transport is not None and not self.closed:
            self._unwritten = []
            self._last_s = self._monotonic_s()
            self._transport.write(frames[0] if len(frames) == 1 else b"".join(frames))

    def _malformed(self, exc: errors.RemoteProtocolError) -> None:
        address, log = self.remote_address, self._endpoint.log
        log.error("decode exception, %s\nmalformed frame: %s", address, exc)  # where Java has a stack trace
        log.info("closeChannel: close the connection to remote address[%s] result: true", address)
        self.malformed = True
        self.close()

    def _check_idle(self) -> None:
        left_s = self._last_s + self._endpoint.idle_s - self._monotonic_s()
        if left_s > 0.001:
            self._idle_timer = self._endpoint.clock.call_later(left_s, self._check_idle)
        else:
            self._abort("idle")

    def _abort(self, reason: str) -> None:
        transport = self._shut(reason)
        if transport is not None:
            transport.abort()

    def _shut(self, reason: str) -> asyncio.Transport | None:
        """Mark this channel as closed, for `reason`. Returns the transport; None if it was closed before."""
        if self.closed:
            return None
        self.closed = True
        self._reason = reason
        self._unwritten = []
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        pending, self._pending = self._pending, {}
        for future in pending.values():
            if not future.done():
                future.set_exception(errors.ConnectionLost(f"channel to {self.remote_address} closed ({reason})"))
        self._endpoint.shut(self, reason)
        return self._transport


_UNKNOWN = Address("?", 0)  # the socket was reset before it could be asked


def _socket_address(name: object) -> Address:
    return Address(str(name[0]), int(name[1])) if isinstance(name, tuple) and len(name) >= 2 else _UNKNOWN
