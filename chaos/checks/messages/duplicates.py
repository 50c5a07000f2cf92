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

A consumer of ours sends back only what its listener failed (`workload.failing_share`), once. What it could not send
back the listener gets again after 5 s (`submitConsumeRequestLater`), not sooner. And a consumer receives nothing of a
queue that it has given up (`queue_dropped`): ConsumeMessageConcurrentlyService and ConsumeMessageOrderlyService look at
`ProcessQueue.isDropped` before each message.

So in a run without faults and rebalances every duplicate is a violation. With broadcasting every consumer is a group of
its own. Whether a message came at all is no_acknowledged_loss's question.

Messages that came twice, and receipts of queues that had been given up.

receive ── by key and place ─┬─ once: counted
                             └─ again: what the older holding's receipt and the change of hands explain
send, read ── by key ── at more than one place ── oftener than it was tried?
receive ── of a holding ── after its queue_dropped
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from ....clients.consumer.config import dead_letter_topic, retry_topic
from ....clients.consumer.consume_service import DROPPED, KEPT
from ....clients.consumer.send_back import ANEW, TO_BROKER
from ....remoting.codes import RequestCode
from ....remoting.message_properties import is_of_share
from ....remoting.topics import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX
from ...arrow import np, pa, pc
from ...faults.fault import Loss
from ...oracle.commits import Redelivery, commit_ms, flush_ms
from ...oracle.deliveries import falls_due
from ...oracle.intervals import grouped
from ...oracle.link import MOMENT_MS
from ...oracle.quiet import calm
from ...oracle.recorded import Fault
from ...oracle.slaves import SYNCHRONIZED_MS, made_masters, slaves_of
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Found, Group, Needs, Section, check, foremost, largest
from ..findings import Rule, finding, rounded, verdict_by_counts, wrong_or_late
from ..plain.part import PLACE, Gathering, Part, Reading, Row, Together, codes, floats, is_one_of, rows_in
from ..record.control import Control
from ..record.lateness import Lateness
from ..tolerance import Tolerance, tolerance

_MEASURED = ("messages", "received_again", "stored_again")
ROW = "at-least-once: messages whose offset was not committed come again"
TOO_LATE = "received without the queue"
MISNAMED = "acknowledged a wrong offset"
SENT_BACK, UNCOUNTED = "sent back after success", "failed again as a first try"
NOT_BACK, BOTH_WAYS = "sent back elsewhere", "sent back and tried again"
STORED_BACK = "stored more often than sent back"
TOO_SOON, AGAIN_MS = "tried again too soon", 5_000.0
"""`submitConsumeRequestLater`: how long a consumer waits that could not send a message back."""
FLUSHED_MS = 10_000.0
"""`MessageStoreConfig.flushDelayOffsetInterval`: how often a broker writes how far its delay levels are."""


@dataclass(frozen=True)
class Repeats(Found):
    """How many messages were received, how often again, and how often stored again. Of both: what no fault, rebalance
    or retry explains (wrong), and what only the machine's lateness explains (late); the same of receipts of a queue
    that was given up (received_too_late, perhaps_too_late)."""

    oldest_ms: float | None = largest()
    """How long before its queue changed hands the earliest first receipt came of what came again."""


def measured_lag_ms(lateness: Lateness, world: World) -> float | None:
    """Of the whole run: a receipt that comes again joins several nodes and times, and only the worst one matters."""
    nodes = [node.name for node in world.of_kind("consumer", "broker")]
    return lateness.largest(world, nodes, 0.0, world.end_ms)


def tolerance_of(world: World, lag_ms: float | None) -> Tolerance:
    return tolerance(world.timers, lag_ms, 2)


_HOLDING = ("node", "incarnation", "op_id")
_place, _holding = itemgetter(*PLACE), itemgetter(*_HOLDING)


def repeats(part: Part, world: World) -> Repeats:
    """What was received again, or stored again."""
    allowed = tolerance_of(world, measured_lag_ms(part.control.lateness, world))
    received, stored = _received(part, world, allowed), _stored(part, world, allowed)
    receipts = part.of("receive")
    messages = pc.count_distinct(receipts["msg_key"]).as_py()
    returned = _returned(part, world, allowed).plus(_tried_again(part, world, allowed))
    returned = returned.plus(_stored_back(part, world, allowed))
    return received.plus(stored).plus(returned).plus(Repeats({"messages": messages}))


