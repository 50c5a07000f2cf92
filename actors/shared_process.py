"""Several nodes in one process, each of which can end as a killed process does while the others go on.

    Ray actor SharedProcess ── one event loop
      ├─ NodeActor producer-0     its own context (contextvars), by which its tasks are known, its own TcpNetwork,
      ├─ NodeActor producer-1     clock, log, recorder file, incarnation
      └─ …

`die` of one: what it records, sends and logs from then on goes nowhere, its sockets are closed with what it had not
written lost, so that the kernel ends each with FIN, or RST where bytes were unread, and its tasks are cancelled. To its
peers that is a killed process. What differs: its last 20 ms of rows are not lost, it ends when the loop that it shares
comes to it, and its memory stays the process's.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import logging
import os
import time
import weakref
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

from ..remoting.node.clock import Clock, Timer
from ..remoting.node.network import TcpNetwork
from .actor import LOG_FORMAT, Listening, NodeActor, NodeSpec, Surroundings, take_over_process

log = logging.getLogger("nemesrv.shared_process")

END_LIMIT_S = 4.0
"""Within this all tasks of a node must have ended, else the process is no place for its next life."""


class NodeLife:
    """One life of one node in the process: what was begun in its name, and whether it is over."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.over = False
        self.context = contextvars.Context()
        self.context.run(_LIFE.set, self)
        self._tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()
        self._transports: weakref.WeakSet[asyncio.BaseTransport] = weakref.WeakSet()

    def takes(self, task: asyncio.Task[Any]) -> None:
        """The task is of this life, and ends with it."""
        self._tasks.add(task)
        if self.over:
            task.cancel()

    def opened(self, transport: asyncio.BaseTransport) -> None:
        """The connection is of this life, and ends with it."""
        self._transports.add(transport)
        if self.over and isinstance(transport, asyncio.WriteTransport):
            transport.abort()

    async def end(self) -> None:
        """Nothing of it is open, and nothing of it runs any more. TimeoutError where one of its tasks does not end."""
        self.over = True
        for transport in list(self._transports):
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()
        deadline_s = time.monotonic() + END_LIMIT_S
        while running := [task for task in self._tasks if not task.done()]:
            for task in running:
                task.cancel()
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError(f"{len(running)} tasks of {self.name} do not end, e.g. {running[0]!r}")
            await asyncio.wait(running, timeout=min(left_s, 0.1))
        await asyncio.sleep(0)  # an aborted transport closes its socket in the loop's next turn


_LIFE: contextvars.ContextVar[NodeLife | None] = contextvars.ContextVar("life", default=None)


def made_task(
    loop: asyncio.AbstractEventLoop, work: Any, *, context: contextvars.Context | None = None, **how: Any
) -> asyncio.Task[Any]:
    """A loop's task factory: whatever a node begins is of its life."""
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, context=context, **how)
    life = _LIFE.get() if context is None else context.get(_LIFE)
    if life is not None:
        life.takes(task)
    return task


class _Network(TcpNetwork):
    """Real sockets that end with the life."""

    def __init__(self, spec: NodeSpec, life: NodeLife) -> None:
        super().__init__(spec.links)
        self._life = life

    def opened(self, transport: asyncio.BaseTransport) -> None:
        self._life.opened(transport)


class _Clock:
    """The node's clock, whose timers end with the life."""

    def __init__(self, clock: Clock, life: NodeLife) -> None:
        self._clock, self._life = clock, life
        self.scale = float(getattr(clock, "scale", 1.0))
        self.now_ms, self.monotonic_s = clock.now_ms, clock.monotonic_s

    async def sleep(self, delay_s: float) -> None:
        await self._clock.sleep(delay_s)

    def call_later(self, delay_s: float, callback: Callable[..., object], *args: object) -> Timer:
        return self._clock.call_later(delay_s, self._call, callback, args)

    def _call(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        if not self._life.over:
            callback(*args)

    def timeout(self, delay_s: float | None) -> AbstractAsyncContextManager[object]:
        return self._clock.timeout(delay_s)


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    actor: NodeActor
    life: NodeLife
    log: logging.Logger


class SharedProcess:
    """The actor around all of them; `ask` is what NodeActor's methods are for a node with a process of its own."""

    def __init__(
        self, name: str, log_file: Path | None = None, niceness: int | None = None, *, own_process: bool = False
    ) -> None:
        if own_process:
            take_over_process(log_file, niceness)
        self._name = name
        self._parts: dict[str, _Part] = {}
        self._has_loop = False

    async def listen(self, spec: NodeSpec) -> Listening:
        """Make the node, a new life of it where there was one, and let it bind."""
        before = self._parts.get(spec.name)
        if before is not None and not before.life.over:
            raise RuntimeError(f"{spec.name} is in {self._name} already")
        if not self._has_loop:
            self._has_loop = True
            loop = asyncio.get_running_loop()
            loop.set_task_factory(made_task)
            loop.set_exception_handler(self._log_unhandled)
        life = NodeLife(spec.name)
        own_log = _logger(spec)
        around = Surroundings(network=_Network(spec, life), log=own_log, pid=os.getpid(), shares_loop=True)
        actor = NodeActor(dataclasses.replace(spec, clock=_Clock(spec.clock, life)), surroundings=around)
        self._parts[spec.name] = _Part(actor, life, own_log)
        listening: Listening = await self.ask(spec.name, "listen")
        return listening

    async def ask(self, name: str, method: str, *args: Any) -> Any:
        """What that method of the node's own NodeActor returns."""
        part = self._parts[name]
        loop = asyncio.get_running_loop()
        work = getattr(part.actor, method)(*args)
        return await loop.create_task(work, context=part.life.context.copy())

    async def die(self, name: str) -> None:
        """Nothing is left of the node but the memory that it had, and the rows that it recorded."""
        part = self._parts[name]
        part.actor.die()
        await part.life.end()
        for handler in list(part.log.handlers):
            part.log.removeHandler(handler)
            handler.close()
        self._parts[name] = dataclasses.replace(part, actor=_NOBODY)

    def _log_unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        life = _LIFE.get()
        if life is None or not life.over:
            own = log if life is None else logging.getLogger(f"nemesrv.{life.name}")
            own.error("%s", context.get("message"), exc_info=context.get("exception"))


class _Nobody:
    """Replaces a node that has ended: each call is a RuntimeError."""

    def __getattr__(self, method: str) -> Any:
        raise RuntimeError(f"the node does not run, and cannot {method}: its life is over")


_NOBODY: Any = _Nobody()


def _logger(spec: NodeSpec) -> logging.Logger:
    """The node's own log, in its own file."""
    own = logging.getLogger(f"nemesrv.{spec.name}")
    if spec.log_file is not None:
        spec.log_file.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(spec.log_file, encoding="utf-8", delay=True)
        handler.setFormatter(logging.Formatter(LOG_FORMAT))
        own.addHandler(handler)
        own.setLevel(logging.INFO)
        own.propagate = False
    return own


class OneOfMany:
    """A node of a shared process, asked as the Ray actor of a node with a process of its own is."""

    def __init__(self, process: Any, spec: NodeSpec) -> None:
        name = spec.name
        self.process = process
        self.listen = _Method(lambda: process.listen.remote(spec))
        self.die = _Method(lambda: process.die.remote(name))
        self.start, self.stop, self.call, self.set_links = (
            _Method(partial(process.ask.remote, name, method)) for method in ("start", "stop", "call", "set_links")
        )


@dataclasses.dataclass(frozen=True, slots=True)
class _Method:
    remote: Callable[..., Any]
