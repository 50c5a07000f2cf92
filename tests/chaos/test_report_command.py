"""`nemesrv report`: which file it writes of one run or two, and what it prints, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nemesrv.chaos.__main__ import cli
from nemesrv.chaos.scenarios.loading import find
from nemesrv.chaos.verdict import Verdict
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


def judged(folder: Path, seed: int, verdicts: tuple[Verdict, ...] = VERDICTS) -> Path:
    """A run folder as `nemesrv run` leaves it."""
    folder.mkdir()
    recorded(folder)
    scenario = find("broker-crash").model_copy(update={"seed": seed, "clock": "virtual"})
    (folder / "scenario.yaml").write_text(scenario.to_yaml(), encoding="utf-8")
    document: dict[str, Any] = {"timeline_ms": 3000.0, "checks": [v.to_json() for v in verdicts]}
    (folder / "verdicts.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def test_of_one_run_it_writes_the_page_and_junit_and_prints_where(report: Report, run_dir: Path) -> None:
    assert report(run_dir) == f"{run_dir / 'report.html'}\n"
    assert "routes_are_true" in (run_dir / "report.html").read_text(encoding="utf-8")
    assert "routes_are_true" in (run_dir / "junit.xml").read_text(encoding="utf-8")


def test_with_json_it_says_the_file_and_how_the_run_ended(report: Report, run_dir: Path) -> None:
    ended = {"routes_are_true": "INVALID", "no_acknowledged_loss": "VALID", "dead_name_servers_left": "UNKNOWN"}
    run = {"run_dir": str(run_dir), "scenario": "broker-crash", "seed": 7, "verdict": "INVALID", "checks": ended}
    assert json.loads(report(run_dir, "--json")) == {"file": str(run_dir / "report.html"), "runs": [run]}


def test_perfetto_is_a_trace_beside_the_report(report: Report, run_dir: Path) -> None:
    assert report(run_dir, "--export", "perfetto") == f"{run_dir / 'trace.json'}\n"
    trace = json.loads((run_dir / "trace.json").read_text(encoding="utf-8"))
    assert trace["otherData"]["verdict"] == "INVALID"
    assert "broker-a killed" in {event["name"] for event in trace["traceEvents"]}
    assert not (run_dir / "report.html").exists()


def test_openmetrics_goes_to_the_file_that_is_named(report: Report, run_dir: Path, tmp_path: Path) -> None:
    said = json.loads(report(run_dir, "--export", "openmetrics", "--out", tmp_path / "node.prom", "--json"))
    assert said["file"] == str(tmp_path / "node.prom")
    lines = (tmp_path / "node.prom").read_text(encoding="utf-8").splitlines()
    assert lines[-1] == "# EOF"
    assert 'nemesrv_verdict{scenario="broker-crash",seed="7",check="routes_are_true"} 2' in lines


def test_of_two_runs_it_writes_one_page_with_both(report: Report, run_dir: Path, tmp_path: Path) -> None:
    other = judged(tmp_path / "other", 8, VERDICTS[1:2])
    said = json.loads(report(run_dir, other, "--json"))
    assert [(run["seed"], run["verdict"]) for run in said["runs"]] == [(7, "INVALID"), (8, "VALID")]
    page = (tmp_path / said["file"]).read_text(encoding="utf-8")
    assert "broker-crash one beside broker-crash other" in page
    assert "id='a-routes'" in page
    assert "id='b-routes'" in page


@pytest.mark.parametrize("args", [("--export", "perfetto", "other"), ("other", "third")])
def test_more_runs_than_a_page_or_an_export_has_room_for_are_wrong_input(args: tuple[str, ...], run_dir: Path) -> None:
    done = CliRunner().invoke(cli, ["report", str(run_dir), *args])
    assert done.exit_code != 0
    assert "one run folder with --export, else one or two" in str(done.exception)
    assert [path.name for path in run_dir.iterdir() if path.name in ("report.html", "trace.json")] == []
