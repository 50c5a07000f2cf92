"""The network in memory: a connection is two pipes of bytes, and each link has a proxy that behaves like Toxiproxy.

    client  ═ upstream pipe ══► gate ─► delay ─► [reset] ═► peer       the same chain in each direction
            ◄═ downstream pipe ═

A byte takes 0.1 to 0.4 ms (drawn by the seed), as on a LAN; bytes stay in order. A connection to a dead peer is
refused. Under a black hole the proxy accepts a connection, but no answer comes. Kernels resend lost packets at growing
intervals, so a connection works again only some time after the end of packet loss. TCP segments and windows are not
modelled: one write is one segment, and senders never block. Connections never time out (a real kernel's do after 15
minutes).
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from ....remoting.errors import ConnectError
from ....remoting.node.network import Address, Listener, ProtocolFactory
from ....remoting.node.recording import Recorder
from ...faults.injector import LinkFaultInjector
from ...faults.link_faults import DirectionState, LinkState
from ...topology import Link
from .loop import ProcessLoop, Scheduled, Scheduler, VirtualClock

MIN_TRIP_S, MAX_TRIP_S = 0.000_1, 0.000_4
_SPREAD_S = MAX_TRIP_S - MIN_TRIP_S
SLICE_S = 0.1
"""A slow link delivers a long chunk in slices of this time, like Toxiproxy's bandwidth toxic."""
MIN_RESEND_S, MAX_RESEND_S = 0.2, 120.0
"""A kernel resends unanswered data after the first time, then after twice as long, up to the second (TCP_RTO_*)."""
FIRST_SYN_S = 1.0
"""A kernel resends a connection's first packet (SYN) after this time. The program's own time limit ends the attempt."""
_REFUSED = os.strerror(errno.ECONNREFUSED)
_CLOSE = b""
"""In a pipe: the sender has closed."""
FREE = DirectionState()


class MemoryTransport(asyncio.Transport):
    def __init__(self, process: ProcessLoop, local: Address, remote: Address) -> None:
        super().__init__()
        self.process, self._local, self._remote = process, local, remote
        self.out: Pipe
        self.protocol: Any = None
        self.gone = False
        """This end is closed, by itself or by its peer."""
        self._unread: list[bytes] | None = None
        self.forget: Callable[[], object] = lambda: None

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": tuple(self._remote), "sockname": tuple(self._local)}.get(name, default)

    def is_closing(self) -> bool:
        return self.gone

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing, because a pipe accepts any number of bytes."""

    def pause_reading(self) -> None:
        if self._unread is None:
            self._unread = []

    def resume_reading(self) -> None:
        unread, self._unread = self._unread, None
        for data in unread or ():
            self.process.call_soon(self.receive, data)

    def write(self, data: Any) -> None:
        if data and not self.gone:
            self.out.put(data if type(data) is bytes else bytes(data))

    def close(self) -> None:
        if not self.gone:
            self._end(None)
            self.out.put(_CLOSE)

    def abort(self) -> None:
        self.close()

    def vanish(self) -> None:
        if not self.gone:
            self.gone = True
            self.forget()
            self.out.put(_CLOSE)

    def _end(self, exc: Exception | None) -> None:
        self.gone = True
        self.forget()
        self.process.call_soon(self.protocol.connection_lost, exc)

    # What comes in, each in a turn of this end's own process

    def receive(self, data: bytes) -> None:
        if self.gone:
            return
        if self._unread is not None:
            self._unread.append(data)
        elif data:
            if self.protocol is not None:
                self.protocol.data_received(data)
        else:
            self.cut_off(None)

    def cut_off(self, exc: Exception | None) -> None:
        """Tell the program at this end that the connection has ended, although the program did not close it."""
        if not self.gone:
            self.gone = True
            self.forget()
            if self.protocol is not None:
                if exc is None:
                    self.protocol.eof_received()
                self.protocol.connection_lost(exc)

    def accepted(self, factory: ProtocolFactory) -> None:
        """Connect the server's program to the connection that its kernel accepted."""
        if not self.gone:
            self.protocol = factory()
            self.protocol.connection_made(self)


