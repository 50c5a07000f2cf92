"""The fronts (proxies) of one program, one for each server to which the program may connect, in one event loop.

    program ──► front of ns-0     ──► the address that the node's link gives for ns-0     at each connection
            ──► front of broker-a ──► …                                                   refuses or drops SYNs during
                                                                                           such a fault
The program gets only the fronts' addresses: `namesrv_addr` at its start, and the brokers' fronts in NameServers'
answers. Observations contain the advertised addresses instead.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping

from ...remoting.node.clock import Clock
from ...remoting.node.network import Address
from .answers import readdressed
from .behaviour import PASSES, REFUSES, Behaviour, Connected, Dials
from .front import Front, Upstream
from .observed import Answered, Behaved, Observation


class Dialler:
    """The fronts of one program, by server name. Open the fronts before the program starts, and close them after it.

    dialled_at   where to connect now for a server's advertised address; None: nowhere
    vip          brokers to whose VIP port the program also connects: these fronts accept at the port and two below it
    nobody       entries of its list without a server of the run: they refuse
    process      as of a Front
    """

    def __init__(
        self,
        clock: Clock,
        dialled_at: Callable[[Address], Address | None],
        *,
        name_servers: Mapping[str, Address],
        brokers: Mapping[str, Address],
        see: Callable[[Observation], None],
        vip: Collection[str] = (),
        nobody: Collection[str] = (),
        process: Callable[[Address, Address], int | None] | None = None,
    ) -> None:
        self._dialled_at, self._see_all = dialled_at, see
        self._name_servers, self._brokers = dict(name_servers), dict(brokers)
        self._free = asyncio.Event()
        self._free.set()
        self._nobody = frozenset(nobody)
        self.told: dict[str, str] = {}
        """For each broker's advertised address, the address to which the program connects instead."""
        self.everybodys: dict[str, str] = {}
        """The same in reverse: for each address to which the program connects, the advertised address."""
        self._fronts = {
            name: Front(name, self._upstream(at), self._see, clock, process=process, vip=name in vip)
            for name, at in (*brokers.items(), *name_servers.items())
        }

    def _upstream(self, told: Address) -> Upstream:
        async def dialled() -> Address | None:
            await self._free.wait()
            return self._dialled_at(told)

        return dialled

    async def open(self, host: str = "127.0.0.1") -> None:
        """Make every front accept connections at a port of this host. Raises OSError if no ports are free."""
        for front in self._fronts.values():
            await front.open(Address(host, 0))
        for name in self._nobody:
            await self._fronts[name].behave(REFUSES)
        self.told = {str(at): str(self.address(name)) for name, at in self._brokers.items()}
        self.everybodys = {own: told for told, own in self.told.items()}
        for name in self._name_servers:
            self._fronts[name].addresses = self.told

    async def close(self) -> None:
        for front in self._fronts.values():
            await front.close()

    def hold(self) -> None:
        """Let the program connect, but keep its bytes back until `release`."""
        self._free.clear()

    def release(self) -> None:
        """Pass on the bytes that `hold` kept back, then pass on all later bytes at once."""
        self._free.set()

    def tells(self, addresses: Mapping[str, str]) -> None:
        """Replace these addresses (host:port) in all answers that the program gets."""
        for front in self._fronts.values():
            front.addresses = dict(addresses)

    @property
    def told_of_name_servers(self) -> Mapping[str, str]:
        """Return each NameServer's advertised address, and the address of its front, for answers to the program."""
        return {str(at): str(self.address(name)) for name, at in self._name_servers.items()}

    def says(self, own: Mapping[str, str]) -> None:
        """Replace the program's own address (host:port) in its requests."""
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
        """Every address at which a front of this program accepts connections."""
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
            dials = Dials(meets.get(name, Dials.ACCEPTED))
            if name not in self._nobody and dials is not front.behaviour.dials:
                connected = Connected.CLOSED if dials is Dials.REFUSED else Connected.KEPT
                await front.behave(Behaviour(dials=dials, connected=connected))

    def _see(self, one: Observation) -> None:
        if isinstance(one, Answered) and one.body:
            one = one._replace(body=readdressed(one.body, self.everybodys))
        self._see_all(one)
