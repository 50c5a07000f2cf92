"""Computes how far the clocks of the logs' machines were apart, from events that two logs have. Pure: no I/O.

    NameServer  05:10:04 master address change … 10.0.0.2:10911     broker  21:10:05 register broker[0] to … OK
                05:12:21 channelInactive [10.0.0.9:5511]            client  21:12:22 CLOSE 10.0.0.1:9876
    all differences of equal marks ─► the commonest is the distance of the clocks: zone (quarter hours) + offset

Logs are aligned one after the other, the surest first, and contradictions are reported. An event that recurs every 30 s
also fits 30 s later, so an event that does not recur (a first registration) counts more. Among equally good offsets,
the one nearest to a whole quarter of an hour is taken. A NameServer's log is compared at each address that clients and
brokers used for NameServers.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...chaos.oracle.intervals import grouped

LEAST_MS = 50.0
"""The error of a clock is never given as smaller than this."""
SET_ALIKE_MS = 300.0
"""Two logs of whole seconds cannot show smaller differences."""
AT, ANY = "@", "?"
"""Suffix of a key: at the NameServer with that address, or at one with an unknown address."""
_SAME_MS = 1_500.0
_ORDER = ("unsure", "likely", "certain")
_ELSEWHEN_MS = 2_200.0
_MANY = 40
"""With more clocks, pairs are not all compared repeatedly."""
TOLD, HEARD = "~told", "~heard"
"""Prefixes of the keys of what a NameServer says, and what a client learns up to a poll (30 s) later."""
SLOW = "~"
_POLL_MS = 31_500.0
_HEARD_COUNTS = 3.0
_HEARD_TWICE = 2.0
_STARTS = 3
_FIRST = 5.0
"""Weight of a first registration; channels come and go in tries, so two of them soon match."""
_RECURRING = 1.0
"""Most weight of marks that recur."""
_MOST_MARKS = 400
"""Most marks of a kind that are compared; of more marks, only marks that do not recur."""
QUARTER_MS = 900_000.0
UNSET_MS = 1_000.0 * 60 * 60 * 24 * 200
"""A clock this far off was never set, or set to another year."""
_SAME_CLOCK_MS = 1_000.0
_OF_ONE_MOMENT_MS = 2_000.0
_ALIKE_MS = 700.0
"""A clock that differs from the other clocks by at most this counts as equal to them, if its marks allow it."""
WHOLE_MS = 1_000
_LATE_MS = 40.0
"""How much later one end may log an event than the other."""
_AGREE = 0.75
"""Share of two logs' marks that must match at once."""
_MOST_CLOCKS = 200
"""With more logs, clocks keep their first error."""
_ROUNDS = 30
_ZONE_QUARTERS, _CLOCK_QUARTERS = 60, 8
"""Most quarters of an hour between zones, and between clocks with a stated zone."""
NOT_AT_ONCE = ("~", "gone ", "lost ")
"""Keys whose events two logs have at different times: what a client learns, and drops after silence."""


class Mark(NamedTuple):
    """An event that two logs can both have, such as a connection that both ends log."""

    key: str
    at_ms: float
    weight: float = 1.0


@dataclass(slots=True)
class LogClock:
    """One log's clock. `shift_ms` says how far the clock was ahead of the reference log's clock."""

    name: str
    resolution_ms: int
    marks: Sequence[Mark]
    first_ms: float = 0.0
    last_ms: float = 0.0
    given: bool = False
    """Whether the user gave it; its shift is then 0."""
    zoned: bool = False
    """Whether its layout states its zone; then it is moved by hours only if a log surely says so."""
    shift_ms: float = 0.0
    bound_ms: float = math.inf
    certainty: str = "unsure"
    why: str = "nothing in it is told by another log, too"
    pinned: bool = False
    """Whether a mark that does not recur fixes it; others fix it only up to whole periods."""


