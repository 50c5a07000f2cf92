"""A value that changes now and then, for each of several things: looked up for a million (thing, time) at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SPAN_MS = 1e9
"""More than any time: thing n's times are kept at n·_SPAN_MS + time. A double then keeps microseconds."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Timelines:
    """Thing → [(from_ms, value)], each list in order of time and beginning at or before every time asked for."""

    def __init__(self, changes: list[list[tuple[float, int]]]) -> None:
        self._keys = np.array(
            [index * _SPAN_MS + max(at_ms, 0.0) for index, steps in enumerate(changes) for at_ms, _ in steps]
        )
        self._values = np.array([value for steps in changes for _, value in steps], dtype=np.int64)
        self._thing = np.array([index for index, steps in enumerate(changes) for _ in steps], dtype=np.int64)

    def at(self, things: Ints, times_ms: Floats) -> Ints:
        """The value of each thing at its time."""
        return self._values[self._index(things, times_ms)]

    def step_at_or_next(self, things: Ints, times_ms: Floats) -> tuple[Ints, Floats]:
        """The step of each thing that holds at its time or, where its value is negative, the next one that is not.

        Also when each step begins. Steps are numbered through all things; -1 and infinity where none follows.
        """
        index = self._index(things, times_ms)
        waiting = np.flatnonzero(self._values[index] < 0)
        while waiting.size:
            following = index[waiting] + 1
            there = following < len(self._values)
            there[there] &= self._thing[following[there]] == things[waiting[there]]
            index[waiting[~there]] = -1
            waiting, following = waiting[there], following[there]
            index[waiting] = following
            waiting = waiting[self._values[following] < 0]
        since = np.where(index < 0, np.inf, self._keys[index] - things * _SPAN_MS)
        return index, since

    def values(self, steps: Ints) -> Ints:
        """The value of each step; -1 for step -1."""
        return np.where(steps < 0, -1, self._values[steps])

    def step_number(self, thing: int, place: int) -> int:
        """The number, through all things, of a thing's step."""
        return int(np.searchsorted(self._thing, thing)) + place

    @property
    def steps(self) -> int:
        """How many steps there are in all."""
        return len(self._values)

    def _index(self, things: Ints, times_ms: Floats) -> Ints:
        found = np.searchsorted(self._keys, things * _SPAN_MS + times_ms, side="right") - 1
        return np.maximum(found, 0)

    def one_at(self, thing: int, time_ms: float) -> int:
        """The value of one thing at one time."""
        return int(self.at(np.array([thing]), np.array([time_ms]))[0])
