"""Rows of a history: read from lines, put into an Arrow table in order, written and read as Parquet."""

import itertools
import logging
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .schema import ORDER, SCHEMA, Column, Row, arrow_schema, arrow_type, parquet_path

log = logging.getLogger("nemesrv.history")


def _cell(value: object, type_: str) -> object:
    if value is None:
        return None
    try:
        if type_ == "string":
            return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
        if type_ == "double":
            return float(value)  # type: ignore[arg-type]
        return int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        log.warning("a history cell %r is no %s and is left empty", value, type_)
        return None


def _json_text(value: object) -> str | None:
    return None if value is None else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _array(column: Column, cells: Sequence[object]) -> pa.Array:
    if column.name == "value":
        return pa.array([_json_text(cell) for cell in cells], pa.string())
    type_ = arrow_type(column)
    try:
        return pa.array(cells, type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return pa.array([_cell(cell, column.type) for cell in cells], type_)


def to_table(rows: Sequence[Row]) -> pa.Table:
    """Return rows (`value` is an object) as an Arrow table in the history's schema and order: time_ms, node, seq."""
    # Rows with the same keys are turned into columns together: most columns are null in most rows, and a look at each
    # cell of each row costs more than all the rest of a merge.
    alike: dict[tuple[str, ...], list[Iterable[object]]] = {}
    positions: dict[tuple[str, ...], list[int]] = {}
    for position, row in enumerate(rows):
        keys = tuple(row)
        if keys not in alike:
            alike[keys], positions[keys] = [], []
        alike[keys].append(row.values())
        positions[keys].append(position)
    table = pa.concat_tables(
        [_columns(dict(zip(keys, zip(*cells, strict=True), strict=True)), len(cells)) for keys, cells in alike.items()]
        or [arrow_schema().empty_table()]
    )
    given = np.fromiter(itertools.chain.from_iterable(positions.values()), np.int64, len(rows))
    keyed = table.select(ORDER).append_column("given", pa.array(given))
    order = pc.sort_indices(keyed, sort_keys=[*ASCENDING, ("given", "ascending")])
    return table.take(order).combine_chunks()


ASCENDING = [(name, "ascending") for name in ORDER]


def _columns(cells: Mapping[str, Sequence[object]], count: int) -> pa.Table:
    arrays = [
        _array(column, cells[column.name]) if column.name in cells else pa.nulls(count, arrow_type(column))
        for column in SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=arrow_schema())


def write_parquet(rows: Sequence[Row], run_dir: Path | str) -> Path:
    """Write `rows` as the run's history, in place of the old one; never half a file."""
    return write_table(to_table(rows), run_dir)


def write_table(table: pa.Table, run_dir: Path | str) -> Path:
    path = write_whole(table, parquet_path(run_dir))
    for old in path.parent.glob("part-*.parquet"):
        if old != path:  # of a large history that was here before
            old.unlink()
    return path


def write_whole(table: pa.Table, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    pq.write_table(table, temporary, compression="zstd")
    os.replace(temporary, path)
    return path


def read_rows(run_dir: Path | str, events: Collection[str] | None = None) -> list[Row]:
    """Return a small run's history, or its rows of these events, as dicts in order, with `value` decoded."""
    return rows_in(sorted(parquet_path(run_dir).parent.glob("part-*.parquet")) or [parquet_path(run_dir)], events)


def table_in(files: Iterable[Path], events: Collection[str] | None = None) -> pa.Table:
    wanted = None if events is None else pc.field("event").isin(sorted(events))
    # A folder named NAME=VALUE makes no column.
    read = [pq.read_table(file, schema=arrow_schema(), partitioning=None, filters=wanted) for file in files]
    table = pa.concat_tables(read)
    times = table["time_ms"].to_numpy()
    if (times[1:] < times[:-1]).any():
        table = table.sort_by(ASCENDING)
    return table


def rows_in(files: Iterable[Path], events: Collection[str] | None = None) -> list[Row]:
    """Return the rows of these Parquet files as dicts, with `value` decoded."""
    rows: list[Row] = table_in(files, events).to_pylist()
    for row in rows:
        if row["value"] is not None:
            row["value"] = orjson.loads(row["value"])
    return rows
