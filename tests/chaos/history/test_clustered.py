"""Large recordings are merged slice by slice, and hold then what merging in memory gives."""

from pathlib import Path

import pytest

from nemesrv.chaos.history import merge
from nemesrv.chaos.history import merge as history
from nemesrv.chaos.history.merge import to_parquet
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.history.schema import raw_dir
from tests.generate import rows_of


def recorded(run_dir: Path) -> int:
    """A run as its processes would have left it, two of them killed in the middle of a line."""
    import orjson

    raw_dir(run_dir).mkdir(parents=True)
    rows = rows_of(1_000, 5)
    for row in rows:
        with (raw_dir(run_dir) / f"{row['node']}.{row['incarnation']}.jsonl").open("ab") as file:
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
    for node in ("producer-0", "ns-0"):
        with (raw_dir(run_dir) / f"{node}.0.jsonl").open("ab") as file:
            file.write(b'{"time_ms": 17.25, "seq": 9')
    return len(rows)


def test_slices_hold_what_memory_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = recorded(tmp_path)
    to_parquet(tmp_path)
    expected = read_rows(tmp_path)
    assert len(expected) == count
    monkeypatch.setattr(merge, "SLICE_ROWS", 1_000)
    merge.merge_in_slices(tmp_path)
    assert len(list((tmp_path / "history").glob("*.parquet"))) == -(-count // 1_000)
    assert read_rows(tmp_path) == expected


def test_a_large_recording_is_merged_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = recorded(tmp_path)
    monkeypatch.setattr(history, "IN_MEMORY_BYTES", 0)
    monkeypatch.setattr(merge, "SLICE_ROWS", 1_000)
    to_parquet(tmp_path)
    assert len(read_rows(tmp_path)) == count
    assert len(list((tmp_path / "history").glob("*.parquet"))) > 1
    monkeypatch.undo()
    to_parquet(tmp_path)
    assert len(read_rows(tmp_path)) == count
    assert [file.name for file in (tmp_path / "history").glob("*.parquet")] == ["part-00000.parquet"]


def test_a_merge_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(tmp_path)
    to_parquet(tmp_path)
    before = read_rows(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(merge, "to_table", full)
    with pytest.raises(OSError, match="No space left"):
        merge.merge_in_slices(tmp_path)
    assert read_rows(tmp_path) == before
    assert list((tmp_path / "history").glob(".*.tmp")) == []
