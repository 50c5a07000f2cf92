"""The run folder."""

from pathlib import Path

import pytest

from nemesrv.actors.cluster import ClusterError
from nemesrv.chaos import runner
from nemesrv.chaos.apache.jvm import leave_last_words
from nemesrv.chaos.errors import HarnessError, ScenarioError
from nemesrv.chaos.experiment.harness import Harness
from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.scenarios.loading import find
from nemesrv.chaos.scenarios.model import Scenario


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
        with pytest.raises(ScenarioError, match=r"--out: .* is not allowed; expected an empty or new folder; this"):
            RunFolder.create("smoke", out)
    assert (tmp_path / "precious.txt").read_text(encoding="utf-8") == "x"


def test_a_folder_that_is_no_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"scenario\.yaml"):
        RunFolder(tmp_path).scenario()


def test_a_failed_run_keeps_its_logs_and_not_its_nodes_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_scenario: Scenario, folder: RunFolder, *_: object, **__: object) -> None:
        node = folder.data / "broker-a"
        (node / "store" / "commitlog").mkdir(parents=True)
        leave_last_words(node, "broker-a's Java process ended by SIGKILL")
        (folder.logs / "broker-a.log").touch()
        raise ClusterError("broker-a was killed")

    monkeypatch.setattr(runner, "record", fails)
    out = tmp_path / "run"
    with pytest.raises(HarnessError, match="broker-a was killed; broker-a's Java process ended by SIGKILL"):
        runner.run_one(find("smoke"), runner.Options(virtual=True, out=out, quiet=True), Harness())
    assert sorted(path.name for path in out.iterdir()) == ["history", "logs"]
    assert (out / "logs" / "broker-a.log").exists()
