"""A cluster's history judged while it grows: Spark in the background, changes of verdicts said as they come.

Spark starts and judges at the lowest priority in threads of its own, because the cluster's timers share the machine.
Rows may come at any time from `start` on; the first verdicts follow when Spark is up.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...remoting.node.clock import RealClock
from ..errors import HarnessError
from ..verdict import Verdict
from .judge import LiveJudge
from .segments import SegmentWriter, live_dir
from .stream import start_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

log = logging.getLogger("nemesrv.live")

STEP_S = 1.0
JUDGE_EVERY_S = 10.0
"""Judging takes seconds of a processor, mostly to plan the queries; the cluster needs it too."""
LOWEST_PRIORITY = 19

Say = Callable[[float, Verdict], None]
"""Told the run's time in milliseconds up to which it was judged, and a verdict that is not as it was."""


class LiveWatch:
    """`start` it when the run folder is there, `finish` it when nobody records any more, `close` it in any case."""

    def __init__(self, run_dir: Path, clock: RealClock, checks: Sequence[str], say: Say) -> None:
        self._run_dir, self._clock, self._checks, self._say = run_dir, clock, tuple(checks), say
        self._segments = SegmentWriter(run_dir)
        self._said: dict[str, tuple[str, int]] = {}
        self._last: Sequence[Verdict] = ()
        self._error: BaseException | None = None
        self._spark: SparkSession | None = None
        self._query: StreamingQuery | None = None
        self._judge: LiveJudge | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="live-watch", daemon=True)

    def start(self) -> None:
        """Begin. HarnessError at once when there is no Java."""
        from ..preflight import require_java

        require_java()
        _ = self._segments.folder
        self._thread.start()

    def finish(self) -> list[Verdict]:
        """The verdicts of everything that was recorded. HarnessError when the judge itself could not go on."""
        self._ends.set()
        self._thread.join()
        if self._error is not None:
            raise HarnessError(f"the history could not be judged while it grew: {_line(self._error)}")
        assert self._query is not None
        self._segments.finish()
        assert self._judge is not None
        try:
            self._query.processAllAvailable()
            self._query.stop()
            self._on_verdicts(self._judge.judge())
        except Exception as exc:
            raise HarnessError(f"the history could not be judged to its end: {_line(exc)}") from exc
        return list(self._last)

    def close(self) -> None:
        """No query, thread or JVM is left. May be called at any moment, and twice."""
        from ..spark.session import stop

        self._ends.set()
        if self._thread.is_alive():
            self._thread.join()
        spark, self._spark = self._spark, None
        if spark is not None:
            if self._query is not None and self._query.isActive:
                self._query.stop()
            stop(spark)

    def _run(self) -> None:
        try:
            if sys.platform == "linux":  # there a niceness is the thread's own, and the JVM inherits it
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)
            self._begin()
            while not self._ends.wait(STEP_S):
                self._segments.step(self._clock.monotonic_s() * 1000, time.monotonic())
                assert self._query is not None
                if not self._query.isActive:
                    raise HarnessError(_line(self._query.exception() or RuntimeError("the streaming query has ended")))
        except BaseException as exc:
            log.error("the history is no longer judged: %s", _line(exc))
            log.info("where", exc_info=True)
            self._error = exc

    def _begin(self) -> None:
        from ..spark.session import session

        folder = live_dir(self._run_dir)
        self._spark = session()
        self._judge = LiveJudge(self._spark, folder / "carry", self._checks)
        self._query = start_query(
            self._spark, self._segments.folder, folder, self._judge, self._on_verdicts, judge_every_s=JUDGE_EVERY_S
        )

    def _on_verdicts(self, verdicts: Sequence[Verdict]) -> None:
        self._last = verdicts
        for verdict in verdicts:
            now = (str(verdict.verdict), verdict.violations)
            if self._said.get(verdict.name) != now:
                self._said[verdict.name] = now
                self._say(self._segments.watermark_ms, verdict)


def _line(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
