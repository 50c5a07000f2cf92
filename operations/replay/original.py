"""Reads the original of a replay: a run's history, and a scenario that repeats the run. imported.py reads the original
of an import.

run folder ─┬─ incident.json ─► imported.py ─┐
            └─ scenario.yaml, history/ ──────┴─► Original: scenario document, stretch of the history, names
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...chaos.errors import ScenarioError
from ...chaos.history import stored
from ...chaos.history.schema import Row
from ...chaos.history.stored import parquet_files
from ...chaos.history.transitions import EVENTS, later_lists_of, lists_of
from ...chaos.oracle.intervals import grouped
from ...chaos.oracle.world import World
from ...chaos.scenarios.document import read_file
from .phases import EVENTS as OF_PHASES
from .phases import phases_in

_WORLD = ("run_begin", "run_end", "phase", "fault", "gone", "node", "stopped", "timer_lag", "admin", "served_list")
WANTED = frozenset((*EVENTS, *OF_PHASES, *_WORLD))
_LAG_SHARE = 0.95
"""Share of a node's `timer_lag` rows that are ignored: a paused node is late once."""

PHASES_NOT_KEPT = (
    "The real clock does not keep the phases of timers: transitions come up to a period earlier or later than in the "
    "original. This lowers the similarity and says nothing against the explanation; `--clock virtual` keeps them."
)


@dataclass(slots=True, kw_only=True)
class Original:
    """A recorded run that is to be replayed. Times are milliseconds since the begin of the history."""

    folder: Path
    rows: list[Row]
    world: World
    document: dict[str, Any]
    """The scenario, as in a YAML file."""
    from_ms: float
    """Start of the scenario's timeline."""
    to_ms: float
    """End of comparing."""
    compared_ms: float
    """Begin of comparing."""
    begun: str = ""
    """The moment of `from_ms`, if the history knows it, in the zone in which times are shown."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The original's names of the scenario's nodes, if they differ."""
    clients: Mapping[str, str] = field(default_factory=dict)
    """Client id to node, if the id does not show it."""
    exact: Mapping[str, float] = field(default_factory=dict)
    """Node to the error of its stamps, in milliseconds."""
    imported: bool = False
    notes: list[str] = field(default_factory=list)
    """Sentences about what the original has and the scenario lacks."""
    places: Mapping[int, str] = field(default_factory=dict)
    """For an import: entry of the timeline to its place in incident.json."""
    chosen: list[dict[str, Any]] = field(default_factory=list)
    """For an import: the hypothesis chosen for each episode."""


def rows_of(folder: Path, events: Collection[str] = WANTED) -> list[Row]:
    """Return the history's rows of these events in order. Raises ScenarioError for a missing or empty history."""
    if not folder.is_dir() or not parquet_files(folder):
        missing = "it has no history" if folder.is_dir() else "there is no such folder"
        allowed = f"a run folder, which `nemesrv run` or `nemesrv import` leaves; {missing}"
        raise ScenarioError("replay", "RUN_DIR", str(folder), allowed)
    rows = stored.rows_of(folder, events)
    if not rows:
        raise ScenarioError("replay", "RUN_DIR", str(folder), "a run folder with a history; there is no event in it")
    return rows


def recorded(folder: Path, rows: list[Row], *, virtual: bool) -> Original:
    """Return the original run in a run folder of nemesrv. Its scenario is scenario.yaml with each node's recorded timer
    phase and NameServer list."""
    file = folder / "scenario.yaml"
    document = {"name": file.stem, **read_file(file)}
    world = World.of_rows(rows)
    begin_ms = world.timeline_ms
    notes: list[str] = []
    if document.get("clock") == "virtual" and document.get("seed") is not None:
        notes.append(f"The run was on the virtual clock: `nemesrv run {file}` repeats the run exactly.")
    for key in ("versions", "clock"):
        document.pop(key, None)
    if virtual:
        notes += _ours(document)
    phases = phases_in(rows, world, begin_ms)
    nodes = {name: dict(own or {}) for name, own in (document.get("nodes") or {}).items()}
    if virtual:
        there = {one.name for one in world.nodes if nodes.get(one.name, {}).get("joins_at_s") is None}
        said = {node: phase for node, phase in phases.items() if node in there}
        document["phases"] = {**said, **(document.get("phases") or {})}
    else:
        document.pop("phases", None)
        notes.append(PHASES_NOT_KEPT)
    by_http = bool((document.get("cluster") or {}).get("name_server_list"))
    javas = (document.get("workload") or {}).get("implementation") not in (None, "ours")
    later = later_lists_of(rows)
    for client, listed in lists_of(rows).items():
        if client.startswith("broker-"):
            continue
        own = nodes.get(client, {})
        of_its_own = own.get("client_profile") or own.get("implementation") or javas
        if len(listed) > 1 and not of_its_own and not (by_http and own.get("name_servers") is None):
            nodes[client] = {**own, "name_servers": listed, "in_order": True, "later_orders": later.get(client, [])}
    document["nodes"] = nodes
    return Original(
        folder=folder,
        rows=rows,
        world=world,
        document=document,
        from_ms=begin_ms,
        compared_ms=begin_ms,
        to_ms=compared_to_ms(rows, world),
        exact=exactness(rows),
        notes=notes,
    )


def compared_to_ms(rows: Iterable[Mapping[str, Any]], world: World) -> float:
    """Return the end of the time in which both runs are compared: the moment at which the harness begins the final
    reads, or ends the cluster."""
    ends = (row["time_ms"] for row in rows if row["event"] == "phase" and row["phase"] in ("final_reads", "end"))
    return min(float(next(ends, math.inf)), world.end_ms)


def exactness(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return how late each node's timers usually fired, which is the possible error of the node's times."""
    lags = (row for row in rows if row["event"] == "timer_lag" and row.get("lag_ms") is not None)
    by_node = grouped((row["node"], float(row["lag_ms"])) for row in lags)
    return {node: sorted(found)[int(_LAG_SHARE * (len(found) - 1))] for node, found in by_node.items()}


def _ours(document: dict[str, Any]) -> list[str]:
    """Make all programs of the document ours, as the virtual clock needs. Returns sentences about the changes."""
    notes: list[str] = []
    made_by: set[str] = set()
    cluster, workload = document.get("cluster") or {}, document.get("workload") or {}
    for place in (cluster, workload, *(document.get("nodes") or {}).values()):
        if place and place.get("implementation") not in (None, "ours"):
            made_by.add(place["implementation"])
            place["implementation"] = "ours" if place is cluster or "sends_per_s" in place else None
    for entry in document.get("timeline") or ():
        entry.pop("implementation", None)
    if made_by:
        notes.append(
            f"On the virtual clock every program is ours; in the original some were {', '.join(sorted(made_by))}."
        )
    if outside := cluster.pop("clients", None):
        notes.append(f"On the virtual clock no client of somebody else's can dial: {', '.join(outside)} is left out.")
    return notes
