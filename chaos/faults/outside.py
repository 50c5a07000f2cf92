"""Detects and records faults that a person sets: on links by Toxiproxy's API, on processes by signals.

Proxies and processes are polled every POLL_S seconds. POLL_S is less than `delivery_ms` (windows.py). So if a route
changes before the fault is detected, the checks' tolerance covers the difference. Of the faults of processes, this
module detects only pauses, in /proc (Linux); actors/watch.py detects processes that end. Faults that the experiment
itself injects (also by `nemesrv fault`) are left out.
"""

import http.client
import logging
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import orjson

from ...actors.hosts import HostLost
from ...actors.processes import is_paused
from ...actors.watch import Repeating
from ...remoting.node.file_names import of_file_name
from ...remoting.node.network import Address
from ...remoting.node.recording import Recorder
from ..shapes import Stream
from .injector import note_on_link
from .kinds import of_toxic
from .link_faults import Cut, LinkFault
from .process_faults import Pause
from .processes import ProcessFaults, note
from .toxiproxy_links import LinkFaults

log = logging.getLogger("nemesrv.live")

POLL_S = 0.040
CALL_LIMIT_S = 5.0

Proxies = dict[str, dict[str, Any]]
"""Toxiproxy's description of each proxy."""
Seen = tuple[Proxies | None, dict[str, bool]]
"""The proxies of a host, None if none changed, and which of its nodes are paused."""


def faults_of(proxy: Mapping[str, Any], scale: float) -> frozenset[LinkFault]:
    """Return the faults on a link, from Toxiproxy's description of the link's proxy."""
    if not proxy["enabled"]:
        return frozenset({Cut()})
    streams: dict[LinkFault, set[Stream]] = {}
    for toxic in proxy["toxics"]:
        if toxic["toxicity"] > 0:
            streams.setdefault(of_toxic(toxic["type"], toxic["attributes"], scale), set()).add(toxic["stream"])
    return frozenset(
        fault.model_copy(update={"stream": "both" if len(found) == 2 else next(iter(found))})
        for fault, found in streams.items()
    )


class HostLooks:
    """Reads the state of one host's proxies and processes, on that host. On a host of a Ray cluster, HostLooks runs in
    the host's agent (actors/host_agent.py)."""

    def __init__(self, api: Address) -> None:
        self._connection = http.client.HTTPConnection(api.host, api.port, timeout=CALL_LIMIT_S)
        self._before: bytes | None = None
        self.close = self._connection.close

    def look(self, pids: Mapping[str, int]) -> Seen:
        """Return all proxies, and for each of these nodes whether its process is paused. The proxies are None if no
        proxy changed or Toxiproxy does not answer."""
        try:
            proxies = self.changed()
        except (OSError, ValueError, http.client.HTTPException):
            log.debug("Toxiproxy did not answer", exc_info=True)
            proxies = None
        return proxies, {node: is_paused(pid) for node, pid in pids.items()}

    def changed(self) -> Proxies | None:
        """Return all proxies; None if no proxy changed. An answer that equals the previous answer is not parsed. Raises
        OSError, ValueError or HTTPException if Toxiproxy does not answer."""
        try:
            self._connection.request("GET", "/proxies")
            answer = self._connection.getresponse().read()
        except BaseException:
            self.close()  # the next call connects anew
            raise
        if answer == self._before:
            return None
        proxies: Proxies = orjson.loads(answer)
        self._before = answer
        return proxies


class OutsideFaults(Repeating):
    """Polls the proxies and processes of all hosts in a thread, and records faults that others set or end. Context
    manager.

    `looks` has, by host name, the function that reads a host's state (HostLooks.look). `host_of` gives a node's host.
    `pids` gives the process ids of the nodes. `record` is called from the thread that polls. `links` and `processes`
    have the faults that the experiment itself injected.
    """

    def __init__(
        self,
        looks: Mapping[str, Callable[[Mapping[str, int]], Seen]],
        host_of: Callable[[str], str],
        record: Recorder,
        scale: float,
        pids: Callable[[], Mapping[str, int]],
        links: LinkFaults,
        processes: ProcessFaults,
        *,
        poll_s: float = POLL_S,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(self._look_at_all, poll_s, "outside-faults", CALL_LIMIT_S)
        self._looks, self._host_of, self._at_end = looks, host_of, at_end
        self._record, self._scale, self._pids = record, scale, pids
        self._links, self._processes = links, processes
        self._proxies: dict[str, Proxies] = {}
        self._paused: dict[str, str] = {}
        self._active: dict[tuple[str, LinkFault], str] = {}
        self._numbers = count(1)

    def active(self) -> list[tuple[str, str, str]]:
        """Return (id, fault, link or node) of every detected fault that has not ended."""
        links = [(fault_id, fault.do, name) for (name, fault), fault_id in self._active.items()]
        return links + [(fault_id, Pause().do, node) for node, fault_id in self._paused.items()]

    def update(self, proxies: Mapping[str, Mapping[str, Any]]) -> None:
        """Record the faults that ended since the last call, then the faults that began since the last call. A deleted
        proxy counts as the end of its faults."""
        now: set[tuple[str, LinkFault]] = set()
        for name, proxy in proxies.items():
            theirs = self._links.without_ours(name, proxy)
            if theirs is None:
                now |= {active for active in self._active if active[0] == name}
            else:
                now |= {(name, fault) for fault in faults_of(theirs, self._scale)}
        for name, fault in sorted(self._active.keys() - now, key=str):
            self._note(name, fault, self._active.pop((name, fault)), "end")
        for name, fault in sorted(now - self._active.keys(), key=str):
            fault_id = self._active[name, fault] = f"outside-{next(self._numbers)}"
            self._note(name, fault, fault_id, "start")

    def update_processes(self, paused: Mapping[str, bool]) -> None:
        """Record the pauses that began or ended since the last call. `paused` says of each node whether it is paused
        now."""
        for node, now in paused.items():
            before = self._paused.get(node)
            if now and before is None:
                self._paused[node] = f"outside-{next(self._numbers)}"
                note(self._record, self._paused[node], Pause(), node, "start")
            elif not now and before is not None:
                note(self._record, self._paused.pop(node), Pause(), node, "end")

    def _note(self, name: str, fault: LinkFault, fault_id: str, phase: str) -> None:
        source, arrow, target = of_file_name(name).partition("->")
        target = target.partition("~")[0]  # a later proxy of the link
        if not arrow:
            return  # a proxy that a person made for something else
        note_on_link(self._record, fault_id, fault, source, target, phase)

    def _look_at_all(self) -> None:
        for host in self._looks:
            try:
                self._look_at(host)
            except HostLost:
                log.debug("%s did not answer", host, exc_info=True)

    def _look_at(self, host: str) -> None:
        # What is seen is of before the answer, so nothing of ours may change meanwhile.
        with self._links.unchanged() as still_links, self._processes.unchanged() as still_processes:
            if not still_links or not still_processes:
                return
            ours = self._processes.ids
            pids = {node: pid for node, pid in self._pids().items() if self._host_of(node) == host and node not in ours}
            proxies, paused = self._looks[host](pids)
            if proxies is not None:
                self._proxies[host] = proxies
                self.update({name: proxy for here in self._proxies.values() for name, proxy in here.items()})
            self.update_processes(paused)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._at_end()
