"""Send latency, sends and availability, and how late the machine was: plots over the same time axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from bokeh.models import ColumnDataSource, Range1d

from ...verdict import seconds
from . import series
from .canvas import Canvas, hover, legend
from .data import Array, Recorded, Traffic
from .series import PER_SLICE, SLICES_MAX, Flow, Points, Slices, TimedColumns, quantiles

LEAST_MS = 0.1
"""The bottom of the logarithmic axis."""


def latency_plot(canvas: Canvas, recorded: Recorded, sliced: Slices) -> Any:
    """Send latency: the range, p50 and p99 of each slice, the slowest sends and all that failed as points."""
    plot = canvas.plot("latency", 300, y_axis_type="log")
    plot.yaxis.axis_label = "send latency, ms"
    middle = (sliced.start_ms + sliced.end_ms) / 2000
    low, high, p50, p99 = (
        np.maximum(v, LEAST_MS) for v in (sliced.min_ms, sliced.max_ms, sliced.p50_ms, sliced.p99_ms)
    )
    there = ~np.isnan(p50)
    source = ColumnDataSource(
        {"x": middle, "p50": p50, "p99": p99, "count": sliced.ok + sliced.unknown + sliced.failed}
        | {"low": low, "high": high, "ok": sliced.ok, "unknown": sliced.unknown, "failed": sliced.failed}
    )
    ranges = plot.varea(
        source=ColumnDataSource({"x": middle[there], "low": low[there], "high": high[there]}),
        x="x",
        y1="low",
        y2="high",
        tags=["range"],
    )
    line50 = plot.line(source=source, x="x", y="p50", line_width=2, tags=["line:p50"])
    line99 = plot.line(source=source, x="x", y="p99", line_width=2, tags=["line:p99"])
    sends, failures = series.shown_sends(recorded.traffic), series.shown_failures(recorded.traffic)
    ok = _sends(plot, recorded.traffic, sends, "circle", 5, "mark:send")
    bad = _sends(plot, recorded.traffic, failures, "x", 9, "mark:failed")
    columns = [("time", "@x{0.0} s"), ("sends", "@count (@ok ok, @unknown unknown, @failed failed)")]
    columns += [("p50", "@p50{0.0} ms"), ("p99", "@p99{0.0} ms"), ("min … max", "@low{0.0} … @high{0.0} ms")]
    hover(plot, [line50], columns, mode="vline")
    hover(plot, [*ok, *bad])
    names = [("min … max", [ranges]), ("p50", [line50]), ("p99", [line99])]
    legend(plot, [*names, ("slowest sends" if sends.others.any() else "sends", ok), ("failed or unknown", bad)])
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


def availability_plot(canvas: Canvas, sliced: Slices) -> Any:
    """The share of the sends that ended ok, in each slice of time."""
    middle, share = (sliced.start_ms + sliced.end_ms) / 2000, sliced.availability * 100
    least = min(float(np.nanmin(share)) if np.isfinite(share).any() else 100.0, 99.0)
    room = (100 - least) * 0.1  # so that a dip of 1 % is as high as one of 100 %
    plot = canvas.plot("availability", 130, y_range=Range1d(least - room, 100 + room))
    plot.yaxis.axis_label = "available, %"
    ended = sliced.ok + sliced.unknown + sliced.failed
    source = ColumnDataSource({"x": middle, "y": share, "ok": sliced.ok, "ended": ended})
    line = plot.line(source=source, x="x", y="y", line_width=2, tags=["line:available"])
    short = np.flatnonzero(share < 100)
    texts = [
        f"{share[i]:.2f} %: {sliced.ok[i]} of {ended[i]} ended ok around {seconds(middle[i] * 1000)}" for i in short
    ]
    dots = plot.scatter(
        source=ColumnDataSource({"x": middle[short], "y": share[short], "text": texts}), size=6, tags=["mark:failed"]
    )
    hover(plot, [line], [("time", "@x{0.0} s"), ("availability", "@y{0.00} % (@ok of @ended)")], mode="vline")
    hover(plot, [dots])
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


# -- latency of look-ups, pulls and messages end to end, and how far the consumers were behind.

_KINDS = (("end to end", "end_to_end"), ("pulls", "pulls"), ("look-ups", "look_ups"))


def _edges(canvas: Canvas, number: int) -> Array:
    return np.linspace(canvas.start_ms, canvas.end_ms, int(np.clip(number / PER_SLICE, 60, SLICES_MAX / 3)) + 1)


def flow_plot(canvas: Canvas, flow: Flow) -> Any:
    """p50 and p99 of each slice of time, for look-ups, pulls and messages from the send to the first receipt."""
    plot = canvas.plot("flow", 260, y_axis_type="log")
    plot.yaxis.axis_label = "latency, ms"
    shown: list[tuple[str, list[Any]]] = []
    for noun, name in _KINDS:
        timed: TimedColumns = getattr(flow, name)
        if len(timed.time_ms):
            shown += _lines(canvas, plot, timed, noun, name)
    legend(plot, shown)
    return plot


def _lines(canvas: Canvas, plot: Any, timed: TimedColumns, noun: str, name: str) -> list[tuple[str, list[Any]]]:
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
