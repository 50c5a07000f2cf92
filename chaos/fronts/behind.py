"""What passed is looked at behind the passing: bytes go on at once, and are decoded when the loop has no more to pass.

    loop: a's bytes ─► server   b's bytes ─► server   c's bytes ─► client   │ decode a, b, c   │ wait for more
          └─────── each as soon as it came ─────────────────────────────┘     └─ see, in order ─┘

With many connections nobody's bytes wait until others' frames have been decoded. One queue an event loop, so that what
several fronts see stays in the order of time; whoever has something to tell at once has the queue emptied first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from weakref import WeakKeyDictionary

Look = Callable[[bytes, float], None]
"""Given bytes that have been passed on, and when they came."""


class Behind:
    """The queue of one event loop."""

    __slots__ = ("_call_soon", "_is_looking", "_is_scheduled", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._call_soon = loop.call_soon
        self._waiting: deque[tuple[Look, bytes, float]] = deque()
        self._is_scheduled = self._is_looking = False

    def add(self, look: Look, data: bytes, at_ms: float) -> None:
        """`look` is called soon, after all that were added before."""
        self._waiting.append((look, data, at_ms))
        if not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._scheduled)

    def _scheduled(self) -> None:
        self._is_scheduled = False
        self.look()

    def look(self) -> None:
        """Nothing waits on return, unless it is called by what is being looked at."""
        if self._is_looking:
            return
        self._is_looking = True
        waiting = self._waiting
        try:
            while waiting:
                look, data, at_ms = waiting.popleft()
                look(data, at_ms)
        finally:
            self._is_looking = False


_OF_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, Behind] = WeakKeyDictionary()


def behind() -> Behind:
    """The running loop's."""
    loop = asyncio.get_running_loop()
    found = _OF_LOOP.get(loop)
    if found is None:
        found = _OF_LOOP[loop] = Behind(loop)
    return found
