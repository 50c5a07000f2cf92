"""Faults that a person sets on a cluster of many hosts, by a host's Toxiproxy and by signals there: seen, recorded."""

from __future__ import annotations

import http.client
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from ....actors.hosts import HostLost, RemoteHost
from ....remoting.node.recording import Recorder
from ...faults.outside import OurLinks, OurProcesses, OutsideFaults, ProcessLines, ProxiesShown, fault_of
from .parts import TOXIPROXY

log = logging.getLogger("nemesrv.live")

OUTSIDE = "outside"
POLL_S = 0.1
"""As faults.outside.POLL_S; each look is a call of the host's agent."""


class HostLooks:
    """On a host: what its proxies and processes show. A part (actors/host_agent.py)."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self._shown = ProxiesShown(parts[TOXIPROXY].api.address)
        self._lines = ProcessLines()

    def look(self, pids: Mapping[str, int]) -> tuple[dict[str, dict[str, Any]] | None, dict[str, str]]:
        """Every proxy, or None when all are as they were; and what was done to each of the nodes' processes."""
        try:
            proxies = self._shown.changed()
        except (OSError, ValueError, http.client.HTTPException):
            log.debug("Toxiproxy did not answer", exc_info=True)
            proxies = None
        return proxies, {node: fault_of(self._lines.line(pid)) for node, pid in pids.items()}

    def close(self) -> None:
        self._shown.__exit__(None, None, None)
        self._lines.__exit__(None, None, None)


class HostsOutsideFaults(OutsideFaults):
    """As OutsideFaults, of all hosts."""

    def __init__(
        self,
        hosts: Iterable[RemoteHost],
        host_of: Callable[[str], RemoteHost],
        record: Recorder,
        scale: float,
        pids: Callable[[], Mapping[str, int]],
        links: OurLinks,
        processes: OurProcesses,
    ) -> None:
        self._hosts, self._host_of = tuple(hosts), host_of
        super().__init__(None, record, scale, pids, links, processes)
        self._proxies: dict[str, dict[str, dict[str, Any]]] = {}

    def _watch(self) -> None:
        for host in self._hosts:
            host.ask("open", OUTSIDE, HostLooks)
        while not self._ends.wait(POLL_S):
            for host in self._hosts:
                try:
                    self._look_at(host)
                except HostLost:
                    log.debug("%s did not answer", host, exc_info=True)

    def _look_at(self, host: RemoteHost) -> None:
        # What is seen is of before the answer, so nothing of ours may change meanwhile.
        links, processes = self._links, self._processes
        with (
            links.unchanged() if links else nullcontext(True) as still_links,
            processes.unchanged() if processes else nullcontext(True) as still_processes,
        ):
            if not still_links or not still_processes:
                return
            ours = processes.ids if processes else {}
            pids = {node: pid for node, pid in self._pids().items() if self._host_of(node) is host and node not in ours}
            proxies, faults = host.ask("call", OUTSIDE, "look", pids)
            if proxies is not None:
                self._proxies[host.name] = proxies
                self.update({name: proxy for here in self._proxies.values() for name, proxy in here.items()})
            self.update_processes(faults)
