"""Logs read without Spark: for tests, and for a small folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..logs.reading import read_plain
from ..logs.stream import LogRow
from .line import Line, zone_ms_of


def plain_lines(places: Sequence[Path | str]) -> Iterator[Line]:
    """Every understood line with a time of the logs in these folders and files."""
    return (line_of(row) for row in read_plain(places).rows if row.stamp_ms is not None)


def line_of(row: LogRow) -> Line:
    """An event of a log, as this room reads it."""
    return Line(
        row.file,
        row.prefix or "",
        row.line,
        float(row.stamp_ms or 0),
        row.resolution_ms,
        zone_ms_of(row.zone),
        row.thread or row.logger or "",
        row.writer,
        row.event,
        row.fields,
    )
