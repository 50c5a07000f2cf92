"""How late the machine was, and what that allows: the tolerance is measured, not guessed.

Each node records how late its own timers fired (`timer_lag`), and the harness how late Toxiproxy is, through which all
bytes go. For each window of a check the largest lateness of the nodes concerned and of Toxiproxy, times the timers that
stand one behind the other in the window's formula, is added to the bound:

    overshoot ≤ delivery + min(lateness, cap)   fine
    overshoot ≤ delivery + lateness             UNKNOWN: the machine may have been the cause
    beyond                                      INVALID

A process that a fault ends measures nothing any more: how long it took to be gone (`gone`) counts as its lateness.
Rows of a node that was paused are no measure of the machine: they are left out, up to one second past its resume.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..oracle.windows import Timers
from ..oracle.world import World

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RESUME_GRACE_MS = 1000.0
DYING_MS = 1000.0
PROXIES = "toxiproxy"
"""The node whose lateness concerns everybody: every byte goes through it (chaos/faults/proxy_lag.py)."""
UNLIMITED_MS = 1e15
"""Stands for "any lateness" in DataFrames, where infinity is awkward."""


class LagWindow(NamedTuple):
    """Ask for the lateness of `node` in [from_ms, to_ms]; answers are joined by `id`."""

    id: int
    node: str
    from_ms: float
    to_ms: float


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far past its bound a window may be. `lag_ms` None: no node concerned measured its lateness."""

    lag_ms: float | None
    timers: int
    delivery_ms: float
    cap_ms: float

    @property
    def lateness_ms(self) -> float:
        return UNLIMITED_MS if self.lag_ms is None else self.lag_ms * self.timers

    @property
    def valid_up_to_ms(self) -> float:
        """Up to here the overshoot is fine."""
        lateness_ms = 0.0 if self.lag_ms is None else self.lateness_ms
        return self.delivery_ms + min(lateness_ms, self.cap_ms)

    @property
    def unknown_up_to_ms(self) -> float:
        """Up to here the machine's lateness may explain the overshoot; never less than `valid_up_to_ms`."""
        return self.delivery_ms + self.lateness_ms


