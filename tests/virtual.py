"""A virtual clock and an in-memory network for tests of nodes: hours pass in milliseconds, nothing sleeps.

`run(coro_fn)` runs in one process of the scheduler that whole runs have (chaos/experiment/virtual/loop.py), with their
clock and transports. The network is a simpler one than theirs: no links, no latency, and faults by address.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from nemesrv.chaos.experiment.virtual import loop
from nemesrv.chaos.experiment.virtual.loop import Scheduler
from nemesrv.chaos.experiment.virtual.network import MemoryTransport
from nemesrv.remoting.errors import ConnectError
from nemesrv.remoting.node.network import Address, Listener, ProtocolFactory

T = TypeVar("T")


class VirtualClock(loop.VirtualClock):
    """The time of the running ProcessLoop."""

    def __init__(self) -> None: ...

    @property
    def scheduler(self) -> Scheduler:  # type: ignore[override]
        return asyncio.get_running_loop().scheduler  # type: ignore[attr-defined,no-any-return]


class _Pipe:
    """One direction of a connection: `to` receives what is written, or the end, on the next turn of the loop."""

    def __init__(self, network: MemoryNetwork, to: MemoryTransport) -> None:
        self._network, self.to = network, to

    def put(self, data: bytes) -> None:
        self._network._carry(self.to, data)


class _MemoryListener:
    def __init__(self, network: MemoryNetwork, address: Address) -> None:
        self._network, self.address = network, address

    async def close(self) -> None:
        self._network.listening.pop(self.address, None)


class MemoryNetwork:
    """All nodes of a test share one. `hold(a)` keeps every byte to or from the listening address `a`; `refuse(a)`
    refuses dials. Ports are given out in order, so runs repeat exactly."""

    def __init__(self) -> None:
        self.listening: dict[Address, ProtocolFactory] = {}
        self.refused: set[Address] = set()
        self.held: dict[Address, list[Callable[[], None]]] = {}
        self.transports: list[MemoryTransport] = []
        self.dials: list[Address] = []
        self._next_port = 40000

    def _port(self) -> int:
        self._next_port += 1
        return self._next_port

    async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        self.dials.append(address)
        await asyncio.sleep(0)
        accept = self.listening.get(address)
        if accept is None or address in self.refused:
            raise ConnectError(f"connect to {address} failed: refused")
        local = Address("127.0.0.1", self._port())
        process: Any = asyncio.get_running_loop()
        ours, theirs = MemoryTransport(process, local, address), MemoryTransport(process, address, local)
        ours.out, theirs.out = _Pipe(self, theirs), _Pipe(self, ours)  # type: ignore[assignment]
        ours.protocol, theirs.protocol = factory(), accept()
        self.transports += [ours, theirs]
        theirs.protocol.connection_made(theirs)
        ours.protocol.connection_made(ours)
        return ours.protocol

    async def listen(self, address: Address, factory: ProtocolFactory) -> Listener:
        if address.port == 0:
            address = Address(address.host, self._port())
        if address in self.listening:
            raise OSError(98, f"address {address} already in use")
        self.listening[address] = factory
        return _MemoryListener(self, address)

    def _carry(self, to: MemoryTransport, data: bytes) -> None:
        for end in (to._remote, to._local):
            if end in self.held:
                self.held[end].append(lambda: to.receive(data))
                return
        asyncio.get_running_loop().call_soon(to.receive, data)

    def hold(self, address: Address) -> None:
        """From now on nothing to or from `address` arrives (a two-way partition)."""
        self.held.setdefault(address, [])

    def release(self, address: Address) -> None:
        """Everything held arrives, in order."""
        for action in self.held.pop(address, []):
            asyncio.get_running_loop().call_soon(action)

    def refuse(self, address: Address) -> None:
        """Dials to `address` are refused and its connections close: a crashed process."""
        self.refused.add(address)
        for transport in self.transports:
            if transport._local == address:
                transport.close()


def run(main: Callable[[], Awaitable[T]]) -> T:
    """The result of `main()` in one process on virtual time; an unfinished task at the end is cancelled."""
    scheduler = Scheduler()
    process = scheduler.process("test")

    async def body() -> T:
        return await main()

    task = process.create_task(body())
    try:
        _finish(scheduler, task)
        return task.result()
    finally:
        left = asyncio.all_tasks(process)
        for each in left:
            each.cancel()
        for each in left:
            _finish(scheduler, each)


def _finish(scheduler: Scheduler, task: asyncio.Task[Any]) -> None:
    try:
        scheduler.run_until_done(task, math.inf)
    except TimeoutError:
        raise RuntimeError("deadlock on the virtual clock: nothing is ready and no timer is set") from None
