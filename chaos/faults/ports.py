"""Ports that stay ours for the length of an experiment, so that a node or proxy that comes back finds its own again.

Taken from below Linux's ephemeral range. Each is held by a bound socket that does not listen: with SO_REUSEADDR on
both sides (asyncio and Go set it) the node may still listen there, a dial while it is away is refused, and nobody
else who asks for a free port gets it. The kernel drops the holds when this process ends, however it ends. Where dials
to a node that is away must stay without an answer instead, the hold itself listens (`swallow`).
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterable
from types import TracebackType

from ...remoting.node.network import Address
from ..errors import HarnessError

FIRST, LAST = 20_000, 29_999
SWALLOWS = 4096
"""Dials that a port takes which swallows them; the kernel drops what comes after."""


class PortHolder:
    """Context manager; `take` as often as needed, `close` gives all ports back."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._host = host
        self._held: dict[int, socket.socket] = {}

    def take(self) -> Address:
        """An address of this host that nobody uses, ours until `close`. HarnessError when none is left."""
        for _ in range(200):
            port = FIRST + secrets.randbelow(LAST - FIRST + 1)
            if port not in self._held and (sock := self._hold(port)) is not None:
                self._held[port] = sock
                return Address(self._host, port)
        raise HarnessError(f"no free port was found between {FIRST} and {LAST} on {self._host}: close what uses them")

    def take_for(self, nodes: Iterable[str]) -> list[Address]:
        """One for a proxy of each of these nodes."""
        return [self.take() for _ in nodes]

    def _hold(self, port: int) -> socket.socket | None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.bind((self._host, port))
        except OSError:
            sock.close()
            return None
        # Only now: with it the bind would have succeeded beside another holder's socket.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return sock

    def swallow(self, address: Address) -> bool:
        """Dials there succeed and stay without an answer. Not while somebody listens there, nor where the port is not
        ours: then False."""
        held = self._held.get(address.port)
        if held is None or address.host != self._host:
            return False
        try:
            held.listen(SWALLOWS)
        except OSError:
            return False
        return True

    def refuse(self, address: Address) -> None:
        """Dials there are refused again, and what was swallowed is reset; the port stays ours."""
        held = self._held.get(address.port)
        if held is not None and held.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            held.shutdown(socket.SHUT_RD)

    def close(self) -> None:
        while self._held:
            self._held.popitem()[1].close()

    def __enter__(self) -> PortHolder:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()
