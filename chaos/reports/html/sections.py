"""The sections of report.html: titles, notes and plots."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from . import lanes, plots
from .canvas import Canvas
from .run_to_draw import RunToDraw

SECTIONS: Mapping[str, tuple[str, str]] = {
    "story": (
        "When",
        "Upper bar: what the NameServer had or the client used. Lower bar: what it must, may and must not have.",
    ),
    "faults": ("Phases and faults", ""),
    "found": (
        "What checks found that no node's lane shows",
        "A row for each check and node; what belongs to a route or a client stands there.",
    ),
    "routes": (
        "What each NameServer held",
        "A row per NameServer and broker. The bar is what was in its table; the line below it is what RocketMQ's own "
        "timers demand and allow after each fault; red is what a check found over.",
    ),
    "clients": (
        "What each client used",
        "First the NameServer it had chosen, then a row for each broker it sent to or pulled from.",
    ),
    "latency": ("Send latency", "Failures and the slowest sends are points of their own; point at one to see it."),
    "sends": ("Sends", "How many sends a second ended, and how; point at a moment to see what share ended ok."),
    "lag": ("Consumer lag", "How many messages were acknowledged and not received yet."),
    "queues": ("Who owned which queue", "A row per queue; the colour is the consumer."),
    "lateness": ("How late the machine was", "The tolerance of the checks is made of this."),
}


def drawn(told: RunToDraw, canvas: Canvas) -> tuple[dict[str, Any], dict[str, Mapping[str, float]]]:
    recorded, world = told.recorded, told.world
    found: dict[str, Any] = {"faults": lanes.faults_plot(canvas, _phases(told))}
    rows: dict[str, Mapping[str, float]] = {}
    name_servers = [node.name for node in world.of_kind("name_server")]
    consumers = [node.name for node in world.of_kind("consumer")]
    for section, px, names, colour in (
        ("found", lanes.ROW_PX, (), "ns"),
        ("routes", lanes.LANE_PX, name_servers, "ns"),
        ("clients", lanes.ROW_PX, name_servers, "ns"),
        ("queues", lanes.ROW_PX, consumers, "owner"),
    ):
        if some := told.shown[section]:
            plot = lanes.lanes_plot(canvas, section, some, px, names, places=told.places, colour=colour)
            found[section], rows[section] = plot
    if recorded.traffic.where("send").any():
        found["latency"] = plots.latency_plot(canvas, recorded.traffic)
        found["sends"] = plots.sends_plot(canvas, recorded.traffic)
    if len(told.flow.received_ms):
        found["lag"] = plots.lag_plot(canvas, told.flow)
    if len(lags := recorded.rows_of("timer_lag")):
        found["lateness"] = plots.lateness_plot(canvas, lags)
    return found, rows


class PageSection(NamedTuple):
    name: str
    title: str
    note: str
    div: str


def section(name: str, told: RunToDraw, div: str) -> PageSection:
    title, note = (HEADINGS if told.world.run.get("imported") else {}).get(name) or SECTIONS[name]
    hidden = len(told.lanes[name]) - len(told.shown[name]) if name in told.lanes else 0
    if hidden:
        note += f" {hidden} more rows are not shown; nothing in them was over."
    return PageSection(name, title, note, div)


def _phases(told: RunToDraw) -> list[lanes.Phase]:
    rows = [(row["phase"], row["time_ms"]) for row in told.recorded.world_rows if row["event"] == "phase"]
    if rows and rows[0][1] > told.start_ms:
        rows.insert(0, ("start", told.start_ms))
    end_ms = told.end_ms
    return [(name, at, min(after, end_ms)) for (name, at), (_, after) in pairwise([*rows, ("", end_ms)]) if at < end_ms]


HEADINGS = {
    "lateness": (
        "How exact the stamps are",
        "What a log's time may be off by; the tolerance of the checks is made of it.",
    ),
    "faults": (
        "What is thought to have happened",
        "The inferred faults that are certain or likely (hatched); unsure ones are in incident.json.",
    ),
    "clients": ("What each client used", "The NameServer it had chosen; its log does not say which brokers it used."),
}
"""Titles that differ for an import."""
