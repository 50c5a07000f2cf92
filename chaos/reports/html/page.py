"""report.html: one self-contained file that a person opens without a network, reads in a minute and enjoys.

    data.py (history, columns) ─► holdings.py, clients.py, series.py (plain) ─► lanes.py, plots.py (Bokeh) ─┐
    verdicts ─► places.py (where in the plots), words.py (in plain words) ──────────────────────────────────┴─► page

Bokeh's runtime, the style and the script are inside. A million events become at most 5 MB: traffic is told in slices of
time, violations and changes are kept (stretches.py, series.py). Nothing here judges; the verdicts are given.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from bokeh.embed import components
from bokeh.resources import Resources

from ...oracle.world import World
from ...verdict import Verdict, worst
from . import data, lanes, plots, series
from .canvas import Band, Canvas
from .clients import client_lanes
from .codes import spread
from .data import Recorded
from .holdings import pair_lanes
from .places import Place, place_of_example, place_of_verdict
from .stretches import Lane
from .verdict_table import verdict_rows
from .words import Names, by_fault, describe, fault_title, sentence, tone

ROWS_MAX = 120
"""How many lanes a plot shows; those where something was wrong come first."""
EVENTS_MAX = 6000
"""How many events can be looked up below the plots."""

SECTIONS: Mapping[str, tuple[str, str]] = {
    "faults": ("Phases and faults", ""),
    "routes": (
        "What each NameServer held",
        "A row per NameServer and broker. The bar is what was in its table; the line below it is what RocketMQ's own "
        "timers demand and allow after each fault; red is what was over.",
    ),
    "clients": (
        "What each client used",
        "First the NameServer it had chosen, then a row for each broker it sent to or pulled from.",
    ),
    "latency": ("Send latency", "Failures and the slowest sends are points of their own; point at one to see it."),
    "availability": ("Availability", "Of the sends that ended in each slice of time, the share that ended ok."),
    "sends": ("Sends", "How many sends a second ended, and how."),
    "changes": ("Changes", "Routes, drops, choices of a NameServer, queues, and processes."),
    "lateness": ("How late the machine was", "The tolerance of the checks is made of this."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What the page says about the run besides its history."""

    name: str
    description: str = ""
    seed: int | None = None
    profile: str = ""
    time_scale: float | None = None
    versions: Mapping[str, str] | None = None


def html_report(run: Run, verdicts: Sequence[Verdict], run_dir: Path) -> str:
    """The page of the run whose history is in `run_dir`; without a history, the verdicts alone."""
    recorded = data.read(run_dir)
    world = World.of_rows(recorded.world_rows, last_ms=recorded.last_ms)
    start_ms = min((life.start_ms for life in world.lives), default=0.0)
    end_ms = max(world.end_ms, start_ms + 1)
    pairs, clients = pair_lanes(recorded, world), client_lanes(recorded, world, start_ms)
    keys = [lane.key for lane in (*pairs, *clients)]
    placed = {
        v.name: (
            place_of_verdict(v, world, keys, start_ms),
            [place_of_example(v, example, world, keys, start_ms) for example in v.examples],
        )
        for v in verdicts
    }
    places = [place for _, some in placed.values() for place in some]
    named = {place.lane for place in places}
    shown = fewer(pairs, named), fewer(clients, named)
    body = ""
    rows: dict[str, Mapping[str, float]] = {}
    script = ""
    if recorded.events:
        canvas = Canvas(start_ms=start_ms, end_ms=end_ms, bands=_bands(world, end_ms))
        drawn, rows = _plots(canvas, recorded, world, shown, places, run_dir)
        script, divs = components(drawn, wrap_script=False)
        left_out = (len(pairs) - len(shown[0]), len(clients) - len(shown[1]))
        body = "".join(_section(name, divs[name], left_out) for name in SECTIONS if name in divs)
    names = Names(world)
    events, more = _events(recorded, end_ms, names)
    facts = {"rows": rows, "events": events, "start": start_ms / 1000, "end": end_ms / 1000}
    overall = worst(v.verdict for v in verdicts)
    return _template("page.html.template").substitute(
        title=escape(f"{overall} {run.name}"),
        style=_text("page.css"),
        verdict=overall,
        scenario=escape(run.name),
        description=escape(run.description),
        sentence=escape(names(sentence(verdicts, world))),
        facts=_facts(run, recorded),
        rows=names("".join(verdict_rows(v, *placed[v.name]) for v in verdicts)),
        jumps=_jumps(world, start_ms, end_ms) if body else "",
        plots=body or "<p>No history was recorded.</p>",
        more=escape(_left_out(recorded, more)),
        seed=escape(str(run.seed)),
        bokeh=Resources(mode="inline", components=["bokeh"], minified=True).render_js() if body else "",
        data=_json(facts),
        draw=script,
        script=_text("page.js"),
    )


def _plots(
    canvas: Canvas,
    recorded: Recorded,
    world: World,
    shown: tuple[Sequence[Lane], Sequence[Lane]],
    places: Sequence[Place],
    run_dir: Path,
) -> tuple[dict[str, Any], dict[str, Mapping[str, float]]]:
    sliced = series.slices(recorded.traffic, canvas.start_ms, canvas.end_ms)
    found: dict[str, Any] = {"faults": lanes.faults_plot(canvas, _phases(recorded, canvas.start_ms, canvas.end_ms))}
    rows: dict[str, Mapping[str, float]] = {}
    names = [node.name for node in world.of_kind("name_server")]
    for section, some, entries, px in (
        ("routes", shown[0], lanes.ROUTE_LEGEND, lanes.LANE_PX),
        ("clients", shown[1], lanes.CLIENT_LEGEND, lanes.ROW_PX),
    ):
        if some:
            found[section], rows[section] = lanes.lanes_plot(canvas, section, some, places, entries, px, names)
    if recorded.counts.get("send"):
        found["latency"] = plots.latency_plot(canvas, recorded, sliced, run_dir)
        found["availability"] = plots.availability_plot(canvas, sliced)
        found["sends"] = plots.sends_plot(canvas, sliced)
    nodes = [n.name for kind in ("name_server", "broker", "producer", "consumer") for n in world.of_kind(kind)]
    if nodes:
        found["changes"], rows["changes"] = plots.changes_plot(canvas, recorded, nodes[:ROWS_MAX])
    if len(recorded.lags.time_ms):
        found["lateness"] = plots.lateness_plot(canvas, recorded)
    return found, rows