REPEATS = Reading(
    Together.MESSAGE,
    ("send", "receive", "sent_back", "read"),
    ("type", "f", "op_id", *PLACE, "attempt", "duration_ms"),
    repeats,
    types=("ok", "info"),
)


def too_late(part: Part, world: World) -> Repeats:
    """Receipts of a queue that its consumer had given up."""
    allowed = tolerance_of(world, measured_lag_ms(part.control.lateness, world))
    ended = _first_of_holdings(part.control, "queue_dropped")
    rows = part.of("receive")
    rows = rows.filter(is_one_of(rows["op_id"], sorted({op_id for _, _, op_id in ended if op_id is not None})))
    holding = codes(rows, *_HOLDING)
    _, first, of = np.unique(holding, return_index=True, return_inverse=True)
    of_each = [ended.get(_holding(row), np.inf) for row in rows_in(rows.take(first).select(_HOLDING))]
    over_ms = floats(rows["time_ms"]) - np.array(of_each, np.float64)[of]
    is_late = over_ms > allowed.valid_up_to_ms
    findings = []
    for row, over in zip(rows_in(rows.filter(is_late)), over_ms[is_late], strict=True):
        is_wrong = bool(over > allowed.unknown_up_to_ms)
        from_ms, said = ended[_holding(row)], {"client": row["node"], "over_ms": float(over), "is_wrong": is_wrong}
        findings.append(_finding(TOO_LATE, row, from_ms, world, allowed, **said))
    return Repeats(_counts(findings, "received_too_late", "perhaps_too_late"), foremost(findings))


TOO_LATE_RECEIPTS = Reading(Together.MESSAGE, ("receive",), ("op_id", *PLACE), too_late, types=("ok",))


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
    if unclear := world.unclear or world.first_deletion:
        return Verdict.nothing_examined(unclear)
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


def _received(part: Part, world: World, allowed: Tolerance) -> Repeats:
    rules, each_alone = Redelivery.of(world), bool(world.workload.get("broadcasting"))
    receipts = part.of("receive")
    receipts = receipts.filter(pc.is_valid(receipts["msg_key"]))
    readers = receipts["node"].cast(pa.string())
    for group, members in () if each_alone else world.groups.items():
        readers = pc.if_else(is_one_of(receipts["node"], members), group, readers)
    copy = codes(receipts.append_column("reader", readers), "msg_key", *PLACE, "reader")
    again = np.bincount(copy)[copy] > 1 if len(copy) else np.zeros(0, bool)
    taken = _first_of_holdings(part.control, "queue_taken")
    of_copy = grouped(zip(copy[again].tolist(), rows_in(receipts.filter(again)), strict=True))
    findings, number, oldest_ms = list[Finding](), 0, list[float]()
    for each in of_copy.values():
        in_order = sorted(each, key=lambda row: (row["time_ms"], row["node"], row["seq"]))
        times: dict[tuple[Any, ...], int] = defaultdict(int)
        for at, row in enumerate(in_order):
            times[_holding(row)] += row["op_id"] is not None
            if not at or _sent_back(rules, in_order[at - 1], row):
                continue
            number += 1
            before, twice = in_order[at - 1], times[_holding(row)] > 1
            over_ms, age_ms, changed_ms = _over(rules, before, row, taken)
            oldest_ms += [] if age_ms is None else [age_ms]
            is_wrong = twice or (over_ms is not None and over_ms > allowed.unknown_up_to_ms)
            if is_wrong or over_ms is None or over_ms > allowed.valid_up_to_ms:
                kind = _what(twice=twice, over_ms=over_ms)
                said = {"client": row["node"], "over_ms": over_ms, "is_wrong": is_wrong, "changed_ms": changed_ms}
                said |= {"first_client": before["node"]}
                findings.append(_finding(kind, row, before["time_ms"], world, allowed, **said))
    counts = {"received_again": number, **_counts(findings)}
    return Repeats(counts, foremost(findings), max(oldest_ms, default=None))