class Pair(NamedTuple):
    """The comparison of two logs' clocks. `shift_ms` says how far the second clock is ahead of the first clock."""

    shift_ms: float
    bound_ms: float
    matched: float
    """Weight of the matching marks."""
    events: int
    certainty: str
    address: str = ANY
    """For a NameServer: the address at which it fits."""
    pinned: bool = False
    at_once: bool = False
    """Whether a mark that both log in the same moment, and that does not recur, fixes it."""


def solve(clocks: Sequence[LogClock]) -> list[str]:
    """Set how far each log's clock was ahead, with the possible error. Returns a sentence for each contradiction.

    Clocks are aligned one after the other, the surest first, by the events that a log has in common with aligned logs.
    A log without common events begins a new group.
    """
    for clock in clocks:
        clock.marks = _once(clock.marks)  # what was held comes all at once: many lines, and one moment
    waiting = set(range(len(clocks)))
    said: list[str] = []
    others: tuple[float, float] | None = None
    while waiting:
        before = set(waiting)
        said += _group(clocks, waiting)
        members = before - waiting
        if others is not None and not any(clocks[one].given for one in members):
            _over(clocks, members, others)
        others = others or _extent(clocks, members)
    return said


def _extent(clocks: Sequence[LogClock], members: Iterable[int]) -> tuple[float, float]:
    ends = [
        (clocks[one].first_ms - clocks[one].shift_ms, clocks[one].last_ms - clocks[one].shift_ms) for one in members
    ]
    return min(first for first, _ in ends), max(last for _, last in ends)


def _over(clocks: Sequence[LogClock], members: Collection[int], others: tuple[float, float]) -> None:
    """Move logs that share no event with the other logs until the times overlap, by as little as possible."""
    first, last = _extent(clocks, members)
    apart_ms = (first + last - sum(others)) / 2
    if abs(apart_ms) >= UNSET_MS:
        shift = apart_ms
    else:
        most = _CLOCK_QUARTERS if any(clocks[one].zoned for one in members) else _ZONE_QUARTERS
        zones = _zones(most)
        overlaps = {one: min(last - one, others[1]) - max(first - one, others[0]) for one in zones}
        best = max(overlaps.values())
        nearest = round(apart_ms / QUARTER_MS) * QUARTER_MS
        lies_near = min(zones, key=lambda one: (best - overlaps[one] > _POLL_MS, abs(one)))
        shift = lies_near if best > 0 else nearest if abs(nearest) <= most * QUARTER_MS else 0.0
    for one in members:
        clocks[one].shift_ms += shift
        clocks[one].certainty = "unsure"
        clocks[one].bound_ms = max(min(clocks[one].bound_ms, 1e12), QUARTER_MS / 2) if shift else clocks[one].bound_ms
        if shift:
            clocks[one].why = "it shares nothing with the others: so that it lies over them in time"


def _zones(most: int) -> list[float]:
    """Return the shifts of at most `most` quarters of an hour, ahead or behind; the smallest first."""
    return sorted((quarter * QUARTER_MS for quarter in range(-most, most + 1)), key=abs)


