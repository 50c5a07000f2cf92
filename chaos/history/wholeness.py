"""Whether a history is whole: a `rows_missing` row for each stretch of a process's rows that is not there.

    seq of ns-0.0    0 1 2 3 │ 7 8 9          4 to 6 are missing: nobody knows what ns-0 did between rows 3 and 7
                     0 1 2 3 │ … run_end      nothing more of a process that measures its timers' lateness and that
                                              nobody ended: its last rows are missing

Each process numbers its rows from 0 (recorder.py), so a row that was lost, deleted or torn in mid-file leaves a gap.
The last row of a process that was killed may be torn: that is no gap. An import's rows have no such numbers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import orjson

from .host_clocks import HARNESS
from .schema import Row

SILENT_ROWS = 60
"""So many rows of its timers' lateness, which come at even distances, a living process does not leave out."""


class Process(NamedTuple):
    """What is there of one process's rows."""

    node: str
    incarnation: int
    rows: int
    last_seq: int
    last_ms: float

    @property
    def is_whole(self) -> bool:
        return self.rows == self.last_seq + 1


class Gap(NamedTuple):
    """Rows that are not there, between the two that are. `since_ms` None: before the first."""

    rows: int
    since_ms: float | None
    until_ms: float


def missing_of_rows(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The `rows_missing` rows of a history that is in memory."""
    known: dict[tuple[str, int], list[tuple[int, float]]] = defaultdict(list)
    for row in rows:
        known[row["node"], row["incarnation"]].append((row["seq"], row["time_ms"]))
    processes = [
        Process(node, incarnation, len(found), *max(found)) for (node, incarnation), found in sorted(known.items())
    ]
    lags: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["event"] == "timer_lag" and row.get("duration_ms"):
            lags[row["node"]].append(row["duration_ms"])
    steps_ms = {node: median(found) for node, found in lags.items()}
    return missing(processes, lambda one: gaps(sorted(known[one.node, one.incarnation])), rows, steps_ms)


def gaps(seqs: Sequence[tuple[int, float]]) -> list[Gap]:
    """Between rows of one process, each its `seq` and its time, in order."""
    found = []
    before, since_ms = -1, None
    for seq, time_ms in seqs:
        if seq > before + 1:
            found.append(Gap(seq - before - 1, since_ms, time_ms))
        before, since_ms = seq, time_ms
    return found


def missing(
    processes: Sequence[Process],
    gaps_of: Callable[[Process], Iterable[Gap]],
    rows: Sequence[Mapping[str, Any]],
    steps_ms: Mapping[str, float],
) -> list[Row]:
    """The `rows_missing` rows of these processes; none of an import.

    `rows`: at least the harness's, and `stopped`. `steps_ms`: node to the distance of its `timer_lag` rows.
    """
    of_harness = [row for row in rows if row["node"] == HARNESS]
    if any(_is_of_an_import(row["value"]) for row in of_harness if row["event"] == "run_begin"):
        return []
    nodes = sorted({one.node for one in processes} - {HARNESS})
    found = []
    for one in processes:
        concerned = nodes if one.node == HARNESS else [one.node]
        for gap in () if one.is_whole else gaps_of(one):
            found += [_row(node, gap, _between(one.node, gap)) for node in concerned]
    end_ms = min((row["time_ms"] for row in of_harness if row["event"] == "run_end"), default=-math.inf)
    latest = {one.node: one for one in sorted(processes, key=lambda one: one.incarnation)}
    ended = {row["source"] for row in of_harness if row["event"] == "fault" and row.get("target") is None}
    stopped = {(row["node"], row["incarnation"]) for row in rows if row["event"] == "stopped"}  # as a client under test
    for node, last in latest.items():
        if (
            node not in ended
            and (node, last.incarnation) not in stopped
            and end_ms - last.last_ms > SILENT_ROWS * steps_ms.get(node, math.inf)
        ):
            gap = Gap(0, last.last_ms, end_ms)
            found.append(_row(node, gap, f"the last rows of {node} are missing, from {_s(last.last_ms)} s on"))
    return found


def _is_of_an_import(value: object) -> bool:
    begun = orjson.loads(value) if isinstance(value, str) else value
    return isinstance(begun, dict) and bool(begun.get("imported"))


def _between(node: str, gap: Gap) -> str:
    rows, are = ("row", "is") if gap.rows == 1 else ("rows", "are")
    since = "the run's beginning" if gap.since_ms is None else f"{_s(gap.since_ms)} s"
    return f"{gap.rows:,} {rows} of {node} {are} missing between {since} and {_s(gap.until_ms)} s"


def _s(time_ms: float) -> str:
    return f"{time_ms / 1000:.1f}"


def _row(node: str, gap: Gap, says: str) -> Row:
    value = {"since_ms": gap.since_ms, "until_ms": gap.until_ms, "says": says, "reaches": True}
    stamped = {"time_ms": gap.until_ms, "seq": 0, "node": HARNESS, "role": HARNESS, "incarnation": 0}
    return {**stamped, "event": "rows_missing", "source": node, "value": value}
