"""A server and two clients over the network in memory, and what each side saw: for tests."""

import asyncio
import random
from typing import Any

from nemesrv.chaos.experiment.virtual.loop import ProcessLoop, Scheduler, VirtualClock
from nemesrv.chaos.experiment.virtual.network import MemoryLinkFaults, MemoryNetwork, NodeNetwork
from nemesrv.chaos.topology import Link
from nemesrv.remoting.node.network import Address

SERVER = Address("10.0.1.1", 9876)
LINK, OTHER = Link("client", "server"), Link("other", "server")


class End(asyncio.Protocol):
    """What one side saw, with times."""

    def __init__(self, clock: VirtualClock, *, answers: bool = False) -> None:
        self._clock, self._answers = clock, answers
        self.transport: Any = None
        self.data = b""
        self.times: list[float] = []
        self.lost: list[tuple[float, Exception | None]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.times.append(self._clock.monotonic_s())
        if self._answers:
            self.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append((self._clock.monotonic_s(), exc))


class World:
    """A server that listens, a client and another client, each in a process of its own."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.clock = VirtualClock(self.scheduler)
        self.network = MemoryNetwork(self.scheduler, random.Random(1))
        self.rows: list[tuple[str, dict[str, object]]] = []
        self.faults = MemoryLinkFaults(
            self.network, self.clock, lambda event, /, **fields: self.rows.append((event, fields))
        )
        self.faults.open({LINK: SERVER, OTHER: SERVER})
        self.processes = {name: self.scheduler.process(name) for name in ("server", "client", "other")}
        self.accepted: list[End] = []
        self.answers = False
        self.network.listen(self.processes["server"], SERVER, self._accept)

    def _accept(self) -> End:
        self.accepted.append(End(self.clock, answers=self.answers))
        return self.accepted[-1]

    def dial(self, node: str = "client", *, for_s: float | None = None) -> asyncio.Task[End]:
        process: ProcessLoop = self.processes[node]
        network = NodeNetwork(self.network, process, node)
        dialling = process.create_task(network.connect(SERVER, lambda: End(self.clock)))
        if for_s is not None:
            self.pass_s(for_s)
        return dialling

    def connected(self, node: str = "client") -> tuple[End, End]:
        """Both ends of a new connection."""
        dialling = self.dial(node, for_s=0.1)
        return dialling.result(), self.accepted[-1]

    def data_after(self, seconds: float, end: End) -> bytes:
        self.pass_s(seconds)
        return end.data

    def pass_s(self, seconds: float) -> None:
        self.scheduler.run(self.clock.monotonic_s() + seconds)