def _group(clocks: Sequence[LogClock], waiting: set[int]) -> list[str]:
    root = _root(clocks, waiting)
    waiting.discard(root)
    shift, placed = {root: 0.0}, dict[int, Pair]()
    first = clocks[root]
    whole = LogClock("those before it", first.resolution_ms, list(first.marks), first.first_ms, first.last_ms)
    told: dict[int, Pair | None] = {}
    taken = set[str]()
    while waiting:
        for one in waiting - told.keys():
            told[one] = compared(whole, clocks[one], taken)
        best = max(waiting, key=lambda one: _rank(told[one]))
        pair = told[best]
        if pair is None:
            break
        shift[best], placed[best] = pair.shift_ms, pair
        taken.add(pair.address)
        waiting.discard(best)
        moved = [mark._replace(at_ms=mark.at_ms - pair.shift_ms) for mark in _at(clocks[best].marks, pair.address)]
        keys = {mark.key for mark in moved}
        whole.marks = _once([*whole.marks, *moved])
        whole.first_ms = min(whole.first_ms, clocks[best].first_ms - pair.shift_ms)
        whole.last_ms = max(whole.last_ms, clocks[best].last_ms - pair.shift_ms)
        whole.resolution_ms = max(whole.resolution_ms, clocks[best].resolution_ms)
        told = {
            one: pair
            for one, pair in told.items()
            if one in waiting and len(waiting) > _MANY and not any(mark.key in keys for mark in clocks[one].marks)
        }
    marks = {root: _at(clocks[root].marks, ANY)} | {
        one: _at(clocks[one].marks, pair.address) if pair.bound_ms < _POLL_MS else [] for one, pair in placed.items()
    }
    shift, exact = refined(clocks, marks, shift)
    for one, bound_ms in exact.items():
        if one in placed:
            placed[one] = placed[one]._replace(bound_ms=max(bound_ms, LEAST_MS))
    _set(clocks, shift, placed, root)
    return _contradictions(clocks, shift)


def _at(marks: Iterable[Mark], address: str) -> list[Mark]:
    any_ = f"{AT}{ANY}"
    return [mark._replace(key=mark.key[:-1] + address) if mark.key.endswith(any_) else mark for mark in marks]


def _once(marks: Iterable[Mark]) -> list[Mark]:
    kept: list[Mark] = []
    last: dict[str, float] = {}
    for mark in sorted(marks, key=lambda one: one.at_ms):
        if mark.at_ms - last.get(mark.key, -1e18) > _SAME_MS or mark.key.startswith(SLOW):
            kept.append(mark)
            last[mark.key] = mark.at_ms
    return kept


def _root(clocks: Sequence[LogClock], waiting: set[int]) -> int:
    """Return the first clock: the user's, else a clock whose log knows addresses, else the clock with most shared
    marks."""
    sharing: dict[str, set[int]] = defaultdict(set)
    for one in waiting:
        for mark in clocks[one].marks:
            sharing[mark.key.partition(AT)[0]].add(one)
    counts = {one: 0 for one in waiting}
    for members in sharing.values():
        for one in members:
            counts[one] += len(members) - 1
    knows = {one: any(AT in mark.key and not mark.key.endswith(ANY) for mark in clocks[one].marks) for one in waiting}
    return max(sorted(waiting), key=lambda one: (clocks[one].given, knows[one] and counts[one] > 0, counts[one]))


def _rank(pair: Pair | None) -> tuple[int, float]:
    return (-1, 0.0) if pair is None else (_ORDER.index(pair.certainty), pair.matched)


def _set(clocks: Sequence[LogClock], shift: Mapping[int, float], placed: Mapping[int, Pair], root: int) -> None:
    """Count shifts from a clock that the user gave, else from the commonest value; whole quarters of an hour from the
    clocks whose layout states their zone."""
    members = list(shift)
    fixed = [one for one in members if clocks[one].given]
    zero = shift[fixed[0]] if fixed else commonest([shift[one] for one in sorted(members)])
    if not fixed and (zoned := [shift[one] for one in sorted(members) if clocks[one].zoned]):
        zero += round((commonest(zoned) - zero) / QUARTER_MS) * QUARTER_MS
    for one in members:
        clock = clocks[one]
        clock.shift_ms = shift[one] - zero
        if clock.given:
            clock.shift_ms, clock.bound_ms, clock.pinned = 0.0, clock.resolution_ms / 2, True
            clock.certainty, clock.why = "certain", "given"
            continue
        if len(members) == 1:
            continue
        if one == root:
            clock.bound_ms, clock.certainty = clock.resolution_ms / 2, placed[members[1]].certainty
            clock.why, clock.pinned = "the others are told by it", True
        else:
            pair = placed[one]
            clock.bound_ms, clock.certainty = pair.bound_ms, pair.certainty
            clock.why, clock.pinned = f"{pair.events} events that it shares with others", pair.pinned
        if abs(clock.shift_ms) <= min(clock.bound_ms, SET_ALIKE_MS):
            clock.shift_ms = 0.0  # as clocks are that one server sets


