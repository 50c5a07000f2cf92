"""How late a program is that measures nothing itself, from /proc.

    looks     ┬──┬──┬──┬──┬──┬     each LOOK_S: is the process stopped (SIGSTOP)?
    stopped   n  n  y  y  n  n
                 ├── lag ─┤ row    from the last look before the stop
    threads   ├──────── row ─┤     each COUNT_S: how long the thread that waited longest waited for a CPU

Who looks may itself not have run: then the looker's own timers were late. A stop that is shorter than LOOK_S may go
unseen; it is no longer than what "at once" may take.
"""

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...remoting.node.clock import Clock

PROC = Path("/proc")
LOOK_S, COUNT_S = 0.050, 0.250
"""Machine time."""
_WORTH_TELLING_MS = 10.0


async def keep_measuring(
    processes: Callable[[], Collection[int]], clock: Clock, tell: Callable[[int, dict[str, Any]], object]
) -> None:
    """Call `tell` with the process and the fields of a `timer_lag` row whenever one of the processes was late, until
    cancelled."""
    scale = float(getattr(clock, "scale", 1.0))
    known: dict[int, ProcessLag] = {}
    while True:
        await clock.sleep(LOOK_S * scale)
        now_s = clock.monotonic_s() / scale
        known = {pid: known.get(pid) or ProcessLag(pid, now_s) for pid in processes()}
        for pid, each in known.items():
            for f, late_s, of_s in each.look(now_s):
                if (lag_ms := late_s * scale * 1000) >= _WORTH_TELLING_MS:
                    tell(pid, {"f": f, "lag_ms": lag_ms, "duration_ms": of_s * scale * 1000})


class ProcessLag:
    """Measures how late one process is; nothing if the process is gone. Times are the machine's seconds."""

    def __init__(self, pid: int, now_s: float) -> None:
        self._folder = PROC / str(pid)
        self._ran_s = self._counted_s = now_s
        self._was_stopped = False
        self._waited = self._waits()

    def look(self, now_s: float) -> Iterator[tuple[str | None, float, float]]:
        """How late the process was in the time until now: f of `timer_lag`, lateness, length of that time."""
        was_stopped, self._was_stopped = self._was_stopped, self._is_stopped()
        if not self._was_stopped:
            if was_stopped:
                yield None, now_s - self._ran_s, now_s - self._ran_s
            self._ran_s = now_s
        if (since_s := now_s - self._counted_s) >= COUNT_S:
            now, before = self._waits(), self._waited
            waited_s = max((waited - before.get(thread, 0) for thread, waited in now.items()), default=0) / 1e9
            yield "waited", min(waited_s, since_s), since_s
            # The kernel leaves threads out of its list while others end, so that one may seem to be new.
            self._waited, self._counted_s = {**before, **now}, now_s

    def _is_stopped(self) -> bool:
        try:
            return (self._folder / "stat").read_bytes().rpartition(b") ")[2][:1] in (b"T", b"t")
        except OSError:
            return False

    def _waits(self) -> dict[str, int]:
        found = {}
        with suppress(OSError):
            for thread in os.listdir(self._folder / "task"):
                with suppress(OSError, ValueError, IndexError):  # it has ended, or the kernel has no such count
                    text = (self._folder / "task" / thread / "schedstat").read_text(encoding="ascii")
                    found[thread] = int(text.split()[1])
        return found
