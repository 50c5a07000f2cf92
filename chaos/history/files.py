"""Names and lines of a growing history's files: each process's raw files, and the parts that merge.py writes."""

from collections.abc import Iterator
from pathlib import Path

import orjson

from ...remoting.node.file_names import file_name, of_file_name
from .schema import STAMPED, Row

ROTATE_BYTES = 1_000_000
"""A rotating recorder continues in a new file after so many bytes."""
Process = tuple[str, int]
"""Node and incarnation."""


def parts_dir(run_dir: Path | str) -> Path:
    return Path(run_dir) / "history" / "_parts"


def part_files(run_dir: Path | str) -> list[Path]:
    """Return the part files of a growing history, in order of time."""
    return sorted(parts_dir(run_dir).glob("part-*.parquet"))


def process_of(raw: Path) -> Process:
    """Return the process of a raw file, by its name: NODE.INCARNATION.jsonl, or NODE.INCARNATION-NUMBER.jsonl."""
    node, _, rest = raw.stem.rpartition(".")
    return of_file_name(node), int(rest.partition("-")[0])


def raw_name(node: str, incarnation: int) -> str:
    return f"{file_name(node)}.{incarnation}.jsonl"


def number_of(raw: Path) -> int:
    """Return the raw file's number: 0 for the first file of a process, plus 1 per rotation."""
    return int(raw.stem.rpartition(".")[2].partition("-")[2] or 0)


def rotated(first: Path, number: int) -> Path:
    """Return the path of a process's raw file with this number; `first` is the process's first file."""
    return first.with_name(f"{first.stem}-{number:06d}.jsonl") if number else first


def read_raw(path: Path) -> Iterator[Row | None]:
    """Return each line of a JSONL file as a row; None for an incomplete line."""
    with path.open("rb") as file:
        for line in file:
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                yield None
                continue
            complete = isinstance(row, dict) and STAMPED.issubset(row)
            yield row if complete else None
