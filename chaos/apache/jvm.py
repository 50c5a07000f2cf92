"""Runs a Java program as a child of this process: flags, folders, its output, and how it ended. asyncio, Linux only.

our event loop ── Popen ──► JVM          it dies with the thread that started it (PR_SET_PDEATHSIG), however that ends
   ▲  ├── stdin, lines ───►  │
   │  └── stdout, lines ◄────┤           each to `said`, and to the file with stderr, whose last line is shown
   └───── pidfd ◄────────────┘           if something goes wrong
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...remoting.node.network import Address, TcpNetwork
from ...remoting.node.node import NodeContext
from ...remoting.node.recording import recorded_at
from ..errors import HarnessError
from ..fronts.dials import DialWatch
from ..fronts.pipes import PipeLines
from ..fronts.process_lag import keep_measuring
from ..fronts.rows import TimedRow
from ..history.recorder import BUFFER_S
from . import bypass

JAVA_FLAGS = (
    "-Xms64m",
    "-Xmx320m",
    "-XX:MaxDirectMemorySize=128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",  # 4.9 unmaps files with it, and else cannot recover a store
)
"""Small heaps: three NameServers and three brokers take 750 MiB. No file in the temporary folder, which a killed JVM
would leave there."""
LAST_LINES = 8_000
LAST_WORDS = "java-died"
"""File in a node's data folder that says how its Java program ended by itself."""
_PDEATHSIG = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if sys.argv[1] and os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Runs its further arguments as a program that dies with its parent. The first argument is the parent's pid, if
known."""


class JavaDied(HarnessError):
    """A Java program did not start, or ended by itself. The text contains the program's last line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaCommand:
    """The command that starts a Java program. `home`: ROCKETMQ_HOME and working folder; `user_home`: RocketMQ 5.x
    writes its logs below this folder."""

    class_path: str
    main: str
    arguments: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to this process's environment: NAMESRV_ADDR, the rate of time, …"""
    home: Path
    user_home: Path

    def words(self) -> list[str]:
        defines = {"user.home": str(self.user_home), "rocketmq.home.dir": str(self.home)}
        defines |= {"java.io.tmpdir": str(self.temporary), **self.properties}
        flags = [*JAVA_FLAGS, f"-XX:ErrorFile={self.user_home}/hs_err_%p.log"]
        flags += [f"-D{key}={value}" for key, value in defines.items()]
        return ["java", *flags, "-cp", self.class_path, self.main, *self.arguments]

    @property
    def temporary(self) -> Path:
        """Folder for the program's temporary files, removed when the program ends, because Netty leaves its key pairs
        there."""
        return self.user_home / "tmp"

    def environ(self) -> dict[str, str]:
        ours = {key: value for key, value in os.environ.items() if key != "NAMESRV_ADDR"}
        return {**ours, "ROCKETMQ_HOME": str(self.home), **self.environment}


