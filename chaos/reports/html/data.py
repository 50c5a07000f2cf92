"""What the report reads of a history: column by column, in one pass, so that a million events take seconds.

    part-*.parquet ──► batches of columns ──┬─► Traffic: sends, tries, pulls as numpy arrays (a million rows)
                                            ├─► Routes, Lags: likewise what NameServers held, how late timers were
                                            └─► notable: the rest that a person may want to read, as dicts, thinned

No Spark and no list of a million dicts. Of the notable rows at most NOTABLE_MAX of an event are kept, first and last of
each slice of time, so that nothing that changed goes unseen; `left_out` says how many were not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...history.schema import SCHEMA

NOTABLE_MAX = 4000
"""How many rows of one event are kept to be read."""

_TRAFFIC = ("send", "send_attempt", "pull")
_WORLD = ("run_begin", "run_end", "node", "phase", "fault", "gone", "started", "stopped", "host_clock", "rows_missing")
"""As large as the scenario: never thinned."""
_NOTABLE: tuple[str, ...] = (
    *("verified", "broker_dropped", "boot", "topic", "name_server_chosen", "route_changed", "assigned", "channel"),
    *("queue_taken", "queue_dropped"),
    *("registration", "register", "name_server_call", *_TRAFFIC),
)
_FINE_CODES = (0, 17, 19, 20, 21, 25)
"""Answers that are no failure: done, no such topic (yet), nothing to pull, retry the pull, offset moved, newest
subscription not there yet."""
_READ = [column.name for column in SCHEMA if column.name not in ("broker_id", "offset")]
_DETAILS = ("time_ms", "node", "type", "op_id", "msg_key", "broker_name", "queue_id", "code", "duration_ms")
"""What a point says of its send."""
_TEXTS = ["node", "role", "event", "type", "f", "topic", "broker_name", "address", "name_server", "fault_id", "fault"]
_TEXTS += ["injection", "source", "target", "stream", "phase"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Sends, their tries and pulls, one element a row, in order of time."""

    time_ms: Array
    event: Array
    """0 send, 1 send_attempt, 2 pull"""
    outcome: Array
    """0 invoke, 1 ok, 2 fail, 3 info"""
    node: Array
    broker: Array
    duration_ms: Array
    answered: Array
    """Whether the peer answered with a code that is no failure, so that `info` means no trouble."""
    row: Array
    """Which row of the history it is."""
    nodes: tuple[str, ...]
    brokers: tuple[str, ...]

    def where(self, event: str, *outcomes: str) -> Array:
        """A mask of the rows of this event that ended so."""
        mask: Array = self.event == _TRAFFIC.index(event)
        if outcomes:
            mask &= np.isin(self.outcome, [_OUTCOMES.index(outcome) for outcome in outcomes])
        return mask


_OUTCOMES = ("invoke", "ok", "fail", "info")


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteColumns:
    """The `route` rows: which topic's route named which brokers, from when on, at which NameServer process."""

    time_ms: Array
    node: Array
    incarnation: Array
    topic: Array
    value: Array
    nodes: tuple[str, ...]
    topics: tuple[str, ...]
    brokers_of: tuple[frozenset[str], ...]
    """The brokers of each value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lags:
    """The `timer_lag` rows: in [time - duration, time] the timers of this node were at most this late."""

    time_ms: Array
    duration_ms: Array
    lag_ms: Array
    node: Array
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One run's history, as far as the report needs it."""

    events: int
    timeline_ms: float
    """Where the scenario's timeline starts, in the history's time; all times here count from there."""
    last_ms: float
    world_rows: list[dict[str, Any]]
    notable: list[dict[str, Any]]
    left_out: Mapping[str, int]
    """Event → how many notable rows of it were not kept."""
    traffic: Traffic
    routes: RouteColumns
    lags: Lags
    counts: Mapping[str, int] = field(default_factory=dict)
    """Event → rows."""


def history_files(run_dir: Path) -> list[Path]:
    """The Parquet files of the run, in order; hidden and underscored folders are not part of a history."""
    top = run_dir / "history"
    files = sorted(top.rglob("*.parquet"))
    return [path for path in files if not any(part[0] in "._" for part in path.relative_to(top).parts)]


def read(run_dir: Path) -> Recorded:
    """The history of `run_dir`; an empty one when nothing was recorded."""
    return _Reader().read(history_files(run_dir))


def send_details(run_dir: Path, rows: Array) -> dict[int, dict[str, Any]]:
    """Row number → columns _DETAILS, of the rows asked for. Reads one batch at a time."""
    found: dict[int, dict[str, Any]] = {}
    wanted = np.unique(rows)
    for first, batch in batches(history_files(run_dir), _DETAILS):
        here = wanted[(wanted >= first) & (wanted < first + batch.num_rows)]
        if len(here):
            taken = batch.take(pa.array(here - first)).to_pylist()
            found.update(zip(here.tolist(), taken, strict=True))
    return found


