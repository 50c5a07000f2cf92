"""The catalogue of the history's columns and events, for recorder, merge, checks, report and docs/history.md.

A new event is one entry of events.toml.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]


class Column(NamedTuple):
    name: str
    type: str
    """string | long | int | double, in Spark's words; for Arrow's see arrow_type."""
    nullable: bool
    doc: str


SCHEMA: tuple[Column, ...] = (
    Column("time_ms", "double", False, "when it happened: RocketMQ milliseconds since the experiment's origin"),
    Column("seq", "long", False, "position among the events of this node's incarnation, from 0"),
    Column("node", "string", False, "who recorded it: ns-0, broker-a, producer-0, prober, harness …"),
    Column("role", "string", False, "name_server, broker, producer, consumer, prober or harness"),
    Column("incarnation", "int", False, "0 for the first process of this node, one more after each restart"),
    Column("event", "string", False, "what happened; the list is below"),
    Column("type", "string", True, "of an operation: invoke, ok, fail (it certainly had no effect) or info (unknown)"),
    Column("f", "string", True, "which function or change, within the event"),
    Column("op_id", "string", True, "joins the rows of one operation (or, for the prober, of one start)"),
    Column("topic", "string", True, "topic"),
    Column("broker_name", "string", True, "broker name"),
    Column("broker_id", "long", True, "0 = master"),
    Column("address", "string", True, "host:port of the peer as the node knows it, never a proxy's"),
    Column("name_server", "string", True, "host:port of a NameServer as the node knows it"),
    Column("queue_id", "int", True, "queue of the topic at that broker"),
    Column("offset", "long", True, "queue offset, in messages"),
    Column("msg_key", "string", True, "the message's key, unique in a run"),
    Column("digest", "long", True, "CRC-32 of a message's body, keys, tags and user's properties"),
    Column("code", "int", True, "RocketMQ's response code"),
    Column("attempt", "int", True, "0 for the first try of an operation"),
    Column("duration_ms", "double", True, "how long it took, or the span that a measurement covers"),
    Column("lag_ms", "double", True, "how late timers of this process fired at most"),
    Column("fault_id", "string", True, "joins the rows of one fault"),
    Column("fault", "string", True, "kind of fault: kill, stop, pause, black_hole, cut, latency, bandwidth, reset …"),
    Column("injection", "string", True, "the way it was injected, which decides the window that applies"),
    Column(
        "source",
        "string",
        True,
        "the node that is affected, or that dials the link; of an imported route or list: FILE:LINE",
    ),
    Column("target", "string", True, "the peer of the link; null for a fault of a process"),
    Column("stream", "string", True, "both, upstream (dialler to peer) or downstream"),
    Column("phase", "string", True, "start or end of a fault; or the phase of the run that begins"),
    Column("value", "string", True, "anything else, as JSON text with sorted keys"),
)

STAMPED = frozenset({"time_ms", "seq", "node", "role", "incarnation", "event"})
"""Columns of every row, which the recorder fills."""


@cache
def arrow_type(column: Column) -> pa.DataType:
    import pyarrow as pa  # a third of a second and 40 MB, which the processes that only record need not

    types = {"string": pa.string(), "long": pa.int64(), "int": pa.int32(), "double": pa.float64()}
    return types[column.type]


def arrow_schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([pa.field(c.name, arrow_type(c), nullable=c.nullable) for c in SCHEMA])


def raw_dir(run_dir: Path | str) -> Path:
    """Where a run's processes append their lines."""
    return Path(run_dir) / "history" / "_raw"


def parquet_path(run_dir: Path | str) -> Path:
    """The first file of the run's history, and the only one unless it is large."""
    return Path(run_dir) / "history" / "part-00000.parquet"


class Group(StrEnum):
    """How many rows an event has, and their use."""

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
    told = tomllib.loads(Path(__file__).with_name("events.toml").read_text(encoding="utf-8"))
    return {
        name: Event(name, Group(of["group"]), of["by"], tuple(of["columns"]), " ".join(of["says"].split()))
        for name, of in told.items()
    }


EVENTS: Mapping[str, Event] = _catalogue()
"""Name to event, in the order of docs/history.md."""


def named(*groups: Group) -> tuple[str, ...]:
    """Names of the events of these groups."""
    return tuple(event.name for event in EVENTS.values() if event.group in groups)


def object_of(value: object) -> dict[str, Any]:
    """`value` as an object, from an object or its JSON text; empty for anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return dict(value) if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[Any]:
    """`value` as a list, from a list or its JSON text."""
    found = json.loads(value) if isinstance(value, str) else value
    return found if isinstance(found, list) else []
