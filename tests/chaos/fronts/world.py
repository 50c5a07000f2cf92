"""A front on the loopback between plain sockets that a test drives, and what it has seen."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

import uvloop

from nemesrv.chaos.fronts.front import Front
from nemesrv.chaos.fronts.observed import Observation
from nemesrv.remoting.codes import FLAG_RESPONSE, SerializeType
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.frame import FrameReader, decode_frame, encode_frame
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address
from tests.played import played

LIMIT_S = 20.0
Seen = TypeVar("Seen", bound=Observation)


class Peer:
    """One end of a connection: what has come, and frames cut from it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._frames, self._cut = list[bytes](), FrameReader()

    def say(self, data: bytes) -> None:
        self.writer.write(data)

    async def hear(self, count: int) -> bytes:
        return await asyncio.wait_for(self.reader.readexactly(count), LIMIT_S)

    async def command(self) -> RemotingCommand:
        """The next whole frame."""
        while not self._frames:
            data = await asyncio.wait_for(self.reader.read(1 << 16), LIMIT_S)
            assert data, "the connection was closed"
            self._frames += self._cut.feed(data)
        return decode_frame(self._frames.pop(0))

    async def end(self) -> str:
        """How the other side ends it: "fin" or "rst"."""
        try:
            while await asyncio.wait_for(self.reader.read(1 << 16), LIMIT_S):
                pass
        except ConnectionResetError:
            return "rst"
        return "fin"


class World:
    """A server that the test plays, the front before it, and whoever dials."""

    def __init__(self, loop_seen: list[Observation]) -> None:
        self.seen = loop_seen
        self.accepted: asyncio.Queue[Peer] = asyncio.Queue()
        self.clock = RealClock.starting_now()
        self.front = Front("ns-0", None, self.seen.append, self.clock)

    async def open(self) -> None:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.accepted.put_nowait(Peer(reader, writer))

        self._server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=1 << 24)
        self.front.upstream = Address(*self._server.sockets[0].getsockname()[:2])
        self.address = await self.front.open()

    async def dial(self) -> Peer:
        return Peer(*await asyncio.wait_for(asyncio.open_connection(*self.address, limit=1 << 24), LIMIT_S))

    async def server(self) -> Peer:
        return await asyncio.wait_for(self.accepted.get(), LIMIT_S)

    async def pair(self) -> tuple[Peer, Peer]:
        return await self.dial(), await self.server()

    async def close(self) -> None:
        await self.front.close()
        self._server.close()

    def of(self, kind: type[Seen]) -> list[Seen]:
        return [one for one in self.seen if isinstance(one, kind)]

    async def until(self, done: Callable[[], object]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not done():  # noqa: ASYNC110
                await asyncio.sleep(0.002)


@played
def in_world(body: Callable[[World], Coroutine[None, None, None]], loop: str = "uvloop") -> None:
    """For tests: a front and its server on a loop of their own."""

    async def whole() -> None:
        world = World([])
        await world.open()
        try:
            await body(world)
        finally:
            await world.close()

    factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(whole())


def request(
    code: int, opaque: int, body: bytes = b"", *, binary: bool = False, oneway: bool = False, **fields: str
) -> bytes:
    command = RemotingCommand.request(code, fields, body, oneway=oneway)
    command.opaque = opaque
    command.serialize_type = SerializeType.ROCKETMQ if binary else SerializeType.JSON
    return encode_frame(command)


def response(opaque: int, code: int = 0, body: bytes = b"", *, binary: bool = False) -> bytes:
    command = RemotingCommand.response(code, body=body)
    command.opaque, command.flag = opaque, FLAG_RESPONSE
    command.serialize_type = SerializeType.ROCKETMQ if binary else SerializeType.JSON
    return encode_frame(command)
