"""Logs read without Spark: for tests, and for a small folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..logs.frames import log_files, opened
from ..logs.lines import event_of, record_of
from .line import SERVERS_ZONE_MS, Line

_SETTING = re.compile(r"([A-Za-z][\w.]*)=(.*)")


def plain_lines(places: Sequence[Path | str]) -> Iterator[Line]:
    """Every understood line of the logs in these folders and files."""
    for path, name in log_files(*places):
        yield from lines_of_file(path, name)


def lines_of_file(path: str, name: str) -> Iterator[Line]:
    """Every understood line of a log, called by this name."""
    with opened(path) as lines:
        for number, text in enumerate(lines, 1):
            if (line := _line(name, number, text)) is not None:
                yield line


def _line(name: str, number: int, text: str) -> Line | None:
    record = record_of(text)
    if record is None:
        return None
    found = event_of(record.text)
    if found is None and record.thread == "main":
        setting = _SETTING.fullmatch(record.text.rstrip("\r\n"))
        found = None if setting is None else ("setting", {"key": setting[1], "value": setting[2]})
    if found is None:
        return None
    try:
        stamp = datetime.fromisoformat(record.stamp.replace(",", ".").replace("T", " ")).replace(tzinfo=UTC)
    except ValueError:
        return None
    digits = 1 if len(record.stamp) > 19 else 1000
    zone = SERVERS_ZONE_MS if record.is_servers else None
    writer = "java-server" if record.is_servers and digits == 1000 else "java-client"
    return Line(name, "", number, stamp.timestamp() * 1000, digits, zone, record.thread, writer, *found)
