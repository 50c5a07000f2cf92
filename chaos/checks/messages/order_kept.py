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
"""

from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import Rule, finding, verdict_by_counts
from ..plain.order import ORDER, Misplaced, Order, is_ordered

NAME = "order_kept"
_ROW = "order within a queue"
_OF_SENDS = "a later send of the producer has the higher offset in its queue"
_OF_RECEIPTS = "a consumer hands a queue's messages over by rising offset"
_OF_PULLS = (
    "the answer to a pull has minOffset, maxOffset and nextBeginOffset of its queue, and as many messages as are there "
    "and were asked for; where there is none, the pull is held first"
)
_ANSWERS = {
    "place": "two messages at one offset",
    "min": "answered a wrong first offset",
    "max": "answered a wrong end",
    "count": "answered too many messages",
    "fewer": "answered too few messages",
    "held": "answered a pull too soon",
    "messages": "unordered answer",
    "code": "code 20 for 19",
    "next": "answered a wrong next offset",
}
_STORED = "send out of order"


def judge(order: Order, world: World) -> Verdict:
    """Examined: acknowledged sends, answered pulls, and receipts of an ordered workload. Violations: those behind a
    later one, and answers that are wrong about their queue."""
    examined, wrong = order.sends + order.pulls + order.receipts, order.out_of_order
    counts = {"receipts": order.receipts, "pulls": order.pulls, "sends": order.sends}
    measured = {name: count for name, count in counts.items() if count} | {"out_of_order": wrong}
    formulas = [_OF_SENDS, *([_OF_PULLS] if order.pulls else []), *([_OF_RECEIPTS] if is_ordered(world) else [])]
    allowed = {"bound_ms": None, "formula": "; ".join(formulas), "tolerance_ms": 0, "row": _ROW}
    return verdict_by_counts(
        NAME,
        examined=examined,
        wrong=wrong,
        why=f"{wrong} of {examined} acknowledged sends, answers or receipts are out of order or say what is not so",
        nothing="no send was acknowledged",
        unclear=world.mixed_up_by_hand,
        measured=measured,
        allowed=allowed,
        findings=map(_finding, sorted(order.misplaced, key=Misplaced.order)),
    )


CHECK = Check(
    name=NAME,
    says="a queue stores each producer's messages in the order of sending, answers to pulls name the queue's right "
    "offsets, and an orderly consumer keeps the order",
    group=Group.MESSAGES,
    section=Section.MESSAGES,
    accuses_object=(_STORED, *_ANSWERS.values()),
    needs=(Needs.MESSAGES,),
    readings=(ORDER,),
    judge=judge,
    tells=lambda measured: f"{measured.get('out_of_order', 0):,} out of order",
)


def _finding(row: Misplaced) -> Finding:
    return finding(
        (row.node, row.broker_name, row.topic),
        _ANSWERS.get(row.what, f"{row.what} out of order"),
        (row.from_ms, row.to_ms),
        Rule(_ROW, {"send": _OF_SENDS, "place": _OF_SENDS, "receipt": _OF_RECEIPTS}.get(row.what, _OF_PULLS)),
        out=(row.from_ms, row.to_ms),
        wrong=1,
        more={
            **({"because": f"asked for {row.offset}, {row.said}"} if row.said else {"msg_key": row.msg_key}),
            "queue_id": row.queue_id,
            "offset": row.offset,
        },
    )
