"""A bandwidth limit proves itself: known bytes go over the limited link while the fault is on, and their time is taken.

    harness ── route query, body of n bytes ──► the link's own proxy ──► its peer      upstream: 2 n over the time that
            ◄── "no such topic" ──                                                     the longer took more

RocketMQ's rows cannot tell a narrow link from a busy peer. So the harness dials the link as its node does and asks the
peer, a NameServer or a broker, something that leaves no trace: the route of a topic that nobody has. Once with a few
bytes and once with many: what the difference in bytes took more is the link's rate, whatever else delays each
exchange. Where only answers are slowed, many short queries take the place of a long one. The quickest of ROUNDS
exchanges counts, so that one stall of the machine proves nothing; and where there is a way around the proxy, the same
exchange must be FREE times as quick there, so that a peer slower than the limit proves nothing either.

A limit that holds is recorded as `verified`; one that does not is only logged, and the check `exercised` says UNKNOWN.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple, cast

from ...remoting.codes import RequestCode
from ...remoting.command import RemotingCommand
from ...remoting.errors import RocketMQError
from ...remoting.frame import FrameReader, encode_frame
from ...remoting.node.clock import Clock
from ...remoting.node.network import Address, Network
from ..topology import Link
from .link_faults import Bandwidth, Direction, LinkFault
from .measuring import Measuring, Route, Started

log = logging.getLogger("nemesrv.bandwidth")

EXCHANGE_S = 0.3
"""Of the machine's time: how long the limit should make an exchange take."""
QUERY_BYTES_MIN, QUERY_BYTES_MAX = 2_000, 500_000
"""Bytes of a long query."""
MOST_ANSWERS = 250
"""Short queries in one exchange."""
ROUNDS = 3
PAUSE_S, PATIENCE_S = 0.1, 2.0
"""Of the machine's time: after an exchange that failed, and how long one may take beyond its due."""
ATTEMPTS = 3
"""Whole measurements that show no limit before it is taken for none; those that an error ends do not count."""
LINKS_MAX = 4
"""Links of one fault that are measured."""
SLACK = 1.25
"""A rate up to this many times the limit is the limit's doing."""
BYPASS_FACTOR = 2.0

_TOPIC = "nemesrv-bandwidth"


class Measured(NamedTuple):
    sent: int
    """Bytes by which the long exchange was longer, in the direction that counts."""
    took_ms: float
    """How much longer it took, in RocketMQ milliseconds."""

    @property
    def kb_s(self) -> float:
        return self.sent / max(self.took_ms, 0.001)


class BandwidthProofs:
    """What a LinkFaultInjector tells of its faults."""

    def __init__(self, measuring: Measuring) -> None:
        self._measuring, self._clock, self._scale = measuring, measuring.clock, measuring.scale
        self._spawn, self._note = measuring.spawn, measuring.note
        self._running: dict[str, list[Started]] = {}

    def begun(self, fault_id: str, fault: LinkFault, links: Sequence[Link]) -> None:
        """The fault is on from now on."""
        if isinstance(fault, Bandwidth):
            self._running[fault_id] = [
                self._spawn(self._prove(fault_id, fault, link)) for link in tuple(links)[:LINKS_MAX]
            ]

    def ending(self, fault_id: str) -> None:
        """The fault ends now: nothing measured from here on is of it."""
        for task in self._running.pop(fault_id, ()):
            task.cancel()

    async def _prove(self, fault_id: str, fault: Bandwidth, link: Link) -> None:
        direction: Direction = "upstream" if fault.works_on("upstream") else "downstream"
        limit_kb_s = max(1, round(fault.rate_kb_s * self._scale)) / self._scale  # as `combine` has it
        attempts = 0
        while attempts < ATTEMPTS:
            try:
                over, around = await self._measuring.of(link, rates_of, self._scale, direction, limit_kb_s)
            except (OSError, RocketMQError, TimeoutError):  # something else is wrong with the link, or its peer
                await self._clock.sleep(PAUSE_S * self._scale)
                continue
            attempts += 1
            if over.kb_s <= SLACK * limit_kb_s and (around is None or around.kb_s >= BYPASS_FACTOR * limit_kb_s):
                value = {
                    "source": link.node,
                    "target": link.peer,
                    "stream": direction,
                    "rate_kb_s": fault.rate_kb_s,
                    "kb_s": round(over.kb_s, 3),
                    "bytes": over.sent,
                    "took_ms": round(over.took_ms, 3),
                }
                await self._note("verified", fault_id=fault_id, value=value)
                return
            log.info("%s: %s carries %.0f kB/s, its limit is %g kB/s", fault_id, link, over.kb_s, limit_kb_s)


