"""Segments that appear one by one go through Structured Streaming and the checks, and end as the whole run does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from nemesrv.chaos.history.rows import to_table
from nemesrv.chaos.live.judge import LiveJudge, start_query
from nemesrv.chaos.live.segments import live_dir
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HistoryBuilder, cluster

pytestmark = pytest.mark.spark
CHECK = "no_acknowledged_loss"


def message(builder: HistoryBuilder, number: int, *, received: bool = True) -> None:
    where = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0, "offset": number, "msg_key": f"k-{number}"}
    builder.event("producer-0", "send", type="invoke", op_id=f"op-{number}", topic="orders", msg_key=f"k-{number}")
    builder.event("producer-0", "send", type="ok", op_id=f"op-{number}", **where)
    if received:
        builder.event("consumer-0", "receive", **where)


def put(builder: HistoryBuilder, folder: Path, number: int, since: int) -> int:
    """The story's rows from `since` on are the next segment; how many rows it has now."""
    path = folder / f"segment-{number:06d}.parquet"
    pq.write_table(to_table(builder.rows[since:]), path.with_name(f".{path.name}"))
    os.replace(path.with_name(f".{path.name}"), path)
    return len(builder.rows)


def test_verdicts_follow_the_segments_and_sealed_messages_stay_counted(spark: Any, tmp_path: Path) -> None:
    folder = live_dir(tmp_path)
    segments = folder / "segments"
    segments.mkdir(parents=True)
    builder = cluster(clients=("producer-0", "consumer-0"))
    judge = LiveJudge(spark, folder / "carry", [CHECK], seal_rows=1)
    said: list[Verdict] = []
    judged_until_ms: list[float] = []

    def hear(verdicts: Sequence[Verdict], until_ms: float) -> None:
        said.extend(verdicts)
        judged_until_ms.append(until_ms)

    query = start_query(spark, segments, folder, judge, hear)
    try:
        for number in range(30):
            message(builder.at(10 + number), number)
        told = put(builder.at(400).lag(1.0), segments, 0, 0)
        query.processAllAvailable()
        assert [(v.verdict, v.examined) for v in said] == [(Validity.VALID, 30)]
        assert judge.seals == 1
        assert judge.carried_rows < told - 60  # what is finished is not carried

        message(builder.at(410), 30, received=False)
        told = put(builder.at(411).lag(1.0), segments, 1, told)
        query.processAllAvailable()
        assert (said[-1].verdict, said[-1].examined) == (Validity.UNKNOWN, 31)  # it may still come

        builder.at(420).event("prober", "read_done", topic="orders", broker_name="broker-a", queue_id=0, offset=31)
        put(builder.end(421), segments, 2, told)
        query.processAllAvailable()
    finally:
        query.stop()
    assert query.exception() is None
    assert judged_until_ms == [400_000.0, 411_000.0, 421_000.0]
    last = said[-1]
    assert (last.verdict, last.examined, last.violations) == (Validity.INVALID, 31, 1)
    assert (last.measured["received"], last.measured["lost"]) == (30, 1)
    assert ["k-30" in str(example.to_json()) for example in last.examples] == [True]
