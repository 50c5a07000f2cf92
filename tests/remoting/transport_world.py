"""A server on a virtual clock and an in-memory network, clients of it, and a peer that writes any bytes it likes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, Self

import pytest

from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.frame import FrameReader, decode_frame, encode_frame
from nemesrv.remoting.node.network import Address, ProtocolFactory
from nemesrv.remoting.transport import Connection, RemotingClient, RemotingServer
from tests.virtual import MemoryNetwork, VirtualClock

ADDRESS = Address("127.0.0.1", 9876)

LOG = logging.getLogger("nemesrv.test")


class World:
    """A server that echoes its request's ext fields, and what happened there; clients and bare sockets to it."""

    def __init__(self, network: MemoryNetwork | None = None, **server_options: Any) -> None:
        self.clock = VirtualClock()
        self.network = network or MemoryNetwork()
        self.closed: list[tuple[int, str, float]] = []
        self.opened: list[Connection] = []
        self.events: list[tuple[str, Address, str]] = []
        self.requests: list[RemotingCommand] = []
        options = {"handler": self.handle, **server_options}
        self.server = RemotingServer(
            clock=self.clock,
            network=self.network,
            on_open=self.opened.append,
            on_close=lambda connection, reason: self.closed.append(
                (connection.id, reason, round(self.clock.monotonic_s(), 3))
            ),
            log=LOG,
            **options,
        )

    async def __aenter__(self) -> Self:
        await self.server.listen(ADDRESS)
        return self

    async def __aexit__(self, *_: object) -> None: ...

    def handle(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand | Awaitable[RemotingCommand | None] | None:
        """`s`: answer after so many seconds. `fail`: fail. `never`: no answer."""
        self.requests.append(request)
        fields = request.ext_fields or {}
        if "fail" in fields:
            raise KeyError(fields["fail"])
        if "never" in fields:
            return None
        response = RemotingCommand.response(remark="echo", header=fields, body=request.body)
        return self.later(response, fields) if "s" in fields else response

    async def later(self, response: RemotingCommand, fields: dict[str, str]) -> RemotingCommand:
        await self.clock.sleep(float(fields["s"]))
        if "fail_later" in fields:
            raise ValueError("too late")
        return response

    def client(self, **options: Any) -> RemotingClient:
        return RemotingClient(
            clock=self.clock,
            network=self.network,
            log=LOG,
            on_event=lambda event, address, reason: self.events.append((event, address, reason)),
            **options,
        )

    async def socket(self) -> BareSocket:
        protocol = await self.network.connect(ADDRESS, BareSocket)
        assert isinstance(protocol, BareSocket)
        return protocol


class BareSocket(asyncio.Protocol):
    """A peer that writes any bytes it likes."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.closed = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.chunks.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True

    @property
    def commands(self) -> list[RemotingCommand]:
        return list(map(decode_frame, FrameReader().feed(b"".join(self.chunks))))


def request(body: bytes = b"", /, **fields: object) -> RemotingCommand:
    return RemotingCommand.request(105, {key: str(value) for key, value in fields.items()}, body)


def frame(opaque: int = 0, /, **fields: object) -> bytes:
    command = request(**fields)
    command.opaque = opaque
    return encode_frame(command)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def settle(world: World) -> None:
    """Let everything that is under way without a timer happen."""
    await world.clock.sleep(0.001)


# -- time


class SlowNetwork(MemoryNetwork):
    """Connecting takes `delay_s`."""

    delay_s = 1.0

    async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        await VirtualClock().sleep(self.delay_s)
        return await super().connect(address, factory)
