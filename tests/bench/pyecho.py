"""The cheapest Python server that moves the same bytes: one protocol on uvloop, nothing parsed. See echo.c.

python -P pyecho.py REQUEST_LENGTH REQUEST_OFFSET RESPONSE_FILE RESPONSE_OFFSET text|binary
"""

import asyncio
import sys
from pathlib import Path
from typing import cast


class Echo(asyncio.Protocol):
    def __init__(self, request_length: int, request_offset: int, head: bytes, tail: bytes, width: int) -> None:
        self._length, self._begin, self._end = request_length, request_offset, request_offset + width
        self._head, self._tail = head, tail
        self._buffer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if len(data) == self._length and not self._buffer:
            self._transport.write(b"".join((self._head, data[self._begin : self._end], self._tail)))
            return
        self._buffer += data
        out = []
        while len(self._buffer) >= self._length:
            out += [self._head, self._buffer[self._begin : self._end], self._tail]
            self._buffer = self._buffer[self._length :]
        if out:
            self._transport.write(b"".join(out))


async def serve(arguments: list[str], response: bytes) -> None:
    offset, width = int(arguments[3]), 9 if arguments[4] == "text" else 4
    head, tail = response[:offset], response[offset + width :]
    length, request_offset = int(arguments[0]), int(arguments[1])
    server = await asyncio.get_running_loop().create_server(
        lambda: Echo(length, request_offset, head, tail, width), "127.0.0.1", 0
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    try:
        from uvloop import new_event_loop
    except ImportError:
        new_event_loop = asyncio.new_event_loop
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serve(sys.argv[1:], Path(sys.argv[3]).read_bytes()))
