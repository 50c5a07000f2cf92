"""What passes over every link, found out by dialling it as its node does and asking what leaves no trace.

    harness ── dial, route query ──► the link's own proxy ──► its peer          one row `probe` a link: what it met

A scenario that says `prove_faults: true` has every link probed after each action of its timeline, one soon after the
other; `exercised` compares the matrix with the one that was asked for. The connections are the
harness's own: they carry one query for the route of a topic that nobody has, and no node's channel has part in them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import cast

from ...remoting.codes import RequestCode
from ...remoting.command import RemotingCommand
from ...remoting.errors import ConnectError
from ...remoting.frame import FrameReader, encode_frame
from ...remoting.node.clock import Clock
from ..topology import Link
from .losses import Dial
from .measuring import Measuring, Route

PATIENCE_S, PATIENCE_MACHINE_S = 3.0, 1.0
"""How long a dial, and then an answer, is waited for: RocketMQ's own limit (C, A), and so long on the machine."""
PACE_S = 0.01
"""Of the machine's time, between one probe's begin and the next's: all at once would make everybody's timers late."""

_TOPIC = "nemesrv-probe"


class LinkProbes:
    """Each link that is looked at leaves one row."""

    def __init__(self, measuring: Measuring) -> None:
        self._measuring, self._clock, self._scale = measuring, measuring.clock, measuring.scale
        self._spawn, self._note = measuring.spawn, measuring.note
        self._patience_s = max(PATIENCE_S, PATIENCE_MACHINE_S * self._scale)

    def look(self, links: Iterable[Link]) -> None:
        """Each of them is probed from now on, in this order."""
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
    """What it meets, and how long the answer took in RocketMQ milliseconds where one came."""
    try:
        async with clock.timeout(patience_s):
            asks = await way.network.connect(way.over, _Asks)
    except TimeoutError:
        return Dial.DROPPED, None
    except (ConnectError, OSError):
        return Dial.REFUSED, None
    assert isinstance(asks, _Asks)
    asked_s = clock.monotonic_s()
    try:
        async with clock.timeout(patience_s):
            met = await asks.ask()
    except TimeoutError:
        return Dial.SILENT, None
    finally:
        asks.close()
    return met, (clock.monotonic_s() - asked_s) * 1000 if met is Dial.ANSWERED else None


class _Asks(asyncio.Protocol):
    """One question, and how it ends."""

    def __init__(self) -> None:
        self._reader = FrameReader()
        self._transport: asyncio.WriteTransport | None = None
        self._met: asyncio.Future[Dial] | None = None
        self._ended: Dial | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    async def ask(self) -> Dial:
        assert self._transport is not None
        if self._ended is not None:
            return self._ended
        self._met = asyncio.get_running_loop().create_future()
        self._transport.write(
            encode_frame(RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": _TOPIC}))
        )
        return await self._met

    def data_received(self, data: bytes) -> None:
        if self._reader.feed(data):
            self._end(Dial.ANSWERED)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(Dial.CLOSED if exc is None else Dial.RESET)

    def _end(self, met: Dial) -> None:
        if self._ended is None:
            self._ended = met
            if self._met is not None and not self._met.done():
                self._met.set_result(met)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
