"""What of a history must be carried on when everything before a moment T is sealed: the rows that later rows can need.

    rows up to T ─┬─ finished messages, ended operations, old timer_lag rows ──► sealed: counted once, not read again
                  └─ all others ─────────────────────────────────────────────► carried, beside the rows after T

Carried whole is the environment: faults, lives, routes, topics, registrations, holdings of queues, NameServer choices
and calls. They are as many as the run is long in timers and faults, not as it is busy. Of the traffic each check
needs one of two sets:

    MESSAGES     messages that are not finished: acknowledged and not received, received or tried more than once, ended
                 `info`, or younger than T; and those with the highest offset of each producer, holding and queue;
                 commits that first covered one of these, and each queue's last of each process
    OPERATIONS   operations not ended; after the last change until all has settled, all; in quiet times the failed ones;
                 sends that took a third of their time-out, which says that the machine stood still; and between two
                 changes each client's first good one, and its first failed and longest tries at each broker
    both         timer_lag around every change (a window asks for the lateness there), and each node's worst between

What was sealed and turns out not to be finished, is taken back (`unfinished`, `rows_of`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ..history.schema import Group, named
from .changes import CALLS, CHANGES, LAG_STEP_MS, longest_window_ms

if TYPE_CHECKING:
    from ..oracle.world import World

MESSAGES, OPERATIONS = "messages", "operations"
FOR = "_for"
"""Column of the carried rows: MESSAGES, OPERATIONS, or null for rows that every check sees."""

QUEUE = ("topic", "broker_name", "queue_id")
_ROW = ("node", "incarnation", "seq")
_OP = ("node", "incarnation", "op_id")
TRAFFIC = named(Group.TRAFFIC)


def carried(history: DataFrame, world: World, until_ms: float, *, short: bool = False) -> DataFrame:
    """The rows of `history` that are carried over a seal at `until_ms`; both have FOR.

    `short`: more operations failed than may, or may have. Then those near faults are all carried, since what explains
    them is looked up in a grid of the whole run's length.
    """
    event, old = F.col("event"), F.col("time_ms") <= until_ms
    for_all = history.where(F.col(FOR).isNull())
    rest = for_all.where(~event.isin(*TRAFFIC, "timer_lag") | (event.isin(*TRAFFIC) & ~old))
    lags = _lags(history, world, until_ms)
    messages = _messages(seen(history, MESSAGES), world, until_ms).where(old).withColumn(FOR, F.lit(MESSAGES))
    operations = (
        _operations(seen(history, OPERATIONS), world, until_ms, short).where(old).withColumn(FOR, F.lit(OPERATIONS))
    )
    return rest.unionByName(lags).unionByName(messages).unionByName(operations)


def seen(history: DataFrame, reads: str) -> DataFrame:
    """What checks see that read MESSAGES or OPERATIONS of the carried traffic: the history's own columns."""
    return history.where(F.col(FOR).isNull() | (F.col(FOR) == reads)).drop(FOR)


def _messages(history: DataFrame, world: World, until_ms: float) -> DataFrame:
    by_op = F.max(F.when(F.col("event") == "send", F.col("msg_key"))).over(Window.partitionBy(*_OP))
    key = F.when(F.col("event") == "send_attempt", by_op).otherwise(F.col("msg_key"))
    rows = history.where(F.col("event").isin("send", "send_attempt", "receive", "read")).withColumn("_key", key)
    kept = rows.join(_finished(rows, world, until_ms), "_key", "left_anti").drop("_key")
    return kept.unionByName(_commits(history.where(F.col("time_ms") <= until_ms), kept, last=True))


