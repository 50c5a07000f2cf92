"""A virtual clock and an in-memory network for tests of nodes: hours pass in milliseconds, nothing sleeps.

`run(coro_fn)` runs in one process of the scheduler that whole runs have (chaos/experiment/virtual/loop.py). The network
is a simpler one than theirs: no links, no latency, and faults by address.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from nemesrv.chaos.experiment.virtual.loop import WALL_ORIGIN_MS, Scheduler
from nemesrv.remoting.errors import ConnectError
from nemesrv.remoting.node.clock import Timer
from nemesrv.remoting.node.network import Address, Listener, ProtocolFactory

T = TypeVar("T")


class VirtualClock:
    """The time of the running ProcessLoop; origin at 0, wall clock at a fixed date."""

    ORIGIN_MS = WALL_ORIGIN_MS

    def monotonic_s(self) -> float:
        return asyncio.get_running_loop().time()

    def now_ms(self) -> int:
        return self.ORIGIN_MS + int(self.monotonic_s() * 1000)

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)

    def call_later(self, delay_s: float, callback: Callable[..., object], *args: object) -> Timer:
        return asyncio.get_running_loop().call_later(delay_s, callback, *args)

    def timeout(self, delay_s: float | None) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(delay_s)


class _MemoryTransport(asyncio.Transport):
    """One end of an in-memory connection. `peer` receives what is written, on the next turn of the loop."""

    def __init__(self, network: MemoryNetwork, local: Address, remote: Address) -> None:
        super().__init__()
        self._network, self._local, self._remote = network, local, remote
        self.peer: _MemoryTransport | None = None
        self.protocol: Any = None
        self._closing = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": tuple(self._remote), "sockname": tuple(self._local)}.get(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol

    def is_closing(self) -> bool:
        return self._closing

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...

    def write(self, data: Any) -> None:
        if self._closing or not data:
            return
        self._network._carry(self, bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def _deliver(self, data: bytes) -> None:
        if not self._closing:
            self.protocol.data_received(data)

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        loop = asyncio.get_running_loop()
        loop.call_soon(self.protocol.connection_lost, None)
        if self.peer is not None:
            self._network._carry_close(self)

    def abort(self) -> None:
        self.close()

    def _peer_closed(self) -> None:
        if not self._closing:
            self._closing = True
            self.protocol.eof_received()
            self.protocol.connection_lost(None)


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
        self.transports: list[_MemoryTransport] = []
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
        ours, theirs = _MemoryTransport(self, local, address), _MemoryTransport(self, address, local)
        ours.peer, theirs.peer = theirs, ours
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

    def _server_side(self, transport: _MemoryTransport) -> Address:
        return transport._remote if transport._remote in self.listening else transport._local

    def _later(self, transport: _MemoryTransport, action: Callable[[], None]) -> None:
        for end in (transport._remote, transport._local):
            if end in self.held:
                self.held[end].append(action)
                return
        asyncio.get_running_loop().call_soon(action)

    def _carry(self, transport: _MemoryTransport, data: bytes) -> None:
        peer = transport.peer
        assert peer is not None
        self._later(transport, lambda: peer._deliver(data))

    def _carry_close(self, transport: _MemoryTransport) -> None:
        peer = transport.peer
        assert peer is not None
        self._later(transport, peer._peer_closed)

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
