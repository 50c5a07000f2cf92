"""What part of the clients' operations succeeded, over time, and where it had to be all of them.

    success ratio  1 ────────────┐            ┌──────────── quiet: 1, less what the machine's lateness explains
                                 └── fault ───┘             fault: at least the share of queues that are not lost
                   buckets of equal length, at most 200

Two floors. In quiet (no fault in force, and R + C + P + J + A + T since the last) every operation must succeed, the
prober's look-ups at NameServers that no client sits at among them; and each try of a send, though a retry at another
broker may save it: a broker that is routed to accepts what it is sent. Where one fault at a time met a producer
(oracle/quiet.py), it may fail once on each lost queue of each round: its floor is 1 less the lost brokers' share, and
two rounds' worth for beginning anywhere. A send that spent its whole budget on a hung broker has by then picked the
queue for its retry, which the next send passes over: with few queues that is a larger share (`passed_over`), and with
q·(brokers - lost) ≤ lost none may be left. Messages of a sharding key fail as long as their queue is lost. Pulls and
look-ups have no such floor: a consumer retries a lost queue every second, however many others it serves. A scenario may
set one floor for everything after its first fault (`availability_floor`). Nothing is asked of a producer without a
route whose NameServers are hit. Operations that never ended are not counted. Failures that timers or proxies as late as
a third of T explain make it UNKNOWN; that other operations were slow as well explains nothing, for it may be the same
node's doing.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ...oracle.intervals import Stretch, merged
from ...oracle.link import earliest_effect_ms
from ...oracle.lists import may_have
from ...oracle.quiet import (
    calm_but_stalls,
    dead,
    is_alone,
    settle_ms,
    started_again_ms,
)
from ...oracle.reach import lost, moments
from ...oracle.recorded import stall_ms
from ...oracle.recovery import LOOK_UP, hidden, hides_too_many, share_lost, turns_lost
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Facts, Group, Needs, Reads, Section, largest, least
from ..findings import Rule, finding, rounded, verdict_by_counts
from ..plain.part import Gathering
from ..plain.slots import SLOTS, slots_of
from ..record.lateness import LagWindow, Lateness
from ..record.slots import OPERATIONS, TRY, Slot, Slots, bucket_ms, of_clients

K = TypeVar("K")

NAME = "availability"
_HOPS = 3
"""Event loops that must run one after the other for an answer: client, server, client."""
_ROW = "quiet from R + C + P + J + A + T after a heal"


@dataclass(frozen=True)
class Tally(Facts):
    """How many operations ended well and how many badly."""

    good: int = 0
    bad: int = 0
    first_good_ms: float | None = least()
    first_bad_ms: float | None = least()
    last_bad_ms: float | None = largest()

    @property
    def ended(self) -> int:
        return self.good + self.bad

    @property
    def ratio(self) -> float:
        """To six places; 1 only when nothing failed."""
        return 1.0 if not self.bad else min(round(self.good / self.ended, 6), 0.999999)


@dataclass(frozen=True)
class Tallies:
    """The operations of a run, counted where a floor may hold."""

    whole: Mapping[str, Tally] = field(default_factory=dict)
    """By operation."""
    quiet: Mapping[tuple[float, str, str], Tally] = field(default_factory=dict)
    """By the beginning of the quiet stretch that they began and ended in, operation, client."""
    sends: Mapping[tuple[float, str], Tally] = field(default_factory=dict)
    """Sends that began after a fault or heal and were not in a quiet stretch, by that moment and producer."""
    producers: Mapping[str, Tally] = field(default_factory=dict)
    """All sends, by producer."""
    tries: Mapping[tuple[float, str], Tally] = field(default_factory=dict)
    """Tries of sends in quiet stretches, by the beginning of the stretch and broker."""
    faulted: Mapping[str, Tally] = field(default_factory=dict)
    """Those that began after the first fault, by operation."""
    series: Mapping[str, Mapping[int, Tally]] = field(default_factory=dict)
    """By operation and bucket."""
    lateness: Lateness = field(default_factory=Lateness)


class Shortfall(NamedTuple):
    """Operations that failed where fewer, or none, may."""

    operation: str
    client: str | None
    start_ms: float
    end_ms: float
    tally: Tally
    why: str
    floor: float = 1.0


def _failed(operation: str, client: str, tally: Tally, why: str) -> Shortfall:
    """None of these may."""
    return Shortfall(operation, client, tally.first_bad_ms or 0.0, tally.last_bad_ms or 0.0, tally, why)


def gather(gathering: Gathering, world: World) -> Tallies:
    """From the slots that recovery_time is judged by too."""
    return tallies(slots_of(gathering, world), world)


def tallies(seen: Slots, world: World) -> Tallies:
    """What the slots come to where a floor may hold."""
    still, changes = calm_but_stalls(world), [moment.at_ms for moment in moments(world)]
    whole: dict[str, list[Slot]] = defaultdict(list)
    quiet: dict[tuple[float, str, str], list[Slot]] = defaultdict(list)
    sends: dict[tuple[float, str], list[Slot]] = defaultdict(list)
    faulted: dict[str, list[Slot]] = defaultdict(list)
    producers: dict[str, list[Slot]] = defaultdict(list)
    tries: dict[tuple[float, str], list[Slot]] = defaultdict(list)
    clients = set(of_clients(seen.slots, world))
    for slot in seen.slots:
        stretch = next((stretch for stretch in still if seen.is_within(slot, stretch)), None)
        if slot.operation == TRY:
            if stretch is not None:
                tries[stretch.start_ms, slot.node].append(slot)
            continue
        if stretch is not None:
            quiet[stretch.start_ms, slot.operation, slot.node].append(slot)
        if slot not in clients:
            continue
        whole[slot.operation].append(slot)
        if slot.operation == "send":
            producers[slot.node].append(slot)
        begins_ms = seen.begins_ms(slot)
        passed = bisect_right(changes, begins_ms) if slot.segment else 0
        if passed:
            faulted[slot.operation].append(slot)
        if stretch is None and passed and slot.operation == "send" and begins_ms < world.end_ms:
            sends[changes[passed - 1], slot.node].append(slot)

    def of_each(found: Mapping[K, Sequence[Slot]]) -> dict[K, Tally]:
        return {key: _tally(slots) for key, slots in found.items()}

    def by_bucket(slots: Sequence[Slot]) -> dict[int, Tally]:
        found: dict[int, list[Slot]] = defaultdict(list)
        for slot in slots:
            found[slot.bucket].append(slot)
        return of_each(found)

    return Tallies(
        whole=of_each(whole),
        quiet=of_each(quiet),
        sends=of_each(sends),
        producers=of_each(producers),
        tries=of_each(tries),
        faulted=of_each(faulted),
        series={operation: by_bucket(slots) for operation, slots in whole.items()},
        lateness=seen.lateness,
    )


def judge(tallied: Tallies, world: World) -> Verdict:
    """Examined: operations where a floor holds. Violations: failures below it."""
    floor = world.run.get("availability_floor")
    examined, short = sum(tally.ended for tally in tallied.quiet.values()), _in_quiet(tallied, world)
    more, refused = _refused(tallied)
    examined, short = examined + more, [*refused, *short]
    more, producers_short = _producers(tallied, world)
    examined, short = examined + more, short + producers_short
    if floor is not None:
        more, floor_short = _below(tallied, world, float(floor))
        examined, short = examined + more, short + floor_short
    allowed = {
        "bound_ms": None,
        "formula": "quiet: all succeed; fault: sends at least 1 - lost share"
        + (f"; from the first fault: {floor}" if floor is not None else ""),
        "tolerance_ms": 0,
        "floor": floor,
        "settle_ms": rounded(settle_ms(world.but_stalls())),
        "row": _ROW,
    }
    measured = _measured(tallied, world)
    if not examined:
        why = "no operation ended in a quiet time, or where a floor holds"
        return Verdict.nothing_examined(NAME, why, measured=measured, allowed=allowed)
    return _verdict(tallied.lateness, world, examined, short, measured, allowed)


CHECK = Check(
    name=NAME,
    says="the share of operations that succeeded, over time",
    group=Group.SERVICE,
    section=Section.OPERATIONS,
    is_of_the_whole=True,
    needs=(Needs.MESSAGES,),
    reads=Reads.OPERATIONS,
    gather=gather,
    readings=(SLOTS,),
    judge=judge,
    outside=True,
    settles=settle_ms,
)


def _tally(slots: Sequence[Slot]) -> Tally:
    failed_ms = [ms for slot in slots if slot.bad for ms in (slot.first_bad_ms, slot.last_bad_ms) if ms is not None]
    return Tally(
        sum(slot.good for slot in slots),
        sum(slot.bad for slot in slots),
        min((slot.first_good_ms for slot in slots if slot.first_good_ms is not None), default=None),
        min(failed_ms, default=None),
        max(failed_ms, default=None),
    )


def _lets_fail(world: World, from_ms: float, operation: str, client: str) -> bool:
    """Whether it may ask where nobody listens, or, of a send or pull, a NameServer that has no broker to name."""
    if operation == LOOK_UP:
        return _dead_entries(world, client, from_ms, math.inf) > 0
    return frozenset() in world.views_of(client) or any(
        not any(
            server in world.listed(one.name) and world.joined_ms(one.name) <= from_ms
            for one in world.seen_by(client, "broker")
        )
        for server in world.listed(client)
    )


def _dead_entries(world: World, client: str, from_ms: float, to_ms: float) -> int:
    """How many entries of its list nobody may listen at in that time: a NameServer's that is not there yet, or not any
    more, among them."""
    listed = (node.name for node in world.listed(client) if may_have(world, client, node.name, from_ms, to_ms))
    absent = [node for node in listed if any(fault.overlaps(from_ms, to_ms) for fault in dead(world, node))]
    return world.dead_entries(client) + len(absent)


def _in_quiet(tallied: Tallies, world: World) -> list[Shortfall]:
    """Every operation that failed there, but those that a client's own list of NameServers may make fail."""
    failed = [
        (key, tally)
        for key, tally in tallied.quiet.items()
        if tally.bad and not _lets_fail(world, *key) and not _asks_first(tallied, world, key, tally)
    ]
    return [
        _failed(operation, client, tally, "failed in a quiet time")
        for (_, operation, client), tally in sorted(failed, key=lambda one: _in_order(one[0]))
    ]


