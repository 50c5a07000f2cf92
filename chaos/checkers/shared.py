"""What several checks of one history need and is costly: made once, kept while they run, thrown away.

Who judges opens `one_shuffle`; a check asks `kept` for what it would make otherwise. Outside of it nothing is kept,
so that a check by itself stays a function of its history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from pyspark import StorageLevel
from pyspark.sql import DataFrame

_open: WeakKeyDictionary[DataFrame, dict[str, DataFrame]] = WeakKeyDictionary()


@contextmanager
def one_shuffle(history: DataFrame) -> Iterator[None]:
    """While this is open, what is `kept` of this very DataFrame stays on disk for the next who asks."""
    found: dict[str, DataFrame] = {}
    _open[history] = found
    try:
        yield
    finally:
        del _open[history]
        for frame in found.values():
            frame.unpersist()


def kept(history: DataFrame, name: str, make: Callable[[], DataFrame]) -> DataFrame:
    """What `make` gives; kept under `name` when `one_shuffle` is open for `history`."""
    found = _open.get(history)
    if found is None:
        return make()
    if name not in found:
        found[name] = make().persist(StorageLevel.DISK_ONLY)
    return found[name]
