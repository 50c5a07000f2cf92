"""Writes a growing history in parts, and judges it repeatedly if checks are named.

    each STEP_S: read what was recorded ─► time (changes.py)? ─► a part ─► all parts judged ─► verdicts that changed

Each judging covers the whole history so far. A history of more than ROWS_MAX rows is judged at the end only, because
judging would slow down the cluster on the same machine. Long after the last change, parts are written rarely, with
fewer rows (segments.py). A cluster without changes writes some kilobytes a day.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...actors.watch import Repeating
from ..checks.plain.verdicts import in_memory, verdicts_of
from ..experiment.stage import StageClock
from ..history.files import part_files
from ..history.rows import table_in
from ..verdict import Verdict
from .changes import News, Pace
from .segments import SegmentWriter

log = logging.getLogger("nemesrv.live")

STEP_S = 1.0
ROWS_MAX = 1_000_000
"""Judging this many rows takes 4 s and 1.1 GB."""

Say = Callable[[float, Verdict], None]
"""Called with the run time in milliseconds up to which it was judged, and with each verdict that changed."""


@dataclass(kw_only=True)
class LiveWatch(Repeating):
    """Context manager that writes and judges a growing history in a thread. This long (`quiet_after_ms`) after the last
    change, only the largest lateness of timers is still written (changes.py)."""

    run_dir: Path
    clock: StageClock
    checks: Sequence[str]
    say: Say
    quiet_after_ms: float
    pace: Pace = field(default_factory=Pace)
    _segments: SegmentWriter = field(init=False)
    _news: News = field(default_factory=News, init=False)
    _is_too_large: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._segments = SegmentWriter(self.run_dir)
        super().__init__(self._keep, STEP_S, "live", limit_s=None)

    def _keep(self) -> bool:
        """Make a step. Returns whether there may be another."""
        try:
            self.step(time.monotonic())
        except Exception as exc:
            log.error("the history is judged at the end only: %s", exc)
            log.info("where", exc_info=True)
            return False
        return True

    def step(self, now_s: float) -> None:
        """Read the new rows. If a judging is due, write the new rows into a part and judge the history."""
        segments = self._segments
        until_ms = segments.read(self.clock.monotonic_s() * 1000, now_s)
        if not self.pace.due(now_s, segments.changed_ms):
            return
        # Far from the last change rows stay back until no other can come that they are near to; lateness is thinned.
        quiet_from_ms = segments.changed_ms + self.quiet_after_ms
        far_ms = max(quiet_from_ms, until_ms - self.quiet_after_ms)
        if until_ms <= quiet_from_ms:
            segments.emit(until_ms)
        elif far_ms > segments.watermark_ms:
            segments.emit(far_ms, thin_after_ms=quiet_from_ms)
        if self.checks and segments.rows:
            self._judge()

    def _judge(self) -> None:
        if self._segments.rows <= ROWS_MAX:
            table = table_in(part_files(self.run_dir))
            self.hear(verdicts_of(*in_memory(table), self.checks), self._segments.watermark_ms)
        elif not self._is_too_large:
            self._is_too_large = True
            log.warning("more than %s rows: they are judged at the end only", f"{ROWS_MAX:,}")

    def hear(self, verdicts: Sequence[Verdict], until_ms: float) -> None:
        for verdict in self._news.among(verdicts):
            self.say(until_ms, verdict)
