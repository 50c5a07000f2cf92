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
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from bokeh.document import Document
from bokeh.embed import components
from bokeh.resources import Resources

from ...verdict import Verdict, worst
from ..groups import exercised_line
from ..terminal import left_out_line
from . import first_screen, replayed, run_in_words, sections
from .canvas import Canvas
from .run_to_draw import Run, RunToDraw
from .verdict_table import HEAD_OF_TWO, group_tables, rows_of_two

_PREFIXES = ("a-", "b-")


def html_report(run: Run, verdicts: Sequence[Verdict], run_dir: Path) -> str:
    """The page of the run whose history is in `run_dir`; without a history, the verdicts alone."""
    return html_of(RunToDraw(run, verdicts, run_dir), verdicts)


def html_of(told: RunToDraw, verdicts: Sequence[Verdict]) -> str:
    """The page of a run that is made ready, and its verdicts as they were given."""
    run, run_dir = told.run, told.run_dir
    replay, incident = replayed.read_replay(run_dir), sections.read_incident(run_dir)
    answers = first_screen.answered(told, verdicts)
    said = escape(told.names(first_screen.first_sentence(told, answers))) if verdicts or replay is None else ""
    if incident is not None:
        said = told.names(sections.said(incident, verdicts, len(run.left_out)))
        answers = answers.with_injected("")
    said = _defect(told) + said
    if replay is not None:
        said = f"{replayed.said(replay)} {said}"
    above = filter(None, (exercised_line(told.verdicts), _left_out(run)))
    return _page(
        [told],
        replay,
        title=escape(run.name),
        answers=first_screen.answer_list(told, answers),
        checks="".join(f"<p class='note'>{escape(line)}</p>" for line in above)
        + (told.names(group_tables(told)) or _UNJUDGED),
        sentence=said,
        description=escape(run.description),
        facts=_facts(told, incident),
    )


def html_beside(one: tuple[Run, Sequence[Verdict], Path], other: tuple[Run, Sequence[Verdict], Path]) -> str:
    """Two runs on one axis: their verdicts in one table, and each plot of the one beside that of the other."""
    told = [RunToDraw(*given, prefix=prefix) for given, prefix in zip((one, other), _PREFIXES, strict=True)]
    answers = [first_screen.answered(t, given[1]) for t, given in zip(told, (one, other), strict=True)]
    said = "".join(
        f"<span class='of'>{escape(t.run.name)}: <span class='badge {t.overall}'>{t.overall}</span> {_defect(t)}"
        f"{escape(t.names(first_screen.first_sentence(t, answer)))}</span>"
        for t, answer in zip(told, answers, strict=True)
    )
    names = [escape(t.run.name) for t in told]
    lists = (
        f"<div><h3>{name}</h3>{first_screen.answer_list(t, answer)}</div>"
        for name, t, answer in zip(names, told, answers, strict=True)
    )
    head = Template(HEAD_OF_TWO).substitute(a=names[0], b=names[1])
    rows = rows_of_two(told[0], told[1])
    return _page(
        told,
        None,
        title=" beside ".join(names),
        answers=f"<div class='side'>{''.join(lists)}</div>",
        checks=f'<div class="scroll"><table class="verdicts">{head}<tbody>{rows}</tbody></table></div>',
        sentence=said,
        description="",
        facts="".join(
            f"<span class='of'><b>{name}</b> {_facts(t)}</span>" for name, t in zip(names, told, strict=True)
        ),
    )


_UNJUDGED = '<p class="note">Not judged. nemesrv check judges this run like any other.</p>'


