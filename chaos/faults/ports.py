"""Ports reserved for the length of an experiment, so that a restarted node or proxy gets the same port again.

The reserved ports are below Linux's ephemeral range. Each port is reserved by a bound socket that does not listen. A
node can still listen on a reserved port, because the two sockets have SO_REUSEADDR (asyncio and Go set it). While no
node listens on a reserved port, connections are refused, and the kernel gives the port to no program that asks for any
free port. The kernel frees the ports when this process ends. For connections that must get no answer, the reserving
socket itself listens (`swallow`).
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import time
from collections.abc import Collection, Iterable

from ...remoting.node.network import Address
from ..errors import HarnessError
from ..topology import EXTERNAL

FIRST, LAST = 20_000, 29_999
SWALLOWS = 4096
"""Connections that a swallowing port accepts; the kernel drops later ones."""


class PortHolder:
    """Reserves ports: `take` reserves addresses, `close` frees all ports. Context manager."""

    def __init__(
        self, host: str = "127.0.0.1", ports: range = range(FIRST, LAST + 1), *, outside: str | None = None
    ) -> None:
        """`outside` is the host at which outside programs connect to their proxies; None: at `host`, too."""
        self._host, self._ports = host, ports
        self.outside = host if outside is None else outside
        self._of_outside = self if self.outside == host else PortHolder(self.outside, ports)
        self._held: dict[int, socket.socket] = {}

    def take(self, *, vip: bool = False, beside: Collection[int] = ()) -> Address:
        """Return an unused address of this host, reserved until `close`. Raises HarnessError if no port is free.
        `beside`: also reserve the ports that are this far above the returned port. `vip`: also reserve the VIP port,
        two below the returned port."""
        for _ in range(200):
            address = Address(self._host, self._ports[secrets.randbelow(len(self._ports))])
            others = [address.port + each for each in beside] + ([address.vip_channel.port] if vip else [])
            taken = [port for port in (address.port, *others) if self._holds(port)]
            if len(taken) == 1 + len(others):
                return address
            for port in taken:
                self._held.pop(port).close()
        first, last = self._ports[0], self._ports[-1]
        raise HarnessError(f"no free port was found between {first} and {last} on {self._host}: close what uses them")

    def _holds(self, port: int) -> bool:
        if port in self._held or (sock := self._hold(port)) is None:
            return False
        self._held[port] = sock
        return True

    def take_for(self, nodes: Iterable[str]) -> list[Address]:
        """Return an address for each proxy of these nodes. For links of outside clients the VIP port, two below each
        proxy's port, is reserved, too, because old Java clients use the VIP port."""
        return [self._of_outside.take(vip=True) if node == EXTERNAL else self.take() for node in nodes]

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
        """Accept connections to the address, but never answer them. Returns False if a program listens at the address,
        or the port is not reserved here."""
        held = self._held.get(address.port)
        if held is None or address.host != self._host:
            return False
        try:
            held.listen(SWALLOWS)
        except OSError:
            return False
        return True

    def refuse(self, address: Address) -> None:
        """End `swallow`: refuse connections to the address again, and reset the swallowed connections. The port stays
        reserved."""
        held = self._held.get(address.port)
        if held is not None and held.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            held.shutdown(socket.SHUT_RD)

    def close(self) -> None:
        if self._of_outside is not self:
            self._of_outside.close()
        while self._held:
            self._held.popitem()[1].close()

    def __enter__(self) -> PortHolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# -- a port that answers no dial, without root: its accept queue is full, so the kernel drops every further SYN (Linux).
#
# dial ──► SYN ──► ✗     listen(0), and one connection that nobody accepts       open(): listen(128), then splice:
#          SYN ──► ✗     while tcp_abort_on_overflow is 0                        a dial under way is let in at its
#          SYN ──► ✗                                                             next SYN, and led to `to`

LETS_IN_S = 8.0
"""Machine time. Kernels repeat a SYN after 1, 3 and 7 s, and no client waits longer."""

_CHUNK = 65_536


class FullAcceptQueue:
    """A port whose accept queue is full, so connection attempts to `address` get no answer until `open`."""

    def __init__(self) -> None:
        self._front = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._front.bind(("127.0.0.1", 0))
        self._front.listen(0)
        self.address = Address(*self._front.getsockname()[:2])
        self._filler: socket.socket | None = socket.create_connection(self.address)

    def open(self, to: Address) -> None:
        """Forward pending connection attempts to `to` when the connecting kernel repeats its SYN. Call `open` only when
        no new connection attempts come."""
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
    """Copy bytes from one stream to the other until either ends; then closes both."""
    with contextlib.suppress(OSError):
        while data := one.recv(_CHUNK):
            other.sendall(data)
    for end in (one, other):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
    one.close()