def _refused(tallied: Tallies) -> tuple[int, list[Shortfall]]:
    """Every try that a broker refused, or did not answer, in a quiet time."""

    def says(broker: str, tally: Tally) -> str:
        return f"{broker} refused, or did not answer, {tally.bad:,} of {tally.ended:,} tries of sends in a quiet time"

    failed = [(broker, tally) for (_, broker), tally in sorted(tallied.tries.items()) if tally.bad]
    short = [_failed(TRY, broker, tally, says(broker, tally)) for broker, tally in failed]
    return sum(tally.ended for tally in tallied.tries.values()), short


def _asks_first(tallied: Tallies, world: World, key: tuple[float, str, str], tally: Tally) -> bool:
    """Whether these sends failed before the producer had a route, one at each dead entry of its list; all, where every
    entry is one."""
    from_ms, operation, client = key
    if operation != "send" or tally.last_bad_ms is None:
        return False
    if _asks_nobody(world, client, from_ms, tally.last_bad_ms):
        return not tally.good
    if not 0 < tally.bad <= _dead_entries(world, client, from_ms, tally.last_bad_ms) * len(world.lives_of(client)):
        return False
    first_ms = tallied.producers.get(client, Tally()).first_good_ms
    return len(world.lives_of(client)) > 1 or first_ms is None or tally.last_bad_ms <= first_ms