def _contradictions(clocks: Sequence[LogClock], shift: Mapping[int, float]) -> list[str]:
    """Return a sentence for each pair of logs whose certain distance differs from the result."""
    said = []
    members = sorted(one for one in shift if not clocks[one].given) if len(shift) <= _MANY else []
    for first, second in combinations(members, 2):
        one, other, apart_ms = clocks[first], clocks[second], shift[second] - shift[first]
        pair = compared(one, other)
        if pair is None or pair.certainty != "certain":
            continue
        if abs(pair.shift_ms - apart_ms) > 3_000 + pair.bound_ms:
            said.append(
                f"{other.name} is {apart_ms / 1000:+.1f} s against {one.name} by all logs together, and "
                f"{pair.shift_ms / 1000:+.1f} s by the {pair.events} events that the two share"
            )
    return said


def compared(one: LogClock, other: LogClock, taken: Collection[str] = ()) -> Pair | None:
    """Return how far the other log's clock is ahead of this log's clock; None if the logs share no events.

    A NameServer with an unknown address is compared at every address that clients or brokers used. If two addresses fit
    with different clocks, the address is uncertain. `taken` has the addresses that already have a log.
    """
    mine, theirs = _by_key(one.marks), _by_key(other.marks)
    if not any(key.endswith(ANY) for key in theirs):
        return _compared(one, other, mine, theirs)
    addresses = sorted({key.partition(AT)[2] for key in mine if AT in key} - {ANY})
    found = [
        pair._replace(address=address)
        for address in addresses or [ANY]
        if (pair := _compared(one, other, mine, _known_as(address, theirs, other.marks))) is not None
    ]
    found = [pair for pair in found if pair.address not in taken] or found
    best = max(found, key=_rank, default=None)
    if best is None:
        return None
    if not _is_whole(best.shift_ms):
        # of several that fit nearly as well: by which the clock is right, else by which the logs begin and end together
        near = [pair for pair in found if pair.matched > 0.6 * best.matched]
        best = min(near, key=lambda pair: (not _is_whole(pair.shift_ms), _beside(one, other, pair.shift_ms)))
    others = [pair.matched for pair in found if abs(pair.shift_ms - best.shift_ms) > _ELSEWHEN_MS]
    rival = max(others, default=0.0)
    if rival > 0.9 * best.matched:
        return best._replace(certainty="unsure")
    return best._replace(certainty="likely") if rival > 0.6 * best.matched and best.certainty == "certain" else best


def _known_as(address: str, by_key: Mapping[str, list[Mark]], marks: Sequence[Mark]) -> Mapping[str, list[Mark]]:
    any_ = f"{AT}{ANY}"
    found = {key[:-1] + address if key.endswith(any_) else key: those for key, those in by_key.items()}
    return found if len(found) == len(by_key) else _by_key(_at(marks, address))


def _beside(one: LogClock, other: LogClock, shift_ms: float) -> float:
    """Return how far the begins and ends of two logs are apart with this shift; logs collected together are close."""
    return abs(other.first_ms - shift_ms - one.first_ms) + abs(other.last_ms - shift_ms - one.last_ms)


def _compared(
    one: LogClock, other: LogClock, mine: Mapping[str, Sequence[Mark]], theirs: Mapping[str, Sequence[Mark]]
) -> Pair | None:
    told: list[_SharedMarks] = []
    for number, key in enumerate(mine):
        if key in theirs and not key.startswith(SLOW):
            kind = -1 if key.startswith(NOT_AT_ONCE) else number
            told.append(_SharedMarks(kind, _few(mine[key]), _few(theirs[key])))
    polls = _polls(mine, theirs)
    found = _commonest_of(told, polls, one, other) if told else None
    if found is not None and found.certainty != "unsure":
        return found
    zone = None if polls is None else _by_polls(polls)
    if zone is None or found is None:
        return zone or found
    # the best that moments say, where polls say so, too: a better guess within what the polls leave open
    guessed = polls is not None and found.at_once and float(polls.fitting(np.array([found.shift_ms]))[0]) >= zone.events
    return zone._replace(shift_ms=found.shift_ms, matched=found.matched) if guessed else zone


