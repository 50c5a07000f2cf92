"""A consumer commits finished messages at its next persistAllConsumerOffset.

    worked off ─┤ run of persistAllConsumerOffset ├─ at once ─► its queue's broker has an offset beyond it
    queue_dropped at 7 ─┬─ the broker has 7 by then, or at once: right, whoever takes it begins there
                        └─ it has 5, or what the next holder commits: 5 and 6 come again

Whether the runs themselves come each persistConsumerOffsetInterval is `timers_kept`'s question; here one that began
when the message was worked off, with the queue held and the way to its broker free (oracle/deliveries.py) until the
commit must have arrived, commits it. A message counts where all before it, from the holding's beginning or from a
commit on, were worked off, too: an offset says just that.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ...oracle.commits import CommitRules
from ...oracle.deliveries import Holding
from ...oracle.roles import elects
from ...oracle.slaves import offsets_vary, slaves_of
from ...oracle.time_outs import PERSIST, REBALANCE
from ...oracle.world import World
from ...verdict import Finding
from ..findings import Rule, finding
from ..tolerance import Tolerance
from .commits import Behind
from .control import Control, Row, once
from .timer_acts import Run, by_process

_ROW = "MQClientInstance: commits each persistConsumerOffsetInterval"
_LEFT_ROW = "RebalancePushImpl, shutdown: a queue's offset is committed before the queue is given up"
_CHAINED = 2
"""The consumer's turn, and the broker's."""
_JUST_MS = 1_000.0
"""A fault that begins so soon after may have swallowed the commit, which nobody waits for."""


class _Missed(NamedTuple):
    """A run that should have committed, or the giving up of a queue, and until when it had not."""

    behind: Behind
    began_ms: float
    ended_ms: float
    until_ms: float
    is_left: bool = False
    way_ms: float = 0.0
    """How long a slow link, a harmless one too, may have kept the commit."""

    @property
    def due_ms(self) -> float:
        return self.ended_ms + self.way_ms

    @property
    def over_ms(self) -> float:
        return self.until_ms - self.due_ms


def brokers_that_tell(world: World) -> frozenset[str]:
    """Whose commits are recorded: somebody else's broker says nothing of them."""
    return frozenset(node.name for node in world.ours("broker"))


@once
def runs_of(control: Control, process: tuple[str, int], task: str = PERSIST) -> Sequence[Run]:
    """The runs of a task of a process of ours, by default of persistAllConsumerOffset."""
    return [run for run in by_process(control, "scheduled_task").get(process, ()) if run.row.f == task]


class GivenUp(NamedTuple):
    """When a holder said that it had given a queue up, and what had to be committed by then."""

    at_ms: float
    offset: int
    """What it says to have committed."""
    begun_ms: float
    """What was worked off before this moment."""
    by_rebalance: bool


def given_up(control: Control, drop: Row) -> GivenUp:
    """Of a `queue_dropped` row. A rebalance marks all queues that it gives up, and then commits them one by one."""
    rounds = runs_of(control, drop.process, REBALANCE)
    at = bisect_right(rounds, drop.time_ms, key=lambda run: run.began_ms) - 1
    is_within = at >= 0 and drop.time_ms <= rounds[at].ended_ms
    begun_ms = rounds[at].began_ms if is_within else drop.time_ms - _JUST_MS
    return GivenUp(drop.time_ms, drop.offset, begun_ms, is_within)


def behind(those: Iterable[Behind], rules: CommitRules, control: Control) -> Iterator[Finding]:
    """The messages that a run, or giving the queue up, should have committed, and nothing or a later one did."""
    world = rules.world
    tell = brokers_that_tell(world)
    for one in those:
        place = one.place
        if place.broker_name not in tell or place[:2] in rules.deleted:
            continue
        until_ms = world.end_ms if one.committed_ms is None else one.committed_ms
        if rules.was_reset(place.queue, place.group, one.worked_ms, until_ms):
            continue
        runs = runs_of(control, (one.consumer, one.incarnation))
        missed = _missed(one, rules, runs, control)
        if one.dropped_ms is not None and _had_to_commit(one, one.dropped_ms, rules, control):
            missed.append(_Missed(one, one.dropped_ms, one.dropped_ms, until_ms, is_left=True))
        if missed:
            (way_ms,) = world.round_trips_ms(one.consumer, (place.broker_name,), one.worked_ms, until_ms)
            worst = max(missed, key=lambda missed: missed.over_ms)._replace(way_ms=way_ms)
            who, from_ms = (one.consumer, place.broker_name), worst.began_ms - 1000.0
            allowed = control.lateness.tolerance(world, who, from_ms, worst.until_ms, _CHAINED)
            if worst.over_ms > allowed.valid_up_to_ms:
                yield _finding(worst, allowed)


