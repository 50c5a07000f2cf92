"""Watches processes by pidfd, and reports unplanned deaths: when, and by which signal.

    Cluster ── add, remove before a planned end ──► ProcessWatch ── Death ──► told (a record) ──► Alarm ──► who waits
                                                       └── at once ──► dials to it are refused

An unplanned death of a node ends the experiment, and the run gives no verdict on RocketMQ. An unplanned death rings the
Alarm, and every waiting method ends at once. In `nemesrv up`, `told` records the death and the cluster continues. Linux
only.
"""

from __future__ import annotations

import concurrent.futures
import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from ..remoting.node.clock import Clock
from .errors import HarnessError
from .processes import Process

log = logging.getLogger("nemesrv.watch")

REPEATING_LIMIT_S = 10.0
"""So long a look may take that is under way when nobody needs another."""
TOGETHER_S = 0.05
"""Processes that die within this time may have died together: Ray's nodes end with their raylet."""


class ClusterError(HarnessError):
    """A node's process could not do what the harness asked. The message names the node in one line."""


class NodeFailed(ClusterError):
    """A running node did not finish a call in time, or failed in the call; the node is at fault, not the harness."""


class ProcessDied(ClusterError):
    """A process of the experiment ended by itself or was killed by somebody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """One unplanned end of a process. `at_ms` is milliseconds on the history's clock; `wall_s` is seconds since the
    epoch."""

    name: str
    pid: int
    at_ms: float
    wall_s: float
    exit_code: int | None
    """As subprocess has it: below 0 the signal. None where the kernel does not tell (before Linux 6.15)."""
    out_of_memory: bool = False
    """The kernel's OOM killer ended some process since this one was watched."""

    def __str__(self) -> str:
        when = f"at {time.strftime('%H:%M:%S', time.localtime(self.wall_s))}, {self.at_ms / 1000:.1f} s into the run"
        return f"{self.name} (pid {self.pid}) {self._how()} {when}"

    def _how(self) -> str:
        if self.exit_code is None:
            return "died"
        if self.exit_code >= 0:
            return f"ended by itself with exit status {self.exit_code}"
        name = signal.Signals(-self.exit_code).name
        if self.out_of_memory and self.exit_code == -signal.SIGKILL:
            return f"was killed by the kernel ({name}: memory ran out)"
        return f"was killed by {name} from outside the scenario"


class DialGate(Protocol):
    """Admits or refuses connections to a node. The gate's methods can raise HarnessError."""

    def refuse(self, name: str, pid: int) -> None:
        """Refuse connections to the node, because its process with this pid is gone. If `admit` has already been called
        for a newer process of the node, nothing changes."""

    def make_way(self, name: str) -> None:
        """Free the node's port for the node's next process, which is about to listen."""

    def admit(self, name: str, pid: int) -> None:
        """Admit connections to the node, because the node's process with this pid listens."""


class Alarm:
    """An alarm that rings once, with the reason why all waiting must end. Any thread can wait for the alarm, or ring
    it."""

    def __init__(self) -> None:
        self._rung: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._lock = threading.Lock()

    def ring(self, reason: BaseException) -> None:
        """Ring the alarm: each thread that waits for the alarm raises this exception. Only the first call has an
        effect."""
        with self._lock:
            if not self._rung.done():
                self._rung.set_exception(reason)

    def check(self) -> None:
        if self._rung.done():
            self._rung.result()

    def sleep(self, seconds: float) -> None:
        """Sleep for this many seconds of real time. If the alarm rings meanwhile, raise the alarm's reason."""
        concurrent.futures.wait([self._rung], timeout=min(max(0.0, seconds), threading.TIMEOUT_MAX))
        self.check()

    def wait(self, future: concurrent.futures.Future[Any], timeout_s: float | None) -> bool:
        """Return whether the future is done within `timeout_s`. If the alarm rings first, raise the alarm's reason."""
        concurrent.futures.wait([future, self._rung], timeout_s, concurrent.futures.FIRST_COMPLETED)
        if not future.done():
            self.check()
        return future.done()


class Repeating:
    """Calls `look` in a thread every `every_s` seconds until `look` returns False. Context manager."""

    def __init__(
        self, look: Callable[[], object], every_s: float, name: str, limit_s: float | None = REPEATING_LIMIT_S
    ) -> None:
        """`limit_s`: how long the end waits for a look that is under way; None: until the look is over."""
        self._look, self._every_s, self._limit_s = look, every_s, limit_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _run(self) -> None:
        while not self._ended.wait(self._every_s) and self._look() is not False:
            pass

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(self._limit_s)


