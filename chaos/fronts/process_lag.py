"""How late a program is that measures nothing itself, from /proc.

    looks     ┬──┬──┬──┬──┬──┬     each LOOK_S: is the process stopped (SIGSTOP)?
    stopped   n  n  y  y  n  n
                 ├── lag ─┤ row    from the last look before the stop
    threads   ├──────── row ─┤     each COUNT_S: how long the thread that waited longest waited for a CPU

Who looks may itself not have run: then the looker's own timers were late. A stop that is shorter than LOOK_S may go
unseen; it is no longer than what "at once" may take.
"""

import os
from collections.abc import Callable, Collection
from pathlib import Path

from ...remoting.node.clock import Clock

PROC = Path("/proc")
LOOK_S, COUNT_S = 0.050, 0.250
"""Machine time."""
_WORTH_TELLING_MS = 10.0


async def keep_measuring(
    processes: Callable[[], Collection[int]], clock: Clock, tell: Callable[[int, float, float], object]
) -> None:
    """Call `tell` with process, lateness and the time that the lateness is of (RocketMQ milliseconds until now)
    whenever one of the processes was late, until cancelled."""
    scale = float(getattr(clock, "scale", 1.0))
    known: dict[int, ProcessLag] = {}
    while True:
        await clock.sleep(LOOK_S * scale)
        now_s = clock.monotonic_s() / scale
        known = {pid: known.get(pid) or ProcessLag(pid, now_s) for pid in processes()}
        for pid, each in known.items():
            if (lag_ms := each.look(now_s) * scale * 1000) >= _WORTH_TELLING_MS:
                tell(pid, lag_ms, max(lag_ms, COUNT_S * scale * 1000))


class ProcessLag:
    """Measures how late one process is; nothing if the process is gone. Times are the machine's seconds."""

    def __init__(self, pid: int, now_s: float) -> None:
        self._folder = PROC / str(pid)
        self._ran_s = self._counted_s = now_s
        self._was_stopped = False
        self._waited = self._waits()

    def look(self, now_s: float) -> float:
        """How long the process was stopped until now, or one of its threads has waited for a CPU since the last count;
        0 while the process is stopped, and between counts."""
        was_stopped, self._was_stopped = self._was_stopped, self._is_stopped()
        late_s = 0.0
        if not self._was_stopped:
            late_s, self._ran_s = now_s - self._ran_s if was_stopped else 0.0, now_s
        if (since_s := now_s - self._counted_s) >= COUNT_S:
            now, before = self._waits(), self._waited
            waited_s = max((waited - before.get(thread, 0) for thread, waited in now.items()), default=0) / 1e9
            late_s = max(late_s, min(waited_s, since_s))
            # The kernel leaves threads out of its list while others end, so that one may seem to be new.
            self._waited, self._counted_s = {**before, **now}, now_s
        return late_s

    def _is_stopped(self) -> bool:
        try:
            return (self._folder / "stat").read_bytes().rpartition(b") ")[2][:1] in b"Tt"
        except OSError:
            return False

    def _waits(self) -> dict[str, int]:
        found = {}
        try:
            for thread in os.listdir(self._folder / "task"):
                try:
                    text = (self._folder / "task" / thread / "schedstat").read_text(encoding="ascii")
                    found[thread] = int(text.split()[1])
                except (OSError, ValueError, IndexError):  # it has ended, or the kernel has no such count
                    continue
        except OSError:
            pass
        return found
