"""Stopped at any moment: a word at once, everything gone in 10 s, the signal's exit status, the record readable."""

import os
import random
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from nemesrv.chaos.history.merge import to_parquet
from nemesrv.chaos.history.schema import raw_dir

from .programs import MARK, NEMESRV, kill, left_of, processes_of

pytestmark = [pytest.mark.e2e, pytest.mark.ray, pytest.mark.spark, pytest.mark.toxiproxy]

GONE_S, AT_ONCE_S, SAID_S = 10.0, 4.0, 2.0
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}
LONGEST_S = 45.0
"""A run of `smoke` takes about so long on two cores, from the first import to its table."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """One command that was stopped: how, when, and how long it took to say so and to be gone."""

    how: str
    after_s: float
    status: int
    said_s: float
    gone_s: float
    left: list[str]

    def __str__(self) -> str:
        return f"{self.how} after {self.after_s:.1f} s: said {self.said_s:.2f} s, gone {self.gone_s:.2f} s later"


class Command:
    """A command with a mark by which all its processes are found again. Context manager: none of them outlives it."""

    def __init__(self, folder: Path, *args: str) -> None:
        self.mark = f"nemesrv-test-{uuid.uuid4().hex}"
        self._begin_s = time.monotonic()
        self._said: list[tuple[float, str]] = []
        self.process = subprocess.Popen(
            [*NEMESRV, *args],
            cwd=folder,
            env={**os.environ, MARK: self.mark},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        kill(self.mark)
        self.process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._said.append((time.monotonic(), line.strip()))

    def until(self, ready: Callable[[], bool], limit_s: float = 180) -> None:
        """Return when `ready`, as soon as that can be seen."""
        retry(retry=retry_if_result(lambda yes: not yes), stop=stop_after_delay(limit_s), wait=wait_fixed(0.02))(
            ready
        )()

    def runs(self, program: str) -> bool:
        return any(program in line for line in processes_of(self.mark))

    def works(self) -> bool:
        """Whether the supervisor has begun the work, and so has handlers for signals."""
        pid = self.process.pid
        return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text())

    def stop(self, *signals: signal.Signals, apart_s: float = 1.0) -> Stopped:
        """Send the signals and wait for the end. AssertionError when nothing is said, or the wrong thing."""
        first_s = last_s = time.monotonic()
        self.process.send_signal(signals[0])
        for number in signals[1:]:
            try:
                self.process.wait(apart_s)
            except subprocess.TimeoutExpired:
                last_s = time.monotonic()
                self.process.send_signal(number)
        status = self.process.wait(120)
        gone_s = time.monotonic() - last_s
        left = processes_of(self.mark)
        self._reader.join(10)
        words = [line for _, line in self._said]
        assert words[0].startswith("nemesrv: stopping"), words
        assert words[1:] == [f"nemesrv: {'interrupted' if status == 130 else 'terminated'}"], words
        how = "+".join(number.name for number in signals)
        return Stopped(how, first_s - self._begin_s, status, self._said[0][0] - first_s, gone_s, left)


def must_be_gone(stopped: Stopped, first: signal.Signals, run: Path, *, within_s: float = GONE_S) -> None:
    assert stopped.status == STATUS[first], stopped
    assert stopped.said_s < SAID_S, stopped
    assert stopped.gone_s < within_s, stopped
    assert stopped.left == [], stopped
    if any(file.stat().st_size for file in raw_dir(run).glob("*.jsonl")):
        assert to_parquet(run).rows > 0


def test_a_second_signal_ends_it_at_once_while_ray_starts(tmp_path: Path) -> None:
    with Command(tmp_path, "run", "smoke", "--quiet", "--out", "run") as command:
        command.until(lambda: command.runs("raylet"))
        stopped = command.stop(signal.SIGTERM, signal.SIGINT)
    must_be_gone(stopped, signal.SIGTERM, tmp_path / "run", within_s=AT_ONCE_S)


def test_while_spark_judges(tmp_path: Path) -> None:
    with Command(
        tmp_path, "run", "smoke", "--quiet", "--clock", "virtual", "--engine", "spark", "--out", "run"
    ) as command:
        command.until(lambda: (tmp_path / "run" / "history" / "part-00000.parquet").exists())
        must_be_gone(command.stop(signal.SIGTERM), signal.SIGTERM, tmp_path / "run")


@pytest.mark.nightly("test_while_spark_judges")
def test_sigkill_while_its_jvm_starts(tmp_path: Path) -> None:
    with Command(tmp_path, "run", "smoke", "--quiet", "--clock", "virtual", "--engine", "spark") as command:
        command.until(lambda: command.runs("bin/java"))
        command.process.kill()
        command.process.wait()
        assert left_of(command.mark) == []


@pytest.mark.nightly("test_a_second_signal_ends_it_at_once_while_ray_starts")
def test_in_its_first_moments(tmp_path: Path) -> None:
    rng = random.Random(10)
    for number, signum in enumerate((signal.SIGINT, signal.SIGTERM)):
        with Command(tmp_path, "run", "smoke", "--quiet", "--out", f"run-{number}") as command:
            command.until(command.works)
            with pytest.raises(subprocess.TimeoutExpired):
                command.process.wait(rng.uniform(0, 2))
            must_be_gone(command.stop(signum), signum, tmp_path / f"run-{number}")


@pytest.mark.nightly("test_a_second_signal_ends_it_at_once_while_ray_starts")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [40, 41])
def test_at_twenty_random_moments(tmp_path: Path, seed: int) -> None:
    """Some six minutes each."""
    rng = random.Random(seed)
    found: list[Stopped] = []
    while len(found) < 20:
        number = len(found)
        signum = (signal.SIGTERM, signal.SIGINT)[number % 2]
        twice = number % 8 >= 6
        run = tmp_path / uuid.uuid4().hex
        with Command(tmp_path, "run", "smoke", "--quiet", "--seed", "1", "--out", run.name) as command:
            command.until(command.works)
            try:
                command.process.wait(rng.uniform(0, LONGEST_S))
            except subprocess.TimeoutExpired:  # else it was done before its moment came
                found.append(command.stop(*[signum] * (1 + twice)))
                print(found[-1], flush=True)
                must_be_gone(found[-1], signum, run, within_s=AT_ONCE_S if twice else GONE_S)
    gone = sorted(stopped.gone_s for stopped in found)
    print(f"said within {max(s.said_s for s in found):.2f} s; gone: median {gone[10]:.1f} s, longest {gone[-1]:.1f} s")
