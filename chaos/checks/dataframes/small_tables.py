"""Small tables beside a history, made of plain rows.

Planning is what a small history costs: such a table becomes VALUES, which Spark plans as a local relation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..tolerance import UNLIMITED_MS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LITERALS_MAX = 200


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


def beside(history: DataFrame, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    """The same, to be joined by equality to rows of this history, large or small."""
    from .shared import is_shared

    return (frame if is_shared(history) else table)(history, rows, schema)


def one_of(column: str, hashed: Sequence[tuple[Any, ...]]) -> str:
    """SQL: whether the column is the xxhash64 of one of these rows. For rows as few as queues, instead of a join."""
    found = ", ".join(f"xxhash64({', '.join(map(_literal, row))})" for row in hashed)
    return f"{column} IN ({found})" if found else "false"


def _table(history: DataFrame, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    if len(rows) > _LITERALS_MAX:
        return _from_json(history, rows, schema)
    columns = [column.split() for column in schema.split(",")]
    shown = rows or [(None,) * len(columns)]
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in shown)
    cast = ", ".join(f"CAST({name} AS {type_}) AS {name}" for name, type_ in columns)
    query = f"SELECT {cast} FROM VALUES {values} AS t({', '.join(name for name, _ in columns)})"
    return history.sparkSession.sql(query if rows else f"{query} WHERE false")


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
