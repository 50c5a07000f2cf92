"""report.html: one self-contained file that a person opens without a network, reads in a minute and enjoys.

    data.py (history, columns) ─► node_lanes.py, series.py (plain) ─────────────────────────────┐
    verdicts, findings ─► found.py (what was over, and where), cost.py (what it cost clients) ───┴─► run_to_draw.py
    run_to_draw.py ─► first_screen.py, verdict_table.py, sections.py: lanes.py, plots.py (Bokeh) ─► page

Bokeh's runtime, the style and the script are inside. A million events become at most 5 MB: traffic is told in slices of
time, violations and changes are kept (stretches.py, series.py). Nothing here judges; the verdicts are given.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from bokeh.document import Document
from bokeh.embed import components
from bokeh.resources import Resources
from jinja2 import Environment, FunctionLoader, Template

from ...verdict import Verdict, worst
from ..answers import of_incident
from ..ci import read_incident
from ..groups import exercised_line, groups
from ..sentences import clients_sentence
from ..terminal import left_out_line
from . import first_screen, replayed, run_in_words, sections
from .canvas import Canvas
from .found import Place
from .run_to_draw import Run, RunToDraw
from .verdict_table import allowed_of, measured_of, says_of

_PREFIXES = ("a-", "b-")


class RunShown(NamedTuple):
    """A run, and what the page says of it."""

    told: RunToDraw
    name: str
    said: str
    """Who did what; of an import, which faults explain it."""
    answers: Sequence[tuple[str, str]]
    place: Place | None
    """Of what was wrong first."""
    above: Sequence[str]
    """Above its verdicts."""
    facts: Sequence[tuple[str, object]]


def html_report(run: Run, verdicts: Sequence[Verdict], run_dir: Path) -> str:
    """The page of the run whose history is in `run_dir`; without a history, the verdicts alone."""
    return html_of(RunToDraw(run, verdicts, run_dir), verdicts)


def html_of(told: RunToDraw, verdicts: Sequence[Verdict]) -> str:
    """The page of a run that is made ready, and its verdicts as they were given."""
    replay, incident = replayed.read_replay(told.run_dir), read_incident(told.run_dir)
    one = _shown(told, verdicts, incident)
    return _page([one if verdicts or replay is None else one._replace(said="")], replay)


def html_beside(one: tuple[Run, Sequence[Verdict], Path], other: tuple[Run, Sequence[Verdict], Path]) -> str:
    """Two runs on one axis: their verdicts in one table, and each plot of the one beside that of the other."""
    both = zip((one, other), _PREFIXES, strict=True)
    return _page([_shown(RunToDraw(*given, prefix=prefix), given[1], None) for given, prefix in both], None)


def _shown(told: RunToDraw, verdicts: Sequence[Verdict], incident: Mapping[str, Any] | None) -> RunShown:
    answers = first_screen.answered(told, verdicts)
    said = first_screen.first_sentence(told, answers)
    if incident is not None:
        said = sections.said(incident, verdicts, len(told.run.left_out))
        answers = of_incident(answers, incident).with_injected("")
    return RunShown(
        told,
        told.run.name,
        told.names(said),
        first_screen.answer_list(told, answers),
        first_screen.first_place(told),
        [*filter(None, (exercised_line(told.verdicts), _left_out(told.run)))],
        _facts(told, incident),
    )


@cache
def template(name: str) -> Template:
    known = Environment(autoescape=True, loader=FunctionLoader(_text))
    known.globals |= {"groups": groups, "clients_of": clients_sentence, "says_of": says_of}
    known.globals |= {"measured_of": measured_of, "allowed_of": allowed_of}
    return known.get_template(name)


def _page(runs: Sequence[RunShown], replay: Mapping[str, Any] | None) -> str:
    told = [run.told for run in runs]
    verdict = badge = str(worst(t.overall for t in told))
    if replay is not None and not any(t.verdicts for t in told):
        verdict, badge = replayed.badge(replay)
    start_ms, end_ms = min(t.start_ms for t in told), max(t.end_ms for t in told)
    recorded = [run for run in runs if len(run.told.recorded.table)]
    drawn = _drawn(recorded, start_ms, end_ms, replay) if recorded else Drawn()
    events, left_out = _events([run.told for run in recorded])
    data = {"rows": drawn.rows, "events": events, "start": start_ms / 1000, "end": end_ms / 1000}
    if len(told) == 1:
        data |= {"wall": told[0].wall_ms, "scale": told[0].scale}
    return template("page.html.template").render(
        runs=runs,
        title=" beside ".join(run.name for run in runs),
        verdict=verdict,
        badge_text=badge,
        beside=_beside(runs),
        replay=None if replay is None else replayed.shown(replay, drawn.replay),
        story=drawn.story,
        sections=drawn.sections,
        clock=_clock(told),
        jumps=[*_jumps(told)] if recorded else [],
        more=" ".join(run_in_words.left_out(t.recorded, left_out if t is told[-1] else 0) for t in told),
        style=_text("page.css"),
        script=_text("page.js"),
        bokeh=Resources(mode="inline", components=["bokeh"], minified=True).render_js() if recorded else "",
        data=_json(data),
        draw=drawn.script,
    )


def _beside(runs: Sequence[RunShown]) -> list[tuple[str, list[tuple[RunShown, Verdict | None]]]]:
    """Check → each run with its verdict, if it was judged so."""
    of = [{v.name: v for v in run.told.verdicts} for run in runs]
    names = dict.fromkeys(name for verdicts in of for name in verdicts)
    return [(name, [(run, verdicts.get(name)) for run, verdicts in zip(runs, of, strict=True)]) for name in names]


def _events(told: Sequence[RunToDraw]) -> tuple[list[list[Any]], int]:
    """[seconds, node, tone, text] of the events in the order of time; how many are left out."""
    listed: list[list[Any]] = []
    more = 0
    for t in told:
        found, left_out = run_in_words.listed(t.recorded, t.logged, t.end_ms, t.names)
        prefix = f"{t.prefix[:1].upper()} " if t.prefix else ""
        listed += [[at, prefix + node, tone, text] for at, node, tone, text in found]
        more += left_out
    return sorted(listed, key=lambda event: float(event[0])), more


class Drawn(NamedTuple):
    """The plots: the sections that have them, the script that fills these, and where each lane is."""

    story: sections.Shown | None = None
    sections: Sequence[sections.Shown] = ()
    replay: str = ""
    script: str = ""
    rows: Mapping[str, Mapping[str, float]] = {}


def _drawn(runs: Sequence[RunShown], start_ms: float, end_ms: float, replay: Mapping[str, Any] | None) -> Drawn:
    told = [run.told for run in runs]
    frame = Canvas(start_ms=start_ms, end_ms=end_ms, bands=told[0].bands, prefix=told[0].prefix)
    plots: dict[str, Any] = {}
    rows: dict[str, Mapping[str, float]] = {}
    for t in told:
        canvas = frame if t is told[0] else frame.beside(t.bands, t.prefix)
        of_run, lanes = sections.drawn(t, canvas)
        plots |= {t.prefix + name: plot for name, plot in of_run.items()}
        rows |= {t.prefix + name: heights for name, heights in lanes.items()}
        if (story := first_screen.story_plot(t, canvas)) is not None:
            plots[t.prefix + first_screen.STORY], rows[t.prefix + first_screen.STORY] = story
    if replay is not None and replay["transitions"]:
        plots[replayed.SECTION] = replayed.replay_plot(frame, replay)
    document = Document()
    with (
        document.models.freeze()
    ):  # else Bokeh looks through all of them again for each that it adds, and each it removes
        for plot in plots.values():
            document.add_root(plot)
    script, divs = components(plots, wrap_script=False)
    found = {}
    for name in sections.SECTIONS:
        there = [(run, divs[run.told.prefix + name]) for run in runs if run.told.prefix + name in divs]
        if there:
            found[name] = sections.section(name, told, there)
    story_shown = found.pop(first_screen.STORY, None)
    return Drawn(story_shown, [*found.values()], divs.get(replayed.SECTION, ""), script, rows)


def _clock(told: Sequence[RunToDraw]) -> str:
    """What the times on the page count from, and what the wall clock said there."""
    said = "All times are seconds of RocketMQ time since the timeline's start; before it the cluster comes up."
    for t in told:
        name = f"{t.run.name}: " if len(told) > 1 else ""
        if t.virtual:
            said += f" {name}The run was on the virtual clock, where there is no wall-clock time."
        elif t.wall_ms is not None:
            at = datetime.fromtimestamp(t.wall_ms / 1000, UTC)
            fast = f", and each second of the machine is {t.scale:g} here" if t.scale != 1 else ""
            said += f" {name}0 s was {at:%Y-%m-%d %H:%M:%S} UTC{fast}."
    return said


def _left_out(run: Run) -> str:
    said = left_out_line(run.left_out)
    return f"{said[:1].upper() + said[1:]}." if said else ""


def _hosts(told: RunToDraw) -> Iterator[tuple[str, object]]:
    """Who runs where, and how far the hosts' clocks may be apart, where there are several."""
    of: dict[str, list[str]] = {}
    for node in told.world.nodes:
        if node.host:
            of.setdefault(node.host, []).append(node.name)
    if of:
        yield from ((f"host {host}", ", ".join(names)) for host, names in of.items())
        if (apart_ms := told.world.timers.clocks_ms) is not None:
            yield "clocks of two hosts", f"apart by {apart_ms:.1f} ms at most"


