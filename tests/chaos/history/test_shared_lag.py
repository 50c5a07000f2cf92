"""How late the timers of a shared process fire, as each of its nodes records it."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from nemesrv.chaos.history.recorder import LOUD_S, QUIET_ROW_S, SharedLagProbe, step_s_of, unseen_s_of
from tests.virtual import VirtualClock, run

UNSEEN_MS = unseen_s_of(1) * 1000


class LateClock(VirtualClock):
    """Sleeps take longer from `from_s` to `to_s`, by `late_s`."""

    def __init__(self, late_s: float = 0.0, from_s: float = 0.0, to_s: float = float("inf")) -> None:
        self._late_s, self._from_s, self._to_s = late_s, from_s, to_s

    async def sleep(self, delay_s: float) -> None:
        late = self._from_s <= self.monotonic_s() < self._to_s
        await asyncio.sleep(delay_s + (self._late_s if late else 0.0))


class Rows(list[tuple[float, float, float]]):
    """(from, to, lag) of each row, in seconds."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def __call__(self, event: str, /, **fields: Any) -> None:
        assert event == "timer_lag"
        to_s = self._clock.monotonic_s()
        self.append((to_s - fields["duration_ms"] / 1000, to_s, (fields["lag_ms"] - UNSEEN_MS) / 1000))


def measured(clock: VirtualClock, nodes: int, for_s: float) -> list[Rows]:
    async def work() -> list[Rows]:
        rows, probes = [Rows(clock) for _ in range(nodes)], [SharedLagProbe() for _ in range(nodes)]
        for probe, record in zip(probes, rows, strict=True):
            probe.start(record, clock)
        await asyncio.sleep(for_s)
        for probe in probes:
            await probe.stop()
        assert not [
            task for task in asyncio.all_tasks() if task is not asyncio.current_task() and not task.cancelling()
        ]
        return rows

    return run(work)


def test_quiet_stretches_are_few_rows_that_leave_nothing_out() -> None:
    for rows in measured(LateClock(), 3, 60.0):
        assert 12 <= len(rows) <= 14
        assert max(late_s for _, _, late_s in rows) < 0.001
        assert rows[0][0] == 0.0
        assert rows[-1][1] == 60.0
        assert all(abs(after[0] - before[1]) < 0.001 for before, after in pairwise(rows))


def test_nodes_that_began_together_write_at_moments_of_their_own() -> None:
    found = measured(LateClock(), 10, 20.0)
    assert len({round(rows[1][1], 3) for rows in found}) > 5


def test_a_stall_is_known_to_its_second_by_every_node_and_smears_over_no_quiet_one() -> None:
    stall_s = 2.0
    for rows in measured(LateClock(stall_s, 31.0, 31.2), 3, 60.0):
        loud = [row for row in rows if row[2] >= LOUD_S]
        ((from_s, to_s, late_s),) = loud
        assert 30.5 < from_s <= 31.0 + step_s_of(1)
        assert 33.0 < to_s < 33.6
        assert abs(late_s - stall_s) < 0.001


def test_a_lateness_below_a_loud_one_is_the_quiet_rows_own() -> None:
    late_s = LOUD_S / 2
    for rows in measured(LateClock(late_s, 10.0, 11.0), 2, 30.0):
        assert [row for row in rows if row[2] > 0.01]
        assert all(row[2] < LOUD_S and row[1] - row[0] <= QUIET_ROW_S + 1 for row in rows)
        assert abs(max(row[2] for row in rows) - late_s) < 0.001
