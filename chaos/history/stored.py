"""A history on this machine: its files, its size and its rows.

    /runs/x, file:///runs/x      a run folder, its history/, any folder of Parquet files, or one such file

If the run ended before it merged its recordings, they are merged first.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ..arrow import pa, pq
from ..errors import ScenarioError
from .files import part_files
from .schema import SCHEMA, Row, parquet_path, raw_dir

SMALL_BYTES = 8 * 1024 * 1024
"""A history up to this size (about 400,000 events) is small: Spark judges it in one partition, without a shuffle, and a
report is drawn."""

_PHYSICAL = {"string": "BYTE_ARRAY", "long": "INT64", "int": "INT32", "double": "DOUBLE"}
"""Parquet's names for the types of a history's columns."""


def local_path(where: Path | str) -> Path | None:
    if isinstance(where, Path):
        return where
    parts = urlsplit(where)
    if parts.scheme in ("", "file") or len(parts.scheme) == 1:
        return Path(unquote(parts.path)) if parts.scheme == "file" else Path(where)
    return None


def local_size(where: Path | str) -> int | None:
    """Return the size of a history on this machine in bytes, merged or not; None for a history elsewhere."""
    path = local_path(where)
    if path is None:
        return None
    found = parquet_files(path)
    return sum(file.stat().st_size for file in found or (*part_files(path), *raw_dir(path).glob("*.jsonl")))


def parquet_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    history = parquet_path(path).parent
    return sorted((history if history.is_dir() else path).glob("[!._]*.parquet"))


def merged_files(path: Path) -> list[Path]:
    """Return the history's Parquet files, after merging if necessary. HarnessError if nothing was recorded, and
    ScenarioError for a file that is no history's."""
    from .merge import to_parquet

    if not parquet_files(path):
        to_parquet(path)
    files = parquet_files(path)
    refuse_unreadable(files)
    return files


def refuse_unreadable(files: Sequence[Path]) -> None:
    """Raise ScenarioError for a broken Parquet file, or one with other columns than a history's."""
    for file in files:
        try:
            with pq.ParquetFile(file) as opened:
                physical = {each.name: each.physical_type for each in opened.schema}
                logical = {field.name: field.type for field in opened.schema_arrow}
        except (pa.ArrowInvalid, OSError) as exc:
            raise ScenarioError(str(file), "", "", "a whole Parquet file; this one is cut off, or is none") from exc
        for column in SCHEMA:
            if column.name not in physical and not column.nullable:
                raise ScenarioError(str(file), column.name, "", "a column that each row has; here is none")
            if physical.get(column.name, _PHYSICAL[column.type]) != _PHYSICAL[column.type]:
                raise ScenarioError(str(file), column.name, str(logical[column.name]), f"{column.type} in each row")


def row_count(path: Path) -> int:
    return sum(pq.read_metadata(file).num_rows for file in merged_files(path))


def rows_of(path: Path, events: Collection[str] | None = None) -> list[Row]:
    """Return the rows of the history, or of these events, in order, with all columns and `value` decoded."""
    from .rows import rows_in

    return rows_in(merged_files(path), events)
