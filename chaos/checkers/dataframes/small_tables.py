"""Small tables beside a history: made of plain rows, or held by value so that no plan has to make them again.

Planning is what a small history costs. A table of plain rows becomes VALUES, which Spark plans as a local relation. A
table of which several queries read, and that is as large as the scenario, is collected in the JVM and put back as a
local relation: what reads it has a short plan. One that turns out to be large stays the query that it was.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...oracle.world import World
from ..tolerance import UNLIMITED_MS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_MAX = 20_000
"""Of a table that is held by value; its rows are in the driver, and in each plan that reads it."""


def materialize(rows: DataFrame) -> DataFrame:
    """The same rows in one partition, by value when they are few."""
    from pyspark.sql import DataFrame

    found = rows.limit(ROWS_MAX + 1)._jdf.collectAsList()
    if found.size() > ROWS_MAX:
        return rows.coalesce(1)
    spark = rows.sparkSession
    return DataFrame(spark._jsparkSession.createDataFrame(found, rows._jdf.schema()), spark).coalesce(1)


def memoized_table(history: DataFrame, world: World, key: Hashable, make: Callable[[], DataFrame]) -> DataFrame:
    """What `make` gives, by value, for all checks that ask for `key` of this history and World."""
    # The history stays in the memo with the table, so that no other can come to have its id.
    return world.memoized((key, id(history)), lambda: (history, materialize(make())))[1]


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