def _returned(part: Part, world: World, allowed: Tolerance) -> Repeats:
    """What consumers of ours sent back, though their listener (`ConsumerNode`), to which a batch is one message, had
    consumed it, and what came from a retry topic as if nobody had failed it before."""
    rows, share = part.of("sent_back"), float(world.workload.get("failing_share") or 0.0)
    rows = rows.filter(is_one_of(rows["node"], [node.name for node in world.ours("consumer")]))
    in_batches = {
        node.name for node in world.ours("consumer") if world.number(node.name, "consumeMessageBatchMaxSize") > 1
    }
    read, findings = _asked_to_take_back(part.control), list[Finding]()
    for row in rows_in(rows):
        if read and row["f"] in (ANEW, KEPT) and not _may_be_asked(row, read, world):
            findings.append(_finding(NOT_BACK, row, row["time_ms"], world, allowed, client=row["node"]))
        is_again = row["topic"].startswith(RETRY_GROUP_TOPIC_PREFIX)
        fails = is_of_share(row["msg_key"], 1.0 if share and row["node"] in in_batches else share)
        if row["attempt"] != 1 or not fails:
            findings.append(_finding(SENT_BACK, row, row["time_ms"], world, allowed, client=row["node"]))
        elif is_again:
            findings.append(_finding(UNCOUNTED, row, row["time_ms"], world, allowed))
    return Repeats({"wrong": len(findings)}, foremost(findings))


def _may_be_asked(row: Row, read: Mapping[str, Sequence[float]], world: World) -> bool:
    """Whether the message's broker was asked to take it back, or something kept it from being asked."""
    broker, to_ms = row["broker_name"], row["time_ms"] + MOMENT_MS
    from_ms = row["time_ms"] - (row["duration_ms"] or 0.0) - MOMENT_MS
    is_calm = any(one.start_ms <= from_ms and to_ms <= one.end_ms for one in calm(world))
    is_read = any(from_ms <= at_ms <= to_ms for at_ms in read.get(broker, ()))
    return is_read or not is_calm or not world.is_ours(broker)


def _asked_to_take_back(control: Control) -> Mapping[str, Sequence[float]]:
    """When each broker's transport read that a consumer sends a message back."""
    rows = control.rows("request_read")
    return grouped((row.node, row.time_ms) for row in rows if row.f == RequestCode.CONSUMER_SEND_MSG_BACK.name)


def _tried_again(part: Part, world: World, allowed: Tolerance) -> Repeats:
    """What a consumer of ours kept, because it could not be sent back, and gave its listener again too soon; or gave
    its listener again though it was sent back."""
    ours, same = [node.name for node in world.ours("consumer")], ("node", "incarnation", "op_id", *PLACE)
    rows = part.of("sent_back")
    kept = rows_in(rows.filter(pc.and_(is_one_of(rows["node"], ours), pc.not_equal(rows["f"], DROPPED))))
    came = part.of("receive", "sent_back")
    came = came.filter(is_one_of(came["msg_key"], sorted({row["msg_key"] for row in kept})))
    later = grouped((tuple(row[name] for name in same), row) for row in (rows_in(came) if kept else ()))
    findings = []
    for row in kept:
        for one in later.get(tuple(row[name] for name in same), ()):
            took_ms = (one["duration_ms"] or 0.0) if one["event"] == "sent_back" else 0.0
            is_soon = one["time_ms"] - took_ms - row["time_ms"] < AGAIN_MS - MOMENT_MS
            if one["seq"] > row["seq"] and (row["f"] != KEPT or is_soon):
                kind = TOO_SOON if row["f"] == KEPT else BOTH_WAYS
                findings.append(_finding(kind, one, row["time_ms"], world, allowed, client=row["node"]))
    return Repeats({"wrong": len(findings)}, foremost(findings))


def _stored_back(part: Part, world: World, allowed: Tolerance) -> Repeats:
    """What is in more places of a group's retry topic and dead letters than its members sent it back, each time to its
    broker, while no process of theirs, or of the topic's broker, ended. A send-back that had no answer may be stored,
    too."""
    backs, came = part.of("sent_back"), part.of("receive", "read")
    groups = {member: group for group, members in world.groups.items() for member in members}
    topics = {topic: group for group in world.groups for topic in (retry_topic(group), dead_letter_topic(group))}
    came = came.filter(is_one_of(came["topic"], [*topics]))
    came = came.filter(is_one_of(came["msg_key"], backs["msg_key"].unique().to_pylist()))
    sent = grouped(((groups.get(row["node"]), row["msg_key"]), row) for row in rows_in(backs))
    findings = []
    for key, of in grouped(((topics[row["topic"]], row["msg_key"]), row) for row in rows_in(came)).items():
        places, own = {_place(row): row for row in of}, sent.get(key, ())
        if not own or len(places) <= len(own) or any(row["f"] != TO_BROKER for row in own):
            continue
        last, began_ms = of[-1], min(row["time_ms"] - (row["duration_ms"] or 0.0) for row in own)
        name = last["broker_name"]
        nodes = (*world.groups.get(str(key[0]), ()), name, *slaves_of(world, name))
        ends = (fault for node in nodes for fault in world.process_faults(node) if fault.ends_process)
        if name not in made_masters(world) and not any(fault.overlaps(began_ms, last["time_ms"]) for fault in ends):
            findings.append(_finding(STORED_BACK, last, began_ms, world, allowed, client=name))
    return Repeats({"wrong": len(findings)}, foremost(findings))


