"""Committed offsets follow consumption: never beyond received messages, never back, in time, and kept by the broker
that got them.

    received ── 0 1 2 3 4 · · ·
    commit 5 ─────────────┘ right: all before it was received by then
    commit 7 ─────────────────── ahead: 5 and 6 are lost if its consumer dies now
    commit 4 ── after 5: back, which only a change of hands, a fault or a broker's restart explains (oracle/commits.py)
    taken at 3, 5 s after 5 was committed: the broker answered an older offset than it was told
    nothing committed since 5 was received, by a persistAllConsumerOffset or before the queue goes: uncommitted.py
    committed at a slave though the route has the master: at_slaves.py
    given up, and committed all the same, later than at once: nothing that befell others explains it

A message counts as worked off when its listener is done with it (`receive`). A group's commits are judged against what
all of its members received; with broadcasting each consumer keeps its own offsets, and none may be at a broker.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....remoting.codes import RequestCode
from ...oracle.commits import CommitRules
from ...oracle.reach import unrecorded
from ...oracle.recorded import OURS
from ...oracle.slaves import SYNCHRONIZED_MS, offsets_vary, slaves_of
from ...oracle.time_outs import OFFSET_CALL_MS
from ...oracle.world import World
from ...topology import node_of_client_id
from ...verdict import FINDINGS_MAX, Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import NEVER, Rule, at_no_time, finding, verdict_by_counts, wrong_or_late
from ..plain.commits import COMMITS
from ..plain.part import Gathering
from ..record.at_slaves import ANSWERED_MS, copied_before, misplaced
from ..record.commits import Ahead, Back, Behind, CommitFacts, Forgotten, GivenUp, OfQueue, OfQueue_, Older, dues_of
from ..record.control import Control
from ..record.route_tables import exists
from ..record.uncommitted import behind, forgotten, not_kept

NAME = "commits_follow_work"
_REPEATED = "set back by a pull"
_HANDS_OVER = 2
"""The old holder's last commit, and the broker's turn."""
_ROW = "an offset is committed when all messages before it are consumed"
_RULES = {
    "ahead": ("messages committed past before they were received", "skipped a message"),
    "back": ("offsets went back", "went backwards"),
    "older": ("queues were taken at a lower offset", "older offsets answered"),
    "behind": ("times work was not committed in time", "commits late"),
    "left": ("queues were given up without a commit", "queues given up without a commit"),
    "misplaced": ("commits were at a slave", "commits at a slave"),
    "forgotten": ("offsets were not kept", "offsets not kept"),
    "given_up": ("commits were for queues given up", "commits for queues given up"),
    "at_brokers": ("of broadcasting consumers at a broker", "commits of broadcast groups at a broker"),
}
"""What broke each rule, as the verdict's reason and the terminal's line say it."""


def judge(history: Gathering, world: World) -> Verdict:
    """Examined: commits that changed an offset, those that should have been, and messages that were committed past
    before they were received. Violations: these messages, commits of older offsets, older offsets answered, work
    that was not committed in time, or not before a queue was given up, offsets that a broker did not keep,
    broadcasters' at a broker. Unsure: their receipts may have died with a killed process, or the machine was late."""
    facts = history.counted(COMMITS, world)
    found = [*_Explained(facts, history.control, world).findings()]
    wrong = [finding for finding in found if finding.wrong]
    first = sorted(wrong or found, key=lambda one: (one.more["rule"] != "forgotten", one.from_ms, one.object))
    at_brokers = [_at_brokers(client, commits, world) for client, commits in sorted(facts.at_brokers.items())]
    broken = {rule: sum(finding.more["rule"] == rule for finding in found) for rule in _RULES}
    broken["at_brokers"] = sum(facts.at_brokers.values())
    bad, unsure = sum(broken.values()), len(found) - len(wrong)
    why = f"of {facts.commits} commits: {', '.join(f'{count} {_RULES[rule][0]}' for rule, count in broken.items())}"
    return verdict_by_counts(
        NAME,
        # Of a growing history old commits are gone when a queue is taken later.
        examined=facts.commits + sum(broken[rule] for rule in ("at_brokers", "behind", "left", "ahead")),
        wrong=bad - unsure,
        unsure=bad,
        why=why,
        why_unsure=f"{why}, which a killed consumer's lost rows or the machine's lateness may explain",
        nothing="no offset was committed" if world.of_kind("consumer") else "there was no consumer",
        unclear=world.mixed_up_by_hand,
        measured={"commits": facts.commits, **broken},
        allowed={"bound_ms": 0.0, "formula": NEVER, "row": _ROW},
        findings=(*first[:FINDINGS_MAX], *at_brokers),
    )


