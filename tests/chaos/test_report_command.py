"""`nemesrv report`: which files it writes, and what it prints, for people and for programs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.scenarios.loading import find
from tests.chaos.reports.recorded import VERDICTS, recorded

Report = Callable[..., str]


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return judged(tmp_path / "one", 7)


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """Runs the command where nothing else is; its stdout."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str | Path) -> str:
        done = CliRunner().invoke(cli, ["report", *map(str, args)])
        assert done.exit_code == 0, done.output
        return done.stdout

    return run


def judged(folder: Path, seed: int) -> Path:
    """A run folder as `nemesrv run` leaves it."""
    folder.mkdir()
    recorded(folder)
    scenario = find("broker-crash").model_copy(update={"seed": seed, "clock": "virtual"})
    (folder / "scenario.yaml").write_text(scenario.to_yaml(), encoding="utf-8")
    document: dict[str, Any] = {"timeline_ms": 3000.0, "checks": [v.to_json() for v in VERDICTS]}
    (folder / "verdicts.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def test_it_writes_the_page_and_junit_and_prints_where(report: Report, run_dir: Path) -> None:
    assert report(run_dir) == f"{run_dir / 'report.html'}\n"
    assert "routes_are_true" in (run_dir / "report.html").read_text(encoding="utf-8")
    assert "routes_are_true" in (run_dir / "junit.xml").read_text(encoding="utf-8")


@pytest.mark.nightly("test_it_writes_the_page_and_junit_and_prints_where")
def test_with_json_it_says_the_file_and_how_the_run_ended(report: Report, run_dir: Path) -> None:
    ended = {"routes_are_true": "INVALID", "no_acknowledged_loss": "VALID", "dead_name_servers_left": "UNKNOWN"}
    run = {"run_dir": str(run_dir), "scenario": "broker-crash", "seed": 7, "verdict": "INVALID", "checks": ended}
    assert json.loads(report(run_dir, "--json")) == {"file": str(run_dir / "report.html"), "runs": [run]}
