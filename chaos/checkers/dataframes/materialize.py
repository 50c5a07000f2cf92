"""Small tables that Spark knows by their values: made in one job, and then no plan has to make them again.

Planning is what a small history costs, and a control check of a large one too. A table of which several queries read,
and that is as large as the scenario and not as the history, is collected in the JVM and put back as a local relation:
what reads it has a short plan, filters of it are evaluated when Spark plans, and what is empty falls away with all
that would be joined to it. One that turns out to be large stays the query that it was.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from ...oracle.world import World

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_MAX = 20_000
"""Of a table that is held by value; its rows are in the driver, and in each plan that reads it."""


def materialize(rows: DataFrame) -> DataFrame:
    """The same rows in one partition, by value when they are few."""
    from pyspark.sql import DataFrame

    found = rows.limit(ROWS_MAX + 1)._jdf.collectAsList()
    if found.size() > ROWS_MAX:
        return rows.coalesce(1)
    spark = rows.sparkSession
    return DataFrame(spark._jsparkSession.createDataFrame(found, rows._jdf.schema()), spark).coalesce(1)


def memoized_table(history: DataFrame, world: World, key: Hashable, make: Callable[[], DataFrame]) -> DataFrame:
    """What `make` gives, by value, for all checks that ask for `key` of this history and World."""
    # The history stays in the memo with the table, so that no other can come to have its id.
    return world.memoized((key, id(history)), lambda: (history, materialize(make())))[1]
