"""The lanes as Bokeh plots: faults and phases on top, a row per (NameServer, broker), rows per client."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.models import FixedTicker, Range1d

from ...oracle.world import World
from ...verdict import seconds
from .canvas import Canvas, hover, legend, source_of
from .data import Array, Recorded, spread
from .found import Place
from .stretches import Lane, LaneMark, LaneStretch, span, thin_marks

LANE_PX, ROW_PX = 28, 19
GAP = 0.5
"""Rows between two groups."""
LABEL_MAX = 26
ABOVE, BELOW = 0.1, -0.24
"""Where marks are, of a lane's height."""

Phase = tuple[str, float, float]


def faults_plot(canvas: Canvas, phases: Sequence[Phase]) -> Any:
    """A row of phases, and a row for each fault with its name."""
    rows = len(canvas.bands) + 1
    plot = canvas.plot("faults", 24 * rows + 34, y_range=Range1d(-rows + 0.5, 0.5))
    quads: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    texts = []
    for at, (name, start_ms, end_ms) in enumerate(phases):
        text = f"phase {name.replace('_', ' ')} {span(start_ms, end_ms)}"
        quads[f"phase{at % 2}"].append((start_ms / 1000, end_ms / 1000, -0.4, 0.4, text))
        texts.append((start_ms / 1000, end_ms / 1000, 0.0, name.replace("_", " ")))
    for at, band in enumerate(canvas.bands, start=1):
        end_ms = min(band.end_ms, canvas.end_ms)
        text = f"{band.fault_id}: {band.title} {span(band.start_ms, end_ms)}"
        quads["fault"].append((band.start_ms / 1000, end_ms / 1000, -at - 0.36, -at + 0.36, text))
        texts.append(
            (band.start_ms / 1000, canvas.end_ms / 1000, -at, f"{band.title}, {seconds(end_ms - band.start_ms)}")
        )
    renderers = [_quads(plot, kind, rows_) for kind, rows_ in quads.items()]
    plot.text(
        source=source_of(texts, "x", "end", "y", "text"),
        text_font_size="12px",
        text_baseline="middle",
        x_offset=5,
        tags=["text:label"],
    )
    hover(plot, renderers)
    name_rows(plot, {0.0: "phase"} | {float(-at): band.fault_id for at, band in enumerate(canvas.bands, start=1)})
    return plot


LEGEND: Sequence[tuple[str, Sequence[str]]] = (
    ("had it", ("held",)),
    ("in some topics", ("partly",)),
    ("did not have it", ("missing",)),
    ("not running", ("away",)),
    ("used it", ("used",)),
    ("failed or unknown", ("mark:failed",)),
    ("fault on the link", ("fault",)),
    ("must", ("must",)),
    ("may (the window)", ("may",)),
    ("must not", ("must_not",)),
    ("late, within tolerance", ("late",)),
    ("over", ("over", "mark:over")),
    ("example of a check", ("mark:example",)),
)
"""Of what a lane shows; a plot names what it has."""


