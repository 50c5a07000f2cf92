"""What became of the acknowledged sends: received, read at the end, or neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...arrow import Flags, np, pa, pc
from ...oracle.recorded import OURS
from ...oracle.slaves import alone
from ...oracle.world import World
from ..check import Facts, first, foremost
from .part import PLACE, QUEUE, Part, Reading, Row, Together, began_ms, floats, rows_in, with_offset


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

    def order(self) -> tuple[float, str]:
        """Which is told first."""
        return self.acked_ms, self.msg_key


@dataclass(frozen=True)
class Fates(Facts):
    """What became of the acknowledged sends, and the first of those that are lost, unread, unsafe or
    forgotten."""

    acknowledged: int = 0
    received: int = 0
    only_in_final_reads: int = 0
    lost: int = 0
    unread: int = 0
    first_lost: tuple[Missing, ...] = first(Missing.order)
    first_unread: tuple[Missing, ...] = first(Missing.order)
    unsafe: int = 0
    """Acknowledged by a SYNC_MASTER while no slave of its ran."""
    first_unsafe: tuple[Missing, ...] = first(Missing.order)
    forgotten: int = 0
    """Acknowledged by a broker whose next process has recovered its queue up to an older offset."""
    first_forgotten: tuple[Missing, ...] = first(Missing.order)


def fates(part: Part, world: World) -> Fates:
    """Of these sends; messages that share a key count as one, received as soon as one of them is."""
    sends = with_offset(part.of("send", types=("ok",)))  # of a delayed message messages_delivered tells
    received = _keys_of(sends, part.of("receive"))
    read = ~received & _keys_of(sends, part.of("read"))
    others, unsafe = sends.filter(~received & ~read), _unsafe(sends, world)
    forgotten = _forgotten(sends, part, world)
    whole = {(row.topic, row.broker_name, row.queue_id) for row in part.control.rows("read_done")}
    by_key: dict[tuple[bool, str], Missing] = {}
    lost, order = 0, Missing.order
    for row in rows_in(others):
        is_lost = tuple(row[name] for name in QUEUE) in whole
        lost += is_lost
        one = _missing(row, is_lost=is_lost)
        by_key[is_lost, row["msg_key"]] = max(one, by_key.get((is_lost, row["msg_key"]), one))
    return Fates(
        acknowledged=len(sends),
        received=int(received.sum()),
        only_in_final_reads=int(read.sum()),
        lost=lost,
        unread=len(others) - lost,
        first_lost=foremost((one for one in by_key.values() if one.is_lost), order),
        first_unread=foremost((one for one in by_key.values() if not one.is_lost), order),
        unsafe=int(unsafe.sum()),
        first_unsafe=foremost((_missing(row, is_lost=False) for row in rows_in(sends.filter(unsafe))), order),
        forgotten=int(forgotten.sum()),
        first_forgotten=foremost((_missing(row, is_lost=True) for row in rows_in(sends.filter(forgotten))), order),
    )


FATES = Reading(
    Together.MESSAGE, ("send", "receive", "read"), ("type", *PLACE, "duration_ms"), fates, types=("ok", "info")
)


def _keys_of(sends: pa.Table, others: pa.Table) -> Flags:
    """Of each send, whether one of the others has its key."""
    found: Flags = pc.is_in(sends["msg_key"], value_set=others["msg_key"].combine_chunks()).to_numpy()
    return found


def _unsafe(sends: pa.Table, world: World) -> Flags:
    """Of each send, whether it was acknowledged while its broker had no slave."""
    began, ended, found = began_ms(sends), floats(sends["time_ms"]), np.zeros(len(sends), bool)
    for name, stretches in alone(world).items():
        of_broker = pc.fill_null(pc.equal(sends["broker_name"], name), False).to_numpy()
        for start_ms, end_ms in stretches:
            found |= of_broker & (start_ms <= began) & (ended <= end_ms)
    return found


def _forgotten(sends: pa.Table, part: Part, world: World) -> Flags:
    """Of each send, whether a later process of its broker has recovered its queue up to an offset before it."""
    ended, offsets, found = floats(sends["time_ms"]), floats(sends["offset"]), np.zeros(len(sends), bool)
    apart_ms = world.timers.clocks_ms or 0.0
    for boot in part.control.rows("boot"):
        if not boot.incarnation or world.made_by(boot.node) != OURS or world.mixed_up_by_hand:
            continue
        before = ended < boot.time_ms - apart_ms
        before &= pc.fill_null(pc.equal(sends["broker_name"], boot.node), False).to_numpy()
        recovered = (boot.decoded or {}).get("recovered") or {}
        for row in sends.filter(before).group_by(["topic", "queue_id"]).aggregate([]).to_pylist():
            end = (recovered.get(row["topic"]) or {}).get(str(row["queue_id"]), 0)
            of_queue = pc.and_(pc.equal(sends["topic"], row["topic"]), pc.equal(sends["queue_id"], row["queue_id"]))
            found |= before & pc.fill_null(of_queue, False).to_numpy() & (offsets >= end)
    return found


def _missing(row: Row, *, is_lost: bool) -> Missing:
    return Missing._make((*(row[name] for name in ("time_ms", "msg_key", "node", *PLACE)), is_lost))
