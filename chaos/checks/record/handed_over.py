"""Who gives a queue up commits first what it has worked off of it: at a rebalance, and when it is shut down.

    worked off 6 ─── queue_dropped at 7 ─┬─ the broker has 7 by then, or at once: right, whoever takes it begins there
                                         └─ it has 5, or what the next holder commits: 5 and 6 come again

`RebalancePushImpl.removeUnnecessaryMessageQueue` and `DefaultMQPushConsumerImpl.shutdown` persist before they say so.
Judged between a consumer and a broker that nothing has disturbed, the broker being in the consumer's route.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...oracle.commits import CommitRules
from ...oracle.deliveries import Asker, askers
from ...oracle.recorded import OURS
from ...oracle.roles import elects
from ...oracle.slaves import offsets_vary
from ...oracle.world import World
from ...verdict import Finding
from ..findings import Rule, counted, finding
from ..tolerance import tolerance
from .commits import CommitFacts, Left
from .control import Control, Row
from .uncommitted import brokers_that_tell

_ROW = "RebalancePushImpl, shutdown: what is given up is committed first"
_CHAINED = 2
"""The consumer's turn, and the broker's."""
_JUST_MS = 1_000.0
"""A fault that begins so soon after may have swallowed the commit, which nobody waits for."""


def given_up(control: Control, world: World) -> list[tuple[Row, str]]:
    """The `queue_dropped` rows that say what was worked off, each with its group."""
    if world.workload.get("broadcasting"):
        return []
    tell = brokers_that_tell(world)
    of_member = {member: group for group in askers(world) for member in group.members}
    return [
        (row, of_member[row.node].name)
        for row in control.rows("queue_dropped")
        if row.offset and row.broker_name in tell and row.node in of_member and world.made_by(row.node) == OURS
        if of_member[row.node].topic in ("", row.topic)
    ]


def left(facts: CommitFacts, rules: CommitRules, groups: Mapping[str, Asker], control: Control) -> Iterator[Finding]:
    """Queues that were given up while their broker had less than was worked off."""
    world = rules.world
    found = [one for one in facts.left if _is_due(one, rules, groups[one.group], control)]
    late = (((one.consumer, one.broker_name), one.dropped_ms - 1000.0, one.dropped_ms + _JUST_MS) for one in found)
    for one, lag_ms in zip(found, control.lateness.largest_of_each(world, late), strict=True):
        until_ms = world.end_ms if one.committed_ms is None else one.committed_ms
        over_ms, allowed = until_ms - one.dropped_ms, tolerance(world.timers, lag_ms, _CHAINED)
        marks = counted(over_ms, allowed)
        if any(marks.values()):
            yield finding(
                (one.consumer, one.broker_name, one.topic),
                "given up without a commit",
                (one.dropped_ms, until_ms),
                Rule(_ROW, "before the queue is given up", 0.0),
                out=(one.dropped_ms, until_ms),
                tolerance=allowed,
                measured_ms=over_ms,
                over_ms=over_ms,
                times={"worked off": one.worked_ms},
                more={"rule": "left", "group": one.group, "queue_id": one.queue_id, "offset": one.offset},
            )


def _is_due(one: Left, rules: CommitRules, group: Asker, control: Control) -> bool:
    world, broker = rules.world, one.broker_name
    queue = one.topic, broker, one.queue_id
    if (one.topic, broker) in rules.deleted or offsets_vary(world, broker, one.dropped_ms) or elects(world, broker):
        return False
    if one.dropped_ms + _JUST_MS > world.end_ms or any(reset.of(queue, group.name) for reset in world.resets):
        return False
    if world.acts and (world.mixed_up_by_hand or any(act.node in (broker, one.consumer) for act in world.acts)):
        return False
    states = [row.decoded for row in control.rows("topic") if (row.node, row.topic) == (broker, one.topic)]
    if any(one.queue_id >= max(of.get("read", 0), of.get("write", 0)) for of in states if of):
        return False  # it refuses commits of queues that it has no more
    holding = next(
        (h for h in rules.of_group(queue, group) if h.node == one.consumer and h.end_ms == one.dropped_ms), None
    )
    free = rules.dues.free(queue, holding) if holding else ()
    asked_ms = one.dropped_ms - _JUST_MS
    is_free = any(start_ms <= asked_ms and end_ms >= one.dropped_ms for start_ms, end_ms in free)
    return is_free and rules.dues.is_whole(one.consumer, broker, one.dropped_ms, one.dropped_ms + _JUST_MS)
