"""Stretches of time: joining overlapping ones, the gaps between them, and the stretches between successive rows. And
values by key."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


class Stretch(NamedTuple):
    start_ms: float
    end_ms: float


def grouped(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """The values of each key, in the order in which they come."""
    found: dict[Key, list[Item]] = defaultdict(list)
    for key, one in pairs:
        found[key].append(one)
    return dict(found)


def touching(
    items: Iterable[Item], begins_ms: Callable[[Item], float], ends_ms: Callable[[Item], float]
) -> Iterator[list[Item]]:
    """Items in order of their beginning, those together of which each begins before all before it have ended."""
    group, until_ms = list[Item](), -math.inf
    for one in items:
        if group and begins_ms(one) > until_ms:
            yield group
            group = []
        group.append(one)
        until_ms = max(until_ms, ends_ms(one))
    if group:
        yield group


def merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The same time as disjoint stretches in order."""
    some = sorted(one for one in stretches if one[0] < one[1])
    return [Stretch(of[0][0], max(end_ms for _, end_ms in of)) for of in touching(some, itemgetter(0), itemgetter(1))]


def longest(stretches: Iterable[Stretch]) -> Stretch:
    """The first of the longest; of no length where there is none."""
    return max(stretches, default=Stretch(0.0, 0.0), key=lambda one: one.end_ms - one.start_ms)


def without(start_ms: float, end_ms: float, taken: Iterable[Stretch]) -> list[Stretch]:
    """What is left of [start_ms, end_ms) outside of `taken`."""
    held = merged(taken)
    gaps = zip([start_ms, *(one.end_ms for one in held)], [*(one.start_ms for one in held), end_ms], strict=True)
    left = (Stretch(max(from_ms, start_ms), min(to_ms, end_ms)) for from_ms, to_ms in gaps)
    return [stretch for stretch in left if stretch.start_ms < stretch.end_ms]


def until_next(
    states: Sequence[Item], end_ms: float, at_ms: Callable[[Any], float] = itemgetter(0)
) -> Iterator[tuple[Item, float]]:
    """Each state, in order of time, with when the next one takes its place; the last lasts until `end_ms`. A state is a
    row, or begins with its time, unless `at_ms` says when it begins."""
    ends = [*map(at_ms, states[1:]), max([end_ms, *map(at_ms, states[-1:])])]
    return zip(states, ends, strict=False)
