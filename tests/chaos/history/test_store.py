"""A copy of a history lies where it was asked for, and can be judged there; a place that cannot be is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesrv.chaos.errors import HarnessError, ScenarioError
from nemesrv.chaos.history.rows import read_rows, write_parquet
from nemesrv.chaos.history.store import HistoryStore
from tests.chaos.builder import cluster


def run(folder: Path) -> Path:
    write_parquet(cluster().end(10).rows, folder)
    (folder / "scenario.yaml").write_text("name: smoke\n")
    return folder


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_the_history_and_its_scenario_are_there(tmp_path: Path, scheme: str) -> None:
    here = run(tmp_path / "run")
    there = HistoryStore(f"{scheme}{tmp_path}/a-place/of-all").keep(here, "smoke/1")
    copy = tmp_path / "a-place/of-all/smoke/1"
    assert there == f"{scheme}{copy}"
    assert read_rows(copy) == read_rows(here)
    assert (copy / "scenario.yaml").read_text() == "name: smoke\n"


def test_a_later_history_of_that_name_replaces_all_of_it(tmp_path: Path) -> None:
    store = HistoryStore(str(tmp_path / "store"))
    store.keep(run(tmp_path / "run"), "smoke/1")
    (tmp_path / "store/smoke/1/history/part-00001.parquet").write_bytes(b"of a larger one")
    store.keep(tmp_path / "run", "smoke/1")
    assert [path.name for path in (tmp_path / "store/smoke/1/history").iterdir()] == ["part-00000.parquet"]


@pytest.mark.parametrize("where", ["ftp://host/x", "nonsense://x", "s3:///no-bucket"])
def test_a_place_that_is_none_is_refused_before_anything_starts(where: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        HistoryStore(where)
    assert str(refused.value).startswith(f"--history: {where!r} is not allowed; expected a folder, file:///")
    assert "\n" not in str(refused.value)


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ScenarioError):
        HistoryStore(str(tmp_path / "file" / "below"))


def test_what_cannot_be_copied_later_stays_in_the_run_folder(tmp_path: Path) -> None:
    here, store = run(tmp_path / "run"), HistoryStore(str(tmp_path / "store"))
    (tmp_path / "store/smoke").write_text("in the way")
    with pytest.raises(HarnessError, match=r"the history is in .*run only"):
        store.keep(here, "smoke/1")
