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
this one began? So one shuffle, one sort, no join. A large history is not even sorted: a queue in which no send at all,
whoever sent it, has a later one before it needs no closer look, and that is told by halves (`in_doubt`).
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ..oracle.world import World
from ..verdict import EXAMPLES_MAX, Validity, Verdict
from .dataframes.messages import acknowledged_sends
from .dataframes.plain_pages import QUEUE, place
from .dataframes.shared import is_shared, traffic
from .findings import rounded

NAME = "order_kept"
_PAGE_BITS = 3
_PAGE = 1 << _PAGE_BITS


def order_kept(history: DataFrame, world: World) -> Verdict:
    """Examined: acknowledged sends, and receipts of an ordered workload. Violations: those behind a later one."""
    ordered = bool((world.run.get("workload") or {}).get("ordered"))
    rows, in_order = sends_of(traffic(history)), 0
    if is_shared(history):
        queues = in_doubt(rows).collect()
        doubted = [row["place"] for row in queues if row["in_doubt"]]
        in_order = sum(row["n"] for row in queues if not row["in_doubt"])
        rows = rows.where(F.col("place").isin(doubted))
    if ordered:
        rows = rows.unionByName(_receipts(traffic(history)))
    judged = _judged(rows)
    counts = {row["what"]: row.asDict() for row in _counts(judged)}
    if in_order:
        counts.setdefault("send", {"examined": 0, "wrong": 0})["examined"] += in_order
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


def sends_of(history: DataFrame) -> DataFrame:
    """Acknowledged sends; one producer process and one queue are a group, times decide."""
    event, type_ = F.col("event"), F.col("type")
    return history.where((event == "send") & (type_ == "ok") & F.col("offset").isNotNull()).select(
        F.lit("send").alias("what"),
        F.xxhash64("node", "incarnation").alias("who"),
        place().alias("place"),
        "offset",
        (F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0))).alias("began"),
        F.col("time_ms").alias("ended"),
        "msg_key",
    )


def in_doubt(sends: DataFrame) -> DataFrame:
    """place, n, in_doubt: how many sends each queue has, and whether two of them, of any producers, are out of order.

    Two offsets that differ agree in the bits above one, b, where the lower has 0 and the higher 1. So in each run of
    2^(b+1) offsets no send of the lower half may have begun after one of the upper half ended: for runs of 2, 4 and 8
    a greatest and a least in one row a page of 8; between pages a running least over those rows, from above.
    """
    bits = F.col("offset").bitwiseAND(_PAGE - 1)
    wrong = F.count("*") != F.bit_count(F.bit_or(F.call_function("shiftleft", F.lit(1), bits.cast("int"))))
    for width in (2, 4, 8):
        for first in range(0, _PAGE, width):
            middle = first + width // 2
            lower = (bits >= first) & (bits < middle)
            upper = (bits >= middle) & (bits < first + width)
            began, ended = F.max(F.when(lower, F.col("began"))), F.min(F.when(upper, F.col("ended")))
            wrong |= F.coalesce(ended < began, F.lit(False))
    by_page = sends.groupBy("place", F.shiftright("offset", _PAGE_BITS).alias("page")).agg(
        F.count("*").alias("n"), F.max("began").alias("began"), F.min("ended").alias("ended"), wrong.alias("wrong")
    )
    above = Window.partitionBy("place").orderBy(F.desc("page")).rowsBetween(Window.unboundedPreceding, -1)
    behind = F.coalesce(F.min("ended").over(above) < F.col("began"), F.lit(False))
    return (
        by_page.select("place", "n", (F.col("wrong") | behind).alias("wrong"))
        .groupBy("place")
        .agg(F.sum("n").alias("n"), F.max("wrong").alias("in_doubt"))
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
    rows = traffic(history).where((F.col("event") == "receive") & F.col("msg_key").isin(*keys))
    return {row["msg_key"]: row.asDict() for row in rows.select("msg_key", "node", *QUEUE, "time_ms").collect()}
