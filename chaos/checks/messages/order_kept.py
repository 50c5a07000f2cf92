"""Messages are in the order that RocketMQ promises: that of one producer in one queue.

| promised                                                                                     | to whom             |
|----------------------------------------------------------------------------------------------|---------------------|
| of one producer's sends to one queue, acknowledged and not overlapping in time, the later    | every producer      |
| has the higher queue offset                                                                  |                     |
| one holding of a queue hands its messages over in the order of their offsets                 | `ordered` workloads |
| an answer to a pull says where its queue begins and ends, and from which offset to go on;    | every consumer      |
| its messages have rising offsets, and are no more than were asked for                        |                     |

Not promised, and so not judged: any order between queues or producers; between sends that overlap; of a message stored
again by a retry; and what a concurrent listener sees, for it runs on many threads (only the pulls of a holding go up by
offset, `ConsumeMessageConcurrentlyService`). An `ordered` workload sends a key's messages to one queue and consumes
with one thread, so that each holding hands over in order; what comes again after a change of hands is `duplicates`'.

Which acknowledged sends, and receipts of an ordered workload, stand behind a later one of their queue; and which
answers to pulls say of their queue what is not so.

The first two rules are one question to each group of rows, sorted by offset from above: did any with a higher offset
end before this one began? The third (`DefaultMessageStore.getMessage`, `PullMessageProcessor.composeResponseHeader`):

| of the pull of an offset | the answer says                                                                           |
|--------------------------|-------------------------------------------------------------------------------------------|
| min                      | at most the offset, but for code 21; the first that the queue has                         |
| max                      | beyond all that was acknowledged before the pull; not beyond what is sent, or found by    |
|                          | a final read, after it and before the broker starts again                                 |
| next, of code 19         | the offset, which is not beyond max                                                       |
| next, of codes 0 and 20  | a later one, up to max; of 20, which hands nothing over, past nothing acknowledged        |
| next, of code 21         | min or max, or where an operator sends the group                                          |
| next, with messages      | that behind the last: clients of a workload subscribe to every tag                        |
| messages                 | as many as were asked for (pullBatchSize) or fewer, by rising offset, from the offset on; |
|                          | of our brokers fewer only where the queue has no more, or they fill an answer             |

A broker answers 19 when it has held the pull for as long as the pull asked (`PullRequestHoldService`).

A slave, and a broker that may become one, may lack messages that were acknowledged (a slave to which nothing happened
those of COPIED_MS), and sends nobody to an offset that it has not: `nextOffsetCorrection`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ....remoting.codes import ResponseCode
from ...arrow import Flags, Floats, np, pa, pc
from ...oracle.queue_owners import least_asked
from ...oracle.roles import elects
from ...oracle.slaves import COPIED_MS, made_masters, offsets_copied
from ...oracle.time_outs import SUSPEND_MS, held_ms
from ...oracle.world import World
from ...topology import broker_name, is_slave
from ...verdict import Finding, Verdict
from ..check import Found, Group, Needs, Section, check, foremost
from ..findings import Rule, finding, verdict_by_counts
from ..plain.part import (
    QUEUE,
    Gathering,
    Part,
    Reading,
    Row,
    Together,
    began_ms,
    codes,
    floats,
    groups,
    is_one_of,
    rows_in,
    with_offset,
)

ROW = "order within a queue"
OF_SENDS = "a later send of the producer has the higher offset in its queue"
OF_RECEIPTS = "a consumer hands a queue's messages over by rising offset"
OF_PULLS = (
    "the answer to a pull has minOffset, maxOffset and nextBeginOffset of its queue, and as many messages as are there "
    "and were asked for; where there is none, the pull is held first"
)
STORED, RECEIVED, TAKEN = "send out of order", "receipt out of order", "two messages at one offset"
_SENDS_AND_RECEIPTS = {STORED: OF_SENDS, TAKEN: OF_SENDS, RECEIVED: OF_RECEIPTS}
_WRONG_END, _WRONG_NEXT = "answered a wrong end", "answered a wrong next offset"
ANSWERS = (
    "answered a wrong first offset",
    _WRONG_END,
    "answered too many messages",
    "unordered answer",
    "code 20 for 19",
    "code 19 for 21",
    _WRONG_NEXT,
    "answered a pull too soon",
    "answered too few messages",
)
"""What an answer to a pull may have wrong: what it says of its queue's begin and end, how many messages it has, these
messages, its code, from where to go on, and that it came before the pull was held, or with less than was there."""
_CONTRADICTIONS = frozenset(ANSWERS) - {_WRONG_END, _WRONG_NEXT}
"""What an answer shows by itself, whatever else the queue has."""

_CERTAIN = "of one master"
"""How many sends are out of order at one master, and how many answers contradict themselves: no slave that was made
master explains them."""


def order(part: Part, world: World) -> Found:
    """How many acknowledged sends, answered pulls, and receipts where they are promised an order; and how many are out
    of it."""
    sends = with_offset(part.of("send", types=("ok",)))
    sends, ended_ms = sends.append_column("master", _masters(sends, world)), floats(sends["time_ms"])
    late = _behind(sends, ("node", "incarnation", "master"), began_ms(sends), ended_ms, each_its_own=True)
    wrong = [_misplaced(STORED, {**row, "broker_name": row["master"]}) for row in rows_in(sends.filter(late))]
    receipts, of_one_master = sends.slice(0, 0), len(wrong)
    wrong += [_misplaced(TAKEN, row) for row in rows_in(sends.filter(_is_taken(sends, world)))]
    # Where sends were acknowledged at wrong offsets, nobody knows the end of the queue.
    doubted = {(one.topic, one.object, one.more["queue_id"]) for one in wrong}
    if is_ordered(world):
        receipts = with_offset(part.of("receive"))
        at = floats(receipts["seq"])
        late = _behind(receipts, ("node", "incarnation", "op_id"), at, at, each_its_own=False)
        wrong += [_misplaced(RECEIVED, row) for row in rows_in(receipts.filter(late))]
    pulls = _answers(part)
    misled = _misled(pulls, sends, part, world)
    wrong += [one for one in misled if (one.topic, one.object, one.more["queue_id"]) not in doubted]
    counts = {"receipts": len(receipts), "pulls": len(pulls), "sends": len(sends), "out_of_order": len(wrong)}
    certain = [*wrong[:of_one_master], *(one for one in wrong if one.kind in _CONTRADICTIONS)]
    return Found(counts | {_CERTAIN: len(certain)}, foremost(certain if certain and made_masters(world) else wrong))


def _masters(sends: pa.Table, world: World) -> pa.ChunkedArray:
    """Which node knew each send's offset: the broker, or a slave that was made master by hand. The slave had copied
    what was acknowledged COPIED_MS before the last moment in which it copied for certain."""
    masters, ended_ms = sends["broker_name"], sends["time_ms"]
    for name, made in made_masters(world).items():
        is_copied = pc.less(ended_ms, made.copied_ms - COPIED_MS)
        is_known = pc.or_(is_copied, pc.greater_equal(ended_ms, made.at_ms))
        is_its = pc.and_(pc.equal(sends["broker_name"], name), is_known)
        masters = pc.if_else(is_its, made.node, masters.cast(pa.string()))
    return masters


ORDER = Reading(
    Together.QUEUE,
    ("send", "receive", "pull"),
    ("type", "op_id", "offset", "msg_key", "duration_ms", "address", "code", "value"),
    order,
    types=("ok",),
)


@check(
    says="a queue stores each producer's messages in the order of sending, answers to pulls name the queue's right "
    "offsets, and an orderly consumer keeps the order",
    group=Group.MESSAGES,
    section=Section.MESSAGES,
    accuses_object=(STORED, TAKEN, *ANSWERS),
    needs=(Needs.MESSAGES,),
    readings=(ORDER,),
    tells=lambda measured: f"{measured.get('out_of_order', 0):,} out of order",
)
def judge(history: Gathering, world: World) -> Verdict:
    """Examined: acknowledged sends, answered pulls, and receipts of an ordered workload. Violations: those behind a
    later one, and answers that are wrong about their queue."""
    order = history.counted(ORDER, world)
    counts = Counter(order.counts)
    wrong, certain = counts.pop("out_of_order", 0), counts.pop(_CERTAIN, 0)
    unclear, findings = world.lost_by_hand, order.findings
    if unclear and not world.mixed_up_by_hand and not world.deleted and certain:
        of_one = (STORED, *_CONTRADICTIONS)
        unclear, wrong, findings = "", certain, tuple(one for one in findings if one.kind in of_one)
    examined, measured = sum(counts.values()), {name: of for name, of in counts.items() if of}
    formulas = [OF_SENDS, *([OF_PULLS] if counts["pulls"] else []), *([OF_RECEIPTS] if is_ordered(world) else [])]
    allowed = {"bound_ms": None, "formula": "; ".join(formulas), "tolerance_ms": 0, "row": ROW}
    return verdict_by_counts(
        examined=examined,
        wrong=wrong,
        why=f"{wrong} of {examined} acknowledged sends, answers or receipts are out of order or say what is not so",
        nothing="no send was acknowledged",
        unclear=unclear,
        measured=measured | {"out_of_order": wrong},
        allowed=allowed,
        findings=findings,
    )


def is_ordered(world: World) -> bool:
    return bool(world.workload.get("ordered"))


def _behind(rows: pa.Table, who: tuple[str, ...], began: Floats, ended: Floats, *, each_its_own: bool) -> Flags:
    """Of each row, whether one of the same queue and `who` with a higher offset had ended before it began; or, with
    `each_its_own`, has the same offset."""
    offsets, wrong = floats(rows["offset"]), np.zeros(len(rows), bool)
    for group in groups(codes(rows, *who, *QUEUE)):
        falling = group[np.lexsort((-ended[group], -began[group], -offsets[group]))]
        first_end = np.minimum.accumulate(ended[falling])[:-1]
        wrong[falling[1:]] = first_end < began[falling[1:]]
        if each_its_own:
            wrong[falling[:-1]] |= offsets[falling[1:]] == offsets[falling[:-1]]
    return wrong


def _is_taken(sends: pa.Table, world: World) -> Flags:
    """Of each send, whether its broker had acknowledged another producer's message at its place before. An elected
    master, and one that was made master by hand, may give places anew."""
    ended, taken = floats(sends["time_ms"]), np.zeros(len(sends), bool)
    who = codes(sends, "node", "incarnation")
    for group in groups(codes(sends, *QUEUE, "offset")) if not world.acts else ():
        in_order = group[np.argsort(ended[group], kind="stable")]
        taken[in_order[1:]] = who[in_order[1:]] != who[in_order[:-1]]
    keep = [node.name for node in world.ours("broker") if not elects(world, node.name)]
    return taken & is_one_of(sends["broker_name"], keep).to_numpy()


def _answers(part: Part) -> pa.Table:
    """The answers to pulls, with a column for each offset that they say."""
    pulls = with_offset(part.of("pull", types=("ok",)))
    said = pc.extract_regex(pulls["value"].cast(pa.string()), _SAID)
    handed = pc.extract_regex(pulls["value"].cast(pa.string()), _HANDED)
    for of, names in ((said, ("max", "min", "next")), (handed, ("count", "first", "last", "rising"))):
        for name in names:
            pulls = pulls.append_column(name, pc.cast(pc.struct_field(of, name), pa.int64()))
    return pulls.filter(pc.is_valid(said))


_SAID = '"max":(?P<max>-?[0-9]+),"min":(?P<min>-?[0-9]+),"next":(?P<next>-?[0-9]+)'
_HANDED = '"count":(?P<count>[0-9]+),"first":(?P<first>[0-9]+),"last":(?P<last>[0-9]+).*"rising":(?P<rising>[0-9]+)'


def _misled(pulls: pa.Table, sends: pa.Table, part: Part, world: World) -> Iterator[Finding]:
    asked, code, high, low, next_ = (floats(pulls[name]) for name in ("offset", "code", "max", "min", "next"))
    masters = [at for at, node in world.owners.items() if world.is_ours(node) and not _may_lack(node, world)]
    is_master, copied_ms = is_one_of(pulls["address"], masters).to_numpy(), _copied_ms(pulls, world)
    is_at_slave = is_one_of(pulls["address"], [at for at, node in world.owners.items() if _stays_slave(node, world)])
    is_copy = copied_ms > -np.inf
    least, most, first = _ends(pulls, sends, part, world, copied_ms)
    is_moved, is_end = code == ResponseCode.PULL_OFFSET_MOVED, code == ResponseCode.PULL_NOT_FOUND
    count, begin, last, rising = (floats(pulls[name]) for name in ("count", "first", "last", "rising"))
    batch = {node: world.number(node, "pullBatchSize") for node in pulls["node"].unique().to_pylist()}
    most_asked = _of_each(pulls["node"], batch)
    # Apache's getMessage reads the queue's end, then the queue, which may have grown meanwhile.
    theirs = [at for at, node in world.owners.items() if not world.is_ours(node)]
    is_theirs = is_one_of(pulls["address"], theirs).to_numpy()
    is_beyond = (next_ > np.maximum(high, asked)) & ~(is_theirs & (next_ == last + 1))
    goes_on = (next_ >= asked + is_master) & ~is_beyond & ((next_ <= first) | (code == 0))
    sends_back = ((next_ == low) | (next_ == high)) & ~(is_at_slave.to_numpy() & (asked >= low))
    is_right = np.select([is_moved, is_end], [sends_back, next_ == asked], goes_on)
    is_right &= (count == 0) | np.isnan(last) | (next_ == last + 1)
    is_behind = (high <= last) & ~is_theirs
    least = np.where(is_behind, np.fmax(least, last + 1), least)
    wrong = [(low > asked) & ~is_moved, ((is_master | is_copy | is_behind) & (high < least)) | (high > most)]
    is_of_others = (code == ResponseCode.PULL_RETRY_IMMEDIATELY) & (asked >= high) & is_master
    is_passed_over = is_end & (asked > np.maximum(high, 0)) & (is_master | _of_made_masters(pulls, world))
    wrong += [count > most_asked, (rising < count) | (begin < asked), is_of_others, is_passed_over, ~is_right]
    asks = least_asked(part.control.rows, "messages")
    take = {node: min(most_, asks.get(node, most_)) for node, most_ in batch.items()}
    to_take = np.minimum(np.minimum(_of_each(pulls["node"], take), _has_room(pulls, world)), high - asked)
    is_let_go = np.zeros(len(pulls), bool)
    is_let_go[is_end] = _is_let_go(pulls.filter(is_end), part, world)
    wrong += [is_let_go, count < to_take]
    said = np.select(wrong, ANSWERS, "")
    at = np.flatnonzero(said != "")
    for number, row in zip(at, rows_in(pulls.take(at)), strict=True):
        is_low = high[number] < least[number]
        end = f"at least {least[number]:.0f}" if is_low else f"at most {most[number]:.0f}"
        if not _is_reset(row, world):
            about = {"broker_name": world.owners.get(row["address"], row["broker_name"]), "due": end}
            yield _misplaced(str(said[number]), {**row, **about})


def _of_made_masters(pulls: pa.Table, world: World) -> Flags:
    """Of each pull, whether a slave answered it that had been made master before. A slave of ours holds it beyond its
    own end, which will come; Apache's answers with code 20 at once."""
    found = np.zeros(len(pulls), bool)
    for name, made in made_masters(world).items():
        node = world.node(made.node)
        is_its = is_one_of(pulls["address"], sorted(node.addresses if node is not None else ())).to_numpy()
        is_its &= pc.equal(pulls["broker_name"], name).to_numpy()
        found |= is_its & (began_ms(pulls) > made.at_ms + world.timers.delivery_ms)
    return found