def _asks_nobody(world: World, client: str, from_ms: float, to_ms: float) -> bool:
    """Whether each NameServer of its list is not there yet, or not any more, all that time."""
    return all(
        any(fault.start_ms <= from_ms and fault.end_ms >= to_ms for fault in dead(world, node.name))
        for node in world.listed(client)
    )


def _in_order(key: tuple[float, str, str]) -> tuple[float, int, str]:
    start_ms, operation, client = key
    return start_ms, OPERATIONS.index(operation), client


def _producers(tallied: Tallies, world: World) -> tuple[int, list[Shortfall]]:
    """Sends between one change and the next, where one fault at a time met the producer, against the share of the
    queues that were not lost."""
    examined, short = 0, []
    bounds = sorted({*(moment.at_ms for moment in moments(world)), world.end_ms, math.inf})
    for (start_ms, client), tally in sorted(tallied.sends.items(), key=lambda one: one[0]):
        brokers, queues = len(world.seen_by(client, "broker")), world.queues_of(client)
        if not brokers or not queues or len(world.views_of(client)) > 1 or not is_alone(world, client, start_ms):
            continue
        missing = lost(world, client, "broker", start_ms, for_ms=settle_ms(world))
        routed = _routed(tallied, world, client, start_ms)
        servers = lost(world, client, "name_server", start_ms, for_ms=settle_ms(world))
        asks_in_vain = not routed and bool(servers or hidden(world, client, start_ms))
        if asks_in_vain or hides_too_many(world, client, start_ms, missing):
            continue
        gone, until_ms = len(missing), bounds[bisect_right(bounds, start_ms)]
        share = share_lost(world, brokers, gone, queues)
        if share >= 1:
            continue
        rounds = math.ceil(tally.ended * share) + 2 * turns_lost(world, brokers, gone, queues)
        rounds += 0 if routed else _dead_entries(world, client, start_ms, until_ms)  # one at each
        rounds += _while_stood_still(world, client, start_ms, until_ms)
        rounds += _as_the_next_begins(world, client, tally, start_ms, until_ms)
        examined += tally.ended
        if tally.bad > rounds:
            floor = max(0.0, 1 - rounds / tally.ended)
            why = f"more failed than {gone} of {brokers} lost brokers explain"
            short.append(Shortfall("send", client, start_ms, until_ms, tally, why, floor))
    return examined, short