def _commits(history: DataFrame, rows: DataFrame, *, last: bool) -> DataFrame:
    """The commits that were the first beyond one of the received messages in `rows`; and each process's `last`."""
    of_broadcast = F.col("role") == "consumer"
    group = F.when(of_broadcast, F.col("node")).otherwise(F.get_json_object("value", "$.group"))
    by_time = Window.partitionBy(*QUEUE, "_group").orderBy("time_ms", "node", "incarnation", "seq")
    of_process = Window.partitionBy(*QUEUE, "_group", "node", "incarnation").orderBy(F.desc("time_ms"), F.desc("seq"))
    commits = (
        history.where(F.col("event") == "commit")
        .withColumn("_group", group)
        .withColumn("_from", F.max("offset").over(by_time.rowsBetween(Window.unboundedPreceding, -1)))
        .withColumn("_last", F.lit(last) & (F.row_number().over(of_process) == 1))
    )
    received = (
        rows.where((F.col("event") == "receive") & F.col("offset").isNotNull())
        .select(*QUEUE, F.col("offset").alias("_received"))
        .distinct()
    )
    first = (F.col("_received") < F.col("offset")) & (F.col("_received") >= F.coalesce("_from", F.lit(-1)))
    beyond = (
        commits.join(received, list(QUEUE)).where(first).select(*_ROW).distinct().withColumn("_beyond", F.lit(True))
    )
    return commits.join(beyond, list(_ROW), "left").where(F.col("_last") | F.col("_beyond")).select(*history.columns)


def _finished(rows: DataFrame, world: World, until_ms: float) -> DataFrame:
    """_key: messages of which nothing more is expected, all of whose rows are old."""
    event, type_ = F.col("event"), F.col("type")

    def count(condition: Column) -> Column:
        return F.count(F.when(condition, True))

    send, tried, received = event == "send", event == "send_attempt", event == "receive"
    stored = send & (type_ == "ok")
    known = rows.where(F.col("_key").isNotNull())
    in_queue = Window.partitionBy("event", "node", "incarnation", *QUEUE).orderBy(F.desc("offset"))
    in_holding = Window.partitionBy("event", *_OP, *QUEUE).orderBy(F.desc("offset"))
    last = F.when(stored, F.row_number().over(in_queue)).otherwise(F.row_number().over(in_holding)) == 1
    lasts = known.where(stored | received).withColumn("_last", last).where("_last").select("_key").distinct()
    # With broadcasting every consumer receives it; elsewhere one that came twice stays, because only the whole run's
    # lateness says what it is.
    broadcasting = bool(world.workload.get("broadcasting"))
    members = len(world.of_kind("consumer"))
    by_all = (F.col("receives") == F.col("receivers")) & (F.col("receivers") >= members)
    received_once = by_all if broadcasting else F.col("receives") == 1
    stored_once = (
        (F.col("oks") == 1) & (F.col("tries") <= 1) & (F.col("maybe") <= 1) & received_once & (F.col("receives") > 0)
    )
    refused = (F.col("fails") == 1) & (F.col("receives") == 0)
    return (
        known.groupBy("_key")
        .agg(
            count(send & (type_ == "invoke")).alias("sends"),
            count(stored).alias("oks"),
            count(send & (type_ == "fail")).alias("fails"),
            count((send | tried) & (type_ == "info")).alias("infos"),
            count(tried & (type_ == "invoke")).alias("tries"),
            F.coalesce(F.max(F.when(send & (type_ != "invoke"), F.col("attempt"))), F.lit(1)).alias("maybe"),
            count(received).alias("receives"),
            F.countDistinct(F.when(received, F.col("node"))).alias("receivers"),
            F.max("time_ms").alias("_last_ms"),
        )
        .where((F.col("sends") == 1) & (F.col("infos") == 0) & (stored_once | refused))
        .where(F.col("_last_ms") <= until_ms)
        .select("_key")
        .join(lasts, "_key", "left_anti")
    )


