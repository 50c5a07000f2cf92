"""Records the history of a run: one row per event, from every node and the harness, on one time axis.

During a run each process appends JSON lines to its own file, `<run>/history/_raw/<node>.<incarnation>.jsonl`. At the
end merge.py writes all rows into `<run>/history/part-00000.parquet`, or into several files if they are large. Spark
ignores the folder `_raw`, because its name begins with an underscore. Times are milliseconds since the experiment
began, in RocketMQ time (with `time_scale: 10` ten times as fast as real time).

Events wait at most 20 ms in memory and then go to the kernel by one `write`, so SIGKILL can lose no more than these 20
ms. A kill may leave the last line of a file incomplete; readers skip this line.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import orjson

from ...remoting.node.clock import Clock
from ...remoting.node.network import Address
from ...remoting.node.recording import Recorder
from ...remoting.node.tasks import cancel_all
from .files import raw_name, rotated
from .schema import EVENTS, raw_dir

log = logging.getLogger("nemesrv.history")

BUFFER_S = 0.020
"""How long an event may wait in memory, in seconds of machine time."""


def _plain(value: object) -> object:
    """Return JSON for values that orjson cannot write: sets as sorted lists, bytes as text, others as str()."""
    if type(value) is Address:  # by far the most frequent
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


_COLUMNS_OF = {event.name: frozenset(event.columns) for event in EVENTS.values()}
_LINE = orjson.OPT_APPEND_NEWLINE


class EventLines:
    """Turns one process's events into lines of its file, numbered from 0.

    {"node":"ns-0","role":"name_server","incarnation":0,"event":"route", │ "topic":…,"value":…,"time_ms":…,"seq":…}
    the same for each event of that name: encoded once                   │ encoded for each
    """

    __slots__ = ("_clock", "_heads", "_who", "seq")

    def __init__(self, node: str, role: str, incarnation: int, clock: Clock) -> None:
        self._who = {"node": node, "role": role, "incarnation": incarnation}
        self._clock = clock
        self._heads: dict[str, bytes] = {}
        self.seq = 0

    def line(self, event: str, fields: dict[str, object], at_ms: float | None = None) -> bytes:
        """Return the next line of the file, with the clock's time or the given time. `check_fields` validates `fields`;
        this method does not."""
        fields["time_ms"] = self._clock.monotonic_s() * 1000.0 if at_ms is None else at_ms
        fields["seq"] = self.seq
        try:
            rest = orjson.dumps(fields, _plain, _LINE)
        except TypeError:  # a key that is no string; allowing those costs each row a quarter more
            rest = orjson.dumps(fields, _plain, _LINE | orjson.OPT_NON_STR_KEYS)
        self.seq += 1
        return (self._heads.get(event) or self._head(event)) + rest[1:]

    def _head(self, event: str) -> bytes:
        head = self._heads[event] = orjson.dumps({**self._who, "event": event})[:-1] + b","
        return head


def check_fields(event: str, fields: Mapping[str, object]) -> None:
    """Raise TypeError if the catalogue has no such event, or the event has no such column."""
    allowed = _COLUMNS_OF.get(event)
    if allowed is None:
        raise TypeError(f"{event!r} is no event of the history: the catalogue is chaos/history/events.toml")
    if not allowed.issuperset(fields):
        unknown = ", ".join(sorted(fields.keys() - allowed))
        raise TypeError(f"event {event!r} fills {unknown}, which its entry in chaos/history/events.toml does not name")


class HistoryWriter:
    """A Recorder that appends to a JSONL file. Thread-safe; `close` it when the node ends. After `rotate_bytes` bytes
    the writer continues in another file (files.py), so that the first file can be deleted."""

    def __init__(
        self, path: Path, node: str, role: str, incarnation: int, clock: Clock, rotate_bytes: int | None = None
    ) -> None:
        self.path = path
        self._first, self._number, self._written, self._rotate_bytes = path, 0, 0, rotate_bytes
        self._node, self._lines = node, EventLines(node, role, incarnation, clock)
        self._buffer = bytearray()  # one block: thousands of small objects cost more in page faults than all the rest
        self._oldest_s = 0.0
        self._scheduled: asyncio.TimerHandle | None = None
        self._lock = threading.RLock()
        self._fd: int | None = _appended(path)

    def __call__(self, event: str, /, **fields: object) -> None:
        """Append one event. TypeError for a field that is no column; OSError from the disk. A closed writer does
        nothing."""
        self._append(event, fields, None)

    def at(self, at_ms: float, event: str, /, **fields: object) -> None:
        """Append an event with the given time; rows of a file need not be in order of time."""
        self._append(event, fields, at_ms)

    def _append(self, event: str, fields: dict[str, object], at_ms: float | None) -> None:
        check_fields(event, fields)
        with self._lock:
            if self._fd is None:
                return
            first = not self._buffer
            self._buffer += self._lines.line(event, fields, at_ms)
            now_s = time.monotonic()
            if first:
                self._oldest_s = now_s
                self._schedule()
            elif now_s - self._oldest_s >= BUFFER_S:  # the loop is busy or gone: do not wait for its timer
                self.flush()

    def _schedule(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
        else:
            self._scheduled = loop.call_later(BUFFER_S, self._flush_from_timer)

    def _flush_from_timer(self) -> None:
        try:
            self.flush()
        except OSError as exc:  # the next event raises it where someone can act on it
            log.error("history of %s cannot be written to %s: %s", self._node, self.path, exc)

    def flush(self) -> None:
        with self._lock:
            if self._scheduled is not None:
                self._scheduled.cancel()
                self._scheduled = None
            if self._fd is None:
                return
            while self._buffer:
                written = os.write(self._fd, self._buffer)
                self._written += written
                del self._buffer[:written]
            if self._rotate_bytes is not None and self._written >= self._rotate_bytes:
                self._rotate()

    def _rotate(self) -> None:
        self._number, self._written = self._number + 1, 0
        self.path = rotated(self._first, self._number)
        fd, self._fd = self._fd, _appended(self.path)
        if fd is not None:
            os.close(fd)

    def close(self) -> None:
        """Flush and close the file. Later events are ignored, so that a node's last callbacks do not fail."""
        with self._lock:
            if self._fd is None:
                return
            try:
                self.flush()
            finally:
                os.close(self._fd)
                self._fd = None


