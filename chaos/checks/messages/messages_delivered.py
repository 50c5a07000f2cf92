"""Every acknowledged message reaches each consumer group, in its time and as it was sent.

    acknowledged ──► received within D = 5 s ─────────────────────────────► prompt
                └──► later, or never ──► was it due before (oracle/deliveries.py)? ─┬─ no ──► waited, or waits still
                                                                                    └─ yes ─► late, or not received
    received ──► its digest is another than the sent one's ──► not as it was sent

Waiting is right while nobody can be asked for it: its queue has no consumer yet, a fault or its aftermath lasts. So a
message that is only kept by its broker, which is all that no_acknowledged_loss asks, counts as delivered by nobody; and
where one waits when the run ends the verdict is UNKNOWN, with the settle time that decides it.
Whether a queue has its consumer is queue_ownership's question, and whether a message came twice is duplicates'. With
broadcasting every consumer is a group of its own.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...oracle.deliveries import PROMPT_MS, Asker, Due, Dues, askers
from ...oracle.intervals import Stretch
from ...oracle.quiet import aftermath_ms, felt, harmful
from ...oracle.slaves import made_masters
from ...oracle.time_outs import pull_delay
from ...oracle.world import World
from ...verdict import FINDINGS_MAX, Finding, Validity, Verdict
from ..check import Group, Needs, Section, check
from ..findings import Rule, finding, rounded, verdict_by_counts
from ..plain.deliveries import DELIVERIES, LAST, Pull, Slow
from ..plain.part import Gathering
from ..plain.sent_back import SENT_BACK
from ..record.commits import dues_of
from ..record.control import Control, not_restarted
from ..tolerance import Tolerance, tolerance

PROMISED = "delivered_within_s"
KEPT = "kept beyond its delay"
_ROW = "a message wakes a held pull; a broker also checks held pulls every 5 s"
_FORMULAS = {
    "passed over": "received before it is committed",
    PROMISED: f"{PROMISED}, promised by the scenario",
    KEPT: "messageDelayLevel",
}
"""By the rule that made a message due; the others count D."""
_CHAINED = 3
"""The send's answer, the broker's look at its held pulls, the consumer's turn."""
NOT_AS_SENT, NOT_AS_GIVEN, EARLY = "not as it was sent", "not as it was given", "before its delay was over"
FIRST_DELAY_MS = 1_000.0
"""`ScheduleMessageService.FIRST_DELAY_TIME`: after a broker's start."""
_COUNTS = ("acknowledged", "prompt", "waited", "waiting", "late", "not_received", "changed", "early")
"""Once a group: prompt ones came within D; those that waited came after D, and in time all the same; those that are
waiting had not come, and were not due before the run's end; changed ones are not as they were sent; early ones came
before their delay was over."""


class _Fate(NamedTuple):
    """What became of a message that was not prompt."""

    message: Slow
    counts_as: str
    """One of _COUNTS."""
    end_ms: float
    """When it was received, or until when it was not."""
    what: str = ""
    """What is wrong with it, or what only the machine's lateness explains."""
    due: Due | None = None
    allowed: Tolerance | None = None

    @property
    def is_wrong(self) -> bool:
        over_ms = math.inf if self.due is None else self.end_ms - self.due.at_ms
        return bool(self.what) and (self.allowed is None or over_ms > self.allowed.unknown_up_to_ms)


