"""Two ends of a link on real sockets, and what a recorder was told."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nemesrv.remoting.node.network import Address

LIMIT_S = 5.0
QUIET_S = 0.25
"""How long nothing must arrive before a test believes that nothing does; longer than any delay it would mistake."""


class Peer:
    """A listening server whose connections the test accepts and drives itself."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(LIMIT_S)
        self.address = Address(*self._listener.getsockname())

    def accept(self) -> socket.socket:
        return tuned(self._listener.accept()[0])

    def close(self) -> None:
        self._listener.close()


def tuned(sock: socket.socket) -> socket.socket:
    sock.settimeout(LIMIT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def dial(address: Address) -> socket.socket:
    return tuned(socket.create_connection(address, LIMIT_S))


@contextmanager
def connected(peer: Peer, through: Address) -> Iterator[tuple[socket.socket, socket.socket]]:
    """The dialler's end and the peer's end of one connection that has already carried a byte each way."""
    near = dial(through)
    far = peer.accept()
    try:
        near.sendall(b"?")
        assert far.recv(1) == b"?"
        far.sendall(b"!")
        assert near.recv(1) == b"!"
        yield near, far
    finally:
        near.close()
        far.close()


def read_exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            raise EOFError(f"closed after {len(data)} of {count} bytes")
        data += more
    return data


def is_quiet(sock: socket.socket) -> bool:
    """Whether nothing arrives, neither bytes nor a close."""
    before = sock.gettimeout()
    sock.settimeout(QUIET_S)
    try:
        sock.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    except OSError:
        return False
    else:
        return False
    finally:
        sock.settimeout(before)


def is_refused(address: Address) -> bool:
    try:
        dial(address).close()
    except ConnectionRefusedError:
        return True
    return False


def is_closed(sock: socket.socket) -> bool:
    """Whether the other side closes it, cleanly or not."""
    try:
        return sock.recv(1) == b""
    except ConnectionError:
        return True


def round_trip_ms(near: socket.socket, far: socket.socket, *, tries: int = 3) -> float:
    """The quickest of several round trips: what the link does, and not what else the machine does."""

    def memoized() -> float:
        start_s = time.monotonic()
        near.sendall(b"ping")
        far.sendall(read_exactly(far, 4))
        read_exactly(near, 4)
        return (time.monotonic() - start_s) * 1000

    return min(memoized() for _ in range(tries))


class Rows(list[dict[str, Any]]):
    """A recorder that keeps its rows."""

    def __call__(self, event: str, /, **fields: Any) -> None:
        self.append({"event": event, **fields})

    def close(self) -> None: ...

    def faults(self) -> list[tuple[str, str, str | None, str]]:
        return [(r["fault"], r["source"], r["target"], r["phase"]) for r in self if r["event"] == "fault"]
