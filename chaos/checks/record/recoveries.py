"""How long each client's operations went without a success after each fault and each end of a fault, with their bounds.

The bounds are oracle/recovery.py's. A look-up is good when a NameServer answers it, code 17 (no route) too: that does
not say that the client has a route.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ...oracle.intervals import grouped
from ...oracle.quiet import alone_until, calm_but_stalls, started_again_ms
from ...oracle.reach import Moment, undisturbed, unrecorded
from ...oracle.recovery import LOOK_UP, bound
from ...oracle.windows import Window
from ...oracle.world import World
from ..findings import rounded
from .slots import Slot, Tally

NAMES = {"send": "send", "pull": "pull", LOOK_UP: "look-up"}
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Recovery:
    """One client's operation after one moment. `after_ms` None: no success before the run, or its work, ended."""

    client: str
    operation: str
    moment: Moment
    bound: Window
    until_ms: float
    """The next fault or heal, the last sign of work, or of what the client certainly recorded."""
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


def recoveries(
    world: World, found: Sequence[Moment], seen: Mapping[Slot, Tally], edges: Sequence[float]
) -> Iterator[Recovery]:
    """One for every client, operation that it did at all, and moment. `edges` are those of the slots, every moment
    among them."""
    works_until: dict[str, float] = defaultdict(float)
    for slot, tally in seen.items():
        works_until[slot.operation] = max(works_until[slot.operation], tally.last_ms or 0.0)
    of_others = {(node.name, "send") for node in world.under_test()}  # who send when they like
    of_client = grouped(((slot.node, slot.operation), (slot, tally)) for slot, tally in seen.items())
    for (client, operation), own in sorted(of_client.items()):
        good = [(slot.segment, tally.first_good_ms) for slot, tally in own if tally.first_good_ms is not None]
        begun = [(slot.segment, tally.first_began_ms) for slot, tally in own if tally.first_began_ms is not None]
        is_free = (client, operation) in of_others
        period_ms = _longest_gap_ms(own, edges, world) if is_free else None
        for index, moment in enumerate(found):
            after = bisect_right(edges, moment.at_ms)  # as many edges have passed for what begins from here on
            success_ms = _first_ms(good, after)
            after_ms = None if math.isinf(success_ms) else max(0.0, success_ms - moment.at_ms)
            next_ms = min((m.at_ms for m in found[index + 1 :] if m.at_ms > moment.at_ms), default=math.inf)
            gaps_ms = (gap.start_ms for gap in unrecorded(world, client) if gap.end_ms > moment.at_ms)
            until_ms = min(
                next_ms, *gaps_ms, works_until[operation], world.end_ms, alone_until(world, client, moment.at_ms)
            )
            if not undisturbed(world, client, moment.at_ms, max(until_ms, moment.at_ms)):
                continue
            since_ms = started_again_ms(world, client, moment.at_ms)
            # a good one says that the process has a route
            routed = any(since_ms <= at_ms <= moment.at_ms for _, at_ms in good)
            window = bound(world, client, operation, moment, routed=routed, period_ms=period_ms)
            if is_free:
                window = window.plus(_first_ms(begun, after) - moment.at_ms, "until it sends")
            yield Recovery(client, operation, moment, window, until_ms, after_ms)


def _first_ms(times: Iterable[tuple[int, float]], segment: int) -> float:
    """The first of these times, each with its segment, from this segment on; inf: there is none."""
    return min((at_ms for of, at_ms in times if of >= segment), default=math.inf)


def _longest_gap_ms(own: Iterable[tuple[Slot, Tally]], edges: Sequence[float], world: World) -> float:
    """How far apart a client's operations were at most while nothing disturbed it. inf: it did not do it twice."""
    longest_ms = 0.0
    for calm in calm_but_stalls(world):
        within = [
            (of.first_good_ms, of.last_ms)
            for slot, of in own
            if slot.segment > 0
            and edges[slot.segment - 1] >= calm.start_ms
            and slot.until < len(edges)
            and edges[slot.until] <= calm.end_ms
            and of.first_good_ms is not None
            and of.last_ms is not None
        ]
        times = [at_ms for span in sorted(within) for at_ms in span]
        longest_ms = max([longest_ms, *(after - before for before, after in pairwise(times))])
    return longest_ms or math.inf


def _row(recovery: Recovery) -> dict[str, Any]:
    return {
        "client": recovery.client,
        "operation": NAMES[recovery.operation],
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


def measured(found: Sequence[Recovery]) -> Mapping[str, Any]:
    """p50, p99 and the longest of each operation, with the longest one's own bound; and the slowest ones. What stands
    beside the bound that decided, `max_ms`, is that finding's (findings.py)."""
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
        "without_limit": sum(not recovery.judged for recovery in recovered),
        "never": sum(recovery.judged and recovery.after_ms is None for recovery in found),
        "by_operation": {NAMES[operation]: spread(operation) for operation in operations},
        "slowest": [_row(recovery) for recovery in sorted(recovered, key=_after_ms, reverse=True)[:_SHOWN]],
    }


def _after_ms(recovery: Recovery) -> float:
    return recovery.after_ms or 0.0
