"""A client's one scheduler thread (`MQClientInstance.startScheduledTask`), held up by what does not answer. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Job(NamedTuple):
    """A task at a fixed rate: first at `first_ms`, then each `period_ms`."""

    name: str
    first_ms: float
    period_ms: float


def first_run_ms(
    jobs: Sequence[Job], name: str, not_before_ms: float, until_ms: float, takes_ms: Callable[[str, float], float]
) -> float:
    """When the first run of `name` begins at or after `not_before_ms`; inf where none does by `until_ms`.

    One job at a time, at a fixed rate: what fell behind runs at once. `takes_ms` says how long a run that begins then
    holds up the thread.
    """
    due = [(job.first_ms, order) for order, job in enumerate(jobs)]
    heapq.heapify(due)
    now_ms = 0.0
    while True:
        due_ms, order = due[0]
        now_ms = max(now_ms, due_ms)
        if now_ms > until_ms:
            return float("inf")
        job = jobs[order]
        heapq.heapreplace(due, (due_ms + job.period_ms, order))
        if job.name == name and now_ms >= not_before_ms:
            return now_ms
        now_ms += takes_ms(job.name, now_ms)
