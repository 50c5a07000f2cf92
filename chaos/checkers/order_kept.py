"""Messages are in the order that RocketMQ promises, which is less than one may think.

| promised                                                                                     | to whom             |
|----------------------------------------------------------------------------------------------|---------------------|
| of one producer's sends to one queue, acknowledged and not overlapping in time, the later    | every producer      |
| has the higher queue offset                                                                  |                     |
| one holding of a queue hands its messages over in the order of their offsets                 | `ordered` workloads |

Not promised, and so not judged: any order between queues or producers; between sends that overlap; of a message stored
again by a retry; and what a concurrent listener sees, for it runs on many threads (only the pulls of a holding go up by
offset, `ConsumeMessageConcurrentlyService`). An `ordered` workload sends a key's messages to one queue and consumes
with one thread, so that each holding hands over in order; what comes again after a change of hands is `duplicates`'.

Both rules are one question to each group of rows, sorted by offset from above: did any with a higher offset end before
this one began? So one shuffle, one sort, no join.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ..verdict import EXAMPLES_MAX, Validity, Verdict
from .findings import rounded
from .messages import QUEUE, acknowledged_sends, messages, place
from .world import World

NAME = "order_kept"


def order_kept(history: DataFrame, world: World) -> Verdict:
    """Examined: acknowledged sends, and receipts of an ordered workload. Violations: those behind a later one."""
    ordered = bool((world.run.get("workload") or {}).get("ordered"))
    rows = _sends(history)
    if ordered:
        rows = rows.unionByName(_receipts(history))
    judged = _judged(rows)
    counts = {row["what"]: row for row in _counts(judged)}
    examined = sum(row["examined"] for row in counts.values())
    wrong = sum(row["wrong"] for row in counts.values())
    measured = {f"{what}s": row["examined"] for what, row in sorted(counts.items())}
    measured |= {"out_of_order": wrong}
    formula = "a later send of the producer has the higher offset in its queue"
    if ordered:
        formula += "; a holding hands over by rising offset"
    allowed = {"bound_ms": None, "formula": formula, "tolerance_ms": 0, "row": "order within a queue"}
    if not examined:
        return Verdict.nothing_examined(NAME, "no send was acknowledged", measured=measured, allowed=allowed)
    examples = _examples(history, judged) if wrong else ()
    why = f"{wrong} of {examined} acknowledged sends or receipts are behind a later one of their queue" if wrong else ""
    return Verdict(
        name=NAME,
        verdict=Validity.INVALID if wrong else Validity.VALID,
        examined=examined,
        violations=wrong,
        measured=measured,
        allowed=allowed,
        examples=examples,
        why=why,
    )


def _sends(history: DataFrame) -> DataFrame:
    """Sends acknowledged once; one producer process and one queue are a group, times decide."""
    return (
        messages(history)
        .where((F.col("acknowledged") == 1) & F.col("offset").isNotNull())
        .select(
            F.lit("send").alias("what"),
            F.col("sender").alias("who"),
            "place",
            "offset",
            F.col("began_ms").alias("began"),
            F.col("acked_ms").alias("ended"),
            "msg_key",
        )
    )


def _receipts(history: DataFrame) -> DataFrame:
    """Receipts; one holding is a group, the order of its rows decides."""
    return history.where((F.col("event") == "receive") & F.col("offset").isNotNull()).select(
        F.lit("receipt").alias("what"),
        F.xxhash64("node", "incarnation", "op_id").alias("who"),
        place().alias("place"),
        "offset",
        F.col("seq").cast("double").alias("began"),
        F.col("seq").cast("double").alias("ended"),
        "msg_key",
    )


def _judged(rows: DataFrame) -> DataFrame:
    """`later_ended`: when the first of those with a higher offset ended. Two that got one offset are wrong as well."""
    group = Window.partitionBy("what", "who", "place").orderBy(F.col("offset").desc(), F.col("began").desc())
    above = group.rowsBetween(Window.unboundedPreceding, -1)
    behind = F.min("ended").over(above) < F.col("began")
    twice = F.lag("offset").over(group) == F.col("offset")
    wrong = F.coalesce(behind, F.lit(False)) | F.coalesce(twice & (F.col("what") == "send"), F.lit(False))
    return rows.withColumn("wrong", wrong)


def _counts(judged: DataFrame) -> list[Any]:
    wrong = F.count(F.when(F.col("wrong"), True)).alias("wrong")
    return list(judged.groupBy("what").agg(F.count("*").alias("examined"), wrong).collect())


def _examples(history: DataFrame, judged: DataFrame) -> tuple[dict[str, Any], ...]:
    bad = judged.where("wrong").orderBy("what", "began", "msg_key").limit(EXAMPLES_MAX).collect()
    sends = acknowledged_sends(history, (row["msg_key"] for row in bad if row["what"] == "send"))
    receipts = _receipt_rows(history, [row["msg_key"] for row in bad if row["what"] == "receipt"])
    found = []
    for row in bad:
        event = (sends if row["what"] == "send" else receipts).get(row["msg_key"], {})
        end_ms = event.get("time_ms")
        begin_ms = None if end_ms is None else end_ms - (event.get("duration_ms") or 0.0)
        found.append(
            {
                "what": f"{row['what']} after one with a higher offset, or the same",
                "msg_key": row["msg_key"],
                **{name: event.get(name) for name in QUEUE},
                "offset": row["offset"],
                "client": event.get("node"),
                "at_ms": rounded(begin_ms),
                "to_ms": rounded(end_ms),
            }
        )
    return tuple(found)


def _receipt_rows(history: DataFrame, keys: list[str]) -> dict[str, dict[str, Any]]:
    if not keys:
        return {}
    rows = history.where((F.col("event") == "receive") & F.col("msg_key").isin(*keys))
    return {row["msg_key"]: row.asDict() for row in rows.select("msg_key", "node", *QUEUE, "time_ms").collect()}
