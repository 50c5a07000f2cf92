"""In quiet times each queue that the NameServers route to has exactly one owner in each consumer group.

Quiet means that every change has had its time: a consumer that came or went (Qr + A), a route that changed (P + J + Qr
+ A, and H where a broker is new, for a broker learns its group's members by heartbeat), a broker or link that failed
or healed (the drop or return window before those). What is owned is what `assigned` rows say; what is there to own is
what every living NameServer holds alike, so that tables which differ are routes_converge's finding and not this one's.
With broadcasting every consumer is a group of its own. Two owners mean duplicates, none means that nobody consumes.

In disturbed times, too, each rebalance takes the share that the averaging allocation gives (shares.py), and a group
that is new to a queue begins at its first message. That alone makes no VALID: it says nothing of
whether all saw the same.

A group that never committed an offset of a queue begins at its first message while the broker has that in memory.

    queue   0 1 2 3 4 · · ·
    group   never there: code 14 is answered with 0, whatever the consumer's consumeFromWhere
            └ taken at 0: right      └ taken at 5: 0 to 4 never reach the group, and nobody notices

The broker says so (`setZeroIfNotFound`, true unless the client says otherwise) while the queue is young: none of its
messages was deleted or is on disk alone. No run is long enough for that.
Upstream: `ConsumerManageProcessor.queryConsumerOffset`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ....remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from ...oracle.queue_owners import Holding, Judged, Piece, Queue, Seen, holdings, pieces
from ...oracle.quiet import aftermath_ms
from ...oracle.windows import Window
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import Rule, finding, rounded, verdict_of
from ..record.control import Control, Row
from ..record.settling import Due, Settling, Wrong
from ..tolerance import Tolerance
from .shares import retry_topics, share, shares_taken

_ROW = "each queue has one owner when its group has rebalanced"
_CHAINED = 2
"""The rebalance, and its question."""


@check(
    says="each queue has one owner in a group while nothing is disturbed, and a rebalance gives a consumer its share",
    group=Group.CONSUMING,
    section=Section.CLIENTS,
    needs=(Needs.MESSAGES,),
    tells=lambda measured: _told(measured),
    settles=lambda world: None if world.unclear else aftermath_ms(world),
)
def judge(control: Control, world: World) -> Verdict:
    """Examined: (queue, group, quiet stretch) and rebalances. Violations: queues with no owner, or more than one, in
    it, and rebalances that took another's share."""
    if world.unclear:
        return Verdict.nothing_examined(world.unclear)
    held = holdings(world, control.rows("assigned"))
    ours = (retry_topics(world, node.name) for node in world.ours("consumer")) if held else ()
    held = {**{topic: {} for topic in set[str]().union(*ours)}, **held}
    stretches = _judged(control, world, held)
    taken = [*shares_taken(control, world), *first_takes(control, world)]
    if not stretches and not any(finding.wrong for finding in taken) and not _took_the_quiet(control, world, held):
        why = "there was no quiet time: no consumer was assigned queues, or changes followed one another too soon"
        return Verdict.nothing_examined(why)
    nodes, findings = [node.name for node in world.of_kind("consumer", "broker")], [*taken]
    for topic, group, members, one in stretches:
        allowed = control.lateness.tolerance(world, nodes, one.change.at_ms, one.start_ms, _CHAINED)
        findings.append(_finding(one, topic, group, members, held[topic], allowed))
    quiet = {(topic, one.start_ms, one.end_ms) for topic, *_, one in stretches}
    measured = {
        "stretches": len(quiet),
        "quiet_ms": rounded(sum(end_ms - start_ms for _, start_ms, end_ms in quiet)),
        "queues": len({(topic, queue) for topic, *_, one in stretches for queue in one.queues}),
        "rebalances": sum(finding.examined for finding in taken if finding.kind != FIRST_TAKEN),
        "groups": len({group for _, group, *_ in stretches}),
    }
    noun = "queues did not have one owner each in a quiet time, or rebalances did not take their share"
    return verdict_of(findings, measured=measured, nothing="there was no queue to own", noun=noun)


def _took_the_quiet(control: Control, world: World, held: Mapping[str, Mapping[Queue, Sequence[Holding]]]) -> bool:
    """Whether the run had a quiet time but for processes that the machine did not run: then its rebalances decide."""
    still = world.but_stalls()
    if still is world or not any(finding.kind != FIRST_TAKEN for finding in shares_taken(control, world)):
        return False
    return bool(_judged(control, still, held))


def _judged(control: Control, world: World, topics: Iterable[str]) -> list[tuple[str, str, frozenset[str], Judged]]:
    """Topic, group and its members: where each queue must have one owner."""
    seen = Seen(world, control.rows)
    groups = ((topic, *of) for topic in sorted(topics) for of in _groups(world, topic).items())
    return [(topic, group, members, one) for topic, group, members in groups for one in seen.judged(topic, members)]


