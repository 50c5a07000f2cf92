"""How long each client went without a success after each fault and each heal, against what RocketMQ's timers allow.

    fault, or heal ──── first good operation that began after it ──┬─ ok
                                                        bound ─────┘

The bounds are oracle/recovery.py's, asked where one fault at a time met the client. What ends in another fault before
its bound is not judged, nor is a client that is itself stopped or paused. A look-up is good when a NameServer answers
it, code 17 (no route) too: that does not say that the client has a route. The percentiles are over all that recovered,
judged or not.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...oracle.quiet import alone_until, started_again_ms
from ...oracle.reach import Moment, moments, undisturbed
from ...oracle.recovery import LOOK_UP, bound
from ...oracle.windows import Window
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Reads, Section
from ..findings import finding, rounded, verdict_of
from ..plain.part import Gathering
from ..plain.slots import SLOTS, slots_of
from ..record.slots import Slot, Slots, of_clients
from ..tolerance import Tolerance, tolerance

NAME = "recovery_time"
_SHOWN = 60
_NAMES = {"send": "send", "pull": "pull", LOOK_UP: "look-up"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """One client's operation after one moment. `after_ms` None: no success before the run, or its work, ended."""

    id: int
    client: str
    operation: str
    moment: Moment
    bound: Window
    until_ms: float
    """The next fault or heal, or the last sign of work."""
    after_ms: float | None

    @property
    def due_ms(self) -> float:
        return self.moment.at_ms + self.bound.latest_ms

    @property
    def judged(self) -> bool:
        if math.isinf(self.bound.latest_ms):
            return False
        return self.due_ms <= self.until_ms or (self.after_ms is not None and self.after_ms <= self.bound.latest_ms)

    @property
    def over_ms(self) -> float:
        """How far past its bound it was still without success."""
        end_ms = self.until_ms if self.after_ms is None else self.moment.at_ms + self.after_ms
        return max(0.0, end_ms - self.due_ms)


def gather(gathering: Gathering, world: World) -> Slots:
    """The slots that availability is judged by too."""
    return slots_of(gathering, world)


def judge(seen: Slots, world: World) -> Verdict:
    """Examined: (client, operation, fault or heal) with a bound. Violations: those without success until past it."""
    found_moments = moments(world)
    if not found_moments:
        return Verdict.nothing_examined(NAME, "there was no fault, so there is nothing to recover from")
    found = recoveries(world, found_moments, of_clients(seen.slots, world), seen.edges)
    judged = [recovery for recovery in found if recovery.judged]
    servers = [node.name for node in world.of_kind("name_server", "broker")]
    late = (((one.client, *servers), one.moment.at_ms, min(one.due_ms, one.until_ms)) for one in judged)
    lags = zip(judged, seen.lateness.largest_of_each(world, late), strict=True)
    findings = [_finding(one, tolerance(world.timers, lag_ms, one.bound.timers)) for one, lag_ms in lags]
    nothing = "no client had the time that its bound allows after any fault or heal"
    noun = "recoveries were later than allowed"
    return verdict_of(NAME, findings, measured=_measured(found), nothing=nothing, noun=noun)


CHECK = Check(
    name=NAME,
    says="after each fault, and after its end, each client's next send, pull and look-up succeeds within its limit",
    group=Group.SERVICE,
    section=Section.OPERATIONS,
    is_of_the_whole=True,
    despite_stalls=True,
    needs=(Needs.MESSAGES,),
    reads=Reads.OPERATIONS,
    gather=gather,
    readings=(SLOTS,),
    judge=judge,
    outside=True,
    tells=lambda measured: _told(measured),
)


def _told(measured: Mapping[str, Any]) -> str:
    """ "16 recoveries; the slowest relative to its limit took 3.2 s; p50 and p99 of a send 0.2 and 3.2 s" """
    nearest_ms, never = measured.get("max_ms"), measured.get("never")
    said = [f"{measured.get('recoveries', 0):,} recoveries; the slowest relative to its limit "]
    said[0] += "never came" if nearest_ms is None else f"took {nearest_ms / 1000:.1f} s{' or more' if never else ''}"
    said += [f"{never} never came"] if never else []
    spreads = [
        f"of a {operation} {spread['p50_ms'] / 1000:.1f} and {spread['p99_ms'] / 1000:.1f} s"
        for operation, spread in (measured.get("by_operation") or {}).items()
    ]
    said += [f"p50 and p99 {', '.join(spreads)}"] if spreads else []
    return "; ".join(said)


