"""Each NameServer's routes equal what is really alive and reachable, within the window of the last change.

For each NameServer process and broker, obligations.py says when the broker must be in the table (RETURN, KEEP) and when
it must not (DROP). Held means: in the route of every topic that the broker has had for longer than R + B. Measured are
the time of each drop and of each return. Where a fault makes the broker come and go, route_flapping.py says how long
each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..oracle.obligations import Obligation, ObligationKind, obligations
from ..oracle.windows import topic_window
from ..oracle.world import World
from ..verdict import Verdict
from .dataframes.routes import presence, topic_changes, topics
from .findings import Finding, rounded, verdict_of
from .route_flapping import flapping_findings
from .tolerance import LagWindow, Missing, Tolerance, frame, measure, never_registered, table, tolerance

NAME = "routes_are_true"
_SHOWN = 60


def routes_are_true(history: DataFrame, world: World) -> Verdict:
    """Examined: (obligation, topic) pairs. Violations: those where a broker was missing, or was still there."""
    demanded = obligations(world)
    if not demanded:
        why = "no NameServer and broker lived together for longer than the window of their last change"
        return Verdict.nothing_examined(NAME, why)
    tolerances = _tolerances(history, world, demanded)
    seen = {row["id"]: row.asDict() for row in _judged(history, world, demanded, tolerances).collect()}
    for id_ in _stalled(history, world, demanded, seen):
        seen[id_] |= {"wrong": 0, "late": seen[id_]["wrong"] + seen[id_]["late"]}
    findings = [_finding(o, tolerances[o.id], seen.get(o.id, {})) for o in demanded]
    findings += flapping_findings(history, world)
    measured = {
        "drops": _times(demanded, seen, ObligationKind.DROP),
        "returns": _times(demanded, seen, ObligationKind.RETURN),
    }
    return verdict_of(
        NAME,
        findings,
        measured=measured,
        nothing="no topic was ever due to be in a table",
        noun="times a NameServer's route did not equal what was alive and reachable",
    )


def _tolerances(history: DataFrame, world: World, demanded: Sequence[Obligation]) -> dict[int, Tolerance]:
    # A registration one period before the change is where φ is counted from.
    windows = [
        LagWindow(o.id, node, o.at_ms - world.timers.R_ms, o.to_ms if o.demand is ObligationKind.KEEP else o.from_ms)
        for o in demanded
        for node in (o.name_server, o.broker)
    ]
    lags = measure(history, world, windows)
    return {o.id: tolerance(world.timers, lags.get(o.id), o.window.timers) for o in demanded}


def _stalled(
    history: DataFrame, world: World, demanded: Sequence[Obligation], seen: Mapping[int, Mapping[str, Any]]
) -> set[int]:
    """The obligations where a broker was missing, and the machine explains why it did not register."""
    # After a heal it is the first registration that counts; in peace what made the broker be dropped counts too.
    missing = {
        o.id: Missing(
            (o.name_server, o.broker),
            stretch["s"] if o.demand is ObligationKind.KEEP else max(o.at_ms, stretch["s"]),
            min(stretch["e"], o.to_ms),
        )
        for o in demanded
        if o.demand is not ObligationKind.DROP
        and seen.get(o.id, {}).get("wrong")
        and (stretch := seen[o.id]["stretch"])
    }
    return never_registered(history, world, missing)


def _broker_incarnation(world: World, obligation: Obligation) -> int:
    lives = world.lives_of(obligation.broker)
    living = [life.incarnation for life in lives if life.start_ms <= obligation.at_ms]
    return living[-1] if living else -1


def _due(history: DataFrame, world: World, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    """The obligations for each topic: a topic that the broker made while it was up is due R + B later."""
    has = (
        topic_changes(history, world)
        .groupBy("broker", "incarnation", "topic", "started")
        .agg(F.expr("min(if(is_there, time_ms, NULL)) AS made"), F.expr("min(if(is_there, NULL, time_ms)) AS gone"))
        .where("made IS NOT NULL")
        .withColumnsRenamed({"broker": "t_broker", "incarnation": "t_incarnation"})
    )
    same = "want AND broker = t_broker AND broker_incarnation = t_incarnation"
    made_ms = topic_window(world.timers).latest_ms
    columns = ("id", "want", "name_server", "incarnation", "broker", "topic", "at_ms")
    held = (
        has.join(table(history, rows, schema), F.expr(same))
        .selectExpr(
            *columns,
            f"if(made > started, greatest(from_ms, made + {made_ms!r}D), from_ms) AS due",
            "least(to_ms, coalesce(gone, to_ms)) AS until",
            *("valid_up_to_ms", "unknown_up_to_ms"),
        )
        .where("due < until")
    )
    absent = (
        topics(history, world)
        .crossJoin(frame(history, [row for row in rows if not row[1]], schema))
        .selectExpr(*columns, "from_ms AS due", "to_ms AS until", "valid_up_to_ms", "unknown_up_to_ms")
    )
    return held.union(absent).coalesce(1)


def _judged(
    history: DataFrame, world: World, demanded: Sequence[Obligation], tolerances: Mapping[int, Tolerance]
) -> DataFrame:
    """One row per obligation: examined, wrong, late, settled_ms (when the last topic was right) and the worst topic."""
    rows = [
        (
            *(
                o.id,
                o.demand is not ObligationKind.DROP,
                o.name_server,
                o.incarnation,
                o.broker,
                _broker_incarnation(world, o),
            ),
            *(o.at_ms, o.from_ms, o.to_ms, tolerances[o.id].valid_up_to_ms, tolerances[o.id].unknown_up_to_ms),
        )
        for o in demanded
    ]
    schema = "id int, want boolean, name_server string, incarnation int, broker string, broker_incarnation int"
    schema += ", at_ms double, from_ms double, to_ms double, valid_up_to_ms double, unknown_up_to_ms double"
    due = _due(history, world, rows, schema)
    keys = ("name_server", "incarnation", "broker", "topic")
    held = (
        presence(history, world).where("e > 0").selectExpr(*(f"{key} AS h_{key}" for key in keys), "present", "s", "e")
    )
    against = " AND ".join(f"{key} = h_{key}" for key in keys)
    against += " AND present != want AND s < until AND e > least(at_ms, due)"
    # How far a wrong stretch reaches into the obligation from its nearer end; 0 when it ends before.
    over = """
        CASE WHEN s IS NULL THEN 0D
             ELSE greatest(least(least(e, until) - due, until - greatest(s, due)), 0D) END AS over_ms"""
    return (
        due.join(held.hint("shuffle_hash"), F.expr(against), "left")
        .selectExpr("*", over)
        .groupBy("id", "topic", "valid_up_to_ms", "unknown_up_to_ms")
        .agg(
            F.expr("max(over_ms) AS over_ms"),
            # A moment at the far end belongs to the next change, which took effect before its row was written.
            F.expr("max(CASE WHEN s < due OR over_ms > valid_up_to_ms THEN least(e, until) END) AS settled_ms"),
            F.expr("max_by(struct(s, e), if(s IS NULL, NULL, struct(over_ms, s))) AS stretch"),
        )
        .groupBy("id")
        .agg(
            F.expr("count(*) AS examined"),
            F.expr("count_if(over_ms > valid_up_to_ms AND over_ms > unknown_up_to_ms) AS wrong"),
            F.expr("count_if(over_ms > valid_up_to_ms AND over_ms <= unknown_up_to_ms) AS late"),
            F.expr("max(settled_ms) AS settled_ms"),
            F.expr("max(over_ms) AS over_ms"),
            F.expr("max_by(topic, struct(over_ms, topic)) AS topic"),
            F.expr("max_by(stretch, struct(over_ms, topic)) AS stretch"),
        )
    )


def _finding(obligation: Obligation, tolerance_: Tolerance, row: Mapping[str, Any]) -> Finding:
    o = obligation
    bound_ms = o.to_ms - o.at_ms if o.demand is ObligationKind.KEEP else o.window.latest_ms
    settled_ms = row.get("settled_ms")
    measured_ms = settled_ms - o.at_ms if settled_ms is not None and o.demand is not ObligationKind.KEEP else None
    example = None
    if row.get("wrong") or row.get("late"):
        stretch = row["stretch"]
        example = {
            "name_server": o.name_server,
            "broker_name": o.broker,
            "topic": row["topic"],
            "demand": "must not hold" if o.demand is ObligationKind.DROP else "must hold",
            "since_ms": rounded(o.from_ms),
            "until_ms": rounded(o.to_ms),
            "wrong_from_ms": rounded(max(stretch["s"], o.from_ms)),
            "wrong_to_ms": rounded(min(stretch["e"], o.to_ms)),
            "over_ms": rounded(row["over_ms"]),
            "after": str(o.label),
        }
    return Finding(
        bound_ms=bound_ms,
        formula=f"not before {o.window.formula}" if o.demand is ObligationKind.KEEP else o.window.formula,
        row=o.window.row,
        tolerance=tolerance_,
        measured_ms=measured_ms,
        examined=row.get("examined", 0),
        wrong=row.get("wrong", 0),
        late=row.get("late", 0),
        example=example,
    )


def _times(
    demanded: Sequence[Obligation], seen: Mapping[int, Mapping[str, Any]], demand: ObligationKind
) -> list[dict[str, Any]]:
    """How long each drop or return after a fault took, per NameServer and broker; the longest first."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for o in demanded:
        settled_ms = seen.get(o.id, {}).get("settled_ms")
        if o.demand is not demand or not o.label.fault_id or settled_ms is None:
            continue
        entry = {
            "fault_id": o.label.fault_id,
            "name_server": o.name_server,
            "broker_name": o.broker,
            "after_ms": rounded(settled_ms - o.at_ms),
            "bound_ms": rounded(o.window.latest_ms),
        }
        key = (o.label.fault_id, o.name_server, o.broker)
        if key not in found or found[key]["after_ms"] < entry["after_ms"]:
            found[key] = entry
    return sorted(found.values(), key=lambda entry: -entry["after_ms"])[:_SHOWN]
