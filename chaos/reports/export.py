"""A run for other people's tools: Perfetto (Chrome's trace JSON) and OpenMetrics.

perfetto      a track per lane with its bars, one for faults, one per check with what it found over, marks as
              instants, lag and traffic as counters: ui.perfetto.dev and chrome://tracing open it
openmetrics   how the run ended, as one sample of each metric: a push gateway or a textfile collector takes it
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..verdict import Validity
from .html import series
from .html.run_to_draw import RunToDraw
from .html.stretches import Lane, LaneStretch

FORMATS = ("perfetto", "openmetrics")
_SECTIONS = {
    "links": "links",
    "routes": "NameServers",
    "clients": "clients",
    "queues": "queues",
    "found": "checks",
}
_LEVEL = {Validity.VALID: 0, Validity.UNKNOWN: 1, Validity.INVALID: 2}


def export(told: RunToDraw, format_: str) -> str:
    """The run in this format. ValueError for one that is none of FORMATS."""
    if format_ == "perfetto":
        return perfetto(told)
    if format_ == "openmetrics":
        return openmetrics(told)
    raise ValueError(f"{format_!r} is none of {', '.join(FORMATS)}")


def perfetto(told: RunToDraw) -> str:
    """Chrome's trace JSON: microseconds of RocketMQ time since the first process started."""
    found: list[dict[str, Any]] = []

    def us(at_ms: float) -> float:
        return round((at_ms - told.start_ms) * 1000, 3)

    def slice_(pid: int, tid: int, name: str, stretch_ms: tuple[float, float], text: str, kind: str) -> None:
        start_ms, end_ms = stretch_ms
        width_us = max(round((end_ms - start_ms) * 1000, 3), 1.0)
        about = {"kind": kind, "text": text}
        event = {"ph": "X", "pid": pid, "tid": tid, "ts": us(start_ms), "dur": width_us, "name": name, "args": about}
        found.append(event)

    found += _names(1, "faults", enumerate(band.fault_id for band in told.bands))
    for tid, band in enumerate(told.bands):
        slice_(1, tid, band.title, (band.start_ms, band.end_ms), band.title, "fault")
    for pid, (section, name) in enumerate(_SECTIONS.items(), start=2):
        lanes: Sequence[Lane] = told.lanes[section]
        # Windows and violations lie over bars and over each other: each has a track of its own.
        tracks = [(lane, what) for lane in lanes for what in ("", " allowed", " over") if _of(lane, what)]
        found += _names(pid, name, enumerate(f"{lane.group} {lane.label}{what}" for lane, what in tracks))
        for tid, (lane, what) in enumerate(tracks):
            for stretch in _of(lane, what):
                slice_(pid, tid, stretch.kind, (stretch.start_ms, stretch.end_ms), stretch.text, stretch.kind)
            if not what:
                for mark in lane.marks:
                    event = {"ph": "i", "s": "t", "pid": pid, "tid": tid, "ts": us(mark.at_ms), "name": mark.kind}
                    found.append(event | {"args": {"text": mark.text}})
    found += [{**event, "ts": us(event["ts"])} for event in _counters(told, len(_SECTIONS) + 2)]
    about = {"run": told.run.name, "seed": told.run.seed, "verdict": str(told.overall), "defect": told.defect}
    document = {"displayTimeUnit": "ms", "otherData": about, "traceEvents": found}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=str) + "\n"


def _of(lane: Lane, what: str) -> Sequence[LaneStretch]:
    if not what:
        return lane.bars
    return [window for window in lane.windows if (window.kind in ("over", "late")) == (what == " over")]


def _names(pid: int, process: str, threads: Any) -> Iterator[dict[str, Any]]:
    """The events that give a process and its threads their names and order."""
    yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": process}}
    yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}}
    for tid, name in threads:
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_sort_index", "args": {"sort_index": tid}}


