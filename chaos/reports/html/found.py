"""Finds where report.html shows each violation: on the lane (plot row) of the guilty node, else on the check's own
lane.

    findings, examples ─► WrongStretch ─┬─► routes, clients: red on the lane `who/what` or `who`
                                        └─► a lane `check/who`, for what has none there

A stretch of time is `over` if the check counted it as a violation. A stretch is `late` if the check tolerated the
delay, or blamed a slow machine.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ....remoting.top_addressing import TASK as FETCH
from ...checks import CHECKS
from ...checks.check import Group, Section
from ...oracle.time_outs import POLL
from ...oracle.world import World
from ...verdict import Example, Finding, Validity, Verdict, seconds
from ..sentences import exact_s, example_sentence
from .stretches import Lane, LaneStretch, thin

LANE_MAX = 400
"""Most stretches of one lane."""
SEEN_FROM_MS = 50.0
"""Shortest tolerated delay that is drawn: on the page a shorter stretch has no width."""
ON_LANES = (Section.ROUTES, Section.CLIENTS)
"""Sections whose nodes have lanes; other checks have lanes of their own."""
_OF_NAME_SERVERS = ("routes_converge", "client_routes_are_true", POLL, FETCH, "look-up")
"""Checks and tasks whose violations are about NameServers; a node's lane without a broker shows them, as it shows those
of the checks of _CHOICE."""
_CHOICE = [name for name, check in CHECKS.items() if check.group is Group.NAME_SERVERS]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongStretch:
    """A time in which a node exceeded a check's limit."""

    check: str
    about: Example
    stretch: LaneStretch


def section_of(check: str) -> Section:
    return CHECKS[check].section if check in CHECKS else Section.RUN


def wrongs(verdicts: Iterable[Verdict], world: World) -> list[WrongStretch]:
    """Return every time in which a node exceeded a check's limit, in order. A check without findings gives the times of
    its examples."""
    return sorted((wrong for v in verdicts for wrong in _of_verdict(v, world)), key=lambda w: w.stretch.start_ms)


def _of_verdict(v: Verdict, world: World) -> Iterator[WrongStretch]:
    seen = set()
    for f in v.findings:
        if f.wrong or f.late or (f.wrong_to_ms or 0.0) - (f.wrong_from_ms or 0.0) >= SEEN_FROM_MS:
            seen.add(_identity(f.example))
            yield _wrong(v.name, f.example, "over" if f.wrong else "late", world, _tolerated(f), f.wrong or f.late or 1)
    if v.verdict is Validity.VALID:
        return
    kind = "over" if v.verdict is Validity.INVALID else "late"
    for e in v.examples:
        if e.from_ms is not None and _identity(e) not in seen:
            yield _wrong(v.name, e, kind, world, "", 1)


def _identity(e: Example) -> tuple[str, str, str, float | None]:
    return e.who, e.what, e.topic, None if e.from_ms is None else round(e.from_ms, 1)


def _wrong(check: str, e: Example, kind: str, world: World, tail: str, count: int) -> WrongStretch:
    start_ms, end_ms = _times(e, world)
    text = f"{'OVER' if kind == 'over' else 'late'}: {check}: {example_sentence(e)}{tail}"
    stretch = LaneStretch(start_ms=start_ms, end_ms=end_ms, kind=kind, text=text, count=count)
    return WrongStretch(check=check, about=e, stretch=stretch)


def _times(e: Example, world: World) -> tuple[float, float]:
    from_ms = min(e.from_ms or 0.0, world.end_ms)
    return from_ms, min(max(from_ms if e.to_ms is None else e.to_ms, from_ms), world.end_ms)


def _tolerated(f: Finding) -> str:
    row = f" ({f.row})" if f.row else ""
    both = [f"{at_ms / 1000:.1f}" for at_ms in (f.earliest_ms, f.bound_ms) if at_ms is not None]
    ends = [exact] if (exact := exact_s(f.earliest_ms, f.bound_ms)) else both
    bound = f"; window {'not before ' if f.bound_ms is None else ''}{' to '.join(ends)} s" if ends else ""
    return f"{bound}{row}; tolerance {f.tolerance_ms:.0f} ms"


def accused(check: str, e: Example) -> str:
    return CHECKS[check].accused(e) if check in CHECKS else e.who


