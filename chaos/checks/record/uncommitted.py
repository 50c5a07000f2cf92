"""What a consumer has worked off is committed by its next persistAllConsumerOffset, and a broker keeps what it is told.

    worked off ─┤ run of persistAllConsumerOffset ├─ at once ─► its queue's broker has an offset beyond it
    commit 5 ───── commit 7, and the broker had 5 before it: right; it had none, or 3: it has forgotten

Whether the runs themselves come each persistConsumerOffsetInterval is `timers_kept`'s question; here one that began
when the message was worked off, with the queue held and the way to its broker free (oracle/deliveries.py) until the
commit must have arrived, commits it. A message counts where all before it, from the holding's beginning or from a
commit on, were worked off, too: an offset says just that.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...oracle.commits import CommitRules
from ...oracle.deliveries import Asker, Holding
from ...oracle.recorded import OURS
from ...oracle.schedules import PERSIST
from ...oracle.slaves import offsets_vary
from ...oracle.world import World
from ...verdict import Finding
from ..findings import Rule, counted, finding
from ..tolerance import tolerance
from .commits import Behind, CommitFacts
from .control import Control
from .timer_acts import Run, by_process

_ROW = "MQClientInstance: commits each persistConsumerOffsetInterval"
_CHAINED = 2
"""The consumer's turn, and the broker's."""


class _Missed(NamedTuple):
    """A run that should have committed, and until when it had not."""

    behind: Behind
    run: Run
    until_ms: float

    @property
    def over_ms(self) -> float:
        return self.until_ms - self.run.ended_ms


def brokers_that_tell(world: World) -> frozenset[str]:
    """Whose commits are recorded: somebody else's broker says nothing of them."""
    return frozenset(node.name for node in world.of_kind("broker") if node.implementation == OURS)


def interval_ms(world: World) -> float:
    """The shortest persistConsumerOffsetInterval of the consumers: what was committed sooner needs no look."""
    settings = [world.setting(node.name, "persistConsumerOffsetInterval") for node in world.of_kind("consumer")]
    return min((float(str(value)) for value in settings), default=0.0)


def behind(facts: CommitFacts, rules: CommitRules, groups: Mapping[str, Asker], control: Control) -> Iterator[Finding]:
    """The messages that a run should have committed, and none or a later one did."""
    if not facts.behind:
        return
    world = rules.world
    tell, runs = brokers_that_tell(world), by_process(control, "scheduled_task")
    found = []
    for one in facts.behind:
        queue = one.topic, one.broker_name, one.queue_id
        if one.broker_name not in tell or (one.topic, one.broker_name) in rules.deleted:
            continue
        until_ms = world.end_ms if one.committed_ms is None else one.committed_ms
        if rules.was_reset(queue, groups[one.group], one.worked_ms, until_ms):
            continue
        of_process = runs.get((one.consumer, one.incarnation), ())
        if (missed := _missed(one, rules, [run for run in of_process if run.row.f == PERSIST])) is not None:
            found.append(missed)
    late = (((m.behind.consumer, m.behind.broker_name), m.run.began_ms - 1000.0, m.until_ms) for m in found)
    for missed, lag_ms in zip(found, control.lateness.largest_of_each(world, late), strict=True):
        one, allowed = missed.behind, tolerance(world.timers, lag_ms, _CHAINED)
        marks = counted(missed.over_ms, allowed)
        if not any(marks.values()):
            continue
        yield finding(
            (one.consumer, one.broker_name, one.topic),
            "consumed, and not committed" if one.committed_ms is None else "committed late",
            (one.worked_ms, missed.until_ms),
            Rule(_ROW, "the next persistAllConsumerOffset", missed.run.ended_ms - one.worked_ms),
            out=(missed.run.ended_ms, missed.until_ms),
            tolerance=allowed,
            measured_ms=missed.until_ms - one.worked_ms,
            over_ms=missed.over_ms,
            times={"persistAllConsumerOffset": missed.run.began_ms},
            more={"rule": "behind", "group": one.group, "queue_id": one.queue_id, "offset": one.offset},
        )


def _missed(one: Behind, rules: CommitRules, runs: Sequence[Run]) -> _Missed | None:
    """The run that should have committed it and was over the longest before it was."""
    queue = one.topic, one.broker_name, one.queue_id
    missed = []
    for holding in _holdings(rules, queue, one):
        until_ms = min(rules.dues.leaving_ms(holding), math.inf if one.committed_ms is None else one.committed_ms)
        for start_ms, end_ms in rules.dues.free(queue, holding):
            first = bisect_right(runs, max(start_ms, one.worked_ms), key=lambda run: run.began_ms)
            if first < len(runs) and runs[first].ended_ms < min(end_ms, until_ms):
                missed.append(_Missed(one, runs[first], min(end_ms, until_ms)))
    return max(missed, key=lambda missed: missed.over_ms, default=None)


def _holdings(rules: CommitRules, queue: tuple[str, str, int], one: Behind) -> list[Holding]:
    return [h for h in rules.dues.held.get(queue, ()) if (h.node, h.start_ms) == (one.consumer, one.taken_ms)]


def forgotten(facts: CommitFacts, rules: CommitRules, groups: Mapping[str, Asker]) -> Iterator[Finding]:
    """Offsets that a process of a broker was told and did not have any more at the next commit."""
    for one in facts.forgotten:
        queue = one.topic, one.broker_name, one.queue_id
        if (one.topic, one.broker_name) in rules.deleted or offsets_vary(rules.world, one.broker_name, one.at_ms):
            continue
        if rules.was_reset(queue, groups[one.group], one.told_ms, one.at_ms):
            continue
        yield finding(
            (one.broker_name, rules.holder(queue, groups[one.group], one.at_ms) or one.group, one.topic),
            "had forgotten what was committed",
            (one.told_ms, one.at_ms),
            Rule("ConsumerOffsetManager: an offset stays until the next commit"),
            out=(one.told_ms, one.at_ms),
            wrong=1,
            times={"committed": one.told_ms},
            more={
                "rule": "forgotten",
                "group": one.group,
                "queue_id": one.queue_id,
                "offset": one.told,
                "before": one.before,
            },
        )