def _finding(missed: _Missed, allowed: Tolerance) -> Finding:
    one, since_ms = missed.behind, missed.behind.worked_ms
    kind = "consumed, and not committed" if one.committed_ms is None else "committed late"
    rule = Rule(_ROW, "the next persistAllConsumerOffset", missed.due_ms - since_ms)
    times = {"persistAllConsumerOffset": missed.began_ms}
    if missed.is_left:
        kind, since_ms, times = "given up without a commit", missed.due_ms, {"worked off": one.worked_ms}
        rule = Rule(_LEFT_ROW, "before the queue is given up", 0.0)
    return finding(
        (one.consumer, one.place.broker_name, one.place.topic),
        kind,
        (since_ms, missed.until_ms),
        rule,
        out=(missed.due_ms, missed.until_ms),
        tolerance=allowed,
        measured_ms=missed.until_ms - since_ms,
        over_ms=missed.over_ms,
        times=times,
        more=one.place.told("left" if missed.is_left else "behind", one.offset),
    )


def _missed(one: Behind, rules: CommitRules, runs: Sequence[Run], control: Control) -> list[_Missed]:
    """The runs that should have committed it, and were over before it was."""
    missed = []
    for holding in _holdings(rules, one):
        until_ms = min(rules.dues.leaving_ms(holding), math.inf if one.committed_ms is None else one.committed_ms)
        at_slave = (
            rules.dues.at_slave(one.place.queue, holding) if _slaves_know_its_topic(one, rules.world, control) else ()
        )
        for start_ms, end_ms in (*rules.dues.free(one.place.queue, holding), *at_slave):
            first = bisect_right(runs, max(start_ms, one.worked_ms), key=lambda run: run.began_ms)
            if first < len(runs) and runs[first].ended_ms < min(end_ms, until_ms):
                missed.append(_Missed(one, runs[first].began_ms, runs[first].ended_ms, min(end_ms, until_ms)))
    return missed


def _slaves_know_its_topic(one: Behind, world: World, control: Control) -> bool:
    """Whether each slave of its broker had copied from a master before it was worked off: a slave without a master has
    no topics, and refuses commits."""
    copied = {row.node for row in control.rows("copies") if row.time_ms <= one.worked_ms}
    return copied.issuperset(slaves_of(world, one.place.broker_name))


def _holdings(rules: CommitRules, one: Behind) -> list[Holding]:
    return [h for h in rules.dues.held.get(one.place.queue, ()) if (h.node, h.start_ms) == (one.consumer, one.taken_ms)]


def _had_to_commit(one: Behind, at_ms: float, rules: CommitRules, control: Control) -> bool:
    """Whether its holder, giving the queue up then, could reach its broker, which knows the queue; with broadcasting it
    writes its own file."""
    world, place, broker = rules.world, one.place, one.place.broker_name
    if world.workload.get("broadcasting"):
        return at_ms + _JUST_MS <= world.end_ms and not world.acts
    if offsets_vary(world, broker, at_ms) or elects(world, broker) or at_ms + _JUST_MS > world.end_ms:
        return False
    if any(reset.of(place.queue, place.group) for reset in world.resets):
        return False
    if place.topic in world.deleted:
        return False
    if world.acts and (world.mixed_up_by_hand or any(act.node in (broker, one.consumer) for act in world.acts)):
        return False
    states = [row.decoded for row in control.rows("topic") if (row.node, row.topic) == (broker, place.topic)]
    if any(place.queue_id >= max(of.get("read", 0), of.get("write", 0)) for of in states if of):
        return False  # it refuses commits of queues that it has no more
    free = [stretch for holding in _holdings(rules, one) for stretch in rules.dues.free(place.queue, holding)]
    is_free = any(start_ms <= at_ms - _JUST_MS and end_ms >= at_ms for start_ms, end_ms in free)
    return is_free and rules.dues.is_whole(one.consumer, broker, at_ms, at_ms + _JUST_MS)
