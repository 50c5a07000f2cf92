"""The rows of many hosts on one time axis: each row's time is corrected by its host's clock when it is merged.

    _raw/clocks.0.jsonl ── host_clock: each host's offset, again and again ─┐
    _raw/harness.0.jsonl ── node: which node is on which host ──────────────┴─► Axis ─► the rows of ns-2, corrected

The axis is that of the harness's clock. A run of one host has no file of clocks, and its rows stay as they are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from .files import part_files, process_of
from .host_clocks import HostClock, Reading, reading_of
from .rows import read_raw
from .schema import Row, raw_dir

CLOCKS = "clocks"
"""Who records what was measured of the hosts' clocks, with the harness's role."""
HARNESS = "harness"
_RECENT = 240
"""So many readings of a host decide what is known of its clock now."""

Correction = Callable[[float], float]


class Axis:
    """Which node is on which host, and what is known of the hosts' clocks."""

    def __init__(self) -> None:
        self._host_of: dict[str, str] = {}
        self._readings: dict[str, list[Reading]] = defaultdict(list)

    def heed(self, row: Mapping[str, Any]) -> None:
        """Take in what a row says of hosts; `value` may be an object or its JSON text."""
        if row["event"] not in ("node", "host_clock"):
            return
        value = row.get("value") or {}
        value = orjson.loads(value) if isinstance(value, str) else value
        if row["event"] == "host_clock":
            self._readings[str(row["source"])].append(reading_of(value))
        elif value.get("host"):
            self._host_of[str(row["source"])] = str(value["host"])

    def correction_of(self, node: str) -> Correction | None:
        """For the rows of one process of the node, in their order. None: they are right as they are."""
        readings = self._readings.get(self._host_of.get(node, ""))
        return HostClock.of(readings).correction() if readings else None

    def corrected(self, path: Path) -> Iterator[Row | None]:
        """`read_raw`, each row at its time on the one axis."""
        return _corrected(read_raw(path), self.correction_of(process_of(path)[0]))


class LiveAxis(Axis):
    """The same while it is being told: each row is corrected by what is known when it comes, and not again."""

    def __init__(self) -> None:
        super().__init__()
        self._corrections: dict[tuple[str, int], Correction | None] = {}
        self._last: dict[tuple[str, int], tuple[float, float]] = {}
        """Of each process the latest row's time: by its host's clock, and on the axis."""
        self._told = False

    def heed(self, row: Mapping[str, Any]) -> None:
        super().heed(row)
        if row["event"] == "host_clock":
            self._told = True
            self._corrections.clear()
            del self._readings[str(row["source"])][:-_RECENT]

    def correct(self, row: Row) -> None:
        """The row's time is on the one axis."""
        if not self._told:
            return
        process = row["node"], row["incarnation"]
        if process not in self._corrections:
            self._corrections[process] = self.correction_of(row["node"])
        correction = self._corrections[process]
        if correction is None:
            return
        host_ms, (last_host_ms, last_ms) = row["time_ms"], self._last.get(process, (-math.inf, -math.inf))
        row["time_ms"] = correction(host_ms)
        if host_ms >= last_host_ms:  # what was known a moment ago may have put the row before it a little later
            row["time_ms"] = max(row["time_ms"], last_ms)
            self._last[process] = host_ms, row["time_ms"]


def _corrected(rows: Iterable[Row | None], correction: Correction | None) -> Iterator[Row | None]:
    for row in rows:
        if row is not None and correction is not None:
            row["time_ms"] = correction(row["time_ms"])
        yield row


def axis_of(run_dir: Path | str) -> Axis | None:
    """What the run's raw rows and parts say of its hosts. None: it has one host, or nobody measured their clocks."""
    own = [path for path in raw_dir(run_dir).glob("*.jsonl") if process_of(path)[0] == CLOCKS]
    if not own:
        return None
    axis = Axis()
    for row in _of_parts(part_files(run_dir)):
        axis.heed(row)
    for path in (*own, *raw_dir(run_dir).glob(f"{HARNESS}.*.jsonl")):
        for raw in read_raw(path):
            if raw is not None:
                axis.heed(raw)
    return axis


def _of_parts(parts: Iterable[Path]) -> Iterator[Mapping[str, Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    for part in parts:
        table = pq.read_table(part, columns=["event", "source", "value"])
        yield from table.filter(pc.is_in(table["event"], pa.array(["node", "host_clock"]))).to_pylist()