def batches(files: list[Path], columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    first = 0
    for path in files:
        with pq.ParquetFile(path, read_dictionary=_TEXTS) as file:
            for batch in file.iter_batches(batch_size=131_072, columns=list(columns)):
                yield first, batch
                first += batch.num_rows


class _Reader:
    """Gathers the columns, batch by batch."""

    def __init__(self) -> None:
        self.node, self.broker, self.event, self.topic, self.value = Codes(), Codes(), Codes(), Codes(), Codes()
        self.traffic: list[tuple[Array, ...]] = []
        self.routes: list[tuple[Array, ...]] = []
        self.lags: list[tuple[Array, ...]] = []
        self.kept: dict[str, list[pa.RecordBatch]] = {}
        self.counts: dict[str, int] = {}
        self.last_ms = 0.0

    def read(self, files: list[Path]) -> Recorded:
        events = 0
        for first, batch in batches(files, _READ):
            events += batch.num_rows
            if batch.num_rows:
                self._take(first, batch)
        world = sorted((row for name in _WORLD for row in self._rows(name)), key=_order)
        steady = (row["time_ms"] for row in world if row["event"] == "phase" and row["phase"] == "steady")
        timeline_ms = float(next(steady, 0.0))
        notable, left_out = self._notable()
        for row in (*world, *notable):
            row["time_ms"] -= timeline_ms
        return Recorded(
            events=events,
            timeline_ms=timeline_ms,
            last_ms=self.last_ms - timeline_ms,
            world_rows=world,
            notable=notable,
            left_out=left_out,
            traffic=self._traffic(timeline_ms),
            routes=self._routes(timeline_ms),
            lags=self._lags(timeline_ms),
            counts=self.counts,
        )

    def _take(self, first: int, batch: pa.RecordBatch) -> None:
        time_ms, event = numbers(batch["time_ms"], "f8"), self.event.encode(batch["event"])
        names = self.event.names()
        for code, count in zip(*np.unique(event, return_counts=True), strict=True):
            self.counts[names[code]] = self.counts.get(names[code], 0) + int(count)
        self.last_ms = max(self.last_ms, float(time_ms.max()))
        columns = {name: batch[name] for name in ("node", "broker_name", "topic", "value", "type")}
        node = self.node.encode(columns["node"])
        rows = np.arange(first, first + batch.num_rows)
        duration_ms = numbers(batch["duration_ms"], "f4")
        type_ = Codes()
        outcome = type_.encode(columns["type"])
        outcome = translate(outcome, type_, _OUTCOMES)
        kind = translate(event, self.event, _TRAFFIC)
        here = kind >= 0
        if here.any():
            broker = self.broker.encode(columns["broker_name"])
            answered = np.isin(numbers(batch["code"], "i8"), _FINE_CODES)
            picked = (time_ms, kind.astype("i1"), outcome.astype("i1"), node, broker, duration_ms, answered, rows)
            self.traffic.append(tuple(column[here] for column in picked))
        here = np.isin(event, self.event.of("route"))
        if here.any():
            some = batch.filter(pa.array(here))
            route = (self.topic.encode(some["topic"]), self.value.encode(some["value"]))
            self.routes.append((time_ms[here], node[here], numbers(some["incarnation"], "i4"), *route))
        here = np.isin(event, self.event.of("timer_lag"))
        if here.any():
            self.lags.append((time_ms[here], duration_ms[here], numbers(batch["lag_ms"], "f4")[here], node[here]))
        self._keep(batch, event, outcome)

    def _keep(self, batch: pa.RecordBatch, event: Array, outcome: Array) -> None:
        code = numbers(batch["code"], "i8")
        failed = (outcome >= 2) & ~np.isin(code, _FINE_CODES)
        for name in (*_WORLD, *_NOTABLE):
            here = np.isin(event, self.event.of(name))
            if name in ("register", "name_server_call", *_TRAFFIC):
                here &= failed
            elif name == "registration":
                here &= code > 0
            elif name == "name_server_chosen":  # a prober's thousand starts are no changes
                here &= ~np.isin(self.node.encode(batch["node"]), self.node.of("prober"))
            if here.any():
                self.kept.setdefault(name, []).append(batch.filter(pa.array(here)))

    def _rows(self, name: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [row for batch in self.kept.get(name, ()) for row in batch.to_pylist()]
        return rows

    def _notable(self) -> tuple[list[dict[str, Any]], dict[str, int]]:
        rows: list[dict[str, Any]] = []
        left_out: dict[str, int] = {}
        for name in _NOTABLE:
            batches = self.kept.get(name, [])
            total = sum(batch.num_rows for batch in batches)
            if total > NOTABLE_MAX:
                table = pa.Table.from_batches([_plain(batch) for batch in batches])
                picked = spread(table["time_ms"].to_numpy(), NOTABLE_MAX)
                rows += table.take(pa.array(picked)).to_pylist()
                left_out[name] = total - len(picked)
            else:
                rows += self._rows(name)
        return sorted(rows, key=_order), left_out

    def _traffic(self, timeline_ms: float) -> Traffic:
        columns = joined(self.traffic, "f8 i1 i1 i4 i4 f4 ? i8")
        time_ms, event, outcome, node, broker, duration_ms, answered, row = columns
        return Traffic(
            time_ms=time_ms - timeline_ms,
            event=event,
            outcome=outcome,
            node=node,
            broker=broker,
            duration_ms=duration_ms,
            answered=answered,
            row=row,
            nodes=self.node.names(),
            brokers=self.broker.names(),
        )

    def _routes(self, timeline_ms: float) -> RouteColumns:
        time_ms, node, incarnation, topic, value = joined(self.routes, "f8 i4 i4 i4 i4")
        return RouteColumns(
            time_ms=time_ms - timeline_ms,
            node=node,
            incarnation=incarnation,
            topic=topic,
            value=value,
            nodes=self.node.names(),
            topics=self.topic.names(),
            brokers_of=tuple(_brokers(text) for text in self.value.names()),
        )

    def _lags(self, timeline_ms: float) -> Lags:
        time_ms, duration_ms, lag_ms, node = joined(self.lags, "f8 f4 f4 i4")
        names = self.node.names()
        return Lags(time_ms=time_ms - timeline_ms, duration_ms=duration_ms, lag_ms=lag_ms, node=node, nodes=names)


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without dictionaries, since those of different batches differ."""
    columns = [pc.cast(column, pa.string()) if pa.types.is_dictionary(column.type) else column for column in batch]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _brokers(value: str) -> frozenset[str]:
    try:
        route = orjson.loads(value)
    except orjson.JSONDecodeError:
        return frozenset()
    if not isinstance(route, dict):
        return frozenset()
    return frozenset(
        name if id_ == "0" else f"{name}/{id_}"
        for name, ids in (route.get("brokers") or {}).items()
        for id_ in (ids if isinstance(ids, dict) and ids else ("0",))
    )


def _order(row: Mapping[str, Any]) -> tuple[float, str, int, int]:
    return row["time_ms"], row["node"], row["incarnation"], row["seq"]


# -- columns of a million rows as numpy arrays, without a Python object a row: texts as small numbers, slices of time.
#
# Every batch of a Parquet file brings its own dictionary; `Codes` gives a text the same number in all of them.

Array = npt.NDArray[Any]

NONE = -1
"""The code of a null."""


class Codes:
    """Numbers for the texts of one column, in the order in which they were first seen."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def encode(self, column: pa.Array) -> Array:
        """The column's codes as int32, nulls as NONE."""
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        known = self._codes
        table = np.array([known.setdefault(text, len(known)) for text in column.dictionary.to_pylist()] or [NONE], "i4")
        indices: Array = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.where(indices < 0, NONE, table[indices]).astype("i4")

    def of(self, *texts: str) -> list[int]:
        """The codes of those texts that were seen."""
        return [self._codes[text] for text in texts if text in self._codes]

    def names(self) -> tuple[str, ...]:
        """The text of each code."""
        return tuple(self._codes)


def numbers(column: pa.Array, dtype: str) -> Array:
    """A column of numbers as an array; nulls are NaN, or -1 where `dtype` is of integers."""
    filler = -1 if np.dtype(dtype).kind == "i" else float("nan")
    found: Array = column.fill_null(filler).to_numpy(zero_copy_only=False)
    return found.astype(dtype)


def spread(time_ms: Array, most: int) -> Array:
    """Indices of at most `most` of these times: the first and the last of each of most / 2 slices of time."""
    slices = max(most // 2, 1)
    span_ms = max(float(time_ms.max() - time_ms.min()), 1e-9)
    slice_of = np.minimum(((time_ms - time_ms.min()) / span_ms * slices).astype("i8"), slices - 1)
    order = np.lexsort((np.arange(len(time_ms)), time_ms, slice_of))
    sorted_slices = slice_of[order]
    first = np.flatnonzero(np.diff(sorted_slices, prepend=-1))
    last = np.append(first[1:], len(order)) - 1
    picked: Array = np.unique(order[np.concatenate((first, last))])
    return picked


def translate(codes: Array, known: Codes, names: tuple[str, ...]) -> Array:
    """Codes of `known` as positions in `names`; -1 for others."""
    table = np.full(len(known.names()) + 1, -1, "i4")  # its last element answers NONE
    for position, name in enumerate(names):
        for code in known.of(name):
            table[code] = position
    translated: Array = table[codes]
    return translated


def joined(parts: list[tuple[Array, ...]], dtypes: str) -> list[Array]:
    """The parts one behind the other, in order of their first column; empty columns when there are none."""
    if not parts:
        return [np.empty(0, dtype) for dtype in dtypes.split()]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    if (np.diff(columns[0]) < 0).any():
        order = np.argsort(columns[0], kind="stable")
        columns = [column[order] for column in columns]
    return columns
