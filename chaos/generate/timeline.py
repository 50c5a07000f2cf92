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

    def at_or_next(self, things: Ints, times_ms: Floats) -> tuple[Ints, Floats]:
        """The value ≥ 0 of each thing at its time or, where that is negative, the next one and when it begins.

        -1 and infinity where none follows.
        """
        index = self._index(things, times_ms)
        values, since = self._values[index], times_ms.copy()
        waiting = np.flatnonzero(values < 0)
        while waiting.size:
            following = index[waiting] + 1
            there = following < len(self._values)
            there[there] &= self._thing[following[there]] == things[waiting[there]]
            since[waiting[~there]] = np.inf
            waiting, following = waiting[there], following[there]
            index[waiting] = following
            values[waiting] = self._values[following]
            since[waiting] = self._keys[following] - things[waiting] * _SPAN_MS
            waiting = waiting[values[waiting] < 0]
        return values, since

    def _index(self, things: Ints, times_ms: Floats) -> Ints:
        found = np.searchsorted(self._keys, things * _SPAN_MS + times_ms, side="right") - 1
        return np.maximum(found, 0)

    def one_at(self, thing: int, time_ms: float) -> int:
        """The value of one thing at one time."""
        return int(self.at(np.array([thing]), np.array([time_ms]))[0])
