"""What was seen of each process as lines of JSON beside its output: the evidence of every measured value.

    logs/refused.log            what the program wrote
    logs/refused.seen.jsonl     {"seen": "Asked", "after_ms": 5012.3, "front": "ns-1", "code": 105, …}

Times are milliseconds since the process began. Bodies are told by their length.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from ..chaos.fronts.behaviour import Behaviour
from ..chaos.fronts.observed import Observation
from ..remoting.node.network import Address
from .situations import SITUATIONS
from .watched import Watched


def write_evidence(watched: Iterable[Watched], logs: Path) -> None:
    """A file each process."""
    for each in watched:
        (logs / f"{name_of(each)}.seen.jsonl").write_text("".join(lines(each)), encoding="utf-8")


def name_of(watched: Watched) -> str:
    """As its log is named."""
    situation = SITUATIONS[watched.situation]
    if situation.many:
        return f"{situation.name}-{watched.number:03d}"
    return situation.name if situation.processes == 1 else f"{situation.name}-{watched.number}"


def lines(watched: Watched) -> Iterable[str]:
    """Who it is and how it ended, then each observation."""
    head = {
        "situation": watched.situation,
        "process": watched.process,
        "at_work_ms": None if watched.at_work_ms is None else round(watched.at_work_ms - watched.began_ms, 1),
        "stopping_ms": round(watched.stopping_ms - watched.began_ms, 1),
        "ended": watched.ended,
        "late_ms": round(watched.late_ms, 1),
    }
    yield json.dumps(head, ensure_ascii=False) + "\n"
    for seen in watched.seen:
        yield json.dumps(_line(seen, watched.began_ms), ensure_ascii=False) + "\n"


def _line(seen: Observation, began_ms: float) -> dict[str, Any]:
    line: dict[str, Any] = {"seen": type(seen).__name__, "after_ms": round(seen.at_ms - began_ms, 1)}
    for name in type(seen).__annotations__:
        value = getattr(seen, name)
        if name != "at_ms" and value not in (None, b"", {}, False):
            line[name] = _plain(value)
    return line


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return f"{len(value)} B"
    if isinstance(value, Enum | Address | Behaviour):
        return str(value)
    return dict(value) if isinstance(value, Mapping) else value
