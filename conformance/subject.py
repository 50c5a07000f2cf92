"""Runs one process of the program under test: gives it instructions, reads its output, and ends it with all of its
children.

    Instructions ── environment, placeholders ──► CMD in a process group of its own
                                                    ├─ stdout: lines of docs/conform-protocol.md ──► saw(Reported)
                                                    ├─ stdout and stderr: its log, the last lines kept
                                                    └─ stdin: JSON lines; its end tells the program to end
    stop: end of stdin and SIGTERM to the group, STOP_S later SIGKILL

The program need not know nemesrv. Output that is no JSON line of the protocol is only logged.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from ..actors.processes import Process, family
from ..chaos.errors import HarnessError, ScenarioError
from ..chaos.fronts.dials import DialWatch
from ..chaos.fronts.observed import Reported
from ..chaos.fronts.pipes import PipeLines
from ..remoting.node.network import Address
from ..remoting.node.tasks import cancel_all
from ..remoting.top_addressing import PATH
from .situations import Role

STOP_S = 5.0
"""Time for a clean end before it is killed and counted as hung."""
KILL_S = 5.0
SEND_EVERY_S = 0.2
LINE_MAX, LOG_MAX = 16 * 1024, 4 * 1024 * 1024
"""Limits for one line, and for one process's log; the rest is dropped."""
LAST_LINES = 6
_ENDS_IT = re.compile(rb"panic: |fatal error: |Exception in thread |Uncaught |Unhandled |thread '.*' .*panicked")
"""How runtimes begin the line that says why they end the program."""
_LOOKED_AT = 200
_TRACEBACK = b"Traceback (most recent call last):"
_IS_ERROR = re.compile(rb"\b(error|fatal|\w*(Error|Exception))\b|\b(ERROR|FATAL)\b")
LEGIBLE = 0.75
"""Least share of printable characters in a line of text."""
_NO_PROGRAM = frozenset((errno.ENOEXEC, errno.ENOENT, errno.EACCES, errno.ENOTDIR))
"""Errors of exec about the file, or the interpreter in its first line."""

