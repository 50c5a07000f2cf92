"""How inexact the rows of a server seen from outside are, as `timer_lag` rows of its node: the checks' tolerance.

answered ── 250 ms ── answered         a poll that took 30 ms: the server, or who asks it, was 30 ms late
   old value │    │ new value          a change between two moments: the row has the middle, ± half of what lies between
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..fronts.rows import Row

EVERY_MS = 1_000.0
"""One row for the polls of so long."""
UNTIL_READ_MS = 250.0
"""How old a line of a log may be when it is read, of the machine's time: it was written, and the file looked at then;
where nobody has looked for longer, as old as that."""


class Inexact:
    def __init__(self, put: Callable[[Row], None], scale: float = 1.0) -> None:
        self._put, self._until_read_ms = put, UNTIL_READ_MS * scale
        self._looked_ms = -math.inf
        self._since_ms: float | None = None
        self._worst_ms = 0.0

    def polled(self, began_ms: float, ended_ms: float) -> None:
        """A poll took so long, answered or not."""
        if self._since_ms is None:
            self._since_ms = began_ms
        self._worst_ms = max(self._worst_ms, ended_ms - began_ms)
        if ended_ms - self._since_ms >= EVERY_MS:
            self.flush(ended_ms)

    def flush(self, now_ms: float) -> None:
        if self._since_ms is not None and now_ms > self._since_ms:
            self._say(now_ms, self._worst_ms, now_ms - self._since_ms)
        self._since_ms, self._worst_ms = None, 0.0

    def looked(self, now_ms: float) -> None:
        """Its logs have been read until now."""
        self._looked_ms = now_ms

    def written_ms(self, read_ms: float) -> float:
        """The earliest moment of which a line is that was read then."""
        return min(max(self._looked_ms, read_ms - EVERY_MS * 60), read_ms - self._until_read_ms)

    def between(self, from_ms: float, to_ms: float) -> float:
        """The moment that stands for one that lies somewhere in [from_ms, to_ms]."""
        if to_ms > from_ms:
            self._say(to_ms, (to_ms - from_ms) / 2, to_ms - from_ms)
        return (from_ms + to_ms) / 2

    def _say(self, at_ms: float, lag_ms: float, duration_ms: float) -> None:
        self._put(Row(at_ms, "timer_lag", {"lag_ms": lag_ms, "duration_ms": duration_ms}))
