"""The events that a person can look up below the plots, as lines of words; nothing that matters is thinned away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .codes import spread
from .data import Recorded
from .words import Names, describe, tone

EVENTS_MAX = 6000
"""How many events can be looked up below the plots."""
_SILENT = ("run_begin", "node")


def listed(
    recorded: Recorded, logged: Sequence[Mapping[str, Any]], end_ms: float, names: Names
) -> tuple[list[list[Any]], int]:
    """[seconds, node, tone, text] of what can be looked up, and how many are left out."""
    rows = sorted([*recorded.world_rows, *recorded.notable, *logged], key=lambda row: row["time_ms"])
    rows = [row for row in rows if row["event"] not in _SILENT and row["time_ms"] <= end_ms]
    more = sum(recorded.left_out.values())
    if len(rows) > EVENTS_MAX:
        keep = [row for row in rows if tone(row) != "plain"]
        plain = [row for row in rows if tone(row) == "plain"]
        if len(keep) > EVENTS_MAX:
            keep = _every(keep, EVENTS_MAX, always=[row for row in keep if tone(row) == "fault"])
        plain = _every(plain, max(EVENTS_MAX - len(keep), 0), always=[])
        kept = sorted([*keep, *plain], key=lambda row: row["time_ms"])
        more, rows = more + len(rows) - len(kept), kept
    return [[round(row["time_ms"] / 1000, 3), row["node"], tone(row), names(describe(row))] for row in rows], more


def _every(rows: Sequence[Any], most: int, *, always: Sequence[Any]) -> list[Any]:
    """`always`, and of the rest first and last of each slice of time, about `most` together."""
    if most <= 0 or not rows:
        return list(always)
    picked = spread(np.array([row["time_ms"] for row in rows]), most)
    chosen = {id(row): row for row in always} | {id(rows[i]): rows[i] for i in picked.tolist()}
    return list(chosen.values())


def left_out(recorded: Recorded, more: int) -> str:
    """How many events there are, and how many of them cannot be looked up."""
    text = f"{recorded.events:,} events were recorded."
    if more:
        text += f" {more:,} that were worth a line are left out, between the first and the last of a moment."
    return text
