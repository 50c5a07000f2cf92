"""The load generator for a machine without a C compiler: the same arguments and output as loadgen.c, slower.

Responses must come in the order of their requests, as our own server and the echoes give them.
"""

from __future__ import annotations

import asyncio
import itertools
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
        self._frame = first
        self._sent: deque[tuple[int, int]] = deque()
        self.answered = asyncio.Event()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._load.lost()

    @property
    def waits(self) -> int:
        return len(self._sent)

    def fire(self, due_ns: int | None = None) -> None:
        self._opaque += self._load.connections
        if self._opaque >= 10 * BASE:
            self._opaque -= 8 * BASE
        self._sent.append((self._opaque, time.perf_counter_ns() if due_ns is None else due_ns))
        self._transport.write(self._load.request(self._frame, self._opaque))
        self._frame += self._load.connections

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        length = self._load.response_length
        while len(self._buffer) >= length:
            opaque, sent_ns = self._sent.popleft()
            if self._buffer[:length] != self._load.response(opaque):
                self._load.bad += 1
            del self._buffer[:length]
            self.answered.set()
            self._load.answered(sent_ns)
            if not self._load.per_s:
                self.fire()


class PyLoad:
    def __init__(self, arguments: list[str]) -> None:
        self.port, self.connections, self.in_flight = map(int, arguments[:3])
        self.seconds, self.per_s = map(float, arguments[3:5])
        self._text, self._response_text = arguments[8] == "text", arguments[11] == "text"
        data, frames = Path(arguments[5]).read_bytes(), int(arguments[6])
        length = len(data) // frames
        self._requests = [
            _split(data[at : at + length], int(arguments[7]), self._text) for at in range(0, length * frames, length)
        ]
        self._response = _split(Path(arguments[9]).read_bytes(), int(arguments[10]), self._response_text)
        self.response_length = len(self.response(BASE))
        self.latencies_us: list[int] = []
        self.bad = 0
        self._last_s = 0.0
        self._over: asyncio.Future[None] | None = None

    def request(self, number: int, opaque: int) -> bytes:
        before, after = self._requests[number % len(self._requests)]
        return before + _opaque(opaque, self._text) + after

    def response(self, opaque: int) -> bytes:
        return self._response[0] + _opaque(opaque, self._response_text) + self._response[1]

    def answered(self, sent_ns: int) -> None:
        self._last_s = time.perf_counter()
        self.latencies_us.append((time.perf_counter_ns() - sent_ns) // 1000)

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
        begin = self._last_s = time.perf_counter()
        loop.call_later(self.seconds, self._end)
        if self.per_s:
            pace = asyncio.create_task(self._pace(clients))
            await self._over
            pace.cancel()
        else:
            for client in clients:
                for _ in range(self.in_flight):
                    client.fire()
            await self._over
        seconds = self._last_s - begin
        latencies = sorted(self.latencies_us) or [0]
        return {
            "requests": len(self.latencies_us),
            "seconds": seconds,
            "per_s": len(self.latencies_us) / seconds if seconds else 0.0,
            "p50_us": latencies[len(latencies) // 2],
            "p99_us": latencies[min(len(latencies) - 1, len(latencies) * 99 // 100)],
            "max_us": latencies[-1],
            "bad": self.bad,
        }

    async def _pace(self, clients: list[Client]) -> None:
        begin_ns = time.perf_counter_ns()
        for number in itertools.count():
            due_ns = begin_ns + int(number * 1e9 / self.per_s)
            client = clients[number % len(clients)]
            await asyncio.sleep(max((due_ns - time.perf_counter_ns()) / 1e9, 0))
            while client.waits >= self.in_flight:
                client.answered.clear()
                await client.answered.wait()
            client.fire(due_ns)


def _opaque(opaque: int, text: bool) -> bytes:
    return b"%d" % opaque if text else opaque.to_bytes(4, "big")


def _split(frame: bytes, offset: int, text: bool) -> tuple[bytes, bytes]:
    return frame[:offset], frame[offset + (9 if text else 4) :]


if __name__ == "__main__":
    try:
        from uvloop import new_event_loop
    except ImportError:
        new_event_loop = asyncio.new_event_loop
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        print(json.dumps(runner.run(PyLoad(sys.argv[1:]).run())))
