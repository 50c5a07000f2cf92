"""Virtual time: one scheduler for all nodes, and one event loop per node in place of a process per node.

    Scheduler.run(until)      ready callbacks, in the order in which they became ready ──► then the next timer's time
      ├─ ProcessLoop ns-0     runs
      ├─ ProcessLoop broker-a paused: due callbacks wait for `resume`: first incoming data, then timers
      └─ ProcessLoop ...      dead: its callbacks are dropped

No callback depends on the machine's speed: at equal times callbacks run in the order of scheduling. A ProcessLoop has
asyncio's timers, tasks and futures, but no sockets, threads, signals or subprocesses, which nodes must not use
(remoting/node/node.py).
"""

from __future__ import annotations

import asyncio
import ctypes
import heapq
import itertools
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from contextvars import Context, copy_context
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ....remoting.node.clock import Timer

Callback = Callable[..., object]
SPIN_TURNS = 1_000_000
"""Most callbacks within SPIN_S of virtual time. More means that a node never waits."""
SPIN_S = 0.001
BLAME_TURNS = 1_000
"""Further callbacks, used to find out which node it is."""
WALL_ORIGIN_MS = 1_700_000_000_000
"""A node's wall clock at the origin: always the same, so that ids repeat."""

_set_running_loop = asyncio._set_running_loop


class Hangs(KeyboardInterrupt):
    """Raised inside a callback that does not return, to end the callback."""


class _State(Enum):
    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"


_RUNNING, _DEAD = _State.RUNNING, _State.DEAD


class Scheduled:
    """A callback of one process's loop. `came_in`: the callback brings data from outside, like a read from a socket."""

    __slots__ = ("args", "callback", "came_in", "context", "done", "loop", "when_s")

    def __init__(
        self, loop: ProcessLoop, when_s: float, callback: Callback, args: tuple[Any, ...], context: Context | None
    ) -> None:
        self.loop, self.when_s, self.callback, self.args = loop, when_s, callback, args
        self.context = context if context is not None else copy_context()
        self.came_in = False
        self.done = False

    def cancel(self) -> None:
        self.done = True
        self.args = ()

    def cancelled(self) -> bool:
        return self.done


