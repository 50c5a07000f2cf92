"""The harness's objects on each host (Toxiproxy, ports, fronts), and the driver's objects that call these objects.

    Host…    runs on a host, in its agent's process (actors/host_agent.py): the same parts that an
             experiment on one machine has. Factories get the existing parts by their keys
    Hosts…   of the driver: each call goes to the host whose proxy, port or dialler it is

The proxy of (node, peer) is on the node's host and connects to the peer's own address, so bytes cross hosts once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ....actors.hosts import RemoteHost
from ....remoting.node.clock import RealClock
from ....remoting.node.file_names import of_file_name
from ....remoting.node.network import Address
from ...faults.link_faults import Toxic
from ...faults.outside import HostLooks
from ...faults.ports import FullAcceptQueue, PortHolder
from ...history.recorder import RecorderSpec
from ...oracle.intervals import grouped
from ...topology import first_address

PORTS, TOXIPROXY, LAG, OUTSIDE = "ports", "toxiproxy", "lag", "outside"


class HostPorts(PortHolder):
    """Reserved ports of a host: at its own address for servers; for proxies `near`, which are at its loopback address,
    or at its own if outside programs connect to them."""

    def __init__(self, _parts: Mapping[str, Any], address: str) -> None:
        super().__init__(address)
        self.near = PortHolder(outside=address)

    def take_servers(self, names: Iterable[str]) -> list[Address]:
        """Reserve an address for each server, with the broker's VIP port two below it."""
        return [self.take(vip=True) for _ in names]

    def take_for(self, nodes: Iterable[str]) -> list[Address]:
        return self.near.take_for(nodes)

    def close(self) -> None:
        self.near.close()
        super().close()


class HostToxiproxy:
    """A Toxiproxy server on the host, whose API listens on the loopback address."""

    def __init__(self, parts: Mapping[str, Any], log_file: Path) -> None:
        from ...faults.toxiproxy import ToxiproxyServer

        self._server = ToxiproxyServer(log_file, ports=parts[PORTS].near)
        self.api = self._server.start()
        self.pid = self._server.pid
        self.opened = (self.api.address, self.pid)

    def ask(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.api, method)(*args, **kwargs)

    def close(self) -> None:
        self._server.stop()


class HostOutside(HostLooks):
    def __init__(self, parts: Mapping[str, Any]) -> None:
        super().__init__(parts[TOXIPROXY].api.address)


class HostLag(ExitStack):
    def __init__(self, parts: Mapping[str, Any], clock: RealClock, spec: RecorderSpec, step_s: float) -> None:
        from ...faults.proxy_lag import ProxyLagProbe

        super().__init__()
        record = spec.open()
        self.callback(record.close)
        self.enter_context(ProxyLagProbe(parts[TOXIPROXY].api, parts[PORTS].near, clock, record, step_s=step_s))


class HostFront(FullAcceptQueue):
    """A loopback port of the host that answers no connection attempt."""

    def __init__(self, _parts: Mapping[str, Any]) -> None:
        super().__init__()
        self.opened = self.address


HostOf = Callable[[str], RemoteHost]


class HostsToxiproxy:
    """One client for the Toxiproxy servers of all hosts; a proxy's name decides which host's server is called. It has
    the methods of Toxiproxy (faults/toxiproxy.py)."""

    def __init__(self, hosts: Iterable[RemoteHost], host_of: HostOf) -> None:
        self._hosts, self._host_of = tuple(hosts), host_of

    def _at(self, proxy: str) -> RemoteHost:
        return self._host_of(of_file_name(proxy).partition("->")[0])

    def _each(self, asked: Mapping[RemoteHost, tuple[Any, ...]]) -> dict[RemoteHost, Any]:
        under_way = {host: host.asking("call", TOXIPROXY, "ask", *args) for host, args in asked.items()}
        return {host: host.answer(ref) for host, ref in under_way.items()}

    def _each_its_own(self, method: str, of_proxies: Mapping[str, Any]) -> dict[RemoteHost, Any]:
        by_host = grouped((self._at(name), name) for name in of_proxies)
        return self._each({host: (method, {name: of_proxies[name] for name in here}) for host, here in by_host.items()})

    def create(self, proxies: Mapping[str, tuple[Address, Address]]) -> None:
        self._each_its_own("create", proxies)

    def proxies(self) -> dict[str, dict[str, Any]]:
        shown = self._each({host: ("proxies",) for host in self._hosts})
        return {name: proxy for here in shown.values() for name, proxy in here.items()}

    def set_enabled(self, proxy: str, enabled: bool) -> None:
        self._ask(proxy, "set_enabled", proxy, enabled)

    def switch(self, wanted: Mapping[str, bool]) -> dict[str, bool]:
        return {name: on for here in self._each_its_own("switch", wanted).values() for name, on in here.items()}

    def add_toxic(self, proxy: str, toxic: Toxic) -> None:
        self._ask(proxy, "add_toxic", proxy, toxic)

    def update_toxic(
        self, proxy: str, name: str, *, toxicity: float, attributes: Mapping[str, int] | None = None
    ) -> None:
        self._ask(proxy, "update_toxic", proxy, name, toxicity=toxicity, attributes=attributes)

    def remove_toxic(self, proxy: str, name: str) -> None:
        self._ask(proxy, "remove_toxic", proxy, name)

    def _ask(self, proxy: str, method: str, *args: Any, **kwargs: Any) -> None:
        self._at(proxy).ask("call", TOXIPROXY, "ask", method, *args, **kwargs)


class HostsPorts:
    """The reserved ports of all hosts: a host's own address for servers, its loopback address for proxies."""

    def __init__(self, host_of: HostOf) -> None:
        self._host_of = host_of
        self._servers: dict[Address, RemoteHost] = {}

    def take_servers(self, names: Iterable[str]) -> dict[str, Address]:
        names = tuple(names)
        hosts = [self._host_of(first_address(name)) for name in names]
        taken = self._taken("take_servers", names, hosts)
        self._servers |= dict(zip(taken, hosts, strict=True))
        return dict(zip(names, taken, strict=True))

    def take_for(self, nodes: Iterable[str]) -> list[Address]:
        nodes = tuple(nodes)
        return self._taken("take_for", nodes, [self._host_of(node) for node in nodes])

    def _taken(self, method: str, names: Sequence[str], hosts: Sequence[RemoteHost]) -> list[Address]:
        """Return an address for each name, at the name's host; all hosts are asked at once."""
        by_host = grouped(zip(hosts, names, strict=True))
        under_way = {host: host.asking("call", PORTS, method, here) for host, here in by_host.items()}
        taken = {host: iter(host.answer(ref)) for host, ref in under_way.items()}
        return [next(taken[host]) for host in hosts]

    def swallow(self, address: Address) -> object:
        host = self._servers.get(address)
        return host is not None and host.ask("call", PORTS, "swallow", address)

    def refuse(self, address: Address) -> None:
        host = self._servers.get(address)
        if host is not None:
            host.ask("call", PORTS, "refuse", address)


class RemoteFront:
    """A port on another host that answers no connection attempt until `open`."""

    _made = 0

    def __init__(self, host: RemoteHost) -> None:
        RemoteFront._made += 1
        self._host, self._key = host, f"front-{RemoteFront._made}"
        self.address: Address = host.ask("open", self._key, HostFront)

    def open(self, to: Address) -> None:
        self._host.ask("call", self._key, "open", to)