@dataclass(frozen=True, slots=True)
class _Watched:
    name: str
    process: Process
    carries_others: bool


class ProcessWatch:
    """A thread that waits for the end of any watched process. Context manager. At an unplanned end the thread calls
    `at_once` with the process's name and pid, then `told` with the Death. If `told` returns False, the alarm rings;
    True means that the experiment can continue.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        alarm: Alarm,
        told: Callable[[Death], bool],
        at_once: Callable[[str, int], None] | None = None,
    ) -> None:
        self._clock, self._alarm, self._told, self._at_once = clock, alarm, told, at_once
        self._watched: dict[int, _Watched] = {}
        self._lock = threading.Lock()
        self._poll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC)
        self._poll.register(self._wake, select.EPOLLIN)
        self._oom_kills = oom_kills()
        self._thread = threading.Thread(target=self._run, name="process-watch", daemon=True)

    def add(self, name: str, pid: int, *, carries_others: bool = False) -> None:
        """Watch a process. `carries_others`: other processes end with this process, so its death is reported first."""
        try:
            process = Process(pid)
        except ProcessLookupError:
            death = Death(name=name, pid=pid, at_ms=self._now_ms(), wall_s=time.time(), exit_code=None)
            self._act_at_once(death)
            self._died([death])
            return
        with self._lock:
            self._watched[process.fd] = _Watched(name, process, carries_others)
            self._poll.register(process.fd, select.EPOLLIN)

    def remove(self, *names: str) -> None:
        """Do not report the end of these processes, because their end is planned. Names that are not watched are
        ignored."""
        with self._lock:
            for fd, watched in [*self._watched.items()]:
                if watched.name in names:
                    self._forget(fd)

    def remove_all(self) -> None:
        """Do not report the end of any process from now on, because all ends are planned."""
        with self._lock:
            for fd in [*self._watched]:
                self._forget(fd)

    def _forget(self, fd: int) -> Process:
        watched = self._watched.pop(fd)
        self._poll.unregister(fd)
        watched.process.close()
        return watched.process

    def _run(self) -> None:
        while True:
            ready = {fd for fd, _ in self._poll.poll()}
            if self._wake in ready:
                return
            deaths = self._collect(ready)
            until_s = time.monotonic() + TOGETHER_S
            while (left_s := until_s - time.monotonic()) > 0:
                also = {fd for fd, _ in self._poll.poll(left_s)}
                if self._wake in also:
                    break
                deaths += self._collect(also)
            carriers_first = sorted(deaths, key=lambda pair: not pair[0])
            self._died([death for _, death in carriers_first])

    def _collect(self, ready: Iterable[int]) -> list[tuple[bool, Death]]:
        found = []
        out_of_memory = oom_kills() > self._oom_kills
        with self._lock:
            for fd in ready:
                watched = self._watched.get(fd)
                if watched is None:
                    continue  # its end was planned a moment ago
                death = Death(
                    name=watched.name,
                    pid=watched.process.pid,
                    at_ms=self._now_ms(),
                    wall_s=time.time(),
                    exit_code=watched.process.exit_code(),
                    out_of_memory=out_of_memory,
                )
                self._forget(fd)
                found.append((watched.carries_others, death))
        for _, death in found:
            self._act_at_once(death)
        return found

    def _act_at_once(self, death: Death) -> None:
        if self._at_once is not None:
            try:
                self._at_once(death.name, death.pid)
            except Exception as exc:
                log.exception("what follows at once from the death of %s could not be done", death.name)
                self._alarm.ring(HarnessError(f"{death}, and what follows from that could not be done: {exc}"))

    def _died(self, deaths: list[Death]) -> None:
        for death in deaths:
            log.info("%s", death)
            try:
                goes_on = self._told(death)
            except Exception:
                log.exception("the death of %s could not be noted", death.name)
                goes_on = False
            if not goes_on:
                self._alarm.ring(ProcessDied(f"{death}; nothing is judged"))

    def _now_ms(self) -> float:
        return self._clock.monotonic_s() * 1000

    def __enter__(self) -> ProcessWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        self.remove_all()
        self._poll.close()
        os.close(self._wake)


def oom_kills() -> int:
    """Return how many processes of this machine the kernel has killed because memory was short; 0 if unknown."""
    try:
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
