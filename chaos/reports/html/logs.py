"""What nodes wrote into their logs: with WARNING or worse as events of the time line, all around one moment.

A line says the machine's time, or on the virtual clock that of the node; `origin_wall_ms` of the run's beginning is
what both count from. Without it nobody knows when a line was written, and none is shown.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from ....remoting.node.file_names import file_name, of_file_name

LINES_MAX = 300
"""Of one node, the last: a node that is in trouble says so again and again."""
TEXT_MAX = 200
BYTES_MAX = 8_000_000
"""Of one file, its end."""
NEAR_MS = 2000.0
"""Lines as near to a moment as this, in RocketMQ time, are shown beside it,"""
NEAR_MAX = 8
"""and of more these, the nearest."""
_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) ([A-Z]+) (?:nemesrv\.)?[^:]*: (.*)")
_GRAVE = ("WARNING", "ERROR", "CRITICAL")


class LogLine(NamedTuple):
    """One line of a node's log; the time in the timeline's axis."""

    time_ms: float
    level: str
    text: str


def log_rows(run_dir: Path, run: dict[str, Any], timeline_ms: float) -> list[dict[str, Any]]:
    """One row a line, with the columns of an event: node, event `log`, type the level, value the text."""
    found: list[dict[str, Any]] = []
    for path in sorted((run_dir / "logs").glob("*.log")):
        lines: deque[dict[str, Any]] = deque(maxlen=LINES_MAX)
        for line in _lines(path, run, timeline_ms, _GRAVE):
            about = {"time_ms": line.time_ms, "node": of_file_name(path.stem), "event": "log", "type": line.level}
            lines.append(about | {"value": _short(line.text)})
        found += lines
    return found


def lines_of(run_dir: Path, node: str, run: dict[str, Any], timeline_ms: float) -> list[LogLine]:
    """All lines of the node's log, as far as its end goes; none where there is no such file."""
    path = run_dir / "logs" / f"{file_name(node)}.log"
    return list(_lines(path, run, timeline_ms)) if path.is_file() else []


def near(lines: list[LogLine], at_ms: float) -> list[str]:
    """What the node wrote around a moment, a text a line."""
    close = [line for line in lines if abs(line.time_ms - at_ms) <= NEAR_MS]
    nearest = sorted(close, key=lambda line: abs(line.time_ms - at_ms))[:NEAR_MAX]
    return [f"{line.time_ms / 1000:.3f} s {line.level} {_short(line.text)}" for line in close if line in nearest]


def _short(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


def _lines(
    path: Path, run: dict[str, Any], timeline_ms: float, levels: Collection[str] | None = None
) -> Iterator[LogLine]:
    """The lines of these levels, or all. The virtual clock writes UTC."""
    origin_ms, virtual = run.get("origin_wall_ms"), run.get("clock") == "virtual"
    if not isinstance(origin_ms, int | float):
        return
    scale = 1.0 if virtual else float(run.get("time_scale") or 1.0)
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - BYTES_MAX, 0))
        for line in file:
            found = _LINE.match(line.decode("utf-8", "replace"))
            if found and (levels is None or found[3] in levels):
                at = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S")
                at = at.replace(tzinfo=UTC) if virtual else at.astimezone()
                at_ms = at.timestamp() * 1000 + int(found[2])
                yield LogLine((at_ms - origin_ms) * scale - timeline_ms, found[3], found[4].rstrip())
