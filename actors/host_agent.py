"""The agent of an experiment on one host of a Ray cluster: an actor that obeys the driver.

    driver ── RemoteHost.ask (hosts.py) ──► HostAgent ── signals, by pidfd ──► the nodes' processes of this host
                                               ├── parts: what the experiment opens here (its Toxiproxy, ports, probes)
                                               ├── folder of the run here: history/_raw, logs, data
                                               └── tells each pid to the Guardian, a process outside Ray

When the driver is killed or cut off, Ray ends the agent's process. If Ray does not, the agent ends itself after
FORGOTTEN_S without a sign of life from the driver. When the agent has ended, the guardian kills the run's remaining
processes on this host and removes the run's folder. Several threads can call the agent's methods at the same time.
Linux only.
"""

import asyncio
import inspect
import os
import queue
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from ..remoting.node.clock import Clock
from .processes import ENDING, Process, die_with_parent, renice, sweep, temporary_folder
from .watch import Alarm, Death, ProcessWatch

FORGOTTEN_S = 45.0
"""A driver says more often that it is there."""
EVENTS_S = 2.0
GUARDIAN_LIMIT_S = 5.0

_GUARDIAN = f"""{ENDING}
if os.fork():
    os._exit(0)
os.setsid()
fds, folder = {{}}, None
for line in sys.stdin:
    word, _, what = line.rstrip("\\n").partition(" ")
    if word == "folder":
        folder = what
    elif word == "forget":
        fd = fds.pop(what, None)
        if fd is not None:
            os.close(fd)
    elif word == "guard" and what not in fds:
        try:
            fds[what] = os.pidfd_open(int(what))
        except OSError:
            pass
end(fds.values(), folder)
"""


class AgentFacts(NamedTuple):
    pid: int
    nemesrv: str | None


class Guardian:
    """A small process that outlives the agent, then kills the processes and removes the folder that the agent named to
    it. The guardian has its own session and is no child of the Ray worker, because Ray's worker kills its children when
    it ends."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _GUARDIAN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,  # never written: its end is the guardian's
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._process.wait()  # that which has made it
        self._lock = threading.Lock()

    def _tell(self, line: str) -> None:
        with self._lock, suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()

    def guard(self, pid: int) -> None:
        self._tell(f"guard {pid}")

    def forget(self, pid: int) -> None:
        self._tell(f"forget {pid}")

    def remove(self, folder: Path | None) -> None:
        """Make the guardian remove this folder (None: no folder) after the agent's end."""
        self._tell(f"folder {folder or ''}")

    def close(self) -> None:
        """Make the guardian kill the processes named to it, then end."""
        with self._lock, suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        assert self._process.stdout is not None
        select.select([self._process.stdout], [], [], GUARDIAN_LIMIT_S)
        self._process.stdout.close()