def _of_each(column: pa.ChunkedArray, values: Mapping[str, float]) -> Floats:
    """The value of each row's name."""
    names = column.combine_chunks().dictionary_encode()
    return np.array([values[name] for name in names.dictionary.to_pylist()])[names.indices.to_numpy()]


def _is_let_go(pulls: pa.Table, part: Part, world: World) -> Flags:
    """Of each pull, whether its answer came before the broker had held the pull for as long as the pull asked."""
    asked = least_asked(part.control.rows, "held_ms")
    brokers = {at: node.name for node in world.of_kind("broker", "slave") for at in node.addresses}

    def due_ms(client: str, address: str) -> float:
        broker = brokers.get(address)
        held = 0.0 if broker is None else held_ms(world, broker, asked.get(client, SUSPEND_MS))
        return held - world.timers.delivery_ms

    pairs = [*zip(pulls["node"].to_pylist(), pulls["address"].to_pylist(), strict=True)]
    due = {pair: due_ms(*pair) for pair in {*pairs}}
    return floats(pulls["duration_ms"]) < np.array([due[pair] for pair in pairs])


def _has_room(pulls: pa.Table, world: World) -> Floats:
    """For how many messages the answer to each pull has room for certain; 0 where the broker or a producer is not ours:
    `DefaultMessageStore.isTheBatchFull`."""
    body_bytes = float(str(world.workload.get("body_bytes", math.inf)))
    are_ours = len(world.ours("producer")) == len(world.of_kind("producer"))
    asked = pc.fill_null(pulls["address"], "")
    room = dict.fromkeys(asked.unique().to_pylist(), 0.0)
    for node in world.ours("broker", "slave") if are_ours else ():
        in_bytes = min(world.numbers(node.name, "maxTransferBytesOnMessageInMemory")) // (body_bytes + _AROUND_BYTES)
        most = min(*world.numbers(node.name, "maxTransferCountOnMessageInMemory"), in_bytes)
        room |= dict.fromkeys(node.addresses, most)
    return _of_each(asked, room)


