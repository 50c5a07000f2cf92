"""Part of timers_kept: the periodic tasks of one process, run by run.

    started ─ first ─ run ──── period ──── run ──── period ──── run …          scheduleAtFixedRate: counted from the
                                                └ held up ┘run   run           first, so that small errors add up

A run is late only behind what held its thread up: the run before it, its node's pause. It is never early. It takes no
longer than its calls may.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ....remoting.top_addressing import FIRST_S, TIMEOUT_S
from ....remoting.top_addressing import TASK as FETCH
from ...oracle.broker import REGISTER
from ...oracle.recorded import Life
from ...oracle.timers import Act, Schedule
from ...oracle.world import World
from ...topology import ADDRESS_SERVER
from ...verdict import Finding
from ..record.control import Control
from ..record.timer_acts import Process, Run

_LONGEST_CALL_MS = 60_000.0
"""One that began in some time has ended so long after it; a longer one is found by its own length."""


class _Busy(NamedTuple):
    """One run behind the other: the thread was never free between."""

    from_ms: float
    to_ms: float

    def and_then(self, run: Run, slack_ms: float) -> _Busy:
        follows = run.began_ms <= self.to_ms + slack_ms
        return _Busy(self.from_ms if follows else run.began_ms, max(self.to_ms, run.ended_ms))


class Tasks(Process):
    """`calls`: the event of its calls to NameServers."""

    calls_event = "register"

    def __init__(self, control: Control, world: World, life: Life, kind: str, schedules: Sequence[Schedule]) -> None:
        super().__init__(control, world, life, kind)
        self.schedules = schedules
        runs = self.rows("scheduled_task")
        self.runs = [run for run in runs if run.began_ms >= self.start_ms - 1.0]
        self.calls = self.rows(self.calls_event)
        self._call_ends = [call.ended_ms for call in self.calls]

    def findings(self) -> Iterator[Finding]:
        """Nothing of a process that may not have come to its tasks, or not have had a list for them."""
        listed_ms = self.life.start_ms + 1000 * (FIRST_S + TIMEOUT_S)
        if not self.world.asks_for_list(self.life.node) or not self.troubles.between(
            ADDRESS_SERVER, self.life.start_ms, listed_ms
        ):
            for one in self.schedules:
                yield from self.finding(one.task, f"each {one.symbol}", one.row, self._ticks(one))
                row = "a call ends by its time-out"
                yield from self.finding(one.task, "takes no longer than the round's calls", row, self._lengths(one))
            yield from self.others()

    def others(self) -> Iterator[Finding]:
        """What it does besides."""
        yield from ()

    # -- when

    def _ticks(self, schedule: Schedule) -> Iterator[Act]:
        """Each run of a fixed-rate task, counted from when the first was due; and the one that never came."""
        mine = [run for run in self.runs if run.row.f == schedule.task]
        of_thread = {schedule.task}
        if schedule.shared:
            of_thread = {FETCH, *(one.task for one in self.schedules if one.shared)}
        thread = [run for run in self.runs if run.row.f in of_thread]
        first_ms = self.start_ms + schedule.first_ms
        base_ms: float | None = None if schedule.after_registering else first_ms
        number, busy, waited_ms = 0, _Busy(-math.inf, -math.inf), 0.0
        for run in thread:
            if run.row.f == schedule.task:
                if base_ms is None:
                    # What a pause held up says nothing of when it was due: the next run does.
                    is_held = self.held(self.life.start_ms, run.began_ms)
                    if not is_held and run is mine[0]:
                        yield self._first(run, first_ms)
                    is_held = self.held(run.began_ms, run.began_ms)
                    # Behind another task of its thread it was due at some moment of that one.
                    is_behind = busy.from_ms < run.began_ms - self.timers.delivery_ms <= busy.to_ms
                    waited_ms = run.began_ms - busy.from_ms if is_behind else 0.0
                    base_ms, number = (None, 0) if is_held else (run.began_ms - waited_ms, 0)
                else:
                    tick = self._tick(schedule, base_ms, number, run.began_ms, busy, waited_ms)
                    if not number:  # a machine that was late as the timer was set is as late with every run
                        waited_ms = max(0.0, tick.measured_ms - tick.latest_ms)
                    yield tick
                number += 1
            busy = busy.and_then(run, self.timers.delivery_ms)
        if base_ms is None and mine:
            return
        if not self.runs and self.troubles.among(self.name_servers, self.start_ms, self.end_ms):
            return  # it may not have come to its tasks: a start that meets no NameServer fails
        if base_ms is None:
            base_ms, number = first_ms + self.timers.B_ms, 0
        missing = self._tick(schedule, base_ms, number, self.end_ms, busy, waited_ms)._replace(missing=True)
        if not number and schedule.after_registering:
            of_thread = {REGISTER}
        busy_ms = max(self.longest_ms(one, missing.from_ms + missing.latest_ms, self.end_ms) for one in of_thread)
        if schedule.shared:
            busy_ms += self.call_ms(len(self.name_servers))  # what was under way at the end has left no row
        missing = missing._replace(latest_ms=missing.latest_ms + busy_ms, earliest_ms=None)
        if missing.over_ms > 0:
            yield missing

    def _first(self, run: Run, first_ms: float) -> Act:
        """The first periodic registration, 10 s after the one at the start was over; the first 904 1 s after it."""
        wait_ms = self.longest_ms(REGISTER, self.life.start_ms, run.began_ms)
        due_ms = self.after_pauses(first_ms + wait_ms)
        early_ms = first_ms - self.life.start_ms
        first = f"{early_ms / 1000:g} s"
        return Act(self.life.start_ms, run.began_ms - self.life.start_ms, early_ms, due_ms - self.life.start_ms, first)

    def _tick(
        self, schedule: Schedule, base_ms: float, number: int, began_ms: float, busy: _Busy, waited_ms: float
    ) -> Act:
        from_ms = base_ms if number else self.start_ms
        earliest_ms = number * schedule.period_ms if number else base_ms - from_ms
        latest_ms = self.after_pauses(from_ms + earliest_ms + (waited_ms if number else 0.0))
        if busy.from_ms <= latest_ms + self.timers.delivery_ms:
            latest_ms = max(latest_ms, self.after_pauses(busy.to_ms))
        latest_ms = max(latest_ms - from_ms, earliest_ms)
        formula = f"{number}·{schedule.symbol}" if number else "its first delay"
        return Act(from_ms, began_ms - from_ms, earliest_ms, latest_ms, formula)

    # -- how long

    def _lengths(self, schedule: Schedule) -> Iterator[Act]:
        for run in self.runs:
            if run.row.f == schedule.task:
                bound_ms = self.longest_ms(schedule.task, run.began_ms, run.ended_ms)
                yield self.length(run, bound_ms, "its calls", max(self.calls_of(schedule.task, run), 1))

    def length(self, run: Run, bound_ms: float, formula: str, calls: int = 1) -> Act:
        bound_ms += self.held_ms(run.began_ms, run.ended_ms)
        peers = self.name_servers if self.kind == "broker" else [*self.name_servers, *self.brokers]
        return Act(run.began_ms, run.ended_ms - run.began_ms, None, bound_ms, formula, peers=peers, calls=calls)

    def longest_ms(self, task: str, from_ms: float, to_ms: float) -> float:
        """How long a run of the task may take that lasts from then to then."""
        return self.timers.delivery_ms

    def calls_of(self, task: str, run: Run) -> int:
        """How many calls it makes, one after the other."""
        return len(self.calls_in(run.began_ms, run.ended_ms))

    def call_ms(self, tried: int) -> float:
        """The longest that a call of so many NameServers may take."""
        return self.timers.B_ms

    def calls_in(self, from_ms: float, to_ms: float) -> Sequence[Run]:
        within = self.calls[bisect_left(self._call_ends, from_ms) : bisect_right(self._call_ends, to_ms)]
        # How long a run took is measured before its row says when that was: a machine that has others' work to do comes
        # between. A round that asked for nothing takes no time, so that no call ends within it.
        return [call for call in within if call.began_ms >= from_ms - self.timers.at_once_ms]

    def asked_ms(self, from_ms: float, to_ms: float) -> float:
        """For how long in that time a NameServer was being asked."""
        first = bisect_left(self._call_ends, from_ms)
        last = bisect_right(self._call_ends, to_ms + _LONGEST_CALL_MS)
        asked_ms, until_ms = 0.0, from_ms
        for call in sorted(self.calls[first:last], key=lambda call: call.began_ms):
            begin_ms, end_ms = max(call.began_ms, until_ms), min(call.ended_ms, to_ms)
            if end_ms > begin_ms:
                asked_ms, until_ms = asked_ms + end_ms - begin_ms, end_ms
        return asked_ms
