"""Counts of what clients' operations came to (slots.py). One pass, no shuffle to speak of.

send, pull, name_server_call (ended) ─► group by node, operation, bucket, segment ─► Slot ─► availability
                                                                                          └► recovery_time
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...oracle.slaves import CODES as STORED_ALONE
from ...oracle.slaves import unreplicated
from ...oracle.world import World
from ..record.slots import OPERATIONS, TRY, Slot, Slots, bucket_ms, counted_nodes, edges
from .gathering import Gathering
from .shared import parts_of


def slots_of(gathering: Gathering, world: World) -> Slots:
    """Between every fault, heal and bound of a quiet stretch: one pass for all checks that ask."""

    def count() -> Slots:
        found = edges(world)
        return Slots(found, slots(gathering.history, world, found), gathering.control.lateness)

    return gathering.memoized("slots", count)


def slots(history: DataFrame, world: World, between: Sequence[float]) -> list[Slot]:
    """All slots of the run's clients and its prober, `between` these edges, ascending."""
    nodes = counted_nodes(world)
    if not nodes:
        return []
    event, type_ = F.col("event"), F.col("type")
    begun_ms = F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0))
    good = (type_ == "ok") | (~event.isin("send", TRY) & F.col("code").isNotNull()) | _stored_alone(world, begun_ms)
    ended = type_.isin("ok", "fail", "info") & F.col("node").isin(*nodes) & (F.col("time_ms") <= world.end_ms)
    who = F.when(event == TRY, F.coalesce("broker_name", F.lit(""))).otherwise(F.col("node"))
    columns = (
        who.alias("node"),
        event.alias("operation"),
        F.floor(F.col("time_ms") / bucket_ms(world)).cast("int").alias("bucket"),
        passed(begun_ms, between).alias("segment"),
        passed(F.col("time_ms"), between).alias("until"),
        good.alias("is_good"),
        "time_ms",
    )
    sums = (
        F.sum(F.when(F.col("is_good"), 1).otherwise(0)).alias("good"),
        F.sum(F.when(F.col("is_good"), 0).otherwise(1)).alias("bad"),
        F.min(F.when(F.col("is_good"), F.col("time_ms"))).alias("first_good_ms"),
        F.max("time_ms").alias("last_ms"),
        F.max(F.when(~F.col("is_good"), F.col("time_ms"))).alias("last_bad_ms"),
        F.min(F.when(~F.col("is_good"), F.col("time_ms"))).alias("first_bad_ms"),
    )
    counted = [
        part.where(ended).select(*columns).groupBy("node", "operation", "bucket", "segment", "until").agg(*sums)
        for part in parts_of(history, *OPERATIONS, TRY)
    ]
    return [Slot(**row.asDict()) for part in counted for row in part.collect()]


def _stored_alone(world: World, begun_ms: Column) -> Column:
    """A send that was stored on no slave, while its broker may have had none."""
    found = F.lit(False)
    for name, stretches in unreplicated(world).items():
        for start_ms, end_ms in stretches:
            within = (F.col("time_ms") > start_ms) & (begun_ms < end_ms)
            found = found | ((F.col("broker_name") == name) & within)
    said = F.col("event").isin("send", TRY) & F.col("code").isin(*STORED_ALONE)
    return F.coalesce(said & found, F.lit(False))


def passed(at_ms: Column, edges: Sequence[float]) -> Column:
    """How many of the ascending edges are not after `at_ms`, by halving: log2(n) comparisons a row."""

    def search(low: int, high: int) -> Column:
        if low == high:
            return F.lit(low)
        middle = (low + high) // 2
        return F.when(at_ms < edges[middle], search(low, middle)).otherwise(search(middle + 1, high))

    return search(0, len(edges))
