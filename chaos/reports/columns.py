"""Reads a run's history as columns, so that the report of a million events takes seconds.

    part-*.parquet ──► one Arrow table ──┬─► Traffic: sends, tries, pulls as numpy arrays (a million rows)
                                         └─► notable: other rows that a person may read, as dicts, thinned

At most NOTABLE_MAX (4,000) notable rows of each event are kept: the first and last row of each slice of time.
`left_out` counts the rows that are not kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ..history.schema import SCHEMA, arrow_schema, row_order
from ..history.stored import parquet_files, refuse_unreadable

NOTABLE_MAX = 4000
"""Most rows of one event that are kept."""
Array = npt.NDArray[Any]

_TRAFFIC = ("send", "send_attempt", "pull")
_WORLD = ("run_begin", "run_end", "node", "phase", "fault", "gone", "started", "stopped", "host_clock", "rows_missing")
"""Events that are as rare as the scenario's actions and never thinned."""
_FAILED = ("register", "name_server_call", *_TRAFFIC)
"""Events that are notable if they failed."""
_NOTABLE: tuple[str, ...] = (
    *("broker_dropped", "boot", "topic", "name_server_chosen", "route_changed", "assigned", "channel"),
    *("queue_taken", "queue_dropped", "registration", *_FAILED),
)
_FINE_CODES = (0, 17, 19, 20, 21, 25)
"""Answers that are no failure: success, no such topic (yet), nothing to pull, retry the pull, offset moved, newest
subscription not there yet."""
_READ = [column.name for column in SCHEMA if column.name not in ("broker_id", "msg_id", "offset")]
_TEXTS = ["node", "role", "event", "type", "f", "topic", "broker_name", "address", "name_server", "fault_id", "fault"]
_TEXTS += ["injection", "source", "target", "stream", "phase"]
_SCHEMA = pa.schema(
    [
        pa.field(name, pa.dictionary(pa.int32(), pa.string()) if name in _TEXTS else arrow_schema().field(name).type)
        for name in _READ
    ]
)
_OUTCOMES = ("invoke", "ok", "fail", "info")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Sends, send attempts and pulls, as arrays with one element per row of the history, in order of time."""

    time_ms: Array
    event: Array
    """0 send, 1 send_attempt, 2 pull"""
    outcome: Array
    """0 invoke, 1 ok, 2 fail, 3 info"""
    node: Array
    broker: Array
    duration_ms: Array
    answered: Array
    """Whether the peer answered with a code that is no failure. The outcome `info` of such a row is no trouble."""
    rows: pa.Table
    """All their columns."""
    nodes: tuple[str, ...]
    brokers: tuple[str, ...]

    def where(self, event: str, *outcomes: str) -> Array:
        """Return a boolean mask of the rows that have this event and one of these outcomes (none given: any
        outcome)."""
        mask: Array = self.event == _TRAFFIC.index(event)
        if outcomes:
            mask &= np.isin(self.outcome, [_OUTCOMES.index(outcome) for outcome in outcomes])
        return mask

    def by_pair(self, *outcomes: str, answered: bool = False) -> Mapping[tuple[str, str], Array]:
        """Return by (client, broker) the times at which send attempts and pulls had these outcomes. With `answered`,
        pulls that found no message count, too."""
        mask = (self.where("send_attempt", *outcomes) | self.where("pull", *outcomes)) & (self.broker >= 0)
        if "info" in outcomes:
            mask &= ~(self.answered & (self.event == 2))
        if answered:
            mask |= self.where("pull", "info") & self.answered & (self.broker >= 0)
        time_ms, node, broker = self.time_ms[mask], self.node[mask].astype("i8"), self.broker[mask]
        if not len(time_ms):
            return {}
        width = len(self.brokers)
        pair = node * width + broker
        order = np.argsort(pair, kind="stable")
        keys, first = np.unique(pair[order], return_index=True)
        parts = np.split(time_ms[order], first[1:])
        return {
            (self.nodes[key // width], self.brokers[key % width]): part
            for key, part in zip(keys.tolist(), parts, strict=True)
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The part of one run's history that the report needs."""

    timeline_ms: float
    """Start of the scenario's timeline in the history's time; all times here count from it."""
    last_ms: float
    world_rows: list[dict[str, Any]]
    notable: list[dict[str, Any]]
    left_out: Mapping[str, int]
    """Event to the number of notable rows left out."""
    traffic: Traffic
    table: pa.Table
    """All rows in order of time."""

    def rows_of(self, event: str) -> pa.Table:
        return self.table.filter(pa.array(TextColumn(self.table["event"]).among(event)))


def read(run_dir: Path) -> Recorded:
    """Return the history in the run folder; an empty `Recorded` if nothing was recorded."""
    return _Columns(_table(run_dir)).recorded()


