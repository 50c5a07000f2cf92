"""Running the installed `nemesrv` command in tests, finding what it left behind, and ending it whatever happens."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import tenacity

from tests.ran import ran

NEMESRV = (sys.executable, "-m", "nemesrv.chaos")
MARK = "NEMESRV_TEST_MARK"
"""A variable that all processes of a command inherit."""
LEFT_LIMIT_S = 15.0
KILL_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Running:
    """A command of ours that may still run, and the mark of all its processes."""

    process: subprocess.Popen[str]
    mark: str

    @property
    def stdout(self) -> Iterator[str]:
        """Its lines, as they come."""
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def stderr(self) -> Iterator[str]:
        """As stdout."""
        assert self.process.stderr is not None
        return self.process.stderr

    def until(self, met: Callable[[], bool], *, within_s: float = 180) -> None:
        """Return when the condition is met; AssertionError when the command ends before."""

        def look() -> bool:
            ended = self.process.poll() is not None
            if met():
                return True
            assert not ended, f"the command has ended with status {self.process.returncode}"
            return False

        tenacity.Retrying(
            retry=tenacity.retry_if_result(lambda yes: not yes),
            stop=tenacity.stop_after_delay(within_s),
            wait=tenacity.wait_fixed(0.05),
        )(look)

    def end(self, signum: signal.Signals | None = None, *, within_s: float = 120) -> str:
        """What it has said on stderr, once it has ended. TimeoutExpired when it has not within that time."""
        if signum is not None:
            self.process.send_signal(signum)
        return self.process.communicate(timeout=within_s)[1]

    def left(self) -> list[str]:
        """What still runs of the command, once that has had time to end."""
        return left_of(self.mark)


@contextmanager
def running(*args: str, cwd: Path, env: Mapping[str, str] | None = None) -> Iterator[Running]:
    """`nemesrv` with these arguments for as long as the block; after it no process of it is left, however that ends."""
    mark = f"nemesrv-test-{uuid.uuid4().hex}"
    with subprocess.Popen(
        [*NEMESRV, *args],
        cwd=cwd,
        env={**os.environ, **(env or {}), MARK: mark},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Running(process, mark)
        except BaseException as exc:
            kill(mark)
            with suppress(ValueError):  # it has been read
                exc.add_note(f"stderr of the command:\n{process.communicate()[1]}")
            raise
        finally:
            kill(mark)


def nemesrv(
    *args: str, cwd: Path, env: Mapping[str, str] | None = None, timeout_s: float = 180
) -> subprocess.CompletedProcess[str]:
    """The finished command, its output as text. Nothing of one that takes longer is left."""
    marked = {MARK: f"nemesrv-test-{uuid.uuid4().hex}", **(env or {})}
    try:
        return ran([*NEMESRV, *args], cwd=cwd, env={**os.environ, **marked}, timeout=timeout_s)
    except BaseException:
        kill(marked[MARK])
        raise


@tenacity.retry(
    retry=tenacity.retry_if_result(bool),
    stop=tenacity.stop_after_delay(LEFT_LIMIT_S),
    wait=tenacity.wait_fixed(0.2),
    retry_error_callback=lambda state: state.outcome and state.outcome.result(),
)
def left_of(mark: str) -> list[str]:
    """What still runs of the command that had `mark` in its environment, once it has had time to end."""
    return processes_of(mark)


def kill(mark: str) -> None:
    """End every process with the mark."""
    limit_s = time.monotonic() + KILL_LIMIT_S
    while (left := processes_of(mark)) and time.monotonic() < limit_s:
        for line in left:
            with suppress(ProcessLookupError):
                os.kill(int(line.split()[0]), signal.SIGKILL)


def processes_of(mark: str) -> list[str]:
    """`pid command` of every process, but ours, that has `mark` in its environment or command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        if folder.name == str(os.getpid()):
            continue
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if command and (mark.encode() in environment or mark in command):
            found.append(f"{folder.name} {command[:200]}")
    return found
