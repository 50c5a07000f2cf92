"""`python -m tests.generate` and `tests.bench`: what they say to impossible numbers and names."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.history.rows import read_rows
from tests.bench.__main__ import bench
from tests.generate import DEFECTS
from tests.generate.__main__ import generate


def test_it_writes_a_run_folder_and_says_how_many_events(tmp_path: Path) -> None:
    done = CliRunner().invoke(generate, ["--events", "2000", "--seed", "4", "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    assert done.output == f"{len(read_rows(tmp_path / 'run'))} events in {tmp_path / 'run'}\n"


def test_its_defects_are_listed_with_the_checks_that_find_them(tmp_path: Path) -> None:
    done = CliRunner().invoke(generate, ["--defect", "list", "--out", str(tmp_path)])
    lines = done.output.splitlines()
    assert [line.split()[0] for line in lines] == [*DEFECTS]
    assert lines[0].endswith("[commits_follow_work, messages_delivered, no_acknowledged_loss]")
    assert list(tmp_path.iterdir()) == []


def test_a_defect_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(generate, ["--defect", "rust", "--out", str(tmp_path)])
    assert isinstance(done.exception, ScenarioError)
    assert "'rust' is not allowed; expected list, or one of lost_message" in str(done.exception)


@pytest.mark.parametrize("events", ["x", "1e6,", "10"])
def test_sizes_of_a_benchmark_are_numbers(events: str) -> None:
    done = CliRunner().invoke(bench, ["checks", "--events", events])
    assert done.exit_code == 2
    assert "allowed are numbers from 1e3 on" in done.output
