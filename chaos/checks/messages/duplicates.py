"""How often messages came twice, and whether faults and rebalances explain it. RocketMQ promises at-least-once.

    older holding's receipt ── commit (first after 10 s, then every 5 s) ──┬── younger holding taken ── its receipt
                       └────────── at most U before it was taken ──────────┘

Two ways for a message to come twice, each with its bound:

* The same stored copy is received again. That needs another holding of its queue (`queue_taken`), and the older
  holding's receipt at most U = 10 s before the younger was taken (what was not committed), or at most Qr + A after it
  (two owners until the group has shared its queues). A fault widens both: U grows by the 5 s between two flushes of a
  broker's offset table, and owners may disagree until `aftermath_ms` after its end. Twice within one holding is wrong.
* It was stored more than once: never more often than its tries that may have stored it.

And a consumer receives nothing of a queue that it has given up (`queue_dropped`): ConsumeMessageConcurrentlyService and
ConsumeMessageOrderlyService look at `ProcessQueue.isDropped` before each message.

So in a run without faults and rebalances every duplicate is a violation. With broadcasting every consumer is a group of
its own. Whether a message came at all is no_acknowledged_loss's question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...oracle.commits import Redelivery, commit_ms, flush_ms
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Facts, Group, Needs, Reads, Section, largest
from ..findings import Rule, finding, rounded, verdict_by_counts
from ..plain.repeats import received_too_late, repeats_of_rows
from ..record.lateness import Lateness
from ..record.repeats import Again
from ..tolerance import Tolerance, tolerance

if TYPE_CHECKING:
    from ..dataframes.gathering import Gathering
    from ..plain.history import PlainHistory

NAME = "duplicates"
_ROW = "at-least-once: what was not committed comes again"


class Repeat(NamedTuple):
    """A receipt, or a stored copy, of a message that was there before; times of the first one and of this one."""

    at_ms: float
    to_ms: float
    msg_key: str
    what: str
    topic: str
    broker_name: str
    queue_id: int | None
    offset: int | None
    client: str = ""
    first_client: str = ""
    changed_ms: float | None = None
    """When its queue changed hands between the two."""
    over_ms: float | None = None
    """How far that lies from what explains the repeat; None: nothing says when the queue was taken."""
    is_wrong: bool = True
    """False: only the machine's lateness may explain it."""


@dataclass(frozen=True)
class Repeats(Facts):
    """How many messages were received, how often again, and how often stored again."""

    messages: int = 0
    received_again: int = 0
    stored_again: int = 0
    wrong: int = 0
    """Of both: what no fault, rebalance or retry explains."""
    late: int = 0
    """Of both: what only the machine's lateness explains."""
    too_late: int = 0
    """Receipts of a queue that was given up."""
    perhaps_too_late: int = 0
    """Such receipts that the machine's lateness explains."""
    oldest_ms: float | None = largest()
    """How long before its queue changed hands the earliest first receipt came of what came again."""
    lag_ms: float | None = largest()
    """How late the timers of consumers and brokers were at most; None: nobody measured it."""
    first: tuple[Repeat, ...] = ()
    """The first of the wrong ones, or of the late ones."""


def gather(gathering: Gathering, world: World) -> Repeats:
    """One pass over the messages; a closer look only at those that may have come twice."""
    from ..dataframes.fates import message_counts
    from ..dataframes.repeats import received_again, received_too_late, stored_again

    lag_ms = measured_lag_ms(gathering.control.lateness, world)
    counts, receipts, copies = message_counts(gathering), Again(), Again()
    if counts.messages and counts.suspicious:
        alone = bool(world.workload.get("broadcasting"))
        receipts = received_again(gathering, Redelivery.of(world), tolerance_of(world, lag_ms), each_alone=alone)
    if counts.twice_stored:
        copies = stored_again(gathering)
    beyond = received_too_late(gathering, tolerance_of(world, lag_ms))
    return _repeats(counts.messages, receipts, copies, beyond, lag_ms)


def plain(history: PlainHistory, world: World) -> Repeats:
    """The same of its rows."""
    lag_ms, alone = measured_lag_ms(history.control.lateness, world), bool(world.workload.get("broadcasting"))
    rules, allowed = Redelivery.of(world), tolerance_of(world, lag_ms)
    beyond = received_too_late(history.rows, allowed)
    return _repeats(*repeats_of_rows(history.rows, rules, allowed, each_alone=alone), beyond, lag_ms)


def _repeats(messages: int, receipts: Again, copies: Again, beyond: Again, lag_ms: float | None) -> Repeats:
    kinds = beyond, receipts, copies
    return Repeats(
        messages=messages,
        received_again=receipts.again,
        stored_again=copies.again,
        wrong=receipts.wrong + copies.wrong,
        late=receipts.late + copies.late,
        too_late=beyond.wrong,
        perhaps_too_late=beyond.late,
        oldest_ms=receipts.oldest_ms,
        lag_ms=lag_ms,
        first=tuple(_repeat(row, is_wrong=bool(found.wrong)) for found in kinds for row in found.first),
    )


def judge(repeats: Repeats, world: World) -> Verdict:
    """Examined: messages received. Violations: receipts and stored copies that nothing explains."""
    if world.unclear:
        return Verdict.nothing_examined(NAME, world.unclear)
    if world.shared_topic is not None:
        why = f"several groups read {world.shared_topic}, and what each of them received is not told apart"
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
    if not repeats.messages:
        return Verdict.nothing_examined(NAME, "no message was received", measured=measured, allowed=allowed)
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
        examined=repeats.messages,
        wrong=repeats.wrong + repeats.too_late,
        unsure=repeats.late + repeats.perhaps_too_late,
        why="; ".join(f"{count:,} {what}" for count, what in wrong if count),
        why_unsure=f"{repeats.late or repeats.perhaps_too_late} {perhaps} may be the machine's lateness ({lateness}), "
        "or the taking of their queue is missing",
        measured=measured,
        allowed=allowed,
        findings=(_finding(repeat, tolerance_, first_ms) for repeat in repeats.first),
    )


CHECK = Check(
    name=NAME,
    says="no more repeated messages than faults and rebalances explain",
    group=Group.CONSUMING,
    section=Section.MESSAGES,
    needs=(Needs.MESSAGES,),
    reads=Reads.MESSAGES,
    gather=gather,
    plain=plain,
    judge=judge,
    tells=lambda measured: ", ".join(
        f"{measured.get(name, 0):,} {name.replace('_', ' ')}" for name in ("received_again", "stored_again")
    ),
    adds_up=True,
)


def measured_lag_ms(lateness: Lateness, world: World) -> float | None:
    """Of the whole run: a receipt that comes again joins several nodes and times, and only the worst one matters."""
    nodes = [node.name for node in world.of_kind("consumer", "broker")]
    return lateness.largest(world, nodes, 0.0, world.end_ms)


def tolerance_of(world: World, lag_ms: float | None) -> Tolerance:
    return tolerance(world.timers, lag_ms, 2)


def _repeat(row: Mapping[str, Any], *, is_wrong: bool) -> Repeat:
    known = {name: row[name] for name in Repeat._fields if row.get(name) is not None}
    return Repeat(**{"queue_id": None, "offset": None, **known}, is_wrong=is_wrong)


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
