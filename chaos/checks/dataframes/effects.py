"""How many tries and pulls show that a fault had an effect: they failed, or took as long as a link was slow.

send_attempt, pull ── failed, or slow ── the address they spoke to ──┬─ fault, kind ─► rows
faults: address, who dialled it, from when to when, how slow ────────┘
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from .shared import parts_of, within
from .small_tables import beside

Asked = tuple[str, str | None, str | None, float, float, float]
"""fault_id, the address that is hit, who dials it (None: anybody), from when to when, slow_ms (0: no delay)."""


def effects_on_calls(history: DataFrame, asked: Sequence[Asked]) -> dict[str, dict[str, int]]:
    """fault_id → failed, or slow → rows."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    if not asked:
        return {}
    schema = "fault string, key string, by string, start_ms double, until_ms double, slow_ms double"
    faults = beside(history, asked, schema)
    matches = (
        (F.col("time_ms") >= F.col("start_ms"))
        & (F.col("begun_ms") <= F.col("until_ms"))
        & (F.col("time_ms") <= F.col("until_ms"))
        & (F.col("by").isNull() | (F.col("by") == F.col("node")))
        & ((F.col("kind") != "slow") | ((F.col("slow_ms") > 0) & (F.col("took_ms") >= F.col("slow_ms"))))
    )
    in_time = within(F.col("time_ms"), ((start_ms, until_ms) for _, _, _, start_ms, until_ms, _ in asked))
    for part in parts_of(history, "send_attempt", "pull"):
        hits = _evidence(part.where(in_time), any(slow_ms for *_, slow_ms in asked)).join(faults, "key").where(matches)
        for row in hits.groupBy("fault", "kind").agg(F.count("*").alias("rows")).collect():
            found[row["fault"]][row["kind"]] += row["rows"]
    return {fault_id: dict(kinds) for fault_id, kinds in found.items()}


def _evidence(calls: DataFrame, slow: bool) -> DataFrame:
    """kind, key (the address it speaks of), node, time_ms, begun_ms, took_ms: calls that may show a fault."""
    kind: Column = F.when(F.col("type").isin("fail", "info") & F.col("code").isNull(), "failed")
    if slow:
        kind = F.coalesce(kind, F.when(F.col("duration_ms") > 0, "slow"))
    took_ms = F.coalesce("duration_ms", F.lit(0.0))
    return (
        calls.withColumn("kind", kind)
        .where(F.col("kind").isNotNull())
        .select(
            "kind",
            F.coalesce("address", "name_server").alias("key"),
            "node",
            "time_ms",
            (F.col("time_ms") - took_ms).alias("begun_ms"),
            took_ms.alias("took_ms"),
        )
    )
