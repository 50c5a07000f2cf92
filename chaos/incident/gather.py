"""Logs to the driver: Spark reads and understands them, in parallel; only lines that a history is made of come here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..logs.reading import FileRead, read_logs
from ..logs.stream import LogRow
from .line import FileAbout, Line
from .plain import line_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FIELDS = LogRow._fields.index("fields")


class Gathered(NamedTuple):
    lines: list[Line]
    files: list[FileAbout]
    notes: list[str]
    shapes: list[tuple[int, str]]
    """What was not understood, the commonest first."""


def gather(spark: SparkSession, places: Sequence[Path | str]) -> Gathered:
    """The lines with a time of all logs there, by file and number. LogError where no log is."""
    logs = read_logs(spark, places)
    try:
        events = logs.events.where("stamp_ms IS NOT NULL").orderBy("file", "line")
        columns = (column.to_pylist() for column in events.toArrow().columns)
        rows = (LogRow(*row)._replace(fields=dict(row[FIELDS])) for row in zip(*columns, strict=True))
        lines = [line_of(row) for row in rows]
    finally:
        logs.close()
    shapes: Counter[str] = Counter()
    for file in logs.files:
        shapes.update({shape: count for count, shape in file.shapes})
    return Gathered(lines, list(map(_about, logs.files)), logs.notes, [(n, shape) for shape, n in shapes.most_common()])


def _about(file: FileRead) -> FileAbout:
    counts = (file.lines, file.understood, file.not_understood, file.continued)
    return FileAbout(file.file, file.writer or "unknown", *counts)
