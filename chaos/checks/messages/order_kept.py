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
from ...verdict import Verdict
from ..check import Group, Needs, Section, check
from ..findings import verdict_by_counts
from ..plain.order import ANSWERS, OF_PULLS, OF_RECEIPTS, OF_SENDS, ORDER, ROW, STORED, TAKEN, is_ordered
from ..plain.part import Gathering


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
    counts, wrong = order.counts, order.counts["out_of_order"]
    examined, measured = sum(counts.values()) - wrong, {name: of for name, of in counts.items() if of}
    formulas = [OF_SENDS, *([OF_PULLS] if counts["pulls"] else []), *([OF_RECEIPTS] if is_ordered(world) else [])]
    allowed = {"bound_ms": None, "formula": "; ".join(formulas), "tolerance_ms": 0, "row": ROW}
    return verdict_by_counts(
        examined=examined,
        wrong=wrong,
        why=f"{wrong} of {examined} acknowledged sends, answers or receipts are out of order or say what is not so",
        nothing="no send was acknowledged",
        unclear=world.mixed_up_by_hand,
        measured=measured | {"out_of_order": wrong},
        allowed=allowed,
        findings=order.findings,
    )
