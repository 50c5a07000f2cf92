"""TCP sockets of this machine, from /proc: unanswered connects, and the process of a connection."""

import os
import re
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from ...remoting.node.network import Address

_DIALLING = re.compile(r"^ *\d+: ([0-9A-F]+:[0-9A-F]+) ([0-9A-F]+:[0-9A-F]+) 02 ", re.MULTILINE)
"""A line of a socket in SYN_SENT, with its two ends."""
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_IPV4_IN_6 = b"\x00" * 10 + b"\xff\xff"


class Socket(NamedTuple):
    local: Address
    remote: Address
    state: int
    inode: int


def sockets(port: int | None = None) -> Iterator[Socket]:
    """Return every TCP socket of this network namespace; with `port`, only sockets with this port at either end."""
    at = "" if port is None else f":{port:04X} "
    for table in _TABLES:
        for line in _read(table).splitlines()[1:]:
            if at in line:
                _number, local, remote, state, _queues, _timer, _retransmits, _user, _probes, inode, *_ = line.split()
                yield Socket(_address(local), _address(remote), int(state, 16), int(inode))


def dialling() -> Iterator[tuple[Address, Address]]:
    """Return both ends of each connect whose SYN was not answered yet."""
    for table in _TABLES:
        for local, remote in _DIALLING.findall(_read(table)):
            yield _address(local), _address(remote)


def _read(table: str) -> str:
    try:
        with open(table, encoding="ascii") as file:
            return file.read()
    except OSError:  # no IPv6 here
        return ""


class DiallingLately:
    """Gives its callers the result of `dialling`, and reuses a recent result.

    A result is reused for SHARE times the CPU time that reading took, but for NEW_S at least and OLD_S at most. Reading
    ten thousand sockets takes 30 ms of CPU time. An unanswered connect lasts seconds.
    """

    SHARE = 5
    NEW_S, OLD_S = 0.04, 0.2

    def __init__(
        self, now_s: Callable[[], float] = time.monotonic, cpu_s: Callable[[], float] = time.thread_time
    ) -> None:
        self._now_s, self._cpu_s = now_s, cpu_s
        self._seen: frozenset[tuple[Address, Address]] = frozenset()
        self._at_s, self._took_s = -float("inf"), 0.0

    def look(self) -> tuple[float, frozenset[tuple[Address, Address]]]:
        """Return how many seconds ago the sockets were read, and the unanswered connects."""
        if self._now_s() - self._at_s > min(self.OLD_S, max(self.NEW_S, self.SHARE * self._took_s)):
            began_s = self._cpu_s()
            self._seen = frozenset(dialling())
            self._at_s, self._took_s = self._now_s(), self._cpu_s() - began_s
        return self._now_s() - self._at_s, self._seen


def process_of(peer: Address, own: Address, processes: Iterable[int]) -> int | None:
    """Return which of these processes has the connection from `peer` to `own`; None if unknown."""
    inodes = {each.inode for each in sockets(peer.port) if each.local == peer and each.remote == own} - {0}
    return next((process for process in processes if inodes & inodes_of(process)), None)


def inodes_of(process: int | str) -> frozenset[int]:
    """Return the inodes of the process's open sockets; empty if the process is gone, or another user's."""
    found = set()
    with suppress(OSError), os.scandir(f"/proc/{process}/fd") as entries:
        for entry in entries:
            with suppress(OSError):  # closed meanwhile
                target = os.readlink(entry.path)
                if target.startswith("socket:["):
                    found.add(int(target[8:-1]))
    return frozenset(found)


def descendants(process: int) -> tuple[int, ...]:
    found, at = [process], 0
    while at < len(found):
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{found[at]}/task"):
                with open(f"/proc/{found[at]}/task/{thread}/children", encoding="ascii") as file:
                    found += map(int, file.read().split())
        at += 1
    return tuple(found)


def _address(text: str) -> Address:
    """Return the address in `0100007F:1F90`, as the kernel writes its words."""
    host, port = text.split(":")
    words = bytes.fromhex(host)
    raw = b"".join(struct.pack("!I", word) for word in struct.unpack(f"={len(words) // 4}I", words))
    if len(raw) == 16 and raw[:12] == _IPV4_IN_6:
        raw = raw[12:]
    family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
    return Address(socket.inet_ntop(family, raw), int(port, 16))
