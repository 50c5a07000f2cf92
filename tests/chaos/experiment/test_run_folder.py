"""The run folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesrv.chaos.errors import HarnessError, ScenarioError
from nemesrv.chaos.experiment.run_folder import RunFolder


def test_a_run_gets_a_folder_of_its_own_and_latest_links_to_the_newest(tmp_path: Path) -> None:
    first = RunFolder.create("smoke", root=tmp_path)
    second = RunFolder.create("smoke", root=tmp_path)
    assert first.path != second.path
    assert (tmp_path / "latest").resolve() == second.path.resolve()
    assert (second.path / "history" / "_raw").is_dir()
    assert second.logs.is_dir()


def test_a_folder_that_holds_something_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("x", encoding="utf-8")
    for out in (tmp_path, tmp_path / "precious.txt"):
        with pytest.raises(ScenarioError, match=r"--out: .* is not allowed: an empty or new folder; this"):
            RunFolder.create("smoke", out)
    assert (tmp_path / "precious.txt").read_text(encoding="utf-8") == "x"


def test_a_folder_that_is_no_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"scenario\.yaml"):
        RunFolder(tmp_path).scenario()
