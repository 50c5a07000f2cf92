"""Large histories as files: row groups of one event each, and raw recordings merged slice by slice into such files.

    _raw/*.jsonl ─ read side by side, in order of time ─► SLICE_ROWS rows ─► part-00000.parquet: a row group an event
                                                          the next ones ─► part-00001.parquet …

A query of some events reads only their row groups, for the statistics of the others exclude it. Within a row group rows
are in order of time, node, seq, and the parts follow each other in time. Memory is one slice, about 2 kB a row.
"""

from __future__ import annotations

import heapq
import logging
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from .one_axis import Axis
from .rows import Merged, read_raw, to_table
from .schema import Row, arrow_schema, parquet_path, raw_dir

log = logging.getLogger("nemesrv.history")

SLICE_ROWS = 400_000
_HARDLY_REPEAT = ("time_ms", "seq", "op_id", "msg_key", "offset", "duration_ms", "lag_ms")
"""Columns for which a dictionary is no gain."""


def clustered_writer(path: Path) -> pq.ParquetWriter:
    """A writer for large histories: quick to write, quick to read, statistics for every column."""
    dictionary = [field.name for field in arrow_schema() if field.name not in _HARDLY_REPEAT]
    return pq.ParquetWriter(path, arrow_schema(), compression="snappy", use_dictionary=dictionary)


def write_clustered(slices: Iterable[Iterable[pa.Table]], history: Path) -> int:
    """How many rows were written: a file a slice, a row group a table. Replaces the history that was there.

    Each table is of one event. OSError when the disk refuses; then what was there before is still there.
    """
    written: list[tuple[Path, Path]] = []
    count = 0
    try:
        for number, tables in enumerate(slices):
            path = history / f"part-{number:05d}.parquet"
            written.append((path.with_name(f".{path.name}.tmp"), path))
            with clustered_writer(written[-1][0]) as writer:
                for table in tables:
                    if len(table):
                        writer.write_table(table, row_group_size=len(table))
                        count += len(table)
    except BaseException:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)
        raise
    for old in history.glob("part-*.parquet"):
        old.unlink()
    for temporary, path in written:
        os.replace(temporary, path)
    return count


def merge(run_dir: Path | str, slice_rows: int = SLICE_ROWS, *, axis: Axis | None = None) -> Merged:
    """What every process of the run recorded, as clustered files, in the memory of one slice."""
    torn = [0]
    rows = heapq.merge(*(_readable(path, torn, axis) for path in sorted(raw_dir(run_dir).glob("*.jsonl"))), key=_order)
    path = parquet_path(run_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    count = write_clustered(_slices(rows, slice_rows), path.parent)
    return Merged(path, count, torn[0])


def _order(row: Row) -> tuple[float, str, int, int]:
    return row["time_ms"], row["node"], row["incarnation"], row["seq"]


def _readable(path: Path, torn: list[int], axis: Axis | None) -> Iterator[Row]:
    """The rows of one file; lines that cannot be read are counted in `torn` and skipped."""
    before = torn[0]
    for row in read_raw(path) if axis is None else axis.corrected(path):
        if row is None:
            torn[0] += 1
        else:
            yield row
    if torn[0] > before:
        log.info("%s: torn line(s) skipped", path.name)


def _slices(rows: Iterator[Row], slice_rows: int) -> Iterator[Iterator[pa.Table]]:
    by_event: dict[str, list[Row]] = defaultdict(list)
    waiting = 0
    for row in rows:
        by_event[row["event"]].append(row)
        waiting += 1
        if waiting >= slice_rows:
            yield _tables(by_event)
            by_event, waiting = defaultdict(list), 0
    if waiting:
        yield _tables(by_event)


def _tables(by_event: dict[str, list[Row]]) -> Iterator[pa.Table]:
    for event in sorted(by_event):
        yield to_table(by_event.pop(event))
