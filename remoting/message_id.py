"""The two message ids: one with the storing broker's address, one with the sender's. Both message ids are upper-case
hex, and on IPv4 both have the same length.

    offset id    store host IP 4 or 16 · port 4 · commit-log offset 8                        32 or 56 characters
    uniq id      IP 4 or 16 · pid 2 · class-loader hash 4 · ms since the month began 4 · counter 2

Upstream: `MessageDecoder.createMessageId`, `MessageClientIDSetter`, `UtilAll`.
"""

import random
import struct
from datetime import UTC, datetime
from functools import lru_cache, partial
from ipaddress import IPv4Address, IPv6Address, ip_address

from .errors import LocalProtocolError, RemoteProtocolError
from .node.network import Address


@lru_cache(maxsize=8192)
def pack_host(address: Address) -> bytes:
    """Return the IP address (4 or 16 bytes) and then the port (4 bytes). Raises LocalProtocolError for a host name."""
    return pack_ip(address.host) + address.port.to_bytes(4, "big", signed=True)


@lru_cache(maxsize=8192)
def unpack_host(packed: bytes) -> Address:
    """Return the address in the 8 or 20 bytes that pack_host returned."""
    ip = packed[:-4]
    host = IPv4Address(ip) if len(ip) == 4 else IPv6Address(ip)
    return Address(str(host), int.from_bytes(packed[-4:], "big", signed=True))


@lru_cache(maxsize=8192)
def pack_ip(host: str) -> bytes:
    """Return the 4 or 16 bytes of an IP address. Raises LocalProtocolError if `host` is not an IP address."""
    try:
        return ip_address(host).packed
    except ValueError:
        raise LocalProtocolError(f"host {host!r} is not an IP address, and a record can hold nothing else") from None


def offset_msg_id(store_host: Address, physical_offset: int) -> str:
    """Return the id with which a broker answers a send (`SendResult.offsetMsgId`)."""
    return (pack_host(store_host) + physical_offset.to_bytes(8, "big", signed=True)).hex().upper()


def parse_offset_msg_id(text: str) -> tuple[Address, int]:
    """Return store host and commit-log offset of an offset id. Raises RemoteProtocolError for any other text."""
    try:
        packed = bytes.fromhex(text)
    except ValueError:
        raise RemoteProtocolError(f"message id {text!r} is not hexadecimal") from None
    if len(text) not in (32, 56) or 2 * len(packed) != len(text):
        raise RemoteProtocolError(f"message id {text!r} is not of 32 or 56 hexadecimal characters")
    return unpack_host(packed[:-8]), int.from_bytes(packed[-8:], "big", signed=True)


def uniq_id(*, host: str, pid: int, loader_hash: int, now_ms: int, counter: int) -> str:
    """Return the UNIQ_KEY of one message. Every number is cut to its field's width, as in Java."""
    since_month_ms = (now_ms - _month_start_ms(now_ms // 86_400_000)) & 0xFFFFFFFF
    numbers = struct.pack(">HIIH", pid & 0xFFFF, loader_hash & 0xFFFFFFFF, since_month_ms, counter & 0xFFFF)
    return (pack_ip(host) + numbers).hex().upper()


class UniqIdGenerator:
    """Makes one client's uniq ids. Process id and class-loader hash are drawn from `rng`, so that a seed repeats the
    ids, and clients on one host differ. Up to 65,536 ids in one millisecond are distinct."""

    def __init__(self, host: str, rng: random.Random, *, counter: int = 0) -> None:
        self._uniq_id = partial(uniq_id, host=host, pid=rng.getrandbits(16), loader_hash=rng.getrandbits(32))
        self._counter = counter

    def next_id(self, now_ms: int) -> str:
        self._counter += 1
        return self._uniq_id(now_ms=now_ms, counter=self._counter - 1)


@lru_cache(maxsize=4)
def _month_start_ms(day: int) -> int:
    """Wall clock at which the (UTC) month of that day since 1970 began."""
    date = datetime.fromtimestamp(day * 86_400, UTC)
    return (day - date.day + 1) * 86_400_000