def _counters(told: RunToDraw, pid: int) -> Iterator[dict[str, Any]]:
    """Sends by outcome and the lag, in slices of time; `ts` still in milliseconds."""
    yield {"ph": "M", "pid": pid, "ts": told.start_ms, "name": "process_name", "args": {"name": "traffic"}}
    sliced = series.slices(told.recorded.traffic, told.start_ms, told.end_ms)
    columns = zip(
        *(column.tolist() for column in (sliced.start_ms, sliced.ok, sliced.unknown, sliced.failed)), strict=True
    )
    for at_ms, ok, unknown, failed in columns:
        value = {"ok": ok, "unknown": unknown, "failed": failed}
        yield {"ph": "C", "pid": pid, "ts": at_ms, "name": "sends", "args": value}
    if len(told.flow.received_ms):
        for at_ms, behind in zip(sliced.start_ms.tolist(), told.flow.lag(sliced.start_ms).tolist(), strict=True):
            yield {"ph": "C", "pid": pid, "ts": at_ms, "name": "lag", "args": {"messages": behind}}


def openmetrics(told: RunToDraw) -> str:
    """OpenMetrics text: verdicts, what was examined and wrong, bounds, sends by outcome, and latencies, in seconds."""
    lines = _Metrics({"scenario": told.run.name, "seed": str(told.run.seed)})
    about = {"profile": told.run.profile, "defect": told.defect, "clock": str(told.world.run.get("clock") or "")}
    lines.family("nemesrv_run", "info", "The run that these metrics are of.")
    lines.sample("nemesrv_run_info", 1, **about)
    for name, says, value_of in (
        ("verdict", "0 VALID, 1 UNKNOWN, 2 INVALID.", lambda v: _LEVEL[v.verdict]),
        ("examined", "How many things the check looked at.", lambda v: v.examined),
        ("violations", "How many of them were wrong.", lambda v: v.violations),
    ):
        lines.family(f"nemesrv_{name}", "gauge", says)
        for v in told.verdicts:
            lines.sample(f"nemesrv_{name}", value_of(v), check=v.name)
    for name, says, values in (
        ("measured", "What was measured against the bound.", {v.name: v.measured.get("max_ms") for v in told.verdicts}),
        ("allowed", "The bound, without its tolerance.", {v.name: v.allowed.get("bound_ms") for v in told.verdicts}),
    ):
        lines.family(f"nemesrv_{name}_seconds", "gauge", says, unit="seconds")
        for check, value in values.items():
            if isinstance(value, int | float):
                lines.sample(f"nemesrv_{name}_seconds", value / 1000, check=check)
    traffic = told.recorded.traffic
    lines.family("nemesrv_sends", "gauge", "Sends by how they ended.")
    for outcome in ("ok", "fail", "info"):
        lines.sample("nemesrv_sends", int(traffic.where("send", outcome).sum()), outcome=outcome)
    took = traffic.duration_ms[traffic.where("send", "ok")]
    flow = told.flow
    timed = {"send": took, "end_to_end": flow.end_to_end.took_ms, "pull": flow.pulls.took_ms}
    timed["look_up"] = flow.look_ups.took_ms
    lines.family("nemesrv_latency_seconds", "summary", "How long operations took that ended ok.", unit="seconds")
    for operation, ms in timed.items():
        ms = ms[~np.isnan(ms)]
        if len(ms):
            for quantile in (0.5, 0.99, 1.0):
                value = float(np.quantile(ms, quantile, method="inverted_cdf")) / 1000
                lines.sample("nemesrv_latency_seconds", value, operation=operation, quantile=f"{quantile:g}")
            lines.sample("nemesrv_latency_seconds_count", len(ms), operation=operation)
            lines.sample("nemesrv_latency_seconds_sum", float(ms.sum(dtype="f8")) / 1000, operation=operation)
    return lines.text()


class _Metrics:
    """Lines of OpenMetrics text; every sample has the labels of the run."""

    def __init__(self, labels: dict[str, str]) -> None:
        self._labels, self._lines = labels, list[str]()

    def family(self, name: str, type_: str, says: str, unit: str = "") -> None:
        self._lines += [f"# TYPE {name} {type_}", *([f"# UNIT {name} {unit}"] if unit else []), f"# HELP {name} {says}"]

    def sample(self, name: str, value: float, **labels: str) -> None:
        told = ",".join(f'{key}="{_escaped(text)}"' for key, text in (self._labels | labels).items())
        self._lines.append(f"{name}{{{told}}} {value:.10g}")

    def text(self) -> str:
        return "\n".join([*self._lines, "# EOF"]) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
