"""Recording on virtual time: each node's events in memory, in its own file of the run folder when it ends.

The same files and lines as from a real process (chaos/history.py), so the merge is the same too. The writer there
flushes by the machine's time, which may not decide anything here.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import orjson

from ...remoting.clock import Clock
from ...remoting.recording import Recorder
from ..history import COLUMNS, raw_dir

_STAMPED = frozenset({"time_ms", "seq", "node", "role", "incarnation", "event"})
_ALLOWED = COLUMNS - _STAMPED
_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS
LAG_STEP_S = 1.0


def _plain(value: object) -> object:
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


class MemoryRecorder:
    """A Recorder of one process. Nothing is on disk before `close`; events after it are ignored."""

    def __init__(self, path: Path, node: str, role: str, incarnation: int, clock: Clock) -> None:
        self._path, self._clock = path, clock
        self._node, self._role, self._incarnation = node, role, incarnation
        self._lines: list[bytes] = []
        self._closed = False

    def __call__(self, event: str, /, **fields: object) -> None:
        """Append one event. TypeError when a field is no column of the history."""
        if not fields.keys() <= _ALLOWED:
            unknown = ", ".join(sorted(fields.keys() - _ALLOWED))
            raise TypeError(f"event {event!r} has fields that are no columns of the history: {unknown}")
        if self._closed:
            return
        row: dict[str, object] = {
            "time_ms": self._clock.monotonic_s() * 1000.0,
            "seq": len(self._lines),
            "node": self._node,
            "role": self._role,
            "incarnation": self._incarnation,
            "event": event,
        }
        row.update(fields)
        self._lines.append(orjson.dumps(row, default=_plain, option=_OPTIONS))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_bytes(b"".join(self._lines))
            self._lines.clear()


@dataclass(frozen=True, slots=True)
class MemoryRecorderSpec:
    """Where and as whom a process records."""

    run_dir: Path
    node: str
    role: str
    incarnation: int
    clock: Clock

    def for_incarnation(self, incarnation: int) -> MemoryRecorderSpec:
        return MemoryRecorderSpec(self.run_dir, self.node, self.role, incarnation, self.clock)

    def open(self) -> MemoryRecorder:
        path = raw_dir(self.run_dir) / f"{self.node}.{self.incarnation}.jsonl"
        return MemoryRecorder(path, self.node, self.role, self.incarnation, self.clock)


class VirtualLagProbe:
    """Measures how late timers fire in this process, as LagProbe does: never, unless it was paused."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def start(self, record: Recorder, clock: Clock) -> None:
        """Begin, on the running loop."""
        self._task = asyncio.get_running_loop().create_task(self._measure(record, clock))

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _measure(self, record: Recorder, clock: Clock) -> None:
        asked_s = clock.monotonic_s()
        while True:
            await clock.sleep(LAG_STEP_S)
            now_s = clock.monotonic_s()
            # to a microsecond, because a sum of doubles is not exact
            late_s = round(now_s - asked_s - LAG_STEP_S, 6)
            record("timer_lag", lag_ms=late_s * 1000, duration_ms=(now_s - asked_s) * 1000)
            asked_s = now_s