class _Polls(NamedTuple):
    """The distances of two clocks in order: one for each event that a NameServer logged and a client noticed later."""

    apart: npt.NDArray[np.float64]
    late: bool
    """Whether the second clock's log is the log that noticed the event."""
    heard: int
    """Number of events learnt."""

    def fitting(self, shifts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return for each shift how many route changes the client would have learnt within one route poll."""
        low, high = (-_SAME_MS, _POLL_MS) if self.late else (-_POLL_MS, _SAME_MS)
        first = np.searchsorted(self.apart, shifts + low, side="left")
        last = np.searchsorted(self.apart, shifts + high, side="right")
        return np.minimum(last - first, self.heard).astype(np.float64)


def _polls(mine: Mapping[str, Sequence[Mark]], theirs: Mapping[str, Sequence[Mark]]) -> _Polls | None:
    for first, second, late in ((TOLD, HEARD, True), (HEARD, TOLD, False)):
        pairs = [
            (marks, theirs[f"{second}{key.removeprefix(first)}"])
            for key, marks in mine.items()
            if key.startswith(first) and f"{second}{key.removeprefix(first)}" in theirs
        ]
        if pairs:
            diffs = [np.subtract.outer(_few(b)[:, 0], _few(a)[:, 0]).ravel() for a, b in pairs]
            return _Polls(np.sort(np.concatenate(diffs)), late, sum(len(b if late else a) for a, b in pairs))
    return None


def _by_polls(polls: _Polls) -> Pair | None:
    """Return the time zone, by events that a client noticed up to one poll after a NameServer logged them."""
    zones = np.array(_zones(_ZONE_QUARTERS))
    counts = polls.fitting(zones)
    best = int(np.argmax(counts))
    if not counts[best]:
        return None
    rival = float(np.delete(counts, best).max())
    certainty = "likely" if counts[best] >= 2 and rival < counts[best] else "unsure"
    return Pair(float(zones[best]), _POLL_MS, 0.5 * float(counts[best]), int(counts[best]), certainty)


def _commonest_of(told: Sequence[_SharedMarks], polls: _Polls | None, one: LogClock, other: LogClock) -> Pair | None:
    apart = np.concatenate([each.apart() for each in told])
    weight = np.concatenate([each.weights() for each in told])
    order = np.argsort(apart, kind="stable")
    apart, weight = apart[order], weight[order]
    whole = max(one.resolution_ms, other.resolution_ms) >= 1000
    reach = 1_050.0 if whole else 300.0
    total = np.concatenate(([0.0], np.cumsum(weight)))
    low = np.searchsorted(apart, apart - reach, side="left")
    high = np.searchsorted(apart, apart + reach, side="right")
    found = total[high] - total[low]
    if polls is not None:
        found = found + _HEARD_COUNTS * polls.fitting(apart)
    best = float(found.max())
    good = np.flatnonzero(found >= 0.97 * best)
    near = _distances(apart[good])
    # of those nearly as common, the nearest to a quarter of an hour; of these the commonest
    nearest = good[near <= near.min() + 2_000]
    at = int(nearest[np.argmax(found[nearest])])
    chosen = slice(
        int(np.searchsorted(apart, apart[at] - reach, side="left")),
        int(np.searchsorted(apart, apart[at] + reach, side="right")),
    )
    times, kinds = _times_of(told, order[chosen])
    shift = float(np.average(apart[chosen], weights=weight[chosen]))
    matched, count, moments = float(found[at]), len(times), _moments_of(times)
    before = found[: np.searchsorted(apart - shift, -2 * reach, side="left")]
    behind = found[np.searchsorted(apart - shift, 2 * reach, side="right") :]
    rival = max((float(some.max()) for some in (before, behind) if len(some)), default=0.0)
    spread = 0.41 * math.hypot(one.resolution_ms, other.resolution_ms) if whole else 60.0
    bound = max(spread / math.sqrt(max(count, 1)) * 2, 5.0)
    half = 500.0 * ((one.resolution_ms >= 1000) + (other.resolution_ms >= 1000))
    low_ms, high_ms = float(apart[chosen].max()) - half, float(apart[chosen].min()) + half
    if half and high_ms > low_ms:  # events that recur in one phase of their second say one thing many times
        shift, bound = (low_ms + high_ms) / 2, max((high_ms - low_ms) / 2, 50.0)
    round_ = _is_whole(shift)
    heaviest = float(weight[chosen].max())
    if polls is not None and float(polls.fitting(np.array([shift]))[0]) >= _HEARD_TWICE:
        moments += 1  # what was heard a poll after it was told says, too, that it is not another turn
    recurs_only, pinned = heaviest <= _RECURRING and polls is None, heaviest >= _FIRST
    # who dials three others in one moment, which each of them tells: its start, and nothing like it a second time
    once = (weight[chosen] > _RECURRING) & (kinds >= 0)
    is_start = len(np.unique(kinds[once])) >= _STARTS and rival <= 0.5 * matched
    if recurs_only and not round_:
        certainty = "unsure"  # it would be as right a period further on
    elif matched >= 9 and moments >= 3 and rival <= 0.6 * matched:
        certainty = "certain"
    elif (
        matched >= 3
        and count >= 2
        and (round_ or is_start or (rival < 0.9 * matched and (moments >= 3 or (pinned and moments >= 2))))
    ):
        certainty = "likely"
    else:
        certainty = "unsure"
    return Pair(shift, bound, matched, count, certainty, pinned=heaviest > _RECURRING, at_once=bool(once.any()))


def _is_whole(shift_ms: float) -> bool:
    """Whether the shift can be the difference of two time zones, or is zero."""
    return float(_distances(np.array([shift_ms]))[0]) <= 2_000 and abs(shift_ms) <= 15 * 3_600_000


def _distances(shifts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return how far each shift is from a whole quarter of an hour. A shift of over 15 h is no time zone."""
    off = np.abs(shifts - np.round(shifts / QUARTER_MS) * QUARTER_MS)
    far = np.where(np.abs(shifts) <= 15 * 3_600_000, off, QUARTER_MS)
    return np.where(np.abs(shifts) <= 2_000, 0.0, far)


def _by_key(marks: Iterable[Mark]) -> dict[str, list[Mark]]:
    return grouped((mark.key, mark) for mark in marks)


class _SharedMarks(NamedTuple):
    """Every pair of marks with one key in two logs."""

    kind: int
    """Number of the key; -1: both may log it at different times."""
    mine: npt.NDArray[np.float64]
    theirs: npt.NDArray[np.float64]

    def apart(self) -> npt.NDArray[np.float64]:
        return np.subtract.outer(self.theirs[:, 0], self.mine[:, 0]).ravel()

    def weights(self) -> npt.NDArray[np.float64]:
        return np.minimum.outer(self.theirs[:, 1], self.mine[:, 1]).ravel()


def _times_of(
    told: Sequence[_SharedMarks], chosen: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return the time by either clock, and the kind, of these pairs of marks."""
    begins = np.cumsum([0, *(len(one.mine) * len(one.theirs) for one in told)])
    which = np.searchsorted(begins, chosen, side="right") - 1
    times, kinds = np.empty((len(chosen), 2)), np.empty(len(chosen), dtype=np.int64)
    for number in np.unique(which):
        own, one = which == number, told[number]
        at = chosen[own] - begins[number]
        times[own, 0], times[own, 1] = one.theirs[at // len(one.mine), 0], one.mine[at % len(one.mine), 0]
        kinds[own] = one.kind
    return times, kinds


def _moments_of(times: npt.NDArray[np.float64]) -> int:
    """Return the number of different moments in either log; events that came all at once count once."""
    return min(1 + int((np.diff(np.sort(times[:, which])) > _SAME_MS).sum()) for which in (0, 1))


def _few(marks: Sequence[Mark]) -> npt.NDArray[np.float64]:
    """Return at_ms and weight of the marks; if too many, only of marks that break the rhythm or are heaviest."""
    table = np.array([(mark.at_ms, mark.weight) for mark in marks], dtype=np.float64)
    if len(table) <= _MOST_MARKS:
        return table
    table = table[np.argsort(table[:, 0], kind="stable")]
    gaps = np.diff(table[:, 0], prepend=table[0, 0])
    usual = float(np.median(gaps[1:]))
    strange = np.abs(gaps - usual) > max(2_000.0, 0.1 * usual)
    rank = table[:, 1] + strange * 10
    kept = np.sort(np.argsort(-rank, kind="stable")[:_MOST_MARKS])
    return table[kept]


class _Apart(NamedTuple):
    """How far the second clock is ahead of the first, at least and at most."""

    first: int
    second: int
    low_ms: float
    high_ms: float
    weight: float


def refined(
    clocks: Sequence[LogClock], marks: Mapping[int, Sequence[Mark]], shift: Mapping[int, float]
) -> tuple[dict[int, float], dict[int, float]]:
    """Return how far each clock was ahead, and the possible error. Values that the user gave are kept.

    Events that two logs have limit the offset between the logs to less than a second, even if both write whole seconds.

        ns-0     14:00:04        broker-a  14:00:05        05 … 06 less 04 … 05 is 0 … 2 s apart
        ns-0     14:02:21        broker-a  14:02:21        -1 … 1 s apart; together 0 … 1 s

    The offset of two logs lies in the range that most of their common events allow. The surest ranges are applied
    first. A range that contradicts surer ranges is ignored.
    """
    members = list(shift)
    if not 2 <= len(members) <= _MOST_CLOCKS:
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


def _bounds(
    clocks: Sequence[LogClock], marks: Mapping[int, Sequence[Mark]], shift: Mapping[int, float]
) -> list[_Apart]:
    by_key = {one: _by_key(marks[one]) for one in shift}
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
    told = []
    for key in mine:
        if key not in theirs or key.startswith(NOT_AT_ONCE):
            continue
        times = sorted(mark.at_ms for mark in theirs[key])
        for mark in mine[key]:
            at = bisect_left(times, mark.at_ms + apart_ms)
            near = [one - mark.at_ms for one in times[max(0, at - 1) : at + 1]]
            best = min(near, key=lambda one: abs(one - apart_ms))
            if abs(best - apart_ms) <= _OF_ONE_MOMENT_MS:
                told.append((best, mark.weight))
    return told


def _most_common(told: Sequence[tuple[float, float]], half: float) -> tuple[float, float, float] | None:
    """Return the distances that most common moments allow, with their weight; None if too many moments disagree."""
    ends = sorted((apart + half * way, way < 0, weight) for apart, weight in told for way in (-1, 1))
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
    """Return at [i, j] how far j may be ahead of i at most, by all bounds that are consistent."""
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
    """Make clocks equal that may be equal, apart from whole quarters of an hour: servers' clocks are usually set."""
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
    """Return the most frequent shift; shifts that differ by little count as equal. Of equally frequent shifts the first
    is returned."""
    near = [sum(abs(other - one) <= _SAME_CLOCK_MS for other in shifts) for one in shifts]
    at = max(range(len(shifts)), key=lambda number: (near[number], -number))
    return statistics.median(other for other in shifts if abs(other - shifts[at]) <= _SAME_CLOCK_MS)


def _middle(
    most: npt.NDArray[np.float64], near: Sequence[float], held: Mapping[int, float] | None = None
) -> list[float]:
    """Move each clock into the middle of its allowed range, until nothing changes."""
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
