"""Shows progress on stderr: phase, bar and seconds left; in a pipe plain lines.

broker-partition (seed 7)  ██████████░░░░░░░░░░  settling, about 14 s left
"""

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

from ..scenarios.model import Scenario

START_S, READ_S, JUDGE_S, JUDGE_PLAINLY_S = 7.0, 2.0, 10.0, 3.0
"""Estimates in machine time on two cores: cluster up, final reads, judging and report with Spark and without."""
VIRTUAL_S, MESSAGE_S = 2.0, 0.0007
"""The same to record a run on the virtual clock: any run, and for each message, its judging included."""
SPARK_BYTES_A_S = 2_000_000
_BAR = 20
BEAT_S = 10.0
"""The longest silence in a pipe."""


def expected_to_judge_s(size: int | None, *, spark: bool) -> float:
    """Return the estimated seconds to judge a history of `size` bytes; None stands for an unknown size."""
    return JUDGE_S + (size or 0) / SPARK_BYTES_A_S if spark else JUDGE_PLAINLY_S


def expected_s(scenario: Scenario, *, spark: bool) -> float:
    """Return the estimated machine seconds of a run from start to report."""
    judge_s = JUDGE_S if spark else JUDGE_PLAINLY_S
    if scenario.clock == "virtual":
        workload = scenario.workload
        messages = workload.producers * workload.sends_per_s * (scenario.ends_s() + scenario.settle_s)
        return VIRTUAL_S + judge_s + MESSAGE_S * messages
    return START_S + (scenario.ends_s() + scenario.settle_s) / scenario.timers.time_scale + READ_S + judge_s


class Progress:
    """Prints each phase that `say` is called with. On a terminal one line is rewritten. Nothing is printed if `quiet`.
    A long phase is printed again: on a terminal each second, in a pipe after BEAT_S without output. `patient`: in a
    pipe only repetitions are printed, so a short phase prints nothing.
    """

    def __init__(
        self,
        title: str,
        expected_s: float,
        *,
        quiet: bool = False,
        patient: bool = False,
        out: TextIO | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title, self._expected_s, self._now_s = title, expected_s, now_s
        self._out = out or sys.stderr
        self.is_terminal = self._out.isatty()
        self._quiet, self._patient = quiet, patient
        self._began_s = self._wrote_s = self._phase_s = now_s()
        self._said, self._of_idle = "", " on an idle machine"
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._beats: threading.Thread | None = None

    def expect(self, seconds: float) -> None:
        self._expected_s = self._now_s() - self._began_s + seconds

    def part(self, done: int, of: int, what: str = "runs") -> None:
        """Say how many of the equal parts are done. The time that they took tells how long the others take."""
        if done:
            self._expected_s, self._of_idle = (self._now_s() - self._began_s) * of / done, ""
        self.say(f"{done} of {of} {what}")

    def say(self, text: str) -> None:
        if self._quiet:
            return
        with self._lock:
            new, self._said = text != self._said, text
            if new:
                self._phase_s = self._now_s()
            if self.is_terminal or (new and not self._patient):
                self._show()
        if self._beats is None and not self._ended.is_set():
            self._beats = threading.Thread(target=self._beat, name="progress", daemon=True)
            self._beats.start()

    def _beat(self) -> None:
        while not self._ended.wait(1.0):
            self.beat()

    def beat(self) -> None:
        """Print the current phase again if nothing was printed for a while."""
        with self._lock:
            if self._said and self._now_s() - self._wrote_s >= (1.0 if self.is_terminal else BEAT_S):
                self._show()

    def _show(self) -> None:
        self._wrote_s = self._now_s()
        took_s = self._wrote_s - self._began_s
        if self.is_terminal:
            done = min(_BAR - 1, int(_BAR * took_s / max(self._expected_s, 1.0)))
            bar = f"{'█' * done}{'░' * (_BAR - done)}"
            self._write(f"\r\x1b[2K{self._fitting(bar, self._said + self._left(took_s))}")
        elif took_s < 1:
            self._write(f"{self._title}: {self._said}\n")
        else:
            self._write(f"{self._title}: {self._said}{self._left(took_s)}\n")

    def _left(self, took_s: float) -> str:
        """Return the remaining time; if nobody knows it, how long the phase and the run have taken."""
        if (left_s := self._expected_s - took_s) >= 1:
            return f", about {left_s:.0f} s left"
        phase_s = self._wrote_s - self._phase_s
        expected = f" (expected: about {self._expected_s:.0f} s{self._of_idle})" if self._expected_s > 0 else ""
        return f"{f' for {phase_s:.0f} s' if 1 <= phase_s <= took_s - 1 else ''}, {took_s:.0f} s so far{expected}"

    def _fitting(self, bar: str, text: str) -> str:
        columns = self._columns() - 1
        lines = (f"{self._title}  {bar}  {text}", f"{bar}  {text}", text)
        return next((line for line in lines if len(line) <= columns), text[:columns])

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._out.fileno()).columns or 80
        except OSError:  # not a terminal of the operating system's
            return shutil.get_terminal_size().columns

    def clear(self) -> None:
        """Remove the progress line from the terminal and print nothing more."""
        self._ended.set()
        with self._lock:
            if self.is_terminal and not self._quiet and self._said:
                self._write("\r\x1b[2K")
            self._said = ""

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
