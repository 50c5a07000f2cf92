"""docs/drills.md: each interval of the field beside ours and Apache's, from measured.json."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .intervals import INTERVALS, OURS, Interval

MEASURED = Path(__file__).with_name("measured.json")

HEAD = """# Field drills

A RocketMQ user ran these drills on real clusters ("the field") of Apache's 4.9.7, with three NameServers, three groups
of master and slave and default timers, and timed the faults to the second. Each drill is a scenario, which
`nemesrv scenarios` describes: `nemesrv run drill-3-power-off` runs the third drill on nemesrv's nodes, with
`--implementation apache-4.9.7` on Apache's. A row has the value from the field, the range in nemesrv's runs, and the
range that RocketMQ's timers allow.

`python -m tests.drills` ([tests/drills](../tests/drills)) writes this page. In a scenario a power-off is a `black_hole`
on every link of the node, and each of the field's 8 sending threads is a producer. A producer sends 5 messages a
second, and a thread in the field sent as many as possible, so fewer of nemesrv's sends meet a hung broker. nemesrv's
zones have names but no latency. In the sixth drill the field's masters were SYNC_MASTER; a master without its slave
answered SLAVE_NOT_AVAILABLE (stored, not copied). On 4.9.7 the sixth drill is VALID by all of its 23 checks.

On Apache's servers the second and fifth drill run at ×1, because a faster clock does not shorten a JVM's shutdown.
Clients' connections are gone 0.02 s after a broker's SIGTERM. The broker unregisters 2.5 s later, as broker.log shows:
1.1 s until its event threads notice, 1 s of sleep in the store's shutdown, 0.3 s for the last flush. In the field
namesrv.log has a destroyed channel 1 s after the stop: that broker was gone before it could unregister.
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
    return "\n".join(lines) + "\n"


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
        lines.append(f"* column `{name}`: drills {'; '.join(said)}")
    return lines


def _told(values: Sequence[float] | None, unit: str) -> str:
    if values is None:
        return "–"
    if not values:
        return "never"
    return _range((min(values), max(values)), unit)


def _range(ends: tuple[float, float], unit: str) -> str:
    low, high = (f"{end:.1f}".removesuffix(".0") if unit else f"{end:.0f}" for end in ends)
    return f"{low if low == high else f'{low} to {high}'}{f' {unit}' if unit else ''}"
