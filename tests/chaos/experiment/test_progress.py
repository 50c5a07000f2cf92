"""What a person who waits sees: the phase, a bar, the seconds left; plain lines in a pipe; nothing when quiet."""

import io
from itertools import pairwise

import pytest
from tenacity import Retrying, stop_after_delay, wait_fixed

from nemesrv.chaos.experiment.progress import Progress, expected_s
from nemesrv.chaos.scenarios.loading import find


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def told(out: io.StringIO, *, quiet: bool = False, patient: bool = False) -> str:
    """Of a run of 40 s: the beginning, half of it, the same again, and longer than was expected."""
    clock = Clock()
    progress = Progress("smoke (seed 7)", 40.0, quiet=quiet, patient=patient, out=out, now_s=clock)
    for at_s, phase in ((0.0, "starting 5 nodes"), (20.0, "steady"), (21.0, "steady"), (45.0, "judging")):
        clock.now_s = at_s
        progress.say(phase)
    progress.clear()
    return out.getvalue()


def test_a_pipe_gets_a_line_a_phase_with_the_seconds_left() -> None:
    assert told(io.StringIO()).splitlines() == [
        "smoke (seed 7): starting 5 nodes",
        "smoke (seed 7): steady, about 20 s left",
        "smoke (seed 7): judging, 45 s so far (expected: about 40 s on an idle machine)",
    ]


def test_a_pipe_is_never_silent_for_more_than_ten_seconds_and_never_told_the_same_for_minutes() -> None:
    clock, out = Clock(), io.StringIO()
    progress = Progress("smoke", 40.0, out=out, now_s=clock)
    progress.say("starting")
    said_at_s = [0.0]
    for second in range(1, 200):
        clock.now_s = float(second)
        before = len(out.getvalue())
        progress.beat()
        if len(out.getvalue()) > before:
            said_at_s.append(clock.now_s)
    progress.clear()
    lines = out.getvalue().splitlines()
    assert max(after - at for at, after in pairwise(said_at_s)) <= 10
    assert len(set(lines)) == len(lines) >= 19
    assert lines[1] == "smoke: starting, about 30 s left"
    assert lines[-1] == "smoke: starting, 190 s so far (expected: about 40 s on an idle machine)"


def test_a_phase_that_takes_longer_than_expected_is_told_with_its_own_time_and_the_runs() -> None:
    clock, out = Clock(), io.StringIO()
    progress = Progress("smoke", 40.0, out=out, now_s=clock)
    for clock.now_s, phase in ((0.0, "steady"), (38.0, "judging")):
        progress.say(phase)
    for clock.now_s in (48.0, 58.0):
        progress.beat()
    progress.clear()
    assert out.getvalue().splitlines()[2:] == [
        "smoke: judging for 10 s, 48 s so far (expected: about 40 s on an idle machine)",
        "smoke: judging for 20 s, 58 s so far (expected: about 40 s on an idle machine)",
    ]


def test_patient_work_says_nothing_in_a_pipe_before_it_lasts() -> None:
    assert told(io.StringIO(), patient=True) == ""
    clock, out = Clock(), io.StringIO()
    progress = Progress("check x", 40.0, patient=True, out=out, now_s=clock)
    progress.say("judging")
    clock.now_s = 11.0
    progress.beat()
    progress.clear()
    assert out.getvalue() == "check x: judging, about 29 s left\n"


def test_the_parts_that_are_done_tell_how_long_the_others_take() -> None:
    clock, out = Clock(), io.StringIO()
    progress = Progress("compare", 0.0, out=out, now_s=clock)
    for clock.now_s, done in ((0.0, 0), (20.0, 1), (30.0, 2), (70.0, 3)):
        progress.part(done, 4)
    clock.now_s = 95.0
    progress.beat()
    progress.clear()
    assert out.getvalue().splitlines() == [
        "compare: 0 of 4 runs",
        "compare: 1 of 4 runs, about 60 s left",
        "compare: 2 of 4 runs, about 30 s left",
        "compare: 3 of 4 runs, about 23 s left",
        "compare: 3 of 4 runs for 25 s, 95 s so far (expected: about 93 s)",
    ]


def test_it_beats_by_itself_and_says_nothing_after_its_end() -> None:
    clock, out = Clock(), io.StringIO()
    progress = Progress("smoke", 40.0, out=out, now_s=clock)
    progress.say("starting")
    clock.now_s = 12.0
    for attempt in Retrying(stop=stop_after_delay(30), wait=wait_fixed(0.05)):
        with attempt:
            assert "smoke: starting, about 28 s left" in out.getvalue()
    progress.clear()
    clock.now_s = 60.0
    progress.beat()
    assert len(out.getvalue().splitlines()) == 2


def test_a_terminal_gets_one_line_with_a_bar_that_is_gone_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = told(Terminal())
    assert "\n" not in shown
    assert f"{'█' * 10}{'░' * 10}  steady, about 20 s left" in shown
    assert shown.endswith("\r\x1b[2K")


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (80, f"smoke (seed 7)  {'█' * 10}{'░' * 10}  steady, about 20 s left"),
        (52, f"{'█' * 10}{'░' * 10}  steady, about 20 s left"),
        (30, "steady, about 20 s left"),
        (12, "steady, abo"),
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


def test_a_run_on_the_virtual_clock_is_expected_to_take_as_long_as_it_has_messages() -> None:
    few, many = (find("broker-crash", (f"workload.sends_per_s={rate}", "clock=virtual")) for rate in (4, 400))
    assert expected_s(few, spark=False) < 10 < 100 < expected_s(many, spark=False)
