"""Offsets as exact as all logs together allow: every two that tell of one moment bound each other's. Pure.

    ns-0     14:00:04        broker-a  14:00:05        whole seconds: 05 … 06 less 04 … 05 is 0 … 2 s apart
    ns-0     14:02:21        broker-a  14:02:21        -1 … 1 s apart; together 0 … 1 s

Of two logs the stretch counts in which most of what they share may be. What the surest say is laid down first; a
stretch that does not go with those before it is left out.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations, islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .clocks import Clock, Mark

QUARTER_MS = 900_000.0
_SAME_CLOCK_MS = 1_000.0
_NEAR_MS = 2_000.0
_ALIKE_MS = 700.0
"""So near to what others show a clock is set like theirs, where it may be: whole seconds leave more than that open."""
WHOLE_MS = 1_000
_LATE_MS = 40.0
"""What one end writes a moment later than the other."""
_AGREE = 0.75
"""Of what two logs share so much must be right at once."""
_MOST = 200
"""With more logs than that each is as exact as it was told."""
_ROUNDS = 30
NOT_AT_ONCE = ("~", "gone ", "lost ")
"""Keys of what two logs may tell of at different times: what a client hears, who gives up a broker after silence."""


class _Apart(NamedTuple):
    """The second clock is ahead of the first by no less and no more than this."""

    first: int
    second: int
    low_ms: float
    high_ms: float
    weight: float


def refined(
    clocks: Sequence[Clock], marks: Mapping[int, Sequence[Mark]], shift: Mapping[int, float]
) -> tuple[dict[int, float], dict[int, float]]:
    """Each clock's shift, and by how much it may be wrong against the first of them; those that are given stay."""
    members = list(shift)
    if not 2 <= len(members) <= _MOST:
        return dict(shift), {}
    at = {one: number for number, one in enumerate(members)}
    bounds = sorted(_bounds(clocks, marks, shift), key=lambda one: -one.weight)
    most = _laid_down(bounds, at)
    middle = _middle(most, [shift[one] for one in members])
    middle = _middle(most, middle, _set_alike(most, middle))
    found = {one: middle[at[one]] for one in members}
    ahead = {one: middle[at[one]] - middle[0] for one in members}
    exact = {one: max(float(most[0, at[one]]) - ahead[one], ahead[one] + float(most[at[one], 0])) for one in members}
    return found, {one: bound for one, bound in exact.items() if math.isfinite(bound)}


def _bounds(clocks: Sequence[Clock], marks: Mapping[int, Sequence[Mark]], shift: Mapping[int, float]) -> list[_Apart]:
    by_key: dict[int, dict[str, list[Mark]]] = {}
    for one in shift:
        by_key[one] = defaultdict(list)
        for mark in marks[one]:
            by_key[one][mark.key].append(mark)
    found = []
    for first, second in combinations(shift, 2):
        half = sum(clocks[one].resolution_ms / 2 for one in (first, second) if clocks[one].resolution_ms > 1)
        # Of two logs of whole seconds what is of one moment is apart by one of two neighbouring seconds: a third one,
        # which only lateness would let in, is of something else.
        whole = min(clocks[one].resolution_ms for one in (first, second)) >= WHOLE_MS
        apart_ms = shift[second] - shift[first]
        told = _shared(by_key[first], by_key[second], apart_ms)
        if told and (best := _most_common(told, half if whole else half + _LATE_MS)) is not None:
            low, high, weight = best
            late_ms = _LATE_MS if whole else 0.0
            found.append(_Apart(first, second, low - late_ms, high + late_ms, weight))
    return found


