"""In quiet times peers answer at once: NameServers look-ups and registrations, brokers sends, and messages arrive.

    look-up         name_server_call that was answered        took its duration        of the NameServer that answered
    registration    register that was acknowledged            its duration             of the NameServer
    send            send_attempt that was acknowledged        its duration             of the broker
    delivery        a message from its send's end until it    a held pull is woken;    of the broker that has it
                    first reached a listener                  without longPollingEnable
                                                              from the next check on

A time is quiet for a call when nothing was done to who calls, to who answers, or to the link between them (of a
look-up: to any NameServer, for the choice is a part of it; of a delivery: to anybody). At once is what the run's own
network takes: twice a delivery (a connect and a call), what latency faults too small to matter add, and how late timers
were in that stretch. One that is slower may have met what nobody measured, so a peer is slow that was so more often
than once in twenty, and three times at least, in one quiet stretch; of calls on the virtual clock, all of whose
lateness is measured, one is enough. The lateness is the longest that was measured there; where a quarter was slow, that
of all but one second in a hundred.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...arrow import Floats, Numbers, np, pa, pc
from ...oracle.deliveries import delivered
from ...oracle.intervals import Stretch, without
from ...oracle.quiet import (
    brokers_joined,
    calm_among,
    clients_began_ms,
    harmful_to_deliveries,
    members_ms,
    quiet,
    settle_ms,
    sharing_ms,
)
from ...oracle.recorded import PROXIES
from ...oracle.slaves import slaves_of
from ...oracle.time_outs import wakes
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Facts, Group, Needs, Section, Table, check, largest, least
from ..findings import Rule, finding, rounded, verdict_of
from ..plain.part import Gathering, Part, Reading, Together, began_ms, codes, floats, groups
from ..record.control import Control
from ..record.lateness import Lateness
from ..tolerance import Tolerance, tolerance

_SHARE, _LEAST = 0.05, 3
_MANY = 0.25
"""So many were not all slowed down by what nodes measured once in a hundred seconds."""
_HOPS = 4
"""Event loops that must run one after the other: client, proxy, server, client."""
_ROW = "in quiet times peers answer at once"
_FORMULA = "2 deliveries"
DELAYED = "delayed delivery"
_KINDS = {
    "look-up": "answered look-ups late",
    "registration": "acknowledged registrations late",
    "send": "acknowledged sends late",
    "delivery": "handed messages over late",
    DELAYED: "handed delayed messages over late",
}


def bound_ms(world: World) -> float:
    """What an answer takes at most on the run's own network."""
    delays = [
        fault.kind.delay.round_trip_max_ms
        for fault in world.faults
        if fault.harmless(world.timers) and fault.kind.delay is not None
    ]
    return 2 * (world.timers.delivery_ms + max(delays, default=0.0))


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


Link = tuple[str, str]
"""Who calls, and who answers."""


def sends(world: World) -> dict[Link, list[Stretch]]:
    """When sends of each producer to each broker name are quiet."""
    brokers = [node.name for node in world.of_kind("broker")]
    return {
        (producer.name, broker): calm_among(world, producer.name, broker, *slaves_of(world, broker))
        for producer in world.of_kind("producer")
        for broker in brokers
    }


def registrations(world: World) -> dict[Link, list[Stretch]]:
    """When those of each broker at each NameServer are quiet."""
    return {
        (broker.name, server.name): calm_among(world, broker.name, server.name)
        for broker in world.of_kind("broker", "slave")
        for server in world.of_kind("name_server")
    }


def look_ups(world: World, node: str) -> list[Stretch]:
    """When those of this node are quiet."""
    return calm_among(world, node, *(server.name for server in world.of_kind("name_server")))


def shared(world: World) -> list[Stretch]:
    """The quiet stretches in which each queue has its consumer, too, who waits for messages, and whose subscription its
    brokers know: until a heartbeat behind the last rebalance they may refuse its pulls (code 25). None where consumers
    may see different brokers, so that a queue may have nobody for ever."""
    if world.views_differ:
        return []
    timers, hung = world.timers, len(world.of_kind("broker"))
    settled_ms = settle_ms(world) + sharing_ms(timers, hung) + timers.H_ms
    from_ms = clients_began_ms(world) + members_ms(timers) + timers.H_ms
    free = quiet(world, settled_ms, from_ms=from_ms, faults=harmful_to_deliveries(world))
    joined = brokers_joined(world, settled_ms)
    return [left for stretch in free for left in without(*stretch, joined)]