def _page(told: Sequence[RunToDraw], replay: Mapping[str, Any] | None, **shown: str) -> str:
    overall = str(worst(t.overall for t in told))
    badge = overall
    if replay is not None and not any(t.verdicts for t in told):
        overall, badge = replayed.badge(replay)
    start_ms, end_ms = min(t.start_ms for t in told), max(t.end_ms for t in told)
    recorded = [t for t in told if len(t.recorded.table)]
    body, script, story = "", "", ""
    rows: dict[str, Mapping[str, float]] = {}
    if recorded:
        story, body, script, rows = _drawn(recorded, start_ms, end_ms, replay)
    listed: list[list[Any]] = []
    more = 0
    for t in recorded:
        found, left_out = run_in_words.listed(t.recorded, t.logged, t.end_ms, t.names)
        prefix = f"{t.prefix[:1].upper()} " if t.prefix else ""
        listed += [[at, prefix + node, tone, text] for at, node, tone, text in found]
        more += left_out
    listed.sort(key=lambda event: float(event[0]))
    facts = {"rows": rows, "events": listed, "start": start_ms / 1000, "end": end_ms / 1000}
    if len(told) == 1:
        facts |= {"wall": told[0].wall_ms, "scale": told[0].scale}
    return Template(_text("page.html.template")).substitute(
        shown,
        style=_text("page.css"),
        script=_text("page.js"),
        verdict=overall,
        badge=badge,
        clock=_clock(told),
        story=story,
        jumps=_jumps(told) if body else "",
        plots=body or "<p>No history was recorded.</p>",
        more=escape(" ".join(run_in_words.left_out(t.recorded, more if t is told[-1] else 0) for t in told)),
        bokeh=Resources(mode="inline", components=["bokeh"], minified=True).render_js() if body else "",
        data=_json(facts),
        draw=script,
    )


def _drawn(
    told: Sequence[RunToDraw], start_ms: float, end_ms: float, replay: Mapping[str, Any] | None
) -> tuple[str, str, str, dict[str, Mapping[str, float]]]:
    """The first time line and the sections as HTML, the script that fills them, and where each lane is."""
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
    of_prefix = {t.prefix: t for t in told}
    first = {prefix: divs[prefix + first_screen.STORY] for prefix in of_prefix if prefix + first_screen.STORY in divs}
    body = "" if replay is None else _beside(replay, divs.get(replayed.SECTION, ""))
    for name in (name for name in sections.SECTIONS if name != first_screen.STORY):
        there = {prefix: divs[prefix + name] for prefix in of_prefix if prefix + name in divs}
        if there:
            body += sections.section(name, there, of_prefix)
    return sections.section(first_screen.STORY, first, of_prefix) if first else "", body, script, rows


def _beside(replay: Mapping[str, Any], div: str) -> str:
    """The section of a replay: both time lines, and what they say in words."""
    title = "The original above, the replay beneath"
    note = f"<p class='note'>{escape(replayed.note(replay))}</p>" if div else ""
    return f"<section id='replay' aria-label='{title}'><h2>{title}</h2>{note}{div}{replayed.tables(replay)}</section>"


def _defect(told: RunToDraw) -> str:
    if not told.defect:
        return ""
    return f'<strong class="planted">With the planted defect {escape(told.defect)}.</strong> '


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
    return escape(said)


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


def _facts(told: RunToDraw, incident: Mapping[str, Any] | None = None) -> str:
    run = told.run
    facts: list[tuple[str, object]] = [("profile", run.profile), ("events", f"{len(told.recorded.table):,}")]
    if incident is None:
        facts[:1] = [
            ("seed", run.seed),
            *facts[:1],
            ("time scale", run.time_scale),
            ("clock", told.world.run.get("clock")),
        ]
    else:
        facts += sections.facts(incident)
    facts += [(f"zone {zone}", ", ".join(nodes)) for zone, nodes in (told.world.run.get("zones") or {}).items()]
    facts += [*_hosts(told), *((run.versions or {}).items())]
    return " ".join(f"<span><b>{escape(k)}</b> {escape(str(v))}</span>" for k, v in facts if v not in (None, ""))


def _jumps(told: Sequence[RunToDraw]) -> str:
    def items(t: RunToDraw) -> Iterator[str]:
        for band in t.bands[:12]:
            pad_ms = (band.end_ms - band.start_ms) * 0.1 + 1000
            from_s = max(t.start_ms, band.start_ms - pad_ms) / 1000
            to_s = min(t.end_ms, band.end_ms + pad_ms) / 1000
            yield f'<button type="button" data-from="{from_s:.3f}" data-to="{to_s:.3f}">{escape(band.brief)}</button>'

    return "".join(item for t in told for item in items(t))


def _json(value: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
