"""Draws lanes with Bokeh. A lane is a plot row that shows one node, or one pair of nodes, over time."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from bokeh.models import FixedTicker, Range1d

from ...verdict import seconds
from .canvas import Canvas, hover, legend, source_of
from .found import Place
from .stretches import Lane, LaneStretch, span

LANE_PX, ROW_PX = 28, 19
GAP = 0.5
"""Rows between two groups."""
LABEL_MAX = 26
ABOVE, BELOW = 0.1, -0.24
"""Place of marks, in parts of a lane's height."""

Phase = tuple[str, float, float]


def faults_plot(canvas: Canvas, phases: Sequence[Phase]) -> Any:
    """Return a plot with one row for the run's phases, and one row for each fault."""
    rows = len(canvas.bands) + 1
    plot = canvas.plot("faults", 24 * rows + 34, y_range=Range1d(-rows + 0.5, 0.5))
    quads: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    texts = []
    for at, (name, start_ms, end_ms) in enumerate(phases):
        text = f"phase {name.replace('_', ' ')} {span(start_ms, end_ms)}"
        quads[f"phase{at % 2}"].append((start_ms / 1000, end_ms / 1000, -0.4, 0.4, text))
        texts.append((start_ms / 1000, end_ms / 1000, end_ms / 1000, 0.0, name.replace("_", " ")))
    for at, band in enumerate(canvas.bands, start=1):
        end_ms = min(band.end_ms, canvas.end_ms)
        text = f"{band.fault_id}: {band.title} {span(band.start_ms, end_ms)}"
        kind = "likely" if band.is_likely else "fault"
        quads[kind].append((band.start_ms / 1000, end_ms / 1000, -at - 0.36, -at + 0.36, text))
        label = f"{band.title}, {seconds(end_ms - band.start_ms)}"
        texts.append((band.start_ms / 1000, end_ms / 1000, canvas.end_ms / 1000, -at, label))
    renderers = [_quads(plot, kind, rows_) for kind, rows_ in quads.items()]
    plot.text(
        source=source_of(texts, "x", "bar", "end", "y", "text"),
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
    ("no log", ("unlogged",)),
    ("used it", ("used",)),
    ("failed or unknown", ("mark:failed",)),
    ("must", ("must",)),
    ("may (the window)", ("may",)),
    ("must not", ("must_not",)),
    ("late, within tolerance", ("late",)),
    ("over", ("over", "mark:over")),
    ("example of a check", ("mark:example",)),
)
"""Entries for what a lane shows; a plot shows those that it has."""


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
    """Return the plot of these lanes, and each lane's height on the y axis. `names` are the nodes in the legend, each
    with a colour."""
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
        for place, of in ((ABOVE, lane.marks), (BELOW, lane.marks_below)):
            for mark in of:
                marks[mark.kind].append((mark.start_ms / 1000, y + place, mark.text))
    shown = {  # a verdict leads to its first example
        ((place.from_ms + place.to_ms) / 2000, heights[place.lane], f"{place.check}: {place.text}"): None
        for place in places
        if place.section == section and place.lane in heights and place.text
    }
    if shown:
        marks["example"] = list(shown)
    order = ["held", "partly", "missing", "away", "unlogged", *(f"{colour}{i}" for i in range(8)), "used"]
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
    text, tail = f"{lane.group} · {lane.label}", f"… · {lane.label}"
    if len(text) <= LABEL_MAX or len(tail) >= LABEL_MAX:
        return text if len(text) <= LABEL_MAX else f"{text[: LABEL_MAX - 1]}…"
    return f"{lane.group[: LABEL_MAX - len(tail)]}{tail}"


def _heights(lanes: Sequence[Lane]) -> dict[str, float]:
    """Return the place of each lane on the y axis, from 0 down, with a gap between groups."""
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
    hatch = {"hatch_pattern": "/", "hatch_alpha": 0.4} if kind in ("likely", "unlogged") else {}
    return plot.quad(source=source, line_width=1, tags=[kind], **hatch)


def name_rows(plot: Any, labels: Mapping[float, str]) -> None:
    plot.yaxis.ticker = FixedTicker(ticks=list(labels))
    plot.yaxis.major_label_overrides = dict(labels)
    plot.yaxis.minor_tick_line_alpha = 0
    plot.yaxis.major_tick_line_alpha = 0
    plot.yaxis.axis_line_alpha = 0
    plot.ygrid.visible = False
