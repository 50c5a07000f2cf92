"""The parts in which the history of a cluster that stays up is kept while it grows, and how they come to one history.

    _raw/ns-0.0.jsonl ──────────── all of it is in parts ─► deleted          the recorder writes on in the next file
    _raw/ns-0.0-000001.jsonl ─┐                                              when one has ROTATE_BYTES
    _raw/harness.0.jsonl ─────┴─ live/segments.py ─► _parts/part-000017.parquet ─┐
          rows after the last part of their process ─────────────────────────────┴─ merge ─► part-00000.parquet …

Spark ignores both folders, because of the underscore. A part is written whole or not at all, and rows of a process come
in its own order, so the highest `seq` of its parts says from where on the raw lines are still needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .clustered import SLICE_ROWS, write_clustered
from .files import Process, part_files, parts_dir, process_of
from .one_axis import Axis
from .rows import Merged, read_raw, to_table
from .schema import Row, arrow_schema, parquet_path, raw_dir

_ORDER = [(name, "ascending") for name in ("time_ms", "node", "incarnation", "seq")]


def write_part(run_dir: Path | str, number: int, rows: list[Row]) -> Path:
    """The next part; never half a file. OSError from the disk."""
    path = parts_dir(run_dir) / f"part-{number:06d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    pq.write_table(to_table(rows), temporary, compression="zstd")
    os.replace(temporary, path)
    return path


def merge(run_dir: Path | str, slice_rows: int = SLICE_ROWS, *, axis: Axis | None = None) -> Merged:
    """The run's history from its parts and what is not in them yet; the parts stay. At most a slice is in memory.

    Up to `slice_rows` rows are one file in order of time; more are clustered files (clustered.py).
    """
    files = part_files(run_dir)
    known = _known(files)
    torn, rest = 0, list[Row]()
    for path in sorted(raw_dir(run_dir).glob("*.jsonl")):
        after = known.get(process_of(path), -1)
        for row in read_raw(path) if axis is None else axis.corrected(path):
            if row is None:
                torn += 1
            elif row["seq"] > after:
                rest.append(row)
    path = parquet_path(run_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    count = sum(pq.ParquetFile(file).metadata.num_rows for file in files) + len(rest)
    tables = _tables(files, to_table(rest))
    if count > slice_rows:
        return Merged(path, write_clustered(_slices(tables, slice_rows), path.parent), torn)
    temporary = path.with_name(f".{path.name}.tmp")
    pq.write_table(pa.concat_tables(tables).sort_by(_ORDER), temporary, compression="zstd")
    for old in path.parent.glob("part-*.parquet"):
        old.unlink()
    os.replace(temporary, path)
    return Merged(path, count, torn)


def discard(run_dir: Path | str) -> None:
    """No part and no raw line is left. Only after `merge`, which has put all of them into the history."""
    for folder in (parts_dir(run_dir), raw_dir(run_dir)):
        for path in folder.glob("*"):
            path.unlink()
        if folder.exists():
            folder.rmdir()


def _known(files: Iterable[Path]) -> dict[Process, int]:
    """The highest `seq` of each process in the parts."""
    found: dict[Process, int] = {}
    for file in files:
        table = pq.read_table(file, columns=["node", "incarnation", "seq"])
        for row in table.group_by(["node", "incarnation"]).aggregate([("seq", "max")]).to_pylist():
            process = (row["node"], row["incarnation"])
            found[process] = max(found.get(process, -1), row["seq_max"])
    return found


def _tables(files: Iterable[Path], rest: pa.Table) -> Iterator[pa.Table]:
    for file in files:
        yield pq.read_table(file, schema=arrow_schema())
    yield rest


def _slices(tables: Iterable[pa.Table], slice_rows: int) -> Iterator[Iterator[pa.Table]]:
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= slice_rows:
            yield _by_event(pa.concat_tables(waiting))
            waiting = []
    if waiting:
        yield _by_event(pa.concat_tables(waiting))


def _by_event(table: pa.Table) -> Iterator[pa.Table]:
    """One table an event, each in order."""
    table = table.sort_by(_ORDER)
    for event in sorted(table.column("event").unique().to_pylist()):
        yield table.filter(pc.equal(table.column("event"), event))
