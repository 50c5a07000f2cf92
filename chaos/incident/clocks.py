"""How far the clocks of the logs were apart, from what two of them tell of the same moment. Pure.

    NameServer  05:10:04 master address change … 10.0.0.2:10911     broker  21:10:05 register broker[0] to … OK
                05:12:21 channelInactive [10.0.0.9:5511]            client  21:12:22 CLOSE 10.0.0.1:9876
    all differences of like marks ─► the commonest is what the two stamps are apart: zone (quarter hours) + offset

Pairs are joined along the tree of the surest; a pair beside the tree that says otherwise is said. A difference of
marks that recur each 30 s is as common 30 s further on: what does not recur (a first registration) counts more,
and among equals the one nearest to a quarter of an hour.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

QUARTER_MS = 900_000.0
_MOST = 1_500
"""So many marks of a kind are compared; of more, those that do not recur."""
_NEAR_MS = 1_500.0
_SAME_CLOCK_MS = 1_000.0
SET_ALIKE_MS = 700.0
"""Nearer than that two logs of whole seconds tell nothing of a difference."""
SLOW = "~"
"""Begins the keys of what a client tells up to a poll (30 s) after a NameServer did."""
_POLL_MS = 31_500.0


class Mark(NamedTuple):
    """Something that another log may tell of, too."""

    key: str
    at_ms: float
    weight: float = 1.0


@dataclass(slots=True)
class Clock:
    """One log's clock: `shift_ms` is how far it was ahead of the reference."""

    name: str
    resolution_ms: int
    marks: Sequence[Mark]
    first_ms: float = 0.0
    last_ms: float = 0.0
    given: bool = False
    """Whether a person said what it shows: its shift is 0."""
    shift_ms: float = 0.0
    bound_ms: float = math.inf
    certainty: str = "unsure"
    why: str = "nothing in it is told by another log, too"
    contradicts: list[str] = field(default_factory=list)


class Pair(NamedTuple):
    """`shift_ms` is how far the second is ahead of the first."""

    first: int
    second: int
    shift_ms: float
    bound_ms: float
    matched: float
    """Weight of the marks that agree."""
    events: int
    certainty: str


def solve(clocks: Sequence[Clock]) -> list[str]:
    """Sets each clock's shift, bound and certainty. What contradicts, one sentence each."""
    pairs = [
        pair
        for first in range(len(clocks))
        for second in range(first + 1, len(clocks))
        if (pair := compared(clocks, first, second)) is not None
    ]
    rank = {"certain": 2, "likely": 1, "unsure": 0}
    pairs.sort(key=lambda pair: (rank[pair.certainty], pair.matched), reverse=True)
    group = list(range(len(clocks)))
    edges: dict[int, list[Pair]] = defaultdict(list)
    beside = []
    for pair in pairs:
        mine, other = group[pair.first], group[pair.second]
        if mine == other:
            beside.append(pair)
            continue
        group = [mine if one == other else one for one in group]
        edges[pair.first].append(pair)
        edges[pair.second].append(pair)
    for members in {one: [n for n, of in enumerate(group) if of == one] for one in group}.values():
        _spread(clocks, members, edges)
    return [said for pair in beside if (said := _contradicts(clocks, pair))]