def _fate(message: Slow, due_by: Dues, groups: Mapping[str, Asker], control: Control) -> _Fate:
    world, promised_ms = due_by.world, due_by.world.promised_ms(PROMISED)
    is_early = message.early_ms > tolerance(world.timers, 0.0, 1).valid_up_to_ms
    if message.changed or is_early:
        end_ms = message.acked_ms if message.received_ms is None else message.received_ms
        return _Fate(message, *(("early", end_ms, EARLY) if is_early else ("changed", end_ms, NOT_AS_SENT)))
    due_from_ms = message.acked_ms + message.delay_ms
    if (stored := _stored(message, due_from_ms, world)) is not None:
        allowed = control.lateness.tolerance(world, (message.broker_name,), *stored, 1)
        if stored.end_ms - stored.start_ms > allowed.valid_up_to_ms:
            return _Fate(message, "late", stored.end_ms, KEPT, Due(stored.start_ms, message.acked_ms, KEPT), allowed)
    queue = message.topic, message.broker_name, message.queue_id
    end_ms = world.end_ms if message.received_ms is None else message.received_ms
    waits = _Fate(message, "waiting" if message.received_ms is None else "waited", end_ms)
    due = due_by.of(queue, message.offset, due_from_ms, groups[message.group])
    if promised_ms is not None and (due is None or due.at_ms > due_from_ms + promised_ms):
        due = Due(due_from_ms + promised_ms, due_from_ms, PROMISED)
    if due is None or end_ms <= due.at_ms:
        return waits
    nodes, until_ms = _nodes(message, due, groups), min(end_ms, due.at_ms + PROMPT_MS)
    allowed = control.lateness.tolerance(world, nodes, due.from_ms, until_ms, _CHAINED)
    if end_ms - due.at_ms <= allowed.valid_up_to_ms:
        return waits._replace(allowed=allowed)
    count = "not_received" if message.received_ms is None else "late"
    return _Fate(message, count, end_ms, _what(message, due), due, allowed)


def _stored(message: Slow, due_ms: float, world: World) -> Stretch | None:
    """From when on the broker could put a delayed message into its queue, until when it did."""
    at_ms, broker = message.stored_ms, message.broker_name
    life = None if at_ms is None else world.life_at(broker, at_ms)
    if at_ms is None or life is None:
        return None
    stood = (fault.end_ms for fault in world.process_faults(broker) if fault.start_ms < at_ms)
    from_ms = max(due_ms, life.start_ms + FIRST_DELAY_MS, *stood)
    return Stretch(from_ms, at_ms) if from_ms < at_ms else None


def _is_senders(what: str, changed: Sequence[Slow]) -> bool:
    """Whether their producers changed them, and not the brokers that stored them: no broker knows which message was
    tried before, and what one producer sends to several brokers only the producer has in its hands; how soon each
    broker delivers a delayed message is the broker's own."""
    producers, brokers = {one.producer for one in changed}, {one.broker_name for one in changed}
    if len(producers) > 1 and len(brokers) == 1:
        return False
    tried = len(changed) > 1 and all(one.tries > 1 for one in changed)
    return tried or (what == NOT_AS_SENT and len(producers) == 1 and len(brokers) > 1)