def _as_the_next_begins(world: World, client: str, tally: Tally, start_ms: float, until_ms: float) -> int:
    """The send under way as the next fault of a broker begins, and those that it may hit before the moment that it
    counts from: link by link it comes on, and a broker that stops serves nobody on its way."""
    over_ms = until_ms if tally.last_bad_ms is None else max(until_ms, tally.last_bad_ms)
    begins = (
        earliest_effect_ms(world, fault)
        for broker in world.of_kind("broker")
        for fault in (*world.link_faults(client, broker.name), *world.process_faults(broker.name))
        if start_ms < fault.start_ms <= over_ms and not world.harmless(fault)
    )
    hit_ms = min((at_ms for at_ms in begins if at_ms <= (tally.last_bad_ms or 0.0)), default=math.inf)
    rate = float(world.workload.get("sends_per_s") or 1.0)
    return 1 + math.ceil(max(0.0, until_ms - hit_ms) * rate / 1000) if hit_ms < math.inf else 0


def _while_stood_still(world: World, client: str, start_ms: float, until_ms: float) -> int:
    """The sends that time out because the machine did not run the producer, or a broker: one in each T, and those under
    way at both ends."""
    nodes = (client, *(node.name for node in world.of_kind("broker", "slave")))
    stalls = (fault for node in nodes for fault in world.process_faults(node) if fault.stood_still)
    met = merged(Stretch(one.start_ms, one.end_ms) for one in stalls if one.overlaps(start_ms, until_ms))
    return sum(2 + int((end_ms - begin_ms) / world.timers_of(client).T_ms) for begin_ms, end_ms in met)


def _routed(tallied: Tallies, world: World, client: str, at_ms: float) -> bool:
    """Whether a good send of this process of the producer says that it has a route."""
    since_ms = started_again_ms(world, client, at_ms)
    if math.isinf(since_ms):
        first_ms = tallied.producers.get(client, Tally()).first_good_ms
        return first_ms is not None and first_ms <= at_ms
    told = [*((key[1], tally) for key, tally in tallied.sends.items())]
    told += [(key[2], tally) for key, tally in tallied.quiet.items() if key[1] == "send"]
    return any(
        who == client and tally.first_good_ms is not None and since_ms <= tally.first_good_ms <= at_ms
        for who, tally in told
    )


def _below(tallied: Tallies, world: World, floor: float) -> tuple[int, list[Shortfall]]:
    """Each kind of operation from the first fault to the end, against the scenario's floor."""
    examined, short = 0, []
    for operation in OPERATIONS:
        tally = tallied.faulted.get(operation, Tally())
        examined += tally.ended
        if tally.ended and tally.good / tally.ended < floor:
            why = "below the scenario's availability_floor"
            from_ms = moments(world)[0].at_ms
            short.append(Shortfall(operation, None, from_ms, world.end_ms, tally, why, floor))
    return examined, short


