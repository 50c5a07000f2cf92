"""What clients used, counted (record/uses.py).

send (ok) ─────────► by process, topic, queue and segment ─────┬─► SHARES: each row by itself
send_attempt, send ► those that failed, by segments ───────────┘
pull, receive ─────► by consumer, queue and 10 s ──────────────► READS: a queue's rows together
pull ──────────────► the first of each taking of a queue ──────► READS
send_attempt ──────► beside the try before it ─────────────────► TRIES: a send's rows together
send_attempt ──────► where any failed, and around polls ───────► STEPS: a client's rows together
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from typing import Any, TypeVar

from ....remoting.node.profile import Profile
from ...arrow import Floats, Numbers, np, pa, pc
from ...oracle.deliveries import Holding
from ...oracle.intervals import grouped
from ...oracle.recorded import OURS
from ...oracle.time_outs import NOT_STORED, POLL, STORED, avoidance, avoids, isolation_ms, send_rules
from ...oracle.world import World
from ..check import Facts
from ..record.commits import dues_of
from ..record.control import Control
from ..record.timer_acts import by_process
from ..record.turns import Step, Stepped, goes_round
from ..record.uses import (
    PART_MS,
    BrokerShares,
    Queue,
    Read,
    Segment,
    SlaveRead,
    Try,
    edges,
    isolated,
    least_left_ms,
    ran_out,
    slave_addresses,
)
from .part import (
    QUEUE,
    Part,
    Reading,
    Row,
    Span,
    Together,
    began_ms,
    codes,
    floats,
    groups,
    is_one_of,
    rows_in,
)

K = TypeVar("K")
_ROUNDING_MS = 1.0
_OP = ("node", "incarnation", "op_id")
ELSEWHERE = "acknowledged in another queue"
SAME = "tried again on the same broker"


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
    refusals, firsts = _in_parts(refused, Read, *Read._fields), tuple(_first_pulls(part, world))
    return BrokerShares(reads=queues, refused=refusals, firsts=firsts)


_ENDED = ("ok", "fail", "info")
READS = Reading(Together.QUEUE, ("pull", "receive"), ("type", "address", "code", "duration_ms"), reads, types=_ENDED)


def _first_pulls(part: Part, world: World) -> Iterator[tuple[Holding, tuple[str, str, int], float]]:
    pulls, held = part.of("pull", types=_ENDED), dues_of(part.control, world).held
    began = began_ms(pulls)
    for at in groups(codes(pulls, "node", *QUEUE)):
        node, topic, broker, queue_id = (pulls[name][int(at[0])].as_py() for name in ("node", *QUEUE))
        times, queue = np.sort(began[at]), (topic, broker, queue_id)
        for holding in held.get(queue, ()) if world.made_by(node) == OURS else ():
            number = int(np.searchsorted(times, holding.start_ms - _ROUNDING_MS))
            if holding.node == node and number < len(times) and times[number] < holding.end_ms:
                yield holding, queue, float(times[number])


def _edge(between: Floats, at_ms: Floats) -> Floats:
    found: Floats = between[np.maximum(np.searchsorted(between, at_ms, "right") - 1, 0)]
    return found


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


def tries(part: Part, world: World) -> BrokerShares:
    """What the tries of each send say beside each other."""
    attempts, begun = part.of("send_attempt"), part.of("send_attempt", types=("invoke",))
    ended = attempts.filter(pc.not_equal(attempts["type"], "invoke"))
    lost, sent = part.of("send", types=("fail", "info")), part.of("send", types=("ok",))
    failed = _ops(ended.filter(pc.not_equal(ended["type"], "ok")))
    # Of all others each send had one try, which nothing is beside.
    again = begun.filter(pc.greater(pc.fill_null(begun["attempt"], 0), 0))
    tried = _by_send(_of_ops(begun, again))
    ends = _by_send(_of_ops(ended, pa.concat_tables([_ops(again), _ops(lost), failed])))
    retries = [
        (row, of[n - 1], ends.get(op, {}).get(n - 1))
        for op, of in tried.items()
        for n, row in of.items()
        if n - 1 in of
    ]
    # Of what was stored, `_odd` tells.
    unstored = [(row, before) for row, before, end in retries if end is None or end["type"] != "ok"]
    to_slaves = begun.filter(is_one_of(begun["address"], slave_addresses(world)))
    isolating = _isolating(ended, world)
    return BrokerShares(
        retries=len(unstored),
        same=tuple(_as(row, SAME) for row, before in unstored if row["broker_name"] == before["broker_name"]),
        odd=(
            *_odd(((row, end) for row, _, end in retries if end is not None), part.control, world),
            *_not_stored(rows_in(_of_ops(sent, failed)), ends, world),
            *_elsewhere(sent, ended.filter(pc.equal(ended["type"], "ok"))),
        ),
        given_up=tuple(_given_up(rows_in(lost), ends, world)),
        to_slaves=tuple(
            _as(row, "sent to a slave")._replace(broker_name=world.owners[row["address"]]) for row in rows_in(to_slaves)
        ),
        to_isolated=tuple(_to_isolated(begun, part.control, world)),
        isolating=len(isolating),
        not_isolated=tuple(one for one in isolating if not _is_isolated(one, part.control, world)),
    )


TRIES = Reading(
    Together.OPERATION,
    ("send", "send_attempt"),
    ("type", "op_id", "topic", "broker_name", "address", "queue_id", "attempt", "code", "duration_ms"),
    tries,
)


Op = tuple[str, int, str]
"""Which send: node, incarnation and op_id."""


def _op(row: Row) -> Op:
    return row["node"], row["incarnation"], row["op_id"]


def _as(row: Row, kind: str) -> Try:
    return Try(*_op(row), row["attempt"] or 0, row["broker_name"], row["time_ms"], kind)


def _by_send(rows: pa.Table) -> dict[Op, dict[int, Row]]:
    """The tries of each send, by their numbers."""
    of = grouped((_op(row), (row["attempt"], row)) for row in rows_in(rows))
    return {op: {number: row for number, row in rows if number is not None} for op, rows in of.items()}


def _ops(rows: pa.Table) -> pa.Table:
    return rows.select(_OP)


def _of_ops(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows of the operations that the others are of."""
    rows = rows.filter(pc.is_in(rows["op_id"], value_set=others["op_id"].combine_chunks()))
    both = codes(pa.concat_tables([_ops(rows), _ops(others)]), *_OP)
    return rows.filter(np.isin(both[: len(rows)], both[len(rows) :]))


