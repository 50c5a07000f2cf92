"""The processes of these tests: ours by their command line, Apache's in JVMs with small heaps and their own folders.

Every process speaks lines on stdout, keeps stderr in a file, and is gone when its `with` block ends.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from nemesrv.chaos.apache import properties as properties_of
from nemesrv.chaos.apache.jvm import JAVA_FLAGS
from nemesrv.chaos.apache.properties import write, write_logback

from ..free_port import free_port
from .jars import Jars, class_path

START_TIMEOUT_S = 60.0
_DIE_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--") if shutil.which("setpriv") else ()
"""Even a killed test run leaves no server behind."""


class Program:
    """One process. `lines` is what it has printed so far."""

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, env: Mapping[str, str | None] | None = None
    ) -> None:
        """`env` is set over this process's environment; None takes a variable out."""
        self.name, self.lines = name, list[str]()
        self._changed = threading.Condition()
        self._ended = False
        self._error_path = folder / f"{name}.err"
        with self._error_path.open("wb") as errors:
            self._process = subprocess.Popen(
                [*_DIE_WITH_US, *command],
                cwd=folder,
                env={key: value for key, value in {**os.environ, **(env or {})}.items() if value is not None},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                errors="replace",
            )
        self._reader = threading.Thread(target=self._read, name=f"{name} stdout", daemon=True)
        self._reader.start()

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, text: str, *, within_s: float = START_TIMEOUT_S, after: int = 0) -> int:
        """The index of the first line at or after `after` that has `text`; AssertionError with all output otherwise."""
        seen = after

        def found() -> bool:
            nonlocal seen
            while seen < len(self.lines):
                if text in self.lines[seen]:
                    return True
                seen += 1
            return self._ended

        with self._changed:
            self._changed.wait_for(found, timeout=within_s)
            if seen < len(self.lines):
                return seen
        raise AssertionError(f"{self.name} never said {text!r} within {within_s} s; it said:\n{self.output()}")

    @property
    def pid(self) -> int:
        return self._process.pid

    def say(self, line: str) -> None:
        """One line to its stdin."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def close_input(self) -> None:
        """Nothing more is said to it."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def wait_for_end(self, *, within_s: float) -> bool:
        """Whether it has ended by then."""
        with self._changed:
            return self._changed.wait_for(lambda: self._ended, timeout=within_s)

    def errors(self) -> str:
        """What it has written to stderr so far."""
        return self._error_path.read_text(errors="replace")

    def output(self) -> str:
        return "\n".join([*self.lines[-200:], "-- stderr:", self.errors()[-8000:]])

    def terminate(self, number: signal.Signals = signal.SIGTERM, *, within_s: float = 30) -> int:
        """Send the signal. Returns the exit status; AssertionError when it has not ended in time."""
        self._process.send_signal(number)
        try:
            return self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"{self.name} did not end within {within_s} s of {number.name}:\n{self.output()}"
            ) from None

    def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass


def nemesrv(name: str, folder: Path, *arguments: str) -> Program:
    """Our command line, with the user's folders inside `folder`."""
    return Program(name, [sys.executable, "-m", "nemesrv.chaos", *arguments], folder, env={"HOME": str(folder)})


def java(
    name: str,
    folder: Path,
    jars: Jars,
    *arguments: str,
    properties: Mapping[str, str] | None = None,
    before: Path | None = None,
    logs: Path | None = None,
    flags: Sequence[str] = JAVA_FLAGS,
) -> Program:
    """A main class or a source file of RocketMQ's `jars`, or of a folder of classes that comes `before` them; what it
    writes is inside `folder`, its logs in `logs` (None: it writes none). `flags` are the JVM's."""
    write_logback(folder / "conf", logs)
    own = dict.fromkeys(("user.home", "rocketmq.home.dir", "java.io.tmpdir"), str(folder))
    defines = [f"-D{key}={value}" for key, value in {**own, **(properties or {})}.items()]
    env = {"ROCKETMQ_HOME": str(folder), "NAMESRV_ADDR": None}
    path = class_path(jars) if before is None else f"{before}:{class_path(jars)}"
    return Program(name, ["java", *flags, *defines, "-cp", path, *arguments], folder, env=env)


def java_source(name: str, folder: Path, jars: Jars, source: Path, *arguments: str) -> Program:
    """The one class of a source file, as it is for these jars' version."""
    here = folder / source.name
    here.write_text(jars.source(source.read_text("utf-8")), "utf-8")
    return java(name, folder, jars, str(here), *arguments)


def name_server(
    name: str, folder: Path, *, profile: str = "4.9", more: Mapping[str, object] | None = None
) -> tuple[Program, str]:
    """Our NameServer, serving, and its address. `more` are settings beside the usual."""
    folder.mkdir()
    port = free_port()
    settings = {"profile": profile, "bindAddress": "127.0.0.1", "kvConfigPath": folder / "kvConfig.json"}
    config = write(folder / "namesrv.conf", {**settings, **(more or {})})
    program = nemesrv(name, folder, "namesrv", "-c", str(config), "--listen-port", str(port))
    program.wait_for("boot success")
    return program, f"127.0.0.1:{port}"


def java_name_server(
    name: str, folder: Path, jars: Jars, *, more: Mapping[str, object] | None = None, **of_jvm: Any
) -> tuple[Program, str]:
    """Apache's NameServer, serving, and its address. `more` are settings beside the usual; `of_jvm` goes to `java`."""
    folder.mkdir()
    port = free_port()
    config = write(folder / "namesrv.conf", properties_of.name_server(port, folder, more))
    main = ("org.apache.rocketmq.namesrv.NamesrvStartup", "-c", str(config))
    program = java(name, folder, jars, *main, **of_jvm)
    program.wait_for("boot success")
    return program, f"127.0.0.1:{port}"


def java_broker(
    name: str,
    folder: Path,
    jars: Jars,
    name_servers: Sequence[str],
    broker_name: str,
    *,
    more: Mapping[str, object] | None = None,
) -> tuple[Program, str]:
    """Apache's broker, serving, and its address. `more` are settings beside the usual."""
    folder.mkdir()
    port = free_port(-2, 1)
    config = write(folder / "broker.conf", properties_of.broker(port, folder, broker_name, name_servers, more))
    program = java(name, folder, jars, "org.apache.rocketmq.broker.BrokerStartup", "-c", str(config))
    program.wait_for("boot success")
    return program, f"127.0.0.1:{port}"


def broker(
    name: str,
    folder: Path,
    name_servers: Sequence[str],
    broker_name: str,
    *,
    profile: str = "4.9",
    more: Mapping[str, object] | None = None,
) -> tuple[Program, str]:
    """Our broker, serving, and its address. `more` are settings beside the usual."""
    folder.mkdir()
    port = free_port()
    settings = {
        "profile": profile,
        "brokerClusterName": "DefaultCluster",
        "brokerName": broker_name,
        "brokerId": 0,
        "brokerIP1": "127.0.0.1",
        "listenPort": port,
        "storePathRootDir": folder / "store",
        "mappedFileSizeCommitLog": 16 * 1024 * 1024,
        "transactionTimeOut": 1000,
        "transactionCheckInterval": 1000,
    }
    config = write(folder / "broker.conf", {**settings, **(more or {})})
    program = nemesrv(name, folder, "broker", "-n", ";".join(name_servers), "-c", str(config))
    program.wait_for("boot success")
    return program, f"127.0.0.1:{port}"
