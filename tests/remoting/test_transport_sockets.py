"""The transport over real sockets on 127.0.0.1, on asyncio's own loop and on uvloop."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import ConnectError, ConnectionLost
from nemesrv.remoting.frame import encode_frame
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address, TcpNetwork
from nemesrv.remoting.transport import Connection, RemotingClient, RemotingServer
from tests.played import Test, played

LOG = logging.getLogger("nemesrv.test")
MIB = 1 << 20

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def on_loop(body: Callable[[Server], Awaitable[None]], loop: str) -> None:
    """With a server, which is closed at the end."""

    async def main() -> None:
        async with asyncio.timeout(20), Server() as server:
            await body(server)

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(main())


class Server:
    """Echoes."""

    def __init__(self) -> None:
        self.lost: asyncio.Queue[str] = asyncio.Queue()
        self.opened: asyncio.Queue[Connection] = asyncio.Queue()
        self.remoting = RemotingServer(
            clock=RealClock.starting_now(),
            network=TcpNetwork(),
            handler=self.handle,
            on_open=self.opened.put_nowait,
            on_close=lambda connection, reason: self.lost.put_nowait(reason),
            log=LOG,
        )
        self.address = Address("", 0)

    def handle(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        return RemotingCommand.response(body=request.body)

    async def __aenter__(self) -> Server:
        self.address = await self.remoting.listen(Address("127.0.0.1", 0))
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.remoting.close()
        assert not self.remoting.connections


def on_each_loop(test: Test) -> Test:
    return pytest.mark.parametrize("loop", LOOPS)(played(on_loop)(test))


def client(on_event: Callable[[str, Address, str], None] | None = None) -> RemotingClient:
    return RemotingClient(clock=RealClock.starting_now(), network=TcpNetwork(), on_event=on_event, log=LOG)


@on_each_loop
async def test_calls_of_all_sizes_cross_real_sockets(server: Server) -> None:
    remoting = client()
    bodies = [b"", b"x", bytes(70_000), bytes(5 * MIB)]
    answers = await asyncio.gather(
        *(remoting.invoke(server.address, RemotingCommand.request(1, body=sent)) for sent in bodies)
    )
    assert [answer.body for answer in answers] == bodies
    connection = await server.opened.get()
    assert server.opened.empty()
    assert connection.local_address == server.address
    assert connection.remote_address.host == "127.0.0.1"
    await remoting.close()
    assert await server.lost.get() == "closed"


@on_each_loop
async def test_a_reset_connection_is_lost_by_exception(server: Server) -> None:
    sock, loop = socket.socket(), asyncio.get_running_loop()
    sock.setblocking(False)
    await loop.sock_connect(sock, tuple(server.address))
    await loop.sock_sendall(sock, encode_frame(RemotingCommand.request(1)))
    await server.opened.get()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
    assert await server.lost.get() == "exception"


@on_each_loop
async def test_a_server_that_goes_away_fails_its_calls_and_refuses_the_next(server: Server) -> None:
    events: asyncio.Queue[str] = asyncio.Queue()
    remoting = client(lambda event, address, reason: events.put_nowait(event))
    async with Server() as gone:
        await remoting.invoke(gone.address, RemotingCommand.request(1))
        connection = await gone.opened.get()
        assert remoting.is_active(gone.address)
        call = asyncio.create_task(connection.invoke(RemotingCommand.request(1, oneway=True), timeout_s=10))
        await asyncio.sleep(0)
    with pytest.raises(ConnectionLost):
        await call
    assert [await events.get(), await events.get()] == ["open", "close"]
    assert not remoting.is_active(gone.address)
    with pytest.raises(ConnectError, match="refused"):
        await remoting.invoke(gone.address, RemotingCommand.request(1))
    await remoting.close()
