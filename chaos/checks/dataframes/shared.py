"""What several checks of one history need and is costly: made once, kept while they run, thrown away.

Who judges a large history opens `shared_scan`; a check asks `persisted`, or `memoized`, for what it would otherwise
make. Outside of it nothing is kept, so that a check by itself stays a function of its history.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...history.schema import Group, named
from ...oracle.intervals import Stretch, merged
from ..tolerance import UNLIMITED_MS

T = TypeVar("T")

TRAFFIC = named(Group.TRAFFIC)
"""The events that are as many as the messages; all others together are as many as the run is long."""

_SPANS_MAX = 32


@dataclass(slots=True)
class _Shared:
    traffic: DataFrame
    frames: dict[str, DataFrame] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)


_open: WeakKeyDictionary[DataFrame, _Shared] = WeakKeyDictionary()


@contextmanager
def shared_scan(history: DataFrame, traffic: DataFrame) -> Iterator[None]:
    """While this is open, what is `persisted` of this very DataFrame stays on disk for the next who asks.

    `traffic` has the same rows, as they lie in files: what reads millions of rows reads these, because Spark compiles
    a scan and what follows into one loop, but not over a union.
    """
    shared = _Shared(traffic)
    _open[history] = shared
    try:
        yield
    finally:
        del _open[history]
        for frame in shared.frames.values():
            frame.unpersist()


def is_shared(history: DataFrame) -> bool:
    """Whether `shared_scan` is open for it: its checks run one after the other, and it is large."""
    return history in _open


def traffic(history: DataFrame) -> DataFrame:
    """Where to read events of TRAFFIC from: the files themselves while `shared_scan` is open for `history`."""
    shared = _open.get(history)
    return history if shared is None else shared.traffic


def parts_of(history: DataFrame, *events: str) -> list[DataFrame]:
    """The rows of these events, in one DataFrame, or in two when they lie in two places."""
    if not is_shared(history):
        return [history.where(F.col("event").isin(*events))]
    of_traffic, rest = [e for e in events if e in TRAFFIC], [e for e in events if e not in TRAFFIC]
    found = [traffic(history).where(F.col("event").isin(*of_traffic))] if of_traffic else []
    return found + ([history.where(F.col("event").isin(*rest))] if rest else [])


def within(at_ms: Column, spans: Iterable[tuple[float, float]]) -> Column:
    """Whether a time lies in one of the spans, bounds included; those that overlap are one, and at most 32 are left.

    The nearest are joined beyond that: for sifting before a join that decides, so more than asked may pass. Spark hands
    such a condition to the reader of the files, which leaves out what lies elsewhere in time.
    """
    left = merged(Stretch(start_ms, math.nextafter(end_ms, math.inf)) for start_ms, end_ms in spans)  # a moment, too
    while len(left) > _SPANS_MAX:
        at = min(range(1, len(left)), key=lambda n: left[n].start_ms - left[n - 1].end_ms)
        left[at - 1 : at + 1] = [Stretch(left[at - 1].start_ms, left[at].end_ms)]
    found = F.lit(False)
    for start_ms, end_ms in left:
        found = found | ((at_ms >= max(start_ms, -UNLIMITED_MS)) & (at_ms <= min(end_ms, UNLIMITED_MS)))
    return found


def persisted(history: DataFrame, name: str, make: Callable[[], DataFrame]) -> DataFrame:
    """What `make` gives; kept under `name` when `shared_scan` is open for `history`."""
    shared = _open.get(history)
    if shared is None:
        return make()
    if name not in shared.frames:
        shared.frames[name] = make().persist(StorageLevel.DISK_ONLY)
    return shared.frames[name]


def memoized(history: DataFrame, name: str, make: Callable[[], T]) -> T:
    """What `make` gives; made once for `name` when `shared_scan` is open for `history`."""
    shared = _open.get(history)
    if shared is None:
        return make()
    if name not in shared.found:
        shared.found[name] = make()
    found: T = shared.found[name]
    return found