class JavaProgram:
    """One Java process. Call all methods in the event loop that called `start`. `said` is called with each line of
    stdout. `ended` is called with the exit code (as in subprocess) if the Java process ends by itself."""

    def __init__(
        self,
        name: str,
        command: JavaCommand,
        output: Path,
        *,
        said: Callable[[bytes], None] | None = None,
        ended: Callable[[int], None] | None = None,
        dials: DialWatch | None = None,
    ) -> None:
        """`dials` sees the program's connect() calls from a process in between; with None no process sees these
        calls."""
        self.name, self._command, self._output, self._dials = name, command, output, dials
        self._said, self._ended = said, ended
        self._process: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self._file = -1
        self._over: asyncio.Future[int] | None = None
        self._asked = False

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    @property
    def children(self) -> tuple[int, ...]:
        """The process ids of the running program and of the tracer that observes its connection attempts."""
        if self._process is None or self.exit_code is not None:
            return ()
        java = None if self._dials is None else self._dials.process
        return (self._process.pid,) if java is None else (java, self._process.pid)

    @property
    def exit_code(self) -> int | None:
        return self._over.result() if self._over is not None and self._over.done() else None

    def start(self) -> None:
        """Start the Java program. Raises JavaDied if no java is found."""
        loop = asyncio.get_running_loop()
        for folder in (self._command.home, self._command.temporary, self._output.parent):
            folder.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self._output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._over = loop.create_future()
        launcher = [sys.executable, "-I", "-S", "-c", _PDEATHSIG]
        words = self._command.words()
        if self._dials is not None:
            words = self._dials.command([*launcher, "", *words])
        try:
            self._process = subprocess.Popen(
                [*launcher, str(os.getpid()), *words],
                cwd=self._command.home,
                env=self._command.environ(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._file,
                pass_fds=() if self._dials is None else self._dials.pass_fds,
            )
            self._pidfd = os.pidfd_open(self._process.pid)
        except OSError as exc:
            raise JavaDied(f"{self.name} could not be started: {exc}") from exc
        if self._dials is not None:
            self._dials.watch()
        self._lines = PipeLines(self._process.stdout, self._heard)
        loop.add_reader(self._pidfd, self._gone)

    def write(self, line: bytes) -> None:
        """Write one line to the program's stdin. Raises BrokenPipeError if the program has ended."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(line.rstrip(b"\n") + b"\n")
        self._process.stdin.flush()

    async def within(self, wanted: asyncio.Future[None], limit_s: float, else_: str) -> None:
        """Wait until `wanted` is done. Raises JavaDied if the program ends first, or the time limit passes."""
        assert self._over is not None
        both: list[asyncio.Future[Any]] = [wanted, self._over]
        await asyncio.wait(both, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        if wanted.done():
            return
        if self._over.done():
            raise JavaDied(self.death())
        raise JavaDied(f"{self.name} {else_} within {limit_s:g} s; {self.last_line()}")

    def death(self) -> str:
        code = self.exit_code
        how = f"with exit status {code}" if code is None or code >= 0 else f"by {signal.Signals(-code).name}"
        return f"{self.name}'s Java process ended {how}; {self.last_line()}"

    def last_line(self) -> str:
        """The last line that the program wrote; after an exception, the line that names the exception."""
        try:
            with self._output.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_LINES))
                lines = file.read().decode(errors="replace").splitlines()
        except OSError:
            lines = []
        said = telling(lines)
        return f"its last line: {said}" if said else "it wrote nothing"

    async def terminate(self, limit_s: float) -> int:
        """Send SIGTERM, so that the program's hooks run, and SIGKILL after the time limit. Returns the exit code."""
        self._asked = True
        return await self._end(signal.SIGTERM, limit_s)

    async def kill(self) -> int:
        self._asked = True
        return await self._end(signal.SIGKILL, 5.0)

    async def _end(self, signum: signal.Signals, limit_s: float) -> int:
        if self._over is None or self._process is None:
            return 0
        if not self._over.done():
            self._send(signum)
            await asyncio.wait([self._over], timeout=limit_s)
        if not self._over.done():
            self._send(signal.SIGKILL)
            await asyncio.wait([self._over], timeout=limit_s)
        return self._over.result() if self._over.done() else -signal.SIGKILL

    def _send(self, signum: signal.Signals) -> None:
        with contextlib.suppress(OSError):
            if self._dials is not None and self._dials.process is not None:
                os.kill(self._dials.process, signum)  # who looks at its dials is its parent, and ends as it does
            else:
                signal.pidfd_send_signal(self._pidfd, signum)

    def _heard(self, line: bytes) -> None:
        os.write(self._file, line + b"\n")
        if self._said is not None:
            self._said(line)

    def _gone(self) -> None:
        """Read the ended program's remaining output, then report its end."""
        assert self._process is not None
        assert self._over is not None
        asyncio.get_running_loop().remove_reader(self._pidfd)
        self._lines.drain()
        code = self._process.wait()
        for fd in (self._pidfd, self._file):
            os.close(fd)
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        shutil.rmtree(self._command.temporary, ignore_errors=True)
        self._over.set_result(code)
        if not self._asked and self._ended is not None:
            self._ended(code)


class JavaNode:
    """A node that runs one of Apache's programs. The JVM is a child of the node's process, and the node ends when the
    JVM ends."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._java: JavaProgram | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        """What looks at the JVM, once that is at work."""

    @property
    def children(self) -> tuple[int, ...]:
        return () if self._java is None else self._java.children

    def _now_ms(self) -> float:
        return self._context.clock.monotonic_s() * 1000.0

    def _put(self, row: TimedRow) -> None:
        recorded_at(self._context.record, row.at_ms, row.event, row.fields)

    def _ended(self, code: int) -> None:
        """End the node in the same way as its JVM, which ended by itself, after its last rows."""
        assert self._java is not None
        self._context.log.error("%s", self._java.death())
        if self._tasks:
            if self._context.data_dir is not None:
                leave_last_words(self._context.data_dir, self._java.death())
            asyncio.get_running_loop().call_later(2.5 * BUFFER_S, end_as, code)

    async def _measure_lag(self) -> None:
        record = self._context.record
        await keep_measuring(lambda: self.children, self._context.clock, lambda _, row: record("timer_lag", **row))

    async def _look_round(self, fronts: Collection[Address]) -> None:
        """Look for the JVM's connections that avoid these fronts, until cancelled."""
        assert self._context.data_dir is not None
        await bypass.keep_looking(lambda: self.children, fronts, self._context.data_dir, self._context.log)


def dialled_at(context: NodeContext) -> Callable[[Address], Address | None]:
    """Return how the node finds where to connect for a server's advertised address: by its links, if it has any."""
    network = context.network
    return network.dialled_at if isinstance(network, TcpNetwork) else lambda told: told


def leave_last_words(folder: Path, death: str) -> None:
    """Write into a file how a Java program ended by itself; `last_words` reads the file."""
    with contextlib.suppress(OSError):
        (folder / LAST_WORDS).write_text(death, encoding="utf-8")


def last_words(data: Path) -> str:
    """Return how Java programs of the run ended by themselves, as text for a message; "" if none did. `data` is the
    run's folder with one folder per node."""
    return "".join(f"; {file.read_text(encoding='utf-8')}" for file in sorted(data.glob(f"*/{LAST_WORDS}")))


def end_as(code: int) -> None:
    """End this process as its JVM ended: by the same signal, or with the JVM's exit status, but 1 instead of 0."""
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code or 1)


def telling(lines: Sequence[str]) -> str:
    """Return the last informative line of a program's output; of a stack trace, the line that names the exception."""
    said = [line.strip() for line in lines if line.strip()]
    frames = ("at ", "... ")
    while said and said[-1].startswith(frames):
        said.pop()
    return said[-1][:400] if said else ""
