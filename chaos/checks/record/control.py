"""The control facts: every row of a history that is no traffic, as plain rows. Most checks are judged by these alone.

What nodes say of tables, registrations, choices and channels is as much as the run is long, not as its messages: some
thousand rows of ten million. Spark picks them out in one job (spark/parts.py); nothing here needs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from ...arrow import np, pa, pc
from ...faults.process_faults import Pause
from ...oracle.intervals import grouped
from ...oracle.recorded import LONG_LAG_MS
from ...oracle.world import ENVIRONMENT_EVENTS, World
from ...oracle.world import once as once
from .lateness import Lateness


class Row(NamedTuple):
    """One event, with the history's columns; `value` is its JSON text."""

    time_ms: float
    seq: int
    node: str
    role: str
    incarnation: int
    event: str
    type: str | None = None
    f: str | None = None
    op_id: str | None = None
    topic: str = ""
    broker_name: str = ""
    broker_id: int | None = None
    address: str = ""
    name_server: str = ""
    queue_id: int = 0
    offset: int = 0
    msg_key: str | None = None
    code: int | None = None
    attempt: int | None = None
    duration_ms: float | None = None
    lag_ms: float | None = None
    fault_id: str | None = None
    fault: str | None = None
    injection: str | None = None
    source: str | None = None
    target: str | None = None
    stream: str | None = None
    phase: str | None = None
    value: str | None = None

    @property
    def began_ms(self) -> float:
        """When what it says of an operation began; its own time where it is no operation's end."""
        return self.time_ms - (self.duration_ms or 0.0)

    @property
    def process(self) -> tuple[str, int]:
        """Which process recorded it: node and incarnation."""
        return self.node, self.incarnation

    @property
    def decoded(self) -> Any:
        """The object that `value` is the text of."""
        return decoded(self.value)

    @property
    def said(self) -> Mapping[str, Any]:
        """The same of a mapping; empty without any."""
        return self.decoded or {}


@lru_cache(maxsize=4096)
def decoded(text: str | None) -> Any:
    """The object that a JSON text says; None for none. Read-only: equal texts share it."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def order(row: Row) -> tuple[float, str, int, int]:
    """The history's order."""
    return row.time_ms, row.node, row.incarnation, row.seq


@dataclass(frozen=True, slots=True, eq=False)
class Control:
    """The rows by event, each in order of time, node, seq; and how late everybody's timers were."""

    by_event: Mapping[str, Sequence[Row]]
    lateness: Lateness
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Control:
        """From rows as recorded, in any order; a `value` may be an object or its JSON text."""
        from ...history.rows import to_table

        told = [dict(row) for row in rows]
        for row in told:
            if isinstance(value := row.get("value"), str):
                row["value"] = json.loads(value)
        return cls.of_table(to_table(told))

    @classmethod
    def of_table(cls, table: pa.Table) -> Control:
        """From rows as columns; of a large history, those that are no traffic."""
        is_lag = pc.equal(table["event"], "timer_lag")
        measured = table.filter(pc.and_(is_lag, pc.is_valid(table["lag_ms"])))
        until_ms = measured["time_ms"].to_numpy()
        since_ms = until_ms - pc.fill_null(measured["duration_ms"], 0.0).to_numpy()
        lag_ms = measured["lag_ms"].to_numpy().astype(np.float64)
        lateness = Lateness.of_columns(measured["node"].to_pylist(), since_ms, until_ms, lag_ms)
        others = table.filter(pc.invert(is_lag))
        # Column by column: an object a row of 29 fields, most of them empty, would take three times as long.
        rows = map(
            Row._make, zip(*(_values(others[name], Row._field_defaults.get(name)) for name in Row._fields), strict=True)
        )
        found = grouped((row.event, row) for row in rows)
        return cls({event: sorted(rows, key=order) for event, rows in found.items()}, lateness)

    def __reduce__(self) -> tuple[Any, ...]:
        return Control, (self.by_event, self.lateness)  # what is memoized, the other process makes again

    def rows(self, *events: str) -> Sequence[Row]:
        """The rows of these events, in the history's order."""
        if len(events) == 1:
            return self.by_event.get(events[0], ())
        return sorted((row for event in events for row in self.by_event.get(event, ())), key=order)

    @once
    def by_process(self, *events: str) -> Mapping[tuple[str, int], Sequence[Row]]:
        """The same by the process that recorded them."""
        return grouped((row.process, row) for row in self.rows(*events))


def told_by(
    table: pa.Table,
    *,
    lost: Iterable[Mapping[str, Any]] = (),
    last_ms: float | None = None,
) -> tuple[Control, World]:
    """The control rows as columns: what the checks see, and the World that they tell of. `lost`: rows that say what is
    not there. `last_ms`: when the last row was."""
    control = Control.of_table(table)
    environment = table.filter(pc.is_in(table["event"], value_set=pa.array(sorted(ENVIRONMENT_EVENTS)))).to_pylist()
    lags = table.filter(pc.equal(table["event"], "timer_lag"))
    paused = sorted({str(row.source) for row in control.rows("fault") if row.injection == Pause.injection})
    world = World.of_rows([*environment, *lost, *_telling(lags, paused)], last_ms=last_ms)
    return replace(control, lateness=control.lateness.with_stalls(world)), world


def _telling(lags: pa.Table, paused: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The `timer_lag` rows of processes that stood still, all of paused nodes, which tell who resumed them, and the
    last row of each process."""
    is_long = pc.greater_equal(lags["lag_ms"], LONG_LAG_MS)
    is_paused = pc.is_in(lags["node"], value_set=pa.array(paused, pa.string()))
    yield from lags.filter(pc.or_(is_long, is_paused)).to_pylist()
    last = lags.sort_by("time_ms").group_by(["node", "incarnation"], use_threads=False)
    for row in last.aggregate([(name, "last") for name in ("time_ms", "duration_ms", "lag_ms")]).to_pylist():
        if (row["lag_ms_last"] or 0.0) < LONG_LAG_MS:
            yield {"event": "timer_lag", **{name.removesuffix("_last"): value for name, value in row.items()}}


def _values(column: pa.ChunkedArray, missing: Any) -> Sequence[Any]:
    """The column as Python's values; equal texts are one, and `missing` is in place of one that is not there."""
    if column.null_count == len(column):
        return [missing] * len(column)
    column = column if missing is None else pc.fill_null(column, missing)
    if not pa.types.is_string(column.type):
        found: list[Any] = column.to_pylist()
        return found
    encoded = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
    texts = encoded.dictionary.to_pylist()
    return [texts[at] for at in encoded.indices.to_pylist()]


@once
def not_restarted(control: Control) -> Mapping[str, str]:
    """Each node that the harness could not start again, and why."""
    rows = (row for row in control.rows("not_done") if row.said.get("f") == "restart")
    return {str(row.source): str(row.said.get("why")) for row in rows}
