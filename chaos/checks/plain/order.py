"""Which acknowledged sends, and receipts of an ordered workload, stand behind a later one of their queue.

Both rules are one question to each group of rows, sorted by offset from above: did any with a higher offset end before
this one began?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...oracle.world import World
from ...verdict import FINDINGS_MAX
from ..check import Facts, first
from .part import QUEUE, Flags, Floats, Part, Reading, Together, began_ms, codes, floats, groups, rows_in, with_offset

if TYPE_CHECKING:
    import pyarrow as pa


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

    def order(self) -> tuple[str, float, str]:
        """Which is told first."""
        return self.what, self.from_ms, self.msg_key or ""


@dataclass(frozen=True)
class Order(Facts):
    """How many acknowledged sends, and receipts where they are promised an order; the first that are out of it."""

    sends: int = 0
    receipts: int = 0
    out_of_order: int = 0
    misplaced: tuple[Misplaced, ...] = first(FINDINGS_MAX, Misplaced.order)


def order(part: Part, world: World) -> Order:
    """How many sends, and receipts where the workload is ordered, and how many are behind a later one; the first of
    those."""
    sends = with_offset(part.of("send", types=("ok",)))
    ended_ms = floats(sends["time_ms"])
    late = _behind(sends, ("node", "incarnation"), began_ms(sends), ended_ms, each_its_own=True)
    found, receipts = [_misplaced("send", row) for row in rows_in(sends.filter(late))], sends.slice(0, 0)
    if is_ordered(world):
        receipts = with_offset(part.of("receive"))
        at = floats(receipts["seq"])
        late = _behind(receipts, ("node", "incarnation", "op_id"), at, at, each_its_own=False)
        found += [_misplaced("receipt", row) for row in rows_in(receipts.filter(late))]
    return Order(len(sends), len(receipts), len(found), tuple(sorted(found, key=Misplaced.order)[:FINDINGS_MAX]))


ORDER = Reading(
    Together.QUEUE, ("send", "receive"), ("type", "op_id", "offset", "msg_key", "duration_ms"), order, types=("ok",)
)


def is_ordered(world: World) -> bool:
    return bool(world.workload.get("ordered"))


def _behind(rows: pa.Table, who: tuple[str, ...], began: Floats, ended: Floats, *, each_its_own: bool) -> Flags:
    """Of each row, whether one of the same queue and `who` with a higher offset had ended before it began; or, with
    `each_its_own`, has the same offset."""
    import numpy as np

    offsets, wrong = floats(rows["offset"]), np.zeros(len(rows), bool)
    for group in groups(codes(rows, *who, *QUEUE)):
        falling = group[np.lexsort((-ended[group], -began[group], -offsets[group]))]
        first_end = np.minimum.accumulate(ended[falling])[:-1]
        wrong[falling[1:]] = first_end < began[falling[1:]]
        if each_its_own:
            wrong[falling[1:]] |= offsets[falling[1:]] == offsets[falling[:-1]]
    return wrong


def _misplaced(what: str, row: Mapping[str, Any]) -> Misplaced:
    took_ms = (row["duration_ms"] or 0.0) if what == "send" else 0.0
    of = (row[name] for name in ("msg_key", "node", *QUEUE, "offset"))
    return Misplaced(what, row["time_ms"] - took_ms, row["time_ms"], *of)
