"""Latency of look-ups, pulls and messages end to end, and how far the consumers were behind."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, Range1d

from .canvas import Canvas, hover, legend
from .codes import Array
from .flow import Flow, Timed
from .plots import LEAST_MS
from .series import PER_SLICE, SLICES_MAX, quantiles

_KINDS = (("end to end", "end_to_end"), ("pulls", "pulls"), ("look-ups", "look_ups"))


def _edges(canvas: Canvas, number: int) -> Array:
    return np.linspace(canvas.start_ms, canvas.end_ms, int(np.clip(number / PER_SLICE, 60, SLICES_MAX / 3)) + 1)


def flow_plot(canvas: Canvas, flow: Flow) -> Any:
    """p50 and p99 of each slice of time, for look-ups, pulls and messages from the send to the first receipt."""
    plot = canvas.plot("flow", 260, y_axis_type="log")
    plot.yaxis.axis_label = "latency, ms"
    shown: list[tuple[str, list[Any]]] = []
    for noun, name in _KINDS:
        timed: Timed = getattr(flow, name)
        if len(timed.time_ms):
            shown += _lines(canvas, plot, timed, noun, name)
    legend(plot, shown)
    return plot


def _lines(canvas: Canvas, plot: Any, timed: Timed, noun: str, name: str) -> list[tuple[str, list[Any]]]:
    edges = _edges(canvas, len(timed.time_ms))
    slice_of = np.clip(np.searchsorted(edges, timed.time_ms, side="right") - 1, 0, len(edges) - 2)
    _, p50, p99, high = quantiles(slice_of, timed.took_ms, len(edges) - 1)
    count = np.bincount(slice_of, minlength=len(edges) - 1)
    there = count > 0
    middle = (edges[:-1] + edges[1:]) / 2000
    source = ColumnDataSource(
        {"x": middle[there].astype("f4"), "count": count[there].astype("i4")}
        | {key: np.maximum(v[there], LEAST_MS).astype("f4") for key, v in (("p50", p50), ("p99", p99), ("high", high))}
    )
    line50 = plot.line(source=source, x="x", y="p50", line_width=2, tags=[f"line:{name}"])
    line99 = plot.line(source=source, x="x", y="p99", line_width=1.5, line_dash="dotted", tags=[f"line:{name}"])
    dots = plot.scatter(source=source, x="x", y="p99", size=4, tags=[f"mark:{name}"])
    columns = [(noun, "@x{0.0} s, @count"), ("p50", "@p50{0.0} ms"), ("p99, max", "@p99{0.0}, @high{0.0} ms")]
    hover(plot, [dots], columns)
    return [(f"{noun}: p50", [line50]), (f"{noun}: p99", [line99, dots])]


def lag_plot(canvas: Canvas, flow: Flow) -> Any:
    """How many messages were acknowledged and not received yet."""
    edges = _edges(canvas, len(flow.acknowledged_ms))
    lag = flow.lag(edges)
    plot = canvas.plot("lag", 150, y_range=Range1d(0, max(float(lag.max(initial=0)) * 1.08, 1)))
    plot.yaxis.axis_label = "messages behind"
    source = ColumnDataSource({"x": (edges / 1000).astype("f4"), "y": lag.astype("i4")})
    line = plot.step(source=source, x="x", y="y", mode="after", line_width=2, tags=["line:lag"])
    hover(plot, [line], [("time", "@x{0.0} s"), ("acknowledged and not received yet", "@y")], mode="vline")
    return plot
