"""Send latency, sends, consumer lag, and how late the machine was: plots over the same time axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from bokeh.models import ColumnDataSource, Range1d

from ...verdict import seconds
from . import series
from .canvas import Canvas, hover, legend
from .data import Recorded, Traffic
from .series import PER_SLICE, SLICES_MAX, Flow, Points, Slices

LEAST_MS = 0.1
"""The bottom of the logarithmic axis."""


def latency_plot(canvas: Canvas, recorded: Recorded) -> Any:
    """How long sends took: the slowest of them, and all that failed, as points."""
    plot = canvas.plot("latency", 260, y_axis_type="log")
    plot.yaxis.axis_label = "send latency, ms"
    sends, failures = series.shown_sends(recorded.traffic), series.shown_failures(recorded.traffic)
    ok = _sends(plot, recorded.traffic, sends, "circle", 5, "mark:send")
    bad = _sends(plot, recorded.traffic, failures, "x", 9, "mark:failed")
    hover(plot, [*ok, *bad])
    legend(plot, [("slowest sends" if sends.others.any() else "sends", ok), ("failed or unknown", bad)])
    return plot


def _sends(plot: Any, traffic: Traffic, points: Points, marker: str, size: int, tag: str) -> list[Any]:
    if not len(points.index):
        return []
    texts = []
    times = traffic.time_ms[points.index]
    rows = traffic.rows.take(pa.array(points.index)).to_pylist()
    for row, at_ms, others in zip(rows, times.tolist(), points.others.tolist(), strict=True):
        where = f" at {row['broker_name']} queue {row['queue_id']}" if row["broker_name"] else ""
        took = f" after {row['duration_ms']:.1f} ms" if row["duration_ms"] is not None else ""
        code = f", code {row['code']}" if row["code"] else ""
        text = f"{row['node']} sent {row['msg_key'] or row['op_id']}: {row['type']}{where}{took}{code}"
        texts.append(f"{text}, {seconds(at_ms)}" + (f" (slowest of {others + 1} here)" if others else ""))
    duration_ms = np.maximum(np.nan_to_num(traffic.duration_ms[points.index], nan=LEAST_MS), LEAST_MS)
    source = ColumnDataSource({"x": times / 1000, "y": duration_ms, "text": texts})
    return [plot.scatter(source=source, marker=marker, size=size, tags=[tag])]


def sends_plot(canvas: Canvas, sliced: Slices) -> Any:
    """Sends a second by how they ended."""
    width_s = max(sliced.width_s, 1e-9)
    highest = float((sliced.ok + sliced.unknown + sliced.failed).max(initial=0)) / width_s
    plot = canvas.plot("sends", 240, y_range=Range1d(0, max(highest * 1.08, 1)))
    plot.yaxis.axis_label = "sends a second"
    source = ColumnDataSource(
        {
            "left": sliced.start_ms / 1000,
            "right": sliced.end_ms / 1000,
            "zero": np.zeros(len(sliced.ok)),
            "failed": sliced.failed / width_s,
            "unknown": (sliced.failed + sliced.unknown) / width_s,
            "ok": (sliced.failed + sliced.unknown + sliced.ok) / width_s,
            "n_ok": sliced.ok,
            "n_unknown": sliced.unknown,
            "n_failed": sliced.failed,
            "available": sliced.availability * 100,
            "x": (sliced.start_ms + sliced.end_ms) / 2000,
        }
    )
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


def lateness_plot(canvas: Canvas, recorded: Recorded) -> Any:
    """How late timers fired: what the tolerance of the checks is made of."""
    middle, worst = series.lateness(recorded.lags, canvas.start_ms, canvas.end_ms)
    plot = canvas.plot("lateness", 150)
    plot.yaxis.axis_label = "timers late, ms"
    plot.xaxis.axis_label = "seconds of RocketMQ time since the timeline's start"
    source = ColumnDataSource({"x": middle / 1000, "y": worst})
    line = plot.line(source=source, x="x", y="y", line_width=1.5, tags=["line:lateness"])
    hover(plot, [line], [("time", "@x{0.0} s"), ("latest timer", "@y{0.0} ms")], mode="vline")
    return plot


def lag_plot(canvas: Canvas, flow: Flow) -> Any:
    """How many messages were acknowledged and not received yet."""
    number = int(np.clip(len(flow.acknowledged_ms) / PER_SLICE, 60, SLICES_MAX / 3))
    edges = np.linspace(canvas.start_ms, canvas.end_ms, number + 1)
    lag = flow.lag(edges)
    plot = canvas.plot("lag", 150, y_range=Range1d(0, max(float(lag.max(initial=0)) * 1.08, 1)))
    plot.yaxis.axis_label = "messages behind"
    source = ColumnDataSource({"x": (edges / 1000).astype("f4"), "y": lag.astype("i4")})
    line = plot.step(source=source, x="x", y="y", mode="after", line_width=2, tags=["line:lag"])
    hover(plot, [line], [("time", "@x{0.0} s"), ("acknowledged and not received yet", "@y")], mode="vline")
    return plot
