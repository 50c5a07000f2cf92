"""A client's connections: one cached channel per address, opened on first use. Upstream: `NettyRemotingClient`."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from .codes import FLAG_ONEWAY, LanguageCode
from .command import RemotingCommand
from .connection import Connection, Endpoint, Handler
from .errors import ConnectError, RequestTimeout, TooManyRequests
from .node.network import Address, Network
from .node.tasks import cancel_all

V5_1_4 = 441

_CLOSE_MIN_S = 0.1


@dataclass(kw_only=True, eq=False)
class RemotingClient(Endpoint):
    """Sends requests, over one channel for each address. `handler` answers servers' requests on these channels, such as
    NOTIFY_CONSUMER_IDS_CHANGED.

    A call's `timeout_s` covers connecting and waiting. Concurrent calls to an address share one connection attempt.
    `on_event` gets ("open" | "close" | "connect_failed" | "unasked", address, reason). The event "unasked" is a
    response without a request on that channel; the event's reason has the response's code and opaque. `on_timed_out`
    gets (address, request code, seconds) of each wait that timed out; the code of a connect is None. `on_refused` gets
    (address, request code, response code) of each answer without SUCCESS. Requests without a
    language and version get `language` and `version`. The client's `version` also decides when a timed-out call closes
    its channel.
    """

    network: Network
    handler: Handler | None = None
    connect_timeout_s: float = 3.0
    close_on_timeout: bool = True
    language: LanguageCode | None = None
    version: int | None = None
    on_event: Callable[[str, Address, str], None] | None = None
    on_timed_out: Callable[[Address, int | None, float], None] | None = None
    on_refused: Callable[[Address, int, int], None] | None = None
    _channels: dict[Address, Connection] = field(init=False, default_factory=dict)
    _attempts: dict[Address, asyncio.Task[Connection]] = field(init=False, default_factory=dict)
    _closed: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.on_unasked = self._unasked
        self._spares_short_waits = self.version is None or self.version >= V5_1_4

    async def invoke(
        self,
        address: Address,
        command: RemotingCommand,
        *,
        timeout_s: float = 3.0,
        close_on_timeout: bool | None = None,
    ) -> RemotingCommand:
        """Send the request and return the response, whatever its code. With `close_on_timeout` False a time-out keeps
        the channel open, as Java's asynchronous call does.

        Raises ConnectError and TooManyRequests (nothing was sent), ConnectionLost and RequestTimeout (the request may
        have been sent), LocalProtocolError. A RequestTimeout closes the channel, as Java's synchronous call does; from
        5.1.4 on only if more than 100 ms or a quarter of the time was left for the answer.
        """
        begin_s = self.clock.monotonic_s()
        connection, left_s = await self._connected_in_time(address, timeout_s)
        try:
            answer = await connection.invoke(command, timeout_s=left_s)
        except RequestTimeout:
            self._timed_out(address, command.code, begin_s)
            closes = self.close_on_timeout if close_on_timeout is None else close_on_timeout
            if closes and (not self._spares_short_waits or left_s > _CLOSE_MIN_S or left_s > timeout_s / 4):
                self.log.warning("channel %s: closed, because request %d timed out", connection, command.code)
                connection.close()
            raise
        if answer.code and self.on_refused is not None:
            self.on_refused(address, command.code, answer.code)
        return answer

    async def oneway(self, address: Address, command: RemotingCommand, *, timeout_s: float = 3.0) -> None:
        """Send `command` as a oneway request. ConnectError or TooManyRequests mean that nothing was sent."""
        command.flag |= FLAG_ONEWAY
        connection, _ = await self._connected_in_time(address, timeout_s)
        connection.send(command)

    async def connect(self, address: Address) -> Connection:
        """Return the active channel to `address`; open a channel if none is active. Raises ConnectError after at most
        `connect_timeout_s`."""
        connection = self._channels.get(address)
        if connection is not None and not connection.closed:
            return connection
        if self._closed:
            raise ConnectError(f"connect to {address} failed: this client is closed")
        attempt = self._attempts.get(address)
        if attempt is None:
            attempt = self._attempts[address] = asyncio.create_task(self._dial(address))
            attempt.add_done_callback(_seen)
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            if attempt.cancelled():
                raise ConnectError(f"connect to {address} failed: this client is closed") from None
            raise

    def is_active(self, address: Address) -> bool:
        connection = self._channels.get(address)
        return connection is not None and not connection.closed

    def close_channel(self, address: Address) -> None:
        """Close the channel to `address`, if open: unanswered calls fail, and the next call reconnects."""
        connection = self._channels.get(address)
        if connection is not None:
            connection.close()

    async def close(self) -> None:
        """Close every channel and refuse further calls."""
        self._closed = True
        await cancel_all(self._attempts.values())
        await self.close_all()

    async def _connected_in_time(self, address: Address, timeout_s: float) -> tuple[Connection, float]:
        connection = self._channels.get(address)
        if connection is not None and not connection.closed:
            return connection, timeout_s
        begin_s = self.clock.monotonic_s()
        try:
            # where the budget covers a whole attempt, the attempt's own limit says why it failed
            async with self.clock.timeout(None if timeout_s >= self.connect_timeout_s else timeout_s):
                connection = await self.connect(address)
        except TimeoutError as exc:
            raise TooManyRequests(f"connect to {address} took more than the call's {timeout_s:g} s") from exc
        left_s = timeout_s - (self.clock.monotonic_s() - begin_s)
        if left_s <= 0:
            raise TooManyRequests(f"connect to {address} took the call's {timeout_s:g} s")
        return connection, left_s

    async def _dial(self, address: Address) -> Connection:
        connection, begin_s = Connection(self, address), self.clock.monotonic_s()
        try:
            async with self.clock.timeout(self.connect_timeout_s):
                await self.network.connect(address, lambda: connection)
            if connection.closed:
                raise ConnectError(f"connect to {address} failed: the peer closed it at once")
            self._channels[address] = connection
        except TimeoutError as exc:
            failure = ConnectError(f"connect to {address} failed: no answer in {self.connect_timeout_s:g} s")
            self._timed_out(address, None, begin_s)
            self._tell("connect_failed", address, str(failure))
            raise failure from exc
        except ConnectError as exc:
            self._tell("connect_failed", address, str(exc))
            raise
        finally:
            del self._attempts[address]
            if self._channels.get(address) is not connection:
                connection.close()  # it may have opened in the very moment that it was given up
        self._tell("open", address, "connected")
        return connection

    def shut(self, connection: Connection, reason: str) -> None:
        address = connection.remote_address
        if self._channels.get(address) is connection:
            del self._channels[address]
            by = "peer" if connection.ended_by_peer else "self"
            self._tell("close", address, f"{reason} by {by}{' at a malformed frame' if connection.malformed else ''}")

    def _unasked(self, connection: Connection, response: RemotingCommand) -> None:
        self._tell("unasked", connection.remote_address, f"code {response.code}, opaque {response.opaque}")

    def _timed_out(self, address: Address, code: int | None, begin_s: float) -> None:
        if self.on_timed_out is not None:
            self.on_timed_out(address, code, self.clock.monotonic_s() - begin_s)

    def _tell(self, event: str, address: Address, reason: str) -> None:
        if self.on_event is not None:
            self.on_event(event, address, reason)


def _seen(attempt: asyncio.Task[Connection]) -> None:
    if not attempt.cancelled():
        attempt.exception()
