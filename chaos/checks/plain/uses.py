"""What clients used, counted (record/uses.py).

send (ok) ─────────► by process, topic, queue and segment ─────┬─► SHARES: each row by itself
send_attempt, send ► those that failed, by segments ───────────┘
pull, receive ─────► by consumer, queue and 10 s ──────────────► READS: a queue's rows together
pull ──────────────► the first of a taking, and late next ones ► READS
send_attempt ──────► where any failed, and around polls ───────► STEPS: a client's rows together
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from ...arrow import Floats, Numbers, np, pa, pc
from ...oracle.link import MOMENT_MS
from ...oracle.time_outs import POLL, avoidance
from ...oracle.world import World
from ..check import Table
from ..record.commits import dues_of
from ..record.control import Control
from ..record.turns import Step, Stepped, goes_round
from ..record.uses import (
    PART_MS,
    Begun,
    BrokerShares,
    Queue,
    Read,
    Segment,
    SlaveRead,
    edges,
    slave_addresses,
)
from .part import (
    OP,
    QUEUE,
    Part,
    Reading,
    Span,
    Together,
    began_ms,
    codes,
    floats,
    groups,
    is_one_of,
    op_of,
    rows_in,
)

K = TypeVar("K")
_SOON_MS = 50.0
"""A pull that follows so soon on an answer needs no look."""


def shares(part: Part, world: World) -> BrokerShares:
    """What each row says by itself."""
    between = np.array(edges(part.control, world))
    return BrokerShares(
        sends=_sends(part, world, between),
        failed=_failed(part, world, between),
        at_slaves=_at_slaves(part, world),
    )


SHARES = Reading(
    Together.ROW,
    ("send", "send_attempt", "pull"),
    ("type", "topic", "msg_key", "broker_name", "queue_id", "address", "duration_ms"),
    shares,
)


def reads(part: Part, world: World) -> BrokerShares:
    """Who read which queue when, and who was refused it: a code says no, whatever the pull's own end is called."""
    got = pa.concat_tables([part.of("receive"), part.of("pull", types=("ok",))])
    answered = part.of("pull", types=("info",))
    answered = answered.filter(pc.is_valid(answered["code"]))
    refused = pa.concat_tables([part.of("pull", types=("fail",)), answered])
    queues = _in_parts(got, Read, "node", "topic", "broker_name", "queue_id")
    refusals, begun = _in_parts(refused, Read, *Read._fields), tuple(_begun(part, world))
    return BrokerShares(reads=queues, refused=refusals, begun=begun)


_ENDED = ("ok", "fail", "info")
READS = Reading(Together.QUEUE, ("pull", "receive"), ("type", "address", "code", "duration_ms"), reads, types=_ENDED)


def _begun(part: Part, world: World) -> Iterator[Begun]:
    pulls, held = part.of("pull", types=_ENDED), dues_of(part.control, world).held
    began, ended, is_timed = began_ms(pulls), floats(pulls["time_ms"]), pc.is_valid(pulls["duration_ms"]).to_numpy()
    is_answered = is_one_of(pulls["type"], ("ok",)).to_numpy()
    for at in groups(codes(pulls, "node", *QUEUE)):
        node, topic, broker, queue_id = (pulls[name][int(at[0])].as_py() for name in ("node", *QUEUE))
        at, queue = at[np.argsort(began[at], kind="stable")], (topic, broker, queue_id)
        times, before_ms = began[at], -math.inf
        for holding in (one for one in held.get(queue, ()) if one.node == node and world.is_ours(node)):
            # A queue that is given up and taken again at one moment had its last pull just before.
            from_ms = max(holding.start_ms - MOMENT_MS, min(before_ms, holding.start_ms))
            first, end = np.searchsorted(times, [from_ms, holding.end_ms])
            before_ms = holding.end_ms
            if first == end:
                continue
            yield Begun(node, queue, holding.start_ms, float(times[first]), is_next=False)
            before, after = at[first : end - 1], at[first + 1 : end]
            late = is_answered[before] & is_timed[after] & (began[after] - ended[before] > _SOON_MS)
            for number in first + np.flatnonzero(late):
                yield Begun(node, queue, float(ended[at[number]]), float(times[number + 1]), is_next=True)


