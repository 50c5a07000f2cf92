"""The streaming query: each new segment of a growing history goes through the live judge, a micro-batch at a time."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from ..spark.storage import HISTORY_SCHEMA
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
    on_verdicts: Callable[[Sequence[Verdict]], None],
    *,
    trigger_s: float = 2.0,
    judge_every_s: float = 0.0,
) -> StreamingQuery:
    """A running query over the Parquet files that appear in `segments`, which must be whole and never change.

    `folder` gets the query's checkpoint and its micro-batches; a segment that is in one of those is deleted. Each is
    added to `judge`, and judged when the judging before is `judge_every_s` ago; then `on_verdicts` is called. One that
    fails ends the query, and `exception()` of it says why. The folder belongs to one query: a new one judges anew.
    """
    judged_s = -math.inf

    def on_batch(batch: DataFrame, batch_id: int) -> None:
        nonlocal judged_s
        path = folder / "batches" / f"batch-{batch_id:06d}"
        batch.coalesce(1).write.mode("overwrite").parquet(str(path))
        rows = sum(pq.ParquetFile(part).metadata.num_rows for part in path.glob("*.parquet"))
        if rows:
            judge.add([str(path)], rows)
            if time.monotonic() - judged_s >= judge_every_s:
                on_verdicts(judge.judge())
                judged_s = time.monotonic()

    growing = spark.readStream.schema(HISTORY_SCHEMA).option("cleanSource", "delete").parquet(str(segments))
    return (
        growing.writeStream.foreachBatch(on_batch)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime=f"{round(trigger_s * 1000)} milliseconds")
        .queryName("nemesrv-live")
        .start()
    )
