"""How long each client went without a success after each fault and each heal, against what RocketMQ's timers allow.

    fault, or heal ──── first good operation that began after it ──┬─ ok
                                                        bound ─────┘

The bounds are oracle/recovery.py's, asked where one fault at a time met the client. What ends in another fault before
its bound is not judged, nor is a client that is itself stopped or paused. The percentiles are over all that recovered,
judged or not.
"""

from collections.abc import Mapping
from typing import Any

from ...oracle.reach import moments
from ...oracle.recorded import stall_ms
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import finding, verdict_of, wrong_or_late
from ..plain.part import Gathering
from ..plain.slots import SLOTS
from ..record.lateness import Lateness
from ..record.recoveries import NAMES, Recovery, measured, recoveries
from ..record.slots import edges, of_clients


@check(
    says="after a fault starts or ends, each client's next send, pull and route look-up succeeds within a time limit",
    group=Group.SERVICE,
    section=Section.OPERATIONS,
    is_of_the_whole=True,
    despite_stalls=True,
    needs=(Needs.MESSAGES,),
    readings=(SLOTS,),
    outside=True,
    tells=lambda measured: _told(measured),
)
def judge(history: Gathering, world: World) -> Verdict:
    """Examined: (client, operation, fault or heal) with a bound. Violations: those without success until past it."""
    found_moments = moments(world)
    if not found_moments:
        return Verdict.nothing_examined("there was no fault, so there is nothing to recover from")
    of = of_clients(history.counted(SLOTS, world).of, world)
    found = [*recoveries(world, found_moments, of, edges(world))]
    judged = [recovery for recovery in found if recovery.judged]
    findings = [_finding(one, history.control.lateness, world) for one in judged]
    nothing = "after no begin or end of a fault was there time enough to judge a client"
    noun = "recoveries took longer than allowed"
    return verdict_of(findings, measured=measured(found), nothing=nothing, noun=noun)


def _told(measured: Mapping[str, Any]) -> str:
    """ "16 recoveries; the slowest relative to its limit took 3.2 s; p50 and p99 of a send 0.2 and 3.2 s" """
    nearest_ms, never = measured.get("max_ms"), measured.get("never")
    said = [f"{measured.get('recoveries', 0):,} recoveries; the slowest relative to its limit "]
    said[0] += "never came" if nearest_ms is None else f"took {nearest_ms / 1000:.1f} s{' or more' if never else ''}"
    said += [f"{never} never came"] if never else []
    free = measured.get("without_limit")
    said += [f"{free:,} of them without a limit"] if free else []
    spreads = [
        f"of a {operation} {spread['p50_ms'] / 1000:.1f} and {spread['p99_ms'] / 1000:.1f} s"
        for operation, spread in (measured.get("by_operation") or {}).items()
    ]
    said += [f"p50 and p99 {', '.join(spreads)}"] if spreads else []
    return "; ".join(said)


def _missed_ms(recovery: Recovery, until_ms: float, lateness: Lateness, world: World) -> float:
    """How much later it may be because polls failed: P for each time that the client or a NameServer stood still
    until then."""
    nodes = recovery.client, *(server.name for server in world.of_kind("name_server"))
    stood = [one for node in nodes for one in lateness.stood_still(node, stall_ms(world.timers))]
    return world.timers.P_ms * sum(one.start_ms < until_ms and one.end_ms > recovery.moment.at_ms for one in stood)


def _finding(recovery: Recovery, lateness: Lateness, world: World) -> Finding:
    nodes = recovery.client, *(node.name for node in world.of_kind("name_server", "broker"))
    span = recovery.moment.at_ms, min(recovery.due_ms, recovery.until_ms)
    allowed = lateness.tolerance(world, nodes, *span, recovery.bound.timers)
    success_ms = recovery.until_ms if recovery.after_ms is None else recovery.moment.at_ms + recovery.after_ms
    over_ms = recovery.over_ms
    may_be_ms = allowed.unknown_up_to_ms + _missed_ms(recovery, success_ms, lateness, world)
    is_unsure = allowed.unknown_up_to_ms < over_ms <= may_be_ms
    return finding(
        recovery.client,
        f"first good {NAMES[recovery.operation]}",
        (recovery.due_ms, max(recovery.due_ms, recovery.until_ms)),
        recovery.bound,
        out=(recovery.due_ms, success_ms) if over_ms else None,
        tolerance=allowed,
        measured_ms=success_ms - recovery.moment.at_ms if over_ms else recovery.after_ms,
        over_ms=over_ms,
        after=f"{recovery.moment.fault_id} {recovery.moment.phase}",
        **(wrong_or_late(False) if is_unsure else {}),
    )
