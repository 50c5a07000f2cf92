"""What `LinkFaults` asks of one machine, asked of many: each call goes to the host whose proxy, port or dialler it is.

A (node, peer) proxy is on the node's host and dials the peer's own address, so bytes cross from host to host once.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from ....actors.hosts import RemoteHost
from ....remoting.node.clock import RealClock
from ....remoting.node.file_names import of_file_name
from ....remoting.node.network import Address
from ...errors import HarnessError
from ...faults.link_faults import Direction
from ...faults.measuring import Route
from ...topology import Link, first_address
from .parts import PACKETS, PORTS, TOXIPROXY, HostFront, HostPackets, measured

HostOf = Callable[[str], RemoteHost]


class HostsToxiproxy:
    """The Toxiproxy of every host as one, by the proxies' names. As Toxiproxy (faults/toxiproxy.py) for the rest."""

    def __init__(self, hosts: Iterable[RemoteHost], host_of: HostOf) -> None:
        self._hosts, self._host_of = tuple(hosts), host_of

    def _at(self, proxy: str) -> RemoteHost:
        return self._host_of(of_file_name(proxy).partition("->")[0])

    def _each(self, asked: Mapping[RemoteHost, tuple[Any, ...]]) -> dict[RemoteHost, Any]:
        """All hosts at once."""
        under_way = {host: host.asking("call", TOXIPROXY, "ask", *args) for host, args in asked.items()}
        return {host: host.answer(ref) for host, ref in under_way.items()}

    def create(self, proxies: Mapping[str, tuple[Address, Address]]) -> None:
        by_host: dict[RemoteHost, dict[str, tuple[Address, Address]]] = defaultdict(dict)
        for name, what in proxies.items():
            by_host[self._at(name)][name] = what
        self._each({host: ("create", here) for host, here in by_host.items()})

    def proxies(self) -> dict[str, dict[str, Any]]:
        shown = self._each({host: ("proxies",) for host in self._hosts})
        return {name: proxy for here in shown.values() for name, proxy in here.items()}

    def set_enabled(self, proxy: str, enabled: bool) -> None:
        self._ask(proxy, "set_enabled", proxy, enabled)

    def switch(self, wanted: Mapping[str, bool]) -> dict[str, bool]:
        by_host: dict[RemoteHost, dict[str, bool]] = defaultdict(dict)
        for name, on in wanted.items():
            by_host[self._at(name)][name] = on
        before: dict[str, bool] = {}
        for here in self._each({host: ("switch", here) for host, here in by_host.items()}).values():
            before |= here
        return before

    def add_toxic(
        self,
        proxy: str,
        name: str,
        kind: str,
        direction: Direction,
        attributes: Mapping[str, int],
        toxicity: float = 1.0,
    ) -> None:
        self._ask(proxy, "add_toxic", proxy, name, kind, direction, attributes, toxicity)

    def update_toxic(
        self, proxy: str, name: str, *, toxicity: float, attributes: Mapping[str, int] | None = None
    ) -> None:
        self._ask(proxy, "update_toxic", proxy, name, toxicity=toxicity, attributes=attributes)

    def remove_toxic(self, proxy: str, name: str) -> None:
        self._ask(proxy, "remove_toxic", proxy, name)

    def _ask(self, proxy: str, method: str, *args: Any, **kwargs: Any) -> None:
        self._at(proxy).ask("call", TOXIPROXY, "ask", method, *args, **kwargs)


class HostsPorts:
    """The ports of every host: of its own address for its servers, of its loopback device for its proxies."""

    def __init__(self, host_of: HostOf) -> None:
        self._host_of = host_of
        self._servers: dict[Address, RemoteHost] = {}

    def take_servers(self, names: Iterable[str]) -> dict[str, Address]:
        """Where each of these servers is to listen."""
        by_host: dict[RemoteHost, list[str]] = defaultdict(list)
        for name in names:
            by_host[self._host_of(first_address(name))].append(name)
        under_way = {h: h.asking("call", PORTS, "take", len(here), own=True) for h, here in by_host.items()}
        found: dict[str, Address] = {}
        for host, here in by_host.items():
            for name, address in zip(here, host.answer(under_way[host]), strict=True):
                found[name] = address
                self._servers[address] = host
        return {name: found[name] for name in names}

    def take_for(self, nodes: Iterable[str]) -> list[Address]:
        nodes = tuple(nodes)
        by_host: dict[RemoteHost, int] = defaultdict(int)
        for node in nodes:
            by_host[self._host_of(node)] += 1
        under_way = {host: host.asking("call", PORTS, "take", count, own=False) for host, count in by_host.items()}
        taken = {host: iter(host.answer(ref)) for host, ref in under_way.items()}
        return [next(taken[self._host_of(node)]) for node in nodes]

    def swallow(self, address: Address) -> object:
        host = self._servers.get(address)
        return host is not None and host.ask("call", PORTS, "swallow", address)

    def refuse(self, address: Address) -> None:
        host = self._servers.get(address)
        if host is not None:
            host.ask("call", PORTS, "refuse", address)


class HostsPackets:
    """The packets of every host's links, lost there."""

    def __init__(self, host_of: HostOf) -> None:
        self._host_of = host_of
        self._opened: set[str] = set()

    def open(self, hosts: Iterable[RemoteHost]) -> None:
        """HarnessError with the first host that cannot drop any."""
        for host in hosts:
            if host.name not in self._opened:
                try:
                    host.ask("open", PACKETS, HostPackets)
                except HarnessError as exc:
                    raise HarnessError(f"on the host {host}: {exc}") from exc
                self._opened.add(host.name)

    def of(self, node: str) -> PacketsThere:
        """Of the links of this node."""
        host = self._host_of(node)
        self.open([host])
        return PacketsThere(host)


class PacketsThere:
    def __init__(self, host: RemoteHost) -> None:
        self._host = host

    def lose(self, ports: Iterable[int], directions: Iterable[Direction]) -> None:
        self._host.ask("call", PACKETS, "lose", list(ports), list(directions))


class RemoteFront:
    """A port on another host that answers no dial until `open`."""

    _made = 0

    def __init__(self, host: RemoteHost) -> None:
        RemoteFront._made += 1
        self._host, self._key = host, f"front-{RemoteFront._made}"
        self.address: Address = host.ask("open", self._key, HostFront)

    def open(self, to: Address) -> None:
        self._host.ask("call", self._key, "open", to)


class MeasuredThere:
    """Links are measured from the host of their dialler."""

    def __init__(self, clock: RealClock, way: Callable[[Link], Route], host_of: HostOf) -> None:
        self._clock, self._way, self._host_of = clock, way, host_of

    async def __call__(self, link: Link, function: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        import ray.exceptions

        host, way = self._host_of(link.node), self._way(link)
        ref = host.asking("run", measured, host.clock(self._clock), way.over, way.around, function, *args)
        try:
            return await asyncio.wrap_future(ref.future())
        except ray.exceptions.RayTaskError as exc:
            cause = getattr(exc, "cause", None)
            raise (cause if isinstance(cause, Exception) else exc) from None
        except ray.exceptions.RayError as exc:
            raise HarnessError(f"{link} could not be measured: the host {host} does not answer") from exc