class Scheduler:
    """Runs the loops of one experiment's processes on a common virtual time, one callback at a time, and only within
    `run`."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._ready: deque[Scheduled] = deque()
        self._timers: list[tuple[float, int, Scheduled]] = []
        self._asked = itertools.count(1)
        self.running: Scheduled | None = None
        """The callback that runs now."""
        self._stopping = False
        self.spin_turns = SPIN_TURNS
        self.on_spin: Callable[[str, str], None] = lambda _name, _why: None
        """Told the name of a node that was stopped for good because it never waits, and a sentence."""

    def process(self, name: str, log: logging.Logger | None = None) -> ProcessLoop:
        return ProcessLoop(self, name, log or logging.getLogger(f"nemesrv.{name}"))  # type: ignore[abstract]

    def run(self, until_s: float) -> bool:
        """Run all callbacks up to the virtual time `until_s`. Returns True if `stop` ended the run sooner."""
        ready, timers, heappop = self._ready, self._timers, heapq.heappop
        running: ProcessLoop | None = None
        turns, until_turn, spin_end_s = 0, self.spin_turns, self.now_s + SPIN_S
        blamed: Counter[ProcessLoop] = Counter()
        before = asyncio._get_running_loop()
        self._stopping = False
        try:
            while not self._stopping:
                if ready:
                    handle = ready.popleft()
                elif timers and timers[0][0] <= until_s:
                    when_s, _, handle = heappop(timers)
                    if handle.done:
                        continue
                    if when_s > self.now_s:
                        self.now_s = when_s
                        if when_s > spin_end_s:
                            until_turn, spin_end_s = turns + self.spin_turns, when_s + SPIN_S
                else:
                    self.now_s = max(self.now_s, until_s)
                    return False
                if handle.done:
                    continue
                loop = handle.loop
                if loop.state is not _RUNNING:
                    loop._put_off(handle)
                    continue
                if loop is not running:
                    _set_running_loop(loop)
                    running = loop
                handle.done = True
                turns += 1
                if turns > until_turn:
                    blamed[loop] += 1
                    if turns >= until_turn + BLAME_TURNS:
                        self._end_spin(blamed)
                        blamed.clear()
                        until_turn = turns + self.spin_turns
                self.running = handle
                try:
                    handle.context.run(handle.callback, *handle.args)
                except Hangs:
                    self._end(loop, "one callback does not return")
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as exc:
                    loop.call_exception_handler({"message": f"callback {handle.callback!r} failed", "exception": exc})
            return True
        finally:
            self.running = None
            _set_running_loop(before)

    def _end_spin(self, blamed: Counter[ProcessLoop]) -> None:
        """End the loop that uses the most processor time. To its peers a node that was ended in this way hangs."""
        ((loop, _),) = blamed.most_common(1)
        self._end(loop, f"{self.spin_turns:,} callbacks within {1000 * SPIN_S:g} ms")

    def _end(self, loop: ProcessLoop, why: str) -> None:
        loop.pause()
        self.on_spin(loop.name, f"{loop.name} never yields: {why} at {self.now_s:.3f} s; it was stopped for good")

    def stop(self) -> None:
        self._stopping = True

    def run_until_done(self, future: asyncio.Future[Any], limit_s: float) -> None:
        """Run until `future` is done. Raises TimeoutError after `limit_s` of virtual time."""
        if not future.done():
            future.add_done_callback(lambda _: self.stop(), context=Context())
            self.run(self.now_s + limit_s)
        if not future.done():
            raise TimeoutError(f"not within {limit_s:g} s of virtual time")


class ProcessLoop(asyncio.AbstractEventLoop):
    """The event loop of one process on virtual time, which can be paused as by SIGSTOP, and killed."""

    def __init__(self, scheduler: Scheduler, name: str, log: logging.Logger) -> None:
        self.scheduler, self.name, self.log = scheduler, name, log
        self.state = _State.RUNNING
        self._came_in: list[Scheduled] = []
        self._overdue: list[Scheduled] = []
        self._soon = scheduler._ready.append
        self._timers, self._asked = scheduler._timers, scheduler._asked
        self._on_error: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None = None
        self._unfinished: list[asyncio.Task[Any]] = []

    def __repr__(self) -> str:
        return f"<{self.name}, {self.state.value}>"

    # -- what is done to a process

    def pause(self) -> None:
        """Run no callbacks of this process until `resume`; incoming data wait."""
        if self.state is _State.RUNNING:
            self.state = _State.PAUSED

    def resume(self) -> None:
        """End the pause: run first the callbacks of incoming data, then overdue timers."""
        if self.state is _State.PAUSED:
            self.state = _State.RUNNING
            put_off, self._came_in, self._overdue = self._came_in + self._overdue, [], []
            for handle in put_off:
                self._soon(handle)

    def kill(self) -> None:
        """Never run this process again. Unfinished tasks are kept until `bury`, because a discarded coroutine runs its
        `finally` blocks at an unpredictable moment."""
        if self.state is not _State.DEAD:
            self.state = _State.DEAD
            self._came_in, self._overdue = [], []
            self._unfinished = list(asyncio.all_tasks(self))

    def bury(self) -> None:
        """End the remaining tasks of a dead process, after its files and connections were closed."""
        unfinished, self._unfinished = self._unfinished, []
        before = asyncio._get_running_loop()
        _set_running_loop(self)
        try:
            for task in unfinished:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                coroutine = task.get_coro()
                with suppress(Exception):  # one that awaits in its `finally` cannot: nobody runs it any more
                    if coroutine is not None:
                        coroutine.close()
        finally:
            _set_running_loop(before)

    def _put_off(self, handle: Scheduled) -> None:
        if self.state is _State.PAUSED:
            (self._came_in if handle.came_in else self._overdue).append(handle)

    def came_in(self, when_s: float, callback: Callback, *args: Any) -> None:
        handle = Scheduled(self, when_s, callback, args, _EMPTY)
        handle.came_in = True
        heapq.heappush(self._timers, (when_s, next(self._asked), handle))

    # -- asyncio's side

    def time(self) -> float:
        return self.scheduler.now_s

    def call_soon(self, callback: Callback, *args: Any, context: Context | None = None) -> Scheduled:  # type: ignore[override]
        handle = Scheduled(self, self.scheduler.now_s, callback, args, context)
        if self.state is not _DEAD:
            self._soon(handle)
        return handle

    def call_at(self, when: float, callback: Callback, *args: Any, context: Context | None = None) -> Scheduled:  # type: ignore[override]
        handle = Scheduled(self, when, callback, args, context)
        if self.state is not _DEAD:
            heapq.heappush(self._timers, (when, next(self._asked), handle))
        return handle

    def call_later(self, delay: float, callback: Callback, *args: Any, context: Context | None = None) -> Scheduled:  # type: ignore[override]
        handle = Scheduled(self, self.scheduler.now_s + delay, callback, args, context)
        if self.state is not _DEAD:
            heapq.heappush(self._timers, (handle.when_s, next(self._asked), handle))
        return handle

    def call_soon_threadsafe(self, callback: Callback, *args: Any, context: Context | None = None) -> Scheduled:  # type: ignore[override]
        return self.call_soon(callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self.state is _State.RUNNING

    def is_closed(self) -> bool:
        return self.state is _State.DEAD

    def set_exception_handler(self, handler: Any) -> None:
        self._on_error = handler

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self.state is _State.DEAD:
            return
        if self._on_error is not None:
            self._on_error(self, context)
        else:
            self.log.error("%s", context.get("message"), exc_info=context.get("exception"))


_EMPTY = Context()


@dataclass(frozen=True, slots=True)
class VirtualClock:
    scheduler: Scheduler
    scale: float = 1.0

    def monotonic_s(self) -> float:
        return self.scheduler.now_s

    def now_ms(self) -> int:
        return WALL_ORIGIN_MS + int(self.scheduler.now_s * 1000)

    def sleep(self, delay_s: float) -> Coroutine[Any, Any, None]:
        return asyncio.sleep(delay_s)

    def call_later(self, delay_s: float, callback: Callback, *args: object) -> Timer:
        return asyncio.get_running_loop().call_later(delay_s, callback, *args)

    def timeout(self, delay_s: float | None) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(delay_s)


HANGS_CPU_S = 20.0
"""Limit for one callback in CPU seconds. Callbacks take milliseconds; the longest seen, a registration of 20,000
topics, took less than a second."""

LOOK_S = 1.0


@contextmanager
def watched(scheduler: Scheduler) -> Iterator[None]:
    """Within the block, raise `Hangs` in a callback that has used HANGS_CPU_S of processor time. Without `watched`, a
    node that never waits would stop virtual time, and the run would hang without a message. A thread checks regularly
    which callback is running, and for how long.
    """
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
