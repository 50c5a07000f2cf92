"""A cluster's history while it grows: kept in parts, and, where checks are named, judged by Spark in the background.

    each STEP_S: read what was recorded ─► time (changes.py)? ─► a part ─► streaming query ─► verdicts that changed
    finish:      the rest of it is in parts ───────────────────────────────► verdicts of everything

Spark judges at the lowest priority in threads of its own, because the cluster's timers share the machine. Rows may come
at any time; the first verdicts follow when Spark is up. Far from every change parts are written rarely, and thinned
(segments.py): a cluster at rest takes some kilobytes a day, and of the machine's time next to none.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ..errors import HarnessError
from ..experiment.stage import StageClock
from ..verdict import Verdict
from .changes import Pace
from .segments import SegmentWriter, live_dir

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from .judge import LiveJudge

log = logging.getLogger("nemesrv.live")

STEP_S = 1.0
LOWEST_PRIORITY = 19

Say = Callable[[float, Verdict], None]
"""Told the run's time in milliseconds up to which it was judged, and a verdict that is not as it was."""


@dataclass(slots=True, kw_only=True)
class LiveWatch:
    """Context manager: while it is entered the history is kept and judged; `finish` afterwards.

    `quiet_after_ms`: so far from every change nothing but the worst lateness matters (changes.py). `spark` waits for
    the session, and ends with nobody's help; it is not called where there are no `checks`.
    """

    run_dir: Path
    clock: StageClock
    checks: Sequence[str]
    say: Say
    quiet_after_ms: float
    spark: Callable[[], SparkSession]
    pace: Pace = field(default_factory=Pace)
    _segments: SegmentWriter = field(init=False)
    _said: dict[str, tuple[str, int]] = field(default_factory=dict, init=False)
    _last: Sequence[Verdict] = field(default=(), init=False)
    _error: BaseException | None = field(default=None, init=False)
    _query: StreamingQuery | None = field(default=None, init=False)
    _judge: LiveJudge | None = field(default=None, init=False)
    _ends: threading.Event = field(default_factory=threading.Event, init=False)
    _threads: list[threading.Thread] = field(default_factory=list, init=False)
    _changed_ms: float = field(default=float("-inf"), init=False)

    def __post_init__(self) -> None:
        self._segments = SegmentWriter(self.run_dir, judged=bool(self.checks))

    def __enter__(self) -> Self:
        targets = [self._keep, *([self._begin_to_judge] if self.checks else [])]
        self._threads = [threading.Thread(target=self._run, args=(each,), daemon=True) for each in targets]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """No part is written any more until `finish`."""
        self._ends.set()
        if self._threads:
            self._threads[0].join()

    def finish(self) -> Sequence[Verdict]:
        """The verdicts of everything that was recorded; nobody records any more. HarnessError when the judge failed."""
        for thread in self._threads:
            thread.join()
        if self._error is not None:
            raise HarnessError(f"the history could not be judged while it grew: {_line(self._error)}")
        self._segments.finish()
        if self._judge is not None and self._query is not None:
            try:
                self._query.processAllAvailable()
                self._query.stop()
                self._on_verdicts(self._judge.judge(), self._segments.latest_ms)
            except Exception as exc:
                raise HarnessError(f"the history could not be judged to its end: {_line(exc)}") from exc
        shutil.rmtree(live_dir(self.run_dir), ignore_errors=True)
        return self._last

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as exc:
            log.error("the history is no longer %s: %s", "judged" if self.checks else "kept", _line(exc))
            log.info("where", exc_info=True)
            self._error = exc

    def _keep(self) -> None:
        while not self._ends.wait(STEP_S):
            self.step(time.monotonic())
            if self._query is not None and not self._query.isActive:
                raise HarnessError(_line(self._query.exception() or RuntimeError("the streaming query has ended")))

    def step(self, now_s: float) -> None:
        """Take in what was recorded, and write it into a part when it is time."""
        segments = self._segments
        until_ms = segments.read(self.clock.monotonic_s() * 1000, now_s)
        if segments.changed_ms > self._changed_ms:
            self._changed_ms = segments.changed_ms
            self.pace.changed(now_s)
        if not self.pace.due(now_s):
            return
        # Far from the last change rows stay back until no other can come that they are near to; lateness is thinned.
        quiet_from_ms = self._changed_ms + self.quiet_after_ms
        far_ms = max(quiet_from_ms, until_ms - self.quiet_after_ms)
        if until_ms <= quiet_from_ms:
            segments.emit(until_ms)
        elif far_ms > segments.watermark_ms:
            segments.emit(far_ms, thin_after_ms=quiet_from_ms)

    def _begin_to_judge(self) -> None:
        if sys.platform == "linux":  # there a niceness is the thread's own, and those that it makes inherit it
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)
        from .judge import LiveJudge, start_query

        spark, folder = self.spark(), live_dir(self.run_dir)
        self._judge = LiveJudge(spark, folder / "carry", self.checks)
        self._query = start_query(spark, self._segments.folder, folder, self._judge, self._on_verdicts)

    def _on_verdicts(self, verdicts: Sequence[Verdict], until_ms: float) -> None:
        self._last = verdicts
        for verdict in verdicts:
            now = (str(verdict.verdict), verdict.violations)
            if self._said.get(verdict.name) != now:
                self._said[verdict.name] = now
                self.say(until_ms, verdict)


def _line(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
