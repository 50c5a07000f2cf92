"""Which acknowledged sends, and receipts of an ordered workload, stand behind a later one of their queue.

Both rules of order_kept are one question to each group of rows, sorted by offset from above: did any with a higher
offset end before this one began? So one shuffle, one sort, no join.

A large history is not even sorted: a queue in which no send at all, whoever sent it, has a later one before it needs no
closer look, and that is told by halves (`in_doubt`). With pages of 4 offsets in place of 8:

    offset      0   1   2   3 │ 4   5   6   7      began and ended of each send in one row a page:
    by twos     0 ? 1   2 ? 3 │ 4 ? 5   6 ? 7      did 0 begin after 1 had ended, 2 after 3 …
    by fours    0 1   ?   2 3 │ 4 5   ?   6 7      did 0 or 1 begin after 2 or 3 had ended …
    by pages    0 1 2 3       ? 4 5 6 7            did any of the first page begin after one of a later had ended
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ...verdict import FINDINGS_MAX
from .messages import acknowledged_sends
from .plain_pages import QUEUE, place
from .shared import is_shared, traffic

_PAGE_BITS = 3
_PAGE = 1 << _PAGE_BITS


class OrderCounts(NamedTuple):
    sends: int
    receipts: int
    out_of_order: int


def order(history: DataFrame, *, ordered: bool) -> tuple[OrderCounts, list[dict[str, Any]]]:
    """How many sends, and receipts where the workload is `ordered`, and how many are behind a later one; the first of
    those: what, msg_key, node, QUEUE, offset, from_ms, to_ms."""
    rows, in_order = sends_of(traffic(history)), 0
    if is_shared(history):
        queues = in_doubt(rows).collect()
        doubted = [row["place"] for row in queues if row["in_doubt"]]
        in_order = sum(row["n"] for row in queues if not row["in_doubt"])
        rows = rows.where(F.col("place").isin(doubted))
    if ordered:
        rows = rows.unionByName(_receipts(traffic(history)))
    judged = _judged(rows)
    wrong = F.count(F.when(F.col("wrong"), True)).alias("wrong")
    found = {row["what"]: row for row in judged.groupBy("what").agg(F.count("*").alias("n"), wrong).collect()}
    of_kind = {what: found[what]["n"] if what in found else 0 for what in ("send", "receipt")}
    out_of_order = sum(row["wrong"] for row in found.values())
    counts = OrderCounts(of_kind["send"] + in_order, of_kind["receipt"], out_of_order)
    return counts, _first(history, judged) if out_of_order else []


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


def _first(history: DataFrame, judged: DataFrame) -> list[dict[str, Any]]:
    bad = judged.where("wrong").orderBy("what", "began", "msg_key").limit(FINDINGS_MAX).collect()
    sends = acknowledged_sends(history, (row["msg_key"] for row in bad if row["what"] == "send"))
    receipts = _receipt_rows(history, [row["msg_key"] for row in bad if row["what"] == "receipt"])
    found = []
    for row in bad:
        event: Mapping[str, Any] = (sends if row["what"] == "send" else receipts).get(row["msg_key"], {})
        end_ms = event.get("time_ms") or 0.0
        found.append(
            {
                "what": row["what"],
                "msg_key": row["msg_key"],
                "node": event.get("node") or "",
                **{name: event.get(name) for name in QUEUE},
                "offset": row["offset"],
                "from_ms": end_ms - (event.get("duration_ms") or 0.0),
                "to_ms": end_ms,
            }
        )
    return found


def _receipt_rows(history: DataFrame, keys: list[str]) -> dict[str, dict[str, Any]]:
    if not keys:
        return {}
    rows = traffic(history).where((F.col("event") == "receive") & F.col("msg_key").isin(*keys))
    return {row["msg_key"]: row.asDict() for row in rows.select("msg_key", "node", *QUEUE, "time_ms").collect()}
