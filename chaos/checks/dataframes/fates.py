"""What became of all messages of a history, counted in one pass for two checks: was it lost, did it come twice.

messages.py ─┬─ plain: acknowledged, received and read once ──────────────────────────┬─► MessageCounts
             └─ others, a row each ── its queue read whole (`read_done`)? ── counted ─┘
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...oracle.intervals import Stretch
from ...verdict import FINDINGS_MAX
from ..record.control import Control
from .gathering import Gathering
from .messages import acknowledged_sends, messages
from .plain_pages import QUEUE
from .shared import traffic
from .small_tables import one_of

_FATES = ("received", "only_in_final_reads", "lost", "unread")


class MessageCounts(NamedTuple):
    """A message counts as often as its sends were acknowledged; they share one key, so one receipt is one of them all.
    The last four count keys: received at all, in need of a closer look, and stored at two places."""

    acknowledged: int
    received: int
    only_in_final_reads: int
    lost: int
    unread: int
    messages: int
    suspicious: int
    twice_stored: int


def message_counts(gathering: Gathering) -> MessageCounts:
    """Counted once for all who ask."""
    return gathering.memoized("message counts", lambda: _counted(gathering))


def is_suspicious() -> Column:
    """Of a row of `messages`: it may have come twice."""
    return (F.col("receives") > 1) | is_twice_stored()


def is_twice_stored() -> Column:
    """Of a row of `messages`: it is at two places."""
    return F.col("low") != F.col("high")


def missing(gathering: Gathering, fate: str) -> list[dict[str, Any]]:
    """The acknowledged sends of the first messages that are `lost`, or `unread`, in order of time."""
    of_fate = _fates(gathering).where((F.col("acknowledged") > 0) & (F.col("fate") == fate))
    first = of_fate.orderBy("acked_ms", "msg_key").limit(FINDINGS_MAX).select("msg_key").collect()
    keys = [row["msg_key"] for row in first]
    sends = acknowledged_sends(gathering.history, keys)
    return [dict(sends[key]) for key in keys]


def unsafe(gathering: Gathering, without_slaves: Mapping[str, Sequence[Stretch]]) -> tuple[int, list[dict[str, Any]]]:
    """How many sends were acknowledged while their broker had no slave, and the first of them."""
    began_ms, is_unsafe = F.col("time_ms") - F.coalesce("duration_ms", F.lit(0.0)), F.lit(False)
    for name, stretches in without_slaves.items():
        for start_ms, end_ms in stretches:
            within = (began_ms >= start_ms) & (F.col("time_ms") <= end_ms)
            is_unsafe = is_unsafe | ((F.col("broker_name") == name) & within)
    sends = traffic(gathering.history).where((F.col("event") == "send") & (F.col("type") == "ok") & is_unsafe)
    columns = ("time_ms", "msg_key", "node", "topic", "broker_name", "queue_id", "offset")
    first = sends.select(*columns).orderBy("time_ms", "msg_key").limit(FINDINGS_MAX).collect()
    return (sends.count() if first else 0), [row.asDict() for row in first]


def _counted(gathering: Gathering) -> MessageCounts:
    plain = messages(gathering.history).plain

    def sends(fate: str) -> Column:
        return F.sum(F.when(F.col("fate") == fate, F.col("acknowledged")).otherwise(0)).alias(fate)

    def keys(condition: Column, name: str) -> Column:
        return F.count(F.when(condition, True)).alias(name)

    row = (
        _fates(gathering)
        .agg(
            F.sum("acknowledged").alias("acknowledged"),
            *map(sends, _FATES),
            keys(F.col("receives") > 0, "messages"),
            keys(is_suspicious(), "suspicious"),
            keys(is_twice_stored(), "twice_stored"),
        )
        .collect()[0]
    )
    counts = MessageCounts(**{name: row[name] or 0 for name in MessageCounts._fields})
    return counts._replace(
        acknowledged=counts.acknowledged + plain,
        received=counts.received + plain,
        messages=counts.messages + plain,
    )


def _fates(gathering: Gathering) -> DataFrame:
    """The messages that are not plain, each with its `fate`; who was never acknowledged counts for nothing in that."""
    is_read_whole = F.expr(one_of("place", _read_whole(gathering.control)))
    fate = (
        F.when(F.col("receives") > 0, "received")
        .when(F.col("reads") > 0, "only_in_final_reads")
        .when(is_read_whole, "lost")
        .otherwise("unread")
    )
    return messages(gathering.history).others.withColumn("fate", fate)


def _read_whole(control: Control) -> list[tuple[Any, ...]]:
    """The queues whose final read came to its end."""
    rows: Iterable[Any] = control.rows("read_done")
    return sorted({tuple(getattr(row, name) for name in QUEUE) for row in rows}, key=str)