class Pipe:
    """One direction of one connection. A pipe has the bytes that were written but not yet delivered."""

    def __init__(self, network: MemoryNetwork, to: MemoryTransport, state: DirectionState) -> None:
        self._network, self.to, self.state, self._free = network, to, state, state == FREE
        self._waiting: deque[tuple[float, float, bytes]] = deque()
        self._latest_s = 0.0
        self._busy_until_s = 0.0
        self._in_flight = False
        self._timer: Scheduled | None = None
        self.sever: Callable[[Exception | None], None] = _ignore
        self.born_in_reset = state.reset
        self.cut = False

    def put(self, data: bytes) -> None:
        if self.cut:
            return
        if self._free and not self._waiting:
            self._hand_on(data)
        else:
            network = self._network
            self._waiting.append((network.scheduler.now_s, network.rng.uniform(-1, 1), data))
            if len(self._waiting) == 1:
                self.pump()

    def not_before(self, at_s: float) -> None:
        self._latest_s = max(self._latest_s, at_s)

    def retune(self, state: DirectionState) -> None:
        """Apply this fault effect from now on to all bytes, waiting bytes included."""
        stalled = self.state.lost or self._in_flight
        self.state, self._free = state, state == FREE
        if not state.unacknowledged:
            self._in_flight = False
        if stalled and self._waiting and not (state.lost or self._in_flight):
            self._wait_until(self._sent_again_s(self._waiting[0][0]))
        else:
            self.pump()

    def _sent_again_s(self, written_s: float) -> float:
        """Return when the sender's kernel resends the bytes that have been unanswered since `written_s`."""
        at_s, wait_s = written_s, MIN_RESEND_S
        while at_s < self._network.scheduler.now_s:
            at_s += wait_s
            wait_s = min(2 * wait_s, MAX_RESEND_S)
        return at_s

    def _wait_until(self, at_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._network.loop.call_at(at_s, self.pump)

    def pump(self) -> None:
        """Deliver the bytes that are due, and schedule the next delivery."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, state, now_s = self._waiting, self.state, self._network.scheduler.now_s
        while waiting:
            if state.lost or self._in_flight:
                return
            self._in_flight = state.unacknowledged  # it still leaves, and then the sender waits for its answer
            written_s, luck, data = waiting[0]
            if data:  # a close passes by itself, but not what was written before it
                gated_s = self._through_gate_at(written_s, data)
                if gated_s is None:
                    return
                latency_ms, jitter_ms = state.delay_ms or (0, 0)
                at_s = gated_s + max(0.0, latency_ms + luck * jitter_ms) / 1000
                if at_s > now_s:
                    self._in_flight = False
                    self._wait_until(at_s)
                    return
                if state.reset:
                    self.sever(ConnectionResetError(errno.ECONNRESET, "reset") if self.born_in_reset else None)
                    return
                if state.rate_kb_s:
                    self._busy_until_s = gated_s
                    longest = self._slice(state.rate_kb_s)
                    if len(data) > longest:
                        waiting[0] = (written_s, luck, data[longest:])
                        self._hand_on(data[:longest])
                        continue
            waiting.popleft()
            self._hand_on(data)

    def _through_gate_at(self, written_s: float, data: bytes) -> float | None:
        """Return when the first of `data` has passed the gate; None while the gate is closed."""
        rate_kb_s = self.state.rate_kb_s
        if rate_kb_s is None:
            return written_s
        if rate_kb_s == 0:
            return None
        return max(written_s, self._busy_until_s) + min(len(data), self._slice(rate_kb_s)) / (rate_kb_s * 1000)

    @staticmethod
    def _slice(rate_kb_s: int) -> int:
        return int(rate_kb_s * 1000 * SLICE_S)

    def _hand_on(self, data: bytes) -> None:
        network = self._network
        at_s = network.scheduler.now_s + MIN_TRIP_S + _SPREAD_S * network.random()  # arrival_s, without a call
        if at_s < self._latest_s:
            at_s = self._latest_s
        self._latest_s = at_s
        to = self.to
        to.process.came_in(at_s, to.receive, data)

    def end_at_once(self, exc: Exception | None) -> None:
        """Drop all bytes that wait in the pipe, and all bytes written from now on. Tell the receiving end that the
        connection has ended, once all bytes that were already sent have arrived."""
        self.cut = True
        self._waiting.clear()
        at_s = self._latest_s = max(self._network.arrival_s(), self._latest_s)
        self.to.process.came_in(at_s, self.to.cut_off, exc)


def _ignore(_exc: Exception | None) -> None:
    """The receiver's process is gone."""


class MemoryConnection:
    def __init__(self, network: MemoryNetwork, wire: Wire, ours: MemoryTransport, theirs: MemoryTransport) -> None:
        self._ends = (ours, theirs)
        self.upstream = ours.out = Pipe(network, theirs, wire.state.upstream)
        self.downstream = theirs.out = Pipe(network, ours, wire.state.downstream)
        self._wire = wire
        self.swallowed = False
        """Taken for a peer that is gone, while the link is held."""
        self.stale = False
        """Made before the link became half-open."""
        wire.connections[self] = None
        for end in self._ends:
            end.forget = self._end_gone
            network.ends_of(end.process)[end] = None
        for pipe in (self.upstream, self.downstream):
            pipe.sever = self.sever
        self._network = network

    def _end_gone(self) -> None:
        for end in self._ends:
            if end.gone:
                self._network.ends_of(end.process).pop(end, None)
        if all(end.gone for end in self._ends):
            self._wire.connections.pop(self, None)

    def sever(self, exc: Exception | None = None) -> None:
        """Close the two ends of the connection as a proxy does; the programs at the two ends see `exc`."""
        for pipe in (self.upstream, self.downstream):
            pipe.end_at_once(exc)

    def retune(self, state: LinkState) -> None:
        self.upstream.retune(state.upstream)
        self.downstream.retune(state.downstream)


class Wire:
    """One link of the network in memory: its state under faults, and its connections."""

    def __init__(self) -> None:
        self.state = LinkState()
        self.connections: dict[MemoryConnection, None] = {}

    def become(self, state: LinkState) -> None:
        """Put the link into the state that results from its current faults."""
        half_opens = state.stale > self.state.stale
        self.state = state
        for connection in tuple(self.connections):
            connection.stale = half_opens or (connection.stale and state.stale > 0)
            if not state.enabled or (connection.swallowed and not state.held):
                connection.sever()
            else:
                connection.retune(state.of_stale if connection.stale else state)


class MemoryNetwork:
    """The network that all nodes of one experiment share. `rng` decides how long each chunk takes."""

    def __init__(self, scheduler: Scheduler, rng: random.Random) -> None:
        self.scheduler, self.rng = scheduler, rng
        self.random = rng.random
        self.loop = scheduler.process("network")
        self.wires: dict[tuple[str, Address], Wire] = {}
        self._listening: dict[Address, tuple[ProcessLoop, ProtocolFactory]] = {}
        self._ends: dict[ProcessLoop, dict[MemoryTransport, None]] = {}
        self._dialled = 0

    def ends_of(self, process: ProcessLoop) -> dict[MemoryTransport, None]:
        """Return the open ends of this process's connections, the oldest first."""
        return self._ends.setdefault(process, {})

    def arrival_s(self) -> float:
        return self.scheduler.now_s + MIN_TRIP_S + _SPREAD_S * self.random()

    def vanish(self, process: ProcessLoop) -> None:
        for address in [address for address, (owner, _) in self._listening.items() if owner is process]:
            del self._listening[address]
        for end in tuple(self._ends.pop(process, ())):
            end.vanish()

    async def connect(
        self, process: ProcessLoop, node: str, address: Address, factory: ProtocolFactory
    ) -> asyncio.BaseProtocol:
        wire = self.wires.get((node, address))
        if wire is None:
            raise ConnectError(f"connect to {address} failed: this node has no link to it")
        await asyncio.sleep(2 * (self.arrival_s() - self.scheduler.now_s))
        wait_s = FIRST_SYN_S
        while wire.state.upstream.lost or wire.state.downstream.lost or wire.state.undialled:
            await asyncio.sleep(wait_s)
            wait_s *= 2
        if not wire.state.enabled:
            raise ConnectError(f"connect to {address} failed: {_REFUSED}")
        self._dialled += 1
        local = Address("10.0.3.1", 32768 + self._dialled % 28232)
        server, accept = self._listening.get(address, (self.loop, None))
        if accept is None and not wire.state.held:
            raise ConnectError(f"connect to {address} failed: {_REFUSED}")
        ours, theirs = MemoryTransport(process, local, address), MemoryTransport(server, address, local)
        connection = MemoryConnection(self, wire, ours, theirs)
        connection.swallowed = accept is None
        if accept is not None:
            at_s = self.arrival_s()
            connection.upstream.not_before(at_s)
            server.came_in(at_s, theirs.accepted, accept)
        ours.protocol = factory()
        ours.protocol.connection_made(ours)
        return ours.protocol

    def listen(self, process: ProcessLoop, address: Address, factory: ProtocolFactory) -> Listener:
        if address in self._listening:
            raise OSError(errno.EADDRINUSE, f"address {address} already in use")
        self._listening[address] = (process, factory)
        for (_, peer), wire in self.wires.items():
            for connection in [made for made in wire.connections if made.swallowed] if peer == address else ():
                connection.sever()
        return _MemoryListener(self._listening, address)


class _MemoryListener:
    def __init__(self, listening: dict[Address, tuple[ProcessLoop, ProtocolFactory]], address: Address) -> None:
        self._listening, self.address = listening, address

    async def close(self) -> None:
        self._listening.pop(self.address, None)


class NodeNetwork:
    """One process's access to the network in memory; a node gets it as its Network."""

    def __init__(self, network: MemoryNetwork, process: ProcessLoop, node: str) -> None:
        self._network, self._process, self._node = network, process, node

    async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        return await self._network.connect(self._process, self._node, address, factory)

    async def listen(self, address: Address, factory: ProtocolFactory) -> Listener:
        return self._network.listen(self._process, address, factory)


class MemoryLinkFaults(LinkFaultInjector):
    """Injects faults of links into the network in memory, and records the same rows as with Toxiproxy."""

    loses_packets = True

    def __init__(self, network: MemoryNetwork, clock: VirtualClock, record: Recorder) -> None:
        super().__init__(clock, record)
        self._network = network
        self._peers: dict[Link, Address] = {}

    def open(self, upstreams: Mapping[Link, Address]) -> None:
        """Make each link in the network. `upstreams` gives the own address of each link's peer."""
        for link, peer in upstreams.items():
            self._network.wires[link.node, peer] = Wire()
            self._peers[link] = peer
            if self._add(link):
                self._record("link", source=link.node, target=link.peer, address=str(peer), injection="memory")

    def dials_of(self, node: str) -> dict[Address, Address]:
        """Return the peers' addresses for `node`: each peer's own address, unchanged."""
        return {peer: peer for link, peer in self._peers.items() if link.node == node}

    def _prepare(self, link: Link) -> None:
        """Do nothing, because in memory no preparation is slow."""

    def _inject(self, link: Link, now: LinkState | None, wanted: LinkState) -> None:
        self._network.wires[link.node, self._peers[link]].become(wanted)
