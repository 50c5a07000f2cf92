"""The control facts: every row of a history that is no traffic, as plain rows. Most checks are judged by these alone.

What nodes say of tables, registrations, choices and channels is as much as the run is long, not as its messages: some
thousand rows of ten million. Spark picks them out in one job (dataframes/gathering.py); nothing here needs it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from ...oracle.world import MEMO, World
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
    topic: str | None = None
    broker_name: str | None = None
    broker_id: int | None = None
    address: str | None = None
    name_server: str | None = None
    queue_id: int | None = None
    offset: int | None = None
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
    def process(self) -> tuple[str, int]:
        """Which process recorded it: node and incarnation."""
        return self.node, self.incarnation

    @property
    def decoded(self) -> Any:
        """The object that `value` is the text of."""
        return decoded(self.value)


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
    _memo: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]], world: World | None = None) -> Control:
        """From rows as recorded or as Spark gives them, in any order; a `value` may be an object or its JSON text."""
        found: dict[str, list[Row]] = defaultdict(list)
        measured: list[Row] = []
        for each in rows:
            row = Row._make(map(each.get, Row._fields))
            if row.value is not None and not isinstance(row.value, str):
                row = row._replace(value=json.dumps(row.value, sort_keys=True))
            (measured if row.event == "timer_lag" else found[row.event]).append(row)
        for event in found.values():
            event.sort(key=order)
        return cls(dict(found), Lateness.of_rows(measured))

    def rows(self, *events: str) -> Sequence[Row]:
        """The rows of these events, in the history's order."""
        if len(events) == 1:
            return self.by_event.get(events[0], ())
        return sorted((row for event in events for row in self.by_event.get(event, ())), key=order)

    def memoized(self, key: Any, make: Any) -> Any:
        """What `make()` gives, made once for these facts."""
        with MEMO:
            if key not in self._memo:
                self._memo[key] = make()
            return self._memo[key]