def send_times(part: Part, world: World) -> Table[Who, Timed]:
    """What brokers' answers to sends took in quiet stretches."""
    rows, stretches = part.of("send_attempt", types=("ok",)), sends(world)
    rows = rows.filter(pc.is_valid(rows["duration_ms"]))
    times = Times(began_ms(rows), floats(rows["time_ms"]), floats(rows["duration_ms"]))
    counted = [Table[Who, Timed]()]
    for at in groups(codes(rows, "node", "broker_name")):
        node, broker = (rows[name][int(at[0])].as_py() for name in ("node", "broker_name"))
        counted.append(in_quiet("send", broker, times.at(at), stretches.get((node, broker), ()), bound_ms(world)))
    return Table.total(counted)


SENDS = Reading(Together.ROW, ("send_attempt",), ("type", "broker_name", "duration_ms"), send_times)


def delivery_times(part: Part, world: World) -> Table[Who, Timed]:
    """What the delivery of brokers' messages took in quiet stretches."""
    stretches = shared(world)
    if not stretches:
        return Table()
    span = min(s.start_ms for s in stretches), max(s.end_ms for s in stretches)
    sends, receipts = (_within(part.of(*of), span) for of in (("send",), ("receive", "sent_back")))
    sends = sends.filter(pc.fill_null(pc.equal(sends["type"], "ok"), False))
    from_ms, delayed = floats(sends["time_ms"]).copy(), np.flatnonzero(pc.is_valid(sends["f"]).to_numpy())
    for number in delayed:  # from when they are due on
        broker, level = (sends[name][int(number)].as_py() for name in ("broker_name", "f"))
        is_ours, acked_ms = world.is_ours(broker), from_ms[number]
        due = delivered(world, broker, level, acked_ms, acked_ms) if is_ours else None
        from_ms[number] = np.nan if due is None else due.end_ms
    for broker in world.of_kind("broker"):
        if wait := wakes(world, broker.name).ms:
            from_ms[pc.equal(sends["broker_name"], broker.name).to_numpy()] += wait
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
        counted.append(in_quiet(operation, broker, times.at(at), stretches, bound_ms(world)))
    return Table.total(counted)


DELIVERY = Reading(
    Together.MESSAGE, ("send", "receive", "sent_back"), ("type", "f", "broker_name"), delivery_times, types=("ok",)
)


def of_name_servers(control: Control, world: World) -> Table[Who, Timed]:
    """Look-ups and registrations that were answered, by NameServer and quiet stretch."""
    names = {node.address: node.name for node in world.of_kind("name_server")}
    registering, of = registrations(world), defaultdict[tuple[str, str, str], list[tuple[float, float, float]]](list)
    for row in control.rows("name_server_call", "register"):
        operation = "look-up" if row.event == "name_server_call" else "registration"
        if row.code is not None and row.duration_ms is not None and row.name_server in names and _tries(row) <= 1:
            times = row.began_ms, row.time_ms, row.duration_ms
            of[operation, row.node, names[row.name_server]].append(times)
    counted = [Table[Who, Timed]()]
    for (operation, node, server), every in of.items():
        stretches = look_ups(world, node) if operation == "look-up" else registering.get((node, server), ())
        counted.append(in_quiet(operation, server, Times(*np.array(every).T), stretches, bound_ms(world)))
    return Table.total(counted)


def _tries(row: Any) -> int:
    return len(row.said.get("tried") or ())


@check(
    says="NameServers and brokers answer requests, and brokers deliver messages, at once while no fault affects them",
    group=Group.SERVICE,
    section=Section.OPERATIONS,
    is_of_the_whole=True,
    needs=(Needs.WIRE,),
    readings=(SENDS, DELIVERY),
    tells=lambda measured: _told(measured),
)
def judge(history: Gathering, world: World) -> Verdict:
    """Examined: operations in quiet times. Violations: those that a slow peer answered late."""
    counted = (of_name_servers(history.control, world), *(history.counted(one, world) for one in (SENDS, DELIVERY)))
    return judged(Table.total(counted).of, history.control.lateness, world)