class HostAgent:
    """The agent as a plain class, so that a test can use it without Ray; joined_ray.py makes it an actor."""

    def __init__(self, niceness: int = 0, *, own_process: bool = True) -> None:
        """`niceness`: the wanted niceness of this process and its children, if it may be chosen; Ray's own is 15."""
        if own_process and sys.platform == "linux":
            die_with_parent()
            renice(niceness)
            sweep()
        self._home = ThreadPoolExecutor(1, "home")  # what dies with the thread that made it has one that stays
        self._parts: dict[str, Any] = {}
        self._processes: dict[int, Process] = {}
        self._events: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._watch: ProcessWatch | None = None
        self._folder: Path | None = None
        self._guardian = Guardian()
        self._asked_s = time.monotonic()
        if own_process:
            threading.Thread(target=self._leave_when_forgotten, name="forgotten", daemon=True).start()

    def _leave_when_forgotten(self) -> None:
        while (left_s := self._asked_s + FORGOTTEN_S - time.monotonic()) > 0:
            time.sleep(left_s)
        os._exit(1)

    # -- what is here

    def hello(self) -> AgentFacts:
        try:
            installed = version("nemesrv")
        except PackageNotFoundError:
            installed = None
        return AgentFacts(os.getpid(), installed)

    def stay(self) -> None:
        self._asked_s = time.monotonic()

    def monotonic_ns(self) -> int:
        """Return this host's CLOCK_MONOTONIC, whose zero is arbitrary."""
        return time.monotonic_ns()

    # -- a run

    def begin_run(self, clock: Clock) -> str:
        """Make an empty folder for a new run on this host; `clock` gives the run's time on this host."""
        self.end_run()
        self._folder = temporary_folder("host")
        self._guardian.remove(self._folder)
        for inner in ("history/_raw", "logs", "data"):
            (self._folder / inner).mkdir(parents=True)
        self._watch = ProcessWatch(clock, alarm=Alarm(), told=self._died, at_once=self._gone_at_once)
        self._watch.__enter__()
        return str(self._folder)

    def end_run(self) -> None:
        """Kill the run's processes on this host, close what `open` made, and remove the run's folder."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.__exit__(None, None, None)
        for process in self._processes.values():
            process.send(signal.SIGKILL)
        for pid in [*self._processes]:
            self._processes[pid].gone(2.0)
            self.forget(pid)
        for key in reversed([*self._parts]):
            with suppress(Exception):  # the others are to be closed all the same
                self.close(key)
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
            self._guardian.remove(None)

    def leave(self) -> None:
        self.end_run()
        self._guardian.close()
        threading.Timer(0.05, os._exit, (0,)).start()  # after the answer

    # -- processes of nodes

    def adopt(self, pid: int) -> bool:
        """Let the agent send signals to this process, and kill it when the agent ends. Returns False if the process
        does not exist."""
        try:
            self._processes[pid] = Process(pid)
        except ProcessLookupError:
            return False
        self._guardian.guard(pid)
        return True

    def forget(self, pid: int) -> None:
        process = self._processes.pop(pid, None)
        if process is not None:
            if process.gone():
                self._guardian.forget(pid)
            process.close()

    def send(self, pid: int, signum: int) -> bool:
        return self._processes[pid].send(signal.Signals(signum))

    def gone(self, pid: int, within_s: float) -> bool:
        return self._processes[pid].gone(within_s)

    def stopped(self, pid: int, within_s: float) -> bool:
        return self._processes[pid].stopped(within_s)

    def watch(self, name: str, pid: int) -> None:
        if self._watch is not None:
            self._watch.add(name, pid)

    def unwatch(self, *names: str) -> None:
        if self._watch is not None:
            self._watch.remove(*names)

    def _gone_at_once(self, name: str, pid: int) -> None:
        self._events.put(("gone", (name, pid)))

    def _died(self, death: Death) -> bool:
        self._events.put(("died", death))
        return True

    def wake(self) -> None:
        self._events.put(("woken", None))

    def events(self) -> list[tuple[str, Any]]:
        """Wait at most EVENTS_S for an event, and return all events since the last call. A watched process that has
        ended gives ("gone", (name, pid)) at once, then ("died", Death)."""
        self._asked_s = time.monotonic()
        found = []
        with suppress(queue.Empty):
            found.append(self._events.get(timeout=EVENTS_S))
            while True:
                found.append(self._events.get_nowait())
        return found

    # -- parts of the experiment that live here

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run the function in the agent's process and return its result. If the function is a coroutine function,
        `run` awaits the coroutine."""
        result = function(*args)
        return asyncio.run(result) if inspect.iscoroutine(result) else result

    def open(self, key: str, factory: Callable[..., Any], *args: Any) -> Any:
        """Call `factory` in the agent's process to make a part of the experiment, such as the host's Toxiproxy, and
        keep the part as `key` for `call` and `close`. Returns the part's `opened` value, if any. A context manager is
        entered now, and left by `close`."""
        return self._home.submit(self._open, key, factory, args).result()

    def _open(self, key: str, factory: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        part = factory(self._parts, *args)
        if hasattr(part, "__enter__"):
            part.__enter__()
        self._parts[key] = part
        pid = getattr(part, "pid", None)
        if pid is not None:
            self._guardian.guard(pid)
        return getattr(part, "opened", None)

    def call(self, key: str, method: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._parts[key], method)(*args, **kwargs)

    def close(self, key: str) -> None:
        part = self._parts.pop(key, None)
        if hasattr(part, "__exit__"):
            part.__exit__(None, None, None)
        elif part is not None:
            part.close()
