"""Who gives a queue up commits first what it has worked off of it: at a rebalance, and when it is shut down.

    worked off 6 ─── queue_dropped at 7 ─┬─ the broker has 7 by then, or at once: right, whoever takes it begins there
                                         └─ it has 5, or what the next holder commits: 5 and 6 come again

`RebalancePushImpl.removeUnnecessaryMessageQueue` and `DefaultMQPushConsumerImpl.shutdown` persist before they say so.
Judged between a consumer and a broker that nothing has disturbed, the broker being in the consumer's route.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from ...faults.fault import Loss
from ...oracle.commits import CommitRules
from ...oracle.deliveries import Asker, askers
from ...oracle.quiet import aftermath_ms, earliest_effect_ms
from ...oracle.recorded import OURS, Fault
from ...oracle.roles import elects
from ...oracle.slaves import offsets_vary
from ...oracle.world import World
from ...verdict import Finding
from ..findings import Rule, counted, finding
from ..tolerance import tolerance
from .commits import CommitFacts, Left
from .control import Control, Row
from .known_brokers import MASTER_ID
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
    routes = _Routes(control.rows("route_changed"))
    found = [one for one in facts.left if _is_due(one, rules, groups[one.group], control, routes)]
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


def _is_due(one: Left, rules: CommitRules, group: Asker, control: Control, routes: _Routes) -> bool:
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
    if any(_disturbs(world, fault, one) for fault in _between(world, one.consumer, broker)):
        return False
    return routes.names(one, one.dropped_ms - _JUST_MS) and routes.names(one, one.dropped_ms)


def _between(world: World, consumer: str, broker: str) -> list[Fault]:
    return [*world.process_faults(consumer), *world.process_faults(broker), *world.link_faults(consumer, broker)]


def _disturbs(world: World, fault: Fault, one: Left) -> bool:
    """Whether the commit may not have arrived for it. A consumer's own clean stop is when it has to commit."""
    if fault.source == one.consumer and fault.target is None and fault.loss(world.timers) is Loss.GRACEFUL:
        return False
    after_ms = aftermath_ms(world) + world.timers.H_ms
    return earliest_effect_ms(world, fault) - _JUST_MS <= one.dropped_ms <= fault.end_ms + after_ms


class _Routes:
    """What each consumer's route of a topic named when, from `route_changed` rows."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._of: dict[tuple[str, int, str], list[Row]] = defaultdict(list)
        for row in rows:
            self._of[row.node, row.incarnation, row.topic or ""].append(row)

    def names(self, one: Left, at_ms: float) -> bool:
        """Whether it had the broker's master then."""
        rows = self._of.get((one.consumer, one.incarnation, one.topic), [])
        at = bisect_right(rows, at_ms, key=lambda row: row.time_ms)
        brokers = ((rows[at - 1].decoded or {}).get("brokers") or {}) if at else {}
        return MASTER_ID in brokers.get(one.broker_name, {})
