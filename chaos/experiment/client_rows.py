"""Rows of one client under test, written into the run's history as those of a node of its own.

What it is, a producer or a consumer, shows only when it is at work: until then its rows wait, WAITS_MS at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..fronts.observed import Observation
from ..fronts.rows import ClientRows, Row, Rules
from ..history.recorder import HistoryWriter, RecorderSpec
from ..topology import NodeKind

WAITS_MS = 5_000.0


class ClientNode:
    """`note` records the `node` row of a client of that kind; `spec` opens its file in that role."""

    def __init__(
        self,
        *,
        rules: Rules,
        name_servers: Mapping[str, str],
        brokers: Mapping[str, str],
        seen: bool,
        since_ms: float,
        note: Callable[[NodeKind], None],
        spec: Callable[[NodeKind], RecorderSpec],
    ) -> None:
        self._rows = ClientRows(self._put, rules, name_servers, brokers, seen=seen)
        self._note, self._spec = note, spec
        self._since_ms = since_ms
        self._held: list[Row] = [Row(since_ms, "started", {})]
        self._record: HistoryWriter | None = None
        self.kind: NodeKind | None = None

    def saw(self, one: Observation) -> None:
        self._rows.saw(one)
        self._decide(one.at_ms)

    def passed(self, now_ms: float) -> None:
        self._rows.passed(now_ms)
        self._decide(now_ms)

    def end(self, now_ms: float, *, stopped: bool) -> None:
        """Nothing more is seen of it. `stopped`: because it has ended."""
        self._rows.end(now_ms)
        if stopped:
            self._put(Row(now_ms, "stopped", {}))
        self._decide(math.inf)
        if self._record is not None:
            self._record.close()

    def lag(self, event: str, /, **fields: Any) -> None:
        """What a LagProbe records."""
        if self._record is not None:
            self._record(event, **fields)

    def _decide(self, now_ms: float) -> None:
        """What it is, once that shows; who sends and reads is a consumer, whose windows are the wider ones."""
        rows = self._rows
        consumes = rows.is_consumer and self.kind is not NodeKind.CONSUMER
        if not consumes and (self.kind is not None or not (rows.is_producer or now_ms - self._since_ms >= WAITS_MS)):
            return
        self.kind = NodeKind.CONSUMER if rows.is_consumer else NodeKind.PRODUCER
        self._note(self.kind)
        if self._record is None:
            self._record = self._spec(self.kind).open()
            held, self._held = self._held, []
            for row in held:
                self._put(row)

    def _put(self, row: Row) -> None:
        if self._record is None:
            self._held.append(row)
            return
        self._record.at(row.at_ms, row.event, **row.fields)
