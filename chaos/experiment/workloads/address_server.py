"""The address server: answers `GET /rocketmq/nsaddr` with the list of NameServers that the harness set last. The list
is on disk, so it survives a restart."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from ....remoting.node.network import Address, Listener
from ....remoting.node.node import Node, NodeContext
from ....remoting.top_addressing import PATH

_REQUEST_MAX = 16 * 1024


class _Answering(asyncio.Protocol):
    """One connection. A connection of the address server answers its first request, then closes."""

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text
        self._asked = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class

    def data_received(self, data: bytes) -> None:
        self._asked += data
        if self._transport is None or (b"\r\n\r\n" not in self._asked and len(self._asked) < _REQUEST_MAX):
            return
        words = self._asked.split(b"\r\n", 1)[0].split()
        found = len(words) > 1 and words[0] == b"GET" and words[1].split(b"?")[0] == PATH.encode()
        body = f"{self._text()}\n".encode() if found else b""
        head = f"HTTP/1.0 {'200 OK' if found else '404 Not Found'}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)
        self._transport.close()


class AddressServerNode(Node):
    """A Node that serves the list of NameServers to clients and brokers that have no list of their own."""

    def __init__(self, context: NodeContext, listen: Address, name_servers: Sequence[Address]) -> None:
        self._context, self._listen = context, listen
        self._text = ";".join(map(str, name_servers))
        self._listener: Listener | None = None

    async def listen(self) -> Address | None:
        if self._file is not None and self._file.exists():
            self._text = self._file.read_text(encoding="utf-8")
        listener = await self._context.network.listen(self._listen, lambda: _Answering(lambda: self._text))
        self._listener = listener
        return listener.address

    async def stop(self) -> None:
        if self._listener is not None:
            await self._listener.close()

    def serve(self, name_servers: Sequence[Address]) -> None:
        self._text = ";".join(map(str, name_servers))
        if self._file is not None:
            self._file.write_text(self._text, encoding="utf-8")

    @property
    def _file(self) -> Path | None:
        return None if self._context.data_dir is None else self._context.data_dir / "name_servers"
