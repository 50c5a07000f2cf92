"""A program's clocks go as the run's by libfaketime, and nothing of it stays on the machine."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nemesrv.chaos.apache import libfaketime
from nemesrv.chaos.apache.libfaketime import SHARED, FakedTime
from nemesrv.chaos.errors import HarnessError
from nemesrv.remoting.node.clock import RealClock
from tests.ran import ran

needed = pytest.mark.skipif(
    libfaketime.found() is None, reason="libfaketime is not installed (apt-get install faketime)"
)

WAITS = """
import java.nio.channels.Selector;
import java.util.concurrent.*;
import java.util.concurrent.locks.LockSupport;

public class Waits {
    public static void main(String[] arguments) throws Exception {
        Selector selector = Selector.open();
        Object monitor = new Object();
        ScheduledExecutorService scheduled = Executors.newScheduledThreadPool(1);
        Callable<?>[] waits = {
            () -> { Thread.sleep(2000); return 0; },
            () -> { synchronized (monitor) { monitor.wait(2000); } return 0; },
            () -> { LockSupport.parkNanos(2_000_000_000L); return 0; },
            () -> selector.select(2000),
            () -> scheduled.schedule(() -> 0, 2, TimeUnit.SECONDS).get(),
        };
        for (Callable<?> each : waits) {
            long nanos = System.nanoTime(), millis = System.currentTimeMillis();
            each.call();
            System.out.println((System.nanoTime() - nanos) / 1_000_000 + " " + (System.currentTimeMillis() - millis));
        }
        System.out.println(System.currentTimeMillis());
        System.exit(0);
    }
}
"""


def _left() -> set[str]:
    return {path.name for path in SHARED.iterdir() if f"nemesrv-{os.getpid()}-" in path.name}


@needed
def test_a_programs_clocks_are_the_runs_whenever_it_starts() -> None:
    began = RealClock.starting_now(scale=10)
    clock = RealClock(
        scale=10, origin_monotonic_ns=began.origin_monotonic_ns - 3_000_000_000, origin_wall_ms=1_700_000_000_123
    )
    for _ in range(2):
        faked = FakedTime(clock, "clock")
        try:
            before = clock.now_ms()
            asked = "import time; print(time.time_ns() / 1e6, time.monotonic_ns() / 1e6)"
            environment = {**os.environ, **faked.environment}
            out = ran([sys.executable, "-c", asked], env=environment, check=True)
            after = clock.now_ms()
        finally:
            faked.forget()
        wall, monotonic = map(float, out.stdout.split())
        assert before - 5 <= wall <= after + 5
        assert before - 5 <= monotonic <= after + 5


def test_only_what_a_gone_node_left_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libfaketime, "SHARED", tmp_path)
    ended = subprocess.Popen(["true"])
    ended.wait()
    names = [f"{semaphore}nemesrv-{pid}-ns-0-0" for pid in (ended.pid, os.getpid()) for semaphore in ("", "sem.")]
    for name in (*names, "sem.mp-51655aq8", "nemesrv-others"):
        (tmp_path / name).touch()
    libfaketime.sweep()
    assert {path.name for path in tmp_path.iterdir()} == {*names[2:], "sem.mp-51655aq8", "nemesrv-others"}


@needed
def test_a_program_waits_by_the_runs_clock_and_leaves_nothing_when_it_is_killed() -> None:
    faked = FakedTime(RealClock.starting_now(scale=10), "waits")
    began = time.monotonic()
    command = [sys.executable, "-c", "import time; time.sleep(20); print('awake', flush=True); time.sleep(10000)"]
    with subprocess.Popen(
        command, env={**os.environ, **faked.environment}, stdout=subprocess.PIPE, text=True
    ) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == "awake\n"
            assert 1.9 <= time.monotonic() - began < 15
            faked.forget()
        finally:
            program.kill()
    assert _left() == set()


def test_at_the_machines_own_pace_nothing_is_preloaded() -> None:
    clock = RealClock.starting_now()
    assert FakedTime(clock, "own").environment == {}
    assert libfaketime.wrong(clock) is None


@needed
def test_where_the_clock_is_as_it_should_be_nothing_is_wrong() -> None:
    assert libfaketime.wrong(RealClock.starting_now(scale=10)) is None
    assert _left() == set()


@needed
def test_a_library_that_keeps_another_time_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "other.so"
    other.write_bytes(b"no library")
    monkeypatch.setenv(libfaketime.VARIABLE, str(other))
    told = libfaketime.wrong(_late())
    assert told is not None
    assert f"under {other} a program's clock does not go as the run's" in told
    assert told.endswith("allowed: time_scale 1, or libfaketime 0.9.7 or newer")


def _late() -> RealClock:
    """Of a run that began a minute ago: the machine's own clock is not its."""
    now = RealClock.starting_now(scale=10)
    return RealClock(
        scale=10, origin_monotonic_ns=now.origin_monotonic_ns - 60_000_000_000, origin_wall_ms=now.origin_wall_ms
    )


def test_without_libfaketime_one_sentence_says_what_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(libfaketime.VARIABLE, "/nowhere/libfaketimeMT.so.1")
    clock = RealClock.starting_now(scale=10)
    sentence = (
        "timers.time_scale: 10: Apache's programs go at another pace than the machine's by libfaketime only, and "
        "NEMESRV_FAKETIME names /nowhere/libfaketimeMT.so.1, which is no file; allowed: time_scale 1, or install it "
        "(Debian: apt-get install faketime)"
    )
    assert libfaketime.wrong(clock) == sentence
    with pytest.raises(HarnessError) as caught:
        FakedTime(clock, "none")
    assert str(caught.value) == sentence


@needed
@pytest.mark.java
def test_every_kind_of_wait_of_a_jvm_goes_by_the_runs_clock(tmp_path: Path) -> None:
    source = tmp_path / "Waits.java"
    source.write_text(WAITS)
    clock = RealClock.starting_now(scale=10)
    faked = FakedTime(clock, "jvm")
    try:
        command = ["java", "-XX:TieredStopAtLevel=1", str(source)]
        out = ran(command, env={**os.environ, **faked.environment}, check=True, timeout=120)
        ended = clock.now_ms()
    finally:
        faked.forget()
    *waits, shown = out.stdout.splitlines()
    assert len(waits) == 5
    for line in waits:
        nanos, millis = map(int, line.split())
        assert 1990 <= nanos < 12_000
        assert abs(nanos - millis) < 500
    assert clock.origin_wall_ms + 10_000 <= int(shown) <= ended + 5
