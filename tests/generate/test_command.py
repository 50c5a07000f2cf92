"""`python -m tests.generate` and `tests.bench`: what they say to impossible numbers and names."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from nemesrv.chaos.history.rows import read_rows
from tests.bench.__main__ import bench
from tests.generate.__main__ import generate


def test_it_writes_a_run_folder_and_says_how_many_events(tmp_path: Path) -> None:
    done = CliRunner().invoke(generate, ["--events", "2000", "--seed", "4", "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    assert done.output == f"{len(read_rows(tmp_path / 'run'))} events in {tmp_path / 'run'}\n"


@pytest.mark.parametrize("events", ["x", "1e6,", "10"])
def test_sizes_of_a_benchmark_are_numbers(events: str) -> None:
    done = CliRunner().invoke(bench, ["checks", "--events", events])
    assert done.exit_code == 2
    assert "allowed are numbers from 1e3 on" in done.output
