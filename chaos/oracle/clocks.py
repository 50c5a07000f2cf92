"""A node's wall clock where a timeline has changed it, and which brokers a NameServer may therefore drop.

    wall clock     ───────┐ step by D                 A registration's age is the difference of two readings:
                          └──────────                 D more for all that were taken before the step.
    D > E          every broker is dropped at the next scan, and back at its own next registration
    D > E − R − B  those whose age and D pass E before they register again
    faster         those whose age passes E: none while (R + B)·rate ≤ E
    back, slower   silence is seen later; the channel that is idle for I is closed all the same

Timers, and channels that are idle, go by a clock that nobody steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .timers import Timers

INJECTION = "clock"


class ClockChange(NamedTuple):
    """From then on the node's wall clock is `offset_ms` ahead, and goes `rate` times as fast."""

    change_id: str
    node: str
    time_ms: float
    offset_ms: float
    rate: float
    step_ms: float


class WrongTime(NamedTuple):
    """`source` and `target` as those of a fault of a link: in this time nobody knows whether the broker is held."""

    change_id: str
    f: str
    source: str
    target: str
    start_ms: float
    end_ms: float


def changes_of(
    rows: Iterable[Mapping[str, Any]], value_of: Callable[[object], Mapping[str, Any]]
) -> Mapping[str, Sequence[ClockChange]]:
    """By node, in order of time."""
    found: dict[str, list[ClockChange]] = {}
    for row in rows:
        if row["event"] != "clock":
            continue
        node, value, at_ms = str(row.get("source")), value_of(row.get("value")), float(row["time_ms"])
        before = found.setdefault(node, [])
        was_ms = _offset_ms(before, at_ms)
        step_ms = value.get("step_ms")
        step_ms = -was_ms if step_ms is None else float(step_ms)
        change_id = row.get("fault_id") or ""
        before.append(ClockChange(change_id, node, at_ms, was_ms + step_ms, float(value.get("rate", 1.0)), step_ms))
    return found


def _offset_ms(changes: Sequence[ClockChange], at_ms: float) -> float:
    last = next((one for one in reversed(changes) if one.time_ms <= at_ms), None)
    return 0.0 if last is None else last.offset_ms + (at_ms - last.time_ms) * (last.rate - 1)


def wall_ms(changes: Sequence[ClockChange], at_ms: float) -> float:
    """What a clock with these changes shows, which showed the time itself before the first of them."""
    return at_ms + _offset_ms(changes, at_ms)


def wrong_times(
    changes: Sequence[ClockChange],
    brokers: Iterable[str],
    timers_of: Callable[..., Timers],
    faults_of: Callable[[str, str], Iterable[tuple[float, float]]],
    end_ms: float,
) -> list[WrongTime]:
    """Of one NameServer's clock. `faults_of(broker, NameServer)`: when either, or their link, was at fault."""
    found = []
    for broker in brokers:
        for number, change in enumerate(changes):
            timers = timers_of(broker, change.node)
            until_ms = changes[number + 1].time_ms if number + 1 < len(changes) else end_ms
            age_ms = timers.R_ms + timers.B_ms
            lately = [one for one in changes[: number + 1] if one.time_ms > change.time_ms - age_ms]
            gained_ms = sum(max(one.step_ms, 0.0) for one in lately)
            fastest = max(1.0, *(one.rate for one in lately))
            danger = gained_ms + age_ms * fastest > timers.E_ms
            start_ms, after_ms = change.time_ms, change.time_ms
            if danger and change.step_ms > timers.E_ms and fastest == 1.0:
                after_ms = change.time_ms + timers.S_ms + timers.delivery_ms
            elif danger:
                after_ms = (until_ms if age_ms * change.rate > timers.E_ms else change.time_ms) + age_ms + timers.S_ms
            for from_ms, to_ms in faults_of(broker, change.node):
                if from_ms < until_ms + timers.E_ms and to_ms > change.time_ms - timers.E_ms:
                    after_ms = max(after_ms, min(to_ms, end_ms))
            if after_ms > start_ms:
                f = change.change_id.rpartition("-")[0] or "clock"
                found.append(WrongTime(change.change_id, f, broker, change.node, start_ms, after_ms))
    return found
