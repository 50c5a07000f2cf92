"""A node's only source of connections: connect and listen, by asyncio's transports and protocols.

With `TcpNetwork` and links every byte passes a proxy: a node connects to its peer's own address, and the network
connects it to the proxy of this (node, peer) pair. With links, a connection to an address without a link is refused,
because faults affect only traffic through proxies.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple, Protocol

from ..errors import ConnectError


class Address(NamedTuple):
    """An address, written host:port as in RocketMQ."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Return `"127.0.0.1:9876"` as an Address. Raises ValueError for other text."""
        host, colon, port = text.strip().rpartition(":")
        if (
            not colon
            or not host
            or set(host) & set(",;/ ")
            or not port.isascii()
            or not port.isdigit()
            or not 0 <= int(port) <= 65535
        ):
            raise ValueError(f"address {text!r} is not host:port with a port of 0 to 65535")
        return cls(host.strip("[]"), int(port))

    @property
    def vip_channel(self) -> Address:
        """The broker's VIP address, two ports below, to which Java clients 3.5.8 to 4.4.0 send
        (`MixAll.brokerVIPChannel`)."""
        return self._replace(port=self.port - 2)

    def __str__(self) -> str:
        return _host_port(self)


@lru_cache(maxsize=4096)
def _host_port(address: Address) -> str:
    return f"[{address.host}]:{address.port}" if ":" in address.host else f"{address.host}:{address.port}"


class Listener(Protocol):
    @property
    def address(self) -> Address:
        """The address of the listening socket, with the port that the system chose."""

    async def close(self) -> None:
        """Stop accepting; accepted connections are not closed."""


ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class Network(Protocol):
    async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        """Connect, and return the connected protocol. Raises ConnectError. The caller must limit the time."""

    async def listen(self, address: Address, factory: ProtocolFactory) -> Listener:
        """Accept connections on `address` (port 0: any free port). Raises OSError if the port
        is taken or the address is not this machine's."""


class _TcpListener:
    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        host, port = server.sockets[0].getsockname()[:2]
        self.address = Address(host, port)

    async def close(self) -> None:
        self._server.close()


class TcpNetwork:
    """Real sockets. With `links`, every connection goes to the harness's proxy for that peer."""

    def __init__(self, links: Mapping[Address, Address] | None = None) -> None:
        self._links = None if links is None else dict(links)

    def set_links(self, links: Mapping[Address, Address]) -> None:
        """From now on connect only through `links`, which maps each peer's address to a proxy's address."""
        self._links = dict(links)

    def dialled_at(self, address: Address) -> Address | None:
        """Return the address at which this node reaches the peer now; None without a link to the peer."""
        return address if self._links is None else self._links.get(address)

    async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        target = self.dialled_at(address)
        if target is None:
            raise ConnectError(f"connect to {address} failed: this node has no link to it")
        try:
            transport, protocol = await asyncio.get_running_loop().create_connection(factory, target.host, target.port)
        except OSError as exc:
            # asyncio's own text names the address again, and it would be the proxy's
            reason = os.strerror(exc.errno) if exc.errno and exc.errno > 0 else exc.strerror or exc
            raise ConnectError(f"connect to {address} failed: {reason}") from exc
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return protocol

    async def listen(self, address: Address, factory: ProtocolFactory) -> Listener:
        server = await asyncio.get_running_loop().create_server(factory, address.host, address.port, backlog=1024)
        return _TcpListener(server)
