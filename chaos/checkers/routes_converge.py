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

from ..oracle.obligations import BEGIN, FaultEdge, RouteState, route_states
from ..oracle.windows import topic_window
from ..oracle.world import World
from ..verdict import Verdict
from .dataframes.materialize import memoized_table
from .dataframes.routes import route_stretches, topic_changes, topics
from .findings import Finding, rounded, verdict_of
from .tolerance import LagWindow, Missing, Tolerance, frame, measure, never_registered, table, tolerance

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
    latest: RouteState
    """The pair whose window ends last: it decides the bound."""
    label: FaultEdge
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
    routes = _routes(history, world, found, seen)
    findings = [
        _finding(segment, tolerances[segment.id], seen.get(segment.id, {}), routes.get(segment.id, (None, None)))
        for segment in found
    ]
    return verdict_of(
        NAME,
        findings,
        measured={"converged_ms": _converged(found, seen)},
        nothing="no segment between two changes was longer than its window",
        noun="topics differed between NameServers that the same brokers reach",
    )


def segments(world: World) -> list[Segment]:
    """Every class of at least two NameServer processes between two changes, in order of time."""
    states = route_states(world)
    times = sorted({state.start_ms for state in states} | {state.end_ms for state in states})
    lost = [fault for node in world.of_kind("name_server") for fault in world.process_faults(node.name)]
    found: list[Segment] = []
    label, label_ms = BEGIN, times[0] if times else 0.0
    starting: dict[float, list[RouteState]] = defaultdict(list)
    for state in states:
        starting[state.start_ms].append(state)
    current: list[RouteState] = []
    for start_ms, to_ms in itertools.pairwise(times):
        current = [state for state in current if state.end_ms > start_ms] + starting[start_ms]
        current.sort(key=lambda state: (state.name_server, state.incarnation, state.broker))
        began = [state.label for state in current if state.start_ms == start_ms and state.label.fault_id]
        began += [FaultEdge(fault.fault_id, "start") for fault in lost if fault.start_ms == start_ms]
        if began and began[0] != label:
            label, label_ms = began[0], start_ms
        by_process: dict[tuple[str, int], list[RouteState]] = {}
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
    """The segments whose difference the machine explains: a broker did not register at one of the NameServers."""
    brokers = [node.name for node in world.of_kind("broker")]
    missing = {
        s.id: Missing(
            (*(name_server for name_server, _ in s.members), *brokers),
            max(s.start_ms, stretch["s"]),
            min(stretch["e"], s.to_ms),
        )
        for s in found
        if seen.get(s.id, {}).get("wrong") and (stretch := seen[s.id]["stretch"])
    }
    return never_registered(history, world, missing)


def _held(history: DataFrame, world: World) -> DataFrame:
    """name_server, incarnation, topic, s, e, route: as `route_stretches`, with the route as a number, which is enough
    to compare. With 64 bits two of a million routes are alike once in 40 million runs."""
    number = "if(value IS NULL, NULL, xxhash64(value)) AS route"
    columns = ("name_server", "incarnation", "topic", "s", "e", number)
    return memoized_table(history, world, "held", lambda: route_stretches(history, world).selectExpr(*columns))


