"""Counts of what clients' operations came to, by client, operation, and slot of time. One pass, no shuffle to speak of.

    send, pull, name_server_call (ended) ─► group by node, operation, bucket, segment ─► Slot ─► availability
                                                                                              └► recovery_time

Buckets are equal parts of the run, at most 200. Segments lie between the edges that a check asks about (a fault, a
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

from ...oracle.quiet import calm
from ...oracle.reach import moments
from ...oracle.world import World
from .shared import parts_of

OPERATIONS = ("send", "pull", "name_server_call")
BUCKETS_MAX = 200
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


class Slot(NamedTuple):
    node: str
    operation: str
    bucket: int
    segment: int
    """How many of the edges had passed when its operations began."""
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
    slowest_ms: float | None = None
    """How long the slowest good one took; None for pulls, which brokers hold on purpose."""


class _Stall(NamedTuple):
    start_ms: float
    end_ms: float
    took_ms: float
    node: str
    """Whose operation was slow."""


class Stalls:
    """When the machine, or its proxies, stood still, so that operations may have timed out that nothing disturbed.

    Nodes measure how late their own timers fire, and the harness how late Toxiproxy is (tolerance.py). What both miss,
    a stall of one link alone, a send or look-up gives away that succeeded, but took a third of T. That in a stretch
    nothing ended at all says nothing: in an outage it is the same.
    """

    def __init__(self, world: World, seen: Sequence[Slot]) -> None:
        self._width_ms, self._timeout_ms = bucket_ms(world), world.timers.T_ms
        self._found = [
            _Stall(slot.bucket * self._width_ms - took_ms, (slot.bucket + 1) * self._width_ms, took_ms, slot.node)
            for slot in seen
            if (took_ms := slot.slowest_ms) is not None and took_ms >= self._timeout_ms / 3
        ]

    def explain(self, slot: Slot) -> bool:
        """Whether operations that ended badly in this slot may have met a stall."""
        start_ms = slot.bucket * self._width_ms - self._timeout_ms
        return self.worst_ms(start_ms, (slot.bucket + 1) * self._width_ms + self._timeout_ms) > 0

    def worst_ms(self, from_ms: float, to_ms: float, *, but: str | None = None) -> float:
        """The longest in that time that does not rest on the operations of `but`; 0 without any."""
        return max(
            (
                stall.took_ms
                for stall in self._found
                if stall.start_ms < to_ms and stall.end_ms > from_ms and stall.node != but
            ),
            default=0.0,
        )


def passed_over(brokers: int, lost: int, queues: int) -> float:
    """The share of sends that fail at most when each that fails on a lost broker takes one good queue of the round.

    One of each lost broker's queues is met a round, because a retry goes to another broker's; 1 where no queue is left.
    Source: `DefaultMQProducerImpl.sendDefaultImpl`, which picks the queue of the next try before it looks at the time.
    """
    return 1.0 if queues * (brokers - lost) <= lost else lost / (queues * (brokers - lost))


def turns_lost(world: World, brokers: int, lost: int, queues: int) -> int:
    """How many sends in a row may meet `lost` of the brokers: each of their queues in its turn.

    Messages of a sharding key keep to their queue, so there it is each key whose queue is lost.
    """
    workload = world.run.get("workload") or {}
    keys = int(workload.get("ordered_keys") or 0) if workload.get("ordered") else 0
    return lost * queues * max(1, math.ceil(keys / (queues * brokers)))


def share_lost(world: World, brokers: int, lost: int, queues: int) -> float:
    """The share of sends that may fail while so many brokers are lost: 1 where all may."""
    workload = world.run.get("workload") or {}
    of_keys = 0.0
    if workload.get("ordered"):
        of_keys = turns_lost(world, brokers, lost, queues) / max(1, int(workload.get("ordered_keys") or 1))
    return min(1.0, max(lost / brokers, passed_over(brokers, lost, queues), of_keys))


def bucket_ms(world: World) -> float:
    """The width of a bucket: a round number of milliseconds, at least 1 s, that makes no more than BUCKETS_MAX."""
    least_ms = max(1000.0, world.end_ms / (BUCKETS_MAX - 1))
    power = 10.0 ** math.floor(math.log10(least_ms))
    return next(power * step for step in _STEPS if power * step >= least_ms)


def shared_slots(history: DataFrame, world: World) -> tuple[list[float], list[Slot]]:
    """The edges (every fault, heal and bound of a quiet stretch) and all slots between them: one pass for all checks.

    Kept with the World, which is made anew for each history, and each time that a growing one is judged.
    """

    def count() -> tuple[DataFrame, list[float], list[Slot]]:
        edges = sorted({edge for stretch in calm(world) for edge in stretch} | {m.at_ms for m in moments(world)})
        return history, edges, slots(history, world, edges)  # kept with it, so that its id stays its own

    return world.memoized(("slots", id(history)), count)[1:]


def slots(history: DataFrame, world: World, edges: Sequence[float], *operations: str) -> list[Slot]:
    """All slots of the run's producers and consumers; `operations` none means all of them. `edges` ascending."""
    clients = [node.name for node in world.of_kind("producer", "consumer")]
    if not clients:
        return []
    event, type_ = F.col("event"), F.col("type")
    begun_ms = F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0))
    good = (type_ == "ok") | ((event != "send") & F.col("code").isNotNull())
    ended = type_.isin("ok", "fail", "info") & F.col("node").isin(*clients) & (F.col("time_ms") <= world.end_ms)
    columns = (
        "node",
        event.alias("operation"),
        F.floor(F.col("time_ms") / bucket_ms(world)).cast("int").alias("bucket"),
        _passed(begun_ms, edges).alias("segment"),
        _passed(F.col("time_ms"), edges).alias("until"),
        good.alias("is_good"),
        "time_ms",
        F.when(event != "pull", F.col("duration_ms")).alias("took_ms"),
    )
    sums = (
        F.sum(F.when(F.col("is_good"), 1).otherwise(0)).alias("good"),
        F.sum(F.when(F.col("is_good"), 0).otherwise(1)).alias("bad"),
        F.min(F.when(F.col("is_good"), F.col("time_ms"))).alias("first_good_ms"),
        F.max("time_ms").alias("last_ms"),
        F.max(F.when(~F.col("is_good"), F.col("time_ms"))).alias("last_bad_ms"),
        F.min(F.when(~F.col("is_good"), F.col("time_ms"))).alias("first_bad_ms"),
        F.max(F.when(F.col("is_good"), F.col("took_ms"))).alias("slowest_ms"),
    )
    counted = [
        part.where(ended).select(*columns).groupBy("node", "operation", "bucket", "segment", "until").agg(*sums)
        for part in parts_of(history, *(operations or OPERATIONS))
    ]
    return [Slot(**row.asDict()) for part in counted for row in part.collect()]


def _passed(at_ms: Column, edges: Sequence[float]) -> Column:
    """How many of the ascending edges are not after `at_ms`, by halving: log2(n) comparisons a row."""

    def search(low: int, high: int) -> Column:
        if low == high:
            return F.lit(low)
        middle = (low + high) // 2
        return F.when(at_ms < edges[middle], search(low, middle)).otherwise(search(middle + 1, high))

    return search(0, len(edges))
