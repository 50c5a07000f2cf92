"""A front accepts connections in place of a server, reports what it sees, and passes every byte on unless told to
misbehave.

    client ──► Port ──► FrontConnection ──► server          Front(name, upstream, see, clock)
               port.py  connection.py                       open ─► behave, behave, … ─► close

A front keeps one port from `open` to `close`; a broker's front also keeps the VIP port, which leads to the same server.
A front changes bytes only to answer chosen requests itself, and to change brokers or addresses in route answers, or
addresses in requests. A front runs in one event loop.
"""

import asyncio
import contextlib
import itertools
import socket
from collections.abc import Awaitable, Callable, Mapping

from ...remoting.node.clock import Clock
from ...remoting.node.network import Address
from ...remoting.node.tasks import Tasks
from .behaviour import PASSES, Behaviour, Connected, Dials
from .connection import FrontConnection
from .observed import Behaved, By, Closed, How, Observation, Opened
from .port import Port, check_free

ANY_PORT = Address("127.0.0.1", 0)
_TRIES = 50
"""Attempts to find a free pair of ports for a broker's front."""
See = Callable[[Observation], None]
Upstream = Address | Callable[[], Awaitable[Address | None]] | None

_CONNECTIONS = itertools.count(1)
"""Numbers unique in this process, so fronts need not know of each other."""


class Front:
    """The proxy before one server. `see` gets the observations in order of time, in the event loop, and must not raise.

    upstream    the server's address; may be set until the first connection; None: each is closed at once. A callable
                is asked at each connection, whose bytes wait meanwhile
    addresses   host:port in route answers to the host:port that is given out in its place
    said        host:port in what the client says of itself to the host:port that the server hears in its place
    leads       says by the first bytes of a connection where to connect, in place of `upstream`
    tells_by    whether these first bytes are enough for `leads`
    process     whose connection it is, by the client's end and ours; asked at each accept
    vip         it is a broker's, and accepts at the VIP port, too
    """

    def __init__(
        self,
        name: str,
        upstream: Upstream,
        see: See,
        clock: Clock,
        *,
        process: Callable[[Address, Address], int | None] | None = None,
        vip: bool = False,
    ) -> None:
        self.name, self.upstream, self.clock = name, upstream, clock
        self.see = see
        self.addresses: Mapping[str, str] = {}
        self.said: Mapping[str, str] = {}
        self.leads: Callable[[bytes], Awaitable[Address | None]] | None = None
        self.tells_by: Callable[[bytes], bool] = bool
        self.behaviour = PASSES
        self._process = process
        self._connections: set[FrontConnection] = set()
        self._tasks = Tasks()
        self._ports = [Port(self._accepted) for _ in range(2 if vip else 1)]
        self._address: Address | None = None

    @property
    def address(self) -> Address:
        """The address at which the front accepts connections; still known after `close`."""
        assert self._address is not None, f"front {self.name} is not open"
        return self._address

    def now_ms(self) -> float:
        return self.clock.monotonic_s() * 1000.0

    @property
    def doors(self) -> tuple[Address, ...]:
        return (self.address, self.address.vip_channel)[: len(self._ports)]

    async def open(self, address: Address = ANY_PORT) -> Address:
        for tries_left in reversed(range(1 if address.port else _TRIES)):
            try:
                self._address = self._ports[0].open(*address)
                for port in self._ports[1:]:
                    if not address.port:
                        check_free(*self.address.vip_channel)
                    port.open(*self.address.vip_channel)
                break
            except OSError:
                for port in self._ports:
                    port.close()
                if not tries_left:
                    raise
        return self.address

    async def dialled(self) -> Address | None:
        """The address of the server to which the front would connect a client now."""
        return await self.upstream() if callable(self.upstream) else self.upstream

    async def behave(self, behaviour: Behaviour) -> None:
        """Change the behaviour of the front (the proxy before one server) at once, also for open connections."""
        self.behaviour = behaviour
        for port in self._ports:
            port.behave(behaviour.dials)
        if behaviour.connected is not Connected.KEPT:
            how = How.FIN if behaviour.connected is Connected.CLOSED else How.RST
            for connection in tuple(self._connections):
                connection.end(By.FRONT, how)
        for connection in tuple(self._connections):
            connection.changed()
        self.see(Behaved(at_ms=self.now_ms(), front=self.name, behaviour=behaviour))

    async def close(self) -> None:
        for port in self._ports:
            port.close()
        await self._tasks.cancel()
        for connection in tuple(self._connections):
            connection.end(By.FRONT, How.FIN)

    # --- for port and connections -------------------------------------------------------------------------------------

    def _accepted(self, taken: socket.socket, peer: Address) -> None:
        number, process = next(_CONNECTIONS), None
        if self._process is not None:
            process = self._process(peer, Address(*taken.getsockname()[:2]))
        self.see(Opened(at_ms=self.now_ms(), front=self.name, connection=number, peer=peer, process=process))
        if self.behaviour.dials is Dials.CLOSED:
            taken.close()
            self.see(Closed(at_ms=self.now_ms(), front=self.name, connection=number, by=By.FRONT))
            return
        connection = FrontConnection(self, number)
        self._connections.add(connection)
        self._tasks.spawn(self._splice(connection, taken))

    async def _splice(self, connection: FrontConnection, taken: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(lambda: connection.client, taken)
        except OSError:  # it was reset before anybody looked
            taken.close()
            connection.end(By.CLIENT, How.RST)
            return
        upstream = await (self.dialled() if self.leads is None else self.leads(await connection.first_bytes()))
        if upstream is None or connection.ended:
            connection.unreachable()
            return
        try:
            transport, _protocol = await loop.create_connection(lambda: connection.server, *upstream)
        except OSError:
            connection.unreachable()
            return
        if (made := transport.get_extra_info("socket")) is not None:
            with contextlib.suppress(OSError):  # it is closed already, as the client's end was gone
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def gone(self, connection: FrontConnection) -> None:
        self._connections.discard(connection)
