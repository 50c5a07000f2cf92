"""Faults that a person sets on a cluster, on links by Toxiproxy's own API and on processes by signals: seen, recorded.

Polled each POLL_S: less than what "at once" may take (windows.py, delivery_ms), so that a change which shows in a route
before its fault was seen is still within the tolerance. An answer that equals the one before is not parsed. Of
processes only a pause is seen here, in /proc (Linux); one that ends is watched elsewhere (actors/watch.py). What the
experiment itself does meanwhile (`nemesrv fault`) is left out.
"""

from __future__ import annotations

import http.client
import io
import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from itertools import count
from typing import Any

import orjson

from ...remoting.node.file_names import of_file_name
from ...remoting.node.network import Address
from ...remoting.node.recording import Recorder
from .kinds import of_toxic
from .link_faults import Cut, LinkFault, Stream
from .process_faults import Pause
from .processes import ProcessFaults, note
from .toxiproxy_links import LinkFaults

log = logging.getLogger("nemesrv.live")

POLL_S = 0.040
CALL_LIMIT_S = 5.0


def fault_of(stat: str | None) -> str:
    """What a process's line in /proc says was done to it: "" for nothing that lasts, or pause. None: it is gone."""
    return "pause" if stat is not None and stat.rpartition(")")[2].split()[0] == "T" else ""


class ProcessLines:
    """Context manager: the lines of processes in /proc, whose files stay open, as they are read many times a second."""

    def __init__(self) -> None:
        self._files: dict[int, int] = {}

    def line(self, pid: int) -> str | None:
        """None when the process is gone; one that has its number now is another, and is opened anew."""
        try:
            if pid not in self._files:
                self._files[pid] = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
            return os.pread(self._files[pid], 512, 0).decode("utf-8", "replace")
        except (FileNotFoundError, ProcessLookupError):
            self._forget(pid)
            return None

    def _forget(self, pid: int) -> None:
        file = self._files.pop(pid, None)
        if file is not None:
            os.close(file)

    def __enter__(self) -> ProcessLines:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in [*self._files]:
            self._forget(pid)


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

    `pids` gives those of the nodes. `record` is called from that thread. A Toxiproxy that does not answer is asked
    again; nothing is raised.
    """

    def __init__(
        self,
        api: Address | None,
        record: Recorder,
        scale: float,
        pids: Callable[[], Mapping[str, int]],
        links: LinkFaults | None = None,
        processes: ProcessFaults | None = None,
    ) -> None:
        self._api, self._record, self._scale, self._pids = api, record, scale, pids
        self._links, self._processes = links, processes
        self._paused: dict[str, str] = {}
        self._active: dict[tuple[str, LinkFault], str] = {}
        self._numbers = count(1)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="outside-faults", daemon=True)

    def active(self) -> list[tuple[str, str, str]]:
        """(id, fault, link or node) of all that were seen to begin and not to end."""
        links = [(fault_id, fault.do, name) for (name, fault), fault_id in self._active.items()]
        return links + [(fault_id, Pause().do, node) for node, fault_id in self._paused.items()]

    def update(self, proxies: Mapping[str, Mapping[str, Any]]) -> None:
        """Record what began and what ended, ends first, since the call before. A proxy that is gone is healed."""
        now: set[tuple[str, LinkFault]] = set()
        for name, proxy in proxies.items():
            theirs = proxy if self._links is None else self._links.without_ours(name, proxy)
            if theirs is None:
                now |= {active for active in self._active if active[0] == name}
            else:
                now |= {(name, fault) for fault in faults_of(theirs, self._scale)}
        for name, fault in sorted(self._active.keys() - now, key=str):
            self._note(name, fault, self._active.pop((name, fault)), "end")
        for name, fault in sorted(now - self._active.keys(), key=str):
            fault_id = self._active[name, fault] = f"outside-{next(self._numbers)}"
            self._note(name, fault, fault_id, "start")

    def update_processes(self, faults: Mapping[str, str]) -> None:
        """Record what began and what ended since the call before: node → "" or pause."""
        for node, fault in faults.items():
            before = self._paused.get(node)
            if fault and before is None:
                self._paused[node] = f"outside-{next(self._numbers)}"
                note(self._record, self._paused[node], Pause(), node, "start")
            elif not fault and before is not None:
                note(self._record, self._paused.pop(node), Pause(), node, "end")

    def _note(self, name: str, fault: LinkFault, fault_id: str, phase: str) -> None:
        source, arrow, target = of_file_name(name).partition("->")
        target = target.partition("~")[0]  # a later proxy of the link
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
        assert self._api is not None
        while not self._ends.is_set():
            try:
                with ProxiesShown(self._api) as shown, ProcessLines() as processes:
                    while not self._ends.wait(POLL_S):
                        self._look_at_processes(processes)
                        self._look_at_links(shown)
            except (OSError, ValueError, http.client.HTTPException):
                log.debug("Toxiproxy did not answer", exc_info=True)
                self._ends.wait(10 * POLL_S)

    def _look_at_processes(self, lines: ProcessLines) -> None:
        with self._processes.unchanged() if self._processes else nullcontext(True) as unchanged:
            if not unchanged:
                return
            ours = self._processes.ids if self._processes else {}
            self.update_processes(
                {node: fault_of(lines.line(pid)) for node, pid in self._pids().items() if node not in ours}
            )

    def _look_at_links(self, shown: ProxiesShown) -> None:
        with self._links.unchanged() if self._links else nullcontext(True) as unchanged:
            if unchanged and (proxies := shown.changed()) is not None:
                self.update(proxies)

    def __enter__(self) -> OutsideFaults:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(CALL_LIMIT_S)


class ProxiesShown:
    """Toxiproxy's GET /proxies, asked again and again over one connection; parsed only when it is not as before."""

    def __init__(self, api: Address) -> None:
        self._connection = http.client.HTTPConnection(api.host, api.port, timeout=CALL_LIMIT_S)
        self._request = f"GET /proxies HTTP/1.1\r\nHost: {api}\r\n\r\n".encode()
        self._before: bytes | None = None

    def changed(self) -> dict[str, dict[str, Any]] | None:
        """Every proxy; None when all are as they were. OSError, ValueError or HTTPException when it does not answer."""
        head, body = self._answer()
        if body == self._before:
            return None
        response = http.client.HTTPResponse(_Bytes(head + body))  # type: ignore[arg-type]
        response.begin()
        proxies: dict[str, dict[str, Any]] = orjson.loads(response.read())
        self._before = body
        return proxies

    def _answer(self) -> tuple[bytes, bytes]:
        if self._connection.sock is None:
            self._connection.connect()
        self._connection.sock.sendall(self._request)
        data = b""
        while True:
            more = self._connection.sock.recv(65536)
            if not more:
                raise ConnectionResetError("Toxiproxy closed the connection")
            data += more
            head, end, body = data.partition(b"\r\n\r\n")
            if end and _whole(head.lower(), body):
                return head + end, body

    def __enter__(self) -> ProxiesShown:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def _whole(head: bytes, body: bytes) -> bool:
    """Whether all of an answer's body has come. Go sends longer ones in chunks; JSON has no line ends in it."""
    _, stated, length = head.partition(b"content-length:")
    if stated:
        return len(body) >= int(length.split(b"\r\n")[0])
    return body.endswith(b"\r\n0\r\n\r\n")


class _Bytes:
    """An answer that has come already, for HTTPResponse."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)
