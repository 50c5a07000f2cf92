"""Every send that ended `ok` is received by a consumer, or found by the final reads.

A message that nobody received and that the final read of its queue does not hold is lost, when that read was complete
(`read_done`). When it was not, nobody knows: UNKNOWN. A send that ended `info` or `fail` promises nothing. SEND_OK of a
SYNC_MASTER promises that a slave has the message, too, and so is wrong while no slave of its runs. A broker that is
started again has recovered (`boot`) every queue up to what it had acknowledged, whoever has received that. The answer's
offsetMsgId names the broker's address and the message's offset in the commit log, so an operator finds the message.
"""

from collections.abc import Mapping
from typing import Any

from ...oracle.world import World
from ...verdict import Verdict
from ..check import Check, Group, Needs, Section
from ..findings import verdict_by_counts
from ..plain.fates import FATES, KINDS
from ..plain.part import Gathering

NAME = "no_acknowledged_loss"
_COUNTS = ("acknowledged", "received", "only_in_final_reads", "lost", "unread")
_ALLOWED = {"bound_ms": None, "formula": "0 lost", "tolerance_ms": 0, "row": "an acknowledged send is durable"}
_ORDER = [kind for kind, _ in KINDS.values()]


def judge(history: Gathering, world: World) -> Verdict:
    """Examined: acknowledged sends. Violations: those that are lost."""
    fates = history.counted(FATES, world)
    of = {**dict.fromkeys((*_COUNTS, *KINDS), 0), **fates.counts}
    findings = sorted(fates.findings, key=lambda one: _ORDER.index(one.kind))
    why, allowed = (
        f"{of['lost']} of {of['acknowledged']} acknowledged sends are neither received nor in the final reads",
        _ALLOWED,
    )
    if of["unsafe"] and not of["lost"]:
        why = f"{of['unsafe']} of {of['acknowledged']} sends were acknowledged by a SYNC_MASTER without a slave"
    if of["forgotten"] and not of["lost"]:
        one, allowed = findings[0], {**_ALLOWED, "formula": "0 forgotten"}
        why = (
            f"{one.subject} forgot {of['forgotten']} of {of['acknowledged']} acknowledged sends when it was started"
            f" again: offset {one.more['offset']} of {one.topic}, queue {one.more['queue_id']}, is not in what it "
            "recovered"
        )
    wrong_ids = of["under_another_id"] + of["with_another_address"]
    if wrong_ids and not of["lost"] + of["unsafe"] + of["forgotten"]:
        allowed = {**_ALLOWED, "formula": "0 wrong ids", "row": findings[0].row}
        why = f"{wrong_ids} of {of['acknowledged']} sends were answered with a wrong offsetMsgId"
    return verdict_by_counts(
        NAME,
        examined=of["acknowledged"],
        wrong=of["lost"] + of["unsafe"] + of["forgotten"] + wrong_ids,
        unsure=of["unread"],
        why=why,
        why_unsure=f"{of['unread']} acknowledged sends were not received, and the final reads of their queues are "
        "incomplete",
        nothing="no send was acknowledged",
        unclear=world.mixed_up_by_hand if of["lost"] else "",
        measured={name: count for name, count in of.items() if name in _COUNTS or count},
        allowed=allowed,
        findings=findings,
    )


CHECK = Check(
    name=NAME,
    says="every message that a broker acknowledged was received by a consumer or is still stored in a broker, "
    "under the offsetMsgId of the answer",
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
    few = [name for name in ("only_in_final_reads", *KINDS) if name != "lost" and measured.get(name)]
    shown = ("acknowledged", "received", *few, "lost")
    return ", ".join(f"{measured[name]:,} {name.replace('_', ' ')}" for name in shown if name in measured)
