"""In quiet times each queue that the NameServers route to has exactly one owner in each consumer group.

Quiet means that every change has had its time: a consumer that came or went (Qr + A), a route that changed (P + J + Qr
+ A, and H where a broker is new, for a broker learns its group's members by heartbeat), a broker or link that failed
or healed (the drop or return window before those). What is owned is what `assigned` rows say; what is there to own is
what every living NameServer holds alike, so that tables which differ are routes_converge's finding and not this one's.
With broadcasting every consumer is a group of its own. Two owners mean duplicates, none means that nobody consumes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..oracle.queue_owners import Holding, Judged, Piece, Queue, Tables, holdings, judged, pieces
from ..oracle.world import World
from ..verdict import Finding, Verdict
from .findings import finding, rounded, verdict_of
from .tolerance import LagWindow, Tolerance, measure, tolerance

NAME = "queue_ownership"
_COLUMNS = ("time_ms", "seq", "node", "incarnation", "topic", "value")


def queue_ownership(history: DataFrame, world: World) -> Verdict:
    """Examined: (queue, group, quiet stretch). Violations: those with no owner, or more than one, in it."""
    assigned = _rows(history, "assigned")
    held = holdings(world, assigned)
    tables = Tables(world, _rows(history, "route", set(held)))
    stretches = judged(world, held, tables)
    if not stretches:
        why = "there was no quiet time: nobody was assigned queues, or every change was followed by another too soon"
        return Verdict.nothing_examined(NAME, why)
    nodes = [node.name for node in world.of_kind("consumer", "broker")]
    windows = [
        LagWindow(index, node, stretch.change.at_ms, stretch.start_ms)
        for index, stretch in enumerate(stretches)
        for node in nodes
    ]
    lags = measure(history, world, windows)
    groups = _groups(world)
    findings = []
    for index, stretch in enumerate(stretches):
        allowed = tolerance(world.timers, lags.get(index), stretch.change.window.timers)
        for group, members in groups.items():
            findings.append(_finding(stretch, group, members, held[stretch.topic], allowed))
    measured = {
        "stretches": len(stretches),
        "quiet_ms": rounded(sum(stretch.end_ms - stretch.start_ms for stretch in stretches)),
        "queues": len({(stretch.topic, queue) for stretch in stretches for queue in stretch.queues}),
        "groups": len(groups),
    }
    noun = "queues did not have one owner each in a quiet time"
    return verdict_of(NAME, findings, measured=measured, nothing="there was no queue to own", noun=noun)


def _groups(world: World) -> dict[str, frozenset[str]]:
    """Group → its consumers."""
    consumers = [node.name for node in world.of_kind("consumer")]
    if (world.run.get("workload") or {}).get("broadcasting"):
        return {name: frozenset([name]) for name in consumers}
    return {"all consumers": frozenset(consumers)}


def _rows(history: DataFrame, event: str, topics: set[str] | None = None) -> list[dict[str, Any]]:
    """The rows of a kind that comes with changes and not with traffic; `value` decoded."""
    found = history.where(F.col("event") == event)
    if topics is not None:
        found = found.where(F.col("topic").isin(*sorted(topics)) if topics else F.lit(False))
    rows = [row.asDict() for row in found.select(*_COLUMNS).collect()]
    for row in rows:
        row["value"] = json.loads(row["value"]) if row["value"] else None
    return rows


def _finding(
    stretch: Judged,
    group: str,
    members: frozenset[str],
    held: Mapping[Queue, Sequence[Holding]],
    tolerance_: Tolerance,
) -> Finding:
    settled_ms, wrong, late = stretch.change.at_ms, 0, 0
    worst: tuple[float, Piece] | None = None
    for queue in stretch.queues:
        owned = [holding for holding in held.get(queue, ()) if holding.node in members]
        over_ms = 0.0
        for piece in pieces(queue, owned, stretch.change.at_ms, stretch.end_ms):
            if piece.start_ms < stretch.start_ms:
                settled_ms = max(settled_ms, piece.end_ms)
            into_ms = piece.end_ms - stretch.start_ms
            back_ms = stretch.end_ms - max(piece.start_ms, stretch.start_ms)
            piece_over_ms = max(0.0, min(into_ms, back_ms))
            over_ms = max(over_ms, piece_over_ms)
            if worst is None or piece_over_ms > worst[0]:
                worst = (piece_over_ms, piece)
        wrong += over_ms > tolerance_.unknown_up_to_ms
        late += tolerance_.valid_up_to_ms < over_ms <= tolerance_.unknown_up_to_ms
    window = stretch.change.window
    return finding(
        bound_ms=stretch.change.due_ms - stretch.change.at_ms,
        formula=window.formula,
        row=window.row,
        tolerance=tolerance_,
        measured_ms=settled_ms - stretch.change.at_ms,
        examined=len(stretch.queues),
        wrong=wrong,
        late=late,
        example=_example(stretch, group, worst) if worst and (wrong or late) else None,
    )


def _example(stretch: Judged, group: str, worst: tuple[float, Piece]) -> dict[str, Any]:
    over_ms, piece = worst
    return {
        "topic": stretch.topic,
        "broker_name": piece.queue[0],
        "queue_id": piece.queue[1],
        "group": group,
        "clients": list(piece.owners),
        "at_ms": rounded(piece.start_ms),
        "to_ms": rounded(piece.end_ms),
        "due_ms": rounded(stretch.start_ms),
        "over_ms": rounded(over_ms),
        "after": stretch.change.what,
    }
