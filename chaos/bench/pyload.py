"""The load generator for a machine without a C compiler: the same arguments and output as loadgen.c, slower.

Responses must come in the order of their requests, as our own server and the echoes give them.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from pathlib import Path
from typing import cast

BASE = 100_000_000


class Client(asyncio.Protocol):
    def __init__(self, load: PyLoad, first: int) -> None:
        self._load = load
        self._opaque = BASE + first
        self._buffer = bytearray()
        self._sent: deque[tuple[int, int]] = deque()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._load.lost()

    def fire(self) -> None:
        self._opaque += self._load.connections
        if self._opaque >= 10 * BASE:
            self._opaque -= 8 * BASE
        self._sent.append((self._opaque, time.perf_counter_ns()))
        self._transport.write(self._load.request(self._opaque))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        length = self._load.response_length
        while len(self._buffer) >= length:
            opaque, sent_ns = self._sent.popleft()
            if self._buffer[:length] != self._load.response(opaque):
                self._load.bad += 1
            del self._buffer[:length]
            self._load.latencies_us.append((time.perf_counter_ns() - sent_ns) // 1000)
            self.fire()


class PyLoad:
    def __init__(self, arguments: list[str]) -> None:
        self.port, self.connections, self.in_flight = map(int, arguments[:3])
        self.seconds = float(arguments[3])
        self._text = arguments[8] == "text"
        width = 9 if self._text else 4
        self._request = _split(Path(arguments[4]), int(arguments[5]), width)
        self._response = _split(Path(arguments[6]), int(arguments[7]), width)
        self.response_length = len(self.response(BASE))
        self.latencies_us: list[int] = []
        self.bad = 0
        self._over: asyncio.Future[None] | None = None

    def _opaque(self, opaque: int) -> bytes:
        return b"%d" % opaque if self._text else opaque.to_bytes(4, "big")

    def request(self, opaque: int) -> bytes:
        return self._request[0] + self._opaque(opaque) + self._request[1]

    def response(self, opaque: int) -> bytes:
        return self._response[0] + self._opaque(opaque) + self._response[1]

    def lost(self) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_exception(ConnectionError("the server closed a connection"))

    def _end(self) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    async def run(self) -> dict[str, float]:
        loop = asyncio.get_running_loop()
        self._over = loop.create_future()
        clients = []
        for first in range(self.connections):
            _, client = await loop.create_connection(lambda first=first: Client(self, first), "127.0.0.1", self.port)  # type: ignore[misc]
            clients.append(client)
        begin = time.perf_counter()
        loop.call_later(self.seconds, self._end)
        for client in clients:
            for _ in range(self.in_flight):
                client.fire()
        await self._over
        seconds = time.perf_counter() - begin
        latencies = sorted(self.latencies_us) or [0]
        return {
            "requests": len(self.latencies_us),
            "seconds": seconds,
            "per_s": len(self.latencies_us) / seconds,
            "p50_us": latencies[len(latencies) // 2],
            "p99_us": latencies[min(len(latencies) - 1, len(latencies) * 99 // 100)],
            "bad": self.bad,
        }


def _split(path: Path, offset: int, width: int) -> tuple[bytes, bytes]:
    frame = path.read_bytes()
    return frame[:offset], frame[offset + width :]


if __name__ == "__main__":
    try:
        from uvloop import new_event_loop
    except ImportError:
        new_event_loop = asyncio.new_event_loop
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        print(json.dumps(runner.run(PyLoad(sys.argv[1:]).run())))
