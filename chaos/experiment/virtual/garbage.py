"""Python's garbage collector, less often while a run on the virtual clock makes many small objects that stay.

Everything a run records stays in memory until its end, so each full collection looks at all of it again and finds
nothing. What there was before the run is not looked at (`gc.freeze`). Cycles are still collected, only later.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (50_000, 20, 100)
"""Ours for Python's 700, 10, 10: new objects before a collection, and collections before a longer one."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Within the block the collector comes at THRESHOLDS; after it as before."""
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    if not frozen:  # unfreezing would give back what somebody else has frozen
        gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if not frozen:
            gc.unfreeze()
