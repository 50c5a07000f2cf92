"""How long a program's threads waited for a processor, as the kernel counts it: lateness that no timer shows.

A thread that only sleeps is let run soon when it wakes; one that has much to do, as a JVM's has at its first calls,
gets its share, and is late by what it waited: /proc/PID/task/TID/schedstat, the second number, in nanoseconds.
"""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")


class RunDelay:
    """Of one process. `longest_ms` since it was asked last; nothing at first, and where the kernel does not count."""

    def __init__(self, pid: int, proc: Path = PROC) -> None:
        self._tasks = proc / str(pid) / "task"
        self._before: dict[str, int] | None = None

    def longest_ms(self) -> float:
        """Of the thread that waited longest, in milliseconds of the machine's time."""
        now = self._waited()
        before, self._before = self._before, now
        if before is None:
            return 0.0
        return max((waited - before.get(thread, 0) for thread, waited in now.items()), default=0) / 1e6

    def _waited(self) -> dict[str, int]:
        found = {}
        try:
            for thread in os.listdir(self._tasks):
                try:
                    text = (self._tasks / thread / "schedstat").read_text(encoding="ascii")
                    found[thread] = int(text.split()[1])
                except (OSError, ValueError, IndexError):  # it has ended, or the kernel has no such count
                    continue
        except OSError:
            pass
        return found
