"""A port that answers no dial, without root: its accept queue is full, so the kernel drops every further SYN (Linux).

dial ──► SYN ──► ✗     listen(0), and one connection that nobody accepts       open(): listen(128), then splice:
         SYN ──► ✗     while tcp_abort_on_overflow is 0                        a dial under way is let in at its
         SYN ──► ✗                                                             next SYN, and led to `to`
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time

from ...remoting.node.network import Address

LETS_IN_S = 8.0
"""Of the machine's time: kernels send a SYN again after 1, 3 and 7 s, and no dialler waits so long."""
_CHUNK = 65_536


class FullAcceptQueue:
    """Dials to `address` get no answer until `open`."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._front = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._front.bind((host, 0))
        self._front.listen(0)
        self.address = Address(*self._front.getsockname()[:2])
        self._filler: socket.socket | None = socket.create_connection(self.address)

    def open(self, to: Address) -> None:
        """Whoever still dials is connected to `to`, at the next SYN that its kernel sends. No new dial should come."""
        self._front.listen(128)
        threading.Thread(target=self._let_in, args=(to,), name="accept-queue", daemon=True).start()

    def _let_in(self, to: Address) -> None:
        until_s = time.monotonic() + LETS_IN_S
        filler, self._filler = self._filler, None
        fillers = {None if filler is None else filler.getsockname()}
        try:
            while (left_s := until_s - time.monotonic()) > 0:
                self._front.settimeout(left_s)
                taken, who = self._front.accept()
                if who in fillers:
                    taken.close()
                else:
                    _splice(taken, to)
        except (TimeoutError, OSError):  # nobody dials any more, or `close` came
            pass
        finally:
            if filler is not None:
                filler.close()
            self._front.close()

    def close(self) -> None:
        """Nobody listens there any more."""
        self._front.close()
        if self._filler is not None:
            self._filler.close()
            self._filler = None


def _splice(taken: socket.socket, to: Address) -> None:
    try:
        onward = socket.create_connection(to)
    except OSError:
        taken.close()
        return
    taken.settimeout(None)
    for one, other in ((taken, onward), (onward, taken)):
        threading.Thread(target=_carry, args=(one, other), name="accept-queue-splice", daemon=True).start()


def _carry(one: socket.socket, other: socket.socket) -> None:
    """Bytes of one to the other until one of them ends; then both do."""
    with contextlib.suppress(OSError):
        while data := one.recv(_CHUNK):
            other.sendall(data)
    for end in (one, other):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
    one.close()
