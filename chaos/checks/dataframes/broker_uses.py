"""What clients did while brokers were lost to them: one aggregating query over attempts and pulls, for any history.

Whose topic an attempt was for only its send says, and only for late uses does it matter: most runs have none, and then
no send is looked up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ...oracle.lost_brokers import Absence
from ...oracle.world import World
from ...topology import broker_name
from ..record.broker_uses import Use, Uses, lost_at
from ..record.control import Control
from ..record.route_tables import exists
from .gathering import Gathering
from .shared import traffic, within
from .small_tables import frame


def broker_uses(gathering: Gathering, world: World, found: Sequence[Absence]) -> dict[int, Uses]:
    """The absence's id → what its client did; an id of a client that did nothing is missing."""
    uses = _uses(gathering.history, world, found)
    late = F.col("is_lost") & (F.col("reaches_ms") > 0)
    rows = (
        uses.groupBy("id")
        .agg(
            F.count(F.when(F.col("time_ms") >= F.col("from_ms"), True)).alias("after"),
            F.max(F.when(F.col("is_lost") & ~late, F.col("at_ms"))).alias("last_ms"),
            F.count(F.when(late, True)).alias("late"),
        )
        .collect()
    )
    seen = {row["id"]: Uses(after=row["after"], last_ms=row["last_ms"]) for row in rows}
    if any(row["late"] for row in rows):
        for id_, more in _late(gathering.history, uses.where(late), _bounded_topics(gathering.control, found)).items():
            seen[id_] = seen[id_].plus(more)
    return seen


def _uses(history: DataFrame, world: World, found: Sequence[Absence]) -> DataFrame:
    """id, client, op_id, topic, time_ms, at_ms, from_ms, is_lost, reaches_ms: attempts and pulls in absences."""
    rows = [
        (
            a.id,
            a.client,
            broker_name(a.broker),
            lost_at(a, world),
            a.address is not None,
            a.start_ms,
            a.from_ms,
            a.end_ms,
        )
        for a in found
    ]
    schema = "id int, client string, lost string, lost_at string, alone boolean"
    schema += ", start_ms double, from_ms double, end_ms double"
    absent = frame(history, rows, schema)
    began = traffic(history).where(
        F.col("event").isin("send_attempt", "pull")
        & (F.col("type") == "invoke")
        & within(F.col("time_ms"), ((a.start_ms, a.end_ms) for a in found))
    )
    # A retry chooses from the route that its send began with.
    grace_ms = F.when(F.coalesce("attempt", F.lit(0)) > 0, F.lit(world.timers.T_ms)).otherwise(F.lit(0.0))
    reaches = F.least(F.col("at_ms") - F.col("from_ms"), F.col("end_ms") - F.col("time_ms"))
    return (
        began.join(absent, F.col("node") == F.col("client"))
        .withColumn("at_ms", F.col("time_ms") - grace_ms)
        .where((F.col("time_ms") >= F.col("start_ms")) & (F.col("time_ms") < F.col("end_ms")))
        .withColumn("is_lost", (F.col("broker_name") == F.col("lost")) & _is_there)
        .withColumn("reaches_ms", F.greatest(reaches, F.lit(0.0)))
        .select("id", "client", "op_id", "topic", "time_ms", "at_ms", "from_ms", "is_lost", "reaches_ms")
    )


_is_there = F.coalesce(F.col("address") == F.col("lost_at"), ~F.col("alone"))
"""Of a name with slaves, or of a broker that came back at another, it is the address that says what was used."""


def _late(history: DataFrame, late: DataFrame, bounded: Mapping[int, Collection[str]]) -> dict[int, Uses]:
    """The absence's id → the late uses for topics that another broker had as well."""
    sends = (
        traffic(history)
        .where((F.col("event") == "send") & (F.col("type") == "invoke"))
        .select(F.col("node").alias("client"), "op_id", F.col("topic").alias("send_topic"))
        .join(late.select("client", "op_id"), ["client", "op_id"], "left_semi")
        .dropDuplicates(["client", "op_id"])
    )
    rows = (
        late.join(sends, ["client", "op_id"], "left")
        .withColumn("topic", F.coalesce("topic", "send_topic"))
        .groupBy("id", "topic")
        .agg(
            F.count("*").alias("late"),
            F.max("at_ms").alias("last_ms"),
            F.max(F.struct("reaches_ms", "time_ms", "op_id", (F.col("at_ms") - F.col("from_ms")).alias("over"))).alias(
                "worst"
            ),
        )
        .collect()
    )
    found: dict[int, Uses] = {}
    for row in rows:
        if row["topic"] in bounded.get(row["id"], ()):
            reaches_ms, time_ms, op_id, over_ms = row["worst"]
            worst = Use(reaches_ms, time_ms, row["topic"], op_id or "", over_ms)
            uses = Uses(late=row["late"], last_ms=row["last_ms"], worst=worst)
            found[row["id"]] = found.get(row["id"], Uses()).plus(uses)
    return found


def _bounded_topics(control: Control, found: Sequence[Absence]) -> dict[int, frozenset[str]]:
    """The absence's id → the topics that another broker, there all the time, had as well."""
    held: dict[str, set[str]] = defaultdict(set)
    for row in control.rows("topic"):
        if exists(row.value) and row.topic is not None:
            held[row.node].add(row.topic)
    return {a.id: frozenset().union(*(held[other] for other in a.others if other in held)) for a in found}
