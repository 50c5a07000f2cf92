"""Operations counted by client, kind and slot of time (record/slots.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....clients.consumer.consume_service import DROPPED
from ....clients.consumer.send_back import TO_BROKER
from ....remoting.codes import PERM_WRITE, ResponseCode
from ...arrow import Flags, np, pa, pc
from ...oracle.slaves import CODES as STORED_ALONE
from ...oracle.slaves import unreplicated
from ...oracle.world import World
from ...topology import broker_name
from ..check import Table
from ..record.slots import OPERATIONS, TRY, Slot, Tally, bucket_ms, counted_nodes, edges
from .part import Part, Reading, Together, began_ms, floats, is_one_of


def slots(part: Part, world: World) -> Table[Slot, Tally]:
    """Those of the run's clients and its prober, between every fault, heal and bound of a quiet stretch."""
    return slots_between(part, world, edges(world))


def slots_between(part: Part, world: World, at_ms: Sequence[float]) -> Table[Slot, Tally]:
    """The same, with these edges, ascending."""
    every = [*_COLUMNS, "time_ms", "node", "event"]
    rows = pa.concat_tables(
        [part.of(*OPERATIONS, TRY, types=_ENDS).select(every), _sent_back(part, world).select(every)]
    )
    counts = pc.and_(is_one_of(rows["node"], counted_nodes(world)), pc.less_equal(rows["time_ms"], world.end_ms))
    rows = rows.filter(pc.and_not(counts, pc.and_(pc.equal(rows["event"], TRY), _is_misled(rows, world))))
    if not len(rows):
        return Table()
    between, ended_ms, good = np.array(at_ms, np.float64), floats(rows["time_ms"]), _are_good(rows, world)
    began = began_ms(rows)
    is_try = pc.equal(rows["event"], TRY)
    columns = {
        "node": pc.if_else(is_try, pc.fill_null(rows["broker_name"], ""), rows["node"]),
        "operation": rows["event"],
        "bucket": np.floor(ended_ms / bucket_ms(world)).astype(np.int64),
        # Segment 0 is in no quiet time, and in no time of a floor.
        "segment": np.where(_met_a_stall(rows, world), 0, np.searchsorted(between, began, "right")),
        "until": np.searchsorted(between, ended_ms, "right"),
        "good": good.astype(np.int64),
        "bad": (~good).astype(np.int64),
        "good_ms": pa.array(ended_ms, mask=~good),
        "bad_ms": pa.array(ended_ms, mask=good),
        "ended_ms": ended_ms,
        "began_ms": began,
    }
    of_good, of_bad = ("good_ms_min", "ended_ms_max"), ("bad_ms_min", "bad_ms_max")
    of_tally = "good_sum", "bad_sum", *of_good, *of_bad, "began_ms_min"  # in Tally's order
    counted = pa.table(columns).group_by(Slot._fields).aggregate([tuple(name.rsplit("_", 1)) for name in of_tally])
    order, n = (*Slot._fields, *of_tally), len(Slot._fields)
    found = zip(*(counted[name].to_pylist() for name in order), strict=True)
    return Table({Slot(*row[:n]): Tally(*row[n:]) for row in found})


def _sent_back(part: Part, world: World) -> pa.Table:
    """What consumers sent back to brokers that let them write, each as one more try of a send: done, or not."""
    permissions = {broker.name: world.numbers(broker.name, "brokerPermission") for broker in world.of_kind("broker")}
    lets = [name for name, of in permissions.items() if all(int(value) & PERM_WRITE for value in of)]
    rows = part.of("sent_back")
    rows = rows.filter(pc.and_(pc.not_equal(rows["f"], DROPPED), is_one_of(rows["broker_name"], lets)))
    how = pc.if_else(pc.equal(rows["f"], TO_BROKER), "ok", "fail")
    for name, values in (("type", how), ("event", pa.array([TRY] * len(rows), pa.string()))):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), values.cast(rows.schema.field(at).type))
    return rows


def _is_misled(rows: pa.Table, world: World) -> pa.Array:
    """Tries that say nothing of the broker of that name: at an address that is no node's and was registered by hand, at
    one that the broker has left, or refused at a queue that the topic has not (a borrowed route of createTopicKey has
    more)."""
    strange = {act.address for act in world.acts if act.f == "register"} - set(world.owners)
    is_misled = is_one_of(rows["address"], sorted(strange))
    for node in world.of_kind("broker"):
        until = (*(move.from_ms for move in node.moves[1:]), math.inf)
        for move, until_ms in zip(node.moves, until, strict=False):
            is_elsewhere = is_one_of(rows["address"], sorted({*node.addresses} - {move.address}))
            is_then = pc.and_(pc.greater(rows["time_ms"], move.from_ms), pc.less(rows["time_ms"], until_ms))
            is_misled = pc.or_(is_misled, pc.and_(is_elsewhere, is_then))
    is_refused = is_one_of(rows["code"], (ResponseCode.SYSTEM_ERROR, ResponseCode.INVALID_PARAMETER))  # 4.9, 5.x
    for producer in world.of_kind("producer"):
        if (queues := world.queues_of(producer.name)) is not None:
            beyond = pc.fill_null(pc.greater_equal(rows["queue_id"], queues), False)
            is_misled = pc.or_(is_misled, pc.and_(pc.and_(is_refused, beyond), pc.equal(rows["node"], producer.name)))
    return is_misled


def _met_a_stall(rows: pa.Table, world: World) -> Flags:
    """Of each, whether nobody answered it, and the machine let its client, or a server that it may have asked, stand
    still meanwhile. A send names no broker: it may have asked each."""
    stalls = [fault for fault in world.faults if fault.stood_still]
    met, late_ms = np.zeros(len(rows), bool), world.timers.delivery_ms
    began, ended = began_ms(rows), floats(rows["time_ms"])
    servers = {node.name for node in world.of_kind("name_server", "broker", "slave")}
    for node in {fault.source for fault in stalls}:
        asked = pc.fill_null(pc.equal(rows["broker_name"], broker_name(node)), node in servers)
        of_node = pc.or_(pc.equal(rows["node"], node), asked).to_numpy()
        for fault in stalls:
            if fault.source == node:
                met |= of_node & (ended > fault.start_ms - late_ms) & (began < fault.end_ms + late_ms)
    unanswered = pc.and_(pc.is_null(rows["code"]), is_one_of(rows["type"], ("fail", "info")))
    return met & unanswered.to_numpy()


_COLUMNS = ("type", "broker_name", "queue_id", "address", "code", "duration_ms")
_ENDS = ("ok", "fail", "info")
SLOTS = Reading(Together.ROW, (*OPERATIONS, TRY, "sent_back"), ("f", *_COLUMNS), slots, types=_ENDS)


def _are_good(rows: pa.Table, world: World) -> Flags:
    is_send = is_one_of(rows["event"], ("send", TRY)).to_numpy()
    answered = pc.is_valid(rows["code"]).to_numpy()
    stored = is_send & is_one_of(rows["code"], sorted(STORED_ALONE)).to_numpy()
    alone = np.zeros(len(rows), bool)
    if stored.any():
        began, ended = began_ms(rows), floats(rows["time_ms"])
        for name, stretches in unreplicated(world).items():
            of_broker = pc.fill_null(pc.equal(rows["broker_name"], name), False).to_numpy()
            for start_ms, end_ms in stretches:
                alone |= of_broker & (ended > start_ms) & (began < end_ms)
    is_ok = pc.equal(rows["type"], "ok").to_numpy()
    return is_ok | (~is_send & answered) | (stored & alone)
