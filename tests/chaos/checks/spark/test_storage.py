"""Histories are found wherever Spark reads: run folders, files, folders of files, URIs; and what is none is refused."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks.spark.storage import _elsewhere, load_planned
from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.history.recorder import RecorderSpec
from nemesrv.chaos.history.stored import local_path, local_size
from nemesrv.remoting.node.clock import RealClock
from tests import generate
from tests.generate import multiplied


def test_a_path_and_its_file_uri_are_one_place(tmp_path: Path) -> None:
    assert local_path(tmp_path.as_uri()) == local_path(str(tmp_path)) == local_path(tmp_path) == tmp_path
    assert local_path("hdfs://host/runs/1") is None
    assert local_size("s3a://bucket/run") is None


@pytest.mark.spark
def test_a_folder_of_files_is_read_by_its_uri(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiplied, "ORDERED_ROWS", 0)
    written = generate.write(tmp_path / "run", events=10_000, seed=1, slice_rows=2_000)
    shutil.move(tmp_path / "run" / "history", tmp_path / "just files")
    (tmp_path / "just files" / "_SUCCESS").touch()
    assert load_planned((tmp_path / "just files").as_uri(), spark)[0].count() == written.rows
    assert load_planned(f"{tmp_path}/just files/part-00000.parquet", spark)[0].count() < written.rows


@pytest.mark.spark
def test_a_place_that_spark_cannot_read_is_said_in_one_sentence(spark: Any) -> None:
    with pytest.raises(
        HarnessError, match=r"nosuch://host/run cannot be read: .*Spark needs that file system"
    ) as caught:
        load_planned("nosuch://host/run", spark)
    assert "\n" not in str(caught.value)


@pytest.mark.spark
def test_a_uri_without_a_history_is_said_so(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="holds no history"):
        _elsewhere(tmp_path.as_uri(), spark)


@pytest.mark.spark
def test_a_run_that_never_got_to_merging_is_merged_when_it_is_checked(spark: Any, tmp_path: Path) -> None:
    record = RecorderSpec.for_run(tmp_path, "ns-0", "name_server", 0, RealClock.starting_now()).open()
    record("started")
    record.close()
    assert [row["event"] for row in load_planned(tmp_path, spark)[0].collect()] == ["started"]


@pytest.mark.spark
def test_an_unmergeable_run_is_a_failed_harness(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="holds no recorded events"):
        load_planned(tmp_path, spark)
