"""What the oracle demanded and allowed, as stretches below a lane's bar.

    ── must ──┤▒▒ may (the window) ▒▒├── must not ──┤▒▒ may ▒▒├── must ──

The rules come from the same sources as the checks' own. What was over is drawn of the checks' findings (found.py).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

from ...oracle.windows import Window
from ...oracle.world import World
from .intervals import Interval, Kind, Rule, intervals
from .stretches import Stretch, seconds, span

_SAYS = {
    Kind.ROUTE: {Rule.MUST: "must hold", Rule.MAY: "may hold or miss", Rule.MUST_NOT: "must not hold"},
    Kind.USE: {Rule.MUST: "must use", Rule.MAY: "may use", Rule.MUST_NOT: "must not use"},
}


def rules(world: World) -> Mapping[tuple[str, str, Kind], list[Stretch]]:
    """(subject, object, kind) → stretches of kind must, must_not and may."""
    found: dict[tuple[str, str, Kind], list[Stretch]] = defaultdict(list)
    for interval in intervals(world):
        found[interval.subject, interval.object, interval.kind].append(_stretch(interval))
    return found


def _stretch(i: Interval) -> Stretch:
    why = "; ".join(filter(None, (i.formula, i.row)))
    after = ""
    if i.at_ms is not None and i.rule is not Rule.MUST and i.fault_id:
        after = f", {seconds(i.from_ms - i.at_ms)} to {seconds(i.to_ms - i.at_ms)} after {i.fault_id}"
    text = f"{i.subject} {_SAYS[i.kind][i.rule]} {i.object} {span(i.from_ms, i.to_ms)}{after}"
    return Stretch(start_ms=i.from_ms, end_ms=i.to_ms, kind=str(i.rule), text=f"{text}. Window: {why}" if why else text)


def bound(window: Window, fault_id: str) -> str:
    """`130.0 s after kill-1 (E + S; process crash …)`."""
    after = f" after {fault_id}" if fault_id else ""
    at_most = seconds(window.latest_ms) if math.isfinite(window.latest_ms) else "without bound"
    return f"{at_most}{after} ({window.formula}; {window.row})"
