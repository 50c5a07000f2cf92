"""The share of the clients' operations that succeeded, over time; in quiet times all must succeed.

    success ratio  1 ────────────┐            ┌──────────── quiet: 1, less what the machine's lateness explains
                                 └── fault ───┘             fault: what the scenario asks (`availability_floor`)
                   buckets of equal length, at most 200

In quiet (no fault in force, and R + C + P + J + A + T since the last) every operation must succeed, the prober's
look-ups at NameServers that no client sits at among them; and each try of a send, though a retry at another broker may
save it: a broker that is routed to accepts what it is sent. A scenario may set one floor for everything after its first
fault. What each producer must do while a fault lasts is living_are_used's, and how soon it succeeds again
recovery_time's.

Operations that never ended are not counted. Failures that timers or proxies as late as a third of T explain make it
UNKNOWN; that other operations were slow as well explains nothing, for it may be the same node's doing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...oracle.intervals import Stretch, merged
from ...oracle.lists import may_have
from ...oracle.quiet import dead, settle_ms
from ...oracle.reach import moments
from ...oracle.recorded import stall_ms
from ...oracle.recovery import LOOK_UP
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Reads, Section
from ..findings import Rule, finding, rounded, verdict_by_counts
from ..plain.part import Gathering
from ..plain.slots import SLOTS, slots_of
from ..record.lateness import LagWindow
from ..record.slots import OPERATIONS, TRY
from ..record.tallies import Tallies, Tally, tallies

NAME = "availability"
_HOPS = 3
"""Event loops that must run one after the other for an answer: client, server, client."""
_ROW = "quiet from R + C + P + J + A + T after a heal"


class Shortfall(NamedTuple):
    """Operations that failed where fewer, or none, may."""

    operation: str
    client: str
    start_ms: float
    end_ms: float
    tally: Tally
    why: str
    floor: float = 1.0


def gather(gathering: Gathering, world: World) -> Tallies:
    """From the slots that recovery_time is judged by too."""
    return tallies(slots_of(gathering, world), world, gathering.control)


def judge(tallied: Tallies, world: World) -> Verdict:
    """Examined: operations where a floor holds. Violations: failures below it."""
    floor = world.run.get("availability_floor")
    in_quiet = [*tallied.tries.values(), *tallied.quiet.values()]
    of_scenario = [*tallied.faulted.values()] if floor is not None else []
    examined = sum(tally.ended for tally in (*in_quiet, *of_scenario))
    allowed = {
        "bound_ms": None,
        "formula": "quiet: all succeed" + (f"; from the first fault: {floor}" if floor is not None else ""),
        "tolerance_ms": 0,
        "floor": floor,
        "settle_ms": rounded(settle_ms(world.but_stalls())),
        "row": _ROW,
    }
    measured = tallied.measured(world)
    if not examined:
        why = "no operation ended in a quiet time, or where a floor holds"
        return Verdict.nothing_examined(NAME, why, measured=measured, allowed=allowed)
    short = [*_refused(tallied), *_in_quiet(tallied, world), *_below(tallied, world, floor)]
    late_ms = _lateness(short, tallied, world)
    wrong = [fall for index, fall in enumerate(short) if not _is_explained(fall, late_ms.get(index), world)]
    late = [fall for fall in short if fall not in wrong]
    failed, unsure = (sum(fall.tally.bad for fall in falls) for falls in (wrong, late))
    lag_ms = max(late_ms.values(), default=None)
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
        findings=[_finding(fall, tallied, is_wrong=falls is wrong) for falls in (wrong, late) for fall in falls],
    )


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


def _failed(operation: str, client: str, tally: Tally, why: str) -> Shortfall:
    """None of these may."""
    return Shortfall(operation, client, tally.first_bad_ms or 0.0, tally.last_bad_ms or 0.0, tally, why)


def _refused(tallied: Tallies) -> Iterator[Shortfall]:
    """Every try that a broker refused, or did not answer, in a quiet time."""
    for (_, broker), tally in sorted(tallied.tries.items()):
        if tally.bad:
            why = (
                f"{broker} refused, or did not answer, {tally.bad:,} of {tally.ended:,} tries of sends in a quiet time"
            )
            yield _failed(TRY, broker, tally, why)


def _in_quiet(tallied: Tallies, world: World) -> Iterator[Shortfall]:
    """Every operation that failed there, but those that a client's own list of NameServers may make fail."""
    in_order = sorted(tallied.quiet.items(), key=lambda one: (one[0][0], OPERATIONS.index(one[0][1]), one[0][2]))
    for (from_ms, operation, client), tally in in_order:
        by_list = _lets_fail(world, from_ms, operation, client) or (
            operation == "send" and _asks_first(tallied, world, client, from_ms, tally)
        )
        if tally.bad and not by_list:
            yield _failed(operation, client, tally, "failed in a quiet time")


