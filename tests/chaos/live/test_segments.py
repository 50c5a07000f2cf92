"""What processes append becomes whole segments, up to the moment that all of them have spoken of."""

from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from nemesrv.chaos.history.files import part_files
from nemesrv.chaos.history.schema import raw_dir
from nemesrv.chaos.live.segments import IDLE_S, SegmentWriter, thinned


class Raw:
    """A run folder whose processes write what a test says."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        raw_dir(run_dir).mkdir(parents=True)
        self.seqs: dict[str, int] = {}

    def rows(self, name: str, *times_ms: float, event: str = "timer_lag", **fields: Any) -> None:
        node, _, incarnation = name.rpartition(".")
        for time_ms in times_ms:
            seq = self.seqs[name] = self.seqs.get(name, -1) + 1
            row = {"time_ms": time_ms, "seq": seq, "node": node, "role": "broker", "incarnation": int(incarnation)}
            self.bytes(name, orjson.dumps({**row, "event": event, **fields}, option=orjson.OPT_APPEND_NEWLINE))

    def row(self, row: dict[str, Any]) -> None:
        self.bytes(f"{row['node']}.{row['incarnation']}", orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))

    def bytes(self, name: str, data: bytes) -> None:
        with (raw_dir(self.run_dir) / f"{name}.jsonl").open("ab") as file:
            file.write(data)


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return Raw(tmp_path)


def step(segments: SegmentWriter, clock_ms: float, now_s: float) -> Path | None:
    return segments.emit(segments.read(clock_ms, now_s))


def times(part: Path | None) -> list[float]:
    return [] if part is None else pq.read_table(part).column("time_ms").to_pylist()


def test_a_segment_ends_where_the_slowest_writer_is(raw: Raw) -> None:
    raw.rows("ns-0.0", 10.0, 20.0, 30.0)
    raw.rows("broker-a.0", 5.0, 18.0)
    segments = SegmentWriter(raw.run_dir)
    assert times(step(segments, 100.0, 0.0)) == [5.0, 10.0, 18.0]
    raw.rows("broker-a.0", 40.0)
    assert times(step(segments, 100.0, 0.1)) == [20.0, 30.0]
    assert segments.watermark_ms == 30.0


def test_no_segment_is_written_when_there_is_nothing_new(raw: Raw) -> None:
    raw.rows("ns-0.0", 10.0)
    segments = SegmentWriter(raw.run_dir)
    assert times(step(segments, 100.0, 0.0)) == [10.0]
    assert step(segments, 100.0, 0.1) is None
    assert [path.name for path in part_files(raw.run_dir)] == ["part-000000.parquet"]


def test_a_writer_that_has_been_silent_holds_nothing_up_and_its_late_rows_come_later(raw: Raw) -> None:
    raw.rows("ns-0.0", 10.0)
    raw.rows("broker-a.0", 10.0)
    segments = SegmentWriter(raw.run_dir)
    step(segments, 100.0, 0.0)
    raw.rows("ns-0.0", 500.0)
    assert times(step(segments, 600.0, IDLE_S - 0.1)) == []
    raw.rows("ns-0.0", 550.0)
    assert times(step(segments, 600.0, IDLE_S + 0.1)) == [500.0, 550.0]
    raw.rows("broker-a.0", 11.0, 620.0)
    raw.rows("ns-0.0", 640.0)
    assert times(step(segments, 700.0, IDLE_S + 0.2)) == [11.0, 620.0]


def test_a_process_that_was_started_again_waits_for_no_row_of_the_one_before(raw: Raw) -> None:
    raw.rows("broker-a.0", 10.0)
    raw.rows("ns-0.0", 10.0, 300.0)
    raw.rows("broker-a.1", 250.0)
    assert times(step(SegmentWriter(raw.run_dir), 400.0, 0.0)) == [10.0, 10.0, 250.0]


def test_the_harness_is_not_waited_for_and_nothing_is_later_than_the_clock(raw: Raw) -> None:
    raw.rows("harness.0", 1.0, event="phase")
    raw.rows("ns-0.0", 10.0, 20.0)
    assert times(step(SegmentWriter(raw.run_dir), 15.0, 0.0)) == [1.0, 10.0]


def test_half_a_line_is_waited_for_and_a_torn_one_is_skipped(raw: Raw) -> None:
    raw.rows("ns-0.0", 10.0)
    raw.bytes("ns-0.0", b'{"time_ms":11.0,"seq":1,"node":"ns-0","role":"name_server",')
    segments = SegmentWriter(raw.run_dir)
    assert times(step(segments, 100.0, 0.0)) == [10.0]
    raw.bytes("ns-0.0", b'"incarnation":0,"event":"started"}\n{"time_ms":12.0,"se\n')
    assert times(step(segments, 100.0, 0.1)) == [11.0]


def test_a_raw_file_is_deleted_when_its_process_writes_in_the_next_and_all_of_it_is_in_parts(raw: Raw) -> None:
    raw.rows("ns-0.0", 10.0, 20.0)
    segments = SegmentWriter(raw.run_dir)
    step(segments, 15.0, 0.0)
    (raw_dir(raw.run_dir) / "ns-0.0-000001.jsonl").touch()
    step(segments, 15.0, 0.1)
    assert len(list(raw_dir(raw.run_dir).iterdir())) == 2, "its second row is in no part yet"
    step(segments, 30.0, 0.2)
    assert [path.name for path in raw_dir(raw.run_dir).iterdir()] == ["ns-0.0-000001.jsonl"]


def test_of_lateness_far_from_every_change_the_worst_of_each_minute_stays() -> None:
    rows: list[dict[str, Any]] = [
        {"node": node, "incarnation": 0, "event": "timer_lag", "time_ms": 1_000.0 * s, "seq": s}
        | {"lag_ms": float(s % 50), "duration_ms": 1_000.0}
        for node in ("ns-0", "ns-1")
        for s in range(1, 240)
    ]
    rows.append({"node": "ns-0", "incarnation": 0, "event": "registration", "time_ms": 70_000.0, "seq": 999})
    kept = thinned(rows, after_ms=59_000.0)
    lags = [row for row in kept if row["event"] == "timer_lag" and row["node"] == "ns-0"]
    assert [row["time_ms"] for row in lags[:59]] == [1_000.0 * s for s in range(1, 60)], "near the change all"
    assert [(row["time_ms"], row["seq"], row["lag_ms"], row["duration_ms"]) for row in lags[59:]] == [
        (119_000.0, 119, 49.0, 60_000.0),
        (179_000.0, 179, 49.0, 60_000.0),
        (239_000.0, 239, 49.0, 60_000.0),
    ]
    assert sum(row["duration_ms"] for row in lags) == 239_000.0, "all time is covered"
    assert sum(row["event"] == "registration" for row in kept) == 1