def _table(run_dir: Path) -> pa.Table:
    files = parquet_files(run_dir)
    refuse_unreadable(files)
    read = [pq.read_table(file, columns=_READ, read_dictionary=_TEXTS, partitioning=None) for file in files]
    # Another program's files may say otherwise what may be null.
    table = pa.concat_tables([_SCHEMA.empty_table(), *(one.select(_READ).cast(_SCHEMA) for one in read)])
    time_ms = table["time_ms"].to_numpy()
    return table if (np.diff(time_ms) >= 0).all() else table.take(pa.array(np.argsort(time_ms, kind="stable")))


class TextColumn:
    """A text column stored as numbers: `codes` has each row's number (-1: null), and `names` has the text of each
    number."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        encoded = column.dictionary_encode().combine_chunks()
        self.codes: Array = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype("i4")
        self.names: tuple[str, ...] = tuple(encoded.dictionary.to_pylist())

    def among(self, *texts: str) -> Array:
        """Return a boolean mask of the rows whose text is one of `texts`."""
        return np.isin(self.codes, [at for at, name in enumerate(self.names) if name in texts])

    def places(self, texts: tuple[str, ...]) -> Array:
        """Return for each row the position of its text in `texts`; -1 if the text is not in `texts`."""
        table = np.array([*(texts.index(name) if name in texts else -1 for name in self.names), -1], "i1")
        return table[self.codes]  # its last element answers null


def numbers(column: pa.ChunkedArray, dtype: str) -> Array:
    """Return a column of numbers as an array; a null becomes NaN, or -1 in a column of integers."""
    filler = -1 if np.dtype(dtype).kind == "i" else float("nan")
    found: Array = column.fill_null(filler).to_numpy()
    return found.astype(dtype)


class _Columns:
    """The table's columns, each decoded once."""

    def __init__(self, table: pa.Table) -> None:
        time_ms = numbers(table["time_ms"], "f8")
        self._event, self._node = TextColumn(table["event"]), TextColumn(table["node"])
        steady = time_ms[self._event.among("phase") & TextColumn(table["phase"]).among("steady")]
        self._timeline_ms = float(steady[0]) if len(steady) else 0.0
        self._time_ms: Array = time_ms - self._timeline_ms
        self._table = table.set_column(_READ.index("time_ms"), "time_ms", pa.array(self._time_ms))

    @cached_property
    def _outcome(self) -> Array:
        return TextColumn(self._table["type"]).places(_OUTCOMES)

    @cached_property
    def _code(self) -> Array:
        return numbers(self._table["code"], "i8")

    def recorded(self) -> Recorded:
        world = sorted(self._rows(self._event.among(*_WORLD)), key=row_order)
        notable, left_out = self._notable()
        return Recorded(
            timeline_ms=self._timeline_ms,
            last_ms=float(self._time_ms.max(initial=-self._timeline_ms)),
            world_rows=world,
            notable=notable,
            left_out=left_out,
            traffic=self._traffic(),
            table=self._table,
        )

    def _rows(self, mask: Array) -> list[dict[str, Any]]:
        return self._table.filter(pa.array(mask)).to_pylist()

    def _notable(self) -> tuple[list[dict[str, Any]], dict[str, int]]:
        failed = (self._outcome >= _OUTCOMES.index("fail")) & ~np.isin(self._code, _FINE_CODES)
        rows: list[dict[str, Any]] = []
        left_out: dict[str, int] = {}
        for name in _NOTABLE:
            here = self._event.among(name)
            if name in _FAILED:
                here &= failed
            elif name == "registration":
                here &= self._code > 0
            elif name == "name_server_chosen":  # a prober's thousand starts are no changes
                here &= ~self._node.among("prober")
            places = np.flatnonzero(here)
            if len(places) > NOTABLE_MAX:
                picked = places[spread(self._time_ms[places], NOTABLE_MAX)]
                left_out[name] = len(places) - len(picked)
                places = picked
            rows += self._table.take(pa.array(places)).to_pylist()
        return sorted(rows, key=row_order), left_out

    def _traffic(self) -> Traffic:
        event = self._event.places(_TRAFFIC)
        here = event >= 0
        rows = self._table.filter(pa.array(here))
        broker = TextColumn(rows["broker_name"])
        return Traffic(
            time_ms=self._time_ms[here],
            event=event[here],
            outcome=self._outcome[here],
            node=self._node.codes[here],
            broker=broker.codes,
            duration_ms=numbers(rows["duration_ms"], "f4"),
            answered=np.isin(self._code[here], _FINE_CODES),
            rows=rows,
            nodes=self._node.names,
            brokers=broker.names,
        )


def spread(time_ms: Array, most: int) -> Array:
    """Return the indices of at most `most` times: the first and last time in each of `most` / 2 equal slices."""
    slices = max(most // 2, 1)
    span_ms = max(float(time_ms.max() - time_ms.min()), 1e-9)
    slice_of = np.minimum(((time_ms - time_ms.min()) / span_ms * slices).astype("i8"), slices - 1)
    order = np.lexsort((np.arange(len(time_ms)), time_ms, slice_of))
    sorted_slices = slice_of[order]
    first = np.flatnonzero(np.diff(sorted_slices, prepend=-1))
    last = np.append(first[1:], len(order)) - 1
    return np.unique(order[np.concatenate((first, last))])
