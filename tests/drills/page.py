"""docs/drills.md: each interval of the field beside ours and Apache's, from measured.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nemesrv.chaos.scenarios.loading import load, shipped

from .intervals import INTERVALS, OURS, Interval

MEASURED = Path(__file__).with_name("measured.json")

HEAD = """# Field drills

Drills on real clusters of Apache's 4.9.7 (three NameServers, three groups of master and slave, default timers), whose
faults are known to the second, are scenarios here: `nemesrv run drill-3-power-off`, on our nodes or with
`--implementation apache-4.9.7` on Apache's. The field's number stands beside what was measured here (least to most over
all runs and NameServers) and what RocketMQ's timers allow; a test holds each to the window.

Written by `python -m tests.drills` ([tests/drills](../tests/drills)). A power-off is a host of which nothing more is
heard: every link of the node is a `black_hole`. Clients are ours, 8 producers as the field's 8 threads; each sends 5
messages a second, the field's as fast as they could, so a hung broker meets somewhat fewer sends here. Zones are named,
and no latency is put between them. In the sixth drill the field's masters were SYNC_MASTER and answered
SLAVE_NOT_AVAILABLE for the group without its slave: stored, not replicated. On 4.9.7 it is VALID by
all of its 23 checks.

The stops of the second and fifth drill are at ×1 on Apache's: a JVM's shutdown takes time of the machine's, which no
clock shortens. Clients' connections are gone 0.02 s after SIGTERM; the broker unregisters 2.5 s later, by broker.log:
1.1 s until its event threads have noticed, 1 s of sleep in the store's shutdown, 0.3 s for the last flush. The
field's 1 s are lines of namesrv.log that name a destroyed channel: that broker was gone before it could unregister.
"""


def measured() -> dict[str, Any]:
    """Implementation to what was measured of it."""
    return json.loads(MEASURED.read_text("utf-8")) if MEASURED.exists() else {}  # type: ignore[no-any-return]


def key_of(interval: Interval) -> str:
    return f"{interval.drill}: {interval.what}"


def render(found: Mapping[str, Any]) -> str:
    """The page."""
    names = sorted(found, key=lambda name: (name != OURS, name))
    lines = [HEAD, *_runs(found, names), ""]
    lines += [
        "| drill | from … to | field | " + " | ".join(names) + " | allowed |",
        "|---|---|---:|" + "---:|" * len(names) + "---|",
    ]
    for interval in INTERVALS:
        cells = [_told(found[name]["values"].get(key_of(interval)), interval.unit) for name in names]
        allowed = "never" if interval.allowed is None else _range(interval.allowed, interval.unit)
        field = _told(interval.field, interval.unit)
        formula = interval.formula
        if interval.allowed is not None and interval.of_jvm_s:
            formula += f"); a JVM: to {interval.allowed[1] + interval.of_jvm_s:g} s ({interval.why_of_jvm}"
        row = (interval.drill.split("-")[1], interval.what, field, *cells, f"{allowed} ({formula})")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join([*lines, "", *_descriptions()]) + "\n"


def _runs(found: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Of each implementation, which drills were run how, and how often."""
    lines = []
    for name in names:
        alike: dict[tuple[str, int], list[str]] = {}
        for drill, run in sorted(found[name]["runs"].items()):
            alike.setdefault((run["how"], run["runs"]), []).append(drill.split("-")[1])
        said = [
            f"{', '.join(which)} {how}, {number} {'run' if number == 1 else 'runs'} each"
            for (how, number), which in alike.items()
        ]
        lines.append(f"* `{name}`: {'; '.join(said)}")
    return lines


def _descriptions() -> list[str]:
    return [f"* `{name}`: {load(path).description}" for name, path in shipped("drills").items()]


def _told(values: Sequence[float] | None, unit: str) -> str:
    if values is None:
        return "–"
    if not values:
        return "never"
    return _range((min(values), max(values)), unit)


def _range(ends: tuple[float, float], unit: str) -> str:
    low, high = (f"{end:.1f}".removesuffix(".0") if unit else f"{end:.0f}" for end in ends)
    return f"{low if low == high else f'{low} to {high}'}{f' {unit}' if unit else ''}"
