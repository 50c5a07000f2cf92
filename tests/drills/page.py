"""The table of docs/drills.md: each interval of the field beside ours and Apache's, from measured.json."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .intervals import INTERVALS, OURS, Interval

MEASURED = Path(__file__).with_name("measured.json")


def measured() -> dict[str, Any]:
    """Implementation to what was measured of it."""
    return json.loads(MEASURED.read_text("utf-8")) if MEASURED.exists() else {}  # type: ignore[no-any-return]


def key_of(interval: Interval) -> str:
    return f"{interval.drill}: {interval.what}"


def table(found: Mapping[str, Any]) -> str:
    names = sorted(found, key=lambda name: (name != OURS, name))
    lines = [
        *_runs(found, names),
        "",
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
    return "\n".join(lines)


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
