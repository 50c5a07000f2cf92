"""The catalogue of the history's columns and events, for recorder, merge, checks, report and docs/history.md.
columns.toml has a line for each column, events.toml an entry for each event."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from ..arrow import pa

Row = dict[str, Any]

ORDER = ("time_ms", "node", "incarnation", "seq")
"""The columns by which a history is sorted."""
row_order = itemgetter(*ORDER)


class Column(NamedTuple):
    name: str
    type: str
    """string | long | int | double, in Spark's words; for Arrow's see arrow_type."""
    nullable: bool
    doc: str


STAMPED = frozenset({"time_ms", "seq", "node", "role", "incarnation", "event"})
"""Columns of every row, which the recorder fills."""


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


SCHEMA: tuple[Column, ...] = tuple(
    Column(name, type_, name not in STAMPED, says) for name, (type_, says) in _read("columns.toml").items()
)


@cache
def arrow_type(column: Column) -> pa.DataType:
    types = {"string": pa.string(), "long": pa.int64(), "int": pa.int32(), "double": pa.float64()}
    return types[column.type]


def arrow_schema() -> pa.Schema:
    return pa.schema([pa.field(c.name, arrow_type(c), nullable=c.nullable) for c in SCHEMA])


def raw_dir(run_dir: Path | str) -> Path:
    return Path(run_dir) / "history" / "_raw"


def parquet_path(run_dir: Path | str) -> Path:
    """Return the first Parquet file of the run's history; only a large history has more files."""
    return Path(run_dir) / "history" / "part-00000.parquet"


class Group(StrEnum):
    """A group of events, by the number of their rows and by their use."""

    ENVIRONMENT = "environment"
    """What the harness did; as many rows as the scenario has actions. The World is made from these."""
    CONTROL = "control"
    """What nodes say about tables, registrations, choices and channels; as many as the run is long."""
    LATENESS = "lateness"
    """How late timers were: one row a second and node."""
    TRAFFIC = "traffic"
    """As many rows as messages."""
    ANSWERS = "answers"
    """None in a correct run; in a wrong one up to one per call."""


class Event(NamedTuple):
    name: str
    group: Group
    by: str
    """The recorder of it."""
    columns: tuple[str, ...]
    """The columns that it may have, besides those of every row."""
    doc: str


def _catalogue() -> dict[str, Event]:
    told = _read("events.toml")
    return {
        name: Event(name, Group(of["group"]), of["by"], tuple(of["columns"]), " ".join(of["says"].split()))
        for name, of in told.items()
    }


EVENTS: Mapping[str, Event] = _catalogue()
"""Name to event, in the order of docs/history.md."""


def named(*groups: Group) -> tuple[str, ...]:
    return tuple(event.name for event in EVENTS.values() if event.group in groups)


def object_of(value: object) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return dict(value) if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[Any]:
    found = json.loads(value) if isinstance(value, str) else value
    return found if isinstance(found, list) else []
