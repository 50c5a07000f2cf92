"""Where registrations land and their answers do not, a broker comes and goes: B of every R in the table.

    fault ─ ≤ R ─ tick ── held B ──┐          tick ── held B ──┐          tick ── …
                                   └ missing R - B ┘           └ missing ┘

Judged per (NameServer, broker, topic) and stretch of such a fault: no stay longer than B, no gap longer than R - B (a
full R where the broker changed a topic meanwhile, because that registers too and shifts the turns), and the first stay
over by R + B. Part of routes_are_true.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..oracle.obligations import FlappingRoute, flapping_routes
from ..oracle.windows import NEVER
from ..oracle.world import World
from .dataframes.routes import presence
from .findings import Finding, rounded
from .tolerance import LagWindow, frame, measure, table, tolerance

_SCHEMA = "id int, name_server string, incarnation int, broker string, from_ms double, to_ms double"
_CHAINED = 2
"""A tick and a time-out."""


def flapping_findings(history: DataFrame, world: World) -> list[Finding]:
    """One finding per stretch of turns and topic; none, and no job, where no fault makes brokers come and go."""
    turns = [t for t in flapping_routes(world) if t.to_ms - t.from_ms > t.pulse.first_ms]
    if not turns:
        return []
    windows = [
        LagWindow(number, node, t.from_ms - world.timers.R_ms, t.to_ms)
        for number, t in enumerate(turns)
        for node in (t.name_server, t.broker)
    ]
    lags = measure(history, world, windows)
    rows = _stretches(history, world, turns, _shifted(history, world, turns)).collect()
    found: list[Finding] = []
    for row in rows:
        turn = turns[row["id"]]
        tolerance_ = tolerance(world.timers, lags.get(row["id"]), _CHAINED)
        over_ms = max(row["over_ms"], 0.0)
        wrong = over_ms > tolerance_.unknown_up_to_ms
        late = not wrong and over_ms > tolerance_.valid_up_to_ms
        example = {
            "name_server": turn.name_server,
            "broker_name": turn.broker,
            "fault_id": turn.fault_id,
            "topic": row["topic"],
            "demand": "held too long" if row["worst"]["present"] else "missing too long",
            "at_ms": rounded(row["worst"]["s"]),
            "to_ms": rounded(row["worst"]["e"]),
            "over_ms": rounded(over_ms),
        }
        found.append(
            Finding(
                bound_ms=turn.pulse.held_ms,
                formula=turn.pulse.formula,
                row=turn.pulse.row,
                tolerance=tolerance_,
                measured_ms=row["held_ms"],
                examined=1,
                wrong=int(wrong),
                late=int(late),
                example=example if wrong or late else None,
            )
        )
    return found


def _shifted(history: DataFrame, world: World, turns: Sequence[FlappingRoute]) -> set[int]:
    """The turns during which the broker changed a topic."""
    rows = [(number, t.broker, t.from_ms - world.timers.R_ms, t.to_ms) for number, t in enumerate(turns)]
    asked = frame(history, rows, "id int, broker string, from_ms double, to_ms double")
    within = (
        (F.col("node") == F.col("broker"))
        & (F.col("time_ms") >= F.col("from_ms"))
        & (F.col("time_ms") < F.col("to_ms"))
    )
    changed = history.where(F.col("event") == "topic").select("node", "time_ms").join(asked, within)
    return {row["id"] for row in changed.select("id").distinct().collect()}


def _stretches(history: DataFrame, world: World, turns: Sequence[FlappingRoute], shifted: set[int]) -> DataFrame:
    """id, topic, held_ms (the longest stay that began during the fault), over_ms and the worst stretch.

    Topics that the broker had in the NameServer's table when the fault began.
    """
    rows = []
    for number, t in enumerate(turns):
        pulse, missing_ms = t.pulse, t.pulse.missing_ms
        if missing_ms < NEVER:
            missing_ms = world.timers.C_ms + (world.timers.R_ms if number in shifted else missing_ms)
        where = (number, t.name_server, t.incarnation, t.broker, t.from_ms, t.to_ms)
        rows.append((*where, t.from_ms + pulse.first_ms, pulse.held_ms, missing_ms))
    asked = table(history, rows, f"{_SCHEMA}, first_ms double, held_ms double, missing_ms double")
    length = F.col("e") - F.col("s")
    over = (
        F.when(F.col("present") & (F.col("s") <= F.col("from_ms")), F.col("e") - F.col("first_ms"))
        .when(F.col("present"), length - F.col("held_ms"))
        .when(F.col("s") > F.col("from_ms"), length - F.col("missing_ms"))
    )
    return (
        presence(history, world)
        .join(asked, ["name_server", "incarnation", "broker"])
        .where((F.col("s") < F.col("to_ms")) & (F.col("e") > F.col("from_ms")))
        .withColumn("e", F.least("e", "to_ms"))
        .withColumn("over_ms", over)
        .groupBy("id", "topic")
        .agg(
            F.max(F.when(F.col("present") & (F.col("s") > F.col("from_ms")), length)).alias("held_ms"),
            F.max("over_ms").alias("over_ms"),
            F.max_by(F.struct("present", "s", "e"), "over_ms").alias("worst"),
            F.max(F.col("present") & (F.col("s") <= F.col("from_ms"))).alias("had"),
        )
        .where(F.col("had") & F.col("over_ms").isNotNull())
        .drop("had")
    )