def lanes_of(check: str, e: Example, keys: Container[str]) -> list[str]:
    """Return the keys of the lanes that show the violation: the lane of the node and its peer, or of the node and each
    broker that the sentence names (`because`), if `keys` has the lane; else the check's own lane."""
    found: list[str] = []
    if section_of(check) in ON_LANES:
        named = [f"{e.who}/{name}" for name in str(e.more.get("because") or "").split(", ")]
        is_of_name_servers = not {check, e.what}.isdisjoint(_OF_NAME_SERVERS) or check in _CHOICE
        found = [key for key in (f"{e.who}/{e.what}", f"{e.what}/{e.who}") if key in keys][:1]
        found = found or [key for key in named if key in keys]
        found = found or [e.who] * (is_of_name_servers and e.who in keys)
    node = accused(check, e)
    return found or [f"{check}/{node}" if node else check]


def drawn_on(lanes: Sequence[Lane], found: Sequence[WrongStretch]) -> list[Lane]:
    """Draw violations on the nodes' lanes in `lanes`. Returns a check's own lane for each violation without a node's
    lane."""
    of: dict[str, Lane] = {lane.key: lane for lane in lanes}
    over: dict[str, list[LaneStretch]] = defaultdict(list)
    own: dict[str, list[WrongStretch]] = defaultdict(list)
    for wrong in found:
        for key in lanes_of(wrong.check, wrong.about, of):
            if key in of:
                over[key].append(wrong.stretch)
            else:
                own[key].append(wrong)
    for key, stretches in over.items():
        of[key].windows = [*of[key].windows, *thin(stretches, LANE_MAX)]
    return _own(own)


def _own(found: Mapping[str, Sequence[WrongStretch]]) -> list[Lane]:
    order = [*CHECKS]
    ranked = sorted(
        found, key=lambda key: (order.index(c) if (c := found[key][0].check) in CHECKS else len(order), key)
    )
    return [
        Lane(
            key=key,
            label=accused(found[key][0].check, found[key][0].about) or "the run",
            group=found[key][0].check,
            windows=thin([wrong.stretch for wrong in found[key]], LANE_MAX),
        )
        for key in ranked
    ]


# -- where in the plots a verdict or one of its examples is: a stretch of time, a lane, and the link that leads there
#
# An example says whose doing it was, about what, from when and to when; `lane_of` says which lane shows that. One
# without any time leads to the faults of the run, because something must be seen to be believed.

OF_CHECKS = "found"
"""Section of the checks' own lanes."""

_PLOT_OF: Mapping[Section, str] = {
    Section.ROUTES: "routes",
    Section.CLIENTS: "clients",
    Section.MESSAGES: "sends",
    Section.OPERATIONS: "sends",
    Section.RUN: "faults",
}
"""The plot for a verdict without anything to show: that of its section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the report shows an example: the time, the section of the page, and the lane."""

    check: str
    from_ms: float
    to_ms: float
    section: str
    lane: str | None
    text: str
    bad: bool
    log: tuple[str, ...] = ()
    """What its node logged then."""
    recorded: tuple[str, ...] = ()
    """Runs of the node's periodic task before, during and after it; of a wrong answer, what came and what was due."""
    logged_by: str = ""
    """That node; "" if none has a log. The page's template reads it."""

    @property
    def when(self) -> str:
        """Its begin, and its end if that is another moment: `6.6 s and 186.6 s`."""
        return " and ".join(dict.fromkeys((seconds(self.from_ms), seconds(self.to_ms))))

    def link(self) -> str:
        """Return the URL fragment that leads to this place on the page:
        `#at=207.795,232.693&in=routes&lane=ns-0/broker-a`."""
        lane = f"&lane={quote(self.lane)}" if self.lane else ""
        return f"#at={self.from_ms / 1000:.3f},{self.to_ms / 1000:.3f}&in={self.section}{lane}"


def place_of_example(v: Verdict, e: Example, world: World, lanes: Mapping[str, str]) -> Place:
    """Return where the report shows the example; an example without a time is shown at the time of the faults. `lanes`
    has each lane's section."""
    lane = lanes_of(v.name, e, lanes)[0] if e.from_ms is not None else None
    from_ms, to_ms = _faults(world) if e.from_ms is None else _times(e, world)
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
    """Return where the report's link for this verdict leads: to the first example that has a time, else to the time of
    the faults."""
    for example in v.examples:
        if example.from_ms is not None:
            return place_of_example(v, example, world, lanes)
    from_ms, to_ms = _faults(world)
    section = _PLOT_OF[section_of(v.name)]
    return Place(check=v.name, from_ms=from_ms, to_ms=to_ms, section=section, lane=None, text="", bad=False)


def _faults(world: World) -> tuple[float, float]:
    start_ms = min((life.start_ms for life in world.lives), default=0.0)
    if not world.faults:
        return start_ms, world.end_ms
    first_ms = min(f.start_ms for f in world.faults)
    return first_ms, min(max(f.end_ms for f in world.faults), world.end_ms)
