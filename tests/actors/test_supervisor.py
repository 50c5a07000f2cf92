"""Whatever moment a signal comes at: the supervisor answers at once, and no descendant of the work outlives it."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nemesrv.actors.processes import FOLDER_PREFIX
from nemesrv.actors.supervisor import QUICK_S, Ended

from ..chaos.programs import processes_of

PROGRAM = """
import os, signal, subprocess, sys, time
from nemesrv.actors.supervisor import AtASignal, at_a_signal, supervise
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever was started by nohup ignores it
ended = supervise(lambda text: print(text, flush=True))
if ended is not None:
    sys.exit(ended.exit_status)
print("pid", os.getpid(), os.getppid(), flush=True)
def deaf():
    signal.signal(signal.SIGINT, lambda *_: None)
def orphan():
    # a grandchild in a session of its own whose parent has left
    script = "import subprocess, sys; subprocess.Popen(['sleep', '600'], start_new_session=True)"
    subprocess.run([sys.executable, "-c", script], check=True)
def wait():
    print("ready", flush=True)
    while True:
        time.sleep(600)
"""


class Supervised:
    """The program with some more lines, begun; its first lines read."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self._lines = process.stdout
        _, work, supervisor = self.read().split()
        assert int(supervisor) == process.pid
        self.work = int(work)

    def read(self) -> str:
        return self._lines.readline().strip()

    def ends(self) -> int:
        return self.process.wait(30)


@contextmanager
def started(mark: str, body: str, *, group: bool = False) -> Iterator[Supervised]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM + textwrap.dedent(body), mark],
        env={**os.environ, "NEMESRV_TEST_MARK": mark},
        stdout=subprocess.PIPE,
        text=True,
        process_group=0 if group else None,
    ) as process:
        try:
            yield Supervised(process)
        finally:  # else leaving the block waits for it
            process.kill()


@pytest.fixture
def mark(request: pytest.FixtureRequest) -> str:
    return f"nemesrv-test-{os.getpid()}-{request.node.name}"


def test_the_exit_status_is_the_works_own(mark: str):
    with started(mark, "sys.exit(3)") as command:
        assert command.ends() == 3


@pytest.mark.parametrize(("signum", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_stops_the_work_in_order_and_orphans_with_it(mark: str, signum: signal.Signals, status: int):
    body = """
    orphan()
    try:
        wait()
    except KeyboardInterrupt:
        print("cleaned up", flush=True)
        sys.exit(130)
    """
    with started(mark, body) as command:
        assert command.read() == "ready"
        command.process.send_signal(signum)
        assert command.read().startswith("stopping")
        assert command.read() == "cleaned up"
        assert command.ends() == status
        assert processes_of(mark) == []


def test_work_that_does_not_stop_is_ended_after_its_grace_with_all_it_started(mark: str):
    with started(mark, "deaf()\norphan()\nwait()") as command:
        assert command.read() == "ready"
        begin_s = time.monotonic()
        command.process.send_signal(signal.SIGTERM)
        assert command.read().startswith("stopping")
        assert time.monotonic() - begin_s < 1
        assert command.ends() == 143
        assert QUICK_S <= time.monotonic() - begin_s < QUICK_S + 5
        assert processes_of(mark) == []


def test_a_second_signal_ends_it_at_once_however_patient_it_is(mark: str):
    with started(mark, "deaf()\norphan()\nat_a_signal(AtASignal.CTRL_C_IS_ITS_END)\nwait()") as command:
        assert command.read() == "ready"
        command.process.send_signal(signal.SIGINT)
        assert command.read().startswith("stopping")
        command.process.send_signal(signal.SIGINT)  # `timeout` sends each twice: two at once are one
        with pytest.raises(subprocess.TimeoutExpired):
            command.process.wait(QUICK_S + 1)
        command.process.send_signal(signal.SIGINT)
        assert command.process.wait(5) == 130
        assert processes_of(mark) == []


def test_a_signal_to_the_whole_group_reaches_the_work_as_one_interrupt(mark: str):
    body = """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    print("ready", flush=True)
    first = signal.sigwait({signal.SIGINT, signal.SIGTERM})
    print(first.name, *(other.name for other in signal.sigpending()), flush=True)
    sys.exit(130)
    """
    with started(mark, body, group=True) as command:
        assert command.read() == "ready"
        os.killpg(command.process.pid, signal.SIGTERM)
        assert command.read().startswith("stopping")
        assert command.read() == "SIGINT"
        assert command.ends() == 143


def test_the_work_dies_with_a_supervisor_that_is_killed(mark: str):
    with started(mark, "wait()") as command:
        assert command.read() == "ready"
        command.process.kill()
        assert command.read() == ""  # the last that had the pipe open is gone
        assert processes_of(mark) == []


def test_the_folder_for_temporary_files_of_killed_work_is_removed(mark: str, tmp_path: Path):
    body = f"""
    import tempfile
    made = tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{{os.getpid()}}-", dir="/tmp")
    deaf()
    print(made, flush=True)
    wait()
    """
    with started(mark, body) as command:
        made = Path(command.read())
        assert made.exists()
        command.process.send_signal(signal.SIGINT)
        assert command.ends() == 130
        assert not made.exists()


def test_work_that_others_killed_is_a_harness_failure_and_never_a_verdict(mark: str):
    with started(mark, "orphan()\nwait()") as command:
        assert command.read() == "ready"
        os.kill(command.work, signal.SIGKILL)
        assert command.ends() == 4
        assert processes_of(mark) == []


def test_work_that_was_done_when_the_signal_came_keeps_its_verdict():
    assert Ended(status=1, asked=signal.SIGTERM).exit_status == 1
    assert Ended(status=130, asked=signal.SIGTERM).exit_status == 143
    assert Ended(killed_by=signal.SIGKILL, asked=signal.SIGINT).exit_status == 130
    assert Ended(killed_by=signal.SIGKILL).exit_status == 4
