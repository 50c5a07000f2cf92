"""Who changed what, and when: routes, choices, queues, processes, and warnings in logs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.models import Range1d

from ...oracle.world import World
from .canvas import Canvas, hover, legend, source_of
from .codes import Array, spread
from .data import Recorded
from .lanes import name_rows
from .stretches import Mark, seconds, thin_marks

MARKS_MAX = 200

_CHANGES: Mapping[str, tuple[str, str, int]] = {
    "route": ("route of a topic changed", "circle", 7),
    "dropped": ("broker dropped", "x", 11),
    "took": ("client took a new route", "diamond", 9),
    "chosen": ("client chose a NameServer", "triangle", 9),
    "assigned": ("queues assigned", "square", 7),
    "life": ("process started or stopped", "star", 11),
    "died": ("process died", "asterisk", 14),
    "log": ("warning in its log", "dash", 9),
}
_KIND_OF: Mapping[str, str] = {
    "broker_dropped": "dropped",
    "route_changed": "took",
    "name_server_chosen": "chosen",
    "assigned": "assigned",
    "started": "life",
    "stopped": "life",
    "log": "log",
}


def changes_plot(
    canvas: Canvas, recorded: Recorded, world: World, logged: Sequence[Mapping[str, Any]], nodes: Sequence[str]
) -> tuple[Any, Mapping[str, float]]:
    """Who changed what, and when: a row per node. Also where on the y axis each node is."""
    heights = {node: float(-at) for at, node in enumerate(nodes)}
    plot = canvas.plot("changes", 18 * len(nodes) + 84, y_range=Range1d(-len(nodes) + 0.3, 1.0))
    marks: dict[tuple[str, str], list[Mark]] = defaultdict(list)
    for row in [*recorded.world_rows, *recorded.notable, *logged]:
        kind = _KIND_OF.get(row["event"])
        if kind and row["node"] in heights and row["time_ms"] <= canvas.end_ms:
            marks[row["node"], kind].append(Mark(at_ms=row["time_ms"], kind=kind, text=_change(row)))
    for mark, node in _deaths(world):
        if node in heights:
            marks[node, "died"].append(mark)
    for node, times in _route_changes(recorded).items():
        if node in heights:
            marks[node, "route"] += [
                Mark(at_ms=t, kind="route", text=f"{node}: route of {topic} changed at {seconds(t)}")
                for t, topic in times
                if t <= canvas.end_ms
            ]
    drawn = {}
    for kind, (_, marker, size) in _CHANGES.items():
        rows = [
            (mark.at_ms / 1000, heights[node], mark.text)
            for (node, of), some in marks.items()
            if of == kind
            for mark in thin_marks(some, MARKS_MAX)
        ]
        if rows:
            source = source_of(rows, "x", "y", "text")
            drawn[kind] = plot.scatter(source=source, marker=marker, size=size, tags=[f"change:{kind}"])
    hover(plot, list(drawn.values()))
    canvas.label_bands(plot, 1.0)
    legend(plot, [(_CHANGES[kind][0], [renderer]) for kind, renderer in drawn.items()])
    name_rows(plot, {y: node for node, y in heights.items()})
    return plot, heights


def _deaths(world: World) -> list[tuple[Mark, str]]:
    """The processes that a fault ended, and when they were gone; (mark, node)."""
    found = []
    for fault in world.faults:
        if fault.ends_process:
            gone = "" if fault.gone_ms is None else f", gone {fault.gone_ms - fault.start_ms:.0f} ms later"
            text = f"{fault.source} {fault.kind.words} ({fault.fault_id}) at {seconds(fault.start_ms)}{gone}"
            found.append((Mark(at_ms=fault.start_ms, kind="died", text=text), fault.source))
    return found


def _change(row: Mapping[str, Any]) -> str:
    if row["event"] == "log":
        return f"{row['node']} {row['type']} at {seconds(row['time_ms'])}: {row['value']}"
    detail = [str(row[key]) for key in ("topic", "broker_name", "name_server") if row[key]]
    value = str(row["value"] or "")
    text = " ".join([f"{row['node']}:", str(row["event"]).replace("_", " "), *detail, f"at {seconds(row['time_ms'])}"])
    return text if not value else f"{text} {value[:160]}{'…' if len(value) > 160 else ''}"


def _route_changes(recorded: Recorded) -> Mapping[str, list[tuple[float, str]]]:
    """NameServer → (time, topic) of its `route` rows; of very many the first and last of each slice."""
    routes = recorded.routes
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for code in np.unique(routes.node).tolist():
        mine: Array = np.flatnonzero(routes.node == code)
        if len(mine) > 10 * MARKS_MAX:
            mine = mine[spread(routes.time_ms[mine], 10 * MARKS_MAX)]
        found[routes.nodes[code]] = [(float(routes.time_ms[i]), routes.topics[routes.topic[i]]) for i in mine]
    return found
