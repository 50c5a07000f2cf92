"""A group that never committed an offset of a queue begins at its first message while the broker has that in memory.

    queue   0 1 2 3 4 · · ·
    group   never there: code 14 is answered with 0, whatever the consumer's consumeFromWhere
            └ taken at 0: right      └ taken at 5: 0 to 4 never reach the group, and nobody notices

The broker says so (`setZeroIfNotFound`, true unless the client says otherwise) while the queue is young: none of its
messages was deleted or is on disk alone. No run is long enough for that.
Upstream: `ConsumerManageProcessor.queryConsumerOffset`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from ...oracle.recorded import OURS
from ...oracle.world import World
from ...verdict import Finding
from ..findings import Rule, finding
from ..record.control import Control, Row

FIRST_TAKEN = "first taken"
_ROW = "ConsumerManageProcessor: a group without an offset begins at 0 where all of the queue is in memory"


def first_takes(control: Control, world: World) -> Iterator[Finding]:
    """One for each group: how many queues it took for the first time, and those that it began beyond their begin."""
    if world.workload.get("broadcasting") or world.mixed_up_by_hand or control.rows("offset_reset"):
        return  # each broadcaster keeps its own offsets, and begins at the end; an operator may say where
    group_of = {member: group for group, members in world.groups.items() for member in members}
    ours = {node.name for node in world.of_kind("consumer", "broker", "slave") if node.implementation == OURS}
    first: dict[str, dict[tuple[str | None, str | None, int | None], Row]] = {}
    for row in control.rows("queue_taken"):
        if row.node in group_of and not (row.topic or "").startswith(RETRY_GROUP_TOPIC_PREFIX):
            queue = row.topic, row.broker_name, row.queue_id
            first.setdefault(group_of[row.node], {}).setdefault(queue, row)
    for group, taken in first.items():
        rows = [row for row in taken.values() if row.node in ours and row.broker_name in ours]
        wrong = [row for row in rows if (row.offset or 0) > 0]
        if not rows:
            continue
        one = (wrong or rows)[0]
        yield finding(
            (one.node, one.broker_name or "", one.topic or ""),
            FIRST_TAKEN,
            (one.time_ms, one.time_ms),
            Rule(_ROW),
            out=(one.time_ms, one.time_ms) if wrong else None,
            examined=len(rows),
            wrong=len(wrong),
            more={"group": group, "queue_id": one.queue_id, "offset": one.offset},
        )
