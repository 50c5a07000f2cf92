"""One history as the checks see it without Spark: all of its rows, in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..record.control import Control

T = TypeVar("T")
Row = Mapping[str, Any]
Rows = Sequence[Row]


@dataclass(slots=True, eq=False)
class PlainHistory:
    """The rows in their order, and those of them that are no traffic."""

    rows: Rows
    control: Control
    _memo: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of_rows(cls, rows: Rows) -> PlainHistory:
        return cls(rows, Control.of_rows(rows))

    def memoized(self, key: str, make: Callable[[], T]) -> T:
        """What `make` gives, made once for all checks that ask for `key`."""
        if key not in self._memo:
            self._memo[key] = make()
        found: T = self._memo[key]
        return found


def value_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Its `value`, whether it is an object or its JSON text."""
    value = row["value"]
    found: Mapping[str, Any] = json.loads(value) if isinstance(value, str) else value
    return found