def _elsewhere(sent: pa.Table, stored: pa.Table) -> Iterator[Try]:
    """The sends that were acknowledged in another queue than the one that their last try asked for."""
    asked = stored.select([*_OP, "queue_id", "attempt"]).rename_columns([*_OP, "asked", "number"])
    both = sent.select([*_OP, "queue_id", "broker_name", "time_ms"]).join(asked, [*_OP], join_type="inner")
    for row in rows_in(both.filter(pc.not_equal(both["queue_id"], both["asked"]))):
        yield _as({**row, "attempt": row["number"]}, ELSEWHERE)


def _odd(again: Iterable[tuple[Row, Row]], control: Control, world: World) -> Iterator[Try]:
    """Of tries, each with the end of the one before: those that should not have been."""
    rules = send_rules(world)
    over = ran_out(control, rules)
    for row, before in again:
        if row["node"] in rules:
            is_over = (*_op(row), row["attempt"] - 1) in over
            how, code = before["type"], before["code"]
            if kind := rules[row["node"]].odd(row["attempt"], before=how, code=code, ran_out=is_over):
                yield _as(row, kind)


def _not_stored(sent: Iterable[Row], ends: Mapping[Op, Mapping[int, Row]], world: World) -> Iterator[Try]:
    """Of sends that were reported as sent and had a try that failed: those no try of which a broker acknowledged."""
    rules = send_rules(world)
    for send in sent:
        of = ends.get(_op(send), {}) if send["node"] in rules else {}
        if of and not any(row["type"] == "ok" or row["code"] in STORED for row in of.values()):
            yield _as(of[max(of)], NOT_STORED)


def _given_up(lost: Iterable[Row], ends: Mapping[Op, Mapping[int, Row]], world: World) -> Iterator[Try]:
    rules = send_rules(world)
    for send in (send for send in lost if send["node"] in rules):
        rule, of = rules[send["node"]], ends.get(_op(send))
        began_ms = send["time_ms"] - (send["duration_ms"] or 0.0)
        last = of[max(of)] if of else send
        left_ms = rule.time_ms - (last["time_ms"] - began_ms)
        if left_ms <= least_left_ms(world):
            continue  # a process that stood still has no time left for a try
        if not of:
            yield Try(*_op(send), 0, "", send["time_ms"], "given up without a try", left_ms)
        elif last["type"] != "ok" and not rule.ends(last["code"]) and max(of) + 1 < rule.tries:
            yield _as(last, "given up too soon")._replace(left_ms=left_ms)


