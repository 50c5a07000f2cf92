"""How late timers fire in a process that many nodes share: measured once for all, recorded as of each.

    one sleep after the other ──► lateness of each stretch ─┬─ below LOUD_S: added to the node's quiet stretch, which is
                                                            │  one row of QUIET_ROW_S, at a moment of the node's own
                                                            └─ else: a row of its own for every node, at once

A node's tolerance is made of its own rows; so each has some, and hundreds of nodes do not write as many rows of the
machine as of RocketMQ. A row covers its whole stretch with the worst of it, as LagProbe's do.
"""

from __future__ import annotations

import asyncio
import contextvars
import weakref
from dataclasses import dataclass

from ...remoting.node.clock import Clock
from ...remoting.node.recording import Recorder
from .recorder import step_s_of, unseen_s_of

QUIET_ROW_S = 5.0
"""Of the machine's time."""
LOUD_S = 0.100
"""Of the machine's time: so late a stretch is known to its second."""
STRETCH_S = 0.250
TURNS = 20
"""Nodes that begin together write their quiet rows in so many turns, or the writing itself would make timers late."""


@dataclass(slots=True)
class _Member:
    record: Recorder
    since_s: float
    next_s: float
    late_s: float = 0.0


class _Measurement:
    """All that share an event loop, and the one task that measures for them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scale = float(getattr(clock, "scale", 1.0))
        self._unseen_s = unseen_s_of(self._scale) * self._scale
        self._members: weakref.WeakKeyDictionary[SharedLagProbe, _Member] = weakref.WeakKeyDictionary()
        """Weakly, because one that dies takes no leave."""
        self._task: asyncio.Task[None] | None = None
        self._begun = 0

    def join(self, probe: SharedLagProbe, record: Recorder) -> None:
        now_s, row_s = self._clock.monotonic_s(), QUIET_ROW_S * self._scale
        self._members[probe] = _Member(record, now_s, now_s + row_s * (1 - self._begun % TURNS / TURNS))
        self._begun += 1
        if self._task is None or self._task.done():
            # In a context of its own: it is nobody's of those that share the process, and outlives each of them.
            work = self._measure()
            self._task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())

    def leave(self, probe: SharedLagProbe) -> None:
        """The lateness seen since its last row is recorded first."""
        member = self._members.pop(probe, None)
        if member is not None:
            self._write(member, member.since_s, self._clock.monotonic_s(), member.late_s)
        if not self._members and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _measure(self) -> None:
        clock, step_s = self._clock, step_s_of(self._scale) * self._scale
        since_s, late_s = clock.monotonic_s(), 0.0
        while True:
            asked_s = clock.monotonic_s()
            await clock.sleep(step_s)
            now_s = clock.monotonic_s()
            late_s = max(late_s, now_s - asked_s - step_s)
            if now_s - since_s >= STRETCH_S * self._scale:
                self._tell(since_s, now_s, late_s)
                since_s, late_s = now_s, 0.0

    def _tell(self, since_s: float, now_s: float, late_s: float) -> None:
        loud, row_s = late_s >= LOUD_S * self._scale, QUIET_ROW_S * self._scale
        for member in list(self._members.values()):
            if loud:
                if member.since_s < since_s:
                    self._write(member, member.since_s, now_s, member.late_s)
                self._write(member, since_s, now_s, late_s)
            else:
                member.late_s = max(member.late_s, late_s)
                if now_s >= member.next_s:
                    self._write(member, member.since_s, now_s, member.late_s)
            while member.next_s <= now_s:
                member.next_s += row_s

    def _write(self, member: _Member, from_s: float, now_s: float, late_s: float) -> None:
        lag_ms = (late_s + self._unseen_s) * 1000
        member.record("timer_lag", lag_ms=lag_ms, duration_ms=(now_s - from_s) * 1000)
        member.since_s, member.late_s = now_s, 0.0


_MEASUREMENTS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Measurement] = weakref.WeakKeyDictionary()


class SharedLagProbe:
    """LagProbe for one node of many in a process."""

    def __init__(self) -> None:
        self._joined: _Measurement | None = None

    def start(self, record: Recorder, clock: Clock) -> None:
        """Begin, on the running loop."""
        loop = asyncio.get_running_loop()
        self._joined = _MEASUREMENTS.setdefault(loop, _Measurement(clock))
        self._joined.join(self, record)

    async def stop(self) -> None:
        """End; the lateness seen since the last row is recorded first."""
        if self._joined is not None:
            self._joined.leave(self)
            self._joined = None
