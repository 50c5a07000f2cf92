"""The commits that have to be explained: beyond what was received, below the one before, or not what was read later.

    commit ──┬─ counted; those below the one before ─────────────────────────────────────► Back
             ├─ beside queue_taken: was the offset that was read passed before? ──────────► Older
             ├─ beside the receipts of each holding: was it covered in time? ─────────────► Behind (uncommitted.py)
    send ok ─┼─► by queue, from its end: the first commit beyond each message ──┐
    receive ─┘                              received by then? ── no ────────────┴────────► Ahead

A history without commits, as foreign brokers leave it, costs one count.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ...oracle.deliveries import Asker, askers
from ...oracle.world import World
from ..record.at_slaves import copied_before, slaves_that_tell
from ..record.commits import Ahead, Back, Behind, CommitFacts, Older, asker_of
from ..record.handed_over import given_up
from ..record.uncommitted import brokers_that_tell, interval_ms
from .deliveries import members, of_each_group
from .gathering import Gathering
from .plain_pages import QUEUE
from .shared import traffic
from .small_tables import beside
from .uncommitted import at_slaves, behind, forgotten, left

_PLACE = (*QUEUE, "group")


def commits(gathering: Gathering, world: World) -> CommitFacts:
    """Of all consumer groups of the run; with broadcasting of every consumer."""
    groups = askers(world)
    if not groups:
        return CommitFacts()
    history, broadcasting = traffic(gathering.history), bool(world.workload.get("broadcasting"))
    rows = history.where(F.col("event") == "commit")
    kept = _of_groups(gathering.history, rows, groups, broadcasting=broadcasting)
    is_back = F.col("before") > F.col("offset")
    counts = kept.agg(F.count("*"), F.count(F.when(is_back, True))).collect()[0]
    at_brokers = rows.where(F.col("role") != "consumer").count() if broadcasting else 0
    late = _behind(gathering, world, kept, groups)
    uncovered = left(gathering.history, kept, given_up(gathering.control, world))
    if not counts[0]:
        return CommitFacts(at_brokers=at_brokers, behind=tuple(late), left=tuple(uncovered))
    taken, older = (0, []) if broadcasting else _older(gathering, world, kept)
    return CommitFacts(
        commits=counts[0],
        taken=taken,
        at_brokers=at_brokers,
        ahead=tuple(_ahead(gathering.history, kept, groups)),
        back=tuple(_back(kept, is_back)) if counts[1] else (),
        older=tuple(older),
        forgotten=tuple(forgotten(kept)),
        behind=tuple(late),
        left=tuple(uncovered),
        at_slaves=tuple(at_slaves(kept, slaves_that_tell(world))),
    )


def _of_groups(history: DataFrame, rows: DataFrame, groups: list[Asker], *, broadcasting: bool) -> DataFrame:
    """_PLACE, offset, before, client, time_ms, node, incarnation, seq: the commits of these groups to their topics."""
    name = F.col("_of.group")
    if broadcasting:
        rows, name = rows.where(F.col("role") == "consumer"), F.col("node")
    names = [(asker_of(one.name), one.name, one.topic) for one in groups]
    said = beside(history, names, "_said string, group string, _topic string")
    return (
        rows.withColumn("_of", F.from_json("value", "group string, before long, client string"))
        .withColumn("_said", name)
        .join(said, "_said")
        .where((F.col("_topic") == "") | (F.col("_topic") == F.col("topic")))
        .select(
            *_PLACE,
            "offset",
            F.col("_of.before").alias("before"),  # null: not told
            F.col("_of.client").alias("client"),
            "time_ms",
            "node",
            "incarnation",
            "seq",
        )
    )


def _back(kept: DataFrame, is_back: Column) -> list[Back]:
    of_process = Window.partitionBy(*_PLACE, "node", "incarnation").orderBy("time_ms", "seq")
    rows = (
        kept.withColumn("before_ms", F.lag("time_ms").over(of_process))
        .where(is_back)
        .select(*_PLACE, "offset", "before", F.col("time_ms").alias("at_ms"), "before_ms", "client")
        .orderBy("at_ms", "offset")
    )
    return [Back(*row) for row in rows.collect()]


def _older(gathering: Gathering, world: World, kept: DataFrame) -> tuple[int, list[Older]]:
    group_of = {member: group.name for group in askers(world) for member in group.members}
    takes: list[tuple[Any, ...]] = [
        (number, row.topic, row.broker_name, row.queue_id, group_of[row.node], row.offset, row.time_ms)
        + (copied_before(world, row.broker_name or "", row.time_ms) or (None, None))
        for number, row in enumerate(gathering.control.rows("queue_taken"))
        if row.node in group_of
    ]
    if not takes:
        return 0, []
    nodes = {number: row.node for number, row in enumerate(gathering.control.rows("queue_taken"))}
    schema = "id int, topic string, broker_name string, queue_id int, group string, at int, taken_ms double"
    schema += ", copied_from_ms double, copied_to_ms double"
    taken = beside(gathering.history, takes, schema)
    low_ms = F.max(F.when(F.col("offset") <= F.col("at"), F.col("time_ms"))).over(Window.partitionBy("id"))
    is_higher = F.col("low_ms").isNull() | (F.col("time_ms") > F.col("low_ms"))
    in_time = F.col("time_ms").between(F.col("copied_from_ms"), F.col("copied_to_ms"))
    at_master = is_higher & in_time & (F.col("node") == F.col("broker_name"))
    rows = (
        kept.join(taken, list(_PLACE))
        .where(F.col("time_ms") <= F.col("taken_ms"))
        .withColumn("low_ms", low_ms)
        .groupBy("id", *_PLACE, "at", "taken_ms")
        .agg(
            F.min(F.when(is_higher, F.col("time_ms"))).alias("passed_ms"),
            F.min(F.when(at_master, F.col("time_ms"))).alias("master_ms"),
        )
        .orderBy("id")
        .collect()
    )
    found = [
        Older(topic, broker_name, queue_id, group, nodes[id_], at, taken_ms, passed_ms, master_ms)
        for id_, topic, broker_name, queue_id, group, at, taken_ms, passed_ms, master_ms in rows
        if passed_ms is not None
    ]
    return len(rows), found


def _behind(gathering: Gathering, world: World, kept: DataFrame, groups: list[Asker]) -> list[Behind]:
    of_member, tell = {member: group for group in groups for member in group.members}, brokers_that_tell(world)
    taken = [
        (row, of_member[row.node].name)
        for row in gathering.control.rows("queue_taken")
        if row.broker_name in tell and row.node in of_member and of_member[row.node].topic in ("", row.topic)
    ]
    return behind(gathering.history, kept, taken, interval_ms(world))


def _ahead(history: DataFrame, kept: DataFrame, groups: list[Asker]) -> list[Ahead]:
    is_send = (F.col("event") == "send") & (F.col("type") == "ok")
    rows = traffic(history).where((is_send | (F.col("event") == "receive")) & F.col("offset").isNotNull())
    none = F.lit(None).cast("double")
    sends = of_each_group(rows.where(is_send), groups).select(
        *_PLACE, "offset", F.col("time_ms").alias("acked_ms"), none.alias("received_ms")
    )
    receipts = (
        rows.where(~is_send)
        .join(members(history, groups), "node")
        .select(*_PLACE, "offset", none.alias("acked_ms"), F.col("time_ms").alias("received_ms"))
    )
    messages = (
        sends.unionByName(receipts)
        .groupBy(*_PLACE, "offset")
        .agg(F.min("acked_ms").alias("acked_ms"), F.min("received_ms").alias("received_ms"))
        .select("*", F.lit(None).cast("struct<time_ms:double,client:string>").alias("commit"))
    )
    beyond = kept.select(
        *_PLACE,
        (F.col("offset") - 1).alias("offset"),  # the last that it covers
        none.alias("acked_ms"),
        none.alias("received_ms"),
        F.struct("time_ms", F.coalesce("client", F.lit("")).alias("client")).alias("commit"),
    )
    from_its_end = (
        Window.partitionBy(*_PLACE)
        .orderBy(F.desc("offset"), F.col("commit").isNull())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    found = (
        messages.unionByName(beyond)
        .withColumn("first", F.min("commit").over(from_its_end))
        .where(F.col("commit").isNull() & F.col("first").isNotNull())
        .where(F.col("received_ms").isNull() | (F.col("received_ms") > F.col("first.time_ms")))
        .select(
            *_PLACE,
            "offset",
            F.col("first.time_ms").alias("committed_ms"),
            F.nullif(F.col("first.client"), F.lit("")).alias("client"),
            "acked_ms",
            "received_ms",
        )
        .orderBy(*_PLACE, "offset")
    )
    return [Ahead(*row) for row in found.collect()]
