"""`nemesrv fault` reaches a cluster of `nemesrv up` over a Unix socket, one request a line.

    <run>/up.json   {"pid": 4711, "socket": "/tmp/nsv-up-…/control"}      there while the cluster is up

    {"do": "black_hole", "links": ["broker-a <-> ns-0"], "for_s": 30}  ─►  {"begun": ["black_hole-1"], "at_s": 12.3}
    {"do": "list"}                                                     ─►  {"faults": [{"fault_id": …, …}], "at_s": …}
    what is wrong                                                      ─►  {"error": "one sentence", "status": 2}

Requests use the keys of a scenario's timeline; wrong requests get the same messages as a wrong timeline. The socket is
in a folder that only this user can enter. The run folder's path can be too long for a socket.
"""

import json
import logging
import os
import re
import shutil
import socketserver
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from ...actors.cluster import ClusterError
from ..errors import HarnessError, ScenarioError, ToxiproxyError
from ..experiment.session import RunningCluster
from ..faults.fault import Fault
from ..faults.kinds import ACTIONS
from ..faults.outside import OutsideFaults
from ..faults.process_faults import HOST_ACTIONS, PROCESS_FAULTS, IsolateHost, LoseHost, PauseHost
from . import DOOR

log = logging.getLogger("nemesrv.live")

_FOLDER_PREFIX = "nsv-up-"
_FLAGS = ("stream", "latency_ms", "jitter_ms", "rate_kb_s")
"""Keys of a timeline's entry that are options of `nemesrv fault`."""


class FaultDoor:
    """Context manager that serves requests for faults, one after the other, from `open` until the block ends."""

    def __init__(self, cluster: RunningCluster, outside: OutsideFaults | None = None) -> None:
        self._cluster, self._outside = cluster, outside
        self._acting = threading.RLock()
        self._timers: set[threading.Timer] = set()
        self._folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX))
        control = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(json.dumps(control.answer(self.rfile.readline())).encode() + b"\n")

        self._server = socketserver.ThreadingUnixStreamServer(str(self._folder / "control"), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), name="control", daemon=True)

    @property
    def _door(self) -> Path:
        return self._cluster.run_dir / DOOR

    def open(self) -> None:
        self._thread.start()
        temporary = self._door.with_name(f".{DOOR}.tmp")
        said = {"pid": os.getpid(), "socket": str(self._folder / "control")}
        temporary.write_text(json.dumps(said) + "\n", encoding="utf-8")
        temporary.replace(self._door)

    def answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            with self._acting:
                return {**self._done(request), "at_s": round(self._cluster.now_s, 3)}
        except (ValueError, KeyError, AttributeError, TypeError):
            return {"error": "a request that this version of nemesrv does not know", "status": 2}
        except (ClusterError, ToxiproxyError) as exc:
            return {"error": str(exc), "status": 4}
        except ScenarioError as exc:
            key = re.sub(r"^timeline\.\d+\.?", "", exc.key)
            flag = f"--{key.replace('_', '-')}" if key in _FLAGS else key
            said = str(ScenarioError(exc.file, flag, exc.value, exc.allowed)) if key else f"{exc.file}: {exc.allowed}"
            return {"error": said, "status": 2}
        except HarnessError as exc:
            return {"error": str(exc), "status": 2}

    def _done(self, request: Mapping[str, Any]) -> dict[str, Any]:
        settings = {name: value for name, value in request.items() if name not in ("do", "for_s")}
        do, for_s = request["do"], request.get("for_s")
        if do == "list":
            return {"faults": self.faults()}
        if (
            for_s is not None
            and do in ACTIONS
            and not issubclass(ACTIONS[do], Fault | LoseHost | IsolateHost | PauseHost)
        ):
            raise ScenarioError("nemesrv fault", "--for", str(for_s), f"a fault that has an end, which {do} has not")
        on = tuple(settings.get("nodes", ()) or settings.get("hosts", ()))
        begun = self._cluster.act(do, of="nemesrv fault", **settings)
        if for_s is not None:
            self._after(float(for_s), do, on, begun)
        return {"begun": list(begun)}

    def faults(self) -> list[dict[str, str]]:
        """Return every fault in force: faults of `nemesrv fault`, and faults that others set through Toxiproxy or by
        signals."""
        experiment = self._cluster.experiment
        found = [
            {"fault_id": fault_id, "fault": fault.do, "on": ", ".join(map(str, links))}
            for fault_id, (fault, links) in experiment.links.active.items()
        ]
        theirs = self._outside.active() if self._outside is not None else []
        known = {fault_id for fault_id, _, _ in theirs}
        ids = experiment.processes.ids
        for node, fault in experiment.processes.active.items():
            if ids.get(node) not in known:
                found.append({"fault_id": ids.get(node, ""), "fault": fault.do, "on": node})
        return found + [{"fault_id": fault_id, "fault": fault, "on": on} for fault_id, fault, on in theirs]

    def _after(self, for_s: float, do: str, on: tuple[str, ...], begun: tuple[str, ...]) -> None:
        def end() -> None:
            try:
                with self._acting:
                    self._end(do, on, begun)
            except HarnessError as exc:
                log.error("%s could not be ended: %s", ", ".join(begun), exc)
            finally:
                self._timers.discard(timer)

        timer = threading.Timer(for_s / self._cluster.experiment.stage.clock.scale, end)
        timer.daemon = True
        self._timers.add(timer)
        timer.start()

    def _end(self, do: str, on: tuple[str, ...], begun: tuple[str, ...]) -> None:
        """End these faults, if still in force, on the nodes or hosts `on`."""
        still = self._cluster.experiment.processes.ids
        if do in HOST_ACTIONS:
            if {*begun} & {*still.values(), *self._cluster.experiment.links.active}:
                self._cluster.act("return_host", hosts=on)
            return
        if not on:
            for fault_id in begun:
                self._cluster.end_link_fault(fault_id)
            return
        left = [node for node, fault_id in zip(on, begun, strict=True) if still.get(node) == fault_id]
        ended_by = PROCESS_FAULTS[do].ended_by
        if left and ended_by:
            self._cluster.act(ended_by, nodes=left)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._door.unlink(missing_ok=True)
        for timer in tuple(self._timers):
            timer.cancel()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        with self._acting:  # what is being done is done to its end
            shutil.rmtree(self._folder, ignore_errors=True)
