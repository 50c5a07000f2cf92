"""What the oracle demanded and allowed, as stretches below a lane's bar; and where the record was over.

    ── must ──┤▒▒ may (the window) ▒▒├── must not ──┤▒▒ may ▒▒├── must ──
                                     └ over: the bar says otherwise for longer than the tolerance

The rules are those of checkers/oracle.py, which come from the same sources as the checks' own; the tolerance is made of
the same measured lateness of timers. This module draws the record; the verdicts come from the checks alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from ...checkers.lateness import RESUME_GRACE_MS
from ...checkers.tolerance import Tolerance
from ...oracle.windows import Window
from ...oracle.world import World
from .codes import Array
from .data import Lags
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


class Lateness:
    """How late the timers of a node fired at most in a stretch, as checkers/lag.py measures it, without Spark."""

    def __init__(self, lags: Lags, world: World) -> None:
        self._of: dict[str, tuple[Array, Array, Array]] = {}
        for code in np.unique(lags.node).tolist():
            node, mine = lags.nodes[code], lags.node == code
            until = lags.time_ms[mine]
            since, lag = until - np.nan_to_num(lags.duration_ms[mine]), lags.lag_ms[mine]
            keep = ~np.isnan(lag)
            for pause in world.pauses():
                if pause.source == node:
                    keep &= ~((since < pause.end_ms + RESUME_GRACE_MS) & (until > pause.start_ms))
            self._of[node] = since[keep], until[keep], lag[keep]

    def of(self, nodes: Sequence[str], from_ms: float, to_ms: float) -> float | None:
        """The largest lateness, None where nobody measured."""
        found = []
        for node in nodes:
            if node in self._of:
                since, until, lag = self._of[node]
                here = lag[(since <= to_ms) & (until >= from_ms)]
                if len(here):
                    found.append(float(here.max()))
        return max(found, default=None)


def wrong(start_ms: float, end_ms: float, over_ms: float, allowed: Tolerance, text: str, count: int = 1) -> Stretch:
    """`over`, or `late` as long as the machine's lateness may explain it."""
    if over_ms > allowed.valid_up_to_ms:
        return Stretch(
            start_ms=start_ms, end_ms=end_ms, kind="over", text=f"OVER by {seconds(over_ms)}: {text}", count=count
        )
    within = f"{allowed.valid_up_to_ms:.0f} ms" if math.isfinite(allowed.valid_up_to_ms) else "any"
    says = f"late by {over_ms:.0f} ms, within the tolerance of {within}: {text}"
    return Stretch(start_ms=start_ms, end_ms=end_ms, kind="late", text=says, count=count)
