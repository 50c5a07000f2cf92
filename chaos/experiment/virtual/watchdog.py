"""The end of a callback that never returns: virtual time would stand still, and the run with it, without a word.

A thread looks now and then which callback the scheduler is in, and how much processor time its thread has used since
that one began. It decides nothing but that such a node is stopped: a history without one does not depend on it.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .loop import Hangs, Scheduler

HANGS_CPU_S = 20.0
"""A node's callback takes milliseconds; the longest seen, a registration of 20,000 topics, took less than a second."""
LOOK_S = 1.0


@contextmanager
def watched(scheduler: Scheduler) -> Iterator[None]:
    """Within the block `Hangs` is raised in a callback that has used HANGS_CPU_S of this thread's processor time."""
    ended = threading.Event()
    ident = threading.get_ident()
    args = (scheduler, ident, time.pthread_getcpuclockid(ident), ended)
    thread = threading.Thread(target=_watch, args=args, name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _watch(scheduler: Scheduler, ident: int, cpu_clock: int, ended: threading.Event) -> None:
    seen, since_s = None, 0.0
    while not ended.wait(min(LOOK_S, HANGS_CPU_S / 4)):
        handle, used_s = scheduler.running, time.clock_gettime(cpu_clock)
        if handle is None or handle is not seen:
            seen, since_s = handle, used_s
        elif used_s - since_s >= HANGS_CPU_S and scheduler.running is seen:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(Hangs))
            since_s = used_s