@check(
    says="every acknowledged message reached each consumer group unchanged and within its time limit",
    group=Group.MESSAGES,
    section=Section.MESSAGES,
    is_of_the_whole=True,
    accuses_object=(NOT_AS_SENT, EARLY, KEPT),
    needs=(Needs.MESSAGES,),
    readings=(DELIVERIES, SENT_BACK),
    tells=lambda measured: _told(measured),
)
def judge(history: Gathering, world: World) -> Verdict:
    """Examined: acknowledged messages, once a group, but for those that were not due. Violations: those that came late,
    not at all, or not as they were sent."""
    if world.unclear:
        return Verdict.nothing_examined(world.unclear)
    sent, back = history.counted(DELIVERIES, world), history.counted(SENT_BACK, world)
    seen, due_by = sent.plus(back), dues_of(history.control, world)
    groups = {asker.name: asker for asker in askers(world)}
    slow = sorted(seen.slow, key=lambda one: (one.acked_ms, one.msg_key, one.group))
    fates = [_fate(message, due_by, groups, history.control) for message in slow]
    counts = dict.fromkeys(_COUNTS, 0) | Counter(fate.counts_as for fate in fates)
    counts |= {"acknowledged": len(fates) + seen.prompt, "prompt": seen.prompt}
    found = [fate for fate in fates if fate.what]
    for what in (NOT_AS_SENT, EARLY):
        if _is_senders(what, [one.message for one in found if one.what == what]):
            found = [one._replace(what=NOT_AS_GIVEN) if one.what == what else one for one in found]
    wrong = [one for one in found if one.is_wrong]
    lags = (one.allowed.lag_ms for one in fates if one.allowed is not None)
    lag_ms = max((ms for ms in lags if ms is not None), default=None)
    measured: dict[str, Any] = {**counts}
    if world.deleted:
        measured["left_out"] = sorted(world.deleted)
    if seen.prompt_ms is not None:
        measured["max_ms"] = rounded(seen.prompt_ms)
    allowed = {
        "bound_ms": rounded(PROMPT_MS),
        "formula": "D = 5 s, from when nothing keeps its consumer from pulling its queue" + _promised(world),
        "tolerance_ms": rounded(tolerance(world.timers, lag_ms or 0.0, _CHAINED).valid_up_to_ms),
        "row": _ROW,
    }
    examined = counts["acknowledged"] - counts["waiting"]
    nothing = "no acknowledged message was due" if counts["acknowledged"] else "no send was acknowledged"
    said = f"{counts['not_received']} not received, {counts['late']} late, {counts['changed']} not as they were sent"
    said += f", {counts['early']} before their delay was over" if counts["early"] else ""
    lateness = "nobody measured" if lag_ms is None else f"up to {lag_ms:.0f} ms"
    verdict = verdict_by_counts(
        examined=examined,
        wrong=len(wrong),
        unsure=len(found) - len(wrong),
        why=f"of {examined} acknowledged messages that were due: {said}",
        why_unsure=f"of {examined} acknowledged messages {said}, which may be the machine's lateness ({lateness})",
        nothing=nothing if world.of_kind("consumer") else "there was no consumer",
        measured=measured,
        allowed=allowed,
        findings=(_finding(one, world) for one in (wrong or found)[:FINDINGS_MAX]),
    )
    waiting = (one.message for one in fates if one.counts_as == "waiting")
    open_ = sum(one.acked_ms + one.delay_ms < world.end_ms - PROMPT_MS for one in waiting)
    if open_ and verdict.verdict is Validity.VALID:
        said = f"{open_:,} of {counts['acknowledged']:,} acknowledged messages were not received when the history ended"
        return replace(verdict, verdict=Validity.UNKNOWN, why=f"{said}, {_undecided(world, history.control)}")
    return verdict


def _told(measured: Mapping[str, Any]) -> str:
    """ "1,962 acknowledged, 1,950 received within 5 s, 12 waited, 0 not received" """
    said = [f"{measured.get('acknowledged', 0):,} acknowledged", f"{measured.get('prompt', 0):,} received within 5 s"]
    few = [name for name in ("waited", "waiting", "late", "changed", "early") if measured.get(name)]
    said += [f"{measured[name]:,} {name}" for name in few]
    said.append(f"{measured.get('not_received', 0):,} not received")
    if left_out := measured.get("left_out"):
        said.append(f"without topic {' and '.join(left_out)}, which was deleted by hand")
    return ", ".join(said)


def _undecided(world: World, control: Control) -> str:
    """What waits at the run's end is not delivered: which settle time decides whether it should have been."""
    if world.lost_by_hand:
        return f"and {world.lost_by_hand}"
    if failed := sorted(not_restarted(control)):
        return f"and {' and '.join(failed)} did not start again"
    if any(fault.end_ms >= world.end_ms for fault in harmful(world)):
        return "and a fault had not ended: a run that ends it, and goes on, decides them"
    brokers, clients = world.of_kind("broker"), [one.name for one in world.of_kind("consumer")]
    if refuses := [one.name for one in brokers if not all(world.permits(one.name, client) for client in clients)]:
        return f"and settings let {' and '.join(refuses)} refuse consumers"
    last_ms = max((felt(world, fault).end_ms for fault in harmful(world)), default=world.end_ms)
    due_ms = last_ms + aftermath_ms(world) + PROMPT_MS
    if due_ms < world.end_ms:
        return "and nothing tells by when they were due: no settle time decides them"
    return f"and were not due yet: `settle_s: {world.settle_s_until(due_ms, last_ms)}` decides them"


def _promised(world: World) -> str:
    promised_s = world.promised(PROMISED)
    return "" if promised_s is None else f"; {promised_s:g} s at most, promised by the scenario"


def _what(message: Slow, due: Due) -> str:
    if due.rule == "passed over":
        return "committed past" if message.received_ms is None else "committed past too early"
    return "late" if message.received_ms is not None else "not received"