def _may_lack(node: str, world: World) -> bool:
    return is_slave(node) or elects(world, node)


def _stays_slave(node: str, world: World) -> bool:
    """Whether the node corrects no offset: `DefaultMessageStore.nextOffsetCorrection`, without offsetCheckInSlave."""
    ours = world.is_ours(node)
    return is_slave(node) and ours and not elects(world, node) and broker_name(node) not in made_masters(world)


_AROUND_BYTES = 500
"""Of a message, without its body, at the most."""


def _copied_ms(pulls: pa.Table, world: World) -> Floats:
    """Of each pull at a slave, the time up to which the slave surely had what its master acknowledged; -inf for others:
    what it has copied, it keeps when its master is gone."""
    began, found = began_ms(pulls), np.full(len(pulls), -np.inf)
    for slave in world.of_kind("slave"):
        here = is_one_of(pulls["address"], sorted(slave.addresses)).to_numpy()
        for one in offsets_copied(world, broker_name(slave.name)) if here.any() else ():
            until_ms = np.minimum(began, one.end_ms) - COPIED_MS
            found = np.where(here & (until_ms > one.start_ms), until_ms, found)
    return found


def _ends(
    pulls: pa.Table, sends: pa.Table, part: Part, world: World, copied_ms: Floats
) -> tuple[Floats, Floats, Floats]:
    """Of each pull the least and the most that the end of its queue can be: behind all that was acknowledged before it;
    at most at what was sent after it, and at the end that a final read found later. And the first acknowledged offset
    from its own on."""
    least, most, first = np.zeros(len(pulls)), np.full(len(pulls), np.inf), np.full(len(pulls), np.inf)
    read = {(row.topic, row.broker_name, row.queue_id): row for row in part.control.rows("read_done")}
    keeps_delayed = bool(world.workload.get("delayed_share"))
    asked = np.where(copied_ms > -np.inf, copied_ms, began_ms(pulls)) - world.timers.delivery_ms
    told = floats(pulls["time_ms"]) + world.timers.delivery_ms
    sent, acked, offsets = began_ms(sends), floats(sends["time_ms"]), floats(sends["offset"])
    queues, pulled = pulls.select(QUEUE), floats(pulls["offset"])
    for group in groups(codes(pa.concat_tables([queues, sends.select(QUEUE)]), *QUEUE)):
        here, of = group[group < len(pulls)], group[group >= len(pulls)] - len(pulls)
        for queue in queues.take(here[:1]).to_pylist():
            order = of[np.argsort(acked[of], kind="stable")]
            highest = np.append(0, np.maximum.accumulate(offsets[order] + 1))
            least[here] = highest[np.searchsorted(acked[order], asked[here])]
            known = np.append(np.sort(offsets[of]), np.inf)
            first[here] = known[np.searchsorted(known, pulled[here])]
            if not elects(world, queue["broker_name"]):  # it may lose what was not copied
                done = read.get((*queue.values(),))
                times, ends = sent[of], offsets[of]
                if done is not None and not keeps_delayed:  # these are stored without a send, and during the read, too
                    times, ends = np.append(times, done.time_ms), np.append(ends, done.offset)
                most[here] = _lowest_later(times, ends, told[here], _boots(queue["broker_name"], part))
    return least, most, first


