"""Writes the lines that processes append into parts of a history. A part has all new rows up to one moment.

    ns-0.0.jsonl      ────────┤ last row            watermark = the earliest last row of the writers that still write,
    broker-a.0.jsonl  ──────┤                                   at most now
    broker-a.1.jsonl  ─┤ killed: not waited for
    harness.0.jsonl   ┤ idle: not waited for      rows up to it ─► _parts/part-000017.parquet, never touched

Each process writes rows in order of time, and a `timer_lag` row at least every 250 ms, so its file is complete up to
the last row. Parts do not wait for a process that has written nothing for IDLE_S (dead, paused or idle). Rows that
arrive after the part for their time was written go into the next part. Incomplete lines are skipped. A file is deleted
once its process continues in another file and parts contain all its rows.
"""

from dataclasses import dataclass, field
from pathlib import Path

import orjson

from ..history.files import Process, number_of, process_of, rotated
from ..history.host_clocks import CLOCKS, HARNESS, LiveAxis
from ..history.merge import write_part
from ..history.schema import Row, raw_dir
from .changes import matters

IDLE_S = 1.0
"""In seconds of the machine's clock."""


@dataclass(slots=True)
class _Writer:
    """The files of one process: how much of them was read, and the rows after the watermark."""

    path: Path
    offset: int = 0
    partial: bytes = b""
    waiting: list[Row] = field(default_factory=list)
    last_ms: float = float("-inf")
    last_seq: int = -1
    changed_ms: float = float("-inf")
    """Time of the last row that is a change."""
    grew_s: float = float("-inf")
    read_out: list[tuple[Path, int]] = field(default_factory=list)
    """Files that are no longer written, each with its last `seq`."""
    axis: LiveAxis = field(default_factory=LiveAxis)
    """Shared by all writers."""
    tells: bool = False
    """Whether other processes' times are corrected by this process's rows. They reach the file at once: if it is
    silent, nothing happened to it."""

    def read(self, now_s: float) -> None:
        while True:
            following = rotated(self._first(), number_of(self.path) + 1)
            rotated_away = following.exists()  # looked at before: whatever this file will ever hold is in it then
            self._read_file(now_s)
            if not rotated_away:
                return
            self.read_out.append((self.path, self.last_seq))
            self.path, self.offset, self.partial = following, 0, b""

    def _first(self) -> Path:
        node, incarnation = process_of(self.path)
        return self.path.with_name(f"{node}.{incarnation}.jsonl")

    def _read_file(self, now_s: float) -> None:
        size = self.path.stat().st_size
        if size <= self.offset:
            return
        with self.path.open("rb") as file:
            file.seek(self.offset)
            data = file.read(size - self.offset)
        self.offset, self.grew_s = self.offset + len(data), now_s
        *lines, self.partial = (self.partial + data).split(b"\n")
        for line in lines:
            try:
                row = orjson.loads(line)
                if self.tells:
                    self.axis.heed(row)
                self.axis.correct(row)
                self.last_ms = max(self.last_ms, row["time_ms"])
                self.last_seq = row["seq"]
                if matters(row):
                    self.changed_ms = max(self.changed_ms, row["time_ms"])
            except (orjson.JSONDecodeError, KeyError, TypeError):
                continue
            self.waiting.append(row)

    def delete_read_out(self) -> None:
        next_seq = self.waiting[0]["seq"] if self.waiting else self.last_seq + 1
        while self.read_out and self.read_out[0][1] < next_seq:
            self.read_out.pop(0)[0].unlink(missing_ok=True)

    def take(self, until_ms: float) -> list[Row]:
        taken = [row for row in self.waiting if row["time_ms"] <= until_ms]
        if taken:
            self.waiting = [row for row in self.waiting if row["time_ms"] > until_ms]
        return taken


@dataclass(slots=True)
class SegmentWriter:
    """Writes the lines appended under `<run>/history/_raw` into parts. Call `read` and `emit` regularly."""

    run_dir: Path
    watermark_ms: float = field(default=float("-inf"), init=False)
    rows: int = field(default=0, init=False)
    segments: int = field(default=0, init=False)
    _writers: dict[Process, _Writer] = field(default_factory=dict, init=False)
    _axis: LiveAxis = field(default_factory=LiveAxis, init=False)

    @property
    def changed_ms(self) -> float:
        return max((writer.changed_ms for writer in self._writers.values()), default=float("-inf"))

    def read(self, clock_ms: float, now_s: float) -> float:
        """Read the lines appended since the last call. Returns the run time up to which all rows have been read.
        `clock_ms` is the run's time and `now_s` the machine's time, both taken before this call. Raises OSError."""
        self._read(now_s)
        return max(self.watermark_ms, min(self._known_until_ms(now_s), clock_ms))

    def emit(self, until_ms: float, thin_after_ms: float = float("inf")) -> Path | None:
        """Write the rows up to `until_ms` into the next part. After `thin_after_ms` only one `timer_lag` row per
        process and minute is written."""
        rows = [row for writer in self._writers.values() for row in writer.take(until_ms)]
        self.watermark_ms = max(self.watermark_ms, until_ms)
        if not rows:
            return None
        rows = thinned(rows, thin_after_ms)
        path = write_part(self.run_dir, self.segments, rows)
        for writer in self._writers.values():
            writer.delete_read_out()
        self.segments += 1
        self.rows += len(rows)
        return path

    def _read(self, now_s: float) -> None:
        for path in sorted(raw_dir(self.run_dir).glob("*.jsonl"), key=number_of):
            process = process_of(path)
            if process not in self._writers:
                tells = process[0] in (HARNESS, CLOCKS)
                self._writers[process] = _Writer(path, grew_s=now_s, axis=self._axis, tells=tells)
        for writer in sorted(self._writers.values(), key=lambda writer: not writer.tells):
            writer.read(now_s)

    def _known_until_ms(self, now_s: float) -> float:
        """Return the moment up to which every process waited for has written all its rows; infinity without any."""
        newest: dict[str, int] = {}
        for node, incarnation in self._writers:
            newest[node] = max(incarnation, newest.get(node, 0))
        return min(
            (
                writer.last_ms
                for (node, incarnation), writer in self._writers.items()
                if not writer.tells and incarnation == newest[node] and now_s - writer.grew_s < IDLE_S
            ),
            default=float("inf"),
        )


def thinned(rows: list[Row], after_ms: float) -> list[Row]:
    """Return all rows, but after `after_ms` only one `timer_lag` row per process and minute of RocketMQ time. The kept
    row has the largest lag, and its `duration_ms` covers the rows that it replaces. Used long after the last change,
    when checks need only the largest lateness.
    """
    found: list[Row] = []
    of_minute: dict[tuple[str, int, int], Row] = {}
    for row in rows:
        if row["event"] != "timer_lag" or row["time_ms"] <= after_ms:
            found.append(row)
            continue
        key = (row["node"], row["incarnation"], int(row["time_ms"] // 60_000))
        before = of_minute.get(key)
        if before is None:
            of_minute[key] = dict(row)
        else:  # the later row's place in time and order
            lag_ms, duration_ms = max(before["lag_ms"], row["lag_ms"]), before["duration_ms"] + row["duration_ms"]
            of_minute[key] = {**row, "lag_ms": lag_ms, "duration_ms": duration_ms}
    return found + list(of_minute.values())
