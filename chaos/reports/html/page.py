"""Makes report.html, one self-contained file that opens without a network.

    ../columns.py (history) ─► node_lanes.py, ../flow.py (plain) ──────────┐
    verdicts, findings, cost ─► found.py (what was over, and where) ───────┴─► run_to_draw.py
    run_to_draw.py ─► first_screen.py, lanes.py, plots.py (Bokeh) ─► page

The file has Bokeh's runtime, the style and the script inside. A million events take at most 5 MB, because sends and
pulls are summed up per slice of time. No violation is left out. The page judges nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from bokeh.document import Document
from bokeh.embed import components
from bokeh.resources import Resources
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from jinja2.utils import htmlsafe_json_dumps

from ...checks import CHECKS
from ...oracle.intervals import grouped
from ...oracle.windows import legend
from ...verdict import Validity, Verdict
from .. import imported
from ..answers import of_incident
from ..ci import read_document, read_incident
from ..cost import sides_of_replay
from ..groups import exercised_line, groups
from ..sentences import allowed_sentence, clients_sentence, measured_sentences, nearest_sentence
from ..terminal import brief, left_out_line
from . import first_screen, lanes, plots, replayed, run_in_words
from .canvas import Canvas
from .run_to_draw import Run, RunToDraw

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


def html_report(run: Run, verdicts: Sequence[Verdict], run_dir: Path) -> str:
    return html_of(RunToDraw(run, verdicts, run_dir), verdicts)


def html_of(told: RunToDraw, verdicts: Sequence[Verdict]) -> str:
    replay, incident = read_document(told.run_dir / replayed.FILE, "transitions"), read_incident(told.run_dir)
    answers = first_screen.answered(told, verdicts)
    said = first_screen.first_sentence(told, answers)
    if incident is not None:
        said = imported.result(incident, verdicts, len(told.run.left_out))
        answers = replace(of_incident(answers, incident, is_judged=any(v.examined for v in verdicts)), injected="")
    verdict = badge = str(told.overall)
    if incident is not None and told.overall is Validity.VALID:
        badge = "no rule broken"
    if replay is not None and not verdicts:
        said = ""
        verdict, badge = replayed.badge(replay)
    recorded = len(told.recorded.table) > 0
    drawn = _drawn(told, replay) if recorded else Drawn()
    events, left_out = run_in_words.listed(told.recorded, told.logged, told.end_ms, told.names) if recorded else ([], 0)
    data = {"rows": drawn.rows, "events": events, "start": told.start_ms / 1000, "end": told.end_ms / 1000}
    data |= {"wall": told.wall_ms, "scale": told.scale, "zone_ms": incident and imported.zone_ms(incident)}
    return template("page.html.template").render(
        told=told,
        run=told.run,
        said=told.names(said),
        answers=[*(imported.answer_list(incident) if incident else ()), *first_screen.answer_list(told, answers)],
        place=first_screen.first_place(told),
        above=[*filter(None, (exercised_line(told.verdicts), _left_out(told.run, incident)))],
        facts=_facts(told, incident),
        verdict=verdict,
        badge_text=badge,
        replay=replay,
        replay_note="" if replay is None else replayed.note(replay, told.recorded.world_rows),
        replay_div=drawn.replay,
        story=drawn.story,
        sections=drawn.sections,
        clock=_clock(told) if incident is None else "",
        jumps=[*_jumps(told)] if recorded else [],
        more=run_in_words.left_out(told.recorded, left_out),
        style=_text("page.css"),
        script=_text("page.js"),
        bokeh=Resources(mode="inline", components=["bokeh"], minified=True).render_js() if recorded else "",
        data=htmlsafe_json_dumps(data, ensure_ascii=False, separators=(",", ":"), default=str),
        draw=drawn.script,
    )


@cache
def template(name: str) -> Template:
    known = Environment(autoescape=True, loader=FunctionLoader(_text), undefined=StrictUndefined)
    known.globals |= {"CHECKS": CHECKS, "groups": groups, "clients_of": clients_sentence, "legend": legend}
    known.globals |= {"costs_of": sides_of_replay}
    known.globals |= {"brief": brief, "measured_sentences": measured_sentences}
    known.globals |= {"allowed_sentence": allowed_sentence, "nearest_sentence": nearest_sentence}
    return known.get_template(name)


class PageSection(NamedTuple):
    name: str
    title: str
    note: str
    div: str


class Drawn(NamedTuple):
    """The page's plots, the script that draws the plots, and each lane's height on the y axis."""

    story: PageSection | None = None
    sections: Sequence[PageSection] = ()
    replay: str = ""
    script: str = ""
    rows: Mapping[str, Mapping[str, float]] = {}


def _drawn(told: RunToDraw, replay: Mapping[str, Any] | None) -> Drawn:
    canvas = Canvas(start_ms=told.start_ms, end_ms=told.end_ms, bands=told.bands)
    shown, rows = _plots(told, canvas)
    if (story := first_screen.story_plot(told, canvas)) is not None:
        shown[first_screen.STORY], rows[first_screen.STORY] = story
    if replay is not None and replay["transitions"]:
        shown[replayed.SECTION] = replayed.replay_plot(canvas, replay)
    document = Document()
    with document.models.freeze():  # else Bokeh looks through all of them again for each that it adds or removes
        for plot in shown.values():
            document.add_root(plot)
    script, divs = components(shown, wrap_script=False)
    found = {name: _section(name, told, divs[name]) for name in SECTIONS if name in divs}
    story_shown = found.pop(first_screen.STORY, None)
    return Drawn(story_shown, [*found.values()], divs.get(replayed.SECTION, ""), script, rows)


def _plots(told: RunToDraw, canvas: Canvas) -> tuple[dict[str, Any], dict[str, Mapping[str, float]]]:
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


def _section(name: str, told: RunToDraw, div: str) -> PageSection:
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


def _clock(told: RunToDraw) -> str:
    """Return zero of the page's times, and the wall clock at that moment."""
    said = "All times are seconds of RocketMQ time since the timeline's start; before it the cluster comes up."
    if told.virtual:
        return f"{said} The run was on the virtual clock, where there is no wall-clock time."
    if told.wall_ms is None:
        return said
    at = datetime.fromtimestamp(told.wall_ms / 1000, UTC)
    fast = f", and each second of the machine is {told.scale:g} here" if told.scale != 1 else ""
    return f"{said} 0 s was {at:%Y-%m-%d %H:%M:%S} UTC{fast}."


