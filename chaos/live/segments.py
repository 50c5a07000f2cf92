"""From the lines that processes append to whole files that Spark can stream: everything up to one common moment.

    ns-0.0.jsonl      ────────┤ last row            watermark = the earliest last row of the writers that still write,
    broker-a.0.jsonl  ──────┤                                   at most now
    broker-a.1.jsonl  ─┤ killed, holds nothing up
    harness.0.jsonl   ┤ idle, holds nothing up      rows up to it ─► segments/segment-000017.parquet, never touched

Each process stamps its rows in order of time and writes at least a `timer_lag` row every 250 ms, so what it has written
is all it has to say up to its last row. One that has not written for IDLE_S is dead, paused or has nothing to say, and
is not waited for; rows of it that are older than the watermark when they come, are in the next segment, and counted as
late. A torn line is skipped, as history.py does. This module reads files and starts nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import orjson
import pyarrow.parquet as pq

from ..history.recorder import to_table
from ..history.schema import Row, raw_dir

IDLE_S = 1.0
"""Of the machine's time."""


def live_dir(run_dir: Path | str) -> Path:
    """What judging a growing history keeps; Spark ignores it beside the history, because of the underscore."""
    return Path(run_dir) / "history" / "_live"


class Segment(NamedTuple):
    path: Path
    rows: int


@dataclass(slots=True)
class _Writer:
    """One file of one process: how far it has been read, and its rows that are younger than the watermark."""

    path: Path
    node: str
    incarnation: int
    offset: int = 0
    partial: bytes = b""
    waiting: list[Row] = field(default_factory=list)
    last_ms: float = float("-inf")
    grew_s: float = float("-inf")

    def read(self, now_s: float) -> int:
        """Take in what was appended; the number of torn lines."""
        size = self.path.stat().st_size
        if size <= self.offset:
            return 0
        with self.path.open("rb") as file:
            file.seek(self.offset)
            data = file.read(size - self.offset)
        self.offset, self.grew_s = self.offset + len(data), now_s
        *lines, self.partial = (self.partial + data).split(b"\n")
        torn = 0
        for line in lines:
            try:
                row = orjson.loads(line)
                self.last_ms = max(self.last_ms, row["time_ms"])
            except (orjson.JSONDecodeError, KeyError, TypeError):
                torn += 1
            else:
                self.waiting.append(row)
        return torn

    def take(self, until_ms: float) -> list[Row]:
        """The rows up to this moment, which are no longer waiting."""
        taken = [row for row in self.waiting if row["time_ms"] <= until_ms]
        if taken:
            self.waiting = [row for row in self.waiting if row["time_ms"] > until_ms]
        return taken


@dataclass(slots=True)
class SegmentWriter:
    """Turns what is appended under `<run>/history/_raw` into segments: `step` now and then, `finish` at the end."""

    run_dir: Path
    unwaited: frozenset[str] = frozenset({"harness"})
    """Nodes whose rows are in the file as soon as they happen: silence means that nothing happened."""
    watermark_ms: float = field(default=float("-inf"), init=False)
    late: int = field(default=0, init=False)
    torn: int = field(default=0, init=False)
    rows: int = field(default=0, init=False)
    segments: int = field(default=0, init=False)
    _writers: dict[str, _Writer] = field(default_factory=dict, init=False)

    @property
    def folder(self) -> Path:
        """Where the segments are; made when missing."""
        path = live_dir(self.run_dir) / "segments"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def step(self, clock_ms: float, now_s: float) -> Segment | None:
        """The next segment, None when there is nothing new up to the watermark.

        `clock_ms` is the run's time and `now_s` the machine's, both taken before this call. OSError from the disk.
        """
        self._read(now_s)
        return self._emit(max(self.watermark_ms, min(self._known_until_ms(now_s), clock_ms)))

    def finish(self) -> Segment | None:
        """Everything that is left; nobody writes any more."""
        self._read(float("inf"))
        return self._emit(float("inf"))

    def _read(self, now_s: float) -> None:
        for path in sorted(raw_dir(self.run_dir).glob("*.jsonl")):
            writer = self._writers.get(path.name)
            if writer is None:
                node, _, incarnation = path.stem.rpartition(".")
                writer = self._writers[path.name] = _Writer(path, node, int(incarnation), grew_s=now_s)
            self.torn += writer.read(now_s)

    def _known_until_ms(self, now_s: float) -> float:
        """Up to when every process that is waited for has said all. Infinity when none is."""
        newest: dict[str, int] = {}
        for writer in self._writers.values():
            newest[writer.node] = max(writer.incarnation, newest.get(writer.node, 0))
        return min(
            (
                writer.last_ms
                for writer in self._writers.values()
                if writer.node not in self.unwaited
                and writer.incarnation == newest[writer.node]
                and now_s - writer.grew_s < IDLE_S
            ),
            default=float("inf"),
        )

    def _emit(self, until_ms: float) -> Segment | None:
        rows = [row for writer in self._writers.values() for row in writer.take(until_ms)]
        self.late += sum(row["time_ms"] <= self.watermark_ms for row in rows)
        self.watermark_ms = until_ms
        if not rows:
            return None
        path = self.folder / f"segment-{self.segments:06d}.parquet"
        temporary = path.with_name(f".{path.name}.tmp")
        pq.write_table(to_table(rows), temporary, compression="zstd")
        os.replace(temporary, path)
        self.segments += 1
        self.rows += len(rows)
        return Segment(path, len(rows))
