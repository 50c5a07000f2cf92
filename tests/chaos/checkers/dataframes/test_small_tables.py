"""Tables that Spark knows by value: the same rows, made once, and only while they are few."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from nemesrv.chaos.checkers.dataframes import small_tables
from nemesrv.chaos.oracle.timers import Timers
from nemesrv.chaos.oracle.world import World

pytestmark = pytest.mark.spark


def squares(spark: SparkSession) -> DataFrame:
    return spark.range(5).selectExpr("id", "id * id AS square", "array(struct(id AS of)) AS nested", "NULL AS nothing")


def is_by_value(rows: DataFrame) -> bool:
    return "LocalRelation" in rows._jdf.queryExecution().optimizedPlan().toString()


def ordered(rows: DataFrame) -> list[Any]:
    return sorted(rows.collect(), key=lambda row: row["id"])


def test_a_few_rows_are_known_by_value_in_one_partition(spark: SparkSession) -> None:
    found = small_tables.materialize(squares(spark))
    assert is_by_value(found)
    assert found.rdd.getNumPartitions() == 1
    assert found.schema == squares(spark).schema
    assert ordered(found) == ordered(squares(spark))


def test_many_rows_stay_the_query_that_they_were(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_tables, "ROWS_MAX", 4)
    found = small_tables.materialize(squares(spark))
    assert not is_by_value(found)
    assert ordered(found) == ordered(squares(spark))


def test_a_table_is_made_once_for_a_history_and_a_world(spark: SparkSession) -> None:
    history, other, world = squares(spark), squares(spark), World(timers=Timers())
    made = [
        small_tables.memoized_table(rows, world, "squares", lambda: squares(spark))
        for rows in (history, history, other)
    ]
    assert made[0] is made[1]
    assert made[0] is not made[2]
