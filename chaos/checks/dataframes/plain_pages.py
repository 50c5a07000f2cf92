"""Which parts of the queues hold nothing but plain messages, found without bringing the messages together.

    send (ok), receive, read ─► group by queue and 64 offsets ─► a page: per kind a count, its offsets as bits, a hash

A page is plain when its acknowledged sends, its receipts and its final reads are the same messages, each once, and none
of the sends was retried. Nothing in it is lost, nothing came twice, whatever else happened; so only the messages
of the other pages need be looked at one by one (messages.py). In a clean run those are few: the last seconds, and what
was under way at a fault.

    sends     k0@0 k1@1 k2@2 k3@3   bits 1111  hash a ┐
    receipts  k0@0 k1@1 k2@2 k3@3   bits 1111  hash a ├ alike, and 4 tries for 4 sends: plain, 4 messages are counted
    reads     k0@0 k1@1 k2@2 k3@3   bits 1111  hash a ┘
    receipts  k0@0 k1@1      k3@3   bits 1101  hash b   were these its receipts, each of the 4 would get a row

This, `order.in_doubt` and `shared.shared_scan` are for large histories, and measured (docs/performance.md): change
nothing here without `python -m tests.bench checks` before and after. Small histories never come here.

That two kinds hold the same messages is told by counts, by 64 bits that say which offsets there are (so none twice),
and by the exclusive or of a 64-bit hash of each key and offset: two sets that differ look alike once in 2^64 pages.
Numbers only, and few groups, so Spark adds them up in place; a page costs one row of shuffle where its messages would
cost 192.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

QUEUE = ("topic", "broker_name", "queue_id")
_BITS = 6
"""A page has 2^6 offsets: one bit each in a long."""

_NOWHERE_MS = 30_000.0
SPANS = 64
_KINDS = ("sends", "receipts", "reads")


def place() -> Column:
    """The queue of a row as one number."""
    return F.xxhash64(*QUEUE)


def page() -> Column:
    """The page of a row within its queue; where its offset is not known a negative one, another every half minute."""
    nowhere = F.lit(-1).cast("long") - F.floor(F.col("time_ms") / _NOWHERE_MS)
    return F.coalesce(F.shiftright(F.col("offset"), _BITS), nowhere)


def pages(history: DataFrame) -> DataFrame:
    """place, page, sends (how many acknowledged ones), is_plain, and from when to when its rows are: one row a page.

    live_from, live_to: of its sends and receipts; read_from, read_to: of its final reads. Rows without an offset, such
    as the sends of which nobody knows whether they were stored, are in pages of their own, and never plain.
    """
    event, type_ = F.col("event"), F.col("type")
    is_send, is_receipt, is_read = event == "send", event == "receive", event == "read"
    acknowledged = is_send & (type_ == "ok")
    rows = history.where((is_send & type_.isin("ok", "info")) | is_receipt | is_read).select(
        place().alias("place"),
        page().alias("page"),
        F.when(F.col("msg_key").isNotNull(), F.xxhash64("msg_key", "offset")).alias("hash"),
        F.call_function(
            "shiftleft", F.lit(1).cast("long"), F.col("offset").bitwiseAND((1 << _BITS) - 1).cast("int")
        ).alias("bit"),
        F.when(acknowledged, F.coalesce("attempt", F.lit(1))).otherwise(0).alias("tries"),
        acknowledged.alias("sends"),
        is_receipt.alias("receipts"),
        is_read.alias("reads"),
        "time_ms",
    )
    none = F.lit(0).cast("long")
    of_kind = {
        f"{kind}_{what}": made
        for kind in _KINDS
        for what, made in {
            "n": F.sum(F.when(F.col(kind), 1).otherwise(0)),
            "bits": F.bit_or(F.when(F.col(kind), F.col("bit")).otherwise(none)),
            "hash": F.bit_xor(F.when(F.col(kind), F.col("hash")).otherwise(none)),
        }.items()
    }
    counted = rows.groupBy("place", "page").agg(
        F.sum("tries").alias("tries"),
        F.count(F.when(F.col("hash").isNull(), True)).alias("nameless"),
        *(made.alias(name) for name, made in of_kind.items()),
        F.min(F.when(~F.col("reads"), F.col("time_ms"))).alias("live_from"),
        F.max(F.when(~F.col("reads"), F.col("time_ms"))).alias("live_to"),
        F.min(F.when(F.col("reads"), F.col("time_ms"))).alias("read_from"),
        F.max(F.when(F.col("reads"), F.col("time_ms"))).alias("read_to"),
    )
    alike = [F.col(f"{kind}_{what}") == F.col(f"sends_{what}") for kind in _KINDS[1:] for what in ("n", "bits", "hash")]
    is_plain = (
        (F.col("page") >= 0)
        & (F.col("nameless") == 0)
        & (F.col("tries") == F.col("sends_n"))
        & (F.bit_count("sends_bits") == F.col("sends_n"))
    )
    for condition in alike:
        is_plain &= condition
    return counted.select(
        *("place", "page", F.col("sends_n").alias("sends"), is_plain.alias("is_plain")),
        *("live_from", "live_to", "read_from", "read_to"),
    )


def spans(of_pages: DataFrame, end_ms: float) -> list[tuple[float, float]]:
    """From when to when the rows of these pages are, as at most 2 · SPANS stretches of time."""
    found: list[tuple[float, float]] = []
    for kind in ("live", "read"):
        start, end = F.col(f"{kind}_from"), F.col(f"{kind}_to")
        slots = of_pages.where(start.isNotNull()).groupBy(F.floor(start * SPANS / max(end_ms, 1.0)).alias("slot"))
        rows = slots.agg(F.min(start).alias("start"), F.max(end).alias("end")).collect()
        found += [(row["start"], row["end"]) for row in rows]
    return found
