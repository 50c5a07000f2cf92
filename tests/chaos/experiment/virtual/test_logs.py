"""The log of a node on the virtual clock."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nemesrv.chaos.experiment.virtual.recording import node_logger

CLOCK: Any = SimpleNamespace(now_ms=lambda: 1_000)


def spec(log_file: Path) -> Any:
    return SimpleNamespace(name="broker-a", log_file=log_file)


def test_its_lines_have_virtual_times(tmp_path: Path) -> None:
    log, closed = node_logger(spec(tmp_path / "logs" / "broker-a.log"), CLOCK)
    log.info("started")
    closed()
    assert (tmp_path / "logs" / "broker-a.log").read_text().startswith("1970-01-01 00:00:01,000")


def test_a_full_disk_costs_lines_and_says_nothing_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    """A run whose disk filled up wrote 13,000 lines of tracebacks round the one sentence that tells of it."""
    log, closed = node_logger(spec(Path("/dev/full")), CLOCK)
    for _ in range(1_000):
        log.warning("send try 1 to broker-a failed")
    closed()
    log.warning("written after the file was closed")
    assert capfd.readouterr().err == ""


def test_a_line_that_cannot_be_made_is_still_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log, closed = node_logger(spec(tmp_path / "broker-a.log"), CLOCK)
    log.info("%d brokers", "two")
    closed()
    assert "--- Logging error ---" in capfd.readouterr().err
