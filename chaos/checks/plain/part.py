"""Rows of a history that are counted together, as columns; and what of a history stays together.

    whole history ─────────────────────────────► one part ─► facts
    the same, cut by message, queue or client ─► parts ────► facts of each ─► added up: the same facts

A part has all rows of what belongs together, in any order. So whoever counts asks nothing of the rows of other parts;
what is no traffic every part has whole (`control`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ...arrow import Floats, Numbers, np, pa, pc
from ...oracle.world import World
from ..check import Facts
from ..record.control import Control

Facts_ = TypeVar("Facts_", bound=Facts)
Row = Mapping[str, Any]

QUEUE = ("topic", "broker_name", "queue_id")
PLACE = (*QUEUE, "offset")
OP = ("node", "incarnation", "op_id")


_OF_ALL = frozenset({"time_ms", "seq", "node", "incarnation", "event"})


class Together(StrEnum):
    """Which rows of a history one part must have all of."""

    ROW = "row"
    """Each row may be counted by itself."""
    MESSAGE = "message"
    QUEUE = "queue"
    OPERATION = "operation"
    CLIENT = "client"

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that such rows have in common."""
        return _KEYS[self]


_KEYS: Mapping[Together, tuple[str, ...]] = {
    Together.ROW: (),
    Together.MESSAGE: ("msg_key",),
    Together.QUEUE: QUEUE,
    Together.OPERATION: ("node", "op_id"),
    Together.CLIENT: ("node",),
}


class Span(NamedTuple):
    """What a node did in this time."""

    node: str
    from_ms: float
    to_ms: float


@dataclass(slots=True, eq=False)
class Part:
    """Rows of a history, with the columns that were asked for at least."""

    table: pa.Table
    control: Control
    """Of the whole history."""
    _found: dict[Any, pa.Table] = field(default_factory=dict, repr=False)

    def of(self, *events: str, types: Sequence[str] = ()) -> pa.Table:
        """The rows of these events; of these types only, where some are named."""
        return pa.concat_tables([self._of(event, tuple(types)) for event in events])

    def _of(self, event: str, types: tuple[str, ...]) -> pa.Table:
        """Filtered once for all who ask."""
        if (event, types) not in self._found:
            rows = self._of(event, ()) if types else self.table
            is_wanted = is_one_of(rows["type"], types) if types else pc.equal(rows["event"], event)
            self._found[event, types] = rows.filter(is_wanted)
        return self._found[event, types]


@dataclass(frozen=True, slots=True, eq=False)
class Reading(Generic[Facts_]):
    """What is counted of a history's traffic: of which rows, and which of these must stay together."""

    together: Together
    events: tuple[str, ...]
    columns: tuple[str, ...]
    """What it looks at besides what each has, and the columns that tell what belongs together."""
    of: Callable[[Part, World], Facts_]
    """The facts of a part. They add up: those of all parts together are the whole history's."""
    types: tuple[str, ...] = ()
    """Rows of another type than these need not be there; none: all are."""
    spans: Callable[[Gathering, World], Sequence[Span]] | None = None
    """Rows of what neither began nor ended in one of these need not be there; None: all are. A client's rows of a whole
    history are too many for a worker."""

    @property
    def all_columns(self) -> frozenset[str]:
        return _OF_ALL | {*self.columns, *self.together.keys}


class Gathering(Protocol):
    """A history as the checks see it, whoever counts its traffic."""

    @property
    def control(self) -> Control:
        """Every row that is no traffic, and how late timers were."""

    def counted(self, reading: Reading[Facts_], world: World) -> Facts_:
        """The facts of the whole history."""


@dataclass(slots=True, eq=False)
class Whole:
    """A history in one part, in this process."""

    part: Part
    _counted: dict[Any, tuple[World, Any]] = field(default_factory=dict, repr=False)

    @property
    def control(self) -> Control:
        return self.part.control

    def counted(self, reading: Reading[Facts_], world: World) -> Facts_:
        """The facts of the whole history, counted once for all who ask."""
        key = reading, id(world)
        if key not in self._counted:
            self._counted[key] = world, reading.of(self.part, world)
        return self._counted[key][1]


def rows_in(table: pa.Table) -> list[Row]:
    """Its rows; `value` stays a text."""
    return table.to_pylist()


def value_of(row: Row) -> Mapping[str, Any]:
    """The object that its `value` says; empty for none."""
    return json.loads(row["value"] or "{}")


def op_of(row: Row) -> tuple[str, int, str]:
    """Of which operation the row is."""
    return row["node"], row["incarnation"], row["op_id"]


def is_one_of(column: pa.ChunkedArray, values: Sequence[Any]) -> pa.ChunkedArray:
    """Whether each is one of these; a row without a value is none."""
    return pc.is_in(column, value_set=pa.array(values, column.type))


def floats(column: pa.ChunkedArray, missing: float = math.nan) -> Floats:
    """The column's numbers."""
    return pc.fill_null(pc.cast(column, pa.float64()), missing).to_numpy()


def began_ms(table: pa.Table) -> Floats:
    """When what each row says the end of began."""
    return floats(table["time_ms"]) - floats(table["duration_ms"], 0.0)


def with_offset(table: pa.Table) -> pa.Table:
    """The rows that have an offset."""
    return table.filter(pc.is_valid(table["offset"]))


def codes(table: pa.Table, *columns: str) -> Numbers:
    """A number a row, from 0 without gaps; equal where the rows agree in all of these columns."""
    found, count = np.zeros(len(table), np.int64), 1
    for name in columns:
        of_column, values = _numbered(table[name].combine_chunks())
        if count * values >= _CODES_MAX:
            found, count = _numbered(pa.array(found))
        found, count = found * values + of_column, count * values
    return _numbered(pa.array(found))[0] if len(columns) > 1 else found


_CODES_MAX = 1 << 62


def _numbered(column: pa.Array) -> tuple[Numbers, int]:
    """A number for each value, and how many values there are."""
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), max(1, len(encoded.dictionary))


def groups(codes_: Numbers) -> list[Numbers]:
    """The places of the rows of each code."""
    order = np.argsort(codes_, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes_[order])) + 1) if len(order) else []


def least_of(codes_: Numbers, values: Floats, count: int) -> Floats:
    """By code, the least of its values; NaN for a code without any."""
    found = np.full(count, np.inf)
    np.minimum.at(found, codes_, values)
    found[~np.isfinite(found)] = np.nan
    return found
