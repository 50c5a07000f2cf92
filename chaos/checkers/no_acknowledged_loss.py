"""Every send that ended `ok` is received by a consumer, or found by the final reads.

A message that nobody received and that the final read of its queue does not hold is lost, when that read was complete
(`read_done`). When it was not, nobody knows: UNKNOWN. A send that ended `info` or `fail` promises nothing.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..verdict import EXAMPLES_MAX, Validity, Verdict
from .findings import rounded
from .world import World

NAME = "no_acknowledged_loss"


def no_acknowledged_loss(history: DataFrame, world: World) -> Verdict:
    """Examined: acknowledged sends. Violations: those that are lost."""
    event = F.col("event")
    queue = ("topic", "broker_name", "queue_id")
    acknowledged = history.where((event == "send") & (F.col("type") == "ok") & F.col("msg_key").isNotNull()).select(
        "msg_key", *queue, "offset", "time_ms"
    )
    seen = (
        history.where(event.isin("receive", "read") & F.col("msg_key").isNotNull())
        .groupBy("msg_key")
        .agg(F.max(event == "receive").alias("received"), F.max(event == "read").alias("was_read"))
    )
    complete = history.where(event == "read_done").select(*queue).distinct().withColumn("complete", F.lit(True))
    judged = (
        acknowledged.join(seen, "msg_key", "left")
        .join(F.broadcast(complete), list(queue), "left")
        .withColumn("missing", F.col("received").isNull())
    )
    lost = F.col("missing") & F.col("complete").isNotNull()
    unread = F.col("missing") & F.col("complete").isNull()
    sample = F.struct("time_ms", "msg_key", *queue, "offset")
    row = judged.agg(
        F.count("*").alias("acknowledged"),
        F.count(F.when(F.col("received"), True)).alias("received"),
        F.count(F.when(~F.col("received") & F.col("was_read"), True)).alias("only_in_final_reads"),
        F.count(F.when(lost, True)).alias("lost"),
        F.count(F.when(unread, True)).alias("unread"),
        F.slice(F.array_sort(F.collect_list(F.when(lost, sample))), 1, EXAMPLES_MAX).alias("lost_sends"),
        F.slice(F.array_sort(F.collect_list(F.when(unread, sample))), 1, EXAMPLES_MAX).alias("unread_sends"),
    ).collect()[0]
    counts = ("acknowledged", "received", "only_in_final_reads", "lost", "unread")
    measured = {name: row[name] for name in counts}
    allowed = {"bound_ms": None, "formula": "0 lost", "tolerance_ms": 0, "row": "an acknowledged send is durable"}
    if not row["acknowledged"]:
        return Verdict.nothing_examined(NAME, "no send was acknowledged", measured=measured, allowed=allowed)
    validity, why = Validity.VALID, ""
    if row["lost"]:
        validity = Validity.INVALID
        why = f"{row['lost']} of {row['acknowledged']} acknowledged sends are neither received nor in the final reads"
    elif row["unread"]:
        validity = Validity.UNKNOWN
        why = (
            f"{row['unread']} acknowledged sends were not received, and the final reads of their queues are incomplete"
        )
    examples = [
        {
            "msg_key": send["msg_key"],
            "topic": send["topic"],
            "broker_name": send["broker_name"],
            "queue_id": send["queue_id"],
            "offset": send["offset"],
            "acknowledged_ms": rounded(send["time_ms"]),
        }
        for send in (row["lost_sends"] or row["unread_sends"])
    ]
    return Verdict(
        name=NAME,
        verdict=validity,
        examined=row["acknowledged"],
        violations=row["lost"],
        measured=measured,
        allowed=allowed,
        examples=tuple(examples),
        why=why,
    )