WORDS = ("started", "send", "sent", "received")
PLACEHOLDERS = ("namesrv", "namesrv_file", "namesrv_http", "namesrv_domain", "topic", "group", "role")
_VARIABLES = {
    "NAMESRV_ADDR": "namesrv",
    "ROCKETMQ_NAMESRV_ADDR": "namesrv",
    "NEMESRV_NAMESRV_HTTP": "namesrv_http",
    "NEMESRV_TOPIC": "topic",
    "NEMESRV_GROUP": "group",
    "NEMESRV_ROLE": "role",
}
"""Environment variable to placeholder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """The instructions for a process: its NameServers, and what to do."""

    name_servers: tuple[Address, ...]
    address_server: Address | None = None
    """The address server, which serves the list by HTTP; the program then gets no `name_servers`."""
    topic: str
    group: str
    role: Role = Role.PRODUCER

    @property
    def list_text(self) -> str:
        return ";".join(map(str, self.name_servers))

    def values(self, file: Path) -> dict[str, str]:
        """Return the value of each placeholder in the program's arguments. `file` is the file with the NameServer list
        in one line."""
        domain = "" if self.address_server is None else str(self.address_server)
        return {
            "namesrv": "" if self.address_server else self.list_text,
            "namesrv_file": str(file),
            "namesrv_http": f"http://{domain}{PATH}" if domain else "",
            "namesrv_domain": domain,
            "topic": self.topic,
            "group": self.group,
            "role": str(self.role),
        }

    def environment(self) -> dict[str, str | None]:
        """Return the environment variables to set. A variable with the value None must be removed, because programs use
        the list by HTTP only if no other list is set."""
        told = self.values(Path())
        found = {name: told[place] or None for name, place in _VARIABLES.items()}
        if self.address_server is not None:
            java = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} -Drocketmq.namesrv.domain={self.address_server}"
            found["JAVA_TOOL_OPTIONS"] = java.strip()
        return found


_PLACE = re.compile("{(" + "|".join(PLACEHOLDERS) + ")}")


@dataclass(frozen=True, slots=True)
class Program:
    """The program under test: CMD and its ARGS as typed."""

    words: tuple[str, ...]

    def check(self) -> None:
        if not self.words or not self.words[0]:
            raise ScenarioError("conform", "CMD", "", "a program and its arguments after `--`")
        cmd = self.words[0]
        if shutil.which(cmd) is not None:
            return
        path = Path(cmd)
        if path.is_dir():
            why = "a program; this is a folder"
        elif path.is_file() and "/" in cmd:
            why = f"a program that may be executed; make it one with `chmod +x {cmd}`, or name its interpreter first"
        else:
            where = "" if "/" in cmd else " on PATH"
            raise ScenarioError("conform", "CMD", f"there is no such program{where}: {cmd}", "")
        raise ScenarioError("conform", "CMD", repr(cmd), why)

    @property
    def takes_list_by_argument(self) -> bool:
        """Whether the program's arguments contain the NameServer list, and not the address server's address."""
        text = " ".join(self.words)
        by_http = "{namesrv_http}" in text or "{namesrv_domain}" in text
        return not by_http and ("{namesrv}" in text or "{namesrv_file}" in text)

    def arguments(self, told: Instructions, file: Path) -> list[str]:
        """Return the arguments with placeholders filled in; other braces stay."""
        values = told.values(file)
        return [_PLACE.sub(lambda found: values[found[1]], word) for word in self.words]


class Subject:
    """One process of the program under test. Call `start`, then `ended` or `stop`; `saw` gets the process's reports."""

    def __init__(
        self,
        program: Program,
        told: Instructions,
        *,
        log: Path,
        saw: Callable[[Reported], None],
        now_ms: Callable[[], float],
        dials: DialWatch,
    ) -> None:
        """`dials` observes the process's connect() calls."""
        self._program, self._told, self._saw, self._now_ms = program, told, saw, now_ms
        self._dials = dials
        self._log_path = log
        self._list_path = log.with_suffix(".namesrv")
        self._process: subprocess.Popen[bytes] | None = None
        self._last: deque[bytes] = deque(maxlen=LAST_LINES)
        self._reason = _Reason()
        self._gone = asyncio.Event()
        self._outputs: list[PipeLines] = []
        self._asking: asyncio.TimerHandle | None = None
        self._asked = 0
        self._stopped: str | None = None
        self.began_ms = 0.0
        self.ended_ms: float | None = None

    @property
    def pid(self) -> int:
        """The pid of the process group's leader: CMD, or the process that observes CMD's connects."""
        assert self._process is not None, "it has not been started"
        return self._process.pid

    @property
    def process(self) -> int:
        return self._dials.process or self.pid

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines of the program's log, and the earlier line that says why the program ended."""
        reason, lines = self._reason.line, [_shown(line) for line in self._last]
        above = reason is not None and reason not in self._last
        return tuple([_shown(reason), "…", *lines] if reason is not None and above else lines)

    @property
    def is_running(self) -> bool:
        return self._process is not None and not self._gone.is_set()

    async def start(self) -> None:
        environment = dict(os.environ)
        for name, value in self._told.environment().items():
            environment.pop(name, None)
            if value is not None:
                environment[name] = value
        self._list_path.write_text(f"{self._told.list_text}\n", encoding="utf-8")
        arguments = self._program.arguments(self._told, self._list_path)
        self.began_ms = self._now_ms()
        try:
            self._run(arguments, environment)
        except OSError as exc:
            self._list_path.unlink()
            raise self._not_started(exc) from exc
        self._dials.watch()
        await self._dials.told()
        if self._dials.not_started is not None:
            await self.stop(kill=True)
            raise self._not_started(self._dials.not_started)

    def _not_started(self, exc: OSError) -> HarnessError:
        cmd, why = self._program.words[0], exc.strerror or str(exc)
        if exc.errno in _NO_PROGRAM:
            allowed = "a script needs a first line such as #!/bin/sh, or its interpreter as the first word"
            return ScenarioError("conform", "CMD", repr(cmd), f"a program that can be started ({why}); {allowed}")
        return HarnessError(f"{cmd} cannot be started: {why}")

    def _run(self, arguments: list[str], environment: dict[str, str]) -> None:
        self._process = process = subprocess.Popen(
            self._dials.command(arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            start_new_session=True,
            pass_fds=self._dials.pass_fds,
        )
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        log = _Log(self._log_path)
        self._outputs = [
            PipeLines(process.stdout, lambda line: self._line(line, log, speaks=True), longest=LINE_MAX),
            PipeLines(process.stderr, lambda line: self._line(line, log, speaks=False), longest=LINE_MAX),
        ]
        self._end = Process(process.pid)  # ours and not waited for, so the pid is its own
        asyncio.get_running_loop().add_reader(self._end.fd, self._has_ended)

    def _has_ended(self) -> None:
        assert self._process is not None
        if self._process.poll() is not None:
            asyncio.get_running_loop().remove_reader(self._end.fd)
            self._end.close()
            self.ended_ms = self._now_ms()
            self._gone.set()

    async def ended(self) -> str:
        """Wait for the end of the process and return how it ended: "exit 1", "signal 11", "stopped", "hung",
        "killed"."""
        await self._gone.wait()
        assert self._process is not None
        return self._stopped or how(self._process.returncode)

    async def stop(self, *, kill: bool = False) -> str:
        """End the process and its process group by SIGTERM; with `kill`, by SIGKILL. Returns how the process ended: by
        itself, "stopped", "killed", or "hung" if SIGTERM did not suffice."""
        if self._process is None:
            return "exit 127"
        daemons: list[Process] = []
        try:
            if not self._gone.is_set():
                self._stopped = "killed" if kill else "stopped"
                daemons = self._daemons()
                self._close_stdin()
                self._signal_group(signal.SIGKILL if kill else signal.SIGTERM)
                for daemon in daemons:
                    daemon.send(signal.SIGKILL if kill else signal.SIGTERM)
                await within(STOP_S, self._gone.wait())
                if not self._gone.is_set():
                    self._stopped = "hung"
        finally:
            self._signal_group(signal.SIGKILL)  # also what it has left behind
            for daemon in daemons:
                daemon.send(signal.SIGKILL)
                daemon.close()
        await within(KILL_S, self._gone.wait())
        if not self._gone.is_set():  # it waits for a disk
            raise HarnessError(f"{self._program.words[0]} (pid {self.pid}) does not end after SIGKILL")
        await within(KILL_S, self._dials.ended())  # what it dialled last is still on its way
        self._dials.close()
        for output in self._outputs:
            output.drain()
        if self._asking is not None:
            self._asking.cancel()
        self._close_stdin()
        self._list_path.unlink(missing_ok=True)
        return await self.ended()

    def tell(self, **line: Any) -> None:
        """Write a JSON line to the program's stdin, without waiting for a program that does not read."""
        stdin = None if self._process is None else self._process.stdin
        if stdin is not None and not stdin.closed:
            with suppress(OSError):
                stdin.write(json.dumps(line).encode() + b"\n")

    def _close_stdin(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()

    def _daemons(self) -> list[Process]:
        found = []
        for process in family(self.pid, lambda _: True):
            with suppress(ProcessLookupError):
                if os.getpgid(process.pid) != self.pid:
                    found.append(process)
                    continue
            process.close()
        return found

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _line(self, line: bytes, log: _Log, *, speaks: bool) -> None:
        at_ms = self._now_ms()
        log.write(at_ms - self.began_ms, line)
        said = parse(line) if speaks else None
        if said is None:
            self._reason.read(line)
            if line := line.strip():
                self._last.append(line)  # made readable when it is asked for: a program may write 100 MB of lines
            return
        word = said.pop("f")
        self._saw(Reported(at_ms=at_ms, f=word, value=said))
        hears = said.get("hears")
        if word == "started" and isinstance(hears, list) and "send" in hears and self._asking is None:
            self._ask_to_send()

    def _ask_to_send(self) -> None:
        self.tell(f="send", id=f"{self.pid}-{self._asked}")
        self._asked += 1
        self._asking = asyncio.get_running_loop().call_later(SEND_EVERY_S, self._ask_to_send)


async def within(limit_s: float, *works: Awaitable[object]) -> None:
    """Wait at most `limit_s` until one of `works` is done, and cancel the others."""
    tasks = [asyncio.ensure_future(each) for each in works]
    try:
        await asyncio.wait(tasks, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_all(tasks)


class _Reason:
    """Finds the line of a program's output that says why the program ends. The reason is the last line of a runtime's
    error or traceback; else the first line that looks like an error."""

    def __init__(self) -> None:
        self._ends: bytes | None = None
        self._first: bytes | None = None
        self._in_traceback = False

    @property
    def line(self) -> bytes | None:
        return self._ends or self._first

    def read(self, line: bytes) -> None:
        """Read the program's next line of output, and keep the line if it says why the program ends."""
        text = line.strip()
        if text == _TRACEBACK:
            self._in_traceback = True
        elif self._in_traceback and text and not line[:1].isspace():
            self._in_traceback, self._ends = False, text
        elif _ENDS_IT.match(text):
            self._ends = text
        elif self._first is None and _IS_ERROR.search(text, 0, _LOOKED_AT):
            self._first = text


class _Log:
    """The output of one process, each line with the milliseconds since its start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = LOG_MAX
        path.write_bytes(b"")

    def write(self, after_ms: float, line: bytes) -> None:
        if self._left <= 0:
            return
        text = b"%9.0f %s\n" % (after_ms, line)
        self._left -= len(text)
        with self._path.open("ab") as file:
            file.write(text if self._left > 0 else b"(what came after this is not kept)\n")


def parse(line: bytes) -> dict[str, Any] | None:
    """Return the object in a JSON line of the protocol; None for any other line."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) and said.get("f") in WORDS else None


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace")[:200]
    legible = sum(char.isprintable() and char != "\N{REPLACEMENT CHARACTER}" for char in text)
    if legible < LEGIBLE * len(text):
        return "(bytes that are no text)"
    return "".join(char if char.isprintable() else "·" for char in text)


def how(code: int) -> str:
    """Return how a process ended by itself: "exit 1", "signal 11"."""
    return f"signal {-code}" if code < 0 else f"exit {code}"


def told_of(lines: Sequence[str]) -> str:
    """Return a clause about the process's output: `; its last output: a | b` (repeated lines once), or `; it wrote
    nothing`."""
    return f"; its last output: {' | '.join(line for line, _ in groupby(lines))}" if lines else "; it wrote nothing"
