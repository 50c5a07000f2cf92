"""Rows of traffic as Arrow tables in the history's schema, fast: names as dictionaries, keys by table look-up.

A key is 16 hexadecimal digits of a message's number, an op_id 32, the first half the producer's, as Java's
`MessageClientIDSetter` has it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nemesrv.chaos.history.schema import SCHEMA, arrow_schema
from nemesrv.chaos.topology import CONSUMER_GROUP

from .traffic import PRODUCER_SHIFT, TYPES, Rows

_HEX = np.frombuffer("".join(f"{value:04x}" for value in range(1 << 16)).encode(), dtype=np.uint32)
"""Four digits for each 16 bits."""

_WIDE = pa.schema([field.with_nullable(True) for field in arrow_schema()])

Filled = Sequence[str]
COLUMNS_OF: dict[str, Filled] = {
    "send": (
        "type",
        "op_id",
        "topic",
        "broker_name",
        "queue_id",
        "offset",
        "msg_key",
        "code",
        "attempt",
        "duration_ms",
    ),
    "send_attempt": ("type", "op_id", "broker_name", "address", "queue_id", "code", "attempt", "duration_ms"),
    "pull": ("type", "topic", "broker_name", "address", "queue_id", "offset", "code", "duration_ms"),
    "receive": ("op_id", "topic", "broker_name", "queue_id", "offset", "msg_key"),
    "commit": ("f", "topic", "broker_name", "queue_id", "offset", "value"),
    "read": ("topic", "broker_name", "queue_id", "offset", "msg_key"),
    "timer_lag": ("duration_ms", "lag_ms"),
}


class Columns:
    """Makes tables; knows the names behind the numbers. `processes` are (node, role, incarnation)."""

    def __init__(
        self,
        processes: Sequence[tuple[str, str, int]],
        topics: Sequence[str],
        brokers: Sequence[str],
        addresses: dict[str, str],
        holdings: int,
    ) -> None:
        self._nodes = pa.array([node for node, _, _ in processes])
        self._roles = pa.array([role for _, role, _ in processes])
        self._incarnations = np.array([incarnation for _, _, incarnation in processes], dtype=np.int32)
        self._topics = pa.array(list(topics))
        self._brokers = pa.array(list(brokers))
        self._addresses = pa.array([addresses[name] for name in brokers])
        self._types = pa.array(list(TYPES))
        self._holdings = pa.array([holding_id(holding) for holding in range(holdings)], pa.string())

    def table(self, event: str, rows: Rows) -> pa.Table:
        """The rows as they stand, in the history's columns; names are dictionary arrays."""
        n = len(rows)
        filled = set(COLUMNS_OF[event])
        made: dict[str, pa.Array] = {
            "time_ms": pa.array(np.ascontiguousarray(rows["time_ms"])),
            "seq": pa.array(np.ascontiguousarray(rows["seq"])),
            "node": _named(rows["who"], self._nodes),
            "role": _named(rows["who"], self._roles),
            "incarnation": pa.array(self._incarnations[rows["who"]]),
            "event": pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, dtype=np.int8)), pa.array([event])),
        }
        if "type" in filled:
            made["type"] = _named(rows["type"], self._types)
        if "op_id" in filled:
            received = event == "receive"
            made["op_id"] = _named(rows["holding"], self._holdings) if received else op_ids(rows["msg"])
        if "msg_key" in filled:
            made["msg_key"] = keys(rows["msg"])
        if "topic" in filled:
            made["topic"] = _named(rows["topic"], self._topics)
        if "broker_name" in filled:
            made["broker_name"] = _named(rows["broker"], self._brokers)
        if "address" in filled:
            made["address"] = _named(rows["broker"], self._addresses)
        if "value" in filled:
            said = {"f": "update", "value": json.dumps({"group": CONSUMER_GROUP})}
            made |= {name: _named(np.zeros(n, dtype=np.int64), pa.array([text])) for name, text in said.items()}
        for column, source, type_ in (
            ("queue_id", "queue", np.int32),
            ("offset", "offset", np.int64),
            ("code", "code", np.int32),
            ("attempt", "attempt", np.int32),
        ):
            if column in filled:
                values: NDArray[Any] = rows[source].astype(type_)
                absent: NDArray[np.bool_] = np.less(values, 0)
                made[column] = pa.array(values, mask=absent if absent.any() else None)
        for column in ("duration_ms", "lag_ms"):
            if column in filled:
                made[column] = pa.array(np.ascontiguousarray(rows[column]), from_pandas=True)
        arrays = [made[c.name] if c.name in made else pa.nulls(n, _WIDE.field(c.name).type) for c in SCHEMA]
        return pa.Table.from_arrays(arrays, names=[c.name for c in SCHEMA])


def holding_id(holding: int) -> str:
    """`op_id` of one holding of a queue by a consumer."""
    return f"take-{holding}"


def plain(table: pa.Table) -> pa.Table:
    """The same in the history's own schema, no dictionaries."""
    return table.cast(arrow_schema())


def _named(numbers: NDArray[Any], names: pa.Array) -> pa.Array:
    indices = numbers.astype(np.int32)
    absent: NDArray[np.bool_] = indices < 0
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=absent if absent.any() else None), names)


def _digits(numbers: NDArray[np.int64], width: int) -> NDArray[np.uint32]:
    """Each number as 16 digits, in the last of `width` columns of four digits; the others are not filled."""
    halves = np.ascontiguousarray(numbers).astype(">i8").view(">u2").reshape(-1, 4)
    made = np.empty((len(numbers), width), dtype=np.uint32)
    made[:, width - 4 :] = _HEX[halves]
    return made


def _strings(digits: NDArray[np.uint32]) -> pa.Array:
    count, width = digits.shape
    offsets = np.arange(0, (count + 1) * width * 4, width * 4, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(digits)))


def keys(numbers: NDArray[np.int64]) -> pa.Array:
    """`msg_key` of each message."""
    return _strings(_digits(numbers, 4))


def op_ids(numbers: NDArray[np.int64]) -> pa.Array:
    """`op_id` of each message's send: 7F000001, the producer's eight digits, and the key."""
    digits = _digits(numbers, 8)
    digits[:, :2] = np.frombuffer(b"7F000001", dtype=np.uint32)
    producers = (np.asarray(numbers) >> PRODUCER_SHIFT).astype(">u4").view(">u2").reshape(-1, 2)
    digits[:, 2:4] = _HEX[producers]
    return _strings(digits)
