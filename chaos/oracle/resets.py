"""Offsets that an operator set for a group (mqadmin resetOffsetByTime), and what they excuse. Plain.

    reset to 40 of 100 ── until its consumers go by it ──┬── 40 … 99 come again
                       └── offsets may go back ──────────┘
    reset to 100 of 40 ── 40 … 99, unless received, are nobody's any more

4.9: each consumer is told, drops the queue, commits the new offset and pulls from there. 5.x: the broker has it at
once, and sends the group's next pull of the queue there; what a consumer commits before that pull may overtake it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..topology import CONSUMER_GROUP

ALL_CONSUMERS = "all consumers"
"""The group of everybody where the run names none."""
OBEYED_MS = 34_000.0
"""By when consumers go by it: a pull may be under way for 30 s, its error costs a pause of 1 s, a connect C = 3 s."""


class Reset(NamedTuple):
    """Of one queue."""

    topic: str
    broker_name: str
    queue_id: int
    group: str
    """As RocketMQ has it."""
    offset: int
    at_ms: float

    def of(self, queue: tuple[str, str, int], group: str) -> bool:
        """Whether it is of this queue and group, by the run's name for it."""
        named = CONSUMER_GROUP if group == ALL_CONSUMERS else group
        return (self.topic, self.broker_name, self.queue_id, self.group) == (*queue, named)

    def near(self, from_ms: float, to_ms: float) -> bool:
        """Whether it was asked for in that time, or so shortly before that consumers may not go by it yet."""
        return from_ms - OBEYED_MS <= self.at_ms <= to_ms


def resets_in(rows: Iterable[Mapping[str, Any]], object_of: Callable[[object], Mapping[str, Any]]) -> tuple[Reset, ...]:
    """Of `offset_reset` rows."""
    found = []
    for row in rows:
        if row["event"] == "offset_reset":
            value = object_of(row.get("value"))
            for queue_id, offset in (value.get("offsets") or {}).items():
                place = str(row["topic"]), str(row["broker_name"]), int(queue_id)
                found.append(Reset(*place, str(value.get("group")), int(offset), float(row["time_ms"])))
    return tuple(found)
