"""One row a message: what its sends, its receipts and the final reads came to. The one big shuffle of these checks.

    send (ended) ─┐
    receive ──────┼─► plain_pages.py ─┬─ plain: counted ──────────────────────┬─► no_acknowledged_loss, duplicates
    read ─────────┘             └─ the others: group by msg_key ─► row ─┘

Of a large history only the messages of pages that are not plain get a row: all others were acknowledged once, stored
once, received once, and a count says all there is to say. A message that a page which is not plain holds, and of which
no send is known there, may have another copy in a plain page, so its key is looked up everywhere.

Only numbers are aggregated, because Spark adds those up in place in a hash table, where strings would make it sort.
So a queue is known by its hash `place`, and a stored copy by `position`; who wants names looks them up for a few keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from .plain_pages import QUEUE, page, pages, place, spans
from .shared import is_shared, memoized, persisted, traffic, within

_BROADCAST_MAX = 200_000
"""Pages or keys up to which they are sent to every task; beyond, both sides are shuffled."""


class Messages(NamedTuple):
    """All messages of a history: how many are plain, and the rows of `_by_key` for the others."""

    plain: int
    """Messages acknowledged once, by one try, and in the same place received once and read once."""
    others: DataFrame


def messages(history: DataFrame) -> Messages:
    """Computed once for all who ask while `shared.shared_scan` is open; outside of it none is taken for plain."""
    if not is_shared(history):
        return Messages(0, _by_key(_rows(traffic(history))))
    return memoized(history, "messages", lambda: _told_apart(history))


def _told_apart(history: DataFrame) -> Messages:
    found = persisted(history, "pages", lambda: pages(traffic(history)))
    is_plain, sends = F.col("is_plain"), F.col("sends")
    counts = found.agg(
        F.sum(F.when(is_plain, sends)).alias("plain"),
        F.sum(F.when(~is_plain, sends)).alias("others"),
        F.count(F.when(~is_plain, True)).alias("pages"),
        F.max(F.greatest("live_to", "read_to")).alias("end_ms"),
    ).collect()[0]
    plain = counts["plain"] or 0
    if plain <= (counts["others"] or 0):
        return Messages(0, persisted(history, "by key", lambda: _by_key(_rows(traffic(history)))))
    where = ["place", "page"]
    not_plain, rows = found.where(~is_plain), _rows(traffic(history))
    looked_into = _small(not_plain.select(*where), counts["pages"])
    in_time = within(F.col("time_ms"), spans(not_plain, counts["end_ms"]))
    of_others = rows.where(in_time).join(looked_into, where, "left_semi")
    others = persisted(history, "by key", lambda: _by_key(of_others))
    strays = others.where((F.col("acknowledged") == 0) & (F.col("unsure") == 0)).select("msg_key")
    count = strays.count()
    if not count:
        return Messages(plain, others)
    keys = _small(strays, count)
    elsewhere = persisted(
        history,
        "of strays",
        lambda: rows.join(keys, "msg_key", "left_semi").join(looked_into, where, "left_anti"),
    )
    moved = elsewhere.where("is_acknowledged").count()
    both = of_others.unionByName(elsewhere)
    return Messages(plain - moved, persisted(history, "by key with strays", lambda: _by_key(both)))


def _small(rows: DataFrame, count: int) -> DataFrame:
    return F.broadcast(rows) if count <= _BROADCAST_MAX else rows


def _rows(history: DataFrame) -> DataFrame:
    """The sends that ended ok or info, the receipts and the reads, of messages with a key: numbers, and the key."""
    event, type_ = F.col("event"), F.col("type")
    is_send, is_receive, is_read = event == "send", event == "receive", event == "read"
    acknowledged = is_send & (type_ == "ok")
    return (
        history.where(is_send & type_.isin("ok", "info") | is_receive | is_read)
        .where(F.col("msg_key").isNotNull())
        .select(
            "msg_key",
            acknowledged.alias("is_acknowledged"),
            (is_send & (type_ == "info")).alias("is_unsure"),
            is_receive.alias("is_receive"),
            is_read.alias("is_read"),
            "time_ms",
            F.when(is_send, F.coalesce("attempt", F.lit(1))).alias("tries"),
            place().alias("place"),
            page().alias("page"),
            F.when(acknowledged | is_read, F.xxhash64(*QUEUE, "offset")).alias("position"),
        )
    )


def _by_key(rows: DataFrame) -> DataFrame:
    """One row per msg_key that a send ended for, that was received or that was read.

    acknowledged, unsure   sends that ended ok, and info (nobody knows)
    tries                  how many tries of its sends may have stored it
    receives, reads        rows of each
    low, high              least and greatest position that its sends and the final reads name; equal for one copy
    place, acked_ms        of the acknowledged send: its queue, and when it was answered
    """
    answered = F.col("is_acknowledged")

    def count(flag: str, name: str) -> Column:
        return F.sum(F.when(F.col(flag), 1).otherwise(0)).alias(name)

    return rows.groupBy("msg_key").agg(
        count("is_acknowledged", "acknowledged"),
        count("is_unsure", "unsure"),
        count("is_receive", "receives"),
        count("is_read", "reads"),
        F.sum("tries").alias("tries"),
        F.min("position").alias("low"),
        F.max("position").alias("high"),
        F.max(F.when(answered, F.col("place"))).alias("place"),
        F.max(F.when(answered, F.col("time_ms"))).alias("acked_ms"),
    )


def acknowledged_sends(history: DataFrame, keys: Iterable[str]) -> Mapping[str, Mapping[str, Any]]:
    """msg_key → the row of its acknowledged send, for a few keys: the names behind an example's hashes."""
    wanted = sorted(set(keys))
    if not wanted:
        return {}
    event, type_ = F.col("event"), F.col("type")
    found = (
        traffic(history)
        .where((event == "send") & (type_ == "ok") & F.col("msg_key").isin(*wanted))
        .select("msg_key", "node", *QUEUE, "offset", "time_ms", "duration_ms")
        .collect()
    )
    return {row["msg_key"]: row.asDict() for row in found}