def _below(tallied: Tallies, world: World, floor: float | None) -> Iterator[Shortfall]:
    """Each kind of operation from the first fault to the end, against the scenario's floor."""
    for operation in (name for name in OPERATIONS if name in tallied.faulted):
        tally = tallied.faulted[operation]
        if floor is not None and tally.good / tally.ended < floor:
            why = "below the scenario's availability_floor"
            yield Shortfall(operation, "", moments(world)[0].at_ms, world.end_ms, tally, why, floor)


# -- what a list of NameServers explains


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


def _asks_first(tallied: Tallies, world: World, client: str, from_ms: float, tally: Tally) -> bool:
    """Whether these sends failed before the producer had a route, one at each dead entry of its list; all, where every
    entry is one."""
    until_ms = tally.last_bad_ms
    if until_ms is None:
        return False
    gone = (dead(world, node.name) for node in world.listed(client))
    if all(any(fault.start_ms <= from_ms and fault.end_ms >= until_ms for fault in faults) for faults in gone):
        return not tally.good
    if tally.bad > _dead_entries(world, client, from_ms, until_ms) * len(world.lives_of(client)):
        return False
    return len(world.lives_of(client)) > 1 or until_ms <= tallied.first_sent_ms.get(client, math.inf)


# -- what the machine's lateness explains


def _lateness(short: Sequence[Shortfall], tallied: Tallies, world: World) -> dict[int, float]:
    """By a shortfall's place: how late timers fired meanwhile."""
    nodes = [node.name for node in world.of_kind("name_server", "broker", "producer", "consumer")]
    asked = [
        LagWindow(index, node, fall.start_ms - world.timers.T_ms, fall.end_ms)
        for index, fall in enumerate(short)
        for node in nodes
    ]
    return tallied.lateness.measured(world, asked)


def _is_explained(fall: Shortfall, late_ms: float | None, world: World) -> bool:
    """Whether loops so late can make these calls time out that nothing else disturbed; None: nobody measured it."""
    if late_ms is None:
        return True
    least_ms = min(world.timers.T_ms, world.timers.A_ms)
    return late_ms * _HOPS >= least_ms and fall.tally.bad <= _most_late(world, fall, late_ms)


def _most_late(world: World, fall: Shortfall, lag_ms: float) -> float:
    """How many of these operations may have failed because processes stood still: one in each second of it, of a
    producer's tries one in each T, and those under way at both ends. inf: nothing stood still for long, so that many
    short delays are what there was."""
    timeout_ms = world.timers.T_ms
    from_ms = fall.start_ms - timeout_ms
    stalls = (one for one in world.faults if one.stood_still and one.overlaps(from_ms, fall.end_ms))
    met = merged(Stretch(one.start_ms, one.end_ms) for one in stalls)
    if not fall.client or lag_ms < stall_ms(world.timers):
        return math.inf
    each, every_ms = (len(world.of_kind("producer")), timeout_ms) if fall.operation == TRY else (1, 1000.0)
    return each * (2 + sum(2 + math.ceil((end_ms - begin_ms) / every_ms) for begin_ms, end_ms in met))


def _finding(fall: Shortfall, tallied: Tallies, *, is_wrong: bool) -> Finding:
    silent: dict[str, str] = {}
    if fall.operation == LOOK_UP and len(tallied.silent) == 1:
        holder = min(tallied.silent)
        silent = {"holder": holder, "because": f"{holder} did not answer"}
    return finding(
        fall.client,
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
            **silent,
        },
    )
