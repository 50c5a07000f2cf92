"""What dataframes/uses.py counts, in plain Python over a history's rows."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ...oracle.time_outs import avoidance
from ...oracle.world import World
from ...verdict import Verdict
from ..control import Control
from ..living_are_used import Used, judge
from ..uses import (
    PART_MS,
    BrokerShares,
    Queue,
    Read,
    SameBroker,
    Segment,
    edges,
)


def verdict_of(rows: Sequence[Mapping[str, Any]], control: Control, world: World) -> Verdict:
    """The check's verdict of these rows."""
    return judge(Used(shares_of(rows, control, world), control), world)


def shares_of(rows: Sequence[Mapping[str, Any]], control: Control, world: World) -> BrokerShares:
    """What clients used, by these rows."""
    between, avoided = edges(control, world), avoidance(world)

    def edge(at_ms: float) -> float:
        return between[bisect_right(between, at_ms) - 1]

    sends: dict[Segment, Counter[Queue]] = defaultdict(Counter)
    failed: Counter[tuple[str, float]] = Counter()
    reads: dict[Read, Counter[int]] = defaultdict(Counter)
    tried: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in rows:
        event, type_ = row["event"], row.get("type")
        begun_ms = row["time_ms"] - (row.get("duration_ms") or 0.0)
        if event == "send" and type_ == "ok":
            segment = Segment(row["node"], row["incarnation"], row["topic"], edge(begun_ms))
            sends[segment][row["broker_name"], row["queue_id"]] += 1
        if event in ("send", "send_attempt"):
            took_ms = (row.get("duration_ms") or 0.0) if event == "send_attempt" else 0.0
            if type_ in ("fail", "info") or (avoided is not None and took_ms >= avoided.slow_ms):
                for at_ms in {edge(begun_ms), edge(row["time_ms"])}:
                    failed[row["node"], at_ms] += 1
        if event == "send_attempt" and type_ == "invoke":
            tried[row["node"], row["incarnation"], row["op_id"], row["attempt"]] = row
        if event in ("pull", "receive"):
            of = Read(row["node"], row["topic"], row["broker_name"], row["queue_id"])
            reads[of][int(row["time_ms"] // PART_MS)] += 1
    again = [key for key in tried if key[3] and (*key[:3], key[3] - 1) in tried]
    same = [
        SameBroker(node, incarnation, op_id, attempt, one["broker_name"], one["time_ms"])
        for (node, incarnation, op_id, attempt), one in ((key, tried[key]) for key in again)
        if one["broker_name"] == tried[node, incarnation, op_id, attempt - 1]["broker_name"]
    ]
    return BrokerShares(
        sends=sends,
        failed=failed,
        retries=len(again),
        same=tuple(sorted(same, key=lambda one: one.time_ms)),
        reads=reads,
    )
