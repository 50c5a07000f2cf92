"""Fixed-rate jobs on one task, as Java's single-threaded ScheduledExecutorService runs them.

The scheduler runs one job at a time: a slow job delays all others, and a late job runs again at once until it has
caught up. A client's route poll, heartbeat and offset commit share one scheduler, so a call to an unreachable broker
delays the route poll. Upstream: `MQClientInstance.startScheduledTask`, `ScheduledThreadPoolExecutor`.
"""

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable

from ..remoting.errors import RocketMQError
from ..remoting.node.clock import Clock
from ..remoting.node.tasks import cancel_all

Job = Callable[[], Awaitable[object]]


class FixedRateScheduler:
    """Runs jobs at fixed rates; all jobs must be added before `start`. A job that raises an exception is logged and
    stays scheduled. With NodeContext's `record_ended`, each run of a job writes a history row `scheduled_task`."""

    def __init__(self, clock: Clock, log: logging.Logger, record_ended: Callable[..., None] | None = None) -> None:
        self._clock = clock
        self._log = log
        self._record_ended = record_ended
        self._jobs: list[tuple[float, int, float, str, Job]] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, name: str, job: Job, *, initial_s: float, period_s: float) -> None:
        """Run `job` first after `initial_s`, then once every `period_s`."""
        due_s = self._clock.monotonic_s() + initial_s
        heapq.heappush(self._jobs, (due_s, len(self._jobs), period_s, name, job))

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            await cancel_all((task,))

    async def _run(self) -> None:
        while self._jobs:
            due_s, order, period_s, name, job = self._jobs[0]
            wait_s = due_s - self._clock.monotonic_s()
            if wait_s > 0:
                await self._clock.sleep(wait_s)
                continue
            heapq.heapreplace(self._jobs, (due_s + period_s, order, period_s, name, job))
            began_s = self._clock.monotonic_s()
            try:
                await job()
            except RocketMQError as exc:  # a peer that is away is nothing to trace
                self._log.warning("scheduled job %s failed: %s: %s", name, type(exc).__name__, exc)
            except Exception:
                self._log.exception("scheduled job %s failed", name)
            if self._record_ended is not None:
                self._record_ended(began_s, "scheduled_task", f=name)
