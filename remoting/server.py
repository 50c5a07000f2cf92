"""A server accepts channels and answers the requests on them. Upstream: `NettyRemotingServer`."""

import logging
from collections.abc import Callable, Collection

from .codes import V4_9_8, LanguageCode
from .connection import Connection, Endpoint, FastPath, Handler
from .frame import FRAME_MAX
from .node.clock import Clock
from .node.network import Address, Listener, Network
from .witness import Witness


class RemotingServer:
    """Accepts channels, and answers the requests on these channels. `handler(connection, request)` returns the
    response, None for no answer, or an awaitable of either.

    A handler's exception is answered with code 1 and the remark `<exception>: <text>`; a oneway request is never
    answered. `on_close` gets "closed" (by either side), "exception" or "idle". `fast_path` gets each raw frame first,
    after a check of only the length. `fast_path` returns the raw response, or None if `handler` must answer.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        network: Network,
        handler: Handler,
        on_open: Callable[[Connection], None] | None = None,
        on_close: Callable[[Connection, str], None] | None = None,
        idle_s: float = 120,
        frame_max: int = FRAME_MAX,
        fast_path: FastPath | None = None,
        witness: Witness | None = None,
        language: LanguageCode = LanguageCode.JAVA,
        version: int = V4_9_8,
        log: logging.Logger,
    ) -> None:
        self._network = network
        self._listener: Listener | None = None
        self._endpoint = Endpoint(
            clock=clock,
            log=log,
            handler=handler,
            on_open=on_open,
            on_close=on_close,
            idle_s=idle_s,
            frame_max=frame_max,
            fast_path=fast_path,
            witness=witness,
            language=language,
            version=version,
        )

    @property
    def connections(self) -> Collection[Connection]:
        return self._endpoint.connections.values()

    async def listen(self, address: Address) -> Address:
        """Accept channels on `address`; return the address with the port in use. Raises OSError for an address that is
        not available."""
        self._listener = await self._network.listen(address, lambda: Connection(self._endpoint))
        return self._listener.address

    async def close(self) -> None:
        """Stop accepting, close every channel at once, as Java does, and wait until all channels are closed."""
        if self._listener is not None:
            await self._listener.close()
        await self._endpoint.close_all()