def judged(every: Mapping[Who, Timed], lateness: Lateness, world: World) -> Verdict:
    findings = [_finding(lateness, world, who, timed) for who, timed in sorted(every.items())]
    slowest: dict[str, float] = {}
    for who, timed in every.items():
        slowest[who.operation] = max(slowest.get(who.operation, 0.0), timed.slowest_ms or 0.0)
    return verdict_of(
        findings,
        measured={"slowest_ms": {operation: rounded(took_ms) for operation, took_ms in sorted(slowest.items())}},
        nothing="no operation began and ended in a quiet time",
        noun="operations in quiet times were answered late",
    )


def _told(measured: Mapping[str, Any]) -> str:
    slowest = measured.get("slowest_ms") or {}
    said = ", ".join(f"{operation} {took_ms / 1000:.2f} s" for operation, took_ms in slowest.items())
    return f"slowest {said}" if said else ""


def _over(timed: Timed, least_ms: float, allowed_ms: float) -> int:
    """How many took longer for certain."""
    level = 0 if allowed_ms <= least_ms else math.ceil(STEPS * math.log2(allowed_ms / least_ms) - 1e-9)
    return sum(count for of, count in timed.over.items() if of >= level)


def _finding(lateness: Lateness, world: World, who: Who, timed: Timed) -> Finding:
    end_ms, least_ms = timed.until_ms or world.end_ms, bound_ms(world)
    longest, usual = _tolerances(lateness, world, who, end_ms)
    few, many = (max(_LEAST, math.ceil(share * timed.count)) for share in (_SHARE, _MANY))
    slow = _over(timed, least_ms, least_ms + min(usual.lateness_ms, usual.cap_ms))
    wrong = _over(timed, least_ms, least_ms + longest.lateness_ms)
    often = _over(timed, least_ms, least_ms + usual.lateness_ms)
    wrong = wrong if wrong >= few else often if often >= many else 0
    if not wrong and who.operation not in ("delivery", DELAYED) and world.run.get("clock") == "virtual":
        wrong = _over(timed, least_ms, least_ms + longest.unknown_up_to_ms)
    late = slow if not wrong and slow >= few else 0
    is_slow = bool(wrong or late)
    took_ms = timed.slowest_ms or 0.0
    return finding(
        who.peer,
        _KINDS[who.operation],
        (who.since_ms, end_ms),
        Rule(_ROW, _FORMULA, least_ms if is_slow else None),
        out=(timed.first_slow_ms, end_ms) if is_slow else None,
        tolerance=longest,
        measured_ms=took_ms if is_slow else None,
        over_ms=took_ms - least_ms if is_slow else 0.0,
        examined=timed.count,
        wrong=wrong,
        late=late,
        more={"operation": who.operation, "slow": wrong or late, "of": timed.count} if is_slow else {},
    )


def _tolerances(lateness: Lateness, world: World, who: Who, end_ms: float) -> tuple[Tolerance, Tolerance]:
    """By the longest lateness of anybody who had to do with it, and by the one that only a hundredth exceeded."""
    nodes = {who.peer, PROXIES, *(node.name for node in world.of_kind("producer", "consumer", "broker"))}
    found = [of.within(who.since_ms, end_ms) for node in nodes if (of := lateness.of_node.get(node)) is not None]
    lags = [of for of in found if len(of)]
    longest_ms = max((float(of.max()) for of in lags), default=None)
    usual_ms = max((float(np.quantile(of, 0.99, method="lower")) for of in lags), default=None)
    return tolerance(world.timers, longest_ms, _HOPS), tolerance(world.timers, usual_ms, _HOPS)


def _first_receipts(receipts: pa.Table, key: Numbers) -> Numbers:
    """The place of each message's first receipt; of those at one time that of the first broker."""
    brokers = pc.rank(pc.fill_null(receipts["broker_name"], ""), tiebreaker="dense").to_numpy()
    order = np.lexsort((brokers, floats(receipts["time_ms"])))
    return order[np.unique(key[order], return_index=True)[1]]


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
