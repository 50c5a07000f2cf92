"""Recording on virtual time: each node's events in memory, in its own file of the run folder when it ends.

The same files and lines as from a real process (chaos/history/recorder.py), so the merge is the same too. The writer
there flushes by the machine's time, which may not decide anything here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ....remoting.node.clock import Clock
from ....remoting.node.recording import Recorder
from ...history.files import raw_name
from ...history.recorder import EventLines, LagProbe, check_fields
from ...history.schema import raw_dir

LAG_STEP_S = 1.0


class MemoryRecorder:
    """A Recorder of one process. Nothing is on disk before `close`; events after it are ignored."""

    def __init__(self, path: Path, node: str, role: str, incarnation: int, clock: Clock) -> None:
        self._path, self._events = path, EventLines(node, role, incarnation, clock)
        self._lines: list[bytes] = []
        self._append, self._line = self._lines.append, self._events.line
        self._closed = False

    def __call__(self, event: str, /, **fields: object) -> None:
        """Append one event. TypeError when a field is no column of the history."""
        check_fields(event, fields)
        if not self._closed:
            self._append(self._line(event, fields))

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
        path = raw_dir(self.run_dir) / raw_name(self.node, self.incarnation)
        return MemoryRecorder(path, self.node, self.role, self.incarnation, self.clock)


class VirtualLagProbe(LagProbe):
    """Measures how late timers fire in this process, as LagProbe does: never, unless it was paused."""

    async def _measure(self, record: Recorder, clock: Clock) -> None:
        asked_s = clock.monotonic_s()
        while True:
            await clock.sleep(LAG_STEP_S)
            now_s = clock.monotonic_s()
            # to a microsecond, because a sum of doubles is not exact
            late_s = round(now_s - asked_s - LAG_STEP_S, 6)
            record("timer_lag", lag_ms=late_s * 1000, duration_ms=(now_s - asked_s) * 1000)
            asked_s = now_s
