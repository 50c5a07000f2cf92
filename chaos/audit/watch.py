"""`nemesrv watch`: looks until Ctrl-C, or, with `once`, until it is decided whether something is wrong.

Exit status with `once`: 0 nothing is wrong, 1 something is, 4 no NameServer answers. A disagreement is waited for until
it is over or has lasted for its window, some 40 s at most.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any

from ...remoting.node.network import Address
from ...remoting.node.this_machine import on_this_machine
from ..errors import HarnessError
from .auditor import Change
from .looks import Look
from .metrics import Metrics
from .watching import INTERVAL_S, Watcher

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
    """The exit status. HarnessError when no NameServer answers the first look, or the port for metrics is taken."""
    metrics = None if metrics_port is None else Metrics(metrics_port)
    try:
        return _run(_watch(name_servers, say, once, as_json, metrics, interval_s))
    finally:
        if metrics is not None:
            metrics.close()


async def _watch(
    name_servers: Sequence[Address], say: Say, once: bool, as_json: bool, metrics: Metrics | None, interval_s: float
) -> int:
    context = on_this_machine("watch")
    watcher = Watcher(context, name_servers, interval_s)
    began_s, first = context.clock.monotonic_s(), True
    try:
        async for look, changes in watcher.looks():
            if first:
                _require_an_answer(look)
                if not once and not as_json:
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
        return RIGHT
    finally:
        await watcher.close()


def _run(work: Coroutine[Any, Any, int]) -> int:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return int(uvloop.run(work))


def is_decided(watcher: Watcher) -> bool:
    """Whether waiting longer can change nothing: what was seen is named, or there is nothing to see."""
    return watcher.has_asked_all and not watcher.auditor.pending and not watcher.auditor.fills


def line_of(change: Change, *, as_json: bool = False) -> str:
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
