"""Draws plots over time: send latency, sends per second, consumer lag, and how late the machine's timers fired.

a million sends ──► 60 to 1200 slices of time, each with how many ended how
               └──► single sends: all while they are few, else the slowest of each slice; and likewise those that
                    did not end ok, so that a spike or a failure is always a point of its own
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from bokeh.models import ColumnDataSource, Range1d

from ...verdict import seconds
from ..columns import Array, Traffic, numbers
from ..flow import MessageFlow
from .canvas import Canvas, hover, legend

SLICES_MAX = 1200
PER_SLICE = 20
"""So many sends a slice on average."""
POINTS_MAX = 2000
"""So many sends are points of their own."""
LEAST_MS = 0.1
"""The bottom of the logarithmic axis."""


def _edges(start_ms: float, end_ms: float, rows: int, most: float = SLICES_MAX) -> Array:
    return np.linspace(start_ms, max(end_ms, start_ms + 1), int(np.clip(rows / PER_SLICE, 60, most)) + 1)


def _slice_of(time_ms: Array, edges: Array) -> Array:
    return np.clip(np.searchsorted(edges, time_ms, side="right") - 1, 0, len(edges) - 2)


def latency_plot(canvas: Canvas, traffic: Traffic) -> Any:
    """Plot how long sends took, a point per send. Above 2,000 sends only the slowest send of each slice of time is
    drawn; likewise for failed sends."""
    plot = canvas.plot("latency", 260, y_axis_type="log")
    plot.yaxis.axis_label = "send latency, ms"
    ok = _points(plot, traffic, traffic.where("send", "ok"), "circle", 5, "mark:send")
    bad = _points(plot, traffic, traffic.where("send", "fail", "info"), "x", 9, "mark:failed")
    hover(plot, [*ok, *bad])
    legend(plot, [("sends, the slowest of very many", ok), ("failed or unknown", bad)])
    return plot


def _points(plot: Any, traffic: Traffic, mask: Array, marker: str, size: int, tag: str) -> list[Any]:
    index, others = slowest(traffic, mask)
    if not len(index):
        return []
    texts = []
    times = traffic.time_ms[index]
    for row, at_ms, more in zip(traffic.rows.take(pa.array(index)).to_pylist(), times.tolist(), others, strict=True):
        where = f" at {row['broker_name']} queue {row['queue_id']}" if row["broker_name"] else ""
        took = f" after {row['duration_ms']:.1f} ms" if row["duration_ms"] is not None else ""
        code = f", code {row['code']}" if row["code"] else ""
        text = f"{row['node']} sent {row['msg_key'] or row['op_id']}: {row['type']}{where}{took}{code}"
        texts.append(f"{text}, {seconds(at_ms)}" + (f" (slowest of {more + 1} here)" if more else ""))
    duration_ms = np.maximum(np.nan_to_num(traffic.duration_ms[index], nan=LEAST_MS), LEAST_MS)
    source = ColumnDataSource({"x": times / 1000, "y": duration_ms, "text": texts})
    return [plot.scatter(source=source, marker=marker, size=size, tags=[tag])]


def slowest(traffic: Traffic, mask: Array) -> tuple[Array, Array]:
    """Return the indices of the sends to draw (all, or the slowest of each slice of time), and how many other sends
    each one stands for."""
    index = np.flatnonzero(mask)
    if len(index) <= POINTS_MAX:
        return index, np.zeros(len(index), "i8")
    time_ms, duration_ms = traffic.time_ms[index], np.nan_to_num(traffic.duration_ms[index], nan=-1.0)
    slice_of = _slice_of(time_ms, np.linspace(time_ms[0], time_ms[-1], POINTS_MAX + 1))
    order = np.lexsort((duration_ms, slice_of))
    last = np.flatnonzero(np.diff(slice_of[order], append=-1))
    _, count = np.unique(slice_of, return_counts=True)
    return index[order[last]], count - 1


def sends_plot(canvas: Canvas, traffic: Traffic) -> Any:
    ended = sends_in_slices(traffic, canvas.start_ms, canvas.end_ms)
    plot = canvas.plot("sends", 240, y_range=Range1d(0, max(float(ended["ok"].max()) * 1.08, 1)))
    plot.yaxis.axis_label = "sends a second"
    source = ColumnDataSource(dict(ended))
    stacks = [("ok", "unknown", "ok"), ("unknown", "failed", "unknown"), ("failed", "zero", "failed")]
    drawn = [
        plot.quad(source=source, left="left", right="right", bottom=low, top=high, line_width=0, tags=[f"send:{name}"])
        for name, low, high in stacks
    ]
    columns = [("time", "@left{0.0} … @right{0.0} s"), ("ok", "@n_ok"), ("unknown", "@n_unknown")]
    columns += [("failed", "@n_failed"), ("availability", "@available{0.00} %")]
    hover(plot, [drawn[0]], columns, mode="vline")
    titles = ["ended ok", "ended unknown (it may have taken effect)", "failed"]
    legend(plot, [(title, [one]) for title, one in zip(titles, drawn, strict=True)])
    return plot


def sends_in_slices(traffic: Traffic, start_ms: float, end_ms: float) -> Mapping[str, Array]:
    """Return for each slice of time the number of sends by outcome (`n_ok` …), the bar heights, and the percentage that
    succeeded."""
    sends = traffic.where("send", "ok", "fail", "info") & (traffic.time_ms >= start_ms) & (traffic.time_ms <= end_ms)
    edges = _edges(start_ms, end_ms, int(sends.sum()))
    slice_of, outcome = _slice_of(traffic.time_ms[sends], edges), traffic.outcome[sends]
    ok, failed, unknown = (np.bincount(slice_of[outcome == code], minlength=len(edges) - 1) for code in (1, 2, 3))
    ended, width_s = ok + failed + unknown, (edges[1] - edges[0]) / 1000
    with np.errstate(invalid="ignore", divide="ignore"):
        available = np.where(ended > 0, 100 * ok / ended, np.nan)
    heights = {"zero": 0 * ok, "failed": failed / width_s, "unknown": (failed + unknown) / width_s}
    counts = {"n_ok": ok, "n_unknown": unknown, "n_failed": failed, "available": available}
    return {"left": edges[:-1] / 1000, "right": edges[1:] / 1000, **heights, "ok": ended / width_s, **counts}


def lateness_plot(canvas: Canvas, lags: pa.Table) -> Any:
    """Plot how late timers fired, which decides the tolerance of the checks. `lags` has the history's `timer_lag`
    rows."""
    time_ms, lag_ms = numbers(lags["time_ms"], "f8"), numbers(lags["lag_ms"], "f4")
    edges = _edges(canvas.start_ms, canvas.end_ms, len(lags))
    here = (time_ms >= canvas.start_ms) & (time_ms <= canvas.end_ms) & ~np.isnan(lag_ms)
    worst = np.full(len(edges) - 1, -1.0)
    np.maximum.at(worst, _slice_of(time_ms[here], edges), lag_ms[here])
    plot = canvas.plot("lateness", 150)
    plot.yaxis.axis_label = "timers late, ms"
    plot.xaxis.axis_label = "seconds"
    middle_s = (edges[:-1] + edges[1:]) / 2000
    source = ColumnDataSource({"x": middle_s, "y": np.where(worst < 0, np.nan, worst)})
    line = plot.line(source=source, x="x", y="y", line_width=1.5, tags=["line:lateness"])
    hover(plot, [line], [("time", "@x{0.0} s"), ("latest timer", "@y{0.0} ms")], mode="vline")
    return plot


def lag_plot(canvas: Canvas, flow: MessageFlow) -> Any:
    edges = _edges(canvas.start_ms, canvas.end_ms, len(flow.acknowledged_ms), SLICES_MAX / 3)
    lag = flow.lag(edges)
    plot = canvas.plot("lag", 150, y_range=Range1d(0, max(float(lag.max(initial=0)) * 1.08, 1)))
    plot.yaxis.axis_label = "messages behind"
    source = ColumnDataSource({"x": (edges / 1000).astype("f4"), "y": lag.astype("i4")})
    line = plot.step(source=source, x="x", y="y", mode="after", line_width=2, tags=["line:lag"])
    hover(plot, [line], [("time", "@x{0.0} s"), ("acknowledged and not received yet", "@y")], mode="vline")
    return plot
