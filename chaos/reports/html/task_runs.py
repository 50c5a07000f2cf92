"""Shows the recorded runs of a node's periodic task around a violation of a timer, as lines like those of a log.

96.670 s consumer-0 ended sendHeartbeatToAllBroker (2 ms); its heartbeats reached broker-b and broker-c
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from ...history.schema import object_of
from ...oracle.time_outs import HEARTBEAT
from ...topology import node_of_client_id
from ...verdict import Example, length
from ..columns import Recorded
from ..text import all_of

BESIDE = 2
"""Runs shown before the violation, and as many after it."""
RUNS_MAX = 10
"""Most runs shown: those around the longest time between two runs."""
ARRIVES_MS = 1000.0
"""A broker has handled a heartbeat so long after the end of the client's round at the latest."""


def runs_around(recorded: Recorded, e: Example) -> tuple[str, ...]:
    """Return the runs of the example's task by its node: two before the violation, all during it, two after it."""
    tasks = recorded.rows_of("scheduled_task").select(["time_ms", "node", "f", "duration_ms"]).to_pylist()
    runs = [(row["time_ms"], row["duration_ms"] or 0.0) for row in tasks if (row["node"], row["f"]) == (e.who, e.what)]
    if not runs or e.from_ms is None:
        return ()
    ends = [ended_ms for ended_ms, _ in runs]
    last = bisect_right(ends, e.from_ms if e.to_ms is None else e.to_ms) + BESIDE
    shown = range(max(bisect_left(ends, e.from_ms) - BESIDE, 0), min(last, len(runs)))
    if len(shown) > RUNS_MAX:
        at = max(shown[1:], key=lambda at: ends[at] - ends[at - 1])
        shown = range(max(at - RUNS_MAX // 2, shown[0]), min(at + RUNS_MAX // 2, shown[-1] + 1))
    heard = _heard(recorded, e.who) if e.what == HEARTBEAT else []
    return tuple(
        f"{ended_ms / 1000:.3f} s {e.who} ended {e.what} ({length(took_ms)}){_reached(heard, ended_ms, took_ms)}"
        for ended_ms, took_ms in (runs[at] for at in shown)
    )


def _heard(recorded: Recorded, client: str) -> list[tuple[float, str]]:
    """Return when which broker handled a heartbeat of the client."""
    rows = recorded.rows_of("client_heartbeat").select(["time_ms", "node", "value"]).to_pylist()
    return [
        (row["time_ms"], row["node"])
        for row in rows
        if node_of_client_id(object_of(row["value"]).get("client")) == client
    ]


def _reached(heard: Sequence[tuple[float, str]], ended_ms: float, took_ms: float) -> str:
    """Return the brokers that a round's heartbeats reached; "" if no broker recorded heartbeats of the client."""
    if not heard:
        return ""
    brokers = {broker for at_ms, broker in heard if ended_ms - took_ms - 1.0 <= at_ms <= ended_ms + ARRIVES_MS}
    return f"; its heartbeats reached {all_of(sorted(brokers or {'no broker'}))}"
