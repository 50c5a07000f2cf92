"""Load against a port of this machine: the C load generator and C echo where there is a compiler, else Python's.

A `Shot` is one request frame with its expected response and the place of the opaque in each. Both frames keep their
length whatever the opaque (nine digits in JSON, four bytes in ROCKETMQ), so baseline and server move the same bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import which

HERE = Path(__file__).parent
DIGITS = 9


class BenchError(Exception):
    """The measurement failed, not what was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    name: str
    request: bytes
    request_offset: int
    response: bytes
    response_offset: int
    text: bool
    """Whether the opaque is nine decimal digits; else four bytes."""

    @property
    def width(self) -> int:
        return DIGITS if self.text else 4

    @property
    def kind(self) -> str:
        return "text" if self.text else "binary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a load generator measured. Latencies are from the write of a request to the read of its response."""

    requests: int
    seconds: float
    per_s: float
    p50_us: int
    p99_us: int
    bad: int
    """Responses with a byte that was not expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The compiled programs; None where there is no C compiler and Python stands in."""

    loadgen: Path | None
    echo: Path | None

    @property
    def compiled(self) -> bool:
        return self.loadgen is not None


def build(folder: Path) -> Tools:
    """Compile both programs into `folder`. BenchError when there is a compiler and it fails."""
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := which(name))), None)
    if compiler is None:
        return Tools(loadgen=None, echo=None)
    for name in ("loadgen", "echo"):
        command = [compiler, "-O2", "-o", str(folder / name), str(HERE / f"{name}.c")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchError(f"{' '.join(command)} failed:\n{done.stderr}")
    return Tools(loadgen=folder / "loadgen", echo=folder / "echo")


def cpus() -> tuple[set[int] | None, set[int] | None]:
    """Where the server and where the load generator may run: two different cores, or None on a machine with one."""
    available = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return ({available[0]}, {available[-1]}) if len(available) > 1 else (None, None)


def pin(pid: int, where: set[int] | None) -> None:
    """Keep a process on its core; one that has threads elsewhere (a Ray actor) is moved as a whole."""
    if where is None:
        return
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), where)


def load(
    tools: Tools, port: int, shot: Shot, folder: Path, *, seconds: float, connections: int, in_flight: int
) -> Load:
    """Fire `shot` at a port of 127.0.0.1. BenchError when the generator or the server gives up."""
    request, response = folder / "request.bin", folder / "response.bin"
    request.write_bytes(shot.request)
    response.write_bytes(shot.response)
    program = [str(tools.loadgen)] if tools.loadgen else [sys.executable, "-P", str(HERE / "pyload.py")]
    numbers = [port, connections, in_flight, seconds]
    offsets = [request, shot.request_offset, response, shot.response_offset, shot.kind]
    process = subprocess.Popen(
        [*program, *map(str, numbers), *map(str, offsets)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    pin(process.pid, cpus()[1])
    try:
        out, err = process.communicate(timeout=seconds + 60)
    except BaseException as exc:
        process.kill()
        process.wait()
        if isinstance(exc, subprocess.TimeoutExpired):
            raise BenchError(f"the load generator did not end in {seconds + 60:g} s") from exc
        raise
    if process.returncode:
        raise BenchError(f"the load generator failed: {err.strip()[-500:]}")
    return Load(**json.loads(out))


@contextlib.contextmanager
def served_by(command: list[str]) -> Iterator[int]:
    """Run a server that prints its port; the port. It is killed at the end."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        pin(process.pid, cpus()[0])
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        if not line.isdigit():
            process.kill()
            raise BenchError(f"{command[0]} did not start: {process.communicate()[1].strip()[-500:]}")
        yield int(line)
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def c_echo(tools: Tools, shot: Shot, folder: Path) -> Iterator[int]:
    """The C baseline for one shot; its port."""
    path = folder / "echo.bin"
    path.write_bytes(shot.response)
    numbers = [len(shot.request), shot.request_offset, path, shot.response_offset, shot.kind]
    with served_by([str(tools.echo), *map(str, numbers)]) as port:
        yield port


@contextlib.contextmanager
def uvloop_echo(shot: Shot, folder: Path) -> Iterator[int]:
    """The Python baseline for one shot: a bare protocol on uvloop; its port."""
    path = folder / "echo.bin"
    path.write_bytes(shot.response)
    numbers = [len(shot.request), shot.request_offset, path, shot.response_offset, shot.kind]
    with served_by([sys.executable, "-P", str(HERE / "pyecho.py"), *map(str, numbers)]) as port:
        yield port
