"""Blocking sockets that carry whole frames: the same bytes to two servers, from the same port of this machine."""

import contextlib
import socket
import struct
from collections.abc import Iterable

from nemesrv.remoting.node.network import Address

ANSWER_TIMEOUT_S = 5.0
_RESET = struct.pack("ii", 1, 0)


class Channel:
    """One TCP connection to one server."""

    def __init__(self, address: Address, port: int = 0) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
            self._socket.settimeout(ANSWER_TIMEOUT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.connect((address.host, address.port))
        except OSError:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]
        self._buffer = b""

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def frame(self) -> bytes:
        """The next frame. ConnectionError when the server has closed, TimeoutError when it stays silent."""
        while True:
            buffer = self._buffer
            if len(buffer) >= 4:
                size = int.from_bytes(buffer[:4], "big") + 4
                if len(buffer) >= size:
                    self._buffer = buffer[size:]
                    return buffer[:size]
            more = self._socket.recv(262_144)
            if not more:
                raise ConnectionError("the server closed the connection")
            self._buffer = buffer + more

    def wait_for_end(self) -> None:
        """Returns when the server has closed; TimeoutError when it does not."""
        with contextlib.suppress(ConnectionError):
            while self._socket.recv(65_536):
                pass

    def close(self, *, reset: bool = False) -> None:
        """With FIN, or with RST."""
        if reset:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._socket.close()


class Link:
    """A connection to each of two servers, both from the same local port, so that both see one remote address."""

    def __init__(self, addresses: Iterable[Address]) -> None:
        theirs, ours = addresses
        for _ in range(50):
            first = Channel(theirs)
            try:
                second = Channel(ours, first.port)
            except OSError:  # somebody else has that port towards the second server
                first.close()
                continue
            self.channels = (first, second)
            self.local_address = f"127.0.0.1:{first.port}"
            return
        raise AssertionError("no local port is free for both servers")

    def close(self, *, reset: bool = False) -> None:
        for channel in self.channels:
            channel.close(reset=reset)