def _stored(part: Part, world: World, allowed: Tolerance) -> Repeats:
    """Copies beyond the first of each message; wrong is one that is stored oftener than it was tried. Receipts are left
    out of this: a consumer that sends a message back stores it again itself. A delayed message is where final reads
    found it; a crash soon after it was due, or another master, lets a broker store it again."""
    sends = part.of("send", types=("ok", "info"))
    delayed = sends.filter(pc.is_valid(sends["f"]))
    faults = {
        broker.name: [of for node in (broker.name, *slaves_of(world, broker.name)) for of in world.process_faults(node)]
        for broker in world.of_kind("broker")
    }
    again_at = (
        (row["msg_key"], _times_again(world, row, faults.get(row["broker_name"], ()))) for row in rows_in(delayed)
    )
    repeated = {msg_key: times for msg_key, times in again_at if times}
    columns, sent = ["event", "msg_key", *PLACE, "time_ms"], part.of("send", types=("ok",))
    sent = sent.filter(pc.is_null(sent["f"]))
    read = part.of("read")
    read = read.filter(pc.invert(pc.starts_with(read["topic"], DLQ_GROUP_TOPIC_PREFIX)))
    copies = pa.concat_tables([read.select(columns), sent.select(columns)])
    at_any_time = [msg_key for msg_key, times in repeated.items() if math.isinf(times)]
    copies = copies.filter(pc.invert(is_one_of(copies["msg_key"], at_any_time)))
    key, place = codes(copies, "msg_key"), codes(copies, *PLACE)
    low, high = np.full(len(copies), len(copies)), np.full(len(copies), -1)
    np.minimum.at(low, key, place)
    np.maximum.at(high, key, place)
    several = copies.filter((low < high)[key])
    stored = grouped((row["msg_key"], row) for row in rows_in(several))
    tries: dict[str, int] = defaultdict(int)
    senders = dict[str, str]()
    for row in rows_in(sends.filter(is_one_of(sends["msg_key"], [*stored])).select(["msg_key", "node", "attempt"])):
        tries[row["msg_key"]] += row["attempt"] or 1
        senders[row["msg_key"]] = row["node"]
    read_again = Counter(row.msg_key for row in part.control.rows("send_read_again"))
    again, findings = 0, list[Finding]()
    for msg_key, of_key in stored.items():
        places, times = {_place(row) for row in of_key}, [row["time_ms"] for row in of_key]
        again += len(places) - 1
        tried = max(1, tries[msg_key]) + int(repeated.get(msg_key, 0))
        if len(places) > tried:
            read = {_place(row) for row in of_key if row["event"] == "read"}
            by = f"{tried} {'try' if tried == 1 else 'tries'}"
            what = f"stored {len(places)} times by {by}" if len(read) > tried or not read else MISNAMED
            sender, names = "", {row["broker_name"] for row in of_key}
            if len(names) == 1 and what != MISNAMED:
                made = made_masters(world).get(*names)
                what, sender = f"alone {what}", made.node if made is not None else min(names)
            if len(read) > tried and len(places) <= tried + read_again[msg_key]:
                what, sender = f"sent {len(places)} times in {by}", senders.get(msg_key, "")
            copy = {**dict(zip(PLACE, max(places), strict=True)), "msg_key": msg_key, "time_ms": max(times)}
            findings.append(_finding(what, copy, min(times), world, allowed, client=sender))
    return Repeats({"stored_again": again, "wrong": len(findings)}, foremost(findings))