def _shared(
    mine: Mapping[str, Sequence[Mark]], theirs: Mapping[str, Sequence[Mark]], apart_ms: float
) -> list[tuple[float, float]]:
    """How far apart each moment is of which both tell, and its weight."""
    told = []
    for key in mine:
        if key not in theirs or key.startswith(NOT_AT_ONCE):
            continue
        times = sorted(mark.at_ms for mark in theirs[key])
        for mark in mine[key]:
            at = bisect_left(times, mark.at_ms + apart_ms)
            near = [one - mark.at_ms for one in times[max(0, at - 1) : at + 1]]
            best = min(near, key=lambda one: abs(one - apart_ms))
            if abs(best - apart_ms) <= _NEAR_MS:
                told.append((best, mark.weight))
    return told


def _most_common(told: Sequence[tuple[float, float]], half: float) -> tuple[float, float, float] | None:
    """The stretch that most of these allow, each true to less than ± half, and their weight; None where too many
    contradict."""
    ends = sorted(
        [(apart - half, True, weight) for apart, weight in told]
        + [(apart + half, False, weight) for apart, weight in told]
    )
    now, best, low, opened = 0.0, 0.0, 0.0, 0
    for number, (at, begins, weight) in enumerate(ends):
        if not begins:
            now -= weight
            continue
        now += weight
        if now > best + 1e-9:
            best, low, opened = now, at, number
    high = next((end for end, is_one, _ in islice(ends, opened, None) if not is_one), 0.0)
    total = sum(weight for _, weight in told)
    return (low, high, best) if best >= _AGREE * total else None


def _laid_down(bounds: Sequence[_Apart], at: Mapping[int, int]) -> npt.NDArray[np.float64]:
    """[i, j]: at most so much is j ahead of i, by all bounds that go together."""
    import numpy as np

    most = np.full((len(at), len(at)), np.inf)
    np.fill_diagonal(most, 0.0)
    for first, second, low, high, _ in bounds:
        i, j = at[first], at[second]
        if most[i, j] < low or -most[j, i] > high:
            continue
        for a, b, length in ((i, j, high), (j, i, -low)):
            if length < most[a, b]:
                np.minimum(most, most[:, a, None] + length + most[None, b, :], out=most)
    return most


def _set_alike(most: npt.NDArray[np.float64], near: Sequence[float]) -> dict[int, float]:
    """Those that may show what most of them show, whole quarters of an hour apart: clocks that servers set do."""
    zero = commonest(near)
    held: dict[int, float] = {}
    for i in sorted(range(len(near)), key=lambda one: abs(near[one] - zero)):
        at = zero + round((near[i] - zero) / QUARTER_MS) * QUARTER_MS
        if abs(near[i] - at) <= _ALIKE_MS and all(
            at - other <= most[j, i] and other - at <= most[i, j] for j, other in held.items()
        ):
            held[i] = at
    return held if len(held) > 1 else {}


def commonest(shifts: Sequence[float]) -> float:
    """The shift that most have, to a second; of as many, that of the first."""
    near = [sum(abs(other - one) <= _SAME_CLOCK_MS for other in shifts) for one in shifts]
    at = max(range(len(shifts)), key=lambda number: (near[number], -number))
    return statistics.median(other for other in shifts if abs(other - shifts[at]) <= _SAME_CLOCK_MS)


def _middle(
    most: npt.NDArray[np.float64], near: Sequence[float], held: Mapping[int, float] | None = None
) -> list[float]:
    """In the middle of what is allowed: one after the other as the others stand, until nothing moves."""
    import numpy as np

    held = held or {}
    found = np.array([held.get(i, at) for i, at in enumerate(near)])
    count = len(found)
    others = [np.array([j for j in range(count) if j != i]) for i in range(count)]
    for _ in range(_ROUNDS):
        moved = 0.0
        for i in range(count):
            if i in held:
                continue
            low = float((found[others[i]] - most[i, others[i]]).max())
            high = float((found[others[i]] + most[others[i], i]).min())
            if not np.isfinite(high - low):
                continue
            moved = max(moved, abs((low + high) / 2 - found[i]))
            found[i] = (low + high) / 2
        if moved < 1.0:
            break
    return [float(one) for one in found]
