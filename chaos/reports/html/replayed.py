"""Draws a replay together with the original run, from replay.json. Each lane shows the original above the replay; a
line joins a change that happened in both runs.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ...verdict import Validity, seconds
from .canvas import Canvas, source_of
from .lanes import ABOVE, BELOW, lanes_plot
from .stretches import Lane, LaneStretch

FILE = "replay.json"
"""In the run folder of a replay."""
SECTION = "replay"
LANE_PX = 34
LANES_MAX = 60
_BADGES = {
    "again": (Validity.VALID, "happens again"),
    "in part": (Validity.UNKNOWN, "in part"),
    "not": (Validity.INVALID, "does not happen again"),
    "nothing": (Validity.UNKNOWN, "nothing to compare"),
}
_LANE_OF = {
    "chose": "NameServer",
    "looks up": "look-ups",
    "registers": "registers",
    **dict.fromkeys(("client came", "client lost"), "clients"),
    **dict.fromkeys(("started", "stopped"), "process"),
}

LaneName = tuple[str, str]


def badge(document: Mapping[str, Any]) -> tuple[Validity, str]:
    """Return the badge that says whether the incident happened again: its colour, as a verdict, and its text."""
    return _BADGES[document["happens"]]


def lane_of(one: Mapping[str, Any]) -> LaneName:
    return one["node"], _LANE_OF.get(one["kind"]) or one["subject"]


def lanes_of(document: Mapping[str, Any]) -> tuple[list[LaneName], int]:
    """Return the lanes that changed in either run, NameServers' lanes first, and how many changed lanes are not
    shown."""
    changes = document["transitions"]
    changed = dict.fromkeys(map(lane_of, changes))
    servers = {one["node"] for one in changes if one["kind"] in ("route", "came", "lost")}
    trouble = {lane_of(one) for one in changes if one["found"] != "both"}
    ordered = sorted(changed, key=lambda lane: (lane[0] not in servers, lane))
    kept = ordered
    if len(ordered) > LANES_MAX:
        first = [lane for lane in ordered if lane in trouble][:LANES_MAX]
        more = [lane for lane in ordered if lane not in trouble][: LANES_MAX - len(first)]
        kept = [lane for lane in ordered if lane in {*first, *more}]
    return kept, len(ordered) - len(kept)


_LEGEND: Sequence[tuple[str, Sequence[str]]] = (
    ("original", ("held",)),
    ("replay", ("replayed",)),
    ("a route with fewer brokers", ("partly", "replayed_partly")),
    ("in both", ("mark:joined",)),
    ("only in the original", ("mark:missing",)),
    ("only in the replay", ("mark:extra",)),
)
_OF_SIDE = {"original": ("held", "partly"), "replay": ("replayed", "replayed_partly")}
"""A bar's colour: with all brokers that the lane ever had, and with fewer."""


def replay_plot(canvas: Canvas, document: Mapping[str, Any]) -> Any:
    kept, _ = lanes_of(document)
    drawn = {lane: Lane(key="/".join(lane), label=lane[1], group=lane[0]) for lane in kept}
    servers = sorted({what for one in document["lanes"] if one["of"] == "NameServer" for *_, what in _bars(one)})
    for one in document["lanes"]:
        if (lane := drawn.get((one["node"], one["of"]))) is not None:
            lane.bars, lane.windows = (_stretches(one, side, servers) for side in _OF_SIDE)
    joins: list[tuple[Any, ...]] = []
    for one in document["transitions"]:
        if (lane := drawn.get(lane_of(one))) is not None:
            here, there = _marks(one)
            lane.marks, lane.marks_below = [*lane.marks, *here], [*lane.marks_below, *there]
            if one["found"] == "both":
                joins.append((one["original_ms"] / 1000, one["replay_ms"] / 1000, lane.key))
    plot, heights = lanes_plot(canvas, SECTION, [*drawn.values()], LANE_PX, servers, entries=_LEGEND)
    if joins:
        rows = [(a_s, heights[key] + ABOVE, b_s, heights[key] + BELOW) for a_s, b_s, key in joins]
        ends = ("x0", "y0", "x1", "y1")
        plot.segment(*ends, source=source_of(rows, *ends), line_width=1.5, tags=["line:joined"])
    return plot


def _stretches(one: Mapping[str, Any], side: str, servers: Sequence[str]) -> list[LaneStretch]:
    whole = max(map(_brokers, (what for *_, what in _bars(one))), default=0)
    sat = one["of"] == "NameServer"
    found = []
    for from_ms, to_ms, what in one[side]:
        if what != "nobody":
            kind = f"ns{servers.index(what) % 8}" if sat else _OF_SIDE[side][_brokers(what) < whole]
            says = f"{side}: {one['node']} {'sat on' if sat else 'had'} {what}"
            found.append(LaneStretch.said(kind, from_ms, to_ms, says))
    return found


def _brokers(what: str) -> int:
    return 0 if what == "nobody" else what.count(",") + 1


def _bars(one: Mapping[str, Any]) -> Iterable[tuple[float, float, str]]:
    return [*map(tuple, one["original"]), *map(tuple, one["replay"])]


def _marks(one: Mapping[str, Any]) -> tuple[list[LaneStretch], list[LaneStretch]]:
    """Return the marks of a change in the original, and in the replay."""
    here, there = one["original_ms"], one["replay_ms"]
    if one["found"] == "both":
        text = f"{one['told']}: {seconds(here)} in the original, {_later(there - here)} in the replay"
        return [LaneStretch.mark("joined", here, text)], [LaneStretch.mark("joined", there, text)]
    if one["found"] == "original":
        return [LaneStretch.mark("missing", here, f"{one['told']} at {seconds(here)}: only in the original")], []
    return [], [LaneStretch.mark("extra", there, f"{one['told']} at {seconds(there)}: only in the replay")]


def _later(apart_ms: float) -> str:
    if abs(apart_ms) < 50:
        return "in the same moment"
    return f"{abs(apart_ms) / 1000:.1f} s {'later' if apart_ms > 0 else 'sooner'}"


# -- in words


def note(document: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return what the lanes show, and from when to when. `rows` has the replay's phases."""
    _, more = lanes_of(document)
    text = "In each lane the original is above and the replay beneath; a line joins what is the same change in both."
    if document["imported"]:
        text += f" 0 s here is {seconds(document['from_ms'])} of the original's time, in which its faults are told"
        begun = document.get("begun")
        text += f" ({datetime.fromisoformat(begun):%Y-%m-%d %H:%M:%S %Z})." if begun else "."
    settles_ms = next((row["time_ms"] for row in rows if row["phase"] == "settle"), math.inf)
    if settles_ms < document["lasts_ms"]:
        until = seconds(document["lasts_ms"])
        text += f" After {seconds(settles_ms)} the replay injects nothing more; until {until} its cluster settles."
    if document["compared_from_ms"] > 0:
        text += f" Compared from {seconds(document['compared_from_ms'])} on, shortly before the first fault."
    if names := document.get("names"):
        said = [f"{ours} is {theirs}" for ours, theirs in sorted(names.items())]
        text += f" In the run below {', '.join(said[:12])}{' …' if len(said) > 12 else ''}."
    if more:
        text += f" {more} more lanes are in replay.json only."
    if document.get("not_compared"):
        text += f" Not in the original's logs, so not compared: {', '.join(document['not_compared'])}."
    return text