def _edge(between: Floats, at_ms: Floats) -> Floats:
    return between[np.maximum(np.searchsorted(between, at_ms, "right") - 1, 0)]


def _counted(columns: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The values that occur together, and how often."""
    table = pa.table(dict(columns))
    counted = table.group_by([*columns]).aggregate([([], "count_all")])
    return [*zip(*(counted[name].to_pylist() for name in (*columns, "count_all")), strict=True)]


def _sends(part: Part, world: World, between: Floats) -> dict[Segment, dict[Queue, int]]:
    rows = part.of("send", types=("ok",))
    columns = {name: rows[name] for name in ("node", "incarnation", "topic", "broker_name", "queue_id")}
    found: dict[Segment, dict[Queue, int]] = defaultdict(dict)
    columns |= {"e": _edge(between, began_ms(rows)), "shard": _shards(rows, world)}
    for *process, topic, broker, queue_id, edge, shard, count in _counted(columns):
        found[Segment._make((*process, topic, edge, shard))][broker, queue_id] = count
    return dict(found)


def _shards(rows: pa.Table, world: World) -> Numbers:
    """The number of each message's sharding key; -1 for none. It is by its own number, with which its key ends
    (`ProducerNode._send_in_order`)."""
    keys = int(world.workload.get("ordered_keys") or 0) if world.workload.get("ordered") else 0
    if not keys:
        return np.full(len(rows), -1)
    numbers = pc.struct_field(pc.extract_regex(rows["msg_key"].cast(pa.string()), "-(?P<number>[0-9]+)$"), "number")
    number = floats(numbers, -1.0)
    ours = is_one_of(rows["node"], [node.name for node in world.ours("producer")])
    return np.where(ours.to_numpy() & (number >= 0), (number + 1) % keys, -1).astype(np.int64)


def _failed(part: Part, world: World, between: Floats) -> dict[tuple[str, float], int]:
    """Where they began, and where they ended."""
    rows, avoided = part.of("send", "send_attempt"), avoidance(world)
    failed = is_one_of(rows["type"], ("fail", "info")).to_numpy()
    if avoided is not None:
        is_try = pc.equal(rows["event"], "send_attempt").to_numpy()
        failed |= is_try & (floats(rows["duration_ms"], 0.0) >= avoided.slow_ms)
    rows = rows.filter(failed)
    found: dict[tuple[str, float], int] = defaultdict(int)
    times = {"from": _edge(between, began_ms(rows)), "to": _edge(between, floats(rows["time_ms"]))}
    for node, from_ms, to_ms, count in _counted({"node": rows["node"], **times}):
        for edge in {from_ms, to_ms}:
            found[node, edge] += count
    return dict(found)


def _at_slaves(part: Part, world: World) -> dict[SlaveRead, dict[int, int]]:
    rows = part.of("pull", types=("invoke",))
    return _in_parts(rows.filter(is_one_of(rows["address"], slave_addresses(world))), SlaveRead, *SlaveRead._fields)


def _in_parts(rows: pa.Table, of: Callable[..., K], *columns: str) -> dict[K, dict[int, int]]:
    """How many there are in each PART_MS, by what these columns say."""
    found: dict[K, dict[int, int]] = defaultdict(dict)
    parts = np.floor(floats(rows["time_ms"]) / PART_MS).astype(np.int64)
    for *values, number, count in _counted({**{name: rows[name] for name in columns}, "part": parts}):
        found[of(*values)][number] = count
    return dict(found)


def _looked_at(failed: Mapping[tuple[str, float], int], control: Control, world: World) -> list[Span]:
    """Between two edges where something failed at a producer that goes round; and around each of its polls, which
    leaves its turn as it is, unless the route is another."""
    between, goes = edges(control, world), goes_round(world)
    ends = {at_ms: end_ms for at_ms, end_ms in pairwise([*between, np.inf])}
    found = [Span(*at, ends[at[1]]) for at, times in failed.items() if times and at[0] in goes]
    whole = {(span.node, span.from_ms) for span in found}
    for row in control.rows("scheduled_task"):
        if row.f == POLL and row.node in goes:
            near_ms = world.timers_of(row.node).P_ms / 30
            from_ms = between[max(bisect_right(between, row.time_ms) - 1, 0)]
            if (row.node, from_ms) not in whole:
                to_ms = min(row.time_ms + near_ms, ends[from_ms])
                found.append(Span(row.node, max(row.time_ms - near_ms, from_ms), to_ms))
    return sorted(found)


def steps(part: Part, world: World) -> Table[Step, Stepped]:
    """From queue to queue, of the producers that go round, where they are looked at."""
    failed = _failed(part, world, np.array(edges(part.control, world)))
    spans = _looked_at(failed, part.control, world)
    sends, begun = part.of("send"), part.of("send_attempt", types=("invoke",))
    # A send that began before such an edge belongs to what was before it, whenever its first try was.
    sends, _ = _within(sends, began_ms(sends), spans)
    begun, edge = _within(begun, floats(begun["time_ms"]), spans)
    topics, stored = dict[tuple[Any, ...], str](), set[tuple[Any, ...]]()
    for row in rows_in(sends.select([*OP, "topic", "type"])):
        op = op_of(row)
        topics[op] = row["topic"]
        if row["type"] == "ok":
            stored.add(op)
    order = np.lexsort((begun["seq"].to_numpy(), begun["incarnation"].to_numpy(), floats(begun["time_ms"])))
    columns = [*OP, "attempt", "broker_name", "queue_id", "time_ms"]
    last: dict[tuple[Any, ...], tuple[tuple[Any, ...], Queue]] = {}
    first_at: dict[tuple[Any, ...], float] = {}
    found: dict[Step, Stepped] = {}
    in_order = zip(rows_in(begun.select(columns).take(order)), edge[order].tolist(), strict=True)
    for row, at_ms in in_order:
        op = op_of(row)
        if row["attempt"] == 0:
            first_at[op] = at_ms
        if op not in topics:
            continue
        ring, queue = (*op[:2], topics[op], at_ms), (row["broker_name"], row["queue_id"])
        before = last.get(ring)
        last[ring] = op, queue
        if before is None or (before[0] != op and before[0] not in stored):
            continue
        if first_at.get(op) == first_at.get(before[0]) == at_ms:
            step = Step(*op[:2], topics[op], at_ms, before[1], queue, before[0] == op)
            times, first_ms = found.get(step, Stepped(0, row["time_ms"]))
            found[step] = Stepped(times + 1, first_ms)
    return Table(found)


STEPS = Reading(
    Together.CLIENT,
    ("send", "send_attempt"),
    ("type", "op_id", "topic", "broker_name", "queue_id", "attempt", "duration_ms"),
    steps,
    spans=lambda of, world: _looked_at(of.counted(SHARES, world).failed, of.control, world),
)


def _within(rows: pa.Table, at_ms: Floats, spans: Sequence[Span]) -> tuple[pa.Table, Floats]:
    """The rows in these spans, ascending and apart at each node, and when the span of each began."""
    since = np.full(len(rows), np.nan)
    for node in {span.node for span in spans}:
        of_node = np.array([span[1:] for span in spans if span.node == node])
        number = np.searchsorted(of_node[:, 0], at_ms, "right") - 1
        is_in = pc.equal(rows["node"], node).to_numpy() & (number >= 0) & (at_ms < of_node[number, 1])
        since[is_in] = of_node[number[is_in], 0]
    there = ~np.isnan(since)
    return rows.filter(there), since[there]
