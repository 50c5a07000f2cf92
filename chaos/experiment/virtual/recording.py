"""Records on virtual time, so that a repeated run gives the same bytes. Each node's rows are in memory until the node
ends, and its log has virtual times.

Files and lines of a virtual run are like those of a real process (chaos/history/recorder.py). The recorder of real runs
is not used: this recorder flushes by machine time, which must not influence a virtual run.
"""

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from ....actors.actor import LOG_FORMAT, NodeSpec
from ....remoting.node.clock import Clock
from ....remoting.node.recording import Recorder
from ...history.recorder import EventLines, LagProbe, RecorderSpec, check_fields

LAG_STEP_S = 1.0


class MemoryRecorder:
    """The recorder of one process on virtual time. Rows are written to disk at `close`; events after `close` are
    ignored."""

    def __init__(self, path: Path, node: str, role: str, incarnation: int, clock: Clock) -> None:
        self._path, self._events = path, EventLines(node, role, incarnation, clock)
        self._lines: list[bytes] = []
        self._append, self._line = self._lines.append, self._events.line
        self._closed = False

    def __call__(self, event: str, /, **fields: object) -> None:
        """Append one event. Raises TypeError if a field is no column of the history."""
        check_fields(event, fields)
        if not self._closed:
            self._append(self._line(event, fields))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_bytes(b"".join(self._lines))
            self._lines.clear()


class MemoryRecorderSpec(RecorderSpec):
    def open(self) -> MemoryRecorder:  # type: ignore[override]
        return MemoryRecorder(self.path, self.node, self.role, self.incarnation, self.clock)


class VirtualLagProbe(LagProbe):
    """The probe of late timers on the virtual clock, where timers are late only after a pause of the node."""

    async def _measure(self, record: Recorder, clock: Clock) -> None:
        asked_s = clock.monotonic_s()
        while True:
            await clock.sleep(LAG_STEP_S)
            now_s = clock.monotonic_s()
            # to a microsecond, because a sum of doubles is not exact
            late_s = round(now_s - asked_s - LAG_STEP_S, 6)
            record("timer_lag", lag_ms=late_s * 1000, duration_ms=(now_s - asked_s) * 1000)
            asked_s = now_s


class _VirtualTime(logging.Formatter):
    def __init__(self, clock: Clock) -> None:
        super().__init__(LOG_FORMAT)
        self._clock = clock

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        seconds, ms = divmod(self._clock.now_ms(), 1000)
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S},{ms:03d}"


class _File(logging.StreamHandler[TextIO]):
    """A log file that survives a full disk: only lines are lost, and the run reports the full disk once."""

    def flush(self) -> None:
        """Do nothing: flushing each line would cost more than the run."""

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError | ValueError):  # ValueError: written after the file was closed
            super().handleError(record)

    def close(self) -> None:
        with suppress(OSError):
            self.stream.close()
        super().close()


def node_logger(spec: NodeSpec, clock: Clock) -> tuple[logging.Logger, Callable[[], None]]:
    """Return the node's logger and a function that closes its log file. The logger writes virtual times and is not
    registered with `logging`."""
    log = logging.Logger(f"nemesrv.{spec.name}", logging.INFO)
    if spec.log_file is None:
        log.addHandler(logging.NullHandler())
        return log, lambda: None
    spec.log_file.parent.mkdir(parents=True, exist_ok=True)
    handler = _File(spec.log_file.open("a", encoding="utf-8"))
    handler.setFormatter(_VirtualTime(clock))
    log.addHandler(handler)

    def close() -> None:
        log.addHandler(logging.NullHandler())  # a logger without any writes to stderr
        log.removeHandler(handler)
        handler.close()

    return log, close