def _appended(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


@dataclass(frozen=True, slots=True)
class RecorderSpec:
    """The file of a process's rows, and the process's name. The spec can be pickled, so the process opens the file
    itself."""

    path: Path
    node: str
    role: str
    incarnation: int
    clock: Clock
    rotate_bytes: int | None = None

    @classmethod
    def for_run(
        cls,
        run_dir: Path | str,
        node: str,
        role: str,
        incarnation: int,
        clock: Clock,
        *,
        rotate_bytes: int | None = None,
    ) -> Self:
        """Return a spec whose file name is the one that `to_parquet` looks for."""
        path = raw_dir(run_dir) / raw_name(node, incarnation)
        return cls(path, node, role, incarnation, clock, rotate_bytes)

    def for_incarnation(self, incarnation: int) -> Self:
        """Return the spec for the node's next process: the same folder, another file."""
        return replace(self, path=self.path.with_name(raw_name(self.node, incarnation)), incarnation=incarnation)

    def open(self) -> HistoryWriter:
        """Return a writer that appends to the file, whose folder is created if missing. Raises OSError."""
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        return HistoryWriter(Path(self.path), self.node, self.role, self.incarnation, self.clock, self.rotate_bytes)


STEP_S, STEP_MAX_S = 0.020, 0.100


def step_s_of(scale: float) -> float:
    """Return the machine seconds between two measurements of lateness: 200 ms of RocketMQ time, within limits. Shorter
    steps would cost too much CPU, and no timer of RocketMQ is that short."""
    return max(STEP_S, min(STEP_MAX_S, 0.200 / scale))


def unseen_s_of(scale: float) -> float:
    """Return the longest stall, in machine seconds, that can go unseen because the probe measures more rarely than
    every STEP_S. This time is added to the measured lateness."""
    return step_s_of(scale) - STEP_S


@dataclass(slots=True)
class LagProbe:
    """Measures and records how late timers fire in this process, for the tolerance of the checks.

    The probe sleeps for `step_s_of` again and again. Each `timer_lag` row has the largest lateness since the previous
    row (`lag_ms`) and the time between both rows (`duration_ms`), in RocketMQ milliseconds. One row is written per
    RocketMQ second, but at least one per 250 ms and at most one per 50 ms of machine time.
    """

    _task: asyncio.Task[None] | None = field(default=None, init=False)

    def start(self, record: Recorder, clock: Clock) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._measure(record, clock))

    async def stop(self) -> None:
        if self._task is not None:
            task, self._task = self._task, None
            await cancel_all((task,))

    async def _measure(self, record: Recorder, clock: Clock) -> None:
        scale = float(getattr(clock, "scale", 1.0))
        step_s, unseen_ms = step_s_of(scale) * scale, unseen_s_of(scale) * scale * 1000
        every_s = min(max(1.0, 0.050 * scale), 0.250 * scale)
        since_s = before_s = clock.monotonic_s()
        late_s = 0.0

        def look() -> float:
            """Note the lateness since the last look; the writing of a row in between counts, because a process is often
            stopped there."""
            nonlocal before_s, late_s
            now_s = clock.monotonic_s()
            late_s, before_s = max(late_s, now_s - before_s - step_s), now_s
            return now_s

        def tell(now_s: float) -> None:
            record("timer_lag", lag_ms=late_s * 1000 + unseen_ms, duration_ms=(now_s - since_s) * 1000)

        try:
            while True:
                await clock.sleep(step_s)
                now_s = look()
                if now_s - since_s >= every_s:
                    tell(now_s)
                    since_s, late_s = now_s, 0.0
        finally:
            tell(look())