def _spread(clocks: Sequence[Clock], members: Sequence[int], edges: Mapping[int, Sequence[Pair]]) -> None:
    """Shifts of clocks that hang together: against what was given, else against what most of them show."""
    root = members[0]
    shift, bound, certainty, via = {root: 0.0}, {root: 0.0}, {root: "certain"}, {root: ""}
    waiting = [root]
    order = ("unsure", "likely", "certain")
    while waiting:
        at = waiting.pop()
        for pair in edges.get(at, ()):
            there, sign = (pair.second, 1) if pair.first == at else (pair.first, -1)
            if there in shift:
                continue
            shift[there] = shift[at] + sign * pair.shift_ms
            bound[there] = math.hypot(bound[at], pair.bound_ms)
            certainty[there] = min(certainty[at], pair.certainty, key=order.index)
            via[there] = f"{pair.events} events that it shares with {clocks[at].name}"
            waiting.append(there)
    fixed = [one for one in members if clocks[one].given]
    zero = shift[fixed[0]] if fixed else _commonest([shift[one] for one in members])
    for one in members:
        clock = clocks[one]
        clock.shift_ms = shift[one] - zero
        if clock.given:
            clock.shift_ms, clock.bound_ms, clock.certainty, clock.why = (
                0.0,
                clock.resolution_ms / 2,
                "certain",
                "given",
            )
            continue
        if len(members) == 1:
            continue
        clock.bound_ms = max(bound[one], 1.0)
        clock.certainty = certainty[one]
        clock.why = via[one] or f"the others are told by it: {sum(p.events for p in edges.get(one, ()))} shared events"
        if abs(clock.shift_ms) <= max(clock.bound_ms, SET_ALIKE_MS):
            clock.shift_ms = 0.0  # as clocks are that one server sets


def _commonest(shifts: Sequence[float]) -> float:
    """The shift that most have, to a second; of as many, that of the first."""
    near = [sum(abs(other - one) <= _SAME_CLOCK_MS for other in shifts) for one in shifts]
    at = max(range(len(shifts)), key=lambda number: (near[number], -number))
    return statistics.median(other for other in shifts if abs(other - shifts[at]) <= _SAME_CLOCK_MS)


def _contradicts(clocks: Sequence[Clock], pair: Pair) -> str:
    first, second = clocks[pair.first], clocks[pair.second]
    if first.given or second.given:
        return ""
    apart_ms = second.shift_ms - first.shift_ms
    off_ms = abs(pair.shift_ms - apart_ms)
    if pair.certainty != "certain" or off_ms <= 3_000 + pair.bound_ms:
        return ""
    said = (
        f"{second.name} is {apart_ms / 1000:+.1f} s against {first.name} by way of others, and "
        f"{pair.shift_ms / 1000:+.1f} s by the {pair.events} events that the two share"
    )
    first.contradicts.append(said)
    second.contradicts.append(said)
    return said


def compared(clocks: Sequence[Clock], first: int, second: int) -> Pair | None:
    """By how much the second clock is ahead of the first; None where they share nothing."""
    import numpy as np

    one, other = clocks[first], clocks[second]
    mine, theirs = _by_key(one.marks), _by_key(other.marks)
    diffs: list[npt.NDArray[np.float64]] = []
    weights: list[npt.NDArray[np.float64]] = []
    for key in mine.keys() & theirs.keys():
        if key.startswith(SLOW):
            continue
        a, b = _few(mine[key]), _few(theirs[key])
        diffs.append(np.subtract.outer(b[:, 0], a[:, 0]).ravel())
        weights.append(np.minimum.outer(b[:, 1], a[:, 1]).ravel())
    found = None
    if diffs:
        found = _commonest_of(np.concatenate(diffs), np.concatenate(weights), first, second, one, other)
    if found is None or found.certainty == "unsure":
        return _by_polls(mine, theirs, first, second) or found
    return found


def _by_polls(
    mine: Mapping[str, Sequence[Mark]], theirs: Mapping[str, Sequence[Mark]], first: int, second: int
) -> Pair | None:
    """What a client learnt up to a poll after a NameServer: enough for a zone."""
    import numpy as np

    diffs = [
        np.subtract.outer(_few(theirs[key])[:, 0], _few(mine[key])[:, 0]).ravel()
        for key in mine.keys() & theirs.keys()
        if key.startswith(SLOW)
    ]
    if not diffs:
        return None
    apart = np.sort(np.concatenate(diffs))

    def counted(shift: float) -> int:
        return int(np.searchsorted(apart, shift + _POLL_MS, "right") - np.searchsorted(apart, shift - 1_500, "left"))

    zones = sorted((quarter * QUARTER_MS for quarter in range(-60, 61)), key=abs)
    counts = {shift: max(counted(shift), counted(shift - _POLL_MS + 1_500)) for shift in zones}
    best = max(zones, key=lambda shift: counts[shift])
    if not counts[best]:
        return None
    rival = max(count for shift, count in counts.items() if shift != best)
    certainty = "likely" if counts[best] >= 2 and rival < counts[best] else "unsure"
    return Pair(first, second, best, _POLL_MS, 0.5 * counts[best], counts[best], certainty)


