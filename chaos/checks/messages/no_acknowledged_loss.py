"""Every send that ended `ok` is received by a consumer, or found by the final reads.

A message that nobody received and that the final read of its queue does not hold is lost, when that read was complete
(`read_done`). When it was not, nobody knows: UNKNOWN. A send that ended `info` or `fail` promises nothing. SEND_OK of a
SYNC_MASTER promises that a slave has the message, too, and so is wrong while no slave of its runs. A broker that is
started again has recovered (`boot`) every queue up to what it had acknowledged, whoever has received that.
"""

from collections.abc import Mapping
from typing import Any

from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import Rule, finding, verdict_by_counts, wrong_or_late
from ..plain.fates import FATES, Fates, Missing

NAME = "no_acknowledged_loss"
_COUNTS = ("acknowledged", "received", "only_in_final_reads", "lost", "unread")
_ALLOWED = {"bound_ms": None, "formula": "0 lost", "tolerance_ms": 0, "row": "an acknowledged send is durable"}


def judge(fates: Fates, world: World) -> Verdict:
    """Examined: acknowledged sends. Violations: those that are lost."""
    measured = {name: getattr(fates, name) for name in _COUNTS}
    why = f"{fates.lost} of {fates.acknowledged} acknowledged sends are neither received nor in the final reads"
    if fates.unsafe:
        measured["unsafe"] = fates.unsafe
    if fates.unsafe and not fates.lost:
        why = f"{fates.unsafe} of {fates.acknowledged} sends were acknowledged by a SYNC_MASTER without a slave"
    if fates.forgotten:
        measured["forgotten"] = fates.forgotten
    if fates.forgotten and not fates.lost:
        one = fates.first_forgotten[0]
        why = (
            f"{one.broker_name} forgot {fates.forgotten} of {fates.acknowledged} acknowledged sends when it was started"
            f" again: offset {one.offset} of {one.topic}, queue {one.queue_id}, is not in what it recovered"
        )
    return verdict_by_counts(
        NAME,
        examined=fates.acknowledged,
        wrong=fates.lost + fates.unsafe + fates.forgotten,
        unsure=fates.unread,
        why=why,
        why_unsure=f"{fates.unread} acknowledged sends were not received, and the final reads of their queues are "
        "incomplete",
        nothing="no send was acknowledged",
        unclear=world.mixed_up_by_hand if fates.lost else "",
        measured=measured,
        allowed={**_ALLOWED, "formula": "0 forgotten"} if fates.forgotten and not fates.lost else _ALLOWED,
        findings=(
            *(_forgotten(one, world) for one in fates.first_forgotten),
            *map(_unsafe, fates.first_unsafe),
            *(_finding(one, world) for one in (*fates.first_lost, *fates.first_unread)),
        ),
    )


CHECK = Check(
    name=NAME,
    says="every message that a broker acknowledged was received by a consumer or is still stored in a broker",
    group=Group.MESSAGES,
    section=Section.MESSAGES,
    accuses_object=("acknowledged without a slave", "lost"),
    needs=(Needs.MESSAGES,),
    readings=(FATES,),
    judge=judge,
    tells=lambda measured: _told(measured),
)


def _told(measured: Mapping[str, Any]) -> str:
    """ "1,962 acknowledged, 1,960 received, 2 only in final reads, 0 lost" """
    few = [name for name in ("only_in_final_reads", "unread", "unsafe", "forgotten") if measured.get(name)]
    shown = ("acknowledged", "received", *few, "lost")
    return ", ".join(f"{measured[name]:,} {name.replace('_', ' ')}" for name in shown if name in measured)


def _unsafe(send: Missing) -> Finding:
    rule = Rule("brokerRole=SYNC_MASTER: SEND_OK when a slave has the message", "SLAVE_NOT_AVAILABLE")
    return _of_send(send, (send.producer, send.broker_name), "acknowledged without a slave", rule)


def _forgotten(send: Missing, world: World) -> Finding:
    rule = Rule("CommitLog: a restarted broker has every message that it had acknowledged", "0 forgotten")
    who = send.broker_name, send.producer
    return _of_send(send, who, "forgotten at a start", rule, **_next(send, world))


def _finding(send: Missing, world: World) -> Finding:
    rule, who = Rule("an acknowledged send is durable", "0 lost"), (send.producer, send.broker_name)
    if send.is_lost:
        return _of_send(send, who, "lost", rule, **_next(send, world))
    return _of_send(send, who, "not read", rule, is_wrong=False)


def _next(send: Missing, world: World) -> dict[str, Any]:
    """When the broker was next started, else when its next fault began: in this the message may have been lost."""
    starts = [(life.start_ms, "restart") for life in world.lives_of(send.broker_name)]
    faults = [(fault.start_ms, "fault") for fault in world.process_faults(send.broker_name)]
    after = (one for one in sorted(starts) + sorted(faults) if one[0] > send.acked_ms)
    return next(({"until_ms": at_ms, "next": what} for at_ms, what in after), {})


def _of_send(
    send: Missing, who: tuple[str, str], kind: str, rule: Rule, *, is_wrong: bool = True, **more: Any
) -> Finding:
    """`who`: whose doing it is, and of what. Not wrong: nobody knows."""
    out = send.acked_ms, more.pop("until_ms", None)
    more = {"msg_key": send.msg_key, "queue_id": send.queue_id, "offset": send.offset, **more}
    span, counts = (send.acked_ms, send.acked_ms), wrong_or_late(is_wrong)
    return finding((*who, send.topic), kind, span, rule, out=out, more=more, **counts)
