"""Measurements of links by the harness, on its own event loop and its own connections.

bandwidth_proof, link_probes ─► Measuring: its clock, the way to a link's peer, how to run and record
                                   ├─ MeasuringThread: the machine's time, a thread of its own
                                   └─ a process of the virtual clock's (experiment/virtual/network.py)
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, cast

from ...remoting.codes import RequestCode
from ...remoting.command import RemotingCommand
from ...remoting.errors import ConnectError, RocketMQError
from ...remoting.frame import FrameReader, encode_frame
from ...remoting.node.clock import Clock, RealClock
from ...remoting.node.network import Address, Network
from ...remoting.node.recording import Recorder
from ..topology import Link
from .fault import Dial
from .link_faults import Bandwidth, Direction, LinkFault


class Route(NamedTuple):
    """How the harness reaches a link's peer: over the link, and around its proxy if possible."""

    network: Network
    over: Address
    around: Address | None = None


Elsewhere = Callable[..., Awaitable[Any]]
"""For a link: a function that can be pickled, and its arguments. It runs on the host of the connecting node."""


class Started(Protocol):
    def cancel(self) -> object: ...


class Measuring(NamedTuple):
    """What a measurement of links needs."""

    clock: Clock
    scale: float
    way: Callable[[Link], Route]
    """How to reach a link's peer."""
    spawn: Callable[[Coroutine[Any, Any, None]], Started]
    """Runs a coroutine."""
    note: Callable[..., Awaitable[None]]
    """Records a row from within a coroutine."""
    elsewhere: Elsewhere | None = None
    """Runs the measurement on the connecting node's host. None: that is this host."""

    async def of(self, link: Link, function: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        """The result of `function(clock, way, *args)` for the link, run on the connecting node's host."""
        if self.elsewhere is not None:
            return await self.elsewhere(link, function, *args)
        return await function(self.clock, self.way(link), *args)


class MeasuringThread:
    """Measurements on the machine's time, in a thread. Context manager; leaving it cancels what is unfinished.

    `record` is called from that thread's helpers, where no event loop runs.
    """

    def __init__(
        self,
        clock: RealClock,
        way: Callable[[Link], Route],
        record: Recorder,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._clock, self._way, self._record, self._elsewhere = clock, way, record, elsewhere
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="measuring", daemon=True)

    def _spawn(self, measurement: Coroutine[Any, Any, None]) -> Started:
        return asyncio.run_coroutine_threadsafe(measurement, self._loop)

    async def _note(self, event: str, /, **fields: object) -> None:
        await asyncio.to_thread(self._record, event, **fields)

    def __enter__(self) -> Measuring:
        self._thread.start()
        return Measuring(self._clock, self._clock.scale, self._way, self._spawn, self._note, self._elsewhere)

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(timeout=10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()

    async def _end(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_default_executor()


# -- what passes over every link, found out by dialling it as its node does and asking what leaves no trace.
#
#     harness ── dial, route query ──► the link's own proxy ──► its peer          one row `probe` a link: what it met
#
# A scenario that says `prove_faults: true` has every link probed after each action of its timeline, one soon after the
# other; `exercised` compares the matrix with the one that was asked for. The connections are the
# harness's own: they carry one query for the route of a topic that nobody has, and no node's channel has part in them.

PATIENCE_S, PATIENCE_MACHINE_S = 3.0, 1.0
"""How long to wait for a connection and then an answer: RocketMQ's own limit (C, A), and as long in machine time."""

PACE_S = 0.01
"""Machine time between the starts of two probes. All at once would delay everybody's timers."""

_TOPIC = "nemesrv-probe"
"""A topic that nobody has."""


class LinkProbes:
    """Records one row for each link that is probed."""

    def __init__(self, measuring: Measuring) -> None:
        self._measuring, self._clock, self._scale = measuring, measuring.clock, measuring.scale
        self._spawn, self._note = measuring.spawn, measuring.note
        self._patience_s = max(PATIENCE_S, PATIENCE_MACHINE_S * self._scale)

    def look(self, links: Iterable[Link]) -> None:
        """Probe each of these links, in this order."""
        for number, link in enumerate(links, start=1):
            self._spawn(self._probe(link, number * PACE_S * self._scale))

    async def _probe(self, link: Link, after_s: float) -> None:
        await self._clock.sleep(after_s)
        began_s = self._clock.monotonic_s()
        met, took_ms = await self._measuring.of(link, met_of, self._patience_s)
        duration_ms = (self._clock.monotonic_s() - began_s) * 1000
        value = {"met": str(met), "took_ms": None if took_ms is None else round(took_ms, 3)}
        await self._note("probe", source=link.node, target=link.peer, duration_ms=duration_ms, value=value)


async def met_of(clock: Clock, way: Route, patience_s: float) -> tuple[Dial, float | None]:
    """What the probe met, and the answer's delay in RocketMQ milliseconds if one came."""
    try:
        async with clock.timeout(patience_s):
            exchanges = await way.network.connect(way.over, _Exchanges)
    except TimeoutError:
        return Dial.DROPPED, None
    except (ConnectError, OSError):
        return Dial.REFUSED, None
    assert isinstance(exchanges, _Exchanges)
    asked_s = clock.monotonic_s()
    try:
        async with clock.timeout(patience_s):
            await exchanges.exchange(_Asked(1, 0))
    except TimeoutError:
        return Dial.SILENT, None
    except ConnectionAbortedError:
        return Dial.CLOSED, None
    except OSError:
        return Dial.RESET, None
    finally:
        exchanges.close()
    return Dial.ANSWERED, (clock.monotonic_s() - asked_s) * 1000


# -- a bandwidth limit proves itself: known bytes go over the limited link in a time that is taken
#
#     harness ── route query, body of n bytes ──► the link's own proxy ──► its peer     upstream: 2 n over the time that
#             ◄── "no such topic" ──                                                    the longer took more
#
# RocketMQ's rows cannot tell a narrow link from a busy peer. So the harness dials the link as its node does and asks
# the peer, a NameServer or a broker, something that leaves no trace: the route of a topic that nobody has. Once with a
# few bytes and once with many: what the difference in bytes took more is the link's rate, whatever else delays each
# exchange. Where only answers are slowed, many short queries take the place of a long one. The quickest of ROUNDS
# exchanges counts, so that one stall of the machine proves nothing; and where there is a way around the proxy, the same
# exchange must be FREE times as quick there, so that a peer slower than the limit proves nothing either.
#
# A limit that holds is recorded as `verified`; one that does not is only logged, and `exercised` says UNKNOWN.

log = logging.getLogger("nemesrv.bandwidth")

EXCHANGE_S = 0.3
"""Machine time that an exchange should take under the limit."""

QUERY_BYTES_MIN, QUERY_BYTES_MAX = 2_000, 500_000
"""Bytes of a long query."""

MOST_ANSWERS = 250
"""Short queries in one exchange."""

ROUNDS = 3

PAUSE_S, PROOF_PATIENCE_S = 0.1, 2.0
"""Machine time: pause after a failed exchange, and how much longer than expected one may take."""

ATTEMPTS = 3
"""Full measurements without a visible limit before it counts as absent. Those that end in an error do not count."""

LINKS_MAX = 4
"""Links of one fault that are measured."""

SLACK = 1.25
"""A rate up to this many times the limit counts as limited."""

BYPASS_FACTOR = 2.0


class LinkMeasurement(NamedTuple):
    sent: int
    """Bytes by which the long exchange was longer, in the measured direction."""
    took_ms: float
    """How much longer it took, in RocketMQ milliseconds."""

    @property
    def kb_s(self) -> float:
        return self.sent / max(self.took_ms, 0.001)


class BandwidthProofs:
    """Measures the bandwidth faults that a LinkFaultInjector reports."""

    def __init__(self, measuring: Measuring) -> None:
        self._measuring, self._clock, self._scale = measuring, measuring.clock, measuring.scale
        self._spawn, self._note = measuring.spawn, measuring.note
        self._running: dict[str, list[Started]] = {}

    def begun(self, fault_id: str, fault: LinkFault, links: Sequence[Link]) -> None:
        """The fault is in force from now on."""
        if isinstance(fault, Bandwidth):
            self._running[fault_id] = [
                self._spawn(self._prove(fault_id, fault, link)) for link in tuple(links)[:LINKS_MAX]
            ]

    def ending(self, fault_id: str) -> None:
        """The fault ends now; later measurements do not count for it. Called again if an end fails."""
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
) -> tuple[LinkMeasurement, LinkMeasurement | None]:
    """The link's rate, and the rate around its proxy if that is possible."""
    over = await _rate(clock, scale, way.network, way.over, direction, limit_kb_s)
    if way.around is None:
        return over, None
    return over, await _rate(clock, scale, way.network, way.around, direction, limit_kb_s)


async def _rate(
    clock: Clock, scale: float, network: Network, address: Address, direction: Direction, limit_kb_s: float
) -> LinkMeasurement:
    """OSError, ConnectError or TimeoutError if an exchange does not finish."""
    due_s = EXCHANGE_S * scale
    limit_s = 2 * ROUNDS * (2 * due_s + PROOF_PATIENCE_S * scale)
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
    return LinkMeasurement(more, (longest.took_s - shortest.took_s) * 1000)


async def _timed(clock: Clock, exchanges: _Exchanges, asked: _Asked) -> _Exchange:
    begin_s = clock.monotonic_s()
    sent, came = await exchanges.exchange(asked)
    return _Exchange(clock.monotonic_s() - begin_s, sent, came)


class _Asked(NamedTuple):
    queries: int
    body: int
    """Bytes of each query."""


class _Exchange(NamedTuple):
    took_s: float
    sent: int
    """Bytes sent; `came` has the bytes received."""
    came: int


class _Exchanges(asyncio.Protocol):
    """A connection used for one exchange at a time."""

    def __init__(self) -> None:
        self._reader = FrameReader()
        self._transport: asyncio.WriteTransport | None = None
        self._missing, self._came = 0, 0
        self._ended: asyncio.Future[None] | None = None
        self._lost: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    async def exchange(self, asked: _Asked) -> tuple[int, int]:
        """Send the queries and wait for all answers. Bytes sent and received. ConnectionAbortedError if the peer
        closed, another OSError if it reset.
        """
        assert self._transport is not None
        if self._lost is not None:
            raise self._lost
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
        self._lost = exc or ConnectionAbortedError("the peer has closed")
        if self._ended is not None and not self._ended.done():
            self._ended.set_exception(self._lost)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
