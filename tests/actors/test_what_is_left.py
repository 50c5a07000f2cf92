"""What a harness of its own process leaves behind when it ends, or is killed: nothing."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import tenacity

from nemesrv.actors.processes import Process, family, sweep

pytestmark = pytest.mark.ray

DRIVER = textwrap.dedent(
    """
    import sys
    from functools import partial
    from nemesrv.actors.actor import NodeSpec
    from nemesrv.actors.cluster import Cluster
    from nemesrv.actors.ray_host import RayHost
    from nemesrv.chaos.faults.ports import PortHolder
    from nemesrv.remoting.node.clock import RealClock
    from tests.actors.nodes import TinyNode
    ports, clock = PortHolder(), RealClock.starting_now()
    with RayHost(workers=2) as host, Cluster(clock) as cluster:
        cluster.listen(
            NodeSpec(name=name, role="broker", clock=clock, factory=partial(TinyNode, listen=ports.take()))
            for name in ("a", "b", "c")
        )
        cluster.start()
        pids = [cluster.pid(name) for name in cluster.names]
        cluster.pause("b")
        cluster.kill("c")
        cluster.restart("c")
        print(host._folder, *pids, cluster.pid("c"), flush=True)
        sys.stdin.readline()
    """
)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A harness of its own in an empty folder, with three nodes up, one of them paused and one killed and restarted."""
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


@pytest.mark.nightly("test_nothing_survives_a_harness_that_is_killed")
def test_a_harness_prints_nothing_of_rays_and_leaves_nothing(driver: subprocess.Popen[str]):
    assert driver.stdout is not None
    folder, *pids = driver.stdout.readline().split()
    ours = [Process(int(pid)) for pid in pids if Path("/proc", pid).exists()]
    assert len(ours) == 3
    everything = family(driver.pid, lambda _: True)
    assert len(everything) > 5
    out, err = driver.communicate("go\n", timeout=60)
    assert (out, err, driver.returncode) == ("", "", 0)
    assert all(process.gone() for process in [*ours, *everything])
    assert not Path(folder).exists()


def test_nothing_survives_a_harness_that_is_killed(driver: subprocess.Popen[str]):
    assert driver.stdout is not None
    folder, *pids = driver.stdout.readline().split()
    ours = [Process(int(pid)) for pid in pids if Path("/proc", pid).exists()]
    everything = family(driver.pid, lambda _: True)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert all(process.gone(1) for process in ours)
    assert all(process.gone(10) for process in everything)
    for attempt in tenacity.Retrying(stop=tenacity.stop_after_delay(10), wait=tenacity.wait_fixed(0.05), reraise=True):
        with attempt:
            assert not Path(folder).exists()


@pytest.mark.nightly("test_nothing_survives_a_harness_that_is_killed")
@pytest.mark.parametrize("processes", [1, 3, 5])
def test_nothing_survives_a_harness_that_is_killed_while_it_starts(driver: subprocess.Popen[str], processes: int):
    everything: list[Process] = []
    for attempt in tenacity.Retrying(stop=tenacity.stop_after_delay(60), wait=tenacity.wait_fixed(0.02), reraise=True):
        with attempt:
            everything = family(driver.pid, lambda _: True)
            assert len(everything) >= processes
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert all(process.gone(10) for process in everything)


def test_what_a_harness_left_behind_is_swept_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = subprocess.Popen(["true"])
    ended.wait()
    left, used = tmp_path / f"nsv-{ended.pid}-x", tmp_path / f"nsv-{os.getpid()}-x"
    left.mkdir()
    used.mkdir()
    sweep()
    assert (left.exists(), used.exists()) == (False, True)


HALF_GONE = textwrap.dedent(
    """
    import ctypes, os, subprocess, sys, threading, time
    from pathlib import Path
    from nemesrv.actors.processes import Reaper
    folder = Path(sys.argv[1])
    Reaper(folder)
    left = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)", str(folder)])
    print(left.pid, flush=True)
    threading.Thread(target=time.sleep, args=(60,)).start()
    ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)  # exit of this thread alone
    """
)


def test_what_is_left_is_ended_though_a_thread_of_the_harness_has_not_died_yet(tmp_path: Path):
    folder = tmp_path / "nsv-left"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HALF_GONE, str(folder)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        left = Process(int(process.stdout.readline()))
        assert left.gone(10)
        assert Path(f"/proc/{process.pid}/task").exists(), "its other thread is still there"
        process.kill()