def _isolating(ended: pa.Table, world: World) -> list[Try]:
    """The tries that failed, or took so long, that their producer avoids the broker (`MQFaultStrategy`). An exception
    counts by the profile's latency; without an address of the broker (`MQClientException`) in 5.x by its own."""
    avoided = avoidance(world)
    if avoided is None or world.workload.get("ordered"):
        return []
    producers = {node.name for node in world.ours("producer")}
    slow = floats(ended["duration_ms"], 0.0) >= avoided.slow_ms
    found = []
    for row in rows_in(ended.filter(pc.not_equal(ended["type"], "ok").to_numpy() | slow)):
        failed = row["type"] != "ok" and row["code"] not in STORED
        failed &= row["address"] is not None or world.timers.profile is Profile.V4_9
        node, took_ms = row["node"], (row["duration_ms"] or 0.0) - _ROUNDING_MS
        if node in producers and avoids(world, node) and isolation_ms(world, node, took_ms, failed=failed) > 0:
            found.append(_as(row, "not isolated"))
    return found


def _to_isolated(begun: pa.Table, control: Control, world: World) -> Iterator[Try]:
    """The first tries at a broker that their producer of ours had isolated by then, and whose clock went right."""
    away, at_ms, is_in = isolated(control, world), floats(begun["time_ms"]), np.zeros(len(begun), bool)
    ours = {node.name for node in world.ours("producer") if not world.clocks.get(node.name)}
    spans = (((node, broker), span) for node, broker, *span in away.spans() if node in ours)
    for (node, broker), of in grouped(spans).items():
        is_there = pc.and_(pc.equal(begun["node"], node), pc.equal(begun["broker_name"], broker))
        at = np.flatnonzero(pc.fill_null(is_there, False).to_numpy())
        from_, until_ = np.array([(-np.inf, -np.inf), *sorted(of)]).T
        before = np.searchsorted(from_, at_ms[at]) - 1
        is_in[at] = at_ms[at] < np.maximum.accumulate(until_)[before]
    for row in rows_in(begun.filter(is_in & (floats(begun["attempt"]) == 0))):
        before_ms = math.nextafter(row["time_ms"], -math.inf)  # a refused dial isolates in the same moment
        until = away.until_ms(row["node"], row["incarnation"], before_ms)
        if until.get(row["broker_name"], 0.0) > row["time_ms"] + world.timers.delivery_ms:
            yield _as(row, "sent to an isolated broker")


def _is_isolated(one: Try, control: Control, world: World) -> bool:
    """Whether it is at once, or need not be: its process ended."""
    allowed = control.lateness.tolerance(world, (one.node,), one.time_ms, one.time_ms, 1)
    latest_ms = one.time_ms + allowed.valid_up_to_ms
    process = one.node, one.incarnation
    if latest_ms > min(world.ended_ms(*process), world.end_ms):
        return True
    rows = by_process(control, "broker_isolated").get(process, ())
    ended = attrgetter("ended_ms")
    near = rows[bisect_left(rows, one.time_ms - _ROUNDING_MS, key=ended) : bisect_right(rows, latest_ms, key=ended)]
    return any(run.row.f == "isolated" and run.row.broker_name == one.broker_name for run in near)


@dataclass(frozen=True)
class Steps(Facts):
    """From queue to queue, where something failed; those of a client are in one part."""

    of: Mapping[Step, Stepped] = field(default_factory=dict)


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


def steps(part: Part, world: World) -> Steps:
    """Those of the producers that go round, where they are looked at."""
    failed = _failed(part, world, np.array(edges(part.control, world)))
    spans = _looked_at(failed, part.control, world)
    sends, begun = part.of("send"), part.of("send_attempt", types=("invoke",))
    # A send that began before such an edge belongs to what was before it, whenever its first try was.
    sends, _ = _within(sends, began_ms(sends), spans)
    begun, edge = _within(begun, floats(begun["time_ms"]), spans)
    topics, stored = dict[tuple[Any, ...], str](), set[tuple[Any, ...]]()
    for row in rows_in(sends.select([*_OP, "topic", "type"])):
        op = _op(row)
        topics[op] = row["topic"]
        if row["type"] == "ok":
            stored.add(op)
    order = np.lexsort((begun["seq"].to_numpy(), begun["incarnation"].to_numpy(), floats(begun["time_ms"])))
    columns = [*_OP, "attempt", "broker_name", "queue_id", "time_ms"]
    last: dict[tuple[Any, ...], tuple[tuple[Any, ...], Queue]] = {}
    first_at: dict[tuple[Any, ...], float] = {}
    found: dict[Step, Stepped] = {}
    in_order = zip(rows_in(begun.select(columns).take(order)), edge[order].tolist(), strict=True)
    for row, at_ms in in_order:
        op = _op(row)
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
    return Steps(found)


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
