"""How long brokers took in quiet times, counted by broker, quiet stretch and level (prompt_answers).

send_attempt ok ──────────────────────────────► its duration ─────────────────────────────────────┐
send ok ─┐                                                                                        ├─► Latencies
receive ─┴─ of a key ─► from the send's end, or the end of the delay, until the first receipt ────┘
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...arrow import Floats, Numbers, np, pa, pc
from ...oracle.deliveries import delivered
from ...oracle.intervals import Stretch
from ...oracle.recorded import OURS
from ...oracle.world import World
from ..check import Facts, largest, least
from .part import Part, Reading, Together, began_ms, codes, floats, groups

DELAYED = "delayed delivery"
LEVELS = 96
STEPS = 8
"""Levels in each doubling above the bound; of each it is counted how many took that long."""


class Who(NamedTuple):
    """What was timed."""

    operation: str
    """look-up, registration, send or delivery."""
    peer: str
    """Who had to answer."""
    since_ms: float
    """The beginning of the quiet stretch."""


@dataclass(frozen=True)
class Timed(Facts):
    """Operations of one kind, with one peer, in one quiet stretch."""

    count: int = 0
    over: Mapping[int, int] = field(default_factory=dict)
    """By level, how many took longer than that level and not longer than the next."""
    slowest_ms: float | None = largest()
    first_slow_ms: float | None = least()
    """The end of the first that took longer than the bound."""
    until_ms: float | None = largest()
    """When the stretch was over; of several peers' the last."""


@dataclass(frozen=True)
class Latencies(Facts):
    """How long everything took that ended in quiet times."""

    timed: Mapping[Who, Timed] = field(default_factory=dict)


def send_times(
    quiet: Callable[[World], Mapping[tuple[str, str], Sequence[Stretch]]], least_ms: Callable[[World], float]
) -> Reading[Latencies]:
    """What brokers' answers to sends took in these stretches, by producer and broker name."""

    def of(part: Part, world: World) -> Latencies:
        rows, stretches = part.of("send_attempt", types=("ok",)), quiet(world)
        rows = rows.filter(pc.is_valid(rows["duration_ms"]))
        began, ended, took_ms = began_ms(rows), floats(rows["time_ms"]), floats(rows["duration_ms"])
        found: dict[Who, Timed] = {}
        for at in groups(codes(rows, "node", "broker_name")):
            link = rows.slice(int(at[0]), 1).to_pylist()[0]
            broker = link["broker_name"]
            for stretch, inside in _inside(began[at], ended[at], stretches.get((link["node"], broker), ())):
                who = Who("send", broker, stretch.start_ms)
                timed = timed_of(took_ms[at][inside], ended[at][inside], least_ms(world), stretch.end_ms)
                found[who] = found[who].plus(timed) if who in found else timed
        return Latencies(found)

    return Reading(Together.ROW, ("send_attempt",), ("type", "broker_name", "duration_ms"), of)


def delivery_times(
    quiet: Callable[[World], Sequence[Stretch]], least_ms: Callable[[World], float]
) -> Reading[Latencies]:
    """What the delivery of brokers' messages took in these stretches."""

    def of(part: Part, world: World) -> Latencies:
        stretches = quiet(world)
        if not stretches:
            return Latencies()
        span = min(s.start_ms for s in stretches), max(s.end_ms for s in stretches)
        sends, receipts = (_within(part.of(*of), span) for of in (("send",), ("receive",)))
        sends = sends.filter(pc.fill_null(pc.equal(sends["type"], "ok"), False))
        from_ms, delayed = floats(sends["time_ms"]).copy(), np.flatnonzero(pc.is_valid(sends["f"]).to_numpy())
        for number in delayed:  # from when they are due on
            broker, level = (sends[name][int(number)].as_py() for name in ("broker_name", "f"))
            is_ours, acked_ms = world.made_by(broker) == OURS, from_ms[number]
            due = delivered(world, broker, level, acked_ms, acked_ms) if is_ours else None
            from_ms[number] = np.nan if due is None else due.end_ms
        key = codes(pa.concat_tables([sends.select(["msg_key"]), receipts.select(["msg_key"])]), "msg_key")
        sent_ms = np.full(int(key.max()) + 1 if len(key) else 0, np.nan)
        order = np.argsort(-from_ms, kind="stable")  # the first comes last, and stays
        sent_ms[key[: len(sends)][order]] = from_ms[order]
        first = _first_receipts(receipts, key[len(sends) :])
        is_delayed = np.isin(key[len(sends) :][first], key[: len(sends)][delayed])
        receipts, sent_ms = receipts.take(first), sent_ms[key[len(sends) :][first]]
        operation = pa.array(np.where(is_delayed, DELAYED, "delivery"))
        receipts = receipts.append_column("operation", operation)
        known = np.isfinite(sent_ms)
        receipts, sent_ms = receipts.filter(known), sent_ms[known]
        ended, found = floats(receipts["time_ms"]), dict[Who, Timed]()
        for at in groups(codes(receipts, "broker_name", "operation")):
            broker, operation = (receipts[name][int(at[0])].as_py() for name in ("broker_name", "operation"))
            began_ms = sent_ms[at]
            for stretch, inside in _inside(began_ms, np.maximum(ended[at], began_ms), stretches):
                took_ms = np.maximum(0.0, ended[at] - began_ms)
                who = Who(operation, broker, stretch.start_ms)
                found[who] = timed_of(took_ms[inside], ended[at][inside], least_ms(world), stretch.end_ms)
        return Latencies(found)

    return Reading(Together.MESSAGE, ("send", "receive"), ("type", "f", "broker_name"), of, types=("ok",))


def _first_receipts(receipts: pa.Table, key: Numbers) -> Numbers:
    """The place of each message's first receipt; of those at one time that of the first broker."""
    brokers = pc.rank(pc.fill_null(receipts["broker_name"], ""), tiebreaker="dense").to_numpy()
    order = np.lexsort((brokers, floats(receipts["time_ms"])))
    found: Numbers = order[np.unique(key[order], return_index=True)[1]]
    return found


def _within(rows: pa.Table, span: tuple[float, float]) -> pa.Table:
    return rows.filter(pc.and_(pc.greater_equal(rows["time_ms"], span[0]), pc.less_equal(rows["time_ms"], span[1])))


def _inside(began: Floats, ended: Floats, stretches: Sequence[Stretch]) -> Iterator[tuple[Stretch, Numbers]]:
    """The stretches, each with the places of what began and ended in it, and in none before."""
    free = np.ones(len(began), bool)
    for stretch in stretches:
        inside = free & (began >= stretch.start_ms) & (ended <= stretch.end_ms)
        free &= ~inside
        if inside.any():
            yield stretch, np.flatnonzero(inside)


def timed_of(took_ms: Floats, ended: Floats, least_ms: float, until_ms: float) -> Timed:
    """What took so long, and ended then, by how often it doubled the bound."""
    slow = took_ms > least_ms
    levels = np.minimum((STEPS * np.log2(took_ms[slow] / least_ms)).astype(np.int64), LEVELS)
    over = {int(level): int(count) for level, count in zip(*np.unique(levels, return_counts=True), strict=True)}
    first_ms = float(ended[slow].min()) if slow.any() else None
    return Timed(len(took_ms), over, float(took_ms.max()), first_ms, until_ms)