def _told(measured: Mapping[str, Any]) -> str:
    quiet_s = (measured.get("quiet_ms") or 0.0) / 1000
    rounds = f", {measured['rebalances']} rebalances" if measured.get("rebalances") else ""
    return f"{measured.get('queues', 0)} queues examined in {quiet_s:.1f} s without a fault{rounds}" if quiet_s else ""


def _groups(world: World, topic: str) -> dict[str, frozenset[str]]:
    """Group → its consumers, of those that read the topic; a group's retry topic is its own. Nobody says anything of a
    topic that somebody deleted by hand."""
    if topic in world.deleted:
        return {}
    found = {
        group: frozenset(members)
        for group, members in world.groups.items()
        if topic == world.topic_of(members[0])
        or topic == f"{RETRY_GROUP_TOPIC_PREFIX}{group}"
        or len(world.groups) == 1
    }
    if world.workload.get("broadcasting"):
        return {name: frozenset([name]) for members in found.values() for name in sorted(members)}
    return found


def _finding(
    stretch: Judged,
    topic: str,
    group: str,
    members: frozenset[str],
    held: Mapping[Queue, Sequence[Holding]],
    allowed: Tolerance,
) -> Finding:
    at_ms, from_ms, to_ms = stretch.change.at_ms, stretch.start_ms, stretch.end_ms
    window, seen = Window(0, from_ms - at_ms, "Qr + A", _ROW), Settling(allowed)
    for queue in reversed(stretch.queues):  # of equals the last is told
        owned = [holding for holding in held.get(queue, ()) if holding.node in members]
        wrong = [Wrong(one.start_ms, one.end_ms, one) for one in pieces(queue, owned, at_ms, to_ms)]
        seen.add(Due("", from_ms, to_ms, at_ms, window), wrong)
    worst: Piece | None = seen.worst.about if seen.worst and seen.reaches_ms > 0 else None
    more: dict[str, Any] = {"group": group}
    if worst is not None:
        more |= {"queue_id": worst.queue[1], "clients": list(worst.owners)}
        if not worst.owners:  # a client's id begins with its node's name
            due = (one for one in stretch.members if worst.queue in share(one, stretch.queues, stretch.members))
            more |= {"holder": next(due)}
    measured = seen.measured(window)
    return finding(
        (worst.owners[0] if worst and worst.owners else group, worst.queue[0] if worst else "", topic),
        "must have an owner" if worst and not worst.owners else "must have one owner",
        (from_ms, to_ms),
        Rule(_ROW, ""),
        out=(max(worst.start_ms, from_ms), worst.end_ms) if worst else None,
        after=stretch.change.what,
        more=more,
        **seen.counts | measured | {"measured_ms": measured["measured_ms"] or 0.0, "examined": len(stretch.queues)},
    )


FIRST_TAKEN, _FIRST_ANSWERED, _NONE_ANSWERED = "first taken", "first answered", "answered no offset"
_FIRST_ROW = "ConsumerManageProcessor: a group without an offset begins at 0 if the whole queue is in memory"


def first_takes(control: Control, world: World) -> Iterator[Finding]:
    """One for each group: how many queues it took for the first time, and those that it began beyond their begin."""
    if world.workload.get("broadcasting") or world.mixed_up_by_hand or world.deleted or control.rows("offset_reset"):
        return  # each broadcaster keeps its own offsets, and begins at the end; an operator may say where
    group_of = {member: group for group, members in world.groups.items() for member in members}
    ours = {node.name for node in world.ours("consumer", "broker", "slave")}
    first: dict[str, dict[tuple[str | None, str | None, int | None], Row]] = {}
    for row in control.rows("queue_taken"):
        if row.node in group_of and not row.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            queue = row.topic, row.broker_name, row.queue_id
            first.setdefault(group_of[row.node], {}).setdefault(queue, row)
    for group, taken in first.items():
        rows = [row for row in taken.values() if row.node in ours and row.broker_name in ours]
        wrong = [row for row in rows if row.offset > 0 or _found_none(row)]
        if not rows:
            continue
        one = (wrong or rows)[0]
        misled = bool(wrong) and one.said.get("answered") == one.offset
        kind = _NONE_ANSWERED if _found_none(one) else _FIRST_ANSWERED if misled else FIRST_TAKEN
        yield finding(
            (one.node, one.broker_name, one.topic),
            kind,
            (one.time_ms, one.time_ms),
            Rule(_FIRST_ROW),
            out=(one.time_ms, one.time_ms) if wrong else None,
            examined=len(rows),
            wrong=len(wrong),
            more={
                "group": group,
                "queue_id": one.queue_id,
                "offset": one.offset,
                **({"holder": one.broker_name} if kind != FIRST_TAKEN else {}),
            },
        )


def _found_none(row: Row) -> bool:
    """Whether the broker answered that it has no offset for the group; without an answer the row says nothing."""
    return row.said.get("answered", 0) is None
