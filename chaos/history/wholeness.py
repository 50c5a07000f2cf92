"""Finds gaps in the rows of each process, and makes a `rows_missing` row for each gap.

    seq of ns-0.0    0 1 2 3 │ 7 8 9          4 to 6 are missing: what ns-0 did between rows 3 and 7 is unknown
                     0 1 2 3 │ … run_end      a process that measures its timers' lateness wrote no more, and
                                              nobody ended it: its last rows are missing

Each process numbers its rows from 0 (recorder.py), so a lost row leaves a gap. The incomplete last row of a killed
process is no gap. Rows of imported histories have no numbers.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from .host_clocks import HARNESS
from .schema import Row

SILENT_ROWS = 60
"""Number of periodic lateness rows that a living process never leaves out."""


_TELLING = ("run_begin", "run_end", "fault", "stopped")


class RecordedProcess(NamedTuple):
    """The rows of one process."""

    node: str
    incarnation: int
    rows: int
    last_seq: int
    last_ms: float

    @property
    def is_whole(self) -> bool:
        return self.rows == self.last_seq + 1


class Gap(NamedTuple):
    """Missing rows between two rows that exist. `since_ms` is None if a process's first rows are missing."""

    rows: int
    since_ms: float | None
    until_ms: float


def missing_of_table(table: pa.Table) -> list[Row]:
    numbered = table.select(["node", "incarnation", "seq", "time_ms"])
    sums = [("seq", "count"), ("seq", "max"), ("time_ms", "max")]
    counted = numbered.group_by(["node", "incarnation"]).aggregate(sums).sort_by([("node", "ascending")])

    def gaps_of(one: RecordedProcess) -> list[Gap]:
        of_process = pc.and_(pc.equal(table["node"], one.node), pc.equal(table["incarnation"], one.incarnation))
        rows = numbered.filter(of_process)
        return gaps(sorted(zip(rows["seq"].to_pylist(), rows["time_ms"].to_pylist(), strict=True)))

    order = ("node", "incarnation", "seq_count", "seq_max", "time_ms_max")
    processes = sorted(RecordedProcess(*(row[name] for name in order)) for row in counted.to_pylist())
    return missing(processes, gaps_of, table)


def _steps_ms(table: pa.Table) -> dict[str, float]:
    """Return each node's median time between two `timer_lag` rows, in milliseconds."""
    lags = table.filter(pc.and_(pc.equal(table["event"], "timer_lag"), pc.greater(table["duration_ms"], 0.0)))
    listed = lags.group_by("node").aggregate([("duration_ms", "list")]).to_pylist()
    return {row["node"]: median(row["duration_ms_list"]) for row in listed}


def gaps(seqs: Sequence[tuple[int, float]]) -> list[Gap]:
    """Return where `seq` numbers of one process are missing. `seqs` has the `seq` and time of each row, in order of
    `seq`."""
    found = []
    before, since_ms = -1, None
    for seq, time_ms in seqs:
        if seq > before + 1:
            found.append(Gap(seq - before - 1, since_ms, time_ms))
        before, since_ms = seq, time_ms
    return found


def missing(
    processes: Sequence[RecordedProcess], gaps_of: Callable[[RecordedProcess], Iterable[Gap]], table: pa.Table
) -> list[Row]:
    """Return the `rows_missing` rows of these processes; empty for an imported history. `table` can lack the rows of
    traffic events, but no others."""
    rows = table.filter(pc.is_in(table["event"], value_set=pa.array(_TELLING))).to_pylist()
    steps_ms = _steps_ms(table)
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
