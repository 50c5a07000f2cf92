"""A tiny Node: listens where told, echoes, dials its peer through its own links, and tells what happened to that."""

import asyncio
import os
import sys
from dataclasses import dataclass, field
from typing import Any

from nemesrv.remoting.node.network import Address, Listener
from nemesrv.remoting.node.node import NodeContext


class _Echo(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


@dataclass
class _Dialled(asyncio.Protocol):
    answers: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.answers.put_nowait(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()


class TinyNode:
    def __init__(self, context: NodeContext, *, listen: Address | None = None, fails_in: str = "") -> None:
        self._context, self._listen, self._fails_in = context, listen, fails_in
        self._listener: Listener | None = None
        self._dialled: _Dialled | None = None

    async def listen(self) -> Address | None:
        self._fail("listen")
        if self._listen is None:
            return None
        self._listener = await self._context.network.listen(self._listen, _Echo)
        return self._listener.address

    async def start(self) -> None:
        self._fail("start")
        self._context.log.info("%s works", self._context.name)
        if self._context.data_dir is not None:
            with (self._context.data_dir / "starts").open("a") as file:
                file.write("*")

    async def stop(self) -> None:
        self._context.record("topic")
        if self._listener is not None:
            await self._listener.close()

    def _fail(self, step: str) -> None:
        if self._fails_in == step:
            raise OSError(98, f"planted in {step}")

    # what tests call

    def starts(self) -> int:
        assert self._context.data_dir is not None
        return len((self._context.data_dir / "starts").read_text())

    def number(self) -> float:
        return self._context.rng.random()

    def where(self) -> tuple[int, str, str]:
        return os.getpid(), os.getcwd(), type(asyncio.get_running_loop()).__module__

    def complain(self) -> None:
        print("a stray complaint", file=sys.stderr)
        raise LookupError("nothing here")

    async def dial(self, address: Address) -> None:
        protocol = await self._context.network.connect(address, _Dialled)
        assert isinstance(protocol, _Dialled)
        self._dialled = protocol

    async def ask(self, data: bytes) -> bytes:
        assert self._dialled is not None
        self._dialled.transport.write(data)
        return await self._dialled.answers.get()

    def is_cut_off(self) -> bool:
        assert self._dialled is not None
        return self._dialled.closed.is_set()

    async def closed_at_ms(self) -> float:
        """When the dialled connection closed, or closes."""
        assert self._dialled is not None
        await self._dialled.closed.wait()
        return self._context.clock.monotonic_s() * 1000

    async def never(self) -> None:
        await asyncio.Event().wait()
