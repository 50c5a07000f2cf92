"""The transport of remoting: `RemotingServer` listens, `RemotingClient` connects, and a `Connection` is one channel.
Upstream: `NettyRemotingServer`, `NettyRemotingClient`."""

from dataclasses import dataclass, field

from .client import RemotingClient
from .codes import V4_9_8, LanguageCode
from .connection import Connection, Endpoint, FastPath, Handler
from .node.network import Address, Listener, Network

__all__ = ["Connection", "FastPath", "Handler", "RemotingClient", "RemotingServer"]


@dataclass(kw_only=True, eq=False)
class RemotingServer(Endpoint):
    """Accepts channels, and answers the requests on these channels. `handler(connection, request)` returns the
    response, None for no answer, or an awaitable of either.

    A handler's exception is answered with code 1 and the remark `<exception>: <text>`; a oneway request is never
    answered. `on_close` gets "closed" (by either side), "exception" or "idle". `fast_path` gets each raw frame first,
    after a check of only the length. `fast_path` returns the raw response, or None if `handler` must answer.
    """

    network: Network
    handler: Handler
    language: LanguageCode = LanguageCode.JAVA
    version: int = V4_9_8
    _listener: Listener | None = field(init=False, default=None)

    async def listen(self, address: Address) -> Address:
        """Accept channels on `address`; return the address with the port in use. Raises OSError for an address that is
        not available."""
        self._listener = await self.network.listen(address, lambda: Connection(self))
        return self._listener.address

    async def close(self) -> None:
        """Stop accepting, close every channel at once, as Java does, and wait until all channels are closed."""
        if self._listener is not None:
            await self._listener.close()
        await self.close_all()
