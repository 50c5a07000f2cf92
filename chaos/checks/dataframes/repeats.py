"""The receipts and the stored copies of messages that came twice, and how far each lies from all that explains it.

messages.py: keys that may have ──┬─ receive × queue_taken ── how far from its queue's change of hands ──┐
come twice, of all that came      └─ send (ok), read ── how many copies, by how many tries ──────────────┴─ Again
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ...oracle.commits import Redelivery
from ...verdict import FINDINGS_MAX
from ..record.repeats import TOO_LATE, Again
from ..tolerance import UNLIMITED_MS, Tolerance
from .fates import is_suspicious
from .gathering import Gathering
from .messages import messages
from .plain_pages import QUEUE
from .shared import traffic
from .small_tables import beside, frame

_HOLDING = ("node", "incarnation", "op_id")


def received_again(gathering: Gathering, rules: Redelivery, tolerance: Tolerance, *, each_alone: bool) -> Again:
    """Of stored copies. `each_alone`: every consumer is a group of its own."""
    rows = _receipts(gathering, _suspicious(gathering), rules, each_alone=each_alone)
    return _counted(rows.withColumn("kind", _kind(tolerance)))


def received_too_late(gathering: Gathering, tolerance: Tolerance) -> Again:
    """Receipts of a queue that its consumer had given up."""
    if not gathering.control.rows("queue_dropped"):
        return Again()
    ended = _first_of_holdings(gathering, "queue_dropped", "ended_ms")
    over = F.col("time_ms") - F.col("ended_ms")
    rows = (
        traffic(gathering.history)
        .where((F.col("event") == "receive") & F.col("op_id").isNotNull())
        .select("msg_key", *QUEUE, "offset", *_HOLDING, "time_ms")
        .join(ended, list(_HOLDING))
        .where(over > tolerance.valid_up_to_ms)
        .withColumns(
            {
                "kind": F.when(over > tolerance.unknown_up_to_ms, "wrong").otherwise("late"),
                "what": F.lit(TOO_LATE),
                "again": F.lit(0),
                "age_ms": F.lit(None).cast("double"),
                "client": F.col("node"),
                "at_ms": F.col("ended_ms"),
                "to_ms": F.col("time_ms"),
                "over_ms": over,
            }
        )
    )
    return _counted(rows)


def stored_again(gathering: Gathering) -> Again:
    """Of messages with a key."""
    copies = _copies(gathering.history, _suspicious(gathering))
    return _counted(copies.withColumn("kind", F.when(F.col("copies") > F.col("tries"), "wrong")))


def _suspicious(gathering: Gathering) -> DataFrame:
    others = messages(gathering.history).others
    return others.where(is_suspicious()).select("msg_key", F.greatest("tries", F.lit(1)).alias("tries"))


def _receipts(gathering: Gathering, keys: DataFrame, rules: Redelivery, *, each_alone: bool) -> DataFrame:
    """One row per receipt of a stored copy that was received before: over_ms beyond what explains it.

    over_ms null: nothing says when its queue was taken. `times` > 1: within one holding.
    """
    received = (
        traffic(gathering.history)
        .where(F.col("event") == "receive")
        .select("msg_key", *QUEUE, "offset", *_HOLDING, "time_ms", "seq")
        .join(keys, "msg_key", "left_semi")
        .join(_first_of_holdings(gathering, "queue_taken", "taken_ms"), list(_HOLDING), "left")
    )
    copy = ["msg_key", *QUEUE, "offset", *(["node"] if each_alone else [])]
    in_order = Window.partitionBy(*copy).orderBy("time_ms", "node", "seq")
    in_holding = Window.partitionBy(*copy, *_HOLDING).orderBy("time_ms", "seq")
    times, over = F.col("times"), F.col("over_ms")
    what = (
        F.when(times > 1, "received twice from one holding of its queue")
        .when(over.isNull(), "nothing says when its queue was taken")
        .otherwise("received again, and no change of hands explains it")
    )
    older_now = F.col("taken_ms") < F.col("first_taken_ms")
    return (
        received.withColumn("first_ms", F.lag("time_ms").over(in_order))
        .withColumn("first_client", F.lag("node").over(in_order))
        .withColumn("first_taken_ms", F.lag("taken_ms").over(in_order))
        .withColumn("times", F.when(F.col("op_id").isNotNull(), F.row_number().over(in_holding)).otherwise(1))
        .where(F.col("first_ms").isNotNull())
        .transform(lambda receipts: _not_sent_back(receipts, gathering, rules))
        .withColumn("changed_ms", F.when(older_now, F.col("first_taken_ms")).otherwise(F.col("taken_ms")))
        .withColumn("old_ms", F.when(older_now, F.col("time_ms")).otherwise(F.col("first_ms")))
        .withColumn("over_ms", _over(rules))
        .withColumns(
            {
                "what": what,
                "again": F.lit(1),
                "age_ms": F.col("changed_ms") - F.col("old_ms"),
                "client": F.col("node"),
                "at_ms": F.col("first_ms"),
                "to_ms": F.col("time_ms"),
            }
        )
    )


def _not_sent_back(receipts: DataFrame, gathering: Gathering, rules: Redelivery) -> DataFrame:
    """Without those that an operator sent the group back to after the receipt before."""
    if not rules.resets:
        return receipts
    rows = [(one.topic, one.broker_name, one.queue_id, one.offset, one.at_ms) for one in rules.resets]
    schema = "_topic string, _broker string, _queue int, _from long, _reset_ms double"
    sent_back = (
        (F.col("topic") == F.col("_topic"))
        & (F.col("broker_name") == F.col("_broker"))
        & (F.col("queue_id") == F.col("_queue"))
        & (F.col("offset") >= F.col("_from"))
        & F.col("_reset_ms").between(F.col("first_ms"), F.col("time_ms"))
    )
    return receipts.join(beside(gathering.history, rows, schema), sent_back, "left_anti")


def _first_of_holdings(gathering: Gathering, event: str, column: str) -> DataFrame:
    """When each holding of a queue had its first row of this event, in this column."""
    first: dict[tuple[str, int, str | None], float] = {}
    for row in gathering.control.rows(event):
        first.setdefault((row.node, row.incarnation, row.op_id), row.time_ms)
    rows = [(*holding, time_ms) for holding, time_ms in first.items()]
    return frame(gathering.history, rows, f"node string, incarnation int, op_id string, {column} double")


def _over(rules: Redelivery) -> Column:
    """How far the older holding's receipt (old_ms) lies outside of all that explains it and the younger one's.

    changed_ms is when the younger of the two holdings began. Null when one of them is not known.
    """
    old, changed, none = F.col("old_ms"), F.col("changed_ms"), F.lit(0.0)
    ways = [F.greatest(changed - old - rules.uncommitted_ms, old - changed - rules.owners_ms, none)]
    for start_ms, end_ms in rules.disturbed:
        until = F.lit(min(end_ms, UNLIMITED_MS))
        ways.append(F.greatest(F.lit(start_ms) - old, old - until, changed - until, none))
    least = ways[0] if len(ways) == 1 else F.least(*ways)
    return F.when(F.col("taken_ms").isNotNull() & F.col("first_taken_ms").isNotNull(), least)


def _kind(tolerance_: Tolerance) -> Column:
    over = F.col("over_ms")
    wrong = (F.col("times") > 1) | (over > tolerance_.unknown_up_to_ms)
    return F.when(wrong, "wrong").when(over.isNull() | (over > tolerance_.valid_up_to_ms), "late")


def _copies(history: DataFrame, keys: DataFrame) -> DataFrame:
    """One row per message that is stored more than once. Receipts are left out of this: a consumer that sends a
    message back stores it again itself."""
    stored = (F.col("event") == "read") | ((F.col("event") == "send") & (F.col("type") == "ok"))
    return (
        traffic(history)
        .where(stored)
        .select("msg_key", *QUEUE, "offset", F.struct(*QUEUE, "offset").alias("copy"), "time_ms")
        .join(keys, "msg_key")
        .groupBy("msg_key", "tries")
        .agg(
            F.countDistinct("copy").alias("copies"),
            F.max("copy").alias("copy"),
            F.min("time_ms").alias("at_ms"),
            F.max("time_ms").alias("to_ms"),
        )
        .where(F.col("copies") > 1)
        .select(
            "msg_key",
            "copy.*",
            "copies",
            "tries",
            (F.col("copies") - 1).alias("again"),
            F.concat(F.lit("stored "), "copies", F.lit(" times by "), "tries", F.lit(" tries")).alias("what"),
            "at_ms",
            "to_ms",
            F.lit(None).cast("double").alias("age_ms"),
        )
    )


def _counted(rows: DataFrame) -> Again:
    kind = F.col("kind")
    counts = rows.agg(
        F.sum("again").alias("again"),
        F.count(F.when(kind == "wrong", True)).alias("wrong"),
        F.count(F.when(kind == "late", True)).alias("late"),
        F.max("age_ms").alias("oldest_ms"),
    ).collect()[0]
    first: tuple[dict[str, Any], ...] = ()
    if counts["wrong"] or counts["late"]:
        bad = rows.where(kind == ("wrong" if counts["wrong"] else "late")).orderBy("at_ms", "msg_key", "to_ms")
        first = tuple(row.asDict() for row in bad.limit(FINDINGS_MAX).collect())
    return Again(counts["again"] or 0, counts["wrong"], counts["late"], counts["oldest_ms"], first)
