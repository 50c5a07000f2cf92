"""Messages are in the order that RocketMQ promises, which is less than one may think.

| promised                                                                                     | to whom             |
|----------------------------------------------------------------------------------------------|---------------------|
| of one producer's sends to one queue, acknowledged and not overlapping in time, the later    | every producer      |
| has the higher queue offset                                                                  |                     |
| one holding of a queue hands its messages over in the order of their offsets                 | `ordered` workloads |

Not promised, and so not judged: any order between queues or producers; between sends that overlap; of a message stored
again by a retry; and what a concurrent listener sees, for it runs on many threads (only the pulls of a holding go up by
offset, `ConsumeMessageConcurrentlyService`). An `ordered` workload sends a key's messages to one queue and consumes
with one thread, so that each holding hands over in order; what comes again after a change of hands is `duplicates`'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Facts, Group, Needs, Reads, Section
from ..findings import Rule, finding, verdict_by_counts
from ..plain.traffic import order_of_rows

if TYPE_CHECKING:
    from ..dataframes.gathering import Gathering
    from ..plain.history import PlainHistory

NAME = "order_kept"
_ROW = "order within a queue"
_OF_SENDS = "a later send of the producer has the higher offset in its queue"
_OF_RECEIPTS = "a holding hands over by rising offset"


class Misplaced(NamedTuple):
    """A send, or a receipt, behind one with a higher offset, or with the same."""

    what: str
    from_ms: float
    to_ms: float
    msg_key: str
    node: str
    topic: str
    broker_name: str
    queue_id: int | None
    offset: int


@dataclass(frozen=True)
class Order(Facts):
    """How many acknowledged sends, and receipts where they are promised an order; the first that are out of it."""

    sends: int = 0
    receipts: int = 0
    out_of_order: int = 0
    misplaced: tuple[Misplaced, ...] = ()


def gather(gathering: Gathering, world: World) -> Order:
    """One sort of the sends, or of those of the queues that are in doubt."""
    from ..dataframes.order import order

    return _order(*order(gathering.history, ordered=_is_ordered(world)))


def plain(history: PlainHistory, world: World) -> Order:
    """The same of its rows."""
    return _order(*order_of_rows(history.rows, ordered=_is_ordered(world)))


def _order(counts: tuple[int, int, int], rows: Iterable[Mapping[str, Any]]) -> Order:
    misplaced = (Misplaced(**{name: row[name] for name in Misplaced._fields}) for row in rows)
    return Order(*counts, misplaced=tuple(misplaced))


def judge(order: Order, world: World) -> Verdict:
    """Examined: acknowledged sends, and receipts of an ordered workload. Violations: those behind a later one."""
    examined, wrong = order.sends + order.receipts, order.out_of_order
    counts = {"receipts": order.receipts, "sends": order.sends}
    measured = {name: count for name, count in counts.items() if count} | {"out_of_order": wrong}
    formula = f"{_OF_SENDS}; {_OF_RECEIPTS}" if _is_ordered(world) else _OF_SENDS
    allowed = {"bound_ms": None, "formula": formula, "tolerance_ms": 0, "row": _ROW}
    if not examined:
        return Verdict.nothing_examined(NAME, "no send was acknowledged", measured=measured, allowed=allowed)
    if wrong and world.mixed_up_by_hand:
        return Verdict.nothing_examined(NAME, world.mixed_up_by_hand, measured=measured, allowed=allowed)
    return verdict_by_counts(
        NAME,
        examined=examined,
        wrong=wrong,
        why=f"{wrong} of {examined} acknowledged sends or receipts are behind a later one of their queue",
        measured=measured,
        allowed=allowed,
        findings=map(_finding, sorted(order.misplaced)),
    )


CHECK = Check(
    name=NAME,
    says="a queue keeps the order of its producers' sends, and a consumer that must takes them in it",
    group=Group.MESSAGES,
    section=Section.MESSAGES,
    needs=(Needs.MESSAGES,),
    reads=Reads.MESSAGES,
    gather=gather,
    plain=plain,
    judge=judge,
    tells=lambda measured: f"{measured.get('out_of_order', 0):,} out of order",
    adds_up=True,
)


def _is_ordered(world: World) -> bool:
    return bool(world.workload.get("ordered"))


def _finding(row: Misplaced) -> Finding:
    return finding(
        (row.node, row.broker_name, row.topic),
        f"{row.what} after one with a higher offset, or the same",
        (row.from_ms, row.to_ms),
        Rule(_ROW, _OF_SENDS if row.what == "send" else _OF_RECEIPTS),
        out=(row.from_ms, row.to_ms),
        wrong=1,
        more={"msg_key": row.msg_key, "queue_id": row.queue_id, "offset": row.offset},
    )
