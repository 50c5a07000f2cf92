"""Faults that a person sets on a cluster, on links by Toxiproxy's own API and on processes by signals: seen, recorded.

Polled each POLL_S: less than what "at once" may take (windows.py, delivery_ms), so that a change which shows in a route
before its fault was seen is still within the tolerance. A process that is gone was killed, whatever ended it. Only on
Linux are processes looked at: their states are read from /proc.
"""

from __future__ import annotations

import http.client
import logging
import threading
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from ...remoting.node.network import Address
from ...remoting.node.recording import Recorder
from .kinds import of_toxic
from .link_faults import Cut, LinkFault, Stream
from .process_faults import PROCESS_FAULTS
from .processes import note

log = logging.getLogger("nemesrv.live")

POLL_S = 0.020
CALL_LIMIT_S = 5.0


def fault_of(stat: str | None) -> str:
    """What a process's line in /proc says was done to it: "" for nothing, pause, or kill (None: it is gone)."""
    state = "Z" if stat is None else stat.rpartition(")")[2].split()[0]
    return "kill" if state in "ZX" else "pause" if state == "T" else ""


def _stat(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None


def faults_of(proxy: Mapping[str, Any], scale: float) -> frozenset[LinkFault]:
    """What a proxy, as Toxiproxy shows it, does to its link."""
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


class OutsideFaults:
    """Context manager: while it is entered, a thread looks at proxies and processes and records what changed.

    `pids` are those of the nodes. `record` is called from that thread. A Toxiproxy that does not answer is asked again;
    nothing is raised.
    """

    def __init__(self, api: Address, record: Recorder, scale: float, pids: Mapping[str, int]) -> None:
        self._api, self._record, self._scale, self._pids = api, record, scale, dict(pids)
        self._done: dict[str, tuple[str, str]] = {}
        self._active: dict[tuple[str, LinkFault], str] = {}
        self._numbers = count(1)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="outside-faults", daemon=True)

    def update(self, proxies: Mapping[str, Mapping[str, Any]]) -> None:
        """Record what began and what ended, ends first, since the call before. A proxy that is gone is healed."""
        now = {(name, fault) for name, proxy in proxies.items() for fault in faults_of(proxy, self._scale)}
        for name, fault in sorted(self._active.keys() - now, key=str):
            self._note(name, fault, self._active.pop((name, fault)), "end")
        for name, fault in sorted(now - self._active.keys(), key=str):
            fault_id = self._active[name, fault] = f"outside-{next(self._numbers)}"
            self._note(name, fault, fault_id, "start")

    def update_processes(self, faults: Mapping[str, str]) -> None:
        """Record what began and what ended since the call before: node → "", pause or kill. A kill is for good."""
        for node, fault in faults.items():
            fault_id, before = self._done.get(node, ("", ""))
            if fault == before or before == "kill":
                continue
            if before:
                self._process_row(fault_id, before, node, "end")
                del self._done[node]
            if fault:
                self._done[node] = (f"outside-{next(self._numbers)}", fault)
                self._process_row(self._done[node][0], fault, node, "start")

    def _process_row(self, fault_id: str, fault: str, node: str, phase: str) -> None:
        note(self._record, fault_id, PROCESS_FAULTS[fault](do=fault), node, phase)

    def _note(self, name: str, fault: LinkFault, fault_id: str, phase: str) -> None:
        source, arrow, target = name.partition("->")
        if not arrow:
            return  # a proxy that a person made for something else
        self._record(
            "fault",
            fault_id=fault_id,
            fault=fault.do,
            injection=fault.recorded_injection,
            source=source,
            target=target,
            stream=fault.stream,
            phase=phase,
            value=fault.numbers,
        )

    def _watch(self) -> None:
        while not self._ends.is_set():
            connection = http.client.HTTPConnection(self._api.host, self._api.port, timeout=CALL_LIMIT_S)
            try:
                while not self._ends.wait(POLL_S):
                    self.update_processes({node: fault_of(_stat(pid)) for node, pid in self._pids.items()})
                    connection.request("GET", "/proxies")
                    self.update(orjson.loads(connection.getresponse().read()))
            except (OSError, http.client.HTTPException, orjson.JSONDecodeError):
                log.debug("Toxiproxy did not answer", exc_info=True)
                self._ends.wait(10 * POLL_S)
            finally:
                connection.close()

    def __enter__(self) -> OutsideFaults:
        self._thread.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join(CALL_LIMIT_S)