def _times_again(world: World, send: Row, faults: Sequence[Fault]) -> float:
    """How often the broker may begin anew without knowing that it has delivered this delayed message, inf if nobody
    knows when it was due. A broker writes how far it is each flushDelayOffsetInterval; a broker that stood still may
    have delivered it late. A slave that is made master knows what it last copied, and all that it took itself.
    `faults`: of the broker's process, and of its slaves'."""
    broker, began_ms = send["broker_name"], send["time_ms"] - (send["duration_ms"] or 0.0)
    due = falls_due(world, broker, send["f"], began_ms, send["time_ms"])
    if due is None:
        return math.inf
    made, times = made_masters(world).get(broker), 0
    if made is not None and began_ms < made.at_ms + world.timers.delivery_ms:
        times += due.end_ms >= made.copied_ms - SYNCHRONIZED_MS - world.timers.lateness_cap_ms
    late_ms = FLUSHED_MS + world.timers.lateness_cap_ms
    for crash in (one for one in faults if one.ends_process and one.loss(world.timers) is not Loss.GRACEFUL):
        stood = any(one is not crash and one.overlaps(due.start_ms, crash.start_ms) for one in faults)
        is_before = due.start_ms <= crash.start_ms + world.timers.lateness_cap_ms
        comes_back = crash.end_ms <= world.end_ms
        times += is_before and comes_back and (stood or due.end_ms >= crash.begins_from_ms - late_ms)
    return times


def _first_of_holdings(control: Control, event: str) -> dict[tuple[Any, ...], float]:
    """When each holding of a queue had its first row of this event."""
    found: dict[tuple[Any, ...], float] = {}
    for row in control.rows(event):
        found.setdefault((row.node, row.incarnation, row.op_id), row.time_ms)
    return found


def _what(*, twice: bool, over_ms: float | None) -> str:
    if twice:
        return "received twice without a rebalance"
    if over_ms is None:
        return "queue taken at unknown time"
    return "received again"


def _sent_back(rules: Redelivery, before: Row, row: Row) -> bool:
    """Whether an operator sent the group back to it after the receipt before."""
    return any(
        (one.topic, one.broker_name, one.queue_id) == _place(row)[:3]
        and one.offset <= row["offset"]
        and before["time_ms"] <= one.at_ms <= row["time_ms"]
        for one in rules.resets
    )


def _over(
    rules: Redelivery, before: Row, row: Row, taken: Mapping[tuple[Any, ...], float]
) -> tuple[float | None, float | None, float | None]:
    """How far the older holding's receipt lies outside of all that explains it, how long before the change of hands,
    and when that was."""
    taken_ms, first_ms = taken.get(_holding(row)), taken.get(_holding(before))
    older_now = taken_ms is not None and first_ms is not None and taken_ms < first_ms
    changed_ms, old_ms = (first_ms, row["time_ms"]) if older_now else (taken_ms, before["time_ms"])
    if changed_ms is None:
        return None, None, None
    ways = [max(changed_ms - old_ms - rules.uncommitted_ms, old_ms - changed_ms - rules.owners_ms, 0.0)]
    for start_ms, end_ms in rules.disturbed:
        ways.append(max(start_ms - old_ms, old_ms - end_ms, changed_ms - end_ms, 0.0))
    return None if taken_ms is None or first_ms is None else min(ways), changed_ms - old_ms, changed_ms


def _counts(findings: Sequence[Finding], wrong: str = "wrong", late: str = "late") -> dict[str, int]:
    number = sum(one.wrong for one in findings)
    return {wrong: number, late: len(findings) - number}


def _finding(
    kind: str,
    row: Row,
    from_ms: float,
    world: World,
    allowed: Tolerance,
    *,
    client: str = "",
    first_client: str = "",
    changed_ms: float | None = None,
    over_ms: float | None = None,
    is_wrong: bool = True,
) -> Finding:
    """Of a receipt, or a stored copy, of a message that was there before, at `from_ms`. `changed_ms`: when its queue
    changed hands between the two; `over_ms`: how far that lies from what explains the repeat, None if nothing says when
    the queue was taken. Not wrong: only the machine's lateness may explain it."""
    first_ms, span = commit_ms(world), (from_ms, row["time_ms"])
    more = {name: row[name] for name in ("msg_key", "queue_id", "offset")} | {"first_client": first_client}
    is_timed = bool(client and over_ms)  # twice from one holding is wrong whenever it was
    return finding(
        (client, row["broker_name"], row["topic"]),
        kind,
        span,
        Rule(ROW, "", first_ms if is_timed else None),
        out=span,
        tolerance=allowed,
        measured_ms=first_ms + (over_ms or 0.0) if is_timed else None,
        over_ms=over_ms or 0.0,
        times={} if changed_ms is None else {"changed": changed_ms},
        more={name: value for name, value in more.items() if value not in (None, "")},
        **wrong_or_late(is_wrong),
    )
