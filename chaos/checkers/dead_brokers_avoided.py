"""Each client stops using a broker that died, hung or became unreachable, within the window of its route's removal.

    broker lost ── t_rm ── P ── (Qr) ──┬──────────── no use ────────────┬─ broker back
       removed at every NameServer     └ last use must be before this   ┘

Judged per (client, broker, stretch without the broker), where every NameServer that the client can reach has dropped
the broker: one that only the client cannot reach stays in the routes, and nothing bounds its use (the table says ∞).
Nor does anything bound the use of a topic's last broker, because a client keeps its old route when there is none.
A use is a send attempt or a pull at its beginning. A retry belongs to a send that began up to T earlier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..oracle.lost_brokers import Absence, absences
from ..oracle.world import World
from ..verdict import Finding, Verdict
from .dataframes.shared import traffic, within
from .dataframes.small_tables import frame
from .findings import finding, rounded, verdict_of
from .tolerance import LagWindow, Tolerance, measure, tolerance

NAME = "dead_brokers_avoided"
_SHOWN = 60


def dead_brokers_avoided(history: DataFrame, world: World) -> Verdict:
    """Examined: absences that outlasted their window, of clients that did something then. Violations: later uses."""
    found = [absence for absence in absences(world) if absence.from_ms < absence.end_ms]
    nothing = "no broker was lost for longer than the window of its clients, so there is nothing to examine"
    if not found:
        return Verdict.nothing_examined(NAME, nothing)
    name_servers = [node.name for node in world.of_kind("name_server")]
    windows = [
        LagWindow(absence.id, node, absence.start_ms - world.timers.R_ms, absence.from_ms)
        for absence in found
        for node in (absence.client, absence.broker, *name_servers)
    ]
    lags = measure(history, world, windows)
    tolerances = {a.id: tolerance(world.timers, lags.get(a.id), a.window.timers) for a in found}
    seen = _judged(history, world, found)
    findings = [_finding(absence, tolerances[absence.id], seen.get(absence.id)) for absence in found]
    measured = {"last_use": _last_uses(found, seen)}
    nothing = "no client did anything after the window of a lost broker"
    noun = "clients used a lost broker after its window"
    return verdict_of(NAME, findings, measured=measured, nothing=nothing, noun=noun)


def _judged(history: DataFrame, world: World, found: Sequence[Absence]) -> dict[int, dict[str, Any]]:
    """id → uses after its window, of any broker (uses_after) and of the lost one (late_uses); the last and the worst.

    Whose topic an attempt was for only its send says, and only for late uses does it matter: most runs have none, and
    then no send is looked up.
    """
    rows = [(a.id, a.client, a.broker, a.start_ms, a.from_ms, a.end_ms) for a in found]
    schema = "id int, client string, lost string, start_ms double, from_ms double, end_ms double"
    absent = frame(history, rows, schema)
    began = traffic(history).where(
        F.col("event").isin("send_attempt", "pull")
        & (F.col("type") == "invoke")
        & within(F.col("time_ms"), ((a.start_ms, a.end_ms) for a in found))
    )
    # A retry chooses from the route that its send began with.
    grace_ms = F.when(F.coalesce("attempt", F.lit(0)) > 0, F.lit(world.timers.T_ms)).otherwise(F.lit(0.0))
    over = F.least(F.col("at_ms") - F.col("from_ms"), F.col("end_ms") - F.col("time_ms"))
    uses = (
        began.join(absent, F.col("node") == F.col("client"))
        .withColumn("at_ms", F.col("time_ms") - grace_ms)
        .where((F.col("time_ms") >= F.col("start_ms")) & (F.col("time_ms") < F.col("end_ms")))
        .withColumn("is_lost", F.col("broker_name") == F.col("lost"))
        .withColumn("over_ms", F.greatest(over, F.lit(0.0)))
        .select("id", "client", "op_id", "topic", "time_ms", "from_ms", "is_lost", "over_ms")
    )
    late = F.col("is_lost") & (F.col("over_ms") > 0)
    seen = {
        row["id"]: row.asDict()
        for row in uses.groupBy("id")
        .agg(
            F.count(F.when(F.col("time_ms") >= F.col("from_ms"), True)).alias("uses_after"),
            F.max(F.when(F.col("is_lost") & ~late, F.col("time_ms"))).alias("last_ms"),
            F.count(F.when(late, True)).alias("late_uses"),
        )
        .collect()
    }
    if any(row["late_uses"] for row in seen.values()):
        bounded = {row["id"]: row.asDict() for row in _late(history, uses.where(late), found).collect()}
        for id_, row in seen.items():
            more = bounded.get(id_, {"late_uses": 0, "last_ms": None})
            last_ms = max((ms for ms in (row["last_ms"], more["last_ms"]) if ms is not None), default=None)
            row |= {**more, "last_ms": last_ms}
    return seen


def _late(history: DataFrame, late: DataFrame, found: Sequence[Absence]) -> DataFrame:
    """id, last_ms, over_ms, late_uses, use: the late uses for topics that another broker had as well."""
    sends = (
        traffic(history)
        .where((F.col("event") == "send") & (F.col("type") == "invoke"))
        .select(F.col("node").alias("client"), "op_id", F.col("topic").alias("send_topic"))
        .join(late.select("client", "op_id"), ["client", "op_id"], "left_semi")
        .dropDuplicates(["client", "op_id"])
    )
    return (
        late.join(sends, ["client", "op_id"], "left")
        .withColumn("topic", F.coalesce("topic", "send_topic"))
        .join(_bounded_topics(history, found), ["id", "topic"], "left_semi")
        .groupBy("id")
        .agg(
            F.max("time_ms").alias("last_ms"),
            F.max("over_ms").alias("over_ms"),
            F.count("*").alias("late_uses"),
            F.max_by(F.struct("time_ms", "topic", "op_id"), "over_ms").alias("use"),
        )
    )


def _bounded_topics(history: DataFrame, found: Sequence[Absence]) -> DataFrame:
    """id, topic: the topics that another broker, there all the time, had as well."""
    others = frame(history, [(a.id, other) for a in found for other in a.others], "id int, other string")
    held = history.where((F.col("event") == "topic") & F.col("value").isNotNull() & (F.col("value") != "null"))
    return held.select(F.col("node").alias("other"), "topic").distinct().join(others, "other").select("id", "topic")


def _finding(absence: Absence, tolerance_: Tolerance, row: Mapping[str, Any] | None) -> Finding:
    examined = int(bool(row and row["uses_after"]))
    over_ms = (row or {}).get("over_ms") or 0.0
    wrong = int(over_ms > tolerance_.unknown_up_to_ms)
    late = int(not wrong and over_ms > tolerance_.valid_up_to_ms)
    last_ms = (row or {}).get("last_ms")
    example = None
    if row and (wrong or late):
        example = {
            "client": absence.client,
            "broker_name": absence.broker,
            "fault_id": absence.fault_id,
            "topic": row["use"]["topic"],
            "op_id": row["use"]["op_id"],
            "lost_ms": rounded(absence.start_ms),
            "due_ms": rounded(absence.from_ms),
            "used_ms": rounded(row["use"]["time_ms"]),
            "late_uses": row["late_uses"],
            "over_ms": rounded(over_ms),
        }
    return finding(
        bound_ms=absence.window.latest_ms,
        formula=absence.window.formula,
        row=absence.window.row,
        tolerance=tolerance_,
        measured_ms=None if last_ms is None else last_ms - absence.start_ms,
        examined=examined,
        wrong=wrong,
        late=late,
        example=example,
    )


def _last_uses(found: Sequence[Absence], seen: Mapping[int, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """When each client used the lost broker last, counted from its loss; the latest first."""
    rows: list[dict[str, Any]] = [
        {
            "client": absence.client,
            "broker_name": absence.broker,
            "fault_id": absence.fault_id,
            "after_ms": rounded(seen[absence.id]["last_ms"] - absence.start_ms),
            "bound_ms": rounded(absence.window.latest_ms),
        }
        for absence in found
        if seen.get(absence.id, {}).get("last_ms") is not None
    ]
    return sorted(rows, key=lambda row: -row["after_ms"])[:_SHOWN]
