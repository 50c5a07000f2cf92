"""Load against a port of this machine: the load generator and an echo in C, and an echo in Python.

A `Shot` is one request frame with its expected response and the place of the opaque in each. Both frames keep their
length whatever the opaque (nine digits in JSON, four bytes in ROCKETMQ), so baseline and server move the same bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import NamedTuple

from nemesrv.remoting.node.network import Address
from tests.ran import ran

HERE = Path(__file__).parent


class BenchError(Exception):
    """The measurement failed, not what was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    name: str
    request: bytes
    """One frame, or `frames` of one length that are sent in turn."""
    frames: int = 1
    request_offset: int
    response: bytes
    response_offset: int
    text: bool
    """Whether the opaque is nine decimal digits; else four bytes."""
    response_text: bool
    """The same of the response: 5.3.3 answers a ROCKETMQ header with a JSON one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a load generator measured. Latencies are from the write of a request, or from when it was due in a load of
    so many per second, to the read of its response."""

    requests: int
    seconds: float
    per_s: float
    p50_us: int
    p99_us: int
    max_us: int
    bad: int
    """Responses with a byte that was not expected."""

    def checked(self, what: str) -> Load:
        """This. BenchError when an answer was wrong: then it has measured something else."""
        if self.bad:
            raise BenchError(f"{what}: {self.bad} of {self.requests} answers differ")
        return self


class Server(NamedTuple):
    """What is measured."""

    address: Address
    pid: int

    def cpu_s(self) -> float:
        """Seconds of CPU that the process has taken so far, in all its threads; to the hundredth."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> int:
        """Bytes of memory that the process has."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def compiler() -> str | None:
    """This machine's C compiler."""
    return next((found for name in ("cc", "gcc", "clang") if (found := which(name))), None)


def cpus() -> tuple[set[int] | None, set[int] | None]:
    """Where the server and where the load generator may run: two different cores, or None on a machine with one."""
    available = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return ({available[0]}, {available[-1]}) if len(available) > 1 else (None, None)


def _kind(text: bool) -> str:
    return "text" if text else "binary"


def pin(pid: int, where: set[int] | None) -> None:
    """Keep a process on its core; one that has threads elsewhere (a Ray actor) is moved as a whole."""
    if where is None:
        return
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), where)


@dataclass(frozen=True, slots=True)
class Tools:
    """The load generator and the echo in C, compiled into a folder."""

    folder: Path

    def load(self, port: int, shot: Shot, **how: float) -> Load:
        """Fire `shot` at a port of 127.0.0.1 (`loading`) until the end."""
        with self.loading(port, shot, **how) as ended:
            return ended()

    @contextlib.contextmanager
    def loading(
        self, port: int, shot: Shot, *, seconds: float, connections: int = 1, in_flight: int = 1, per_s: float = 0
    ) -> Iterator[Callable[[], Load]]:
        """As fast as answers come or `per_s` times a second, beside something else: what is given waits for the end.
        BenchError when the generator or the server gives up."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            request, response = Path(name) / "request.bin", Path(name) / "response.bin"
            request.write_bytes(shot.request)
            response.write_bytes(shot.response)
            numbers = [port, connections, in_flight, seconds, per_s]
            frames = [request, shot.frames, shot.request_offset, _kind(shot.text)]
            frames += [response, shot.response_offset, _kind(shot.response_text)]
            process = subprocess.Popen(
                [str(self.folder / "loadgen"), *map(str, numbers), *map(str, frames)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

            def ended() -> Load:
                try:
                    out, err = process.communicate(timeout=seconds + 60)
                except subprocess.TimeoutExpired as exc:
                    raise BenchError(f"the load generator did not end in {seconds + 60:g} s") from exc
                if process.returncode:
                    raise BenchError(f"the load generator failed: {err.strip()[-500:]}")
                return Load(**json.loads(out))

            try:
                pin(process.pid, cpus()[1])
                yield ended
            finally:
                if process.poll() is None:
                    process.kill()
                process.communicate()


def build(folder: Path) -> Tools:
    """Compile both programs into `folder`. BenchError when there is no compiler, or it fails."""
    if (cc := compiler()) is None:
        raise BenchError("the load generator needs a C compiler: cc, gcc or clang")
    for name in ("loadgen", "echo"):
        command = [cc, "-O2", "-o", str(folder / name), str(HERE / f"{name}.c")]
        done = ran(command)
        if done.returncode:
            raise BenchError(f"{' '.join(command)} failed:\n{done.stderr}")
    return Tools(folder)


@contextlib.contextmanager
def served_by(command: list[str]) -> Iterator[Server]:
    """Run a server that prints its port. It is killed at the end."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        pin(process.pid, cpus()[0])
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        if not line.isdigit():
            process.kill()
            raise BenchError(f"{command[0]} did not start: {process.communicate()[1].strip()[-500:]}")
        yield Server(Address("127.0.0.1", int(line)), process.pid)
    finally:
        process.kill()
        process.communicate()


def c_echo(tools: Tools, shot: Shot) -> AbstractContextManager[Server]:
    """The C baseline for one shot."""
    return _echo([str(tools.folder / "echo")], shot, tools.folder)


def uvloop_echo(shot: Shot, folder: Path) -> AbstractContextManager[Server]:
    """The Python baseline for one shot: a bare protocol on uvloop."""
    return _echo([sys.executable, "-P", str(HERE / "pyecho.py")], shot, folder)


def _echo(program: list[str], shot: Shot, folder: Path) -> AbstractContextManager[Server]:
    path = folder / "echo.bin"
    path.write_bytes(shot.response)
    numbers = [len(shot.request), shot.request_offset, path, shot.response_offset, _kind(shot.text)]
    return served_by([*program, *map(str, numbers)])