def _operations(history: DataFrame, world: World, until_ms: float, short: bool) -> DataFrame:
    from ..oracle.quiet import calm, harmful

    event, type_ = F.col("event"), F.col("type")
    changes = sorted({at_ms for fault in world.faults for at_ms in (fault.start_ms, fault.end_ms)})
    harmed = {at_ms for fault in harmful(world) for at_ms in (fault.start_ms, fault.end_ms)}
    last_ms = max((at_ms for at_ms in harmed if at_ms <= until_ms), default=-math.inf)
    begun = F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0))
    in_calm = F.lit(False)
    for stretch in calm(world):
        in_calm = in_calm | ((begun >= stretch.start_ms) & (F.col("time_ms") <= stretch.end_ms))
    good = (type_ == "ok") | (~event.isin("send", "send_attempt") & F.col("code").isNotNull())
    closed_ms = -1e15 if short else max(last_ms, -1e15)
    slow = good & (event == "send") & (F.coalesce("duration_ms", F.lit(0.0)) >= world.timers.T_ms / 3)
    passed = F.lit(0)
    for at_ms in changes:
        if at_ms < math.inf:
            passed = passed + (begun >= at_ms).cast("int")
    ended = (
        history.where(event.isin("send", "pull", "send_attempt") & (type_ != "invoke"))
        .withColumn("_good", good)
        .withColumn("_segment", passed)
        .withColumn("_sealable", ((in_calm & good) | (~in_calm & (begun < F.lit(closed_ms)))) & ~slow)
    )
    of_segment = Window.partitionBy("event", "node", "_segment", "_good").orderBy("time_ms", "seq")
    of_client = Window.partitionBy("event", "node", "_good").orderBy(F.desc("time_ms"), F.desc("seq"))
    ends = (
        ended.withColumn("_first", F.row_number().over(of_segment))
        .withColumn("_last", F.row_number().over(of_client))
        .where(~F.col("_sealable") | (F.col("_good") & ((F.col("_first") == 1) | (F.col("_last") == 1))))
        .select(*history.columns)
    )
    of_op = Window.partitionBy(*_OP)
    began = F.max(F.when((event == "send") & (type_ == "invoke"), F.col("time_ms"))).over(of_op)
    ended_by = F.max(F.when((event == "send") & (type_ != "invoke"), F.col("time_ms"))).over(of_op)
    open_ = (
        history.where(event.isin("send", "send_attempt"))
        .withColumn("_open", began.isNotNull() & (F.coalesce(ended_by, F.lit(math.inf)) > until_ms))
        .where(F.col("_open") & ((event == "send_attempt") | (type_ == "invoke")))
        .drop("_open")
    )
    kept = ends.unionByName(open_).dropDuplicates(list(_ROW))
    return kept.unionByName(_evidence(history, passed, kept))


def _evidence(history: DataFrame, passed: Column, kept: DataFrame) -> DataFrame:
    """What shows that a fault had an effect: tries that failed or took long, which are no operations by themselves."""
    event, type_ = F.col("event"), F.col("type")
    of_broker = ("event", "type", "node", "address", "broker_name", "_segment")
    first = Window.partitionBy(*of_broker).orderBy("time_ms", "seq")
    longest = Window.partitionBy(*of_broker).orderBy(F.desc("duration_ms"), "time_ms")
    tries = event.isin("send_attempt", "pull") & (type_ != "invoke")
    return (
        history.where(tries)
        .withColumn("_segment", passed)
        .withColumn("_failed", type_.isin("fail", "info") & (F.row_number().over(first) == 1))
        .withColumn("_long", F.row_number().over(longest) == 1)
        .where(F.col("_failed") | F.col("_long"))
        .join(kept.select(*_ROW), list(_ROW), "left_anti")
        .select(*history.columns)
    )


def _lags(history: DataFrame, world: World, until_ms: float) -> DataFrame:
    """timer_lag rows after T, those near a change, and the worst of each node in each stretch between changes."""
    step = F.lit(LAG_STEP_MS)
    before_ms = after_ms = longest_window_ms(world)
    steps = F.sequence(
        F.floor((F.col("time_ms") - F.lit(before_ms)) / step), F.ceil((F.col("time_ms") + F.lit(after_ms)) / step)
    )
    failed = F.col("type").isin("fail", "info")
    near = (
        history.where(F.col("event").isin(*CHANGES) | (F.col("event").isin(*CALLS) & failed))
        .select((F.floor(F.col("time_ms") / step) * step).alias("time_ms"))
        .distinct()
        .select(F.explode(steps).alias("_step"))
        .distinct()
        .withColumn("_near", F.lit(True))
    )
    of_node = Window.partitionBy("node", "incarnation").orderBy("time_ms", "seq")
    stretch = Window.partitionBy("node", "incarnation", "_stretch", "_near").orderBy(F.desc("lag_ms"), "time_ms")
    starts = F.col("_near") & ~F.coalesce(F.lag("_near").over(of_node), F.lit(True))
    return (
        history.where(F.col("event") == "timer_lag")
        .withColumn("_step", F.floor(F.col("time_ms") / step))
        .join(F.broadcast(near), "_step", "left")
        .withColumn("_near", F.coalesce("_near", F.lit(False)) | (F.col("time_ms") > F.lit(until_ms)))
        .withColumn("_starts", starts.cast("int"))
        .withColumn("_stretch", F.sum("_starts").over(of_node))
        .withColumn("_rank", F.when(F.col("_near"), 1).otherwise(F.row_number().over(stretch)))
        .where(F.col("_near") | (F.col("_rank") == 1))
        .select(*history.columns)
    )


