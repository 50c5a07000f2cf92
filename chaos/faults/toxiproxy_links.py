"""Injects faults of links through Toxiproxy. All faults end when the injector's block ends, also after an error.

link_faults.py defines the faults; this module turns a link's state into toxics. No toxic loses packets.

The toxics of one chain affect each other. Adding a toxic behind a black hole releases the bytes that the black hole
keeps back. Removing a toxic before a black hole blocks Toxiproxy for ever, or loses bytes after 5 s. Therefore a
direction's chain of toxics is created once, before the first fault, and later only changed in place. `combine` computes
the effect of overlapping faults before a chain is changed.

    bytes ──► gate (bandwidth) ──► delay (latency) ──► [reset] ──►       at rest both have toxicity 0: every byte passes

The proxies to a dead process are disabled until its successor listens, because Toxiproxy would accept connections and
then close them: a client would lose seconds that a crash does not cost. Under a black hole, a connection to a dead
process must get no answer, so the proxy stays enabled and the dead process's port accepts (`PortHolder.swallow`).

A toxic affects all connections of its proxy. For a fault of new or old connections only, the node gets another port to
connect to (`tell`). For half_open the node connects to a second proxy, and the first proxy blocks its connections. For
syn_drop the node connects to a port with a full accept queue. Outside clients cannot be given another port. Old clients
connect to a VIP port, two below the proxy's port. At the VIP port a further proxy leads to the link's proxy, so faults
of the link affect old clients, too.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ...remoting.node.file_names import file_name, of_file_name
from ...remoting.node.network import Address
from ...remoting.node.recording import Recorder
from ..errors import HarnessError
from ..topology import EXTERNAL, Link, first_address
from .injector import LinkFaultInjector, ScaledClock
from .link_faults import DIRECTIONS, Direction, DirectionState, LinkState, Toxic
from .ports import FullAcceptQueue

_NEXT = "~"
"""In a proxy's name: separates the link's name from the number of its later proxy, or from `vip`."""


class ProxyApi(Protocol):
    """The API of one Toxiproxy (toxiproxy.py), or of one Toxiproxy per host (experiment/hosts/parts.py)."""

    def create(self, proxies: Mapping[str, tuple[Address, Address]]) -> None: ...
    def set_enabled(self, proxy: str, enabled: bool) -> None: ...
    def switch(self, wanted: Mapping[str, bool]) -> dict[str, bool]: ...
    def add_toxic(self, proxy: str, toxic: Toxic) -> None: ...
    def update_toxic(
        self, proxy: str, name: str, *, toxicity: float, attributes: Mapping[str, int] | None = None
    ) -> None: ...
    def remove_toxic(self, proxy: str, name: str) -> None: ...


class LinkPorts(Protocol):
    """The ports of one machine (ports.py), or of each host."""

    def take_for(self, nodes: Iterable[str]) -> list[Address]: ...
    def swallow(self, address: Address) -> object: ...
    def refuse(self, address: Address) -> None: ...


class SilentPort(Protocol):
    """A port that answers no connection attempt until `open` (ports.py)."""

    @property
    def address(self) -> Address: ...

    def open(self, to: Address) -> None: ...


class _Proxy(NamedTuple):
    name: str
    listen: Address
    peer: Address


class LinkFaults(LinkFaultInjector):
    """The Toxiproxy proxies of all links, and the faults on these links."""

    def __init__(
        self,
        api: ProxyApi,
        clock: ScaledClock,
        record: Recorder,
        *,
        front_for: Callable[[str], SilentPort] = lambda _node: FullAcceptQueue(),
    ) -> None:
        """`front_for` makes a port that answers none of this node's connection attempts."""
        super().__init__(clock, record)
        self._api, self._front_for = api, front_for
        self._ports: LinkPorts | None = None
        self._proxies: dict[Link, _Proxy] = {}
        self._from: dict[str, list[Link]] = defaultdict(list)
        self._towards: dict[str, list[Link]] = defaultdict(list)
        """The links of each node, and to each peer: hundreds of clients have thousands."""
        self._enabled: dict[Link, bool] = {}
        """Of each proxy: whether we have left it enabled. What somebody else did to it is theirs."""
        self._gone: set[str] = set()
        self._coming: set[str] = set()
        self._pids: dict[str, int] = {}
        self._swallowed: set[Link] = set()
        """The links whose dials the port of their dead peer has to take."""
        self._outside: dict[Address, Address] = {}
        self._laid: set[Link] = set()
        self._older: dict[Link, list[_Proxy]] = {}
        """The proxies of what was connected when a link became half-open; nobody dials them any more."""
        self._stale: set[str] = set()
        """Those of them that hold what they have."""
        self._fronts: dict[Link, SilentPort] = {}
        self.tell: Callable[[str, Mapping[Address, Address]], None] = lambda _node, _dials: None
        """Tells a node where to dial from now on."""

    def open(self, upstreams: Mapping[Link, Address], ports: LinkPorts) -> dict[Link, Address]:
        """Create one proxy per link. `upstreams` gives the own address of each link's peer. Returns each proxy's
        address."""
        self._ports = ports
        taken = ports.take_for(link.node for link in upstreams)
        made = {
            link: _Proxy(file_name(str(link)), listen, peer)
            for (link, peer), listen in zip(upstreams.items(), taken, strict=True)
        }
        vips = {
            f"{proxy.name}{_NEXT}vip": (proxy.listen.vip_channel, proxy.listen)
            for link, proxy in made.items()
            if link.node == EXTERNAL and link.peer.startswith("broker-")
        }
        self._api.create({proxy.name: (proxy.listen, proxy.peer) for proxy in made.values()} | vips)
        self._proxies |= made
        for link in made:
            self._from[link.node].append(link)
            self._towards[link.peer].append(link)
        self._outside |= {proxy.peer: proxy.listen for link, proxy in made.items() if link.node == EXTERNAL}
        for link, proxy in made.items():
            self._enabled[link] = True
            if self._add(link):
                about = {"source": link.node, "target": link.peer, "address": str(proxy.listen)}
                self._record("link", **about, injection="toxiproxy")
            else:
                self._gone.add(link.peer)
        for later in {link.peer for link in made} & self._gone:
            self._switch(later)
        return {link: proxy.listen for link, proxy in made.items()}

    def advertised(self, peer: Address) -> Address:
        """Return the address that the server at `peer` advertises: its address for outside clients if any, else
        `peer`."""
        return self._outside.get(peer, peer)

    def dials_of(self, node: str) -> dict[Address, Address]:
        """Return, for each peer's advertised address, the address to which `node` must connect (for TcpNetwork)."""
        return {self.advertised(self._proxies[of].peer): self._dialled(of) for of in self._from.get(node, ())}

    def _dialled(self, link: Link) -> Address:
        front = self._fronts.get(link)
        return self._proxies[link].listen if front is None else front.address

    # -- processes behind the proxies (actors.watch.Dials)

    def refuse(self, name: str, pid: int) -> None:
        """Refuse connections to the node, because its process is gone. Connections over a link with a black hole get no
        answer instead."""
        with self._lock:
            at = self._at(name)
            if at not in self._gone and self._pids.get(name, pid) == pid:
                self._gone.add(at)
                self._switch(at)

    def make_way(self, name: str) -> None:
        with self._lock:
            at = self._at(name)
            self._coming.add(at)
            for link in self._to(at):
                self._swallow(link, wanted=False)

    def admit(self, name: str, pid: int) -> None:
        """Admit connections to the node again, except on links with a fault that refuses them."""
        with self._lock:
            self._pids[name] = pid
            at = self._at(name)
            self._coming.discard(at)
            if at in self._gone:
                self._gone.remove(at)
                self._switch(at)

    def _to(self, at: str) -> list[Link]:
        return self._towards.get(at, [])

    def _switch(self, at: str) -> None:
        """Enable or disables the proxies to a node's address close together, by the faults on their links and the
        process behind them."""
        wanted: dict[Link, bool] = {}
        for link in self._to(at):
            state = self._links[Link(link.node, first_address(link.peer))].state
            if state is not None:
                wanted[link] = self._is_open(link, state)
                self._swallow(link, wanted=wanted[link] and at in self._gone)
        changes = {link: on for link, on in wanted.items() if on != self._enabled[link]}
        if changes:
            before = self._api.switch({self._proxies[link].name: on for link, on in changes.items()})
            # One that somebody else had disabled stays so, until they enable it.
            self._enabled |= {link: on for link, on in changes.items() if on or before[self._proxies[link].name]}

    def _is_open(self, link: Link, state: LinkState) -> bool:
        return state.enabled and (link.peer not in self._gone or state.held)

    def _swallow(self, link: Link, *, wanted: bool) -> None:
        """Whether the dead peer's port must accept connections of this link and not answer them."""
        before, wanted = bool(self._swallowed), wanted and link.peer not in self._coming
        (self._swallowed.add if wanted else self._swallowed.discard)(link)
        if self._ports is None or not (before or wanted):
            return
        address = self._proxies[link].peer
        if any(self._proxies[other].peer == address for other in self._swallowed):
            self._ports.swallow(address)
        else:
            self._ports.refuse(address)

    def without_ours(self, name: str, proxy: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return Toxiproxy's description of a proxy without nemesrv's own toxics; None while nemesrv does not know the
        state of its own toxics."""
        source, _, target = of_file_name(name).partition("->")
        under = self._links.get(Link(source, first_address(target.partition(_NEXT)[0])))
        if under is None:
            return proxy
        if under.state is None:
            return None
        ours: set[str] = set()
        here = under.state.of_stale if name in self._stale else under.state
        for direction in DIRECTIONS:
            state = here.upstream if direction == "upstream" else here.downstream
            ours |= {_gate(direction)} if state.rate_kb_s is not None else set()
            ours |= {_delay(direction)} if state.delay_ms is not None else set()
            ours |= {_reset(direction)} if state.reset else set()
        toxics = [toxic for toxic in proxy["toxics"] if toxic["name"] not in ours]
        ours_off = not self._enabled[under.link] or name != self._proxies[under.link].name
        return {**proxy, "toxics": toxics, "enabled": proxy["enabled"] or ours_off}

    def _prepare(self, link: Link) -> None:
        """Create the chain of toxics. Raises HarnessError for a fault that no proxy can inject."""
        if link in self._laid:
            return
        self._lay(self._proxies[link].name)
        self._laid.add(link)

    def _lay(self, proxy: str) -> None:
        for direction in DIRECTIONS:
            self._api.add_toxic(proxy, Toxic(_gate(direction), "bandwidth", direction, {"rate": 0}, 0.0))
            self._api.add_toxic(proxy, Toxic(_delay(direction), "latency", direction, {"latency": 0}, 0.0))

    def _inject(self, link: Link, now: LinkState | None, wanted: LinkState) -> None:
        if link.node == EXTERNAL and (wanted.stale or wanted.undialled):
            raise HarnessError(
                f"{link} cannot be half-open, nor lose its SYNs: nobody can tell an outside dialler of it"
            )
        if wanted.stale > (0 if now is None else now.stale):
            self._take_second_proxy(link, now)
        self._inject_older(link, now, wanted)
        self._inject_current(link, now, wanted)
        if wanted.undialled != (link in self._fronts):
            self._switch_front(link, wanted.undialled)

    def _take_second_proxy(self, link: Link, now: LinkState | None) -> None:
        """Make the node connect to a new proxy in the same state; existing connections keep the old proxy."""
        assert self._ports is not None
        before = self._proxies[link]
        older = self._older.setdefault(link, [])
        older.append(before)
        (listen,) = self._ports.take_for((link.node,))
        proxy = _Proxy(f"{file_name(str(link))}{_NEXT}{len(older)}", listen, before.peer)
        self._api.create({proxy.name: (proxy.listen, proxy.peer)})
        self._lay(proxy.name)
        self._proxies[link] = proxy
        self._tune(proxy.name, LinkState(), now or LinkState())
        if not self._enabled[link]:
            self._api.set_enabled(proxy.name, False)
        self.tell(link.node, self.dials_of(link.node))

    def _inject_older(self, link: Link, now: LinkState | None, wanted: LinkState) -> None:
        """Put the link's state on the older connections. While the link is half-open, all bytes of these wait."""
        half_opens = wanted.stale > (0 if now is None else now.stale)
        for proxy in tuple(self._older.get(link, ())):
            was = None if now is None else now.of_stale if proxy.name in self._stale else now
            if half_opens or (proxy.name in self._stale and wanted.stale):
                self._stale.add(proxy.name)
            else:
                self._stale.discard(proxy.name)
            self._tune(proxy.name, was, wanted.of_stale if proxy.name in self._stale else wanted)
            if not wanted.enabled:  # its connections close, and nobody will dial it again
                self._api.set_enabled(proxy.name, False)
                self._older[link].remove(proxy)

    def _switch_front(self, link: Link, undialled: bool) -> None:
        """Leave the node's connection attempts without an answer from now on, or lets them reach its proxy again."""
        if undialled:
            self._fronts[link] = self._front_for(link.node)
            self.tell(link.node, self.dials_of(link.node))
        else:
            front = self._fronts.pop(link)
            self.tell(link.node, self.dials_of(link.node))
            front.open(self._proxies[link].listen)

    def _inject_current(self, link: Link, now: LinkState | None, wanted: LinkState) -> None:
        proxy, is_open = self._proxies[link].name, self._is_open(link, wanted)
        switches = now is None or is_open != self._enabled[link]
        if switches and not is_open:
            self._enable(link, False)
        self._swallow(link, wanted=is_open and link.peer in self._gone)
        if link in self._laid:
            self._tune(proxy, now, wanted)
        if switches and is_open:
            self._enable(link, True)

    def _enable(self, link: Link, on: bool) -> None:
        self._api.set_enabled(self._proxies[link].name, on)
        self._enabled[link] = on

    def _tune(self, proxy: str, now: LinkState | None, wanted: LinkState) -> None:
        self._retune(proxy, "upstream", now and now.upstream, wanted.upstream)
        self._retune(proxy, "downstream", now and now.downstream, wanted.downstream)

    def _retune(self, proxy: str, direction: Direction, now: DirectionState | None, wanted: DirectionState) -> None:
        if now is None or wanted.rate_kb_s != now.rate_kb_s:
            # Through toxicity 0, because a rate must not grow under a chunk that is being doled out: Toxiproxy would
            # slice past the chunk's end.
            if now is None or now.rate_kb_s is not None:
                self._api.update_toxic(proxy, _gate(direction), toxicity=0.0)
            if wanted.rate_kb_s is not None:
                self._api.update_toxic(proxy, _gate(direction), toxicity=1.0, attributes={"rate": wanted.rate_kb_s})
        if now is None or wanted.delay_ms != now.delay_ms:
            latency, jitter = wanted.delay_ms or (0, 0)
            self._api.update_toxic(
                proxy,
                _delay(direction),
                toxicity=0.0 if wanted.delay_ms is None else 1.0,
                attributes={"latency": latency, "jitter": jitter},
            )
        if now is None or wanted.reset != now.reset:
            if wanted.reset:
                self._api.add_toxic(proxy, Toxic(_reset(direction), "reset_peer", direction, {"timeout": 0}))
            else:
                self._api.remove_toxic(proxy, _reset(direction))


def _gate(direction: Direction) -> str:
    return f"gate_{direction}"


def _delay(direction: Direction) -> str:
    return f"delay_{direction}"


def _reset(direction: Direction) -> str:
    return f"reset_peer_{direction}"
