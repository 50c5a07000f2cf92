"""How many rows of each process a history has, and where some are not there (history/wholeness.py)."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ...history.wholeness import Gap, Process


def processes_of(history: DataFrame) -> list[Process]:
    """Each process's rows, counted."""
    counted = history.groupBy("node", "incarnation").agg(
        F.count("*").alias("rows"), F.max("seq").alias("last_seq"), F.max_by("time_ms", "seq").alias("last_ms")
    )
    return [Process(*row) for row in counted.orderBy("node", "incarnation").collect()]


def gaps_of(history: DataFrame, process: Process) -> list[Gap]:
    """Where rows of the process are not there."""
    of_process = history.where((F.col("node") == process.node) & (F.col("incarnation") == process.incarnation))
    in_order = Window.orderBy("seq")
    before = F.coalesce(F.lag("seq").over(in_order), F.lit(-1))
    numbered = of_process.select(
        (F.col("seq") - before - 1).alias("rows"), F.lag("time_ms").over(in_order).alias("since_ms"), "time_ms", "seq"
    )
    found = numbered.where("rows > 0").orderBy("seq").select("rows", "since_ms", "time_ms")
    return [Gap(*row) for row in found.collect()]
