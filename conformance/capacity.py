"""Decides how many processes of the tested program run at once, and in which order; measures the event loop's
lateness."""

import asyncio
import heapq
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from ..actors.processes import stat_of
from ..chaos.machine import free_memory
from .situations import Situation

MEMORY_SHARE = 3.0
AT_ONCE_MAX = 48
LOOK_S = 0.02
"""How often the loop measures its own lateness."""


class Places:
    """Limits how many processes run at once. Jobs wait in order; a job starts when all of its processes can run."""

    def __init__(self, places: int) -> None:
        self.free = places
        self._most = places
        self._door = asyncio.Lock()
        self._left = asyncio.Condition()

    @asynccontextmanager
    async def taken(self, wanted: int) -> AsyncIterator[None]:
        wanted = min(wanted, self._most)
        async with self._door, self._left:
            await self._left.wait_for(lambda: self.free >= wanted)
            self.free -= wanted
        try:
            yield
        finally:
            self.free += wanted
            async with self._left:
                self._left.notify_all()


class LoopLateness:
    def __init__(self, now_ms: Callable[[], float]) -> None:
        self._now_ms = now_ms
        self._late: list[tuple[float, float]] = []

    async def look(self) -> None:
        while True:
            due_ms = self._now_ms() + LOOK_S * 1000
            await asyncio.sleep(LOOK_S)
            now_ms = self._now_ms()
            self.saw(now_ms, now_ms - due_ms)

    def saw(self, at_ms: float, late_ms: float) -> None:
        if late_ms > 5.0:
            self._late.append((at_ms, late_ms))

    def worst_ms(self, from_ms: float, to_ms: float) -> float:
        return max((late for at, late in self._late if from_ms <= at <= to_ms + late), default=0.0)


def at_once(memory: int) -> int:
    """Return how many processes of `memory` bytes may run at once: as many as fit into a third of the free memory, but
    at least 2 and at most AT_ONCE_MAX."""
    return max(2, min(AT_ONCE_MAX, int(free_memory() / MEMORY_SHARE / max(memory, 10 << 20))))


def planned_s(jobs: Sequence[Situation], start_s: float, places: int, lanes: int) -> float:
    """Return how many seconds the jobs take if `places` run at once, `lanes` start at once, and a start takes
    `start_s`."""
    free, starting = [0.0] * max(1, places), [0.0] * max(1, lanes)
    end_s = 0.0
    for job in jobs:
        begin_s = max(heapq.heappop(free), starting[0])
        heapq.heapreplace(starting, begin_s + start_s)
        done_s = begin_s + start_s + job.for_s + 0.2
        heapq.heappush(free, done_s)
        end_s = max(end_s, done_s)
    return end_s


Job = tuple[Situation, int]
"""A situation, and the number of its start."""


def planned(
    chosen: Sequence[Situation], starts: int, start_s: float, places: int, lanes: int, repeats: int = 1
) -> tuple[list[Job], float]:
    """Return the order of the jobs after the first process, and the jobs' estimated duration in seconds. The longest
    jobs come first, then the situation `starts`. Situations that measure milliseconds come last unless the run then
    takes over 1 s longer."""
    lasting = [(each, number) for each in chosen if not each.many for number in range(each.times * repeats)]
    lasting.sort(key=lambda job: -job[0].for_s)
    many = [(each, number) for each in chosen if each.many for number in range(1, starts)]
    fine = [job for job in lasting if job[0].is_fine]
    orders = [*lasting, *many], [*(job for job in lasting if job not in fine), *many, *fine]
    by_length_s, fine_last_s = (planned_s([each for each, _ in order], start_s, places, lanes) for order in orders)
    return (orders[1], fine_last_s) if fine_last_s <= by_length_s + 1.0 else (orders[0], by_length_s)


def end_s(planned_end_s: float, ended_s: Sequence[float], starts: int) -> float:
    """Return when all jobs have ended: as planned, or later if the starts that have ended at `ended_s` were slower."""
    if len(ended_s) < 2:
        return planned_end_s
    each_s = (ended_s[-1] - ended_s[0]) / (len(ended_s) - 1)
    return max(planned_end_s, ended_s[-1] + each_s * (starts - len(ended_s)))


def memory_of(group: int) -> int:
    """Return the resident bytes of all processes of a process group."""
    stats = filter(None, (stat_of(int(name)) for name in os.listdir("/proc") if name.isdigit()))
    return sum(int(fields[21]) for fields in stats if int(fields[2]) == group) * os.sysconf("SC_PAGE_SIZE")
