"""Logs read without Spark: for tests, and for a small folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...chaos.logs.reading import FileRead, read_plain
from .line import FileAbout, Line, zone_ms_of


def plain_lines(places: Sequence[Path | str]) -> list[Line]:
    """Every understood line of the logs in these folders and files that has a time."""
    return [line for line in lines_of_rows(read_plain(places).rows) if line.is_whole]


def plain_logs(places: Sequence[Path | str]) -> tuple[list[Line], list[FileAbout], list[str]]:
    """The lines, what became of each file, and a sentence for each that could not be read whole."""
    read = read_plain(places)
    lines = [line for line in lines_of_rows(read.rows) if line.is_whole]
    return lines, [about_of(one) for one in read.files], list(read.notes)


def lines_of_rows(rows: Any) -> Iterator[Line]:
    """The rows of chaos/logs as lines; those without a time are none."""
    for row in rows:
        if row.outer_ms is not None:  # a container's own stamp is in UTC
            yield Line(
                row.file,
                row.prefix or "",
                row.line,
                float(row.outer_ms),
                1,
                0,
                row.thread or "",
                row.writer,
                row.event,
                row.fields,
            )
        elif row.stamp_ms is not None:
            yield Line(
                row.file,
                row.prefix or "",
                row.line,
                float(row.stamp_ms),
                row.resolution_ms,
                zone_ms_of(row.zone),
                row.thread or "",
                row.writer,
                row.event,
                row.fields,
            )


def about_of(one: FileRead) -> FileAbout:
    """What became of its lines."""
    return FileAbout(one.file, one.writer or "unknown", one.lines, one.understood, one.not_understood, one.continued)
