"""All NameServers that the same brokers can reach hold equal routes, once the window of the last change is over.

    change (fault or heal) ────── window ──────┬──────────── judged ────────────┬─ next change
                            drop or return     └ all of a class equal, each topic ┘

The run is cut into segments at every change of what a NameServer process can hold. Within a segment the NameServers
that the same live brokers can reach form a class. A segment shorter than its window judges nothing. A topic made or
changed inside a segment opens a window of its own, R + B. Measured is when each class had converged after each change.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ..verdict import Verdict
from ..windows import topic_window
from .findings import Finding, rounded, verdict_of
from .lag import LagWindow, Tolerance, frame, may_time_out, measure, tolerance
from .pairs import BEGIN, Label, State, pair_states
from .routes import route_stretches, topics
from .world import World

NAME = "routes_converge"


@dataclass(frozen=True, slots=True)
class Segment:
    """One class of NameServer processes between two changes, judged in [from_ms, to_ms)."""

    id: int
    members: tuple[tuple[str, int], ...]
    """(name_server, incarnation), at least two."""
    start_ms: float
    from_ms: float
    to_ms: float
    latest: State
    """The pair whose window ends last: it decides the bound."""
    label: Label
    label_ms: float
    """When the change began that this segment belongs to; a fault of several links takes several moments."""


def routes_converge(history: DataFrame, world: World) -> Verdict:
    """Examined: (segment, class, topic). Violations: those that differed inside the judged stretch."""
    found = segments(world)
    if not found:
        return Verdict.nothing_examined(NAME, "never could the same brokers reach two NameServers at once")
    windows = [
        LagWindow(segment.id, node, segment.latest.at_ms - world.timers.R_ms, max(segment.from_ms, segment.start_ms))
        for segment in found
        for node in (*(name for name, _ in segment.members), segment.latest.broker)
    ]
    lags = measure(history, world, windows)
    tolerances = {s.id: tolerance(world.timers, lags.get(s.id), s.latest.window.timers) for s in found}
    seen = {row["id"]: row.asDict() for row in _judged(history, world, found, tolerances).collect()}
    for id_ in _stalled(history, world, found, seen):
        seen[id_] |= {"wrong": 0, "late": seen[id_]["wrong"] + seen[id_]["late"]}
    findings = [_finding(segment, tolerances[segment.id], seen.get(segment.id, {})) for segment in found]
    return verdict_of(
        NAME,
        findings,
        measured={"converged_ms": _converged(found, seen)},
        nothing="no segment between two changes was longer than its window",
        noun="topics differed between NameServers that the same brokers reach",
    )


def segments(world: World) -> list[Segment]:
    """Every class of at least two NameServer processes between two changes, in order of time."""
    states = pair_states(world)
    times = sorted({state.start_ms for state in states} | {state.end_ms for state in states})
    lost = [fault for node in world.of_kind("name_server") for fault in world.process_faults(node.name)]
    found: list[Segment] = []
    label, label_ms = BEGIN, times[0] if times else 0.0
    starting: dict[float, list[State]] = defaultdict(list)
    for state in states:
        starting[state.start_ms].append(state)
    current: list[State] = []
    for start_ms, to_ms in itertools.pairwise(times):
        current = [state for state in current if state.end_ms > start_ms] + starting[start_ms]
        current.sort(key=lambda state: (state.name_server, state.incarnation, state.broker))
        began = [state.label for state in current if state.start_ms == start_ms and state.label.fault_id]
        began += [Label(fault.fault_id, "start") for fault in lost if fault.start_ms == start_ms]
        if began and began[0] != label:
            label, label_ms = began[0], start_ms
        by_process: dict[tuple[str, int], list[State]] = {}
        for state in current:
            by_process.setdefault((state.name_server, state.incarnation), []).append(state)
        classes: dict[frozenset[str], list[tuple[str, int]]] = {}
        for process, pairs in by_process.items():
            if all(state.judged for state in pairs):
                reaching = frozenset(state.broker for state in pairs if state.up)
                classes.setdefault(reaching, []).append(process)
        for members in classes.values():
            if len(members) > 1:
                latest = max((s for member in members for s in by_process[member]), key=lambda s: s.settled_ms)
                from_ms = max(start_ms, latest.settled_ms)
                found.append(Segment(len(found), tuple(members), start_ms, from_ms, to_ms, latest, label, label_ms))
    return found


def _stalled(
    history: DataFrame, world: World, found: Sequence[Segment], seen: Mapping[int, Mapping[str, Any]]
) -> set[int]:
    """The segments whose difference the machine explains: it stood still for as long as a registration waits.

    The broker then gives the registration up and closes its channel, and one NameServer rightly drops it.
    """
    timers = world.timers
    brokers = [node.name for node in world.of_kind("broker")]
    windows = [
        LagWindow(s.id, node, stretch["s"] - timers.R_ms - timers.B_ms, min(stretch["e"], s.to_ms))
        for s in found
        if seen.get(s.id, {}).get("wrong") and (stretch := seen[s.id]["stretch"])
        for node in (*(name_server for name_server, _ in s.members), *brokers)
    ]
    lags = measure(history, world, windows)
    return {id_ for id_, lag_ms in lags.items() if may_time_out(timers, lag_ms, timers.B_ms)}


def _judged(
    history: DataFrame, world: World, found: Sequence[Segment], tolerances: Mapping[int, Tolerance]
) -> DataFrame:
    """One row per segment: examined, wrong, late, converged_at_ms (null: never differed), and the worst topic."""
    rows = [
        (
            s.id,
            *member,
            s.members[0][0],
            s.start_ms,
            s.from_ms,
            s.to_ms,
            tolerances[s.id].fine_ms,
            tolerances[s.id].possible_ms,
        )
        for s in found
        for member in s.members
    ]
    schema = "id int, name_server string, incarnation int, reference string, start_ms double, from_ms double"
    schema += ", to_ms double, fine_ms double, possible_ms double"
    members = frame(history, rows, schema)
    overlaps = (F.col("s") < F.col("to_ms")) & (F.col("e") > F.col("start_ms"))
    held = (
        route_stretches(history, world)
        .join(members, ["name_server", "incarnation"])
        .where(overlaps)
        .select(
            *("id", "topic", "name_server", "value", "to_ms"),
            (F.col("name_server") == F.col("reference")).alias("is_reference"),
            F.greatest("s", "start_ms").alias("s"),
            F.least("e", "to_ms").alias("e"),
        )
    )
    reference = held.where("is_reference").select(
        "id", "topic", F.col("value").alias("r_value"), F.col("s").alias("r_s"), F.col("e").alias("r_e")
    )
    differs = (F.col("s") < F.col("r_e")) & (F.col("e") > F.col("r_s")) & ~F.col("value").eqNullSafe(F.col("r_value"))
    pieces = (
        held.where(~F.col("is_reference"))
        .join(reference, ["id", "topic"])
        .where(differs)
        .select(
            "id",
            "topic",
            "name_server",
            F.greatest("s", "r_s").alias("s"),
            F.least("e", "r_e").alias("e"),
            "value",
            "r_value",
        )
    )
    # Neighbouring pieces are one stretch: what matters is how long the two differed, not how often either changed.
    of_pair = Window.partitionBy("id", "topic", "name_server").orderBy("s")
    stretches = (
        pieces.withColumn("starts", (F.coalesce(F.lag("e").over(of_pair), F.lit(-1.0)) < F.col("s")).cast("int"))
        .withColumn("island", F.sum("starts").over(of_pair))
        .groupBy("id", "topic", "name_server", "island")
        .agg(
            F.min("s").alias("s"),
            F.max("e").alias("e"),
            F.max_by("value", "s").alias("value"),
            F.max_by("r_value", "s").alias("r_value"),
        )
    )
    due = _due(history, world, found, tolerances)
    into = F.least("e", "to_ms") - F.col("due")
    back = F.col("to_ms") - F.greatest("s", "due")
    over = F.when(F.col("e").isNull(), 0.0).otherwise(F.greatest(F.least(into, back), F.lit(0.0)))
    status = F.when(F.col("over_ms") <= F.col("fine_ms"), "fine").when(F.col("over_ms") <= F.col("possible_ms"), "late")
    worst = (
        due.join(stretches, ["id", "topic"], "left")
        .withColumn("over_ms", F.when(F.col("due") < F.col("to_ms"), over).otherwise(0.0))
        .groupBy("id", "topic", "due", "to_ms", "fine_ms", "possible_ms")
        .agg(
            F.max("over_ms").alias("over_ms"),
            # A moment at the far end belongs to the next change, which took effect before its row was written.
            F.max(F.when((F.col("s") < F.col("due")) | (F.col("over_ms") > F.col("fine_ms")), F.col("e"))).alias(
                "settled_ms"
            ),
            F.max_by(F.struct("name_server", "s", "e", "value", "r_value"), "over_ms").alias("stretch"),
        )
        .withColumn("status", F.when(F.col("due") >= F.col("to_ms"), "early").otherwise(status.otherwise("wrong")))
    )
    return worst.groupBy("id").agg(
        F.count(F.when(F.col("status") != "early", True)).alias("examined"),
        F.count(F.when(F.col("status") == "wrong", True)).alias("wrong"),
        F.count(F.when(F.col("status") == "late", True)).alias("late"),
        F.max("settled_ms").alias("settled_ms"),
        F.max("over_ms").alias("over_ms"),
        F.max_by("topic", "over_ms").alias("topic"),
        F.max_by("stretch", "over_ms").alias("stretch"),
    )


def _due(history: DataFrame, world: World, found: Sequence[Segment], tolerances: Mapping[int, Tolerance]) -> DataFrame:
    """id, topic, due: when the topic must be equal; later than the segment's own window where the topic is new."""
    starts = frame(
        history,
        [(life.node, life.incarnation, life.start_ms) for life in world.lives],
        "node string, incarnation int, started double",
    )
    changes = (
        history.where(F.col("event") == "topic")
        .select("node", "incarnation", "topic", "time_ms")
        .join(starts, ["node", "incarnation"])
        .where(F.col("time_ms") > F.col("started"))
        .select(F.col("topic").alias("c_topic"), "time_ms")
    )
    rows = [(s.id, s.from_ms, s.to_ms, tolerances[s.id].fine_ms, tolerances[s.id].possible_ms) for s in found]
    judged = frame(history, rows, "id int, from_ms double, to_ms double, fine_ms double, possible_ms double")
    in_time = (F.col("topic") == F.col("c_topic")) & (F.col("time_ms") < F.col("to_ms"))
    new_ms = F.max("time_ms") + F.lit(topic_window(world.timers).latest_ms)
    return (
        topics(history)
        .crossJoin(judged)
        .join(changes, in_time, "left")
        .groupBy("id", "topic", "from_ms", "to_ms", "fine_ms", "possible_ms")
        .agg(F.greatest("from_ms", F.coalesce(new_ms, F.col("from_ms"))).alias("due"))
    )


