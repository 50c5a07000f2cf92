"""Where in the plots a verdict or one of its examples is: a stretch of time, a lane, and the link that leads there.

An example says whose doing it was, about what, from when and to when; found.py says which lane shows that. One without
any time leads to the faults of the run, because something must be seen to be believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from ...checks.check import Section
from ...oracle.world import World
from ...verdict import Example, Finding, Validity, Verdict
from ..sentences import example_sentence
from .found import lane_of, section_of

OF_CHECKS = "found"
"""The section of the lanes that are the checks' own."""
_PLOT_OF: Mapping[Section, str] = {
    Section.ROUTES: "routes",
    Section.CLIENTS: "clients",
    Section.MESSAGES: "sends",
    Section.OPERATIONS: "availability",
    Section.RUN: "faults",
}
"""Where a verdict leads that has nothing to show: the plot of its section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A stretch of time in one section of the page, and the lane in it where the example names one."""

    check: str
    from_ms: float
    to_ms: float
    section: str
    lane: str | None
    text: str
    bad: bool
    log: tuple[str, ...] = ()
    """What the NameServer that it names wrote then."""

    def link(self, prefix: str = "") -> str:
        """The fragment of the page's address: `#at=207.795,232.693&in=routes&lane=ns-0/broker-a`."""
        lane = f"&lane={quote(self.lane)}" if self.lane else ""
        return f"#at={self.from_ms / 1000:.3f},{self.to_ms / 1000:.3f}&in={prefix}{self.section}{lane}"


def place_of_example(v: Verdict, e: Example, world: World, lanes: Mapping[str, str]) -> Place:
    """The example's own place; the run's faults where it names no time. `lanes`: key → the section it is in."""
    lane = lane_of(v.name, e.who, e.what, lanes.keys()) if e.from_ms is not None else None
    from_ms, to_ms = _faults(world)
    if e.from_ms is not None:
        from_ms = min(e.from_ms, world.end_ms)
        to_ms = min(max(e.to_ms if e.to_ms is not None else from_ms, from_ms), world.end_ms)
    return Place(
        check=v.name,
        from_ms=from_ms,
        to_ms=to_ms,
        section=lanes.get(lane, OF_CHECKS) if lane else _PLOT_OF[section_of(v.name)],
        lane=lane,
        text=example_sentence(e),
        bad=v.verdict is Validity.INVALID,
    )


def place_of_verdict(v: Verdict, world: World, lanes: Mapping[str, str]) -> Place:
    """Its first example, else what it found nearest to its bound, else the faults."""
    for example in v.examples:
        if example.from_ms is not None:
            return place_of_example(v, example, world, lanes)
    from_ms, to_ms = _faults(world)
    section, lane = _PLOT_OF[section_of(v.name)], None
    nearest = max((f for f in v.findings if f.examined), key=lambda f: f.badness, default=None)
    if nearest is not None and nearest.from_ms < nearest.to_ms:
        lane = lane_of(v.name, nearest.subject, nearest.object, lanes.keys())
        if lane in lanes:
            section, (from_ms, to_ms) = lanes[lane], _of_finding(nearest, world)
        else:
            lane = None
    return Place(check=v.name, from_ms=from_ms, to_ms=to_ms, section=section, lane=lane, text="", bad=False)


def _of_finding(f: Finding, world: World) -> tuple[float, float]:
    """From the change that it follows until all was as it had to be; the stretch of its rule where nothing changed."""
    if f.measured_ms is not None and f.bound_ms is not None and not f.wrong and not f.late:
        change_ms = f.from_ms - f.bound_ms
        return change_ms, min(change_ms + f.measured_ms, world.end_ms)
    return f.from_ms, min(f.to_ms, world.end_ms)


def _faults(world: World) -> tuple[float, float]:
    start_ms = min((life.start_ms for life in world.lives), default=0.0)
    if not world.faults:
        return start_ms, world.end_ms
    first_ms = min(f.start_ms for f in world.faults)
    return first_ms, min(max(f.end_ms for f in world.faults), world.end_ms)
