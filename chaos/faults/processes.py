"""Executes faults of processes (kill, stop, pause, resume, restart) and records their rows.

process_faults.py defines the faults. A fault's `start` row is recorded once the signal is sent. A stop's `start` row is
recorded once the node has stopped cleanly, or was killed because it did not stop in time. A fault's `end` row is
recorded when a paused node continues, or when a restarted node can be reached again. Between `start` and `end`, a
`gone` row has the time at which the process had ended, its connections were closed, and new connections were refused.
On a busy machine there is some time from a fault's `start` to `gone`, for which no NameServer is to blame.
"""

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from ...actors.watch import NodeFailed
from ...remoting.node.clock import Clock
from ...remoting.node.recording import Recorder
from ..errors import HarnessError
from .process_faults import PROCESS_FAULTS, Kill, ProcessFault, Restart, Resume, Stop


class Processes(Protocol):
    """The cluster's methods that execute faults. Each method calls `on_effect` at the moment that counts as the fault's
    begin or end."""

    def kill(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float: ...
    def stop(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float: ...
    def pause(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float: ...
    def resume(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float: ...
    def restart(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float: ...


def note(
    record: Recorder, fault_id: str, fault: ProcessFault, node: str, phase: str, asked_ms: float | None = None
) -> None:
    about: dict[str, Any] = {"fault": fault.do, "injection": fault.injection, "source": node, "target": None}
    if asked_ms is not None:
        about["value"] = {"asked_ms": asked_ms}
    record("fault", fault_id=fault_id, phase=phase, **about)


def not_done(record: Recorder, node: str, what: str, why: str) -> None:
    """Record that a node did not do what the harness asked of it."""
    record("not_done", source=node, value={"f": what, "why": why})


@contextmanager
def held_if_free(lock: threading.RLock) -> Iterator[bool]:
    """Hold the lock within the block if the lock is free. The block gets whether the lock was free."""
    free = lock.acquire(blocking=False)
    try:
        yield free
    finally:
        if free:
            lock.release()


class ProcessFaults:
    """Executes faults of processes, keeps each node's current fault, and records the rows. `heal_all` resumes paused
    nodes and restarts killed or stopped nodes."""

    def __init__(
        self,
        processes: Processes,
        record: Recorder,
        restarted: Callable[[str], object] = lambda _node: None,
        moves: Callable[[str], object] = lambda _node: None,
        clock: Clock | None = None,
    ) -> None:
        """`restarted` is called with each node whose new process works, `moves` with each node whose new process will
        listen at another address. `clock` is the history's clock, and records when a fault was asked for."""
        self._clock = clock
        self._processes, self._record, self._restarted, self._moves = processes, record, restarted, moves
        self._active: dict[str, tuple[str, ProcessFault]] = {}
        self._begun = 0
        self._lock = threading.RLock()

    @property
    def active(self) -> dict[str, ProcessFault]:
        return {node: fault for node, (_, fault) in self._active.items()}

    @property
    def ids(self) -> dict[str, str]:
        return {node: fault_id for node, (fault_id, _) in self._active.items()}

    def unchanged(self) -> AbstractContextManager[bool]:
        """Keep faults from beginning and ending within the block. The block gets False if a fault is already beginning
        or ending."""
        return held_if_free(self._lock)

    def resume(self, node: str) -> None:
        self._end(node, "resume", self._processes.resume)

    def restart(self, node: str, *, new_address: bool = False) -> None:
        with self._lock:
            if node not in self._active:
                self.begin(Stop(), node)
            if new_address:
                self._moves(node)
            self._end(node, "restart", self._processes.restart)

    def found_gone(self, node: str, fault_id: str) -> None:
        """Note that somebody else killed the node's process, so that `restart` can end the kill, which is already
        recorded."""
        with self._lock:
            self._active[node] = (fault_id, Kill())

    def heal_all(self, *, but: Collection[str] = ()) -> None:
        """End every fault that can end, in the order in which they began. `but`: nodes whose faults are not ended. If a
        fault cannot be ended, the error is raised after the remaining faults were ended."""
        with self._lock:
            failed: HarnessError | None = None
            for node, fault in self.active.items():
                if not fault.ended_by or node in but:
                    continue
                try:
                    self._end(node, fault.ended_by, getattr(self._processes, fault.ended_by))
                except HarnessError as exc:
                    failed = failed or exc
            if failed is not None:
                raise failed

    def begin(self, fault: ProcessFault, node: str) -> str:
        with self._lock:
            if node in self._active:
                raise HarnessError(f"{node} cannot be hit by {fault.do}: it is {self._active[node][1].title} already")
            self._begun += 1
            fault_id = f"{fault.do}-{self._begun}"
            asked_ms = 1000 * self._clock.monotonic_s() if self._clock else None

            def took_effect() -> None:
                self._active[node] = (fault_id, fault)
                note(self._record, fault_id, fault, node, "start", asked_ms)

            try:
                getattr(self._processes, fault.done_by)(node, on_effect=took_effect)
            except NodeFailed as exc:
                if not isinstance(fault, Stop):
                    raise
                not_done(self._record, node, "stop", f"{exc}; it was killed")
                self._processes.kill(node, on_effect=took_effect)
            if fault.ends_process:
                self._record("gone", fault_id=fault_id, source=node)
            return fault_id

    def end(self, how: Resume | Restart, node: str) -> None:
        if isinstance(how, Restart):
            self.restart(node, new_address=how.new_address)
        else:
            self.resume(node)

    def _end(self, node: str, by: str, act: Callable[..., float]) -> None:
        with self._lock:
            fault_id, fault = self._active.get(node, ("", None))
            if fault is None or fault.ended_by != by:
                wanted = " or ".join(kind.title for kind in PROCESS_FAULTS.values() if kind.ended_by == by)
                raise HarnessError(f"{node} is {fault.title if fault else 'under no fault'}, and not {wanted}")

            def took_effect() -> None:
                del self._active[node]
                note(self._record, fault_id, fault, node, "end")

            try:
                act(node, on_effect=took_effect)
            except NodeFailed as exc:  # it stays under its fault, and nobody asks it again
                not_done(self._record, node, by, str(exc))
                self._active.pop(node, None)
            else:
                if by == "restart":
                    self._restarted(node)


class UnplannedDeaths:
    """Records node processes that ended though the harness did not end them. An unplanned end of a process is recorded
    as a kill, because it looks the same to peers. The process is not restarted."""

    def __init__(self, record: Recorder) -> None:
        self._record, self._noted = record, 0
        self.ids: dict[str, str] = {}
        """For each node whose process ended unplanned: the fault id of its last such end."""

    @contextmanager
    def noted(self, node: str) -> Iterator[None]:
        """Record the unplanned end of a process. Within the block the caller makes the node's proxies refuse
        connections; at the block's end a `gone` row is recorded."""
        self._noted += 1
        fault_id = self.ids[node] = f"unplanned-{self._noted}"
        note(self._record, fault_id, Kill(), node, "start")
        yield
        self._record("gone", fault_id=fault_id, source=node)
