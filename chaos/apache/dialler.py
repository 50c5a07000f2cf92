"""The fronts (proxies) of one Java process, one for each server that the process may connect to, in its node's event
loop.

    JVM ──► front of ns-0     ──► the address that the node's link gives for ns-0     at each connection
        ──► front of broker-a ──► …                                                   refuses or drops SYNs during
                                                                                       such a fault
The JVM gets only the fronts' addresses: `namesrv_addr` at its start, and the brokers' fronts in NameServers' answers.
Observations contain the advertised addresses instead.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping

from ...remoting.node.network import Address, TcpNetwork
from ...remoting.node.node import NodeContext
from ..fronts.answers import readdressed
from ..fronts.behaviour import PASSES, REFUSES, Dials, behaviour_of
from ..fronts.front import Front, Upstream
from ..fronts.observed import Answered, Behaved, Observation


class Dialler:
    """The fronts of one Java process, by server name. Open the fronts before the JVM starts, and close them after it.

    vip      brokers to whose VIP port the JVM also connects: these fronts accept at the port and two below it
    nobody   entries of its list without a server of the run: they refuse
    """

    def __init__(
        self,
        context: NodeContext,
        *,
        name_servers: Mapping[str, Address],
        brokers: Mapping[str, Address],
        see: Callable[[Observation], None],
        vip: Collection[str] = (),
        nobody: Collection[str] = (),
    ) -> None:
        self._context, self._see_all = context, see
        self._name_servers, self._brokers, self._vip = dict(name_servers), dict(brokers), frozenset(vip)
        self._free = asyncio.Event()
        self._free.set()
        self._nobody = frozenset(nobody)
        self.told: dict[str, str] = {}
        """For each broker's advertised address, the address to which the JVM connects instead."""
        self.everybodys: dict[str, str] = {}
        """The same in reverse: for each address to which the JVM connects, the advertised address."""
        self._fronts = {
            name: Front(name, self._upstream(at), self._see, context.clock, vip=name in self._vip)
            for name, at in (*brokers.items(), *name_servers.items())
        }

    def _upstream(self, told: Address) -> Upstream:
        async def dialled() -> Address | None:
            await self._free.wait()
            network = self._context.network
            return network.dialled_at(told) if isinstance(network, TcpNetwork) else told

        return dialled

    async def open(self) -> None:
        """Make every front accept connections. Raises OSError if no ports are free."""
        for front in self._fronts.values():
            await front.open()
        for name in self._nobody:
            await self._fronts[name].behave(REFUSES)
        self.told = {str(at): str(self.address(name)) for name, at in self._brokers.items()}
        self.everybodys = {own: told for told, own in self.told.items()}
        for name in (*self._name_servers, *self._vip):
            self._fronts[name].addresses = self.told

    async def close(self) -> None:
        for front in self._fronts.values():
            await front.close()

    def hold(self) -> None:
        """Let the JVM connect, but keep its bytes back until `release`, because the JVM starts before its node."""
        self._free.clear()

    def release(self) -> None:
        """Pass on the bytes that `hold` kept back, then pass on all later bytes at once."""
        self._free.set()

    def tells(self, addresses: Mapping[str, str]) -> None:
        """Replace these addresses (host:port) in answers that the JVM gets."""
        for front in self._fronts.values():
            front.addresses = dict(addresses)

    @property
    def told_of_name_servers(self) -> Mapping[str, str]:
        """Return each NameServer's advertised address, and the address of its front, for answers to the JVM."""
        return {str(at): str(self.address(name)) for name, at in self._name_servers.items()}

    def says(self, own: Mapping[str, str]) -> None:
        """Replace the JVM's own address (host:port) in its requests."""
        for front in self._fronts.values():
            front.said = dict(own)

    def address(self, name: str) -> Address:
        return self._fronts[name].address

    @property
    def namesrv_addr(self) -> str:
        """The NameServers' fronts in the format of RocketMQ's `namesrvAddr`."""
        return ";".join(str(self.address(name)) for name in self._name_servers)

    @property
    def own_addresses(self) -> frozenset[Address]:
        """Every address at which a front of this Java process accepts connections."""
        return frozenset(door for front in self._fronts.values() for door in front.doors)

    def front_of(self, address: Address) -> str | None:
        return next((name for name, front in self._fronts.items() if address in front.doors), None)

    def behaved(self, now_ms: float) -> list[Behaved]:
        """Return the current behaviour of each front that does not simply pass everything on."""
        fronts = self._fronts.values()
        return [Behaved(at_ms=now_ms, front=f.name, behaviour=f.behaviour) for f in fronts if f.behaviour != PASSES]

    async def faulted(self, meets: Mapping[str, str]) -> None:
        """From now on, make the fronts for these servers refuse connections or drop SYNs; all other fronts accept.
        Toxiproxy can neither refuse connections nor drop SYNs (fronts/behaviour.py)."""
        for name, front in self._fronts.items():
            behaviour = behaviour_of(Dials(meets.get(name, Dials.ACCEPTED)))
            if name not in self._nobody and behaviour.dials is not front.behaviour.dials:
                await front.behave(behaviour)

    def _see(self, one: Observation) -> None:
        if isinstance(one, Answered) and one.body:
            one = one._replace(body=readdressed(one.body, self.everybodys))
        self._see_all(one)
