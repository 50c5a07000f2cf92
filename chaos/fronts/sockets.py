"""What /proc says of this machine's TCP sockets: who dials without an answer, and whose a connection is."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...remoting.node.network import Address

_SYN_SENT = 2
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_IPV4_IN_6 = b"\x00" * 10 + b"\xff\xff"


class Socket(NamedTuple):
    local: Address
    remote: Address
    state: int
    inode: int


def sockets(tables: Iterable[str] = _TABLES) -> Iterator[Socket]:
    """Every TCP socket of this network namespace."""
    for table in tables:
        try:
            with open(table, encoding="ascii") as file:
                lines = file.readlines()[1:]
        except OSError:  # no IPv6 here
            continue
        for line in lines:
            _number, local, remote, state, _queues, _timer, _retransmits, _user, _probes, inode, *_ = line.split()
            yield Socket(_address(local), _address(remote), int(state, 16), int(inode))


def dialling() -> Iterator[tuple[Address, Address]]:
    """Both ends of each dial whose SYN has not been answered."""
    return ((each.local, each.remote) for each in sockets() if each.state == _SYN_SENT)


def process_of(peer: Address, own: Address, processes: Iterable[int]) -> int | None:
    """Which of these processes has the connection from `peer` to `own`; None: none of them, as far as can be seen."""
    inodes = {each.inode for each in sockets() if each.local == peer and each.remote == own}
    names = {f"socket:[{inode}]" for inode in inodes if inode}
    for process in processes:
        try:
            with os.scandir(f"/proc/{process}/fd") as entries:
                for entry in entries:
                    if os.readlink(entry.path) in names:
                        return process
        except OSError:  # it is gone, or another user's
            continue
    return None


def descendants(process: int) -> tuple[int, ...]:
    """The process and all that it has started, as far as they are there."""
    found, at = [process], 0
    while at < len(found):
        try:
            threads = os.listdir(f"/proc/{found[at]}/task")
            for thread in threads:
                with open(f"/proc/{found[at]}/task/{thread}/children", encoding="ascii") as file:
                    found += map(int, file.read().split())
        except OSError:
            pass
        at += 1
    return tuple(found)


def _address(text: str) -> Address:
    """`0100007F:1F90`, as the kernel writes its words."""
    host, port = text.split(":")
    words = bytes.fromhex(host)
    raw = b"".join(struct.pack("!I", word) for word in struct.unpack(f"={len(words) // 4}I", words))
    if len(raw) == 16 and raw[:12] == _IPV4_IN_6:
        raw = raw[12:]
    family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
    return Address(socket.inet_ntop(family, raw), int(port, 16))