def recoveries(
    world: World, found: Sequence[Moment], seen: Sequence[Slot], edges: Sequence[float] | None = None
) -> list[Recovery]:
    """One for every client, operation that it did at all, and moment.

    `edges` are those of the slots, every moment among them; None: the moments and no others.
    """
    edges = [moment.at_ms for moment in found] if edges is None else edges
    first: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    works_until: dict[str, float] = defaultdict(float)
    for slot in seen:
        works_until[slot.operation] = max(works_until[slot.operation], slot.last_ms)
        segments = first[slot.node, slot.operation]
        if slot.first_good_ms is not None:
            segments[slot.segment] = min(segments.get(slot.segment, math.inf), slot.first_good_ms)
    recoveries_: list[Recovery] = []
    for (client, operation), segments in sorted(first.items()):
        for index, moment in enumerate(found):
            after = bisect_right(edges, moment.at_ms)  # as many edges have passed for what begins from here on
            success_ms = min((at_ms for segment, at_ms in segments.items() if segment >= after), default=math.inf)
            after_ms = None if math.isinf(success_ms) else max(0.0, success_ms - moment.at_ms)
            next_ms = min((m.at_ms for m in found[index + 1 :] if m.at_ms > moment.at_ms), default=math.inf)
            until_ms = min(next_ms, works_until[operation], world.end_ms, alone_until(world, client, moment.at_ms))
            if not undisturbed(world, client, moment.at_ms, max(until_ms, moment.at_ms)):
                continue
            since_ms = started_again_ms(world, client, moment.at_ms)
            # its first good one says that the process has a route
            routed = any(since_ms <= at_ms <= moment.at_ms for at_ms in segments.values())
            recoveries_.append(
                Recovery(
                    id=len(recoveries_),
                    client=client,
                    operation=operation,
                    moment=moment,
                    bound=bound(world, client, operation, moment, routed=routed),
                    until_ms=until_ms,
                    after_ms=after_ms,
                )
            )
    return recoveries_


def _finding(recovery: Recovery, tolerance_: Tolerance) -> Finding:
    success_ms = recovery.until_ms if recovery.after_ms is None else recovery.moment.at_ms + recovery.after_ms
    over_ms = recovery.over_ms
    return finding(
        recovery.client,
        f"first good {_NAMES[recovery.operation]}",
        (recovery.due_ms, max(recovery.due_ms, recovery.until_ms)),
        recovery.bound,
        out=(recovery.due_ms, success_ms) if over_ms else None,
        tolerance=tolerance_,
        measured_ms=success_ms - recovery.moment.at_ms if over_ms else recovery.after_ms,
        over_ms=over_ms,
        after=f"{recovery.moment.fault_id} {recovery.moment.phase}",
    )


def _row(recovery: Recovery) -> dict[str, Any]:
    return {
        "client": recovery.client,
        "operation": _NAMES[recovery.operation],
        "fault_id": recovery.moment.fault_id,
        "phase": recovery.moment.phase,
        "after_ms": rounded(recovery.after_ms),
        "bound_ms": _bound_ms(recovery),
    }


def _bound_ms(recovery: Recovery) -> float | None:
    """None: nothing bounds it, or another fault came before its bound, so that it was not held against it."""
    return rounded(recovery.bound.latest_ms) if recovery.judged else None


def percentile(values: Sequence[float], share: float) -> float | None:
    """The nearest-rank percentile: the smallest value that at least `share` of all do not exceed; None without any."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _measured(found: Sequence[Recovery]) -> Mapping[str, Any]:
    """p50, p99 and the longest of each operation, with the longest one's own bound; and the slowest ones.

    What stands beside the bound that decided, `max_ms`, is that finding's (findings.py).
    """
    recovered = [recovery for recovery in found if recovery.after_ms is not None]
    if not recovered:
        return {"recoveries": 0}

    def spread(operation: str) -> dict[str, Any]:
        those = [recovery for recovery in recovered if recovery.operation == operation]
        values, longest = [recovery.after_ms or 0.0 for recovery in those], max(those, key=_after_ms)
        return {
            "recoveries": len(values),
            "p50_ms": rounded(percentile(values, 0.5)),
            "p99_ms": rounded(percentile(values, 0.99)),
            "max_ms": rounded(longest.after_ms),
            "bound_ms": _bound_ms(longest),
        }

    operations = sorted({recovery.operation for recovery in recovered})
    return {
        "recoveries": len(recovered),
        "never": sum(recovery.judged and recovery.after_ms is None for recovery in found),
        "by_operation": {_NAMES[operation]: spread(operation) for operation in operations},
        "slowest": [_row(recovery) for recovery in sorted(recovered, key=_after_ms, reverse=True)[:_SHOWN]],
    }


def _after_ms(recovery: Recovery) -> float:
    return recovery.after_ms or 0.0
