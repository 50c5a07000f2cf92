"""Every send that ended `ok` is received by a consumer, or found by the final reads.

A message that nobody received and that the final read of its queue does not hold is lost, when that read was complete
(`read_done`). When it was not, nobody knows: UNKNOWN. A send that ended `info` or `fail` promises nothing. SEND_OK of a
SYNC_MASTER promises that a slave has the message, too, and so is wrong while no slave of its runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...oracle.slaves import alone
from ...oracle.world import World
from ...verdict import FINDINGS_MAX, Finding, Verdict
from ..check import Check, Facts, Group, Needs, Reads, Section
from ..findings import Rule, finding, verdict_by_counts
from ..plain.traffic import fates_of_rows, first_of

if TYPE_CHECKING:
    from ..dataframes.gathering import Gathering
    from ..plain.history import PlainHistory

NAME = "no_acknowledged_loss"
_COUNTS = ("acknowledged", "received", "only_in_final_reads", "lost", "unread")
_ALLOWED = {"bound_ms": None, "formula": "0 lost", "tolerance_ms": 0, "row": "an acknowledged send is durable"}


class Missing(NamedTuple):
    """An acknowledged send whose message nobody received and no final read holds."""

    acked_ms: float
    msg_key: str
    producer: str
    topic: str
    broker_name: str
    queue_id: int
    offset: int | None
    is_lost: bool
    """False: the final read of its queue is incomplete, so nobody knows."""


@dataclass(frozen=True)
class Fates(Facts):
    """What became of the acknowledged sends; `missing` has the first ones of those that are lost, or unread."""

    acknowledged: int = 0
    received: int = 0
    only_in_final_reads: int = 0
    lost: int = 0
    unread: int = 0
    missing: tuple[Missing, ...] = ()
    unsafe: int = 0
    """Acknowledged by a SYNC_MASTER while no slave of its ran."""
    first_unsafe: tuple[Missing, ...] = ()


def gather(gathering: Gathering, world: World) -> Fates:
    """One pass over the messages, and a look-up of those that are missing."""
    from ..dataframes.fates import message_counts, missing, unsafe

    counts = message_counts(gathering)
    found: list[Missing] = []
    for fate in ("lost", "unread"):
        if getattr(counts, fate):
            found += [missing_of(send, is_lost=fate == "lost") for send in missing(gathering, fate)]
    number, first = unsafe(gathering, alone(world)) if alone(world) else (0, [])
    return Fates(
        **{name: getattr(counts, name) for name in _COUNTS},
        missing=tuple(found),
        unsafe=number,
        first_unsafe=tuple(missing_of(send, is_lost=False) for send in first),
    )


def plain(history: PlainHistory, world: World) -> Fates:
    """The same of its rows."""
    found = fates_of_rows(history, alone(world))
    counts = {name: len(getattr(found, name)) for name in _COUNTS[1:]}
    unsafe = sorted(found.unsafe, key=lambda send: (send["time_ms"], send["msg_key"]))[:FINDINGS_MAX]
    missing = [missing_of(send, is_lost=True) for send in first_of(found.lost)]
    return Fates(
        acknowledged=sum(counts.values()),
        **counts,
        missing=(*missing, *(missing_of(send, is_lost=False) for send in first_of(found.unread))),
        unsafe=len(found.unsafe),
        first_unsafe=tuple(missing_of(send, is_lost=False) for send in unsafe),
    )


def judge(fates: Fates, world: World) -> Verdict:
    """Examined: acknowledged sends. Violations: those that are lost."""
    measured = {name: getattr(fates, name) for name in _COUNTS}
    if not fates.acknowledged:
        return Verdict.nothing_examined(NAME, "no send was acknowledged", measured=measured, allowed=_ALLOWED)
    if fates.lost and world.mixed_up_by_hand:
        return Verdict.nothing_examined(NAME, world.mixed_up_by_hand, measured=measured, allowed=_ALLOWED)
    why = f"{fates.lost} of {fates.acknowledged} acknowledged sends are neither received nor in the final reads"
    if fates.unsafe:
        measured["unsafe"] = fates.unsafe
    if fates.unsafe and not fates.lost:
        why = f"{fates.unsafe} of {fates.acknowledged} sends were acknowledged by a SYNC_MASTER without a slave"
    missing = sorted(fates.missing, key=lambda send: (not send.is_lost, send))
    return verdict_by_counts(
        NAME,
        examined=fates.acknowledged,
        wrong=fates.lost + fates.unsafe,
        unsure=fates.unread,
        why=why,
        why_unsure=f"{fates.unread} acknowledged sends were not received, and the final reads of their queues are "
        "incomplete",
        measured=measured,
        allowed=_ALLOWED,
        findings=(*map(_unsafe, fates.first_unsafe), *map(_finding, missing)),
    )


CHECK = Check(
    name=NAME,
    says="every acknowledged message was received or is still in a broker",
    group=Group.MESSAGES,
    section=Section.MESSAGES,
    is_of_the_whole=True,
    needs=(Needs.MESSAGES,),
    reads=Reads.MESSAGES,
    gather=gather,
    plain=plain,
    judge=judge,
    tells=lambda measured: _told(measured),
    adds_up=True,
)


def _told(measured: Mapping[str, Any]) -> str:
    """ "1,962 acknowledged, 1,960 received, 2 only in final reads, 0 lost" """
    few = [name for name in ("only_in_final_reads", "unread", "unsafe") if measured.get(name)]
    shown = ("acknowledged", "received", *few, "lost")
    return ", ".join(f"{measured[name]:,} {name.replace('_', ' ')}" for name in shown if name in measured)


def missing_of(send: Mapping[str, Any], *, is_lost: bool) -> Missing:
    """As its row says it."""
    where = send["topic"], send["broker_name"], send["queue_id"], send["offset"]
    return Missing(send["time_ms"], send["msg_key"], send["node"], *where, is_lost)


def _unsafe(send: Missing) -> Finding:
    return finding(
        (send.producer, send.broker_name, send.topic),
        "acknowledged without a slave",
        (send.acked_ms, send.acked_ms),
        Rule("brokerRole=SYNC_MASTER: SEND_OK once a slave has it", "SLAVE_NOT_AVAILABLE"),
        out=(send.acked_ms, None),
        wrong=1,
        more={"msg_key": send.msg_key, "queue_id": send.queue_id, "offset": send.offset},
    )


def _finding(send: Missing) -> Finding:
    return finding(
        (send.producer, send.broker_name, send.topic),
        "lost" if send.is_lost else "not read",
        (send.acked_ms, send.acked_ms),
        Rule("an acknowledged send is durable", "0 lost"),
        out=(send.acked_ms, None),
        wrong=int(send.is_lost),
        late=int(not send.is_lost),
        more={"msg_key": send.msg_key, "queue_id": send.queue_id, "offset": send.offset},
    )
