"""What clients used, counted (uses.py): four aggregating queries, their results as large as the cluster and the run.

send (ok) ─────────► by process, topic, queue and segment ─► sends in turn
send_attempt, send ► those that failed, by producer and segment
send_attempt ──────► beside the try before it ──────────────► retries, and those on the same broker
pull, receive ─────► by consumer, queue and 10 s ───────────► who read what when
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ...oracle.time_outs import avoidance
from ...oracle.world import World
from ...verdict import FINDINGS_MAX
from ..uses import PART_MS, BrokerShares, Queue, Read, SameBroker, Segment, edges
from .gathering import Gathering
from .operations import passed
from .shared import traffic

_OP = ("node", "incarnation", "op_id")


def broker_shares(gathering: Gathering, world: World) -> BrokerShares:
    """Of the run's producers and consumers."""
    history, between = traffic(gathering.history), edges(gathering.control, world)
    producers = [node.name for node in world.of_kind("producer")]
    consumers = [node.name for node in world.of_kind("consumer")]
    retries, same = _retries(history, producers) if producers else (0, ())
    return BrokerShares(
        sends=_sends(history, producers, between) if producers else {},
        failed=_failed(history, producers, between, world) if producers else {},
        retries=retries,
        same=same,
        reads=_reads(history, consumers) if consumers else {},
    )


def _begun() -> Column:
    return F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0))


def _sends(history: DataFrame, producers: Sequence[str], between: Sequence[float]) -> dict[Segment, dict[Queue, int]]:
    rows = (
        history.where((F.col("event") == "send") & (F.col("type") == "ok") & F.col("node").isin(*producers))
        .groupBy("node", "incarnation", "topic", passed(_begun(), between).alias("edge"), "broker_name", "queue_id")
        .count()
        .collect()
    )
    found: dict[Segment, dict[Queue, int]] = defaultdict(dict)
    for node, incarnation, topic, edge, broker_name, queue_id, count in rows:
        found[Segment(node, incarnation, topic, between[edge - 1])][broker_name, queue_id] = count
    return dict(found)


def _failed(
    history: DataFrame, producers: Sequence[str], between: Sequence[float], world: World
) -> dict[tuple[str, float], int]:
    """Where they began, and where they ended."""
    failed = F.col("type").isin("fail", "info")
    avoided = avoidance(world)
    if avoided is not None:
        failed = failed | ((F.col("event") == "send_attempt") & (F.col("duration_ms") >= avoided.slow_ms))
    rows = (
        history.where(F.col("event").isin("send", "send_attempt") & failed & F.col("node").isin(*producers))
        .select("node", F.array(passed(_begun(), between), passed(F.col("time_ms"), between)).alias("edges"))
        .select("node", F.explode(F.array_distinct("edges")).alias("edge"))
        .groupBy("node", "edge")
        .count()
        .collect()
    )
    return {(node, between[edge - 1]): count for node, edge, count in rows}


def _retries(history: DataFrame, producers: Sequence[str]) -> tuple[int, tuple[SameBroker, ...]]:
    begun = history.where(
        (F.col("event") == "send_attempt") & (F.col("type") == "invoke") & F.col("node").isin(*producers)
    ).select(*_OP, "attempt", "broker_name", "time_ms")
    again = begun.where(F.col("attempt") > 0)
    before = begun.select(*_OP, (F.col("attempt") + 1).alias("attempt"), F.col("broker_name").alias("before"))
    pairs = again.join(before, [*_OP, "attempt"])
    same = F.col("broker_name") == F.col("before")
    rows = (
        pairs.withColumn("retries", F.count("*").over(Window.partitionBy(F.lit(0))))
        .withColumn("place", F.row_number().over(Window.partitionBy(F.lit(0)).orderBy((~same).cast("int"), "time_ms")))
        .where((F.col("place") == 1) | (same & (F.col("place") <= FINDINGS_MAX)))
        .select(*_OP, "attempt", "broker_name", "time_ms", same.alias("same"), "retries")
        .orderBy("time_ms")
        .collect()
    )
    found = tuple(
        SameBroker(node, incarnation, op_id, attempt, broker_name, time_ms)
        for node, incarnation, op_id, attempt, broker_name, time_ms, is_same, _ in rows
        if is_same
    )
    return (rows[0]["retries"] if rows else 0), found


def _reads(history: DataFrame, consumers: Sequence[str]) -> dict[Read, dict[int, int]]:
    rows = (
        history.where(F.col("event").isin("pull", "receive") & F.col("node").isin(*consumers))
        .groupBy("node", "topic", "broker_name", "queue_id", F.floor(F.col("time_ms") / PART_MS).alias("part"))
        .count()
        .collect()
    )
    found: dict[Read, dict[int, int]] = defaultdict(dict)
    for node, topic, broker_name, queue_id, part, count in rows:
        found[Read(node, topic, broker_name, queue_id)][part] = count
    return dict(found)
