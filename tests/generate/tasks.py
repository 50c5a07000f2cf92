"""The periodic tasks of a made-up run: each `scheduled_task` row, written from RocketMQ's rates.

A process that stands still runs them when it goes on, the missed ones one behind the other; the three of a client
share a thread, so that a poll which waits for its NameServer holds up the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from nemesrv.chaos.faults.process_faults import Pause
from nemesrv.chaos.history.schema import Row
from nemesrv.remoting.node.profile import Profile

from .outcome import Control, role_of
from .plan import Plan

POLL = "updateTopicRouteInfoFromNameServer"
COMMIT_MS = 5_000.0
_AFTER_THE_LAST = frozenset({"checkHoldRequest"})
"""Tasks that wait for their period after each run, so that none is made up for."""
REBALANCE_AFTER_MS = 100.0
"""How long after its start a made-up consumer first rebalances."""


def scheduled_tasks(plan: Plan, control: Control) -> Iterator[Row]:
    """The rows of all processes, in no order."""
    calls: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in control.rows:
        if row["event"] == "name_server_call":
            calls[row["node"]].append((row["time_ms"] - row["duration_ms"], row["time_ms"]))
    for node, steps in control.lives.items():
        ends = [*(at_ms for at_ms, _ in steps[1:]), plan.end_ms]
        pauses = [(f.start_ms, f.end_ms) for f in plan.faults if f.source == node and isinstance(f.kind, Pause)]
        for (start_ms, incarnation), end_ms in zip(steps, ends, strict=True):
            if incarnation < 0:
                continue
            for thread in _threads(plan, role_of(node)):
                for began_ms, ended_ms, task in _runs(thread, start_ms, end_ms, pauses, calls[node]):
                    about = {"node": node, "role": role_of(node), "incarnation": incarnation, "f": task}
                    row = {"time_ms": ended_ms, "event": "scheduled_task", "duration_ms": ended_ms - began_ms, **about}
                    value = {"woken": began_ms < start_ms + plan.timers.Qr_ms, "balanced": True}
                    yield {**row, "value": value} if task == "doRebalance" else row


def _threads(plan: Plan, role: str) -> Sequence[Mapping[str, tuple[float, float]]]:
    """Task to its first delay and its period, of each thread."""
    timers = plan.timers
    if role == "name_server":
        first_ms = 5_000.0 if plan.profile is Profile.V4_9 else 5.0
        return ({"scanNotActiveBroker": (first_ms, timers.S_ms)},)
    if role == "broker":
        return (
            {"registerBrokerAll": (10_000.0, timers.R_ms)},
            {"checkHoldRequest": (5_000.0, 5_000.0)},
            {"scanExceptionChannel": (10_000.0, 10_000.0)},
        )
    shared = {
        POLL: (10.0, timers.P_ms),
        "sendHeartbeatToAllBroker": (1_000.0, timers.H_ms),
        "persistAllConsumerOffset": (10_000.0, COMMIT_MS),
    }
    if role == "producer":
        return (shared,)
    return (shared, {"doRebalance": (REBALANCE_AFTER_MS, timers.Qr_ms)}) if role == "consumer" else ()


def _runs(
    thread: Mapping[str, tuple[float, float]],
    start_ms: float,
    end_ms: float,
    pauses: Sequence[tuple[float, float]],
    calls: Sequence[tuple[float, float]],
) -> Iterator[tuple[float, float, str]]:
    """From when to when each task ran, one after the other."""
    if thread.keys() & _AFTER_THE_LAST:
        yield from _waits(*next(iter(thread.items())), start_ms, end_ms, pauses)
        return
    due = sorted(
        (start_ms + first_ms + number * period_ms, task)
        for task, (first_ms, period_ms) in thread.items()
        for number in range(int(max(0.0, end_ms - start_ms - first_ms) / period_ms) + 1)
    )
    free_ms = start_ms
    for due_ms, task in due:
        began_ms = max(due_ms, free_ms)
        began_ms = next(
            (resumed_ms for paused_ms, resumed_ms in pauses if paused_ms <= began_ms < resumed_ms), began_ms
        )
        asked = [to_ms for from_ms, to_ms in calls if due_ms - 0.5 <= from_ms <= due_ms + 2.0] if task == POLL else []
        free_ms = max([began_ms, *asked])
        if free_ms >= end_ms:
            return
        yield began_ms, free_ms, task


def _waits(
    task: str, times: tuple[float, float], start_ms: float, end_ms: float, pauses: Sequence[tuple[float, float]]
) -> Iterator[tuple[float, float, str]]:
    """As _runs, of a task that waits after each run and takes no time."""
    first_ms, period_ms = times
    due_ms = start_ms + first_ms
    while True:
        due_ms = next((resumed_ms for paused_ms, resumed_ms in pauses if paused_ms <= due_ms < resumed_ms), due_ms)
        if due_ms >= end_ms:
            return
        yield due_ms, due_ms, task
        due_ms += period_ms
