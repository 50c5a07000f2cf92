"""Packets of links lost by the kernel, by nf_tables: no packet of a direction arrives, SYN and FIN neither.

    node ──► SYN, bytes ──► lo ──► ✗ input: tcp dport in `to`  ──► proxy of the link, port P     upstream: P in `to`
         ◄── ✗ input: tcp sport in `from` ◄── lo ◄── SYN-ACK, bytes ◄──                        downstream: in `from`

Every link has a proxy with a port of its own on its node's host, so a port is a link. What is dropped has left the
sender, who sends again by its own timers; the proxy's other leg stays, so that the peer sees a link on which nothing
comes. One table, two sets of ports, two rules, asked of the kernel by netlink: no program is needed, but
CAP_NET_ADMIN in the network namespace. The table has the socket as its owner, and the kernel removes it with the
socket, however this process ends. Linux 5.12 or newer.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import threading
from collections.abc import Iterable, Iterator

from ..errors import HarnessError
from .link_faults import Direction

RIGHTS = "needs root, or CAP_NET_ADMIN in the network namespace"
ANSWER_LIMIT_S = 5.0

_NETLINK_NETFILTER, _SUBSYSTEM = 12, 10
_REQUEST, _ACK, _CREATE = 0x1, 0x4, 0x400
_NESTED = 0x8000
_BATCH_BEGIN, _BATCH_END, _ERROR = 0x10, 0x11, 0x2
_NEW_TABLE, _NEW_CHAIN, _NEW_RULE, _NEW_SET, _NEW_ELEMENT, _DEL_ELEMENT = 0, 3, 6, 9, 12, 14
_IPV4, _OWNER = 2, 0x2
_LOCAL_IN, _PRIORITY = 1, -300
_REGISTER, _VERDICT = 1, 0
_L4_PROTO, _TRANSPORT, _TCP = 16, 2, 6
_SERVICE_TYPE = 13
_TO, _FROM, _CHAIN = "to", "from", "input"
_SET_OF: dict[Direction, str] = {"upstream": _TO, "downstream": _FROM}


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def _nested(kind: int, *parts: bytes) -> bytes:
    return _attribute(kind | _NESTED, b"".join(parts))


def _text(kind: int, text: str) -> bytes:
    return _attribute(kind, text.encode() + b"\0")


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack(">i" if value < 0 else ">I", value))


def _expression(name: str, *data: bytes) -> bytes:
    return _nested(1, _text(1, name), _nested(2, *data))


def _drop_where(offset: int, ports: str) -> bytes:
    """The expressions of: meta l4proto tcp, this port of the header in the set, drop."""
    return _nested(
        4,
        _expression("meta", _number(1, _REGISTER), _number(2, _L4_PROTO)),
        _expression("cmp", _number(1, _REGISTER), _number(2, 0), _nested(3, _attribute(1, bytes([_TCP])))),
        _expression("payload", _number(1, _REGISTER), _number(2, _TRANSPORT), _number(3, offset), _number(4, 2)),
        _expression("lookup", _text(1, ports), _number(2, _REGISTER)),
        _expression("immediate", _number(1, _VERDICT), _nested(2, _nested(2, _number(1, 0)))),
    )


class PacketDrop:
    """Context manager; any thread may call. Nothing is dropped before the first `lose`, and nothing after `close`."""

    def __init__(self) -> None:
        """HarnessError, in one sentence, where the kernel or our rights do not allow it."""
        self._lock = threading.Lock()
        self._lost: set[tuple[str, int]] = set()
        self._number = 0
        self._table = f"nemesrv-{os.getpid()}-{id(self):x}"
        try:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_NETFILTER)
        except OSError as exc:
            raise HarnessError(f"injection: packet needs nf_tables, which this kernel has not: {exc.strerror}") from exc
        try:
            self._socket.settimeout(ANSWER_LIMIT_S)
            self._socket.bind((0, 0))
            self._ask(self._made())
        except BaseException:
            self._socket.close()
            raise

    def _made(self) -> Iterator[tuple[int, bytes]]:
        table = _text(1, self._table)
        yield _NEW_TABLE, table + _number(2, _OWNER)
        hook = _nested(4, _number(1, _LOCAL_IN), _number(2, _PRIORITY))
        yield _NEW_CHAIN, table + _text(3, _CHAIN) + hook + _text(7, "filter")
        for number, name in enumerate((_TO, _FROM), start=1):
            key = _number(4, _SERVICE_TYPE) + _number(5, 2)
            yield _NEW_SET, table + _text(2, name) + _number(3, 0) + key + _number(10, number)
        for offset, name in ((2, _TO), (0, _FROM)):
            yield _NEW_RULE, table + _text(2, _CHAIN) + _drop_where(offset, name)

    def lose(self, ports: Iterable[int], directions: Iterable[Direction]) -> None:
        """From now on exactly these directions of the links whose proxies listen there lose every packet."""
        wanted = {_SET_OF[direction] for direction in directions}
        with self._lock:
            changes = []
            for port in ports:
                for name in (_TO, _FROM):
                    if (name in wanted) != ((name, port) in self._lost):
                        changes.append((name, port))
            if changes:
                self._ask(self._changed(changes))
                self._lost ^= set(changes)

    def _changed(self, changes: Iterable[tuple[str, int]]) -> Iterator[tuple[int, bytes]]:
        for name, port in changes:
            element = _nested(1, _nested(1, _attribute(1, struct.pack(">H", port))))
            asked = _text(1, self._table) + _text(2, name) + _nested(3, element)
            yield _DEL_ELEMENT if (name, port) in self._lost else _NEW_ELEMENT, asked

    def _ask(self, wanted: Iterable[tuple[int, bytes]]) -> None:
        """All of it is done, or nothing, and HarnessError says why."""
        batch = [self._message(_BATCH_BEGIN, b"", of=0, resource=_SUBSYSTEM)]
        first = self._number + 1
        for command, attributes in wanted:
            flags = _ACK | (0 if command == _DEL_ELEMENT else _CREATE)
            batch.append(self._message(_SUBSYSTEM << 8 | command, attributes, flags=flags))
        awaited = set(range(first, self._number + 1))
        batch.append(self._message(_BATCH_END, b"", of=0, resource=_SUBSYSTEM))
        failed = 0
        try:
            self._socket.send(b"".join(batch))
            while awaited and not failed:
                data = self._socket.recv(1 << 16)
                while len(data) >= 20:
                    length, kind, _, number, _ = struct.unpack_from("=IHHII", data)
                    if kind == _ERROR:
                        failed = failed or -struct.unpack_from("=i", data, 16)[0]
                        awaited.discard(number)
                    data = data[-(-length // 4) * 4 :]
        except OSError as exc:
            raise HarnessError(f"injection: packet failed: {exc.strerror or 'the kernel did not answer'}") from exc
        if failed in (errno.EPERM, errno.EACCES):
            raise HarnessError(f"injection: packet {RIGHTS}, which this process has not")
        if failed:
            raise HarnessError(f"injection: packet needs nf_tables of Linux 5.12 or newer: {os.strerror(failed)}")

    def _message(self, kind: int, attributes: bytes, *, flags: int = 0, of: int = _IPV4, resource: int = 0) -> bytes:
        self._number += 1
        body = struct.pack("=BB", of, 0) + struct.pack(">H", resource) + attributes
        return struct.pack("=IHHII", 16 + len(body), kind, _REQUEST | flags, self._number, 0) + body

    def close(self) -> None:
        """Every packet passes again."""
        self._socket.close()

    def __enter__(self) -> PacketDrop:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def require_packet_drop() -> None:
    """HarnessError where no packet can be dropped here; nothing is left of the trial."""
    PacketDrop().close()
