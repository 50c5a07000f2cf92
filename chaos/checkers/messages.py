"""One row a message: what its sends, its receipts and the final reads came to. The one big shuffle of these checks.

    send (ended) ─┐
    receive ──────┼─► group by msg_key ─► MESSAGE ─► no_acknowledged_loss, duplicates, order_kept
    read ─────────┘

Only numbers are aggregated, because Spark adds those up in place in a hash table, where strings would make it sort.
So a queue is known by its hash `place`, and a stored copy by `position`; who wants names looks them up for a few keys.
With 64 bits two of a million queues are alike once in 40 million runs. Nothing here judges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from .shared import kept

QUEUE = ("topic", "broker_name", "queue_id")


def place() -> Column:
    """The queue of a row as one number."""
    return F.xxhash64(*QUEUE)


def messages(history: DataFrame) -> DataFrame:
    """The rows of `_messages`; one shuffle for all who ask while `shared.one_shuffle` is open."""
    return kept(history, "messages", lambda: _messages(history))


def _messages(history: DataFrame) -> DataFrame:
    """One row per msg_key that a send ended for, that was received or that was read.

    acknowledged, unsure   sends that ended ok, and info (nobody knows)
    tries                  how many tries of its sends may have stored it
    receives, reads        rows of each
    low, high              least and greatest position that its sends and the final reads name; equal for one copy
    place, sender, offset  of the acknowledged send: its queue, its producer process, its queue offset
    began_ms, acked_ms     when the acknowledged send was invoked, and when it was answered
    received_ms            when it was received first
    """
    event, type_ = F.col("event"), F.col("type")
    is_send, is_receive, is_read = event == "send", event == "receive", event == "read"
    acknowledged = is_send & (type_ == "ok")
    rows = (
        history.where(is_send & type_.isin("ok", "info") | is_receive | is_read)
        .where(F.col("msg_key").isNotNull())
        .select(
            "msg_key",
            acknowledged.alias("is_acknowledged"),
            (is_send & (type_ == "info")).alias("is_unsure"),
            is_receive.alias("is_receive"),
            is_read.alias("is_read"),
            "time_ms",
            "offset",
            F.when(is_send, F.coalesce("attempt", F.lit(1))).alias("tries"),
            place().alias("place"),
            F.when(acknowledged, F.xxhash64("node", "incarnation")).alias("sender"),
            F.when(acknowledged | is_read, F.xxhash64(*QUEUE, "offset")).alias("position"),
            F.coalesce("duration_ms", F.lit(0.0)).alias("duration_ms"),
        )
    )
    answered = F.col("is_acknowledged")

    def count(flag: str) -> Column:
        return F.sum(F.when(F.col(flag), 1).otherwise(0)).alias(flag)

    return (
        rows.groupBy("msg_key")
        .agg(
            count("is_acknowledged"),
            count("is_unsure"),
            count("is_receive"),
            count("is_read"),
            F.sum("tries").alias("tries"),
            F.min("position").alias("low"),
            F.max("position").alias("high"),
            F.max(F.when(answered, F.col("place"))).alias("place"),
            F.max("sender").alias("sender"),
            F.max(F.when(answered, F.col("offset"))).alias("offset"),
            F.max(F.when(answered, F.col("time_ms") - F.col("duration_ms"))).alias("began_ms"),
            F.max(F.when(answered, F.col("time_ms"))).alias("acked_ms"),
            F.min(F.when(F.col("is_receive"), F.col("time_ms"))).alias("received_ms"),
        )
        .withColumnsRenamed(
            {
                "is_acknowledged": "acknowledged",
                "is_unsure": "unsure",
                "is_receive": "receives",
                "is_read": "reads",
            }
        )
    )


def acknowledged_sends(history: DataFrame, keys: Iterable[str]) -> Mapping[str, Mapping[str, Any]]:
    """msg_key → the row of its acknowledged send, for a few keys: the names behind an example's hashes."""
    wanted = sorted(set(keys))
    if not wanted:
        return {}
    event, type_ = F.col("event"), F.col("type")
    found = (
        history.where((event == "send") & (type_ == "ok") & F.col("msg_key").isin(*wanted))
        .select("msg_key", "node", *QUEUE, "offset", "time_ms", "duration_ms")
        .collect()
    )
    return {row["msg_key"]: row.asDict() for row in found}