def _nodes(message: Slow, due: Due, groups: Mapping[str, Asker]) -> Iterable[str]:
    """The nodes on the message's way."""
    one = due.consumer or message.receiver
    return (*([one] if one else groups[message.group].members), message.broker_name)


def _kept_by(message: Slow, due: Due | None, world: World) -> tuple[str, str]:
    """Whose guarantee was broken, and how; "" where nobody can be named, or the finding names it already."""
    full = (disk.surely for disk in world.full_disks if disk.broker == message.broker_name)
    if message.early_ms and any(one.start_ms <= (message.received_ms or 0.0) < one.end_ms for one in full):
        return "", f"the disk of {message.broker_name} was full"
    if due is None or due.rule in ("passed over", PROMISED, KEPT):
        return "", ""
    if message.offset == LAST:
        broker = _stored_by(message, world)
        return broker, f"{broker} did not deliver the delayed message"
    if message.passed_ms is not None and message.passed_ms <= due.at_ms:
        reader = due.consumer or message.receiver or ""
        for pull in message.pulls:
            if pull.code and pull.next_offset > message.offset:
                broker = world.owners.get(pull.address, message.broker_name)
                return broker, f"{broker} sent {pull.consumer} on beyond the message"
        return reader, f"{reader or 'a consumer'} went on to pull beyond the message"
    before = [pull for pull in message.pulls if pull.began_ms <= due.at_ms]
    if due.consumer and before and before[-1].failed and before[-1].consumer == due.consumer:
        delay = pull_delay(world, due.consumer, "exception")
        if delay is not None and before[-1].ended_ms + delay.ms + world.timers.delivery_ms < due.at_ms:
            return due.consumer, f"{due.consumer} did not pull again after a failed pull"
    asked = [pull for pull in before if pull.ended_ms >= due.from_ms and _lives_on(pull, due.from_ms, world)]
    vain = [pull for pull in asked if pull.ended_ms > due.at_ms or pull.code or pull.failed]
    if vain:
        broker = world.owners.get(vain[-1].address, message.broker_name)
        return broker, f"{broker} did not send {vain[-1].consumer} the message"
    is_told = due.consumer and world.is_ours(due.consumer)  # whoever it is not records no pulls
    return (due.consumer, f"{due.consumer} did not ask for the message") if is_told else ("", "")


def _stored_by(message: Slow, world: World) -> str:
    """The broker, or the slave that was made master, that acknowledged it."""
    made = made_masters(world).get(message.broker_name)
    return message.broker_name if made is None or message.acked_ms < made.at_ms else made.node


def _lives_on(pull: Pull, at_ms: float, world: World) -> bool:
    """Whether the process that sent the pull was there at this time."""
    lives = world.lives_of(pull.consumer)
    return not lives or any(life.start_ms <= pull.began_ms and at_ms < life.end_ms for life in lives)


def _finding(one: _Fate, world: World) -> Finding:
    message, due = one.message, one.due
    subject = (due.consumer if due else "") or message.receiver or message.group
    subject = message.producer if one.what == NOT_AS_GIVEN else subject
    holder, because = _kept_by(message, due, world)
    more = {
        "msg_key": message.msg_key,
        "queue_id": message.queue_id,
        "offset": None if message.offset == LAST else message.offset,
        "producer": message.producer,
        "group": message.group,
        "rule": due.rule if due else "",
        "holder": holder,
        "because": because,
    }
    since_ms, rule = one.end_ms, Rule(_ROW, "")
    timed: dict[str, Any] = {"wrong": 1}
    if due is not None:
        since_ms, rule = due.at_ms, Rule(_ROW, _FORMULAS.get(due.rule, "D"), due.at_ms - due.from_ms)
        timed = {"measured_ms": one.end_ms - due.from_ms, "over_ms": one.end_ms - due.at_ms}
    return finding(
        (subject, _stored_by(message, world), message.topic),
        one.what,
        (since_ms, one.end_ms),
        rule,
        out=(since_ms, one.end_ms),
        tolerance=one.allowed or tolerance(world.timers, None, _CHAINED),
        times={"acknowledged": message.acked_ms},
        more={name: value for name, value in more.items() if value not in (None, "")},
        **timed,
    )
