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

from collections import Counter
from typing import Any

from ...oracle.commits import Redelivery, commit_ms, flush_ms
from ...oracle.world import World
from ...verdict import Verdict
from ..check import Group, Needs, Section, check
from ..findings import rounded, verdict_by_counts
from ..plain.part import Gathering
from ..plain.repeats import REPEATS, ROW, TOO_LATE_RECEIPTS, measured_lag_ms, tolerance_of

_MEASURED = ("messages", "received_again", "stored_again")


@check(
    says="no message is stored or received twice unless a fault, retry or rebalance explains the repetition",
    group=Group.CONSUMING,
    section=Section.MESSAGES,
    needs=(Needs.MESSAGES,),
    readings=(REPEATS, TOO_LATE_RECEIPTS),
    tells=lambda measured: ", ".join(
        f"{measured.get(name, 0):,} {name.replace('_', ' ')}" for name in ("received_again", "stored_again")
    ),
)
def judge(history: Gathering, world: World) -> Verdict:
    """Examined: messages received, and their further receipts and stored copies. Violations: of these, what nothing
    explains."""
    if world.unclear:
        return Verdict.nothing_examined(world.unclear)
    if world.shared_topic is not None:
        why = f"several groups read {world.shared_topic}, and rows do not say which group received a message"
        return Verdict.nothing_examined(why)
    repeats = history.counted(REPEATS, world).plus(history.counted(TOO_LATE_RECEIPTS, world))
    of, lag_ms = Counter(repeats.counts), measured_lag_ms(history.control.lateness, world)
    rules, first_ms = Redelivery.of(world), commit_ms(world)
    within_ms = first_ms + flush_ms(world)
    allowed = {
        "bound_ms": rounded(first_ms),
        "formula": f"first received up to {first_ms:.0f} ms before its queue changed hands (first commit), or "
        f"{rules.owners_ms:.0f} ms after (Qr + A); in a fault {within_ms:.0f} ms before it (commit + flush) until its "
        "aftermath is over; stored no oftener than tried",
        "tolerance_ms": rounded(tolerance_of(world, lag_ms).valid_up_to_ms),
        "row": ROW,
    }
    measured: dict[str, Any] = {name: of[name] for name in _MEASURED}
    if repeats.oldest_ms is not None:
        measured["oldest_ms"] = rounded(repeats.oldest_ms)
    lateness = "nobody measured" if lag_ms is None else f"up to {lag_ms:.0f} ms"
    if of["received_too_late"]:
        measured["received_too_late"] = of["received_too_late"]
    wrong = [
        (of["received_too_late"], "messages were received after their consumer had given the queue up"),
        (of["wrong"], "duplicates that no fault, rebalance or retry explains"),
    ]
    perhaps = "duplicates" if of["late"] else "receipts of queues that were given up"
    return verdict_by_counts(
        examined=sum(measured[name] for name in _MEASURED),
        wrong=of["wrong"] + of["received_too_late"],
        unsure=of["late"] + of["perhaps_too_late"],
        why="; ".join(f"{count:,} {what}" for count, what in wrong if count),
        why_unsure=f"{of['late'] or of['perhaps_too_late']} {perhaps} may be the machine's lateness ({lateness}), "
        "or no row says when their queue was taken",
        nothing="no message was received",
        measured=measured,
        allowed=allowed,
        findings=repeats.findings,
    )
