"""One port that can accept, refuse or ignore connection attempts, and that no other program can take (Linux, no root).

    accepted  listen(1024), and the loop accepts
    refused   shutdown(): still bound but not listening, so the kernel answers a SYN with RST
    dropped   listen(0) and one connection that is not accepted: the accept queue is full, so the kernel drops SYNs
              while tcp_abort_on_overflow is 0; a pending connect gets in at its next SYN once the port accepts

Established connections continue while the port refuses or ignores connection attempts.
"""

import asyncio
import contextlib
import select
import socket
from collections.abc import Callable

from ...remoting.node.network import Address
from .behaviour import Dials

BACKLOG = 1024
_TRIES = 20


class Port:
    """One bound port, from `open` to `close`. `accepted` gets each accepted socket with its peer's address."""

    def __init__(self, accepted: Callable[[socket.socket, Address], None]) -> None:
        self._accepted = accepted
        self._socket: socket.socket | None = None
        self._filler: socket.socket | None = None
        self._listens = False

    def open(self, host: str, port: int = 0) -> Address:
        """Bind the port and accept connections from now on. Raises OSError."""
        with _reusable(host) as any_port:  # a port that was asked for by number stays bound when nobody listens
            any_port.bind((host, port))
            self._socket = _reusable(host)
            self._socket.bind(any_port.getsockname()[:2])
        self._socket.setblocking(False)
        self.behave(Dials.ACCEPTED)
        return self.address

    @property
    def address(self) -> Address:
        assert self._socket is not None, "the port is not open"
        return Address(*self._socket.getsockname()[:2])

    def behave(self, dials: Dials) -> None:
        """Accept, refuse or drop connection attempts from now on. For CLOSED `accepted` must close the connections."""
        assert self._socket is not None, "the port is not open"
        if dials is Dials.REFUSED or dials is Dials.DROPPED:
            self._stop()
            if dials is Dials.DROPPED:
                self._fill(self._socket)
        elif not self._listens:
            self._socket.listen(BACKLOG)
            self._listens = True
            asyncio.get_running_loop().add_reader(self._socket.fileno(), self._accept)

    def _stop(self) -> None:
        assert self._socket is not None
        if self._listens:
            self._accept()  # who got in before is in
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
            self._listens = False
        with contextlib.suppress(OSError):  # it did not listen
            self._socket.shutdown(socket.SHUT_RDWR)
        self._drop_filler()

    def _fill(self, listener: socket.socket) -> None:
        for _ in range(_TRIES):
            listener.listen(0)
            self._filler = _reusable(self.address.host)
            self._filler.setblocking(False)
            self._filler.connect_ex(self.address)
            if _is_writable(self._filler, 50) and self._filler.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                return
            listener.shutdown(socket.SHUT_RDWR)  # a dial of somebody else came between: once more, without it
            self._drop_filler()
        raise OSError(f"the accept queue of {self.address} cannot be filled: others dial it without end")

    def _drop_filler(self) -> None:
        if self._filler is not None:
            self._filler.close()
            self._filler = None

    def _accept(self) -> None:
        assert self._socket is not None
        fillers = {None if self._filler is None else self._filler.getsockname()[:2]}
        while True:
            try:
                taken, who = self._socket.accept()
            except (BlockingIOError, OSError):  # no more; or that one is gone already
                return
            if who[:2] in fillers:
                taken.close()
                self._drop_filler()
            else:
                taken.setblocking(False)
                taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._accepted(taken, Address(*who[:2]))

    def close(self) -> None:
        if self._socket is not None:
            self._stop()
            self._socket.close()
            self._socket = None


def check_free(host: str, port: int) -> None:
    """Raise OSError if a socket is bound to the port, even a socket that does not listen and shares its address."""
    with socket.socket(_family(host), socket.SOCK_STREAM) as probe:
        probe.bind((host, port))


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _reusable(host: str) -> socket.socket:
    made = socket.socket(_family(host), socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return made


def _is_writable(sock: socket.socket, within_ms: int) -> bool:
    """Whether the socket is writable. poll(), because select() takes no descriptor above 1023."""
    poll = select.poll()
    poll.register(sock, select.POLLOUT)
    return bool(poll.poll(within_ms))
