"""A history that was kept in parts is the same as one that was not, and takes no more room."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from nemesrv.chaos.history import merge
from nemesrv.chaos.history.files import number_of, part_files, process_of, rotated
from nemesrv.chaos.history.merge import discard, to_parquet, write_part
from nemesrv.chaos.history.recorder import RecorderSpec
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.history.schema import raw_dir
from nemesrv.remoting.node.clock import RealClock


def row(node: str, seq: int, time_ms: float, **fields: Any) -> dict[str, Any]:
    stamped = {"time_ms": time_ms, "seq": seq, "node": node, "role": "name_server", "incarnation": 0}
    return {**stamped, "event": "timer_lag", "lag_ms": 1.0, "duration_ms": 1.0, **fields}


def raw(run_dir: Path, name: str, *rows: dict[str, Any]) -> Path:
    path = raw_dir(run_dir) / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(orjson.dumps(each, option=orjson.OPT_APPEND_NEWLINE) for each in rows))
    return path


def places(run_dir: Path) -> list[tuple[str, int]]:
    return [(each["node"], each["seq"]) for each in read_rows(run_dir)]


def test_the_name_of_a_raw_file_says_whose_it_is_and_which() -> None:
    first = Path("history/_raw/broker-a.2.jsonl")
    third = rotated(first, 3)
    assert third.name == "broker-a.2-000003.jsonl"
    assert (process_of(first), number_of(first)) == (("broker-a", 2), 0)
    assert (process_of(third), number_of(third)) == (("broker-a", 2), 3)


def test_a_recorder_goes_on_in_the_next_file_and_no_row_is_lost(tmp_path: Path) -> None:
    clock = RealClock.starting_now(1.0)
    record = RecorderSpec.for_run(tmp_path, "ns-0", "name_server", 0, clock, rotate_bytes=400).open()
    for _ in range(20):
        record("timer_lag", lag_ms=1.0, duration_ms=1.0)
    record.close()
    files = sorted(raw_dir(tmp_path).iterdir(), key=number_of)
    assert len(files) > 3
    assert all(file.stat().st_size >= 400 for file in files[:-1])
    to_parquet(tmp_path)
    assert places(tmp_path) == [("ns-0", seq) for seq in range(20)]


@pytest.mark.parametrize("slice_rows", [2, 100])
def test_parts_and_what_is_not_in_them_yet_are_one_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slice_rows: int
) -> None:
    monkeypatch.setattr(merge, "SLICE_ROWS", slice_rows)
    ns = [row("ns-0", seq, 10.0 * seq, value={"b": 1, "a": seq}) for seq in range(6)]
    broker = [row("broker-a", seq, 10.0 * seq + 5, event="gone" if seq == 3 else "timer_lag") for seq in range(6)]
    raw(tmp_path, "ns-0.0-000001", *ns[3:])  # the file before it is read out, and gone
    raw(tmp_path, "broker-a.0", *broker)
    write_part(tmp_path, 0, [*ns[:2], *broker[:2]])
    write_part(tmp_path, 1, [*ns[2:4], *broker[2:3]])
    merge.merge_parts(tmp_path)
    assert places(tmp_path) == [place for seq in range(6) for place in (("ns-0", seq), ("broker-a", seq))]
    assert [each["value"] for each in read_rows(tmp_path) if each["node"] == "ns-0"] == [
        {"a": seq, "b": 1} for seq in range(6)
    ]


def test_to_parquet_merges_parts_and_when_they_are_discarded_the_history_stays(tmp_path: Path) -> None:
    raw(tmp_path, "ns-0.0", row("ns-0", 0, 0.0), row("ns-0", 1, 1.0))
    write_part(tmp_path, 0, [row("ns-0", 0, 0.0)])
    to_parquet(tmp_path)
    assert len(read_rows(tmp_path)) == 2
    discard(tmp_path)
    assert part_files(tmp_path) == []
    assert [path.name for path in (tmp_path / "history").iterdir()] == ["part-00000.parquet"]
    assert places(tmp_path) == [("ns-0", 0), ("ns-0", 1)]
