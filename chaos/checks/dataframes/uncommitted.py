"""What was worked off and committed late or never, and offsets that a broker forgot.

receive ─► by holding, in order of offsets: 4 5 6 · 8     without a gap from its beginning, or from a commit on
           worked off: the latest receipt so far          4 5 6: 6 is worked off when 4, 5 and 6 are received
           first commit beyond it                         too late, or none ──► Behind, the first of each commit
commit  ─► by process of a broker, in order of time: before lower than the last one's offset ──► Forgotten
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ..record.commits import AtSlave, Behind, Forgotten, Left
from ..record.control import Row
from ..record.uses import PART_MS
from .plain_pages import QUEUE
from .shared import traffic
from .small_tables import beside

_PLACE = (*QUEUE, "group")


def behind(history: DataFrame, kept: DataFrame, taken: Sequence[tuple[Row, str]], late_ms: float) -> list[Behind]:
    """Of the holdings that these `queue_taken` rows began, each with its group; `kept`: the commits of the groups;
    `late_ms` is in time."""
    takes: list[tuple[Any, ...]] = [
        (number, row.node, row.incarnation, row.op_id, row.topic, group, row.offset or 0)
        for number, (row, group) in enumerate(taken)
    ]
    if not takes:
        return []
    schema = "id int, node string, incarnation int, op_id string, topic string, group string, at long"
    receipts = (
        traffic(history)
        .where((F.col("event") == "receive") & F.col("offset").isNotNull())
        .join(beside(history, takes, schema), ["node", "incarnation", "op_id", "topic"])
        .groupBy("id", *_PLACE, "offset", "at")
        .agg(F.min("time_ms").alias("received_ms"))
    )
    none = F.lit(None)
    beyond = kept.select(
        none.cast("int").alias("id"),
        *_PLACE,
        (F.col("offset") - 1).alias("offset"),  # the last that it covers
        none.cast("long").alias("at"),
        none.cast("double").alias("received_ms"),
        F.col("time_ms").alias("commit_ms"),
    )
    from_its_end = (
        Window.partitionBy(*_PLACE)
        .orderBy(F.desc("offset"), F.col("commit_ms").isNull())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    of_holding = Window.partitionBy("id", *QUEUE).orderBy("offset")
    unbroken = Window.partitionBy("id", *QUEUE, "island").orderBy("offset")
    so_far = unbroken.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    rows = (
        receipts.withColumn("commit_ms", none.cast("double"))
        .unionByName(beyond)
        .withColumn("first_ms", F.min("commit_ms").over(from_its_end))
        .where(F.col("id").isNotNull())
        .withColumn("island", F.col("offset") - F.row_number().over(of_holding))
        .withColumn("from_ms", F.first("first_ms").over(so_far))
        .withColumn("worked_ms", F.max("received_ms").over(so_far))
        .where((F.col("island") == F.col("at") - 1) | F.col("from_ms").isNotNull())
        .withColumn(
            "worked_ms",
            F.when(F.col("island") == F.col("at") - 1, F.col("worked_ms")).otherwise(
                F.greatest("worked_ms", "from_ms")
            ),
        )
        .where(F.col("first_ms").isNull() | (F.col("first_ms") - F.col("worked_ms") > late_ms))
        .groupBy("id", *_PLACE, "first_ms")
        .agg(F.min(F.struct("worked_ms", "offset")).alias("work"))
        .select("id", *_PLACE, "work.offset", "work.worked_ms", "first_ms")
        .orderBy("id", "worked_ms", "offset")
        .collect()
    )
    found = []
    for id_, topic, broker_name, queue_id, group, *work in rows:
        row, _ = taken[id_]
        found.append(Behind(topic, broker_name, queue_id, group, row.node, row.incarnation, row.time_ms, *work))
    return found


def forgotten(kept: DataFrame) -> list[Forgotten]:
    """Commits before which the same process of the broker had a lower offset than it was told last; of masters, for a
    slave's table is its master's each 10 s, whatever it was told itself (`SlaveSynchronize`)."""
    of_process = Window.partitionBy(*_PLACE, "node", "incarnation").orderBy("time_ms", "seq")
    rows = (
        kept.where(~F.col("node").contains("/"))  # topology.is_slave
        .withColumn("told", F.lag("offset").over(of_process))
        .withColumn("told_ms", F.lag("time_ms").over(of_process))
        .where(F.col("before") < F.col("told"))
        .select(*_PLACE, "before", "told", F.col("time_ms").alias("at_ms"), "told_ms")
        .orderBy("at_ms", *_PLACE)
    )
    return [Forgotten(*row) for row in rows.collect()]


def left(history: DataFrame, kept: DataFrame, dropped: Sequence[tuple[Row, str]]) -> list[Left]:
    """Of these `queue_dropped` rows, each with its group, those whose last message no commit covered by then; `kept`:
    the commits of the groups."""
    drops: list[tuple[Any, ...]] = [
        (number, row.node, row.incarnation, row.op_id, *queue, group, (row.offset or 0) - 1)
        for number, (row, group) in enumerate(dropped)
        for queue in [(row.topic, row.broker_name, row.queue_id)]
    ]
    if not drops:
        return []
    of_holding = "node string, incarnation int, op_id string"
    of_queue = "topic string, broker_name string, queue_id int"
    small = beside(history, drops, f"id int, {of_holding}, {of_queue}, group string, offset long")
    receipts = traffic(history).where((F.col("event") == "receive") & F.col("offset").isNotNull())
    last = receipts.join(small, ["node", "incarnation", "op_id", *QUEUE, "offset"])
    worked = {row[0]: row[1] for row in last.groupBy("id").agg(F.min("time_ms")).collect()}
    if not worked:
        return []
    places = [(*drop[4:8], drop[0], drop[8]) for drop in drops if drop[0] in worked]
    few = beside(history, places, f"{of_queue}, group string, id int, last long")
    covering = kept.join(few, list(_PLACE)).where(F.col("offset") > F.col("last"))
    committed = {row[0]: row[1] for row in covering.groupBy("id").agg(F.min("time_ms")).collect()}
    found = []
    for number, worked_ms in sorted(worked.items()):
        (row, group), committed_ms = dropped[number], committed.get(number)
        if committed_ms is None or committed_ms > row.time_ms:
            of = row.topic or "", row.broker_name or "", row.queue_id or 0, group, row.node, row.incarnation
            found.append(Left(*of, row.offset or 0, row.time_ms, worked_ms, committed_ms))
    return found


def at_slaves(kept: DataFrame, slaves: Sequence[str]) -> list[AtSlave]:
    """The commits at these slaves, by consumer and part of the time."""
    if not slaves:
        return []
    rows = (
        kept.where(F.col("node").isin(list(slaves)) & F.col("client").isNotNull())
        .withColumn("part", F.floor(F.col("time_ms") / PART_MS))
        .groupBy("broker_name", "group", "node", "client", "part")
        .agg(F.min("time_ms").alias("first_ms"), F.max("time_ms").alias("last_ms"), F.count("*").alias("commits"))
        .orderBy("broker_name", "group", "node", "client", "part")
        .drop("part")
    )
    return [AtSlave(*row) for row in rows.collect()]
