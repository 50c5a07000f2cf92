"""Stopped at any moment: a word at once, everything gone in 10 s, the signal's exit status, the record readable."""

import random
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from nemesrv.chaos.history.merge import to_parquet
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.history.schema import raw_dir

from .programs import Running, processes_of, running

pytestmark = [pytest.mark.e2e, pytest.mark.ray, pytest.mark.spark, pytest.mark.toxiproxy]

GONE_S, AT_ONCE_S, SAID_S = 10.0, 4.0, 2.0
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}
JUDGED_BY_SPARK = ("run", "smoke", "--quiet", "--clock", "virtual", "--engine", "spark")
LONGEST_S = 45.0
"""A run of `smoke` takes about so long on two cores, from the first import to its table."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """One command that was stopped: how, and how long it took to say so and to be gone."""

    how: str
    status: int
    said_s: float
    gone_s: float
    left: list[str]

    def __str__(self) -> str:
        return f"{self.how}: said {self.said_s:.2f} s, gone {self.gone_s:.2f} s later"


def works(command: Running) -> bool:
    """Whether the supervisor has begun the work, and so has handlers for signals."""
    pid = command.process.pid
    return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text())


def runs(command: Running, program: str) -> bool:
    return any(program in line for line in processes_of(command.mark))


def stop(command: Running, *signals: signal.Signals, apart_s: float = 1.0) -> Stopped:
    """Send the signals and wait for the end. AssertionError when nothing is said, or the wrong thing."""
    first_s = last_s = time.monotonic()
    command.process.send_signal(signals[0])
    first_words = next(command.stderr)
    said_s = time.monotonic() - first_s
    for number in signals[1:]:
        try:
            command.process.wait(apart_s)
        except subprocess.TimeoutExpired:
            last_s = time.monotonic()
            command.process.send_signal(number)
    status = command.process.wait(120)
    gone_s = time.monotonic() - last_s
    left = processes_of(command.mark)
    assert first_words.startswith("nemesrv: stopping"), first_words
    assert [*command.stderr] == [f"nemesrv: {'interrupted' if status == 130 else 'terminated'}\n"]
    return Stopped("+".join(number.name for number in signals), status, said_s, gone_s, left)


def must_be_gone(stopped: Stopped, first: signal.Signals, run: Path, *, within_s: float = GONE_S) -> None:
    assert stopped.status == STATUS[first], stopped
    assert stopped.said_s < SAID_S, stopped
    assert stopped.gone_s < within_s, stopped
    assert stopped.left == [], stopped
    if any(file.stat().st_size for file in raw_dir(run).glob("*.jsonl")):
        to_parquet(run)
        assert read_rows(run)


def test_a_second_signal_ends_it_at_once_while_ray_starts(tmp_path: Path) -> None:
    with running("run", "smoke", "--quiet", "--out", "run", cwd=tmp_path) as command:
        command.until(lambda: runs(command, "raylet"))
        stopped = stop(command, signal.SIGTERM, signal.SIGINT)
    must_be_gone(stopped, signal.SIGTERM, tmp_path / "run", within_s=AT_ONCE_S)


def test_while_spark_judges(tmp_path: Path) -> None:
    with running(*JUDGED_BY_SPARK, "--out", "run", cwd=tmp_path) as command:
        command.until(lambda: (tmp_path / "run" / "history" / "part-00000.parquet").exists())
        must_be_gone(stop(command, signal.SIGTERM), signal.SIGTERM, tmp_path / "run")


@pytest.mark.nightly("test_while_spark_judges")
def test_sigkill_while_its_jvm_starts(tmp_path: Path) -> None:
    with running(*JUDGED_BY_SPARK, cwd=tmp_path) as command:
        command.until(lambda: runs(command, "bin/java"))
        command.end(signal.SIGKILL)
        assert command.left() == []


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
        with running("run", "smoke", "--quiet", "--seed", "1", "--out", run.name, cwd=tmp_path) as command:
            command.until(lambda: works(command))
            try:
                command.process.wait(rng.uniform(0, LONGEST_S))
            except subprocess.TimeoutExpired:  # else it was done before its moment came
                found.append(stop(command, *[signum] * (1 + twice)))
                print(found[-1], flush=True)
                must_be_gone(found[-1], signum, run, within_s=AT_ONCE_S if twice else GONE_S)
    gone = sorted(stopped.gone_s for stopped in found)
    print(f"said within {max(s.said_s for s in found):.2f} s; gone: median {gone[10]:.1f} s, longest {gone[-1]:.1f} s")
