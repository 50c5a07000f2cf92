"""How long brokers took in quiet times, counted by broker, quiet stretch and level (prompt_answers).

send_attempt ok ──────────────────────────────► its duration ─────────────────────────────────────┐
send ok ─┐                                                                                        ├─► Timed
receive ─┴─ of a key ─► from the send's end, or the end of the delay, until the first receipt ────┘
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...arrow import Floats, Numbers, np, pa, pc
from ...oracle.deliveries import delivered
from ...oracle.intervals import Stretch
from ...oracle.world import World
from ..check import Facts, Table, largest, least
from .part import Part, Reading, Together, began_ms, codes, floats, groups

DELAYED = "delayed delivery"
LEVELS = 96
STEPS = 8
"""Levels in each doubling above the bound; of each it is counted how many took that long."""


class Times(NamedTuple):
    """When operations began and ended, and how long each took."""

    began: Floats
    ended: Floats
    took_ms: Floats

    def at(self, places: Numbers) -> Times:
        return Times(*(column[places] for column in self))


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


def send_times(
    quiet: Callable[[World], Mapping[tuple[str, str], Sequence[Stretch]]], least_ms: Callable[[World], float]
) -> Reading[Table[Who, Timed]]:
    """What brokers' answers to sends took in these stretches, by producer and broker name."""

    def of(part: Part, world: World) -> Table[Who, Timed]:
        rows, stretches = part.of("send_attempt", types=("ok",)), quiet(world)
        rows = rows.filter(pc.is_valid(rows["duration_ms"]))
        times = Times(began_ms(rows), floats(rows["time_ms"]), floats(rows["duration_ms"]))
        counted = [Table[Who, Timed]()]
        for at in groups(codes(rows, "node", "broker_name")):
            node, broker = (rows[name][int(at[0])].as_py() for name in ("node", "broker_name"))
            counted.append(in_quiet("send", broker, times.at(at), stretches.get((node, broker), ()), least_ms(world)))
        return Table.total(counted)

    return Reading(Together.ROW, ("send_attempt",), ("type", "broker_name", "duration_ms"), of)


def delivery_times(
    quiet: Callable[[World], Sequence[Stretch]], least_ms: Callable[[World], float]
) -> Reading[Table[Who, Timed]]:
    """What the delivery of brokers' messages took in these stretches."""

    def of(part: Part, world: World) -> Table[Who, Timed]:
        stretches = quiet(world)
        if not stretches:
            return Table()
        span = min(s.start_ms for s in stretches), max(s.end_ms for s in stretches)
        sends, receipts = (_within(part.of(*of), span) for of in (("send",), ("receive",)))
        sends = sends.filter(pc.fill_null(pc.equal(sends["type"], "ok"), False))
        from_ms, delayed = floats(sends["time_ms"]).copy(), np.flatnonzero(pc.is_valid(sends["f"]).to_numpy())
        for number in delayed:  # from when they are due on
            broker, level = (sends[name][int(number)].as_py() for name in ("broker_name", "f"))
            is_ours, acked_ms = world.is_ours(broker), from_ms[number]
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
        ended = np.maximum(floats(receipts["time_ms"]), sent_ms)
        times, counted = Times(sent_ms, ended, ended - sent_ms), [Table[Who, Timed]()]
        for at in groups(codes(receipts, "broker_name", "operation")):
            broker, operation = (receipts[name][int(at[0])].as_py() for name in ("broker_name", "operation"))
            counted.append(in_quiet(operation, broker, times.at(at), stretches, least_ms(world)))
        return Table.total(counted)

    return Reading(Together.MESSAGE, ("send", "receive"), ("type", "f", "broker_name"), of, types=("ok",))


def _first_receipts(receipts: pa.Table, key: Numbers) -> Numbers:
    """The place of each message's first receipt; of those at one time that of the first broker."""
    brokers = pc.rank(pc.fill_null(receipts["broker_name"], ""), tiebreaker="dense").to_numpy()
    order = np.lexsort((brokers, floats(receipts["time_ms"])))
    found: Numbers = order[np.unique(key[order], return_index=True)[1]]
    return found


def _within(rows: pa.Table, span: tuple[float, float]) -> pa.Table:
    return rows.filter(pc.and_(pc.greater_equal(rows["time_ms"], span[0]), pc.less_equal(rows["time_ms"], span[1])))


def in_quiet(operation: str, peer: str, of: Times, stretches: Sequence[Stretch], least_ms: float) -> Table[Who, Timed]:
    """What began and ended in each of these stretches, and in none before, by how often it doubled the bound."""
    free, found = np.ones(len(of.began), bool), dict[Who, Timed]()
    for stretch in stretches:
        inside = free & (of.began >= stretch.start_ms) & (of.ended <= stretch.end_ms)
        free &= ~inside
        if inside.any():
            _, ended, took_ms = of.at(np.flatnonzero(inside))
            slow = took_ms > least_ms
            levels = np.minimum((STEPS * np.log2(took_ms[slow] / least_ms)).astype(np.int64), LEVELS)
            over = {int(level): int(count) for level, count in zip(*np.unique(levels, return_counts=True), strict=True)}
            first_ms = float(ended[slow].min()) if slow.any() else None
            timed = Timed(len(took_ms), over, float(took_ms.max()), first_ms, stretch.end_ms)
            found[Who(operation, peer, stretch.start_ms)] = timed
    return Table(found)
