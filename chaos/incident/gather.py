"""Logs to the driver: Spark reads and understands them, in parallel; only lines that a history is made of come here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..logs.frames import log_files
from .line import FileAbout, Line
from .plain import lines_of_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Gathered(NamedTuple):
    lines: list[Line]
    files: list[FileAbout]
    notes: list[str]
    shapes: list[tuple[int, str]]
    """What was not understood, the commonest first."""


def gather(spark: SparkSession, places: Sequence[Path | str]) -> Gathered:
    """The lines that matter of all logs there, one task a file."""
    files = log_files(*places)
    if not files:
        return Gathered([], [], [], [])
    rows = spark.sparkContext.parallelize(files, len(files)).flatMap(lambda file: map(tuple, lines_of_file(*file)))
    return Gathered([Line._make(row) for row in rows.collect()], [], [], [])
