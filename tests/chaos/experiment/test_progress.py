"""What a person who waits sees: the phase, a bar, the seconds left; plain lines in a pipe; nothing when quiet."""

from __future__ import annotations

import io

import pytest

from nemesrv.chaos.experiment.progress import Progress, expected_s
from nemesrv.chaos.scenarios.loading import find


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(out: io.StringIO, *, quiet: bool = False) -> str:
    """Of a run of 40 s: the beginning, half of it, the same again, and longer than was expected."""
    at_s = iter((0.0, 0.0, 20.0, 21.0, 50.0))
    progress = Progress("smoke (seed 7)", 40.0, quiet=quiet, out=out, now_s=lambda: next(at_s))
    for phase in ("starting 5 nodes", "steady", "steady", "judging"):
        progress.say(phase)
    progress.clear()
    return out.getvalue()


def test_a_pipe_gets_a_line_a_phase_with_the_seconds_left() -> None:
    assert told(io.StringIO()).splitlines() == [
        "smoke (seed 7): starting 5 nodes",
        "smoke (seed 7): steady, about 20 s left",
        "smoke (seed 7): judging, about a moment more",
    ]


def test_a_terminal_gets_one_line_with_a_bar_that_is_gone_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = told(Terminal())
    assert "\n" not in shown
    assert f"{'█' * 10}{'░' * 10}  steady, 20 s left" in shown
    assert shown.endswith("\r\x1b[2K")


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (80, f"smoke (seed 7)  {'█' * 10}{'░' * 10}  steady, 20 s left"),
        (45, f"{'█' * 10}{'░' * 10}  steady, 20 s left"),
        (30, "steady, 20 s left"),
        (12, "steady, 20 "),
    ],
)
def test_on_a_narrow_terminal_it_stays_one_line(columns: int, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = told(Terminal()).split("\r\x1b[2K")
    assert shown in lines
    assert max(map(len, lines)) < columns


def test_quiet_is_quiet() -> None:
    assert told(Terminal(), quiet=True) == told(io.StringIO(), quiet=True) == ""


def test_a_run_is_expected_to_take_as_long_as_its_timeline() -> None:
    crash = find("broker-crash")
    assert 35 < expected_s(crash, spark=True) < 55
    assert expected_s(crash.model_copy(update={"clock": "virtual"}), spark=False) < 20
