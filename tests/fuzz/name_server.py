"""A whole NameServer without sockets or a loop: bytes into a channel, bytes out of it, time stepped by hand."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.route_cache import may_be_route_request
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.remoting.connection import Connection
from nemesrv.remoting.frame import FrameReader, decode_frame
from nemesrv.remoting.node.network import Address, TcpNetwork
from nemesrv.remoting.node.node import NodeContext
from nemesrv.remoting.node.profile import Profile

TICK_MS = 50
SCAN_EVERY = 100


class _Clock:
    """Time that the fuzzer moves; timers never fire."""

    now = 1_700_000_000_000

    def monotonic_s(self) -> float:
        return self.now / 1000

    def now_ms(self) -> int:
        return self.now

    async def sleep(self, delay_s: float) -> None: ...

    def call_later(self, delay_s: float, callback: Callable[..., object], *args: object) -> _Clock:
        return self

    def cancel(self) -> None: ...

    def timeout(self, delay_s: float | None) -> AbstractAsyncContextManager[object]:
        return nullcontext()


class _Wire:
    """The transport of one channel: what the server writes."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.protocol: Connection | None = None

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return ("10.9.9.9", 999)

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class _Findings(logging.Handler):
    """An error that nobody foresaw is logged with its traceback: that is a finding."""

    def __init__(self) -> None:
        super().__init__()
        self.found: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            self.found = record.exc_info[1]


class NameServerUnderFuzz:
    """Each call is one channel's bytes; a route request gets the same answer from the cache and from the table."""

    def __init__(self, profile: str) -> None:
        self._clock, self._findings = _Clock(), _Findings()
        log = logging.Logger("fuzzed")  # of its own: it is no part of the process's logging
        log.addHandler(self._findings)
        context = NodeContext(
            name="fuzzed",
            clock=self._clock,
            network=TcpNetwork(),
            rng=random.Random(0),
            record=lambda event, /, **fields: None,
            log=log,
        )
        config = NamesrvConfig(profile=Profile(profile), support_acting_master=True)
        self._server = NameServer(context, config, listen=Address("127.0.0.1", 0))
        self._inputs = 0

    def __call__(self, data: bytes) -> None:
        self._inputs += 1
        self._clock.now += TICK_MS
        connection, wire = self._open()
        connection.data_received(data)
        self._check()
        if len(data) > 16 and may_be_route_request(data):
            self._same_from_the_table(data, wire)
        for written in wire.written:
            for frame in FrameReader().feed(written):
                assert decode_frame(frame).is_response
        if self._inputs % 3:
            connection.connection_lost(None)
        if self._inputs % SCAN_EVERY == 0:
            self._clock.now += 30_000
            self._server._expire_brokers()
            self._server._settle(self._server.table.run_unregistrations().dropped)
        self._check()

    def _open(self) -> tuple[Connection, _Wire]:
        connection, wire = Connection(self._server._server), _Wire()
        transport: Any = wire
        connection.connection_made(transport)
        return connection, wire

    def _same_from_the_table(self, data: bytes, wire: _Wire) -> None:
        other, slow = self._open()
        other._fast_path = None
        self._server.cache.clear()
        other.data_received(data)
        assert b"".join(slow.written) == b"".join(wire.written)
        other.connection_lost(None)

    def _check(self) -> None:
        found, self._findings.found = self._findings.found, None
        if found is not None:
            raise found
