"""Describes a run in words for report.html: its faults, and a line for each notable event."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ...oracle.recorded import Fault
from ...oracle.world import World
from ...topology import later_address
from ..columns import Recorded, spread


def fault_title(faults: Sequence[Fault], *, brief: bool = False) -> str:
    """Return a fault's kind and nodes: `black hole broker-a → ns-0`; `black hole broker-a ↔ ns-0` if the fault affects
    both directions; after `likely: ` if `nemesrv import` is not certain of it. `faults` has all rows of one fault_id.
    """
    first = faults[0]
    kind = first.kind.words
    where = sorted({_place(fault) for fault in faults})
    most = 1 if brief else 3
    shown = ", ".join(where[:most]) + (f" and {len(where) - most} more" if len(where) > most else "")
    likely = "likely: " if first.value.get("certainty") == "likely" else ""
    return likely + (f"{shown} {kind}" if first.target is None else f"{kind} {shown}")


def _place(fault: Fault) -> str:
    if fault.target is None:
        return fault.source
    source, target = (fault.target, fault.source) if fault.stream == "downstream" else (fault.source, fault.target)
    both = fault.stream == "both" and fault.fault != "syn_drop"  # a dropped SYN stops the connecting node only
    return f"{source} {'↔' if both else '→'} {target}"


def by_fault(world: World) -> list[list[Fault]]:
    ordered = sorted(world.faults, key=lambda f: f.fault_id)
    groups = [list(rows) for _, rows in groupby(ordered, key=lambda f: f.fault_id)]
    return sorted(groups, key=lambda rows: rows[0].start_ms)


_BAD = ("fail", "info")


class Names:
    """Replaces addresses in texts by the names of their nodes."""

    def __init__(self, world: World) -> None:
        self._of = {
            address: node.name if number == 1 else later_address(node.name, number)
            for node in world.nodes
            for number, address in enumerate(node.addresses, start=1)
        }
        known = sorted(map(re.escape, self._of), key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![\w.:])(?:{'|'.join(known)})(?!\d)") if known else None

    def __call__(self, text: str) -> str:
        """Return the text with a name for every known address."""
        return self._pattern.sub(lambda found: self._of[found[0]], text) if self._pattern else text


def describe(row: Mapping[str, Any]) -> str:
    parts = [str(row["event"]).replace("_", " ")]
    for key in ("type", "f", "phase", "fault", "msg_key", "topic", "broker_name", "name_server", "address", "source"):
        if row.get(key) is not None and row.get(key) not in parts:
            parts.append(str(row[key]))
    if row.get("target"):
        parts.append(f"→ {row['target']}")
    if row.get("queue_id") is not None:
        parts.append(f"queue {row['queue_id']}")
    if row.get("attempt"):
        parts.append(f"attempt {row['attempt']}")
    if row.get("code"):
        parts.append(f"code {row['code']}")
    if row.get("duration_ms") is not None:
        parts.append(f"after {row['duration_ms']:.0f} ms")
    if row.get("value") not in (None, "null", "{}"):
        text = str(row["value"])
        parts.append(text if len(text) <= 120 else f"{text[:117]}…")
    return " ".join(parts)


def tone(row: Mapping[str, Any]) -> str:
    """Return the style class by which the page colours an event: fault, bad, change or plain."""
    event = row["event"]
    if event in ("fault", "phase"):
        return "fault"
    if event == "log":
        return "bad" if row["type"] != "WARNING" else "change"
    if row.get("type") in _BAD or row.get("f") == "connect_failed" or event == "broker_dropped":
        return "bad"
    return "change" if event in ("route_changed", "name_server_chosen", "assigned", "started", "stopped") else "plain"


# -- the events that a person can look up below the plots, as lines of words; nothing that matters is thinned away.

EVENTS_MAX = 6000
"""Most events in the list below the plots."""

_SILENT = ("run_begin", "node", "host_clock")


def listed(
    recorded: Recorded, logged: Sequence[Mapping[str, Any]], end_ms: float, names: Names
) -> tuple[list[list[Any]], int]:
    """Return the page's list of events, each as [seconds, node, tone, text], and the number of events left out."""
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
    """Return `always`, and of the rest the first and last of each slice of time, about `most` together."""
    if most <= 0 or not rows:
        return list(always)
    picked = spread(np.array([row["time_ms"] for row in rows]), most)
    chosen = {id(row): row for row in always} | {id(rows[i]): rows[i] for i in picked.tolist()}
    return list(chosen.values())


def left_out(recorded: Recorded, more: int) -> str:
    text = f"{len(recorded.table):,} events were recorded."
    if more:
        text += f" {more:,} that were worth a line are left out, between the first and the last of a moment."
    return text
