"""What nodes wrote into their logs with WARNING or worse, as events of the time line.

A line says the machine's time, or on the virtual clock that of the node; `origin_wall_ms` of the run's beginning is
what both count from. Without it nobody knows when a line was written, and none is shown.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LINES_MAX = 300
"""Of one node, the last: a node that is in trouble says so again and again."""
TEXT_MAX = 200
BYTES_MAX = 8_000_000
"""Of one file, its end."""
_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) (WARNING|ERROR|CRITICAL) (?:nemesrv\.)?[^:]*: (.*)")


def log_rows(run_dir: Path, run: dict[str, Any], timeline_ms: float) -> list[dict[str, Any]]:
    """One row a line, with the columns of an event: node, event `log`, type the level, value the text."""
    origin_ms, virtual = run.get("origin_wall_ms"), run.get("clock") == "virtual"
    if not isinstance(origin_ms, int | float):
        return []
    scale = 1.0 if virtual else float(run.get("time_scale") or 1.0)
    found: list[dict[str, Any]] = []
    for path in sorted((run_dir / "logs").glob("*.log")):
        lines: deque[dict[str, Any]] = deque(maxlen=LINES_MAX)
        for at_ms, level, text in _lines(path, virtual):
            time_ms = (at_ms - origin_ms) * scale - timeline_ms
            value = text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"
            lines.append({"time_ms": time_ms, "node": path.stem, "event": "log", "type": level, "value": value})
        found += lines
    return found


def _lines(path: Path, virtual: bool) -> Iterator[tuple[float, str, str]]:
    """(milliseconds since 1970, level, text) of each line with WARNING or worse. The virtual clock writes UTC."""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - BYTES_MAX, 0))
        for line in file:
            found = _LINE.match(line.decode("utf-8", "replace"))
            if found:
                at = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S")
                at = at.replace(tzinfo=UTC) if virtual else at.astimezone()
                yield at.timestamp() * 1000 + int(found[2]), found[3], found[4].rstrip()
