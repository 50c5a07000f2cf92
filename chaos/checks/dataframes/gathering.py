"""What the checks gather from one history: its control rows, collected in one job, and the DataFrame for the rest.

Beside them how many rows each process has, and where some are not there (history/wholeness.py).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ...history.schema import Group, named
from ...history.wholeness import Gap, Process, missing
from ...oracle.recorded import LONG_LAG_MS
from ...oracle.world import ENVIRONMENT_EVENTS, World
from ..record.control import Control, Row, order
from ..record.lateness import Lateness

if TYPE_CHECKING:
    import pyarrow as pa

    from ...oracle.windows import Timers


T = TypeVar("T")

_NEVER_COLLECTED = named(Group.TRAFFIC, Group.ANSWERS)
"""As many as messages or calls, if only in a wrong run: counted by Spark."""


@dataclass(slots=True, eq=False)
class Gathering:
    """One history as the checks see it."""

    history: DataFrame
    """Every row; what reads traffic reads it here."""
    control: Control
    _memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    _making: dict[Hashable, Lock] = field(default_factory=lambda: defaultdict(Lock), repr=False)

    def memoized(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, made once for all checks that ask for `key`; who asks meanwhile waits for it."""
        with self._making[key]:
            if key not in self._memo:
                self._memo[key] = make()
            found: T = self._memo[key]
        return found


def gather(
    history: DataFrame, timers: Timers | None = None, *, is_whole_history: bool = False
) -> tuple[Gathering, World]:
    """The history's control facts, and the World that they tell of: one Spark job, and one more where no row says that
    the run has ended. `timers` None: those of `run_begin`. Of a whole history, rows that are not there are missed."""
    table = history.where(~F.col("event").isin(*_NEVER_COLLECTED)).select(*Row._fields).toArrow()
    lags, rows = _split(table)
    environment = [row._asdict() for event in ENVIRONMENT_EVENTS for row in rows.get(event, ())]
    if is_whole_history:
        environment += missing(processes_of(history), partial(gaps_of, history), environment, _steps_ms(table))
    last_ms = None
    if not any(row["event"] == "run_end" or row["phase"] == "end" for row in environment if row["event"] != "fault"):
        last_ms = history.agg(F.max("time_ms")).collect()[0][0]
    world = World.of_rows([*environment, *_long_lags(table)], timers, last_ms=last_ms)
    by_event = {event: sorted(found, key=order) for event, found in rows.items()}
    return Gathering(history, Control(by_event, lags)), world


def _long_lags(table: pa.Table) -> list[dict[str, Any]]:
    """The `timer_lag` rows that may tell of a process that stood still."""
    import pyarrow.compute as pc

    lags = table.filter(pc.equal(table["event"], "timer_lag"))
    found: list[dict[str, Any]] = lags.filter(pc.greater_equal(lags["lag_ms"], LONG_LAG_MS)).to_pylist()
    return found


def _steps_ms(table: pa.Table) -> dict[str, float]:
    """Node to the median distance of its `timer_lag` rows."""
    import pyarrow.compute as pc

    lags = table.filter(pc.equal(table["event"], "timer_lag")).group_by("node")
    steps = lags.aggregate([("duration_ms", "approximate_median")]).to_pylist()
    return {row["node"]: row["duration_ms_approximate_median"] or math.inf for row in steps}


def _split(table: pa.Table) -> tuple[Lateness, dict[str, list[Row]]]:
    """The measured lateness, kept as columns because it is most of all rows; and the other rows by event."""
    import pyarrow.compute as pc

    is_lag = pc.equal(table["event"], "timer_lag")
    measured = table.filter(pc.and_(is_lag, pc.is_valid(table["lag_ms"])))
    until = measured["time_ms"].to_numpy()
    covered = pc.fill_null(measured["duration_ms"], 0.0).to_numpy()
    lateness = Lateness.of_columns(
        measured["node"].to_pylist(), until - covered, until, measured["lag_ms"].to_numpy().astype(np.float64)
    )
    others = table.filter(pc.invert(is_lag))
    rows: dict[str, list[Row]] = defaultdict(list)
    # Column by column: an object a row of 29 fields, most of them empty, would take three times as long.
    for row in map(Row._make, zip(*(_values(others[name]) for name in Row._fields), strict=True)):
        rows[row.event].append(row)
    return lateness, rows


def _values(column: pa.ChunkedArray) -> Sequence[Any]:
    """The column as Python's values; equal texts are one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return [None] * len(column)
    if not pa.types.is_string(column.type):
        found: list[Any] = column.to_pylist()
        return found
    encoded = pc.dictionary_encode(column).combine_chunks()
    texts = [*encoded.dictionary.to_pylist(), None]
    return [texts[at] for at in pc.fill_null(encoded.indices, -1).to_pylist()]


def processes_of(history: DataFrame) -> list[Process]:
    """Each process's rows, counted."""
    counted = history.groupBy("node", "incarnation").agg(
        F.count("*").alias("rows"), F.max("seq").alias("last_seq"), F.max_by("time_ms", "seq").alias("last_ms")
    )
    return [Process(*row) for row in counted.orderBy("node", "incarnation").collect()]


def gaps_of(history: DataFrame, process: Process) -> list[Gap]:
    """Where rows of the process are not there."""
    of_process = history.where((F.col("node") == process.node) & (F.col("incarnation") == process.incarnation))
    in_order = Window.orderBy("seq")
    before = F.coalesce(F.lag("seq").over(in_order), F.lit(-1))
    numbered = of_process.select(
        (F.col("seq") - before - 1).alias("rows"), F.lag("time_ms").over(in_order).alias("since_ms"), "time_ms", "seq"
    )
    found = numbered.where("rows > 0").orderBy("seq").select("rows", "since_ms", "time_ms")
    return [Gap(*row) for row in found.collect()]
