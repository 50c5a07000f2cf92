"""Stretches of time: joining overlapping ones, the gaps between them, and the stretches between successive rows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

State = TypeVar("State")


class Stretch(NamedTuple):
    start_ms: float
    end_ms: float


def merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The same time as disjoint stretches in order."""
    found: list[Stretch] = []
    for start_ms, end_ms in sorted(stretches):
        if start_ms >= end_ms:
            continue
        if found and start_ms <= found[-1].end_ms:
            found[-1] = Stretch(found[-1].start_ms, max(found[-1].end_ms, end_ms))
        else:
            found.append(Stretch(start_ms, end_ms))
    return found


def longest(stretches: Iterable[Stretch]) -> Stretch:
    """The first of the longest; of no length where there is none."""
    return max(stretches, default=Stretch(0.0, 0.0), key=lambda one: one.end_ms - one.start_ms)


def without(start_ms: float, end_ms: float, taken: Iterable[Stretch]) -> list[Stretch]:
    """What is left of [start_ms, end_ms) outside of `taken`."""
    left: list[Stretch] = []
    for stretch in merged(taken):
        if stretch.start_ms > start_ms:
            left.append(Stretch(start_ms, min(stretch.start_ms, end_ms)))
        start_ms = max(start_ms, stretch.end_ms)
        if start_ms >= end_ms:
            break
    else:
        left.append(Stretch(start_ms, end_ms))
    return [stretch for stretch in left if stretch.start_ms < stretch.end_ms]


def _begins_ms(state: Any) -> float:
    at_ms: float = state[0]
    return at_ms


def until_next(
    states: Sequence[State], end_ms: float, at_ms: Callable[[State], float] = _begins_ms
) -> Iterator[tuple[State, float]]:
    """Each state, in order of time, with when the next one takes its place; the last lasts until `end_ms`. A state is a
    row, or begins with its time, unless `at_ms` says when it begins."""
    ends = [*map(at_ms, states[1:]), max([end_ms, *map(at_ms, states[-1:])])]
    return zip(states, ends, strict=False)
