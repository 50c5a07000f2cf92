"""Merges the rows of a run's processes into a Parquet history, small, large, or already written in parts."""

import heapq
import itertools
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import HarnessError
from .files import Process, part_files, parts_dir, process_of, read_raw
from .host_clocks import Axis, axis_of
from .rows import ASCENDING, to_table, write_table, write_whole
from .schema import Row, arrow_schema, parquet_path, raw_dir, row_order

log = logging.getLogger("nemesrv.history")

IN_MEMORY_BYTES = 256 * 1024 * 1024
"""Raw recordings up to this size (a million events) are merged in memory into one file in order of time."""


def to_parquet(run_dir: Path | str) -> None:
    """Merge a run's raw rows into its Parquet file or files. Raises HarnessError if nothing was recorded. If the raw
    files are larger than IN_MEMORY_BYTES, rows are merged slice by slice, into files with one event per row group.
    Parts of a growing history are merged with the remaining rows. Rows of several hosts get a common time axis.
    """
    axis, files = axis_of(run_dir), sorted(raw_dir(run_dir).glob("*.jsonl"))
    if not files and not part_files(run_dir):
        raise HarnessError(f"{raw_dir(run_dir)} holds no recorded events")
    if not part_files(run_dir) and sum(file.stat().st_size for file in files) > IN_MEMORY_BYTES:
        merge_in_slices(run_dir, axis=axis)
    else:
        merge_parts(run_dir, axis=axis)


# -- large histories as files: row groups of one event each, and raw recordings merged slice by slice into such files.
#
#     _raw/*.jsonl ─ read side by side, in order of time ─► SLICE_ROWS rows ─► part-00000.parquet: a row group an event
#                                                           the next ones ─► part-00001.parquet …
#
# A query of some events reads only their row groups, for the statistics of the others exclude it. Within a row group
# rows are in order of time, node, seq, and the parts follow each other in time. Memory is one slice, about 2 kB a row.

SLICE_ROWS = 400_000

_HARDLY_REPEAT = ("time_ms", "seq", "op_id", "msg_key", "offset", "duration_ms", "lag_ms")
"""Columns for which a dictionary saves nothing."""


def clustered_writer(path: Path) -> pq.ParquetWriter:
    """Return a Parquet writer for large histories: fast, with statistics for every column."""
    dictionary = [field.name for field in arrow_schema() if field.name not in _HARDLY_REPEAT]
    return pq.ParquetWriter(path, arrow_schema(), compression="snappy", use_dictionary=dictionary)


def write_clustered(slices: Iterable[Iterable[pa.Table]], history: Path) -> int:
    """Write one file per slice, and one row group per table. Returns the number of rows. Replaces the old history. Each
    table must have the rows of one event. Raises OSError if the disk refuses; the old history then stays."""
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


def merge_in_slices(run_dir: Path | str, *, axis: Axis | None = None) -> None:
    raw = (_readable(path, axis) for path in sorted(raw_dir(run_dir).glob("*.jsonl")))
    rows = heapq.merge(*raw, key=row_order)
    tables = (to_table(some) for some in iter(lambda: list(itertools.islice(rows, SLICE_ROWS)), []))
    _clustered(tables, run_dir)


def _clustered(tables: Iterable[pa.Table], run_dir: Path | str) -> None:
    path = parquet_path(run_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_clustered(_slices(tables), path.parent)


def _readable(path: Path, axis: Axis | None) -> Iterator[Row]:
    for row in read_raw(path) if axis is None else axis.corrected(path):
        if row is None:
            log.info("%s: a torn line is skipped", path.name)
        else:
            yield row


# -- the parts in which the history of a cluster that stays up is kept while it grows, and how they come to one history.
#
#     _raw/ns-0.0.jsonl ──────────── all of it is in parts ─► deleted          the recorder writes on in the next file
#     _raw/ns-0.0-000001.jsonl ─┐                                              when one has ROTATE_BYTES
#     _raw/harness.0.jsonl ─────┴─ live/segments.py ─► _parts/part-000017.parquet ─┐
#           rows after the last part of their process ─────────────────────────────┴─ merge ─► part-00000.parquet …
#
# Spark ignores both folders, because of the underscore. A part is written whole or not at all, and rows of a process
# come in its own order, so the highest `seq` of its parts says from where on the raw lines are still needed.


def write_part(run_dir: Path | str, number: int, rows: list[Row]) -> Path:
    """Write the next part of a growing history, completely or not at all. Raises OSError."""
    return write_whole(to_table(rows), parts_dir(run_dir) / f"part-{number:06d}.parquet")


def merge_parts(run_dir: Path | str, *, axis: Axis | None = None) -> None:
    """Merge the parts of a growing history and the rows that no part has yet. The parts stay. Memory holds at most one
    slice. Up to SLICE_ROWS rows, and a history without parts, become one file in order of time; more rows become
    clustered files (`write_clustered`)."""
    files = part_files(run_dir)
    known = _known(files)
    rest = [
        row
        for path in sorted(raw_dir(run_dir).glob("*.jsonl"))
        for row in _readable(path, axis)
        if row["seq"] > known.get(process_of(path), -1)
    ]
    tables = itertools.chain((pq.read_table(file, schema=arrow_schema()) for file in files), [to_table(rest)])
    count = sum(pq.ParquetFile(file).metadata.num_rows for file in files) + len(rest)
    if files and count > SLICE_ROWS:
        _clustered(tables, run_dir)
    else:
        whole = pa.concat_tables(tables)
        write_table(whole.sort_by(ASCENDING) if files else whole, run_dir)


def discard(run_dir: Path | str) -> None:
    """Remove a run's parts and raw files. Call `discard` only after `to_parquet`."""
    for folder in (parts_dir(run_dir), raw_dir(run_dir)):
        for path in folder.glob("*"):
            path.unlink()
        if folder.exists():
            folder.rmdir()


def _known(files: Iterable[Path]) -> dict[Process, int]:
    found: dict[Process, int] = {}
    for file in files:
        table = pq.read_table(file, columns=["node", "incarnation", "seq"])
        for row in table.group_by(["node", "incarnation"]).aggregate([("seq", "max")]).to_pylist():
            process = (row["node"], row["incarnation"])
            found[process] = max(found.get(process, -1), row["seq_max"])
    return found


def _slices(tables: Iterable[pa.Table]) -> Iterator[Iterator[pa.Table]]:
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= SLICE_ROWS:
            yield _by_event(pa.concat_tables(waiting))
            waiting = []
    if waiting:
        yield _by_event(pa.concat_tables(waiting))


def _by_event(table: pa.Table) -> Iterator[pa.Table]:
    table = table.sort_by(ASCENDING)
    for event in sorted(table.column("event").unique().to_pylist()):
        yield table.filter(pc.equal(table.column("event"), event))
