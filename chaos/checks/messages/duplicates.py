"""How often messages came twice, and whether faults and rebalances explain it. RocketMQ promises at-least-once.

    older holding's receipt ── commit (first after 10 s, then every 5 s) ──┬── younger holding taken ── its receipt
                       └────────── at most U before it was taken ──────────┘

Two ways for a message to come twice, each with its bound:

* The same stored copy is received again. That needs another holding of its queue (`queue_taken`), and the older
  holding's receipt at most U = 10 s before the younger was taken (what was not committed), or at most Qr + A after it
  (two owners until the group has shared its queues). A fault widens both: U grows by the 5 s between two flushes of a
  broker's offset table, and owners may disagree until `aftermath_ms` after its end. Twice within one holding is wrong.
* It was stored more than once: never more often than its tries that may have stored it. If final reads found no more
  copies than tries, the place that the acknowledgement names is wrong. If a broker's transport read the send as often
  as it is stored (`send_read_again`), its producer sent it too often.

No consumer of ours sends a message back, for its listener consumes every message. And a consumer receives nothing of a
queue that it has given up (`queue_dropped`): ConsumeMessageConcurrentlyService and ConsumeMessageOrderlyService look at
`ProcessQueue.isDropped` before each message.

So in a run without faults and rebalances every duplicate is a violation. With broadcasting every consumer is a group of
its own. Whether a message came at all is no_acknowledged_loss's question.
"""

from dataclasses import replace
from typing import Any

from ...oracle.commits import Redelivery, commit_ms, flush_ms
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import Rule, finding, rounded, verdict_by_counts
from ..plain.part import Gathering
from ..plain.repeats import REPEATS, TOO_LATE_RECEIPTS, Repeat, Repeats, measured_lag_ms, tolerance_of
from ..tolerance import Tolerance

NAME = "duplicates"
_ROW = "at-least-once: messages whose offset was not committed come again"


def gather(gathering: Gathering, world: World) -> Repeats:
    """One look at the messages; a closer one only at those that may have come twice."""
    found = gathering.counted(REPEATS, world).plus(gathering.counted(TOO_LATE_RECEIPTS, world))
    return replace(found, lag_ms=measured_lag_ms(gathering.control.lateness, world))


def judge(repeats: Repeats, world: World) -> Verdict:
    """Examined: messages received, and their further receipts and stored copies. Violations: of these, what nothing
    explains."""
    if world.unclear:
        return Verdict.nothing_examined(NAME, world.unclear)
    if world.shared_topic is not None:
        why = f"several groups read {world.shared_topic}, and rows do not say which group received a message"
        return Verdict.nothing_examined(NAME, why)
    rules, tolerance_ = Redelivery.of(world), tolerance_of(world, repeats.lag_ms)
    first_ms = commit_ms(world)
    within_ms = first_ms + flush_ms(world)
    allowed = {
        "bound_ms": rounded(first_ms),
        "formula": f"first received up to {first_ms:.0f} ms before its queue changed hands (first commit), or "
        f"{rules.owners_ms:.0f} ms after (Qr + A); in a fault {within_ms:.0f} ms before it (commit + flush) until its "
        "aftermath is over; stored no oftener than tried",
        "tolerance_ms": rounded(tolerance_.valid_up_to_ms),
        "row": _ROW,
    }
    measured: dict[str, Any] = {
        "messages": repeats.messages,
        "received_again": repeats.received_again,
        "stored_again": repeats.stored_again,
    }
    if repeats.oldest_ms is not None:
        measured["oldest_ms"] = rounded(repeats.oldest_ms)
    lateness = "nobody measured" if repeats.lag_ms is None else f"up to {repeats.lag_ms:.0f} ms"
    if repeats.too_late:
        measured["received_too_late"] = repeats.too_late
    wrong = [
        (repeats.too_late, "messages were received after their consumer had given the queue up"),
        (repeats.wrong, "duplicates that no fault, rebalance or retry explains"),
    ]
    perhaps = "duplicates" if repeats.late else "receipts of queues that were given up"
    return verdict_by_counts(
        NAME,
        examined=repeats.messages + repeats.received_again + repeats.stored_again,
        wrong=repeats.wrong + repeats.too_late,
        unsure=repeats.late + repeats.perhaps_too_late,
        why="; ".join(f"{count:,} {what}" for count, what in wrong if count),
        why_unsure=f"{repeats.late or repeats.perhaps_too_late} {perhaps} may be the machine's lateness ({lateness}), "
        "or no row says when their queue was taken",
        nothing="no message was received",
        measured=measured,
        allowed=allowed,
        findings=(_finding(repeat, tolerance_, first_ms) for repeat in repeats.told),
    )


CHECK = Check(
    name=NAME,
    says="no message is stored or received twice unless a fault, retry or rebalance explains the repetition",
    group=Group.CONSUMING,
    section=Section.MESSAGES,
    needs=(Needs.MESSAGES,),
    gather=gather,
    readings=(REPEATS, TOO_LATE_RECEIPTS),
    judge=judge,
    tells=lambda measured: ", ".join(
        f"{measured.get(name, 0):,} {name.replace('_', ' ')}" for name in ("received_again", "stored_again")
    ),
)


def _finding(repeat: Repeat, tolerance_: Tolerance, first_ms: float) -> Finding:
    more = {
        "msg_key": repeat.msg_key,
        "queue_id": repeat.queue_id,
        "offset": repeat.offset,
        "first_client": repeat.first_client,
    }
    is_timed = bool(repeat.client and repeat.over_ms)  # twice from one holding is wrong whenever it was
    return finding(
        (repeat.client, repeat.broker_name, repeat.topic),
        repeat.what,
        (repeat.at_ms, repeat.to_ms),
        Rule(_ROW, "", first_ms if is_timed else None),
        out=(repeat.at_ms, repeat.to_ms),
        tolerance=tolerance_,
        measured_ms=first_ms + (repeat.over_ms or 0.0) if is_timed else None,
        over_ms=repeat.over_ms or 0.0,
        wrong=int(repeat.is_wrong),
        late=int(not repeat.is_wrong),
        times={} if repeat.changed_ms is None else {"changed": repeat.changed_ms},
        more={name: value for name, value in more.items() if value not in (None, "")},
    )