def _measured(tallied: Tallies, world: World) -> Mapping[str, Any]:
    """Ratios of the whole run and of its quiet times, and per bucket [ended, failed] of each operation."""
    series: dict[str, list[list[int]]] = {}
    whole: dict[str, float] = {}
    for operation in OPERATIONS:
        if operation not in tallied.whole:
            continue
        whole[operation] = tallied.whole[operation].ratio
        buckets = tallied.series.get(operation, {})
        counts = [buckets.get(bucket, Tally()) for bucket in range(max(buckets, default=-1) + 1)]
        series[operation] = [[tally.ended, tally.bad] for tally in counts]
    quiet = Tally()
    for tally in tallied.quiet.values():
        quiet = quiet.plus(tally)
    return {
        **whole,
        "quiet": quiet.ratio if quiet.ended else None,
        "quiet_operations": quiet.ended,
        "quiet_stretches": [[rounded(start_ms), rounded(end_ms)] for start_ms, end_ms in calm_but_stalls(world)],
        "bucket_ms": bucket_ms(world),
        "series": series,
    }


def _verdict(
    lateness: Lateness,
    world: World,
    examined: int,
    short: Sequence[Shortfall],
    measured: Mapping[str, Any],
    allowed: Mapping[str, Any],
) -> Verdict:
    nodes = [node.name for node in world.of_kind("name_server", "broker", "producer", "consumer")]
    timeout_ms = world.timers.T_ms
    asked = [
        LagWindow(index, node, fall.start_ms - timeout_ms, fall.end_ms)
        for index, fall in enumerate(short)
        for node in nodes
    ]
    lags = lateness.measured(world, asked)
    least_ms = min(timeout_ms, world.timers.A_ms)
    wrong: list[Shortfall] = []
    late: list[Shortfall] = []
    for index, fall in enumerate(short):
        # A loop that is this late can make a call of T time out that nothing else disturbed.
        late_ms = lags.get(index, math.inf)
        explained = late_ms * _HOPS >= least_ms and (
            index not in lags or fall.tally.bad <= _most_late(world, fall, late_ms)
        )
        (late if explained else wrong).append(fall)
    failed, unsure = (sum(fall.tally.bad for fall in falls) for falls in (wrong, late))
    lag_ms = max(lags.values(), default=None)
    said = "nobody measured how late timers fired" if lag_ms is None else f"timers fired {lag_ms:.0f} ms late"
    return verdict_by_counts(
        NAME,
        examined=examined,
        wrong=failed,
        unsure=unsure,
        why=f"{failed} of {examined} operations failed where fewer may: {wrong[0].why if wrong else ''}",
        why_unsure=f"{unsure} of {examined} operations failed, but {said}",
        measured=measured,
        allowed=allowed,
        findings=(_finding(fall, is_wrong=falls is wrong) for falls in (wrong, late) for fall in falls),
    )


def _most_late(world: World, fall: Shortfall, lag_ms: float) -> float:
    """How many of these operations may have failed because processes stood still: one in each second of it, of a
    producer's tries one in each T, and those under way at both ends. inf: nothing stood still for long, so that many
    short delays are what there was."""
    timeout_ms = world.timers.T_ms
    from_ms = fall.start_ms - timeout_ms
    stalls = (one for one in world.faults if one.stood_still and one.overlaps(from_ms, fall.end_ms))
    met = merged(Stretch(one.start_ms, one.end_ms) for one in stalls)
    if fall.client is None or lag_ms < stall_ms(world.timers):
        return math.inf
    each, every_ms = (len(world.of_kind("producer")), timeout_ms) if fall.operation == TRY else (1, 1000.0)
    return each * (2 + sum(2 + math.ceil((end_ms - begin_ms) / every_ms) for begin_ms, end_ms in met))


def _finding(fall: Shortfall, *, is_wrong: bool) -> Finding:
    return finding(
        fall.client or "",
        fall.why,
        (fall.start_ms, fall.end_ms),
        Rule(_ROW, f"at least {fall.floor:.4g} succeed"),
        out=(fall.start_ms, fall.end_ms),
        examined=fall.tally.ended,
        wrong=fall.tally.bad if is_wrong else 0,
        late=0 if is_wrong else fall.tally.bad,
        more={
            "operation": fall.operation,
            "succeeded": fall.tally.good,
            "failed": fall.tally.bad,
            "floor": round(fall.floor, 4),
        },
    )