def _commonest_of(
    apart: npt.NDArray[np.float64], weight: npt.NDArray[np.float64], first: int, second: int, one: Clock, other: Clock
) -> Pair | None:
    import numpy as np

    order = np.argsort(apart, kind="stable")
    apart, weight = apart[order], weight[order]
    whole = max(one.resolution_ms, other.resolution_ms) >= 1000
    reach = 1_050.0 if whole else 300.0
    total = np.concatenate(([0.0], np.cumsum(weight)))
    low = np.searchsorted(apart, apart - reach, side="left")
    high = np.searchsorted(apart, apart + reach, side="right")
    found = total[high] - total[low]
    best = float(found.max())
    good = np.flatnonzero(found >= 0.97 * best)
    near = [_distance(float(apart[at])) for at in good]
    # of those nearly as common, the nearest to a quarter of an hour; of these the commonest
    nearest = min(near)
    at = max((n for n, d in zip(good, near, strict=True) if d <= nearest + 2_000), key=lambda n: float(found[n]))
    chosen = (apart >= apart[at] - reach) & (apart <= apart[at] + reach)
    shift = float(np.average(apart[chosen], weights=weight[chosen]))
    matched, count = float(found[at]), int(chosen.sum())
    rivals = found[np.abs(apart - shift) > 2 * reach]
    rival = float(rivals.max()) if len(rivals) else 0.0
    spread = 0.41 * math.hypot(one.resolution_ms, other.resolution_ms) if whole else 60.0
    bound = max(spread / math.sqrt(max(count, 1)) * 2, 5.0)
    round_ = _distance(shift) <= 2_000 and abs(shift) <= 15 * 3_600_000
    if matched >= 6 and count >= 2 and rival <= 0.6 * matched:
        certainty = "certain"
    elif (matched >= 3 and count >= 2 and rival < 0.95 * matched) or (round_ and matched >= 3 and count >= 2):
        certainty = "likely"
    else:
        certainty = "unsure"
    return Pair(first, second, shift, bound, matched, count, certainty)


def _distance(shift_ms: float) -> float:
    """How far it is from a whole quarter of an hour; years off is no zone."""
    off = abs(shift_ms - round(shift_ms / QUARTER_MS) * QUARTER_MS)
    if abs(shift_ms) <= 2_000:
        return 0.0
    return off if abs(shift_ms) <= 15 * 3_600_000 else QUARTER_MS


def _by_key(marks: Iterable[Mark]) -> dict[str, list[Mark]]:
    found: dict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        found[mark.key].append(mark)
    return found


def _few(marks: Sequence[Mark]) -> npt.NDArray[np.float64]:
    """at_ms, weight a row; of too many those that weigh most, then those that break the rhythm."""
    import numpy as np

    table = np.array([(mark.at_ms, mark.weight) for mark in marks], dtype=np.float64)
    if len(table) <= _MOST:
        return table
    table = table[np.argsort(table[:, 0], kind="stable")]
    gaps = np.diff(table[:, 0], prepend=table[0, 0])
    usual = float(np.median(gaps[1:]))
    strange = np.abs(gaps - usual) > max(2_000.0, 0.1 * usual)
    rank = table[:, 1] + strange * 10
    kept = np.sort(np.argsort(-rank, kind="stable")[:_MOST])
    return table[kept]