async def rates_of(
    clock: Clock, way: Route, scale: float, direction: Direction, limit_kb_s: float
) -> tuple[Measured, Measured | None]:
    """What the link carries, and what goes around its proxy where that is possible."""
    over = await _rate(clock, scale, way.network, way.over, direction, limit_kb_s)
    if way.around is None:
        return over, None
    return over, await _rate(clock, scale, way.network, way.around, direction, limit_kb_s)


async def _rate(
    clock: Clock, scale: float, network: Network, address: Address, direction: Direction, limit_kb_s: float
) -> Measured:
    """OSError, ConnectError or TimeoutError when an exchange does not come to its end."""
    due_s = EXCHANGE_S * scale
    limit_s = 2 * ROUNDS * (2 * due_s + PATIENCE_S * scale)
    async with clock.timeout(limit_s):
        exchanges = await network.connect(address, _Exchanges)
        assert isinstance(exchanges, _Exchanges)
        try:
            wanted = min(max(QUERY_BYTES_MIN, int(limit_kb_s * 1000 * due_s)), QUERY_BYTES_MAX)
            short, long = _Asked(1, 0), _Asked(1, wanted)
            if direction == "downstream":
                answer = (await _timed(clock, exchanges, short)).came
                long = _Asked(min(max(2, wanted // answer), MOST_ANSWERS), 0)
            shortest = longest = _Exchange(float("inf"), 0, 0)
            for _ in range(ROUNDS):
                shortest = min(shortest, await _timed(clock, exchanges, short))
                longest = min(longest, await _timed(clock, exchanges, long))
        finally:
            exchanges.close()
    more = longest.sent - shortest.sent if direction == "upstream" else longest.came - shortest.came
    return Measured(more, (longest.took_s - shortest.took_s) * 1000)


async def _timed(clock: Clock, exchanges: _Exchanges, asked: _Asked) -> _Exchange:
    begin_s = clock.monotonic_s()
    sent, came = await exchanges.exchange(asked)
    return _Exchange(clock.monotonic_s() - begin_s, sent, came)


class _Asked(NamedTuple):
    queries: int
    body: int
    """Bytes of each."""


class _Exchange(NamedTuple):
    took_s: float
    sent: int
    """Bytes, as `came`."""
    came: int


class _Exchanges(asyncio.Protocol):
    """A connection on which one exchange follows the other."""

    def __init__(self) -> None:
        self._reader = FrameReader()
        self._transport: asyncio.WriteTransport | None = None
        self._missing, self._came = 0, 0
        self._ended: asyncio.Future[None] | None = None
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    async def exchange(self, asked: _Asked) -> tuple[int, int]:
        """Send the queries and wait for all their answers: bytes sent, bytes that came. OSError when it is closed."""
        assert self._transport is not None
        if self._lost:
            raise ConnectionResetError("the connection has ended")
        query = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": _TOPIC}, body=b"\0" * asked.body)
        data = encode_frame(query) * asked.queries
        self._missing, self._came = asked.queries, 0
        self._ended = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        await self._ended
        return len(data), self._came

    def data_received(self, data: bytes) -> None:
        self._came += len(data)
        self._missing -= len(self._reader.feed(data))
        if self._missing <= 0 and self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if self._ended is not None and not self._ended.done():
            self._ended.set_exception(exc or ConnectionResetError("the peer has closed"))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
