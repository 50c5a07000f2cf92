"""The history of a run: one row an event, from every node and from the harness, on one time axis.

While a run lasts each process appends JSON lines to its own file, `<run>/history/_raw/<node>.<incarnation>.jsonl`.
At the end `merge.py` puts them into `<run>/history/part-00000.parquet` (large ones: several). Spark ignores
the folder `_raw`, because its name begins with an underscore. Times are milliseconds of RocketMQ time since the
experiment's origin.

What a process killed with SIGKILL can lose: events wait at most 20 ms in memory, then go to the kernel with one
`write` to a descriptor in append mode, and what the kernel has outlives the process. A line torn by the kill is
skipped by the reader; it can only be the last of its file. This module starts no JVM.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from ...remoting.node.clock import Clock
from ...remoting.node.network import Address
from ...remoting.node.recording import Recorder
from .files import raw_name, rotated
from .schema import EVENTS, raw_dir

log = logging.getLogger("nemesrv.history")

BUFFER_S = 0.020
"""How long an event may wait in memory, in seconds of the machine's time."""


def _plain(value: object) -> object:
    """What orjson cannot write by itself: sets as sorted lists, bytes as text, the rest (an Address, say) as str()."""
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
    """One process's events as lines of its file: who recorded them, numbered from 0.

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
        """The next line, stamped with the clock's time or this one. Takes `fields` over unchecked: check_fields."""
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
    """TypeError when the catalogue has no such event, or says that it fills no such column."""
    allowed = _COLUMNS_OF.get(event)
    if allowed is None:
        raise TypeError(f"{event!r} is no event of the history: the catalogue is chaos/history/schema.py")
    if not allowed.issuperset(fields):
        unknown = ", ".join(sorted(fields.keys() - allowed))
        raise TypeError(f"event {event!r} fills {unknown}, which its entry in chaos/history/schema.py does not name")


class HistoryWriter:
    """A Recorder that appends to one JSONL file. Safe to call from several threads; `close` when the node ends.

    `rotate_bytes`: after so many it goes on in a file of the next number (files.py), so that the first can be deleted.
    """

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
        """Append one event. TypeError when a field is no column; OSError when the disk refuses. No-op once closed."""
        self._append(event, fields, None)

    def at(self, at_ms: float, event: str, /, **fields: object) -> None:
        """The same, of an event that was then: rows of a file need not be in order of time."""
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
        """Everything recorded so far is with the kernel."""
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
        """Flush and close; later events are ignored, so that a node's last callbacks cannot fail on it."""
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
    """Where and as whom a process records; can be pickled, so that the process itself opens the file."""

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
    ) -> RecorderSpec:
        """The spec with the file name that `to_parquet` looks for."""
        path = raw_dir(run_dir) / raw_name(node, incarnation)
        return cls(path, node, role, incarnation, clock, rotate_bytes)

    def for_incarnation(self, incarnation: int) -> RecorderSpec:
        """The spec of the process that follows: the same folder and node, a file of its own."""
        path = self.path.with_name(raw_name(self.node, incarnation))
        return RecorderSpec(path, self.node, self.role, incarnation, self.clock, self.rotate_bytes)

    def open(self) -> HistoryWriter:
        """A writer at the end of the file, whose folder is made when missing. Raises OSError."""
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        return HistoryWriter(Path(self.path), self.node, self.role, self.incarnation, self.clock, self.rotate_bytes)


STEP_S, STEP_MAX_S = 0.020, 0.100


def step_s_of(scale: float) -> float:
    """Seconds of the machine between two measurements of lateness: 200 ms of RocketMQ time, within these limits.

    At time scale 1, as `nemesrv up` has it, one process in five steps costs a fifth; and nobody's timers are so short.
    """
    return max(STEP_S, min(STEP_MAX_S, 0.200 / scale))


def unseen_s_of(scale: float) -> float:
    """How much of a stall may fall between two steps that are longer than STEP_S: it counts as lateness, too."""
    return step_s_of(scale) - STEP_S


