"""What part of the clients' operations succeeded, over time, and where it had to be all of them.

    success ratio  1 ────────────┐            ┌──────────── quiet: 1, less what the machine's lateness explains
                                 └── fault ───┘             fault: at least the share of queues that are not lost
                   buckets of equal length, at most 200

Two floors. In quiet (no fault in force, and R + C + P + J + A + T since the last) every operation must succeed. From
one fault or heal to the next a producer that goes round its queues may fail once on each lost queue of each round: its
floor is 1 less the lost brokers' share, and two rounds' worth for beginning anywhere. A send that spent its whole
budget on a hung broker has by then picked the queue for its retry, which the next send passes over: with few queues
that is a larger share (`passed_over`), and with q·(brokers - lost) ≤ lost none may be left. Messages of a sharding key
fail as long as their queue is lost. Pulls and look-ups have no such floor: a consumer retries a lost queue every
second, however many others it serves. A scenario may set one floor for everything after its first fault
(`availability_floor`). Operations that never ended are not counted. Failures that timers as late as a third of T
explain, or a stall of the proxies (`operations.Stalls`), make it UNKNOWN.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from ..oracle.quiet import Stretch, calm, settle_ms
from ..oracle.reach import Moment, lost, moments
from ..oracle.world import World
from ..verdict import EXAMPLES_MAX, Validity, Verdict
from .dataframes.operations import OPERATIONS, Slot, Stalls, bucket_ms, share_lost, shared_slots, turns_lost
from .findings import rounded
from .tolerance import LagWindow, measure

NAME = "availability"
_HOPS = 3
"""Event loops that must run one after the other for an answer: client, server, client."""


class Shortfall(NamedTuple):
    """Operations that failed where fewer, or none, may."""

    operation: str
    client: str | None
    start_ms: float
    end_ms: float
    good: int
    bad: int
    floor: float
    why: str
    stalled: bool = False
    """Whether without those that met a stall no more failed than may."""


def availability(history: DataFrame, world: World) -> Verdict:
    """Examined: operations where a floor holds. Violations: failures below it."""
    still, changes = calm(world), moments(world)
    edges, seen = shared_slots(history, world)
    floor = world.run.get("availability_floor")
    stalls = Stalls(world, seen)
    examined, short = _in_quiet(seen, still, edges, stalls)
    more, producers_short = _producers(world, seen, changes, still, edges, stalls)
    examined, short = examined + more, short + producers_short
    if floor is not None and changes:
        more, floor_short = _below(seen, changes[0].at_ms, edges, float(floor), world.end_ms, stalls)
        examined, short = examined + more, short + floor_short
    allowed = {
        "bound_ms": None,
        "formula": "quiet: all succeed; fault: sends at least 1 - lost share"
        + (f"; from the first fault: {floor}" if floor is not None else ""),
        "tolerance_ms": 0,
        "floor": floor,
        "settle_ms": rounded(settle_ms(world)),
        "row": "quiet from R + C + P + J + A + T after a heal",
    }
    measured = _measured(world, seen, still, edges)
    if not examined:
        why = "no operation ended in a quiet time, or where a floor holds"
        return Verdict.nothing_examined(NAME, why, measured=measured, allowed=allowed)
    return _verdict(history, world, examined, short, measured, allowed)


def _whole(slot: Slot, edges: Sequence[float], stretch: Stretch) -> bool:
    """Whether the slot's operations began and ended within the stretch."""
    begins = slot.segment > 0 and edges[slot.segment - 1] >= stretch.start_ms
    return begins and slot.until < len(edges) and edges[slot.until] <= stretch.end_ms


def _in_quiet(
    seen: Sequence[Slot], still: Sequence[Stretch], edges: Sequence[float], stalls: Stalls
) -> tuple[int, list[Shortfall]]:
    examined, short = 0, []
    for stretch in still:
        within = [slot for slot in seen if _whole(slot, edges, stretch)]
        examined += sum(slot.good + slot.bad for slot in within)
        for operation in OPERATIONS:
            for client in sorted({slot.node for slot in within if slot.operation == operation and slot.bad}):
                those = [slot for slot in within if slot.operation == operation and slot.node == client]
                failed = [
                    at_ms for slot in those for at_ms in (slot.first_bad_ms, slot.last_bad_ms) if at_ms is not None
                ]
                good, bad = sum(slot.good for slot in those), sum(slot.bad for slot in those)
                why = "failed in a quiet time"
                stalled = all(stalls.explain(slot) for slot in those if slot.bad)
                short.append(Shortfall(operation, client, min(failed), max(failed), good, bad, 1.0, why, stalled))
    return examined, short