CHECK = Check(
    name=NAME,
    says="consumers commit in time; brokers keep offsets; no offset goes back without a fault, rebalance or operator",
    group=Group.CONSUMING,
    section=Section.MESSAGES,
    accuses_object=(_REPEATED,),
    needs=(Needs.MESSAGES,),
    readings=(COMMITS,),
    judge=judge,
    tells=lambda measured: _told(measured),
    clients=("consumer",),
)


def _told(measured: Mapping[str, Any]) -> str:
    """ "1,398 commits: 0 skipped a message, 0 went backwards" """
    shown = [rule for rule in _RULES if rule in ("ahead", "back") or measured.get(rule)]
    said = ", ".join(f"{measured.get(rule, 0):,} {_RULES[rule][1]}" for rule in shown)
    return f"{measured.get('commits', 0):,} commits: {said}"


class _Explained:
    """The facts beside what explains them."""

    def __init__(self, facts: CommitFacts, control: Control, world: World) -> None:
        deleted = {(row.topic or "", row.node) for row in control.rows("topic") if not exists(row.value)}
        ended = {row.source for row in control.rows("not_done")}
        stops = (row for row in control.rows("stopped") if world.made_by(row.node) == OURS and row.node not in ended)
        self._control, self._world = control, world
        self._rules = CommitRules(dues_of(control, world), deleted, {row.process for row in stops})
        self._facts = facts
        self._unkept = tuple(not_kept(self._odd(Forgotten), self._rules))
        self._elsewhere = {one.place for one in self._unkept}
        """Where the broker has another offset, no consumer can help it."""
        questions = (row for row in control.rows("timed_out") if row.f == RequestCode.QUERY_CONSUMER_OFFSET.name)
        waited = {(row.node, round(row.time_ms, 1)) for row in questions}
        self._unread = {
            (row.node, row.time_ms)
            for row in control.rows("queue_taken")
            if row.decoded is not None
            and ("answered" not in row.decoded or (row.node, round(row.time_ms, 1)) in waited)
        }
        """Consumers, and when each took a queue though its question for the queue's offset had no answer. The
        consumer's row says that, or the row of its transport."""

    def _odd(self, kind: type[OfQueue_]) -> Sequence[OfQueue_]:
        """In an order that does not depend on the parts of the history."""
        return sorted((one for one in self._facts.odd if isinstance(one, kind)), key=str)

    def _of(self, kind: type[OfQueue_]) -> Iterator[OfQueue_]:
        return (one for one in self._odd(kind) if one.place not in self._elsewhere)

    def findings(self) -> Iterator[Finding]:
        yield from self._ahead()
        yield from self._back()
        yield from self._older()
        yield from self._begun()
        yield from behind(self._of(Behind), self._rules, self._control)
        yield from misplaced(self._facts.at_slaves, self._rules.dues, self._control)
        yield from forgotten(self._unkept, self._rules)
        yield from self._given_up()

    def _is_deleted(self, one: OfQueue) -> bool:
        return (one.topic, one.broker_name) in self._rules.deleted

    def _ahead(self) -> Iterator[Finding]:
        rules = self._rules
        for one in self._of(Ahead):
            at_ms = one.committed_ms
            began_at = rules.began_at(one.queue, one.group, at_ms)
            if began_at is None or one.offset < began_at or self._is_deleted(one):
                continue  # where a group begins is its consumeFromWhere's to say
            if one.received_ms is not None and one.received_ms - at_ms <= (self._world.timers.clocks_ms or 0.0):
                continue  # by the clocks of two hosts, which are that far apart
            if rules.died_after(one.broker_name, at_ms, at_ms if one.acked_ms is None else one.acked_ms) is not None:
                continue  # the broker has lost what was there, and given the offset to another message
            if rules.was_reset(one.queue, one.group, at_ms, at_ms, one.offset):
                continue
            node = node_of_client_id(one.client) or rules.holder(one.queue, one.group, at_ms)
            lag_ms = self._control.lateness.largest(self._world, (node,), at_ms - 1000.0, at_ms) or 0.0
            members = rules.groups[one.group].members if one.received_ms is None else ()
            unwritten = (gap for member in members for gap in unrecorded(self._world, member, lag_ms))
            span = at_ms, self._world.end_ms if one.received_ms is None else one.received_ms
            yield finding(
                (node or one.group, one.broker_name, one.topic),
                "committed, never received" if one.received_ms is None else "committed before receipt",
                span,
                at_no_time(_ROW),
                out=span,
                **wrong_or_late(not any(gap.start_ms <= at_ms <= gap.end_ms for gap in unwritten)),
                times={} if one.acked_ms is None else {"acknowledged": one.acked_ms},
                more=one.told("ahead"),
            )

    def _back(self) -> Iterator[Finding]:
        rules = self._rules
        for one in self._of(Back):
            if self._is_deleted(one) or offsets_vary(self._world, one.broker_name, one.at_ms):
                continue
            hands = one.queue, one.group, one.offset, one.before_ms, one.at_ms
            if rules.may_go_back(*hands) or rules.was_reset(one.queue, one.group, one.at_ms, one.at_ms):
                continue
            nodes = *rules.groups[one.group].members, one.broker_name
            span = (one.before_ms or one.at_ms) - 1000.0, one.at_ms
            allowed = self._control.lateness.tolerance(self._world, nodes, *span, _HANDS_OVER)
            if rules.may_go_back(*hands, lag_ms=allowed.valid_up_to_ms - allowed.delivery_ms):
                continue
            holder = node_of_client_id(one.client) or rules.holder(one.queue, one.group, one.at_ms)
            yield finding(
                (holder or one.group, one.broker_name, one.topic),
                _REPEATED if one.is_repeated else "went back",
                (one.at_ms, one.at_ms),
                Rule(_ROW),
                out=(one.at_ms, one.at_ms),
                **wrong_or_late(not rules.may_go_back(*hands, lag_ms=allowed.lateness_ms)),
                lag_ms=allowed.lag_ms,
                times={} if one.before_ms is None else {"committed before": one.before_ms},
                more={**one.told("back"), "before": one.before},
            )

    def _older(self) -> Iterator[Finding]:
        world, rules = self._world, self._rules
        for one in self._of(Older):
            faults = [fault for fault in world.process_faults(one.consumer) if not fault.ends_process]
            if self._is_deleted(one) or any(fault.overlaps(one.passed_ms, one.taken_ms) for fault in faults):
                continue
            slaves, copied = slaves_of(world, one.broker_name), copied_before(world, one.broker_name, one.taken_ms)
            varies, answered = offsets_vary(world, one.broker_name, one.taken_ms), one.broker_name
            if varies and (copied is None or one.master_ms is None):
                continue
            if rules.was_reset(one.queue, one.group, one.passed_ms, one.taken_ms):
                continue
            if rules.may_have_lost(one.broker_name, one.passed_ms, one.taken_ms):
                continue
            since_ms, measured_ms, bound_ms = one.passed_ms, one.taken_ms - one.passed_ms, ANSWERED_MS
            if varies and copied is not None and one.master_ms is not None:
                since_ms, measured_ms, bound_ms = one.master_ms, copied.to_ms - one.master_ms, SYNCHRONIZED_MS
                answered = slaves[0]
            nodes = one.consumer, one.broker_name, *slaves
            from_ms = one.taken_ms - 2 * ANSWERED_MS
            allowed = self._control.lateness.tolerance(world, nodes, from_ms, one.taken_ms, 1)
            if measured_ms - bound_ms <= allowed.valid_up_to_ms:
                continue
            if (one.consumer, one.taken_ms) in self._unread or one.answered not in (None, one.offset):
                continue  # `_begun` tells of this
            yield finding(
                (answered, one.consumer, one.topic),
                "answered a lower offset",
                (since_ms, one.taken_ms),
                Rule(_ROW, "SlaveSynchronize: 10 s + 3 s" if varies else "time-out of the query", bound_ms),
                out=(one.taken_ms, one.taken_ms),
                tolerance=allowed,
                measured_ms=measured_ms,
                over_ms=measured_ms - bound_ms,
                more=one.told("older"),
            )

    def _begun(self) -> Iterator[Finding]:
        """Queues that a consumer began to read elsewhere than at the committed offset that it was answered, or without
        an answer."""
        group_of = {member: group.name for group in self._rules.groups.values() for member in group.members}
        for row in (row for row in self._control.rows("queue_taken") if row.node in group_of):
            answered = (row.decoded or {}).get("answered")
            is_elsewhere = answered is not None and answered >= 0 and row.offset != answered
            if is_elsewhere or (row.node, row.time_ms) in self._unread:
                said = {"rule": "older", "group": group_of[row.node], "queue_id": row.queue_id, "offset": row.offset}
                yield finding(
                    (row.node, row.broker_name or "", row.topic or ""),
                    "began at a wrong offset" if is_elsewhere else "began without an answer",
                    (row.time_ms, row.time_ms),
                    at_no_time("RebalancePushImpl.computePullFromWhere"),
                    out=(row.time_ms, row.time_ms + 1.0),
                    examined=1,
                    wrong=1,
                    more={**said, "answered": answered},
                )

    def _given_up(self) -> Iterator[Finding]:
        """But for what may have kept the consumer's own last commit on its way, or held it up while it looked for the
        broker; by a channel by which it had unregistered, a round of commits that was under way, too."""
        world, names = self._world, [server.name for server in self._world.of_kind("name_server")]
        brokers = [broker.name for broker in world.of_kind("broker", "slave")]
        for one in self._of(GivenUp):
            nodes = [*names, *(brokers if one.left else (one.broker_name, *slaves_of(world, one.broker_name)))]
            from_ms = one.dropped_ms - (OFFSET_CALL_MS if one.left else 0.0)
            if not all(self._rules.dues.is_whole(one.consumer, node, from_ms, one.at_ms) for node in nodes):
                continue
            pair, span = (one.consumer, one.broker_name), (one.dropped_ms, one.at_ms)
            allowed = self._control.lateness.tolerance(world, pair, *span, _HANDS_OVER)
            (way_ms,) = world.round_trips_ms(one.consumer, (one.broker_name,), *span)
            after_ms = one.at_ms - one.dropped_ms
            if after_ms - way_ms <= allowed.valid_up_to_ms and not one.left:
                continue
            row = "RebalanceImpl: a queue's offset is persisted before it is removed"
            if one.left:
                row = "DefaultMQPushConsumerImpl.shutdown: persistConsumerOffset, then unregisterConsumer"
            yield finding(
                (*pair, one.topic),
                "committed after unregistering" if one.left else "committed without the queue",
                span,
                Rule(row, "at once", 0.0),
                out=(one.at_ms, one.at_ms),
                **({"wrong": 1} if one.left else {}),
                tolerance=allowed,
                measured_ms=after_ms,
                over_ms=after_ms - way_ms,
                more=one.told("given_up"),
            )


def _at_brokers(client: str, commits: int, world: World) -> Finding:
    return finding(
        client or "consumers",
        "broadcast offsets at a broker",
        (0.0, world.end_ms),
        Rule("with broadcasting each consumer keeps its own offsets"),
        wrong=1,
        more={"rule": "at_brokers", "commits": commits},
    )