def lanes_plot(
    canvas: Canvas,
    section: str,
    lanes: Sequence[Lane],
    row_px: int,
    names: Sequence[str] = (),
    *,
    places: Sequence[Place] = (),
    entries: Sequence[tuple[str, Sequence[str]]] = LEGEND,
    colour: str = "ns",
) -> tuple[Any, Mapping[str, float]]:
    """The plot, and where on its y axis each lane is. `names`: nodes, of which `colour` and the index are the kind."""
    heights = _heights(lanes)
    top, bottom = 0.5 + 16 / row_px, min(heights.values(), default=0.0) - 0.6
    plot = canvas.plot(section, int((top - bottom) * row_px) + 74, y_range=Range1d(bottom, top))
    quads: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    marks: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for lane in lanes:
        y = heights[lane.key]
        for bar in lane.bars:
            _add(quads, bar, y - (0.04 if lane.windows else 0.3), y + 0.4)
        for window in lane.windows:
            whole = window.kind in ("over", "late")
            _add(quads, window, y - 0.36, y + 0.4 if whole else y - 0.12)
            if window.kind == "over":
                marks["over"].append((window.start_ms / 1000, y, window.text))
        for mark in lane.marks:
            marks[mark.kind].append((mark.at_ms / 1000, y + (BELOW if mark.is_below else ABOVE), mark.text))
    shown = {  # a verdict leads to its first example
        ((place.from_ms + place.to_ms) / 2000, heights[place.lane], f"{place.check}: {place.text}"): None
        for place in places
        if place.section == section and place.lane in heights and place.text
    }
    if shown:
        marks["example"] = list(shown)
    order = ["held", "partly", "missing", "away", *(f"{colour}{i}" for i in range(8)), "used", "fault"]
    order += ["may", "must", "must_not", "late", "over", "replayed", "replayed_partly"]
    drawn = {kind: _quads(plot, kind, quads[kind]) for kind in order if quads.get(kind)}
    hover(plot, list(drawn.values()))
    markers = {"failed": ("x", 8), "over": ("inverted_triangle", 13), "example": ("diamond", 14)}
    markers |= {"joined": ("circle", 6), "missing": ("x", 12), "extra": ("diamond", 13)}
    for kind, (marker, size) in markers.items():
        if marks.get(kind):
            drawn[f"mark:{kind}"] = plot.scatter(
                source=source_of(marks[kind], "x", "y", "text"), marker=marker, size=size, tags=[f"mark:{kind}"]
            )
    hover(plot, [renderer for kind, renderer in drawn.items() if kind.startswith("mark:")])
    canvas.label_bands(plot, top)
    named = [(name, (f"{colour}{at}",)) for at, name in enumerate(names[:8]) if f"{colour}{at}" in drawn]
    legend(plot, [(label, [drawn[k] for k in kinds if k in drawn]) for label, kinds in (*named, *entries)])
    name_rows(plot, {heights[lane.key]: _label(lane) for lane in lanes})
    return plot, heights


def _label(lane: Lane) -> str:
    text = f"{lane.group} · {lane.label}"
    return text if len(text) <= LABEL_MAX else f"{text[: LABEL_MAX - 1]}…"


def _heights(lanes: Sequence[Lane]) -> dict[str, float]:
    """Lane key → its place on the y axis, from 0 down, with a gap between groups."""
    heights: dict[str, float] = {}
    y = 0.0
    for at, lane in enumerate(lanes):
        if at:
            y -= 1 if lanes[at - 1].group == lane.group else 1 + GAP
        heights[lane.key] = y
    return heights


def _add(quads: dict[str, list[tuple[Any, ...]]], stretch: LaneStretch, bottom: float, top: float) -> None:
    quads[stretch.kind].append((stretch.start_ms / 1000, stretch.end_ms / 1000, bottom, top, stretch.text))


def _quads(plot: Any, kind: str, rows: Sequence[tuple[Any, ...]]) -> Any:
    source = source_of(rows, "left", "right", "bottom", "top", "text")
    return plot.quad(source=source, line_width=1, tags=[kind])


def name_rows(plot: Any, labels: Mapping[float, str]) -> None:
    """Names instead of numbers on the y axis."""
    plot.yaxis.ticker = FixedTicker(ticks=list(labels))
    plot.yaxis.major_label_overrides = dict(labels)
    plot.yaxis.minor_tick_line_alpha = 0
    plot.yaxis.major_tick_line_alpha = 0
    plot.yaxis.axis_line_alpha = 0
    plot.ygrid.visible = False


# -- who changed what, and when: routes, choices, queues, processes, and warnings in logs.

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
    marks: dict[tuple[str, str], list[LaneMark]] = defaultdict(list)
    for row in [*recorded.world_rows, *recorded.notable, *logged]:
        kind = _KIND_OF.get(row["event"])
        if kind and row["node"] in heights and row["time_ms"] <= canvas.end_ms:
            marks[row["node"], kind].append(LaneMark(at_ms=row["time_ms"], kind=kind, text=_change(row)))
    for mark, node in _deaths(world):
        if node in heights:
            marks[node, "died"].append(mark)
    for node, times in _route_changes(recorded).items():
        if node in heights:
            marks[node, "route"] += [
                LaneMark(at_ms=t, kind="route", text=f"{node}: route of {topic} changed at {seconds(t)}")
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


def _deaths(world: World) -> list[tuple[LaneMark, str]]:
    """The processes that a fault ended, and when they were gone; (mark, node)."""
    found = []
    for fault in world.faults:
        if fault.ends_process:
            gone = "" if fault.gone_ms is None else f", gone {fault.gone_ms - fault.start_ms:.0f} ms later"
            text = f"{fault.source} {fault.kind.words} ({fault.fault_id}) at {seconds(fault.start_ms)}{gone}"
            found.append((LaneMark(at_ms=fault.start_ms, kind="died", text=text), fault.source))
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