def _judged(
    history: DataFrame, world: World, found: Sequence[Segment], tolerances: Mapping[int, Tolerance]
) -> DataFrame:
    """One row per segment: examined, wrong, late, converged_at_ms (null: never differed), and the worst topic."""
    rows = [(s.id, *member, member[0] == s.members[0][0], s.start_ms, s.to_ms) for s in found for member in s.members]
    schema = "id int, name_server string, incarnation int, is_reference boolean, start_ms double, to_ms double"
    held = (
        _held(history, world)
        .join(table(history, rows, schema), ["name_server", "incarnation"])
        .where("s < to_ms AND e > start_ms")
        .selectExpr(
            *("id", "topic", "name_server", "incarnation", "route", "is_reference"),
            "greatest(s, start_ms) AS s",
            "least(e, to_ms) AS e",
        )
    )
    reference = held.where("is_reference").selectExpr(
        "id", "topic", "incarnation AS r_incarnation", "route AS r_route", "s AS r_s", "e AS r_e"
    )
    pieces = (
        held.where("NOT is_reference")
        .join(reference.hint("shuffle_hash"), ["id", "topic"])
        .where("s < r_e AND e > r_s AND NOT route <=> r_route")
        .selectExpr(
            *("id", "topic", "name_server", "incarnation", "r_incarnation"),
            "greatest(s, r_s) AS s",
            "least(e, r_e) AS e",
        )
    )
    # Neighbouring pieces are one stretch: what matters is how long the two differed, not how often either changed.
    of_pair = Window.partitionBy("id", "topic", "name_server").orderBy("s")
    starts = (F.coalesce(F.lag("e").over(of_pair), F.lit(-1.0)) < F.col("s")).cast("int")
    stretches = (
        pieces.withColumn("starts", starts)
        .withColumn("island", F.sum("starts").over(of_pair))
        .groupBy("id", "topic", "name_server", "island")
        .agg(
            F.expr("min(s) AS s"),
            F.expr("max(e) AS e"),
            F.expr("max_by(struct(s AS at, incarnation, r_incarnation), s) AS last"),
        )
    )
    over = """
        CASE WHEN due < to_ms AND e IS NOT NULL
             THEN greatest(least(least(e, to_ms) - due, to_ms - greatest(s, due)), 0D) ELSE 0D END AS over_ms"""
    # A moment at the far end belongs to the next change, which took effect before its row was written.
    worst = (
        _due(history, world, found, tolerances)
        .join(stretches.hint("shuffle_hash"), ["id", "topic"], "left")
        .selectExpr("*", over)
        .groupBy("id", "topic", "due", "to_ms", "valid_up_to_ms", "unknown_up_to_ms")
        .agg(
            F.expr("max(over_ms) AS over_ms"),
            F.expr("max(CASE WHEN s < due OR over_ms > valid_up_to_ms THEN e END) AS settled_ms"),
            F.expr("max_by(struct(name_server, s, e, last), struct(over_ms, name_server, s)) AS stretch"),
        )
    )
    return worst.groupBy("id").agg(
        F.expr("count_if(due < to_ms) AS examined"),
        F.expr("count_if(due < to_ms AND over_ms > valid_up_to_ms AND over_ms > unknown_up_to_ms) AS wrong"),
        F.expr("count_if(due < to_ms AND over_ms > valid_up_to_ms AND over_ms <= unknown_up_to_ms) AS late"),
        F.expr("max(settled_ms) AS settled_ms"),
        F.expr("max(over_ms) AS over_ms"),
        F.expr("max_by(topic, struct(over_ms, topic)) AS topic"),
        F.expr("max_by(stretch, struct(over_ms, topic)) AS stretch"),
    )


def _due(history: DataFrame, world: World, found: Sequence[Segment], tolerances: Mapping[int, Tolerance]) -> DataFrame:
    """id, topic, due: when the topic must be equal; later than the segment's own window where the topic is new."""
    rows = [
        (s.id, s.from_ms, s.to_ms, tolerances[s.id].valid_up_to_ms, tolerances[s.id].unknown_up_to_ms) for s in found
    ]
    judged = frame(
        history, rows, "id int, from_ms double, to_ms double, valid_up_to_ms double, unknown_up_to_ms double"
    )
    changes = topic_changes(history, world).where("time_ms > started").selectExpr("topic AS c_topic", "time_ms")
    window_ms = topic_window(world.timers).latest_ms
    return (
        topics(history, world)
        .crossJoin(judged)
        .join(changes.hint("shuffle_hash"), F.expr("topic = c_topic AND time_ms < to_ms"), "left")
        .groupBy("id", "topic", "from_ms", "to_ms", "valid_up_to_ms", "unknown_up_to_ms")
        .agg(F.expr(f"greatest(from_ms, coalesce(max(time_ms) + {window_ms!r}D, from_ms)) AS due"))
    )


def _routes(
    history: DataFrame, world: World, found: Sequence[Segment], seen: Mapping[int, Mapping[str, Any]]
) -> dict[int, tuple[str | None, str | None]]:
    """id → the routes that the reference and the other NameServer held last where they differed too long."""
    asked = []
    for segment in found:
        row = seen.get(segment.id, {})
        if row.get("wrong") or row.get("late"):
            name_server, last = row["stretch"]["name_server"], row["stretch"]["last"]
            what = (row["topic"], last["at"])
            asked.append((segment.id, True, segment.members[0][0], last["r_incarnation"], *what))
            asked.append((segment.id, False, name_server, last["incarnation"], *what))
    if not asked:
        return {}
    schema = "id int, is_reference boolean, name_server string, incarnation int, topic string, at double"
    held = (
        route_stretches(history, world)
        .join(table(history, asked, schema), ["name_server", "incarnation", "topic"])
        .where("s <= at AND at < e")
        .select("id", "is_reference", "value")
        .collect()
    )
    values = {(row["id"], row["is_reference"]): row["value"] for row in held}
    return {id_: (values.get((id_, True)), values.get((id_, False))) for id_, *_ in asked}


def _finding(
    segment: Segment, tolerance_: Tolerance, row: Mapping[str, Any], routes: tuple[str | None, str | None]
) -> Finding:
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
            "routes": [*routes],
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