def _lowest_later(times: Floats, ends: Floats, at: Floats, boots: Sequence[float]) -> Floats:
    """The lowest end of a queue in each time after `at` and before the broker's next start: a start may lose the last
    ones, which no_acknowledged_loss judges."""
    order = np.argsort(times, kind="stable")
    times, ends, found = times[order], ends[order], np.full(len(at), np.inf)
    for from_ms, to_ms in pairwise((-np.inf, *boots, np.inf)):
        here, there = (from_ms <= at) & (at < to_ms), (from_ms <= times) & (times < to_ms)
        lowest = np.append(np.minimum.accumulate(ends[there][::-1])[::-1], np.inf)
        found[here] = lowest[np.searchsorted(times[there], at[here], "right")]
    return found


def _boots(broker: str, part: Part) -> list[float]:
    return sorted(row.time_ms for row in part.control.rows("boot") if row.node == broker)


def _is_reset(row: Row, world: World) -> bool:
    """Whether an operator sends groups of the queue to where the answer does."""
    to = (*(row[name] for name in QUEUE), row["next"])
    return any((one.topic, one.broker_name, one.queue_id, one.offset) == to for one in world.resets)


def _misplaced(kind: str, row: Mapping[str, Any]) -> Finding:
    """A send, or a receipt, behind one with a higher offset, or with the same; or an answer to a pull, `due`: where its
    queue ended."""
    span = row["time_ms"] - ((row["duration_ms"] or 0.0) if kind != RECEIVED else 0.0), row["time_ms"]
    more = {"msg_key": row["msg_key"]}
    if "due" in row:
        said = f"code {row['code']}, next {row['next']}, min {row['min']}, max {row['max']}"
        said += f", {row['count']} messages from {row['first']} to {row['last']}" if row["count"] else ""
        said += f"; its end was {row['due']}" if kind == _WRONG_END else ""
        more = {"because": f"asked for {row['offset']}, {said}"}
    return finding(
        (row["node"], row["broker_name"], row["topic"]),
        kind,
        span,
        Rule(ROW, _SENDS_AND_RECEIPTS.get(kind, OF_PULLS)),
        out=span,
        wrong=1,
        more={**more, "queue_id": row["queue_id"], "offset": row["offset"]},
    )
