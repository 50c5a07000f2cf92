"""A Spark cluster whose executors are gone: a line says so, and the wait for another has an end. A standalone master
without a worker lets every query wait for ever, and says nothing."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import HarnessError
from .settings import is_local

PATIENCE_S = 10.0
"""An executor that starts within that is nobody's concern."""
LIMIT_S = 180.0
"""So long a query waits for an executor."""
_LOOK_S = 2.0


@contextmanager
def awaited(session: Any, say: Callable[[str], None]) -> Iterator[None]:
    """Meanwhile `say` is told for how long there has been no executor. HarnessError if there was none for LIMIT_S.
    Nothing is looked at where Spark runs in this process."""
    context = session.sparkContext
    if is_local(context.master):
        yield
        return
    wait = ExecutorWait(context, say, time.monotonic)
    thread = threading.Thread(target=wait.go_on, name="executors", daemon=True)
    thread.start()
    try:
        yield
    finally:
        wait.ended.set()
        thread.join(_LOOK_S)
        if wait.given_up:
            raise HarnessError(wait.sentence)


class ExecutorWait:
    """Since when the cluster has no executor."""

    def __init__(self, context: Any, say: Callable[[str], None], now_s: Callable[[], float]) -> None:
        self._context, self._say, self._now_s = context, say, now_s
        self._since_s: float | None = None
        self.ended = threading.Event()
        self.given_up = False

    @property
    def sentence(self) -> str:
        master = self._context.master
        return f"{master} had no executor for {LIMIT_S:.0f} s: start a worker of it, or judge without --spark-master"

    def go_on(self) -> None:
        """Look again and again, until it has ended or the JVM is gone."""
        while not self.ended.wait(_LOOK_S):
            try:
                self.look()
            except Exception:  # the JVM has ended: who waits for its answer is told
                return

    def look(self) -> None:
        """Say that there is none, and end every query when that was so for LIMIT_S."""
        if self._executors():
            self._since_s = None
            return
        now_s = self._now_s()
        self._since_s = now_s if self._since_s is None else self._since_s
        lasted_s = now_s - self._since_s
        if lasted_s >= LIMIT_S:
            self.given_up = True  # the next query, too, would wait
            self._context.cancelAllJobs()
        elif lasted_s >= PATIENCE_S:
            self._say(f"no executor for {lasted_s:.0f} s; given up after {LIMIT_S:.0f} s")

    def _executors(self) -> int:
        """The driver's own block manager is none."""
        return int(self._context._jsc.sc().getExecutorMemoryStatus().size()) - 1
