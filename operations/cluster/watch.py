"""`nemesrv watch` reads a live cluster until Ctrl-C, or, with `once`, until it is certain whether something is wrong.

    look ─► auditor ─► changes ─► said at once

Exit status with `once`: 0 if nothing is wrong, 1 if something is wrong, 4 if no NameServer answers. If NameServers
disagree, `once` waits until the NameServers agree, or for about 40 s, the longest allowed disagreement.
"""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from ...actors.standalone import run_until_done, stop_on_signal
from ...chaos.errors import HarnessError
from ...chaos.installation import require_extras
from ...chaos.verdict import singular
from ...remoting.node.network import Address
from ...remoting.node.this_machine import on_this_machine
from .auditor import KINDS, ProblemChange
from .looks import Look
from .server_answers import require_an_answer
from .watcher import INTERVAL_S, Watcher

WRONG, RIGHT = 1, 0
ONCE_AT_MOST_S = 120.0

Say = Callable[[str], None]


def run(
    name_servers: Sequence[Address],
    say: Say,
    *,
    once: bool = False,
    as_json: bool = False,
    metrics_port: int | None = None,
    interval_s: float = INTERVAL_S,
) -> int:
    """Watch the cluster until Ctrl-C, or with `once` until the result is certain; return the exit status. Raises
    HarnessError if no NameServer answers at first, or the port for metrics is taken."""
    metrics = None if metrics_port is None else Metrics(metrics_port)

    async def watch() -> int:
        context = on_this_machine("watch")
        began_s, first = context.clock.monotonic_s(), True
        async with aclosing(Watcher(context, name_servers, interval_s)) as watcher:
            ended = stop_on_signal()  # uvloop loses what a handler raises
            async for look, changes in watcher.looks():
                if first:
                    require_an_answer({at: server.why for at, server in look.name_servers.items()})
                if first and not once and not as_json:
                    say(_begin(look, watcher))
                first = False
                if metrics is not None:
                    metrics.looked(look, watcher)
                for change in changes:
                    say(line_of(change, as_json=as_json))
                if once and (is_decided(watcher) or look.at_s - began_s > ONCE_AT_MOST_S):
                    if not as_json and not watcher.auditor.problems:
                        say(_begin(look, watcher))
                    return WRONG if watcher.auditor.problems else RIGHT
                if once and ended.is_set():
                    raise KeyboardInterrupt  # nothing is decided
                if ended.is_set():
                    break
        return RIGHT

    try:
        return run_until_done(watch())
    finally:
        if metrics is not None:
            metrics.close()


def is_decided(watcher: Watcher) -> bool:
    """Whether the result of `--once` is final: every listed broker was asked, every problem seen is reported, and every
    NameServer has had the time to fill its table."""
    return watcher.has_asked_all and not watcher.auditor.pending and not watcher.auditor.fills


def line_of(change: ProblemChange, *, as_json: bool = False) -> str:
    """Return the line that reports a new problem, or the end of a problem, as text or JSON, with this machine's
    time."""
    at = datetime.fromtimestamp(time.time(), UTC)
    if not as_json:
        word = "found" if change.found else f"over after {change.lasted_s:.0f} s"
        return f"{at:%Y-%m-%dT%H:%M:%SZ}  {change.problem.kind}  {word}: {change.sentence}"
    return json.dumps(
        {
            "time": f"{at:%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z",
            "phase": "found" if change.found else "over",
            "kind": change.problem.kind,
            "about": change.problem.about,
            "lasted_s": round(change.lasted_s, 1),
            "sentence": change.sentence,
        },
        ensure_ascii=False,
    )


def _begin(look: Look, watcher: Watcher) -> str:
    brokers = {broker for server in look.name_servers.values() for broker in server.brokers}
    answering = sum(server.why is None for server in look.name_servers.values())
    there = f"{answering} of {len(watcher.name_servers)} NameServers answer"
    return singular(f"{there}, {len(brokers)} brokers, {watcher.topics} topics")


# --- metrics


class Metrics:
    """Serves Prometheus metrics at http://HOST:PORT/metrics until `close` is called. Raises HarnessError if the port is
    taken."""

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
        auditor = watcher.auditor
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