def unfinished(new: DataFrame, known: DataFrame, archive: DataFrame) -> DataFrame:
    """msg_key of the messages in `archive` that are not in `known`, and of which `new` tells something else.

    Received again, read at another place than they were stored at, or another message stored at their place.
    """
    event = F.col("event")
    sent = known.where(event == "send").select("msg_key").distinct()
    stored = event.isin("send", "read") & F.col("offset").isNotNull()
    told = new.where((event == "receive") | stored).where(F.col("msg_key").isNotNull())
    place = F.struct(*QUEUE, "offset").alias("_place")
    told = told.select("msg_key", "event", place)
    before = (
        archive.where((event == "send") & (F.col("type") == "ok"))
        .select(F.col("msg_key").alias("_key"), F.struct(*QUEUE, "offset").alias("_stored"))
        .join(sent.withColumnRenamed("msg_key", "_key"), "_key", "left_anti")
    )
    of_key = told.join(before, F.col("msg_key") == F.col("_key"))
    again = of_key.where((F.col("event") == "receive") | (F.col("_place") != F.col("_stored")))
    of_place = told.where(event == "send").join(before, F.col("_place") == F.col("_stored"))
    others = of_place.where(F.col("msg_key") != F.col("_key"))
    return again.unionByName(others).select(F.col("_key").alias("msg_key")).distinct()


def suspicious(new: DataFrame, known: DataFrame, highest: DataFrame) -> bool:
    """Whether `new` tells anything of messages that were sealed, or may: only then is it worth to read the archive.

    `highest`: QUEUE and _highest, the highest offset of a queue that is sealed.
    """
    event = F.col("event")
    sent = known.where(event == "send").select("msg_key").distinct()
    strange = new.where(event.isin("receive", "read") & F.col("msg_key").isNotNull()).join(sent, "msg_key", "left_anti")
    stored = new.where((event == "send") & (F.col("type") == "ok")).join(highest, list(QUEUE))
    below = stored.where(F.col("offset") <= F.col("_highest"))
    return bool(strange.select("msg_key").unionByName(below.select("msg_key")).limit(1).count())


def rows_of(archive: DataFrame, keys: DataFrame, carry: DataFrame) -> DataFrame:
    """All rows of the messages `keys`, which are in `archive` and not in `carry`."""
    of_keys = archive.where(F.col("event").isin("send", "receive", "read")).join(keys, "msg_key", "left_semi")
    ops = of_keys.where(F.col("event") == "send").select(*_OP).distinct()
    attempts = archive.where(F.col("event") == "send_attempt").join(ops, list(_OP), "left_semi")
    found = of_keys.select(*archive.columns).unionByName(attempts.select(*archive.columns))
    found = found.unionByName(_commits(archive, of_keys, last=False))
    return found.join(carry.select(*_ROW), list(_ROW), "left_anti").select(*archive.columns)


def highest_offsets(history: DataFrame, carry: DataFrame) -> dict[tuple[str, str, int], int]:
    """Queue → the highest offset at which a message was stored whose row is in `history` and not in `carry`."""
    stored = history.where((F.col("event") == "send") & (F.col("type") == "ok") & F.col("offset").isNotNull())
    rows = (
        stored.join(carry.select(*_ROW), list(_ROW), "left_anti")
        .groupBy(*QUEUE)
        .agg(F.max("offset").alias("offset"))
        .collect()
    )
    return {(row["topic"], row["broker_name"], row["queue_id"]): row["offset"] for row in rows}
