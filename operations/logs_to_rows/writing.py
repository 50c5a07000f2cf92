"""Makes history rows from log lines. Each row has the time and place of its log line. Pure: no I/O."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from ...chaos.history.schema import Row
from .line import Line
from .sources import Source

BARE = frozenset({"route", "route_changed", "route_answer", "name_server_list"})
"""Events whose value is only a route or a list; their source is in the column `source`."""
_MOST = 5_000


class Rows:
    """The history rows of an import. Times are UTC milliseconds; `on_axis` returns times since the history's begin."""

    def __init__(self) -> None:
        self.made: list[Row] = []
        self.incarnations: dict[str, int] = defaultdict(int)

    def put(
        self,
        at_ms: float,
        node: str,
        role: str,
        event: str,
        line: Line | None = None,
        *,
        learnt: str = "log",
        value: Any = None,
        **fields: Any,
    ) -> None:
        row: Row = {"time_ms": at_ms, "node": node, "role": role, "event": event}
        row["incarnation"] = self.incarnations[node]
        row |= {name: said for name, said in fields.items() if said is not None}
        if event in BARE:
            row["value"] = value
            if line is not None:
                row["source"] = f"{line.file}:{line.line}"
        else:
            said = dict(value or {})
            if line is not None:
                said |= {"learnt": learnt, "file": line.file, "line": line.line}
            elif role != "harness":
                said["learnt"] = learnt
            row["value"] = said
        self.made.append(row)

    def put_line(self, source: Source, role: str, line: Line, event: str, **fields: Any) -> None:
        """Add the row that a line of this log makes."""
        self.put(source.wall_ms(line), source.name, role, event, line, **fields)

    def on_axis(self, origin_ms: float) -> list[Row]:
        """Return the rows in order, with times since `origin_ms`; `seq` counts from 0 in each process of a node."""
        ordered = sorted(self.made, key=lambda row: float(row["time_ms"]))
        return numbered({**row, "time_ms": max(row["time_ms"] - origin_ms, 0.0)} for row in ordered)


def numbered(rows: Iterable[Row]) -> list[Row]:
    """Return the rows in order of time, `run_end` last. `seq` counts from 0 in each process of a node."""
    counts: dict[tuple[str, int], int] = defaultdict(int)
    found = []
    for row in sorted(rows, key=lambda row: (row["time_ms"], row["event"] == "run_end")):
        process = row["node"], row["incarnation"]
        found.append({**row, "seq": counts[process]})
        counts[process] += 1
    return found


def lag_rows(rows: Rows, source: Source, role: str, last_ms: float) -> None:
    """Write a `timer_lag` row a minute (fewer for a very long log), which says how wrong the log's times can be."""
    if not source.lines:
        return
    resolution = max(line.resolution_ms for line in source.lines[:1000])
    lag_ms = (float(resolution) if resolution > 1 else 0.0) + (source.bound_ms if source.offset_ms else 0.0)
    walls = [source.wall_ms(line) for line in (source.lines[0], source.lines[-1])]
    from_ms, to_ms = walls[0] - resolution, max(walls[1], last_ms)
    each_ms = max(60_000.0, (to_ms - from_ms) / _MOST)
    for number in range(int((to_ms - from_ms) // each_ms) + 1):
        end_ms = min(from_ms + (number + 1) * each_ms, to_ms + resolution)
        rows.put(end_ms, source.name, role, "timer_lag", lag_ms=lag_ms, duration_ms=each_ms, learnt="inferred")