def _left_out(run: Run, incident: Mapping[str, Any] | None) -> str:
    if incident is not None and run.left_out:
        return f"These logs do not decide {', '.join(run.left_out)}."
    said = left_out_line(run.left_out)
    return f"{said[:1].upper() + said[1:]}." if said else ""


def _hosts(told: RunToDraw) -> Iterator[tuple[str, object]]:
    of = grouped((node.host, node.name) for node in told.world.nodes if node.host)
    if of:
        yield from ((f"host {host}", ", ".join(names)) for host, names in of.items())
        if apart_ms := told.world.timers.clocks_ms:
            yield "clocks of two hosts", f"apart by {apart_ms:.1f} ms at most"


def _facts(told: RunToDraw, incident: Mapping[str, Any] | None) -> list[tuple[str, object]]:
    run = told.run
    facts: list[tuple[str, object]] = [("profile", run.profile), ("events", f"{len(told.recorded.table):,}")]
    if incident is None:
        clock = told.world.run.get("clock")
        facts[:1] = [("seed", run.seed), *facts[:1], ("time scale", run.time_scale), ("clock", clock)]
    else:
        facts += imported.facts(incident)
    facts += [(f"zone {zone}", ", ".join(nodes)) for zone, nodes in (told.world.run.get("zones") or {}).items()]
    return [fact for fact in (*facts, *_hosts(told), *(run.versions or {}).items()) if fact[1] not in (None, "")]


def _jumps(told: RunToDraw) -> Iterator[tuple[str, str, str]]:
    for band in told.bands[:12]:
        pad_ms = (band.end_ms - band.start_ms) * 0.1 + 1000
        from_s = max(told.start_ms, band.start_ms - pad_ms) / 1000
        to_s = min(told.end_ms, band.end_ms + pad_ms) / 1000
        yield f"{from_s:.3f}", f"{to_s:.3f}", band.brief


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