def fewer(lanes_: Sequence[Lane], named: set[str | None]) -> list[Lane]:
    """At most ROWS_MAX lanes, whole groups, in their order: those with trouble or an example before the others."""
    if len(lanes_) <= ROWS_MAX:
        return list(lanes_)
    groups: dict[str, list[Lane]] = {}
    for lane in lanes_:
        groups.setdefault(lane.group, []).append(lane)

    def trouble(group: str) -> tuple[bool, bool]:
        return not any(x.key in named for x in groups[group]), not any(x.troubled for x in groups[group])

    kept: set[str] = set()
    for group in sorted(groups, key=trouble):
        over = any(w.kind == "over" for lane in groups[group] for w in lane.windows) or not trouble(group)[0]
        if over or sum(len(groups[name]) for name in (*kept, group)) <= ROWS_MAX:
            kept.add(group)
    return [lane for lane in lanes_ if lane.group in kept]


def _bands(world: World, end_ms: float) -> list[Band]:
    return [
        Band(
            fault_id=rows[0].fault_id,
            title=fault_title(rows),
            brief=fault_title(rows, brief=True),
            start_ms=min(f.start_ms for f in rows),
            end_ms=min(max(f.end_ms for f in rows), end_ms),
        )
        for rows in by_fault(world)
    ]


def _phases(recorded: Recorded, start_ms: float, end_ms: float) -> list[lanes.Phase]:
    rows = [(row["phase"], row["time_ms"]) for row in recorded.world_rows if row["event"] == "phase"]
    if rows and rows[0][1] > start_ms:
        rows.insert(0, ("start", start_ms))
    return [(name, at, min(after, end_ms)) for (name, at), (_, after) in pairwise([*rows, ("", end_ms)]) if at < end_ms]


def _events(recorded: Recorded, end_ms: float, names: Names) -> tuple[list[list[Any]], int]:
    """[seconds, node, tone, text] of what can be looked up, and how many are left out."""
    rows = sorted(recorded.world_rows + recorded.notable, key=lambda row: row["time_ms"])
    rows = [row for row in rows if row["event"] not in ("run_begin", "node") and row["time_ms"] <= end_ms]
    more = sum(recorded.left_out.values())
    if len(rows) > EVENTS_MAX:
        keep = [row for row in rows if tone(row) != "plain"]
        plain = [row for row in rows if tone(row) == "plain"]
        if len(keep) > EVENTS_MAX:
            keep = _every(keep, EVENTS_MAX, always=[row for row in keep if tone(row) == "fault"])
        plain = _every(plain, max(EVENTS_MAX - len(keep), 0), always=[])
        kept = sorted([*keep, *plain], key=lambda row: row["time_ms"])
        more, rows = more + len(rows) - len(kept), kept
    return [[round(row["time_ms"] / 1000, 3), row["node"], tone(row), names(describe(row))] for row in rows], more


def _every(rows: Sequence[Any], most: int, *, always: Sequence[Any]) -> list[Any]:
    """`always`, and of the rest first and last of each slice of time, about `most` together."""
    if most <= 0 or not rows:
        return list(always)
    picked = spread(np.array([row["time_ms"] for row in rows]), most)
    chosen = {id(row): row for row in always} | {id(rows[i]): rows[i] for i in picked.tolist()}
    return list(chosen.values())


def _left_out(recorded: Recorded, more: int) -> str:
    text = f"{recorded.events:,} events were recorded."
    if more:
        text += f" {more:,} that were worth a line are left out, between the first and the last of a moment."
    return text


def _section(name: str, div: str, left_out: tuple[int, int]) -> str:
    title, note = SECTIONS[name]
    hidden = {"routes": left_out[0], "clients": left_out[1]}.get(name, 0)
    if hidden:
        note += f" {hidden} more rows are not shown; nothing in them was over."
    about = f"<p class='note'>{escape(note)}</p>" if note else ""
    return f"<section id='{name}' aria-label='{escape(title)}'><h2>{escape(title)}</h2>{about}{div}</section>"


def _facts(run: Run, recorded: Recorded) -> str:
    facts = [("seed", run.seed), ("profile", run.profile), ("time scale", run.time_scale)]
    facts += [("events", f"{recorded.events:,}"), *((run.versions or {}).items())]
    return " ".join(f"<span><b>{escape(k)}</b> {escape(str(v))}</span>" for k, v in facts if v not in (None, ""))


def _jumps(world: World, start_ms: float, end_ms: float) -> str:
    def items() -> Iterator[str]:
        for band in _bands(world, end_ms)[:12]:
            pad_ms = (band.end_ms - band.start_ms) * 0.1 + 1000
            from_s, to_s = max(start_ms, band.start_ms - pad_ms) / 1000, min(end_ms, band.end_ms + pad_ms) / 1000
            yield f'<button type="button" data-from="{from_s:.3f}" data-to="{to_s:.3f}">{escape(band.brief)}</button>'

    return "".join(items())


def _json(value: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _template(name: str) -> Template:
    return Template(_text(name))
