"""What the harness opens on a host, in the process of the agent there (actors/host_agent.py): the same parts that an
experiment on one machine has beside itself. Factories get the parts that are there already, by their keys.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ....remoting.node.clock import RealClock
from ....remoting.node.network import Address, TcpNetwork
from ...faults.accept_queue import FullAcceptQueue
from ...faults.link_faults import Direction
from ...faults.measuring import Route
from ...faults.ports import PortHolder
from ...history.recorder import RecorderSpec

PORTS, TOXIPROXY, LAG, PACKETS = "ports", "toxiproxy", "lag", "packets"


class HostPorts:
    """Ports of the host's own address, for servers, and of its loopback device, for proxies."""

    def __init__(self, _parts: Mapping[str, Any], address: str) -> None:
        self.near = PortHolder()
        self._own = PortHolder(address)

    def take(self, count: int, *, own: bool) -> list[Address]:
        """So many; `own`: others can reach them."""
        holder = self._own if own else self.near
        return [holder.take() for _ in range(count)]

    def swallow(self, address: Address) -> bool:
        return self._own.swallow(address)

    def refuse(self, address: Address) -> None:
        self._own.refuse(address)

    def close(self) -> None:
        self.near.close()
        self._own.close()


class HostToxiproxy:
    """A Toxiproxy server of the host's own, whose API is on its loopback device."""

    def __init__(self, parts: Mapping[str, Any], log_file: Path) -> None:
        from ...faults.toxiproxy import ToxiproxyServer

        self._server = ToxiproxyServer(log_file, ports=parts[PORTS].near)
        self.api = self._server.start()
        self.pid = self._server.pid
        self.opened = (self.api.address, self.pid)

    def ask(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """What that method of the API's client returns (faults/toxiproxy.py)."""
        return getattr(self.api, method)(*args, **kwargs)

    def close(self) -> None:
        self._server.stop()


class HostLag:
    """How late that Toxiproxy is. Context manager."""

    def __init__(self, parts: Mapping[str, Any], clock: RealClock, spec: RecorderSpec, step_s: float) -> None:
        from ...faults.proxy_lag import ProxyLagProbe

        self._record = spec.open()
        self._probe = ProxyLagProbe(parts[TOXIPROXY].api, parts[PORTS].near, clock, self._record, step_s=step_s)

    def __enter__(self) -> HostLag:
        self._probe.__enter__()
        return self

    def __exit__(self, *of: Any) -> None:
        self._probe.__exit__(*of)
        self._record.close()


class HostFront:
    """A port of the host's loopback device that answers no dial."""

    def __init__(self, _parts: Mapping[str, Any]) -> None:
        self._queue = FullAcceptQueue()
        self.opened = self._queue.address

    def open(self, to: Address) -> None:
        self._queue.open(to)

    def close(self) -> None:
        self._queue.close()


class HostPackets:
    """The packets of the host's own network namespace."""

    def __init__(self, _parts: Mapping[str, Any]) -> None:
        from ...faults.packet_drop import PacketDrop

        self._drop = PacketDrop()

    def lose(self, ports: Sequence[int], directions: Sequence[Direction]) -> None:
        self._drop.lose(ports, directions)

    def close(self) -> None:
        self._drop.close()


async def measured(
    clock: RealClock, over: Address, around: Address | None, function: Callable[..., Awaitable[Any]], *args: Any
) -> Any:
    """What the function measures of a link, dialled from here."""
    return await function(clock, Route(TcpNetwork(), over, around), *args)