def _facts(told: RunToDraw, incident: Mapping[str, Any] | None) -> list[tuple[str, object]]:
    run = told.run
    facts: list[tuple[str, object]] = [("profile", run.profile), ("events", f"{len(told.recorded.table):,}")]
    if incident is None:
        clock = told.world.run.get("clock")
        facts[:1] = [("seed", run.seed), *facts[:1], ("time scale", run.time_scale), ("clock", clock)]
    else:
        facts += sections.facts(incident)
    facts += [(f"zone {zone}", ", ".join(nodes)) for zone, nodes in (told.world.run.get("zones") or {}).items()]
    return [fact for fact in (*facts, *_hosts(told), *(run.versions or {}).items()) if fact[1] not in (None, "")]


def _jumps(told: Sequence[RunToDraw]) -> Iterator[tuple[str, str, str]]:
    """From when, to when, and what was on then: the faults of the runs."""
    for t in told:
        for band in t.bands[:12]:
            pad_ms = (band.end_ms - band.start_ms) * 0.1 + 1000
            from_s = max(t.start_ms, band.start_ms - pad_ms) / 1000
            to_s = min(t.end_ms, band.end_ms + pad_ms) / 1000
            yield f"{from_s:.3f}", f"{to_s:.3f}", band.brief


def _json(value: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
