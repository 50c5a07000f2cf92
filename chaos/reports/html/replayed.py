"""A replay beside its original, drawn from replay.json: in each lane the original above, the replay beneath, and what
is the same change in both joined. Nothing is compared here.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from bokeh.models import Range1d

from ...verdict import Validity, seconds
from .canvas import Canvas, hover, legend, source_of
from .lanes import name_rows

FILE = "replay.json"
SECTION = "replay"
LANE_PX = 34
LANES_MAX = 60
_ROWS_MAX = 400
"""So many transitions stand in the table, those in one of the two only first."""
_UP, _DOWN, _HALF = 0.19, -0.19, 0.13
SHOWN_AS = {"again": Validity.VALID, "in part": Validity.UNKNOWN, "not": Validity.INVALID, "nothing": Validity.UNKNOWN}
_SAID = {
    "again": "happens again",
    "in part": "in part",
    "not": "does not happen again",
    "nothing": "nothing to compare",
}
_LANE_OF = {
    "chose": "NameServer",
    "looks up": "look-ups",
    "registers": "registers",
    **dict.fromkeys(("client came", "client lost"), "clients"),
    **dict.fromkeys(("started", "stopped"), "process"),
}

Lane = tuple[str, str]


def read_replay(run_dir: Path) -> dict[str, Any] | None:
    """The document beside the history; None where the run is no replay."""
    try:
        document = json.loads((run_dir / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) and "transitions" in document else None


def badge(document: Mapping[str, Any]) -> tuple[str, str]:
    """How it is coloured, and what it says."""
    return str(SHOWN_AS[document["happens"]]), _SAID[document["happens"]]


def lane_of(one: Mapping[str, Any]) -> Lane:
    """The lane in which the transition is drawn."""
    return one["node"], _LANE_OF.get(one["kind"]) or one["subject"]


def lanes_of(document: Mapping[str, Any]) -> tuple[list[Lane], int]:
    """The lanes in which anything changed, those of NameServers first; and how many more there are."""
    changed = dict.fromkeys(lane_of(one) for one in document["transitions"])
    servers = {
        lane[0] for lane in changed if any(o["node"] == lane[0] and o["kind"] == "route" for o in _all(document))
    }
    servers |= {one["node"] for one in _all(document) if one["kind"] in ("came", "lost")}
    trouble = {lane_of(one) for one in _all(document) if one["found"] != "both"}
    ordered = sorted(changed, key=lambda lane: (lane[0] not in servers, lane))
    kept = ordered
    if len(ordered) > LANES_MAX:
        first = [lane for lane in ordered if lane in trouble][:LANES_MAX]
        more = [lane for lane in ordered if lane not in trouble][: LANES_MAX - len(first)]
        kept = [lane for lane in ordered if lane in {*first, *more}]
    return kept, len(ordered) - len(kept)


def _all(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = document["transitions"]
    return found


def replay_plot(canvas: Canvas, document: Mapping[str, Any]) -> Any:
    """Both time lines on the axis of the run."""
    lanes, _ = lanes_of(document)
    heights: dict[Lane, float] = {}
    y = 0.0
    for at, lane in enumerate(lanes):
        if at:
            y -= 1.0 if lanes[at - 1][0] == lane[0] else 1.25
        heights[lane] = y
    top = 0.5 + 18 / LANE_PX
    bottom = min(heights.values(), default=0.0) - 0.55
    plot = canvas.plot(SECTION, int((top - bottom) * LANE_PX) + 74, y_range=Range1d(bottom, top))
    servers = sorted({what for one in document["lanes"] if one["of"] == "NameServer" for *_, what in _bars(one)})
    quads: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for one in document["lanes"]:
        lane = one["node"], one["of"]
        if lane not in heights:
            continue
        whole = max(map(_brokers, (what for *_, what in _bars(one))), default=0)
        for side, dy in (("original", _UP), ("replay", _DOWN)):
            for from_ms, to_ms, what in one[side]:
                if what == "nobody":
                    continue
                sat = one["of"] == "NameServer"
                own = _OF_SIDE[side][_brokers(what) < whole]
                kind = f"ns{servers.index(what) % 8}" if sat else own
                middle = heights[lane] + dy
                said = f"{side}: {lane[0]} {'sat on' if sat else 'had'} {what}"
                said += f" from {seconds(from_ms)} to {seconds(to_ms)}"
                quads[kind].append((from_ms / 1000, to_ms / 1000, middle - _HALF, middle + _HALF, said))
    drawn = {
        kind: plot.quad(source=source_of(rows, "left", "right", "bottom", "top", "text"), line_width=1, tags=[kind])
        for kind, rows in quads.items()
    }
    hover(plot, list(drawn.values()))
    joins, points = _changes(document, heights)
    if joins:
        plot.segment(
            "x0",
            "y0",
            "x1",
            "y1",
            source=source_of(joins, "x0", "y0", "x1", "y1"),
            line_width=1.5,
            tags=["line:joined"],
        )
    markers = {"joined": ("circle", 6), "missing": ("x", 12), "extra": ("diamond", 13)}
    marks = {
        kind: plot.scatter(
            source=source_of(points[kind], "x", "y", "text"),
            marker=marker,
            size=size,
            tags=[f"mark:{kind}"],
            line_width=2,
        )
        for kind, (marker, size) in markers.items()
        if points.get(kind)
    }
    hover(plot, list(marks.values()))
    canvas.label_bands(plot, top)
    named = [(name, [drawn[f"ns{at % 8}"]]) for at, name in enumerate(servers) if f"ns{at % 8}" in drawn]
    entries = [("original", "held"), ("replay", "replayed"), ("a route with fewer brokers", "partly")]
    shown = [(label, [drawn[kind]]) for label, kind in entries if kind in drawn]
    told = [("in both", "joined"), ("only in the original", "missing"), ("only in the replay", "extra")]
    legend(plot, [*shown, *named[:8], *((label, [marks[kind]]) for label, kind in told if kind in marks)])
    name_rows(plot, {heights[lane]: _label(lane) for lane in lanes})
    return plot


_OF_SIDE = {"original": ("held", "partly"), "replay": ("replayed", "replayed_partly")}
"""How a bar is coloured: with all brokers that the lane ever had, and with fewer."""


def _brokers(what: str) -> int:
    return 0 if what == "nobody" else what.count(",") + 1


def _bars(one: Mapping[str, Any]) -> Iterable[tuple[float, float, str]]:
    return [*map(tuple, one["original"]), *map(tuple, one["replay"])]


def _label(lane: Lane) -> str:
    text = f"{lane[0]} · {lane[1]}"
    return text if len(text) <= 26 else f"{text[:25]}…"


def _changes(
    document: Mapping[str, Any], heights: Mapping[Lane, float]
) -> tuple[list[tuple[Any, ...]], dict[str, list[tuple[Any, ...]]]]:
    """Lines between the same change in both, and a mark at each."""
    joins: list[tuple[Any, ...]] = []
    points: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for one in _all(document):
        y = heights.get(lane_of(one))
        if y is None:
            continue
        here, there = one["original_ms"], one["replay_ms"]
        if one["found"] == "both":
            text = f"{one['told']}: {seconds(here)} in the original, {_later(there - here)} in the replay"
            joins.append((here / 1000, y + _UP, there / 1000, y + _DOWN))
            points["joined"] += [(here / 1000, y + _UP, text), (there / 1000, y + _DOWN, text)]
        elif one["found"] == "original":
            points["missing"].append((here / 1000, y + _UP, f"{one['told']} at {seconds(here)}: only in the original"))
        else:
            points["extra"].append((there / 1000, y + _DOWN, f"{one['told']} at {seconds(there)}: only in the replay"))
    return joins, points


def _later(apart_ms: float) -> str:
    if abs(apart_ms) < 50:
        return "in the same moment"
    return f"{abs(apart_ms) / 1000:.1f} s {'later' if apart_ms > 0 else 'sooner'}"


# -- in words


def said(document: Mapping[str, Any]) -> str:
    """The sentence of the page, as HTML."""
    notes = "".join(f" {escape(note)}" for note in document.get("notes") or ())
    return f"{escape(document['sentence'])}{notes}"


def note(document: Mapping[str, Any]) -> str:
    """What the picture shows."""
    _, more = lanes_of(document)
    text = "In each lane the original is above and the replay beneath; a line joins what is the same change in both."
    if document["compared_from_ms"] > 0:
        text += f" Compared from {seconds(document['compared_from_ms'])} on, shortly before the first fault."
    if names := document.get("names"):
        said = [f"{ours} is {theirs}" for ours, theirs in sorted(names.items())]
        text += f" In the run below {', '.join(said[:12])}{' …' if len(said) > 12 else ''}."
    if more:
        text += f" {more} more lanes are in the table only."
    if document.get("not_compared"):
        text += f" Not in the original's logs, so not compared: {', '.join(document['not_compared'])}."
    return text


def tables(document: Mapping[str, Any]) -> str:
    """What the faults were, what would have been different, and every transition, as HTML."""
    return _hypotheses(document) + _variants(document.get("variants") or ()) + _transitions(document)


def _hypotheses(document: Mapping[str, Any]) -> str:
    found = document.get("hypotheses") or ()
    rows = "".join(
        f"<tr><td class='n'>{one['episode']}</td><td class='n'>{one['rank']}</td><td>{escape(one['sentence'])}</td>"
        f"<td>{escape(one['certainty'])}</td></tr>"
        for one in found
    )
    head = "<th>episode</th><th>rank</th><th>what was done in the replay</th><th>certainty</th>"
    return (
        f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>" if found else ""
    )


def _variants(variants: Sequence[Mapping[str, Any]]) -> str:
    if not variants:
        return ""
    head = "<th>with</th><th>client</th><th class='n'>failed sends</th><th class='n'>longest gap</th>"
    head += "<th class='n'>recovered after</th>"
    rows = ""
    for variant in variants:
        for client, (was, now) in sorted(variant["clients"].items()):
            cells = "".join(
                f"<td class='n'>{_cell(was[name], name)} → {_cell(now[name], name)}</td>"
                for name in ("failed", "longest_gap_ms", "recovered_ms")
            )
            rows += f"<tr><td>{escape(variant['vary'])}</td><td>{escape(client)}</td>{cells}</tr>"
    sentences = "".join(f"<li>{escape(variant['sentence'])}</li>" for variant in variants)
    table = f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    return f"<h3>What would have been different</h3><ul>{sentences}</ul>{table}"


def _cell(value: Any, name: str) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if name == "failed" else f"{value / 1000:.1f} s"


def _transitions(document: Mapping[str, Any]) -> str:
    order = {"original": 0, "replay": 0, "both": 1}
    found = sorted(_all(document), key=lambda one: (order[one["found"]], _first_ms(one)))
    shown = sorted(found[:_ROWS_MAX], key=_first_ms)
    rows = "".join(
        f"<tr class='{one['found']}'><td class='n'>{_at(one['original_ms'])}</td>"
        f"<td class='n'>{_at(one['replay_ms'])}</td><td class='n'>{_apart(one)}</td><td>{escape(one['told'])}</td></tr>"
        for one in shown
    )
    left = f"<p class='note'>{len(found) - len(shown)} more are in replay.json.</p>" if len(found) > len(shown) else ""
    head = "<th class='n'>original</th><th class='n'>replay</th><th class='n'>apart</th><th>what changed</th>"
    table = f"<div class='scroll tall'><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    summary = f"{len(found)} transitions: {document['matched']} in both, {document['missing']} only in the original, "
    summary += f"{document['extra']} only in the replay"
    return f"<details class='wide'><summary>{summary}</summary>{table}{left}</details>"


def _first_ms(one: Mapping[str, Any]) -> float:
    return float(one["replay_ms"] if one["original_ms"] is None else one["original_ms"])


def _at(ms: float | None) -> str:
    return "–" if ms is None else f"{ms / 1000:.1f} s"


def _apart(one: Mapping[str, Any]) -> str:
    return "" if one["found"] != "both" else f"{(one['replay_ms'] - one['original_ms']) / 1000:+.1f} s"
