"""The consumer groups of a run beside its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ...oracle.deliveries import Asker
from .small_tables import beside

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


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