def _producers(
    world: World,
    seen: Sequence[Slot],
    changes: Sequence[Moment],
    still: Sequence[Stretch],
    edges: Sequence[float],
    stalls: Stalls,
) -> tuple[int, list[Shortfall]]:
    """Sends between one change and the next, against the share of the queues that were not lost."""
    brokers = len(world.of_kind("broker"))
    queues = int((world.run.get("workload") or {}).get("queues") or 0)
    if not brokers or not queues:
        return 0, []
    examined, short = 0, []
    bounds = [*(moment.at_ms for moment in changes), world.end_ms]
    for start_ms, end_ms in pairwise(bounds):
        segment = Stretch(start_ms, end_ms)
        counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for slot in seen:
            begins_ms = edges[slot.segment - 1] if slot.segment else 0.0
            if slot.operation != "send" or not start_ms <= begins_ms < end_ms:
                continue
            if any(_whole(slot, edges, stretch) for stretch in still):
                continue
            counts[slot.node][0] += slot.good
            counts[slot.node][1] += slot.bad
            counts[slot.node][2] += slot.bad if stalls.explain(slot) else 0
        for client, (good, bad, stalled) in sorted(counts.items()):
            gone = len(lost(world, client, "broker", start_ms, for_ms=settle_ms(world)))
            share = share_lost(world, brokers, gone, queues)
            if share >= 1:
                continue
            rounds = math.ceil((good + bad) * share) + 2 * turns_lost(world, brokers, gone, queues)
            examined += good + bad
            if bad > rounds:
                floor = max(0.0, 1 - rounds / (good + bad))
                why = f"more failed than {gone} of {brokers} lost brokers explain"
                short.append(Shortfall("send", client, *segment, good, bad, floor, why, bad - stalled <= rounds))
    return examined, short


def _below(
    seen: Sequence[Slot], from_ms: float, edges: Sequence[float], floor: float, end_ms: float, stalls: Stalls
) -> tuple[int, list[Shortfall]]:
    """Each kind of operation from `from_ms` to the end, against the scenario's floor."""
    examined, short = 0, []
    for operation in OPERATIONS:
        those = [s for s in seen if s.operation == operation and s.segment and edges[s.segment - 1] >= from_ms]
        good, bad = sum(slot.good for slot in those), sum(slot.bad for slot in those)
        examined += good + bad
        if good + bad and good / (good + bad) < floor:
            why = "below the scenario's availability_floor"
            unexplained = sum(slot.bad for slot in those if not stalls.explain(slot))
            stalled = good / (good + unexplained) >= floor if good else False
            short.append(Shortfall(operation, None, from_ms, end_ms, good, bad, floor, why, stalled))
    return examined, short


def _measured(
    world: World, seen: Sequence[Slot], still: Sequence[Stretch], edges: Sequence[float]
) -> Mapping[str, Any]:
    """Ratios of the whole run and of its quiet times, and per bucket [ended, failed] of each operation."""
    width_ms = bucket_ms(world)
    series: dict[str, list[list[int]]] = {}
    whole: dict[str, float] = {}
    quiet_good = quiet_bad = 0
    for operation in OPERATIONS:
        those = [slot for slot in seen if slot.operation == operation]
        if not those:
            continue
        counts = [[0, 0] for _ in range(max(slot.bucket for slot in those) + 1)]
        for slot in those:
            counts[slot.bucket][0] += slot.good + slot.bad
            counts[slot.bucket][1] += slot.bad
        series[operation] = counts
        whole[operation] = _ratio(sum(slot.good for slot in those), sum(slot.bad for slot in those))
        within = [slot for slot in those if any(_whole(slot, edges, stretch) for stretch in still)]
        quiet_good += sum(slot.good for slot in within)
        quiet_bad += sum(slot.bad for slot in within)
    ratio = _ratio(quiet_good, quiet_bad) if quiet_good + quiet_bad else None
    return {
        **{operation: ratio for operation, ratio in whole.items()},
        "quiet": ratio,
        "quiet_operations": quiet_good + quiet_bad,
        "quiet_stretches": [[rounded(start_ms), rounded(end_ms)] for start_ms, end_ms in still],
        "bucket_ms": width_ms,
        "series": series,
    }


def _ratio(good: int, bad: int) -> float:
    """To six places; 1 only when nothing failed."""
    if not bad:
        return 1.0
    return min(round(good / (good + bad), 6), 0.999999)


def _verdict(
    history: DataFrame,
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
    lags = measure(history, world, asked)
    least_ms = min(timeout_ms, world.timers.A_ms)
    wrong: list[Shortfall] = []
    late: list[Shortfall] = []
    for index, fall in enumerate(short):
        # A loop that is this late can make a call of T time out that nothing else disturbed.
        explained = fall.stalled or index not in lags or lags[index] * _HOPS >= least_ms
        (late if explained else wrong).append(fall)
    validity, why, violations = Validity.VALID, "", sum(fall.bad for fall in wrong)
    if wrong:
        validity = Validity.INVALID
        why = f"{violations} of {examined} operations failed where fewer may: {wrong[0].why}"
    elif late:
        lag_ms = max(lags.values(), default=None)
        said = "nobody measured how late timers fired" if lag_ms is None else f"timers fired {lag_ms:.0f} ms late"
        said = "the machine or its proxies stood still then" if any(fall.stalled for fall in late) else said
        validity, why = (
            Validity.UNKNOWN,
            f"{sum(fall.bad for fall in late)} of {examined} operations failed, but {said}",
        )
    return Verdict(
        name=NAME,
        verdict=validity,
        examined=examined,
        violations=violations,
        measured=measured,
        allowed=allowed,
        examples=tuple(_example(fall) for fall in (wrong or late)[:EXAMPLES_MAX]),
        why=why,
    )


def _example(fall: Shortfall) -> dict[str, Any]:
    shown = {
        "operation": fall.operation,
        "client": fall.client,
        "at_ms": rounded(fall.start_ms),
        "to_ms": rounded(fall.end_ms),
        "succeeded": fall.good,
        "failed": fall.bad,
        "floor": round(fall.floor, 4),
        "why": fall.why,
    }
    return {name: value for name, value in shown.items() if value is not None}