def _finding(segment: Segment, tolerance_: Tolerance, row: Mapping[str, Any]) -> Finding:
    latest = segment.latest
    settled_ms = row.get("settled_ms")
    recent = latest.at_ms >= segment.start_ms or row.get("wrong") or row.get("late")
    measured_ms = settled_ms - latest.at_ms if settled_ms is not None and recent else None
    example = None
    if row.get("wrong") or row.get("late"):
        stretch = row["stretch"]
        example = {
            "topic": row["topic"],
            "name_servers": [segment.members[0][0], stretch["name_server"]],
            "routes": [stretch["r_value"], stretch["value"]],
            "differ_from_ms": rounded(stretch["s"]),
            "differ_to_ms": rounded(stretch["e"]),
            "due_ms": rounded(segment.from_ms),
            "over_ms": rounded(row["over_ms"]),
            "after": str(latest.label),
        }
    return Finding(
        bound_ms=latest.window.latest_ms,
        formula=latest.window.formula,
        row=latest.window.row,
        tolerance=tolerance_,
        measured_ms=measured_ms,
        examined=row.get("examined", 0),
        wrong=row.get("wrong", 0),
        late=row.get("late", 0),
        example=example,
    )


def _converged(found: Sequence[Segment], seen: Mapping[int, Mapping[str, Any]]) -> dict[str, float | None]:
    """ "<fault_id> start|end" → how long after that change the last class had converged; None: it never did."""
    converged: dict[str, float | None] = {}
    ends: dict[str, float] = {}
    for segment in found:
        if segment.label.fault_id:
            ends[str(segment.label)] = segment.to_ms
    for segment in found:
        if not segment.label.fault_id:
            continue
        key = str(segment.label)
        settled_ms = seen.get(segment.id, {}).get("settled_ms")
        after_ms: float | None = 0.0 if settled_ms is None else settled_ms - segment.label_ms
        if settled_ms is not None and settled_ms >= ends[key]:
            after_ms = None
        if key in converged and (converged[key] is None or after_ms is None):
            converged[key] = None
        else:
            converged[key] = rounded(max(converged.get(key) or 0.0, after_ms or 0.0)) if after_ms is not None else None
    return converged
