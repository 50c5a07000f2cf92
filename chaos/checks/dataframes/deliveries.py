"""Which acknowledged messages a consumer group did not have within D, or not as they were sent; the others are counted.

    send (ok) ─┐                    ┌─ prompt pages: counted ──────────────────────────────────┐
    receive ───┼─► by 64 offsets ───┴─ the others: by message ─┬─ prompt: counted ─────────────┼─► Found
               └─ (a large history)                            └─ slow, missing or changed: one row each ┘

A page is prompt when its sends and its receipts are the same messages with the same digests, each once, and all of its
rows lie within D. So of a large history only messages near disturbances get a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...oracle.deliveries import PROMPT_MS, Asker, askers
from ...oracle.world import World
from ..record.slow_messages import Slow
from .gathering import Gathering
from .plain_pages import QUEUE, page, place
from .shared import is_shared, traffic
from .small_tables import beside

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_BROADCAST_MAX = 200_000


class Found(NamedTuple):
    prompt: int
    prompt_ms: float | None
    """The longest that one of them took."""
    slow: list[Slow]


def deliveries(gathering: Gathering, world: World) -> Found:
    """Of every message once for each group that reads its topic; with broadcasting once a consumer."""
    groups = askers(world)
    if not groups:
        return Found(0, None, [])
    history, prompt, prompt_ms = gathering.history, 0, None
    rows = _rows(traffic(history))
    if is_shared(history) and len(groups) == 1:
        pages = _pages(rows).persist()
        try:
            counts = pages.where("is_prompt").agg(F.sum("sends"), F.max("span_ms"), F.count("*")).collect()[0]
            prompt, prompt_ms = counts[0] or 0, None  # a page's length is none of its messages'
            others = pages.where(~F.col("is_prompt")).select("place", "page")
            number = others.count()
            of_others = F.broadcast(others) if number <= _BROADCAST_MAX else others
            found = _by_message(history, rows.join(of_others, ["place", "page"], "left_semi"), groups)
            return _found(found, prompt, prompt_ms)
        finally:
            pages.unpersist()
    return _found(_by_message(history, rows, groups), prompt, prompt_ms)


def _rows(history: DataFrame) -> DataFrame:
    """Acknowledged sends and receipts that name a place."""
    is_send = (F.col("event") == "send") & (F.col("type") == "ok")
    is_receipt = F.col("event") == "receive"
    return history.where((is_send | is_receipt) & F.col("offset").isNotNull() & F.col("msg_key").isNotNull()).select(
        *QUEUE,
        "offset",
        "msg_key",
        "node",
        "time_ms",
        "digest",
        is_send.alias("is_send"),
        place().alias("place"),
        page().alias("page"),
    )


def _pages(rows: DataFrame) -> DataFrame:
    """place, page, sends, span_ms, is_prompt."""
    is_send, none = F.col("is_send"), F.lit(0).cast("long")
    hashed = F.xxhash64("msg_key", "offset", "digest")

    def of(flag: Column) -> tuple[Column, Column]:
        return F.count(F.when(flag, True)), F.bit_xor(F.when(flag, hashed).otherwise(none))

    (sends, sent), (receipts, received) = of(is_send), of(~is_send)
    counted = rows.groupBy("place", "page").agg(
        sends.alias("sends"),
        receipts.alias("receipts"),
        (sent == received).alias("alike"),
        (F.max("time_ms") - F.min("time_ms")).alias("span_ms"),
    )
    is_prompt = (F.col("sends") == F.col("receipts")) & F.col("alike") & (F.col("span_ms") <= PROMPT_MS)
    return counted.select("place", "page", "sends", "span_ms", is_prompt.alias("is_prompt"))


def _by_message(history: DataFrame, rows: DataFrame, groups: list[Asker]) -> DataFrame:
    """One row an acknowledged message and group that reads its topic: a Slow, and `took_ms`."""
    message = [*QUEUE, "offset", "msg_key"]
    sends = (
        rows.where("is_send")
        .groupBy(*message)
        .agg(F.min("time_ms").alias("acked_ms"), F.min("node").alias("producer"), F.max("digest").alias("sent"))
    )
    receipts = rows.where(~F.col("is_send")).join(members(history, groups), "node")
    got = receipts.groupBy(*message, "group").agg(
        F.min(F.struct("time_ms", "node")).alias("first"),
        F.min("digest").alias("least"),
        F.max("digest").alias("most"),
    )
    joined = of_each_group(sends, groups).join(got, [*message, "group"], "left")
    changed = F.coalesce((F.col("least") != F.col("sent")) | (F.col("most") != F.col("sent")), F.lit(False))
    return joined.select(
        *("acked_ms", "msg_key", "producer", *QUEUE, "offset", "group"),
        F.col("first.time_ms").alias("received_ms"),
        F.col("first.node").alias("receiver"),
        changed.alias("changed"),
    ).withColumn("took_ms", F.col("received_ms") - F.col("acked_ms"))


def _found(by_message: DataFrame, prompt: int, prompt_ms: float | None) -> Found:
    """In one pass: the prompt ones are the group without a row of their own."""
    is_prompt = F.coalesce(F.col("took_ms") <= PROMPT_MS, F.lit(False)) & ~F.col("changed")
    counted = (
        by_message.groupBy(F.when(~is_prompt, F.struct(*Slow._fields)).alias("slow"))
        .agg(F.count("*").alias("prompt"), F.max("took_ms").alias("prompt_ms"))
        .collect()
    )
    slow = []
    for row in counted:
        if row["slow"] is None:
            prompt, prompt_ms = prompt + row["prompt"], row["prompt_ms"]
        else:
            slow.append(Slow(*row["slow"]))
    return Found(prompt, prompt_ms, sorted(slow, key=lambda one: (one.acked_ms, one.msg_key, one.group)))


def members(history: DataFrame, groups: Sequence[Asker]) -> DataFrame:
    """node, group: to be joined by `node` to rows of this history."""
    found = [(node, group.name) for group in groups for node in sorted(group.members)]
    return beside(history, found, "node string, group string")


def of_each_group(rows: DataFrame, groups: Sequence[Asker]) -> DataFrame:
    """The rows once for each group that reads their `topic`, and which `group` that is."""

    def named(group: Asker) -> Column:
        reads = F.lit(True) if group.topic == "" else F.col("topic") == group.topic
        return F.when(reads, F.lit(group.name))

    if len(groups) == 1:
        return rows.withColumn("group", named(groups[0])).where(F.col("group").isNotNull())
    return rows.withColumn("group", F.explode(F.array_compact(F.array(*map(named, groups)))))
