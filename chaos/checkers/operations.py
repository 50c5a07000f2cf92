"""Counts of what clients' operations came to, by client, operation, and slot of time. One pass, no shuffle to speak of.

    send, pull, name_server_call (ended) ─► group by node, operation, bucket, segment ─► Slot ─► availability
                                                                                              └► recovery_time

Buckets are equal parts of the run, at most 200. Segments lie between the moments that a check asks about (a fault, a
heal, the bounds of a quiet time): an operation belongs to the segment in which it began. Each client adds at most
buckets + segments slots an operation, however long the history, so they are collected and the rest is plain Python.

Good is an answer: a send that ended ok, a pull or a look-up that was answered at all, for a broker that says "not yet"
or a NameServer that says "no such topic" serves. Operations without an end are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from .world import World

OPERATIONS = ("send", "pull", "name_server_call")
BUCKETS_MAX = 200
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


class Slot(NamedTuple):
    node: str
    operation: str
    bucket: int
    segment: int
    """How many of the moments had passed when its operations began."""
    until: int
    """How many had passed when they ended."""
    good: int
    bad: int
    first_good_ms: float | None
    """The earliest end of a good one."""
    last_ms: float
    """The latest end of any."""
    last_bad_ms: float | None
    first_bad_ms: float | None = None


def bucket_ms(world: World) -> float:
    """The width of a bucket: a round number of milliseconds, at least 1 s, that makes no more than BUCKETS_MAX."""
    least_ms = max(1000.0, world.end_ms / (BUCKETS_MAX - 1))
    power = 10.0 ** math.floor(math.log10(least_ms))
    return next(power * step for step in _STEPS if power * step >= least_ms)


def slots(history: DataFrame, world: World, moments: Sequence[float], *operations: str) -> list[Slot]:
    """All slots of the run's producers and consumers; `operations` none means all of them. `moments` ascending."""
    clients = [node.name for node in world.of_kind("producer", "consumer")]
    if not clients:
        return []
    event, type_ = F.col("event"), F.col("type")
    begun_ms = F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0))
    good = (type_ == "ok") | ((event != "send") & F.col("code").isNotNull())
    rows = history.where(
        event.isin(*(operations or OPERATIONS))
        & type_.isin("ok", "fail", "info")
        & F.col("node").isin(*clients)
        & (F.col("time_ms") <= world.end_ms)
    ).select(
        "node",
        event.alias("operation"),
        F.floor(F.col("time_ms") / bucket_ms(world)).cast("int").alias("bucket"),
        _passed(begun_ms, moments).alias("segment"),
        _passed(F.col("time_ms"), moments).alias("until"),
        good.alias("is_good"),
        "time_ms",
    )
    counted = rows.groupBy("node", "operation", "bucket", "segment", "until").agg(
        F.sum(F.when(F.col("is_good"), 1).otherwise(0)).alias("good"),
        F.sum(F.when(F.col("is_good"), 0).otherwise(1)).alias("bad"),
        F.min(F.when(F.col("is_good"), F.col("time_ms"))).alias("first_good_ms"),
        F.max("time_ms").alias("last_ms"),
        F.max(F.when(~F.col("is_good"), F.col("time_ms"))).alias("last_bad_ms"),
        F.min(F.when(~F.col("is_good"), F.col("time_ms"))).alias("first_bad_ms"),
    )
    return [Slot(**row.asDict()) for row in counted.collect()]


def _passed(at_ms: Column, moments: Sequence[float]) -> Column:
    """How many of the ascending moments are not after `at_ms`, by halving: log2(n) comparisons a row."""

    def search(low: int, high: int) -> Column:
        if low == high:
            return F.lit(low)
        middle = (low + high) // 2
        return F.when(at_ms < moments[middle], search(low, middle)).otherwise(search(middle + 1, high))

    return search(0, len(moments))
