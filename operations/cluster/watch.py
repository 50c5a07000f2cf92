"""`nemesrv watch`: looks until Ctrl-C, or, with `once`, until it is decided whether something is wrong.

    look ─► auditor ─► changes ─► said at once      record ─► each so often (live/changes.py) ─► faults, verdicts ─► RUN

Exit status with `once`: 0 nothing is wrong, 1 something is, 4 no NameServer answers. A disagreement is waited for until
it is over or has lasted for its window, some 40 s at most.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...actors.standalone import run_until_done, stop_on_signal
from ...chaos.errors import HarnessError
from ...chaos.installation import require_extras
from ...chaos.judging import Judged, exit_status, show
from ...chaos.live.changes import News, Pace
from ...chaos.verdict import Verdict
from ...remoting.node.network import Address
from ...remoting.node.this_machine import on_this_machine
from .auditor import KINDS, ProblemChange
from .looks import Look
from .watched_history import WatchedHistory
from .watched_run import Explained, explained, judged, lines_of, new_folder, verdicts_of, written
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
    checks: tuple[str, ...] | None = None,
    out: Path | None = None,
    for_s: float | None = None,
) -> int:
    """The exit status: with `checks` that of the verdict. HarnessError when no NameServer answers the first look, or
    the port for metrics is taken.

    `checks`: judged by these while it goes on, and at its end; `out`: the run folder of what is seen; `for_s`: it ends
    by itself after so long.
    """
    folder = None if out is None else new_folder(out)
    metrics = None if metrics_port is None else Metrics(metrics_port)
    telling = _Telling(say, as_json, checks or (), None if folder is None else folder.path)
    try:
        status = run_until_done(_watch(name_servers, telling, once, metrics, interval_s, for_s))
        return telling.conclude(status)
    finally:
        if metrics is not None:
            metrics.close()


@dataclass(slots=True)
class _Telling:
    """What is said of changes and verdicts, and what is kept of them."""

    say: Say
    as_json: bool
    checks: tuple[str, ...]
    out: Path | None
    record: WatchedHistory | None = None
    pace: Pace | None = None
    _news: News = field(default_factory=News)

    @property
    def records(self) -> bool:
        return bool(self.checks) or self.out is not None

    def looked(self, now_s: float) -> None:
        """Judge what was seen, where it is time."""
        record = self.record
        if record is None:
            return
        if self.pace is None:  # of what was there before nothing is known
            self.pace = Pace()
            self.pace.begins(now_s, 0.0)
        if not self.pace.due(now_s, record.changed_ms):
            return
        one = explained(record)
        if self.out is not None:
            written(self.out, record, one)
        for verdict in self._news.among(verdicts_of(one, self.checks) if self.checks else ()):
            self.say(verdict_line(verdict, as_json=self.as_json))

    def conclude(self, status: int) -> int:
        """The faults that account for what was seen, and the verdicts; the exit status."""
        if self.record is None:
            return status
        one = explained(self.record)
        found = judged(self.record, one, self.checks, self.out)
        self._show(one, found)
        return exit_status([found]) if self.checks else status

    def _show(self, one: Explained, found: Judged) -> None:
        if self.as_json:
            self.say(json.dumps({"phase": "faults", "episodes": list(one.episodes)}, ensure_ascii=False))
            for verdict in found.verdicts:
                self.say(verdict_line(verdict, as_json=True))
            return
        for line in lines_of(one):
            self.say(line)
        show(found)


def verdict_line(verdict: Verdict, *, as_json: bool = False) -> str:
    """The line that is printed when a verdict has changed."""
    at = datetime.fromtimestamp(time.time(), UTC)
    if as_json:
        said = {"time": f"{at:%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z", "phase": "judged", **verdict.to_json()}
        return json.dumps(said, ensure_ascii=False, default=str)
    why = f"   {verdict.why}" if verdict.why else ""
    return f"{at:%Y-%m-%dT%H:%M:%SZ}  {verdict.name}  {verdict.verdict} ({verdict.examined} examined){why}"


async def _watch(
    name_servers: Sequence[Address],
    telling: _Telling,
    once: bool,
    metrics: Metrics | None,
    interval_s: float,
    for_s: float | None,
) -> int:
    context, say, as_json = on_this_machine("watch"), telling.say, telling.as_json
    began_s, first = context.clock.monotonic_s(), True
    record = None
    if telling.records:
        clock = context.clock.monotonic_s
        record = WatchedHistory([*map(str, name_servers)], now_s=began_s, wall_ms=time.time() * 1000, clock=clock)
    watcher = Watcher(context, name_servers, interval_s, record)
    try:
        ended = stop_on_signal()  # what was seen is to be written down; and uvloop loses what a handler raises
        async for look, changes in watcher.looks():
            if first:
                _require_an_answer(look)
                telling.record = record
                if not once and not as_json:
                    say(_begin(look, watcher))
            first = False
            telling.looked(look.at_s)
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
            if ended.is_set() or (for_s is not None and look.at_s - began_s >= for_s):
                break
        return RIGHT
    finally:
        if record is not None:
            record.is_over = True
        await watcher.close()


def is_decided(watcher: Watcher) -> bool:
    """Whether waiting longer can change nothing: what was seen is named, or there is nothing to see."""
    return watcher.has_asked_all and not watcher.auditor.pending and not watcher.auditor.fills


def line_of(change: ProblemChange, *, as_json: bool = False) -> str:
    """One change, as a person or a program reads it; its time is the machine's."""
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


def _require_an_answer(look: Look) -> None:
    if all(server.why is not None for server in look.name_servers.values()):
        said = "; ".join(f"{at}: {server.why}" for at, server in look.name_servers.items())
        raise HarnessError(f"no NameServer gives an answer: {said}")


def _begin(look: Look, watcher: Watcher) -> str:
    brokers = {broker for server in look.name_servers.values() for broker in server.brokers}
    answering = sum(server.why is None for server in look.name_servers.values())
    there = f"{answering} of {len(watcher.name_servers)} NameServers answer"
    return f"{there}, {len(brokers)} brokers, {watcher.topics} topics"


# --- metrics


class Metrics:
    """Serves http://HOST:PORT/metrics from construction until `close`. HarnessError where the port cannot be had."""

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
