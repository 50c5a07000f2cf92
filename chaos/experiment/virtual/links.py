"""Faults on links of the network in memory: the same faults, book and history rows as through Toxiproxy."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from ....remoting.node.network import Address
from ....remoting.node.recording import Recorder
from ...faults.bandwidth_proof import BandwidthProofs
from ...faults.injector import LinkFaultInjector
from ...faults.link_faults import LinkState
from ...faults.link_probes import LinkProbes
from ...faults.measuring import Measuring, Route
from ...topology import Link
from .loop import VirtualClock
from .network import MemoryNetwork, NodeNetwork


class MemoryLinkFaults(LinkFaultInjector):
    """The wires of all links and the faults on them."""

    loses_packets = True

    def __init__(self, network: MemoryNetwork, clock: VirtualClock, record: Recorder) -> None:
        super().__init__(clock, record)
        self._network, self._time = network, clock
        self._peers: dict[Link, Address] = {}

    def open(self, upstreams: Mapping[Link, Address]) -> None:
        """A wire for each link: link to its peer's own address."""
        self._network.lay(upstreams)
        for link, peer in upstreams.items():
            self._peers[link] = peer
            if self._add(link):
                self._record("link", source=link.node, target=link.peer, address=str(peer), injection="memory")

    def watch_bandwidth(self, stack: ExitStack) -> None:
        """Limits prove themselves from now on, by a process of the harness's own that ends with `stack`."""
        process = self._network.scheduler.process("bandwidth-proof")

        def way(link: Link) -> Route:
            peer = self._peers[Link(link.node, self._at(link.peer))]
            return Route(NodeNetwork(self._network, process, link.node), peer)

        async def note(event: str, /, **fields: object) -> None:
            self._record(event, **fields)

        def end() -> None:
            process.kill()
            process.bury()

        stack.callback(end)
        measuring = Measuring(self._time, self._time.scale, way, process.create_task, note)
        self.observer, self.probes = BandwidthProofs(measuring), LinkProbes(measuring)

    def dials_of(self, node: str) -> dict[Address, Address]:
        """Each peer of `node`, dialled at its own address."""
        return {peer: peer for link, peer in self._peers.items() if link.node == node}

    def _prepare(self, link: Link) -> None:
        """Nothing in memory is slow."""

    def _inject(self, link: Link, now: LinkState | None, wanted: LinkState) -> None:
        self._network.wires[link.node, self._peers[link]].become(wanted)
