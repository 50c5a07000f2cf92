"""How late a program is that measures nothing itself: how long it was stopped, and how long it waited for a CPU."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.fronts import process_lag
from nemesrv.chaos.fronts.process_lag import COUNT_S, LOOK_S, PROC, ProcessLag, keep_measuring
from nemesrv.remoting.node.clock import RealClock


def threads(folder: Path, **waited_ns: int) -> None:
    for thread, waited in waited_ns.items():
        (folder / "7" / "task" / thread).mkdir(parents=True, exist_ok=True)
        (folder / "7" / "task" / thread / "schedstat").write_text(f"1000 {waited} 12\n")


def late(lag: ProcessLag, *at_s: float) -> list[float]:
    """The longest lateness that each look tells."""
    return [max((late_s for _, late_s, _ in lag.look(each)), default=0.0) for each in at_s]


def test_it_is_the_longest_wait_since_the_last_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_lag, "PROC", tmp_path)
    threads(tmp_path, t1=5_000_000, t2=900_000_000)
    lag = ProcessLag(7, 0.0)
    threads(tmp_path, t1=30_000_000, t2=901_000_000)
    assert late(lag, 0.1, 0.25) == [0.0, 0.025]
    threads(tmp_path, t3=40_000_000)  # a new thread
    assert late(lag, 0.5, 0.75) == [0.04, 0.0]
    (tmp_path / "7" / "task" / "t2").rename(tmp_path / "t2")  # left out once of the kernel's list
    assert late(lag, 1.0) == [0.0]
    (tmp_path / "t2").rename(tmp_path / "7" / "task" / "t2")
    threads(tmp_path, t4=9_000_000_000)  # left out until now
    assert late(lag, 1.25) == [0.25]


def test_a_stop_is_as_long_as_nobody_saw_the_process_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_lag, "PROC", tmp_path)
    (tmp_path / "7").mkdir()
    lag, found = ProcessLag(7, 0.0), []
    for at_s, letter in enumerate("SRTTtSSTS"):
        (tmp_path / "7" / "stat").write_text(f"7 (a (b) c) {letter} 1 7 7")
        found += late(lag, float(at_s))
    assert found == [0.0, 0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 2.0]


def test_a_gone_process_or_a_blind_kernel_shows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_lag, "PROC", tmp_path)
    lag = ProcessLag(7, 0.0)
    assert late(lag, 1.0, 2.0) == [0.0, 0.0]
    threads(tmp_path, t1=5)
    (tmp_path / "7" / "task" / "t1" / "schedstat").write_text("")
    assert late(lag, 3.0) == [0.0]


def test_a_process_that_somebody_stops_was_late_by_that() -> None:
    async def measured(process: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        clock = RealClock.starting_now(scale=10)
        task = asyncio.create_task(keep_measuring(lambda: [process], clock, lambda _, row: found.append(row)))
        await asyncio.sleep(4 * LOOK_S)
        os.kill(process, signal.SIGSTOP)
        began_s = time.monotonic()
        await asyncio.sleep(0.6)
        os.kill(process, signal.SIGCONT)
        stopped_ms.append((time.monotonic() - began_s) * 1000 * 10)
        await asyncio.sleep(4 * LOOK_S + COUNT_S)
        task.cancel()
        return found

    stopped_ms: list[float] = []
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        found = asyncio.run(measured(sleeper.pid))
    finally:
        sleeper.kill()
        sleeper.wait()
    (stop,) = (row for row in found if row["f"] is None)
    assert stop["duration_ms"] == stop["lag_ms"] >= 0.9 * stopped_ms[0]


@pytest.mark.skipif(not (PROC / "self" / "schedstat").exists(), reason="this kernel does not count it")
def test_who_has_to_share_one_processor_has_waited() -> None:
    """Two that never rest, on one processor: each waits while the other runs."""
    core = min(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, {{{core}}})\nprint(flush=True)\nwhile True: pass"
    both = [subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for one in both:
            assert one.stdout is not None
            one.stdout.readline()
        lag, waited_s, at_s = ProcessLag(both[0].pid, 0.0), 0.0, 0.0
        for _ in range(10_000):  # some seconds at most
            at_s += COUNT_S
            waited_s += sum(late(lag, at_s))
            if waited_s > 0.02:
                break
            os.sched_yield()
        assert waited_s > 0.02
    finally:
        for one in both:
            one.kill()
            one.communicate()
