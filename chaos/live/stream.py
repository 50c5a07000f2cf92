"""The streaming query: each new segment of a growing history goes through the live judge, a micro-batch at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..checks.spark.storage import HISTORY_SCHEMA
from .judge import LiveJudge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from ..verdict import Verdict

log = logging.getLogger("nemesrv.live")


def start_query(
    spark: SparkSession,
    segments: Path,
    folder: Path,
    judge: LiveJudge,
    on_verdicts: Callable[[Sequence[Verdict], float], None],
    *,
    trigger_s: float = 2.0,
) -> StreamingQuery:
    """A running query over the Parquet files that appear in `segments`, which must be whole and never change.

    `folder` gets the query's checkpoint and its micro-batches; a segment that is in one of those is deleted. Each is
    added to `judge`, and judged; then `on_verdicts` is told the verdicts, and up to which time they are. One that fails
    ends the query, and `exception()` of it says why. The folder belongs to one query: a new one judges anew.
    """

    def on_batch(batch: DataFrame, batch_id: int) -> None:
        path = folder / "batches" / f"batch-{batch_id:06d}"
        batch.coalesce(1).write.mode("overwrite").parquet(str(path))
        times = pq.read_table(path, columns=["time_ms"]).column("time_ms")
        if len(times):
            judge.add([str(path)], len(times))
            on_verdicts(judge.judge(), pc.max(times).as_py())

    growing = spark.readStream.schema(HISTORY_SCHEMA).option("cleanSource", "delete").parquet(str(segments))
    return (
        growing.writeStream.foreachBatch(on_batch)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime=f"{round(trigger_s * 1000)} milliseconds")
        .queryName("nemesrv-live")
        .start()
    )