@dataclass(slots=True)
class LagProbe:
    """Measures how late timers fire in this process, and records it: the tolerance of the checks is made of this.

    Sleeps a step of the machine's time again and again (step_s_of); each `timer_lag` row holds the largest lateness
    since the row before (`lag_ms`) and the span it covers (`duration_ms`), both in RocketMQ milliseconds. One row per
    RocketMQ second, but at least one each 250 ms and at most one each 50 ms of the machine's time.
    """

    _task: asyncio.Task[None] | None = field(default=None, init=False)

    def start(self, record: Recorder, clock: Clock) -> None:
        """Begin, on the running loop."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._measure(record, clock))

    async def stop(self) -> None:
        """End; the lateness seen since the last row is recorded first."""
        if self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _measure(self, record: Recorder, clock: Clock) -> None:
        scale = float(getattr(clock, "scale", 1.0))
        step_s, unseen_ms = step_s_of(scale) * scale, unseen_s_of(scale) * scale * 1000
        every_s = min(max(1.0, 0.050 * scale), 0.250 * scale)

        def tell(since_s: float, now_s: float, late_s: float) -> None:
            record("timer_lag", lag_ms=late_s * 1000 + unseen_ms, duration_ms=(now_s - since_s) * 1000)

        await _keep_measuring(clock, step_s, every_s, tell)


async def _keep_measuring(
    clock: Clock, step_s: float, every_s: float, tell: Callable[[float, float, float], None]
) -> None:
    """Until cancelled: `tell` gets each stretch of `every_s`, from when to when, and the largest lateness in it."""
    since_s, late_s = clock.monotonic_s(), 0.0
    try:
        while True:
            asked_s = clock.monotonic_s()
            await clock.sleep(step_s)
            now_s = clock.monotonic_s()
            late_s = max(late_s, now_s - asked_s - step_s)
            if now_s - since_s >= every_s:
                tell(since_s, now_s, late_s)
                since_s, late_s = now_s, 0.0
    finally:
        tell(since_s, clock.monotonic_s(), late_s)


# -- how late timers fire in a process that many nodes share: measured once for all, recorded as of each.
#
#     one sleep after the other ──► lateness of a stretch ─┬─ below LOUD_S: added to the node's quiet stretch, which is
#                                                          │  one row of QUIET_ROW_S, at a moment of the node's own
#                                                          └─ else: a row of its own for every node, at once
#
# A node's tolerance is made of its own rows; so each has some, and hundreds of nodes do not write as many rows of the
# machine as of RocketMQ. A row covers its whole stretch with the worst of it, as LagProbe's do.

QUIET_ROW_S = 5.0
"""Of the machine's time."""

LOUD_S = 0.100
"""Of the machine's time: so late a stretch is known to its second."""

STRETCH_S = 0.250

TURNS = 20
"""Nodes that begin together write their quiet rows in so many turns, or the writing itself would make timers late."""


@dataclass(slots=True)
class _Member:
    record: Recorder
    since_s: float
    next_s: float
    late_s: float = 0.0


class _Measurement:
    """All that share an event loop, and the one task that measures for them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scale = float(getattr(clock, "scale", 1.0))
        self._unseen_s = unseen_s_of(self._scale) * self._scale
        self._members: weakref.WeakKeyDictionary[SharedLagProbe, _Member] = weakref.WeakKeyDictionary()
        """Weakly, because one that dies takes no leave."""
        self._task: asyncio.Task[None] | None = None
        self._begun = 0

    def join(self, probe: SharedLagProbe, record: Recorder) -> None:
        now_s, row_s = self._clock.monotonic_s(), QUIET_ROW_S * self._scale
        self._members[probe] = _Member(record, now_s, now_s + row_s * (1 - self._begun % TURNS / TURNS))
        self._begun += 1
        if self._task is None or self._task.done():
            # In a context of its own: it is nobody's of those that share the process, and outlives each of them.
            step_s, every_s = step_s_of(self._scale) * self._scale, STRETCH_S * self._scale
            work = _keep_measuring(self._clock, step_s, every_s, self._tell)
            self._task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())

    def leave(self, probe: SharedLagProbe) -> None:
        """The lateness seen since its last row is recorded first."""
        member = self._members.pop(probe, None)
        if member is not None:
            self._write(member, member.since_s, self._clock.monotonic_s(), member.late_s)
        if not self._members and self._task is not None:
            self._task.cancel()
            self._task = None

    def _tell(self, since_s: float, now_s: float, late_s: float) -> None:
        loud, row_s = late_s >= LOUD_S * self._scale, QUIET_ROW_S * self._scale
        for member in list(self._members.values()):
            if loud:
                if member.since_s < since_s:
                    self._write(member, member.since_s, now_s, member.late_s)
                self._write(member, since_s, now_s, late_s)
            else:
                member.late_s = max(member.late_s, late_s)
                if now_s >= member.next_s:
                    self._write(member, member.since_s, now_s, member.late_s)
            while member.next_s <= now_s:
                member.next_s += row_s

    def _write(self, member: _Member, from_s: float, now_s: float, late_s: float) -> None:
        lag_ms = (late_s + self._unseen_s) * 1000
        member.record("timer_lag", lag_ms=lag_ms, duration_ms=(now_s - from_s) * 1000)
        member.since_s, member.late_s = now_s, 0.0


_MEASUREMENTS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Measurement] = weakref.WeakKeyDictionary()


class SharedLagProbe:
    """LagProbe for one node of many in a process."""

    def __init__(self) -> None:
        self._joined: _Measurement | None = None

    def start(self, record: Recorder, clock: Clock) -> None:
        """Begin, on the running loop."""
        loop = asyncio.get_running_loop()
        self._joined = _MEASUREMENTS.setdefault(loop, _Measurement(clock))
        self._joined.join(self, record)

    async def stop(self) -> None:
        """End; the lateness seen since the last row is recorded first."""
        if self._joined is not None:
            self._joined.leave(self)
            self._joined = None
