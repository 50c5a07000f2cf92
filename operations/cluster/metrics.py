"""What a watch finds as Prometheus metrics, at http://HOST:PORT/metrics."""

from __future__ import annotations

from typing import Any

from ...chaos.errors import HarnessError
from ...chaos.installation import require_extras
from .auditor import KINDS, Auditor
from .looks import Look
from .watching import Watcher

NAMES = (
    "nemesrv_name_server_up",
    "nemesrv_name_server_brokers",
    "nemesrv_name_server_topics",
    "nemesrv_problems",
    "nemesrv_problem_seconds",
    "nemesrv_looks_total",
    "nemesrv_requests",
)
"""What Prometheus finds."""


class Metrics:
    """Serves from construction until `close`. HarnessError where the port cannot be had."""

    def __init__(self, port: int, host: str = "") -> None:
        require_extras("--metrics", "watch")
        from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

        registry = CollectorRegistry()

        def gauge(name: str, says: str, *labels: str) -> Gauge:
            return Gauge(name, says, labels, namespace="nemesrv", registry=registry)

        self._up = gauge("name_server_up", "whether the NameServer answered the last look", "name_server")
        self._held = gauge("name_server_brokers", "how many brokers the NameServer holds", "name_server")
        self._topics = gauge("name_server_topics", "how many topics the NameServer has", "name_server")
        self._problems = gauge("problems", "how many problems of the kind there are now", "kind")
        self._since = gauge("problem_seconds", "for how long it has lasted", "kind", "about")
        self._looks = Counter("looks", "looks at the cluster", namespace="nemesrv", registry=registry)
        self._requests = gauge("requests", "requests that the watch has sent")
        try:
            self._server: Any
            self._server, self._thread = start_http_server(port, addr=host or "0.0.0.0", registry=registry)
        except OSError as exc:
            raise HarnessError(f"--metrics: port {port} cannot be had ({exc.strerror}): give another one") from exc

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def looked(self, look: Look, watcher: Watcher) -> None:
        """Show what this look found."""
        auditor: Auditor = watcher.auditor
        for at, server in look.name_servers.items():
            self._up.labels(at).set(server.why is None)
            self._held.labels(at).set(len(server.brokers))
            if server.topics is not None:
                self._topics.labels(at).set(len(server.topics))
        problems = auditor.problems
        for kind in KINDS:
            self._problems.labels(kind).set(sum(problem.kind == kind for problem in problems))
        self._since.clear()
        for problem, since_s in auditor.since_s.items():
            self._since.labels(problem.kind, " ".join(problem.about)).set(look.at_s - since_s)
        self._looks.inc()
        self._requests.set(watcher.requests)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