def frame(history: DataFrame, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    """A small table of this check, to be broadcast. `schema` as in SQL: `id int, node string`.

    Written as VALUES, because that is planned as a local relation: no Python objects, no partitions. Thousands of rows
    are one JSON text instead, for a parser takes its time over each literal.
    """
    from pyspark.sql import functions as F

    return F.broadcast(_table(history, rows, schema))


def table(history: DataFrame, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    """The same, to be joined by equality to rows in one partition: without the job that each broadcast is."""
    return _table(history, rows, schema).coalesce(1).hint("shuffle_hash")


def _table(history: DataFrame, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    if len(rows) > _LITERALS_MAX:
        return _from_json(history, rows, schema)
    columns = [column.split() for column in schema.split(",")]
    shown = rows or [(None,) * len(columns)]
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in shown)
    cast = ", ".join(f"CAST({name} AS {type_}) AS {name}" for name, type_ in columns)
    query = f"SELECT {cast} FROM VALUES {values} AS t({', '.join(name for name, _ in columns)})"
    return history.sparkSession.sql(query if rows else f"{query} WHERE false")


def looked_up(key: str, values: Mapping[str, float]) -> str:
    """SQL: what `values` have for the text `key` is, null for nothing. For a few values, instead of a join."""
    pairs = ", ".join(f"{_literal(name)}, {_literal(float(value))}" for name, value in values.items())
    return f"map({pairs})[{key}]" if values else "CAST(NULL AS double)"


_LITERALS_MAX = 200


def _from_json(history: DataFrame, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    names = [column.split()[0] for column in schema.split(",")]
    finite = [
        {name: _finite(value) for name, value in zip(names, row, strict=True) if value is not None} for row in rows
    ]
    text = _literal(json.dumps(finite))
    typed = f"array<struct<{', '.join(':'.join(column.split()) for column in schema.split(','))}>>"
    return history.sparkSession.sql(f"SELECT inline(from_json({text}, '{typed}'))")


def _finite(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return UNLIMITED_MS if value > 0 else -UNLIMITED_MS
    return value


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isinf(value):
            value = UNLIMITED_MS if value > 0 else -UNLIMITED_MS
        return f"{value!r}D"
    if isinstance(value, int):
        return str(value)
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def measure(history: DataFrame, world: World, windows: Iterable[LagWindow]) -> dict[int, float]:
    """id → largest lateness in RocketMQ milliseconds; an id without any measurement is missing."""
    asked: dict[tuple[str, float, float], list[int]] = defaultdict(list)
    for window in windows:  # those of one change are mostly the same, whoever asks
        asked[window.node, window.from_ms, window.to_ms].append(window.id)
    if not asked:
        return {}
    _, late = world.memoized(("lateness", id(history)), lambda: (history, _Lateness.read(history, world)))
    spans = [*asked]
    dying = {number: found for number, span in enumerate(spans) if (found := _ends(world, *span))}
    unknown = dict.fromkeys(
        (node.name, *end) for ends in dying.values() for end, took in ends if took is None for node in world.nodes
    )
    wanted = [*spans, *unknown]
    latest = _latest(history, world, wanted) if late is None else late.latest(wanted)
    anybody: dict[_Moment, float] = defaultdict(float)
    for number, (_, from_ms, to_ms) in enumerate(unknown, len(spans)):
        anybody[from_ms, to_ms] = max(anybody[from_ms, to_ms], latest.get(number, 0.0))
    largest: dict[int, float] = {}
    for number, ids in enumerate(asked.values()):
        if number in latest:  # what nobody measured at the node itself is not measured
            lag_ms = max(latest[number], latest.get(-1 - number, 0.0))
            for end, took_ms in dying.get(number, ()):
                lag_ms = max(lag_ms, anybody[end] if took_ms is None else took_ms)
            for id_ in ids:
                largest[id_] = max(largest.get(id_, lag_ms), lag_ms)
    return largest


_Span = tuple[str, float, float]
"""Node, from, to."""
_Moment = tuple[float, float]


def _ends(world: World, node: str, from_ms: float, to_ms: float) -> list[tuple[_Moment, float | None]]:
    """How long the processes of the node that a fault ended in that time took to be gone, connections and all.

    A dying process measures nothing. None where nobody recorded it: then the latest of all nodes in the second that
    followed stands for it.
    """
    return [
        ((fault.start_ms, fault.start_ms + DYING_MS), None if fault.gone_ms is None else fault.gone_ms - fault.start_ms)
        for fault in world.process_faults(node)
        if fault.ends_process and from_ms <= fault.start_ms <= to_ms
    ]


MEASUREMENTS_MAX = 200_000
"""So many measurements (twenty nodes for forty minutes) are read once for all windows of all checks; of more, Spark
picks what each check asks for."""


@dataclass(frozen=True, slots=True)
class _Lateness:
    """All measurements of a history by node: since, until, lag_ms."""

    of_node: Mapping[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]]

    @classmethod
    def read(cls, history: DataFrame, world: World) -> _Lateness | None:
        """None when there are too many to hold."""
        from pyspark.sql import functions as F

        found = (
            _measurements(history)
            .limit(MEASUREMENTS_MAX + 1)
            .groupBy("node")
            .agg(*(F.collect_list(name).alias(name) for name in ("since", "until", "lag_ms")))
            .collect()
        )
        if sum(len(row["lag_ms"]) for row in found) > MEASUREMENTS_MAX:
            return None
        pauses = _pauses(world)
        of_node = {}
        for node, *columns in found:
            since, until, lag_ms = (np.array(column, dtype=np.float64) for column in columns)
            counts = np.full(len(lag_ms), True)
            for source, from_ms, to_ms in pauses:
                if source == node:
                    counts &= ~((since < to_ms) & (until > from_ms))
            of_node[node] = since[counts], until[counts], lag_ms[counts]
        return cls(of_node)

    def latest(self, spans: Sequence[_Span]) -> dict[int, float]:
        """As `_latest`."""
        found: dict[int, float] = {}
        for number, (node, from_ms, to_ms) in enumerate(spans):
            for id_, source in ((number, node), (-1 - number, PROXIES)):
                if source in self.of_node:
                    since, until, lag_ms = self.of_node[source]
                    within = lag_ms[(since <= to_ms) & (until >= from_ms)]
                    if len(within):
                        found[id_] = float(within.max())
        return found


def _pauses(world: World) -> list[_Span]:
    return [(fault.source, fault.start_ms, fault.end_ms + RESUME_GRACE_MS) for fault in world.pauses()]


def _measurements(history: DataFrame) -> DataFrame:
    """node, lag_ms, until, since: every measurement."""
    from pyspark.sql import functions as F

    return history.where("event = 'timer_lag' AND lag_ms IS NOT NULL").select(
        "node",
        "lag_ms",
        F.col("time_ms").alias("until"),
        F.expr("time_ms - coalesce(duration_ms, 0)").alias("since"),
    )


def _latest(history: DataFrame, world: World, spans: Sequence[_Span]) -> dict[int, float]:
    """Place of the span → the largest lateness of its node in it; -1 - place → that of Toxiproxy."""
    from pyspark.sql import functions as F

    lags, pauses = _measurements(history), _pauses(world)
    if pauses:
        paused = frame(history, pauses, "p_node string, p_from double, p_to double")
        during = (
            (F.col("node") == F.col("p_node")) & (F.col("since") < F.col("p_to")) & (F.col("until") > F.col("p_from"))
        )
        lags = lags.join(paused, during, "left_anti")
    rows = [(number, *span) for number, span in enumerate(spans)]
    rows += [(-1 - number, PROXIES, from_ms, to_ms) for number, (_, from_ms, to_ms) in enumerate(spans)]
    wanted = frame(history, rows, "id int, w_node string, w_from double, w_to double")
    within = (
        (F.col("node") == F.col("w_node")) & (F.col("since") <= F.col("w_to")) & (F.col("until") >= F.col("w_from"))
    )
    found = lags.join(wanted, within).groupBy("id").agg(F.max("lag_ms").alias("lag_ms")).collect()
    return {row["id"]: row["lag_ms"] for row in found}


def tolerance(timers: Timers, lag_ms: float | None, chained: int) -> Tolerance:
    """For a window whose formula chains `chained` timers."""
    return Tolerance(lag_ms, chained, timers.delivery_ms, timers.lateness_cap_ms)


def may_time_out(timers: Timers, lag_ms: float | None, patience_ms: float) -> bool:
    """Whether both ends of a healthy pair were together so late that a time-out of `patience_ms` may have run out."""
    return lag_ms is not None and 2 * lag_ms + timers.delivery_ms >= patience_ms


class Missing(NamedTuple):
    """A stretch in which a registration should have been there; the lateness of `nodes` may be why it was not."""

    nodes: Sequence[str]
    from_ms: float
    to_ms: float


def never_registered(history: DataFrame, world: World, missing: Mapping[int, Missing]) -> set[int]:
    """The ids whose stretch the machine explains: time and again it stood still for as long as a registration waits.

    The broker then gives the registration up and closes its channel, and the NameServer rightly drops it. But the next
    one follows within R, so one stall explains no more than R + B + C: a longer stretch needs another one in each.
    """
    timers = world.timers
    period_ms = timers.R_ms + timers.B_ms + timers.C_ms
    windows: list[LagWindow] = []
    of_id: dict[int, list[int]] = {}
    count = 0
    for id_, (nodes, from_ms, to_ms) in missing.items():
        periods = max(1, math.ceil((to_ms - from_ms) / period_ms))
        of_id[id_] = []
        for number in range(periods):
            begin_ms = from_ms + (number - 1) * period_ms
            of_id[id_].append(count)
            windows += [LagWindow(count, node, begin_ms, begin_ms + 2 * period_ms) for node in nodes]
            count += 1
    lags = measure(history, world, windows)
    return {id_ for id_, parts in of_id.items() if all(may_time_out(timers, lags.get(n), timers.B_ms) for n in parts)}
