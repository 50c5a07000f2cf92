"""Where the harness measures links: on a loop beside the nodes', over connections of its own.

bandwidth_proof, link_probes ─► Measuring: its clock, the way to a link's peer, who runs it, who records
                                   ├─ MeasuringThread: the machine's time, a thread of its own
                                   └─ a process of the virtual clock's (experiment/virtual/network.py)
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from ...remoting.node.clock import Clock, RealClock
from ...remoting.node.network import Address, Network
from ...remoting.node.recording import Recorder
from ..topology import Link


class Route(NamedTuple):
    """How the harness reaches a link's peer: over the link, and around it where that is possible."""

    network: Network
    over: Address
    around: Address | None = None


Elsewhere = Callable[..., Awaitable[Any]]
"""Of a link, a function that can be pickled, and its arguments: what it measures on the host of the link's dialler."""


class Started(Protocol):
    def cancel(self) -> object: ...


class Measuring(NamedTuple):
    """What a measurement of links is made with."""

    clock: Clock
    scale: float
    way: Callable[[Link], Route]
    """How to reach a link's peer."""
    spawn: Callable[[Coroutine[Any, Any, None]], Started]
    """Runs a coroutine."""
    note: Callable[..., Awaitable[None]]
    """Records a row from within one."""
    elsewhere: Elsewhere | None = None
    """Measures where the link's dialler is; None: that is here."""

    async def of(self, link: Link, function: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        """What `function(clock, way, *args)` measures of the link, dialled from where its node is."""
        if self.elsewhere is not None:
            return await self.elsewhere(link, function, *args)
        return await function(self.clock, self.way(link), *args)


class MeasuringThread:
    """Measurements on the machine's time, in a thread of their own. Context manager: leaving it gives up what is not
    done.

    `record` is called from that thread's helpers, where no event loop runs.
    """

    def __init__(
        self,
        clock: RealClock,
        way: Callable[[Link], Route],
        record: Recorder,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._clock, self._way, self._record, self._elsewhere = clock, way, record, elsewhere
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="measuring", daemon=True)

    def _spawn(self, measurement: Coroutine[Any, Any, None]) -> Started:
        return asyncio.run_coroutine_threadsafe(measurement, self._loop)

    async def _note(self, event: str, /, **fields: object) -> None:
        await asyncio.to_thread(self._record, event, **fields)

    def __enter__(self) -> Measuring:
        self._thread.start()
        return Measuring(self._clock, self._clock.scale, self._way, self._spawn, self._note, self._elsewhere)

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(timeout=10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()

    async def _end(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_default_executor()
