"""The table of verdicts: what was measured against what is allowed, and links to the places in the plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ...checks import CHECKS
from ...oracle.windows import legend
from ...verdict import NEVER, Validity, Verdict, length, seconds
from ..groups import groups
from ..sentences import clients_sentence, measured_sentences, nearest_sentence
from ..text import label, phrase, phrases
from .found import Place
from .run_to_draw import RunToDraw

LONG, SHOWN = 110, 56
"""A text of more than LONG letters opens on demand; SHOWN of them stand in the table."""


HEAD = (
    '<thead><tr><th scope="col">check</th><th scope="col">verdict</th><th scope="col" class="n">examined</th>'
    '<th scope="col" class="n">violations</th><th scope="col">measured</th><th scope="col">allowed</th></tr></thead>'
)
HEAD_OF_TWO = (
    '<thead><tr><th scope="col">check</th><th scope="col">$a</th><th scope="col">$b</th>'
    '<th scope="col">measured in $a</th><th scope="col">measured in $b</th></tr></thead>'
)


def group_tables(told: RunToDraw) -> str:
    """A line a group with the table of its checks below it, open where something in it is wrong."""
    return "".join(
        f'<details class="group" {"open" if group.wrong else ""}><summary><b>{escape(group.label)}</b> '
        f'<span class="badge {group.verdict}">{group.verdict}</span> {escape(group.counted)}</summary>'
        f'<div class="scroll"><table class="verdicts">{HEAD}<tbody>'
        + "".join(verdict_rows(v, told.of_verdict[v.name], told.of_examples[v.name]) for v in group.verdicts)
        + "</tbody></table></div></details>"
        for group in groups(told.verdicts)
    )


def verdict_rows(v: Verdict, place: Place, examples: Sequence[Place]) -> str:
    """The check's row, why it is not VALID where no example says it, and a row with a link for each example."""
    said = v.verdict is Validity.INVALID and v.examples
    why = f'<tr class="example"><td colspan="6">{escape(v.why)}</td></tr>' if v.why and not said else ""
    row = (
        f'<tr class="check {v.verdict}-row">{_name(v.name, place.link())}<td>{_badge(v)}</td>'
        f'<td class="n" data-label="examined">{v.examined:,}</td>'
        f'<td class="n" data-label="violations">{v.violations:,}</td>'
        f'<td data-label="measured">{_measured(v)}{_whose(v)}</td>'
        f'<td data-label="allowed">{_allowed(v.allowed)}</td></tr>'
    )
    return row + why + _examples(examples, columns=6)


def rows_of_two(one: RunToDraw, other: RunToDraw) -> str:
    """A row for each check of two runs: both verdicts, what each measured, and a link for each example."""
    of_one, of_other = ({v.name: v for v in told.verdicts} for told in (one, other))
    rows = ""
    for name in dict.fromkeys((*of_one, *of_other)):
        first = one if name in of_one else other
        rows += f'<tr class="check">{_name(name, first.of_verdict[name].link(first.prefix))}'
        for told, of in ((one, of_one), (other, of_other)):
            label = escape(told.run.name)
            rows += f'<td data-label="{label}">{_badge(of[name]) if name in of else "not judged"}</td>'
        for told, of in ((one, of_one), (other, of_other)):
            label = escape(told.run.name)
            rows += f'<td data-label="measured in {label}">{told.names(_measured(of[name])) if name in of else ""}</td>'
        rows += "</tr>"
        for told, of in ((one, of_one), (other, of_other)):
            if name in of:
                rows += told.names(_examples(told.of_examples[name], 5, told.prefix, f"{told.run.name}, "))
    return rows


def _name(name: str, link: str) -> str:
    says = CHECKS[name].says if name in CHECKS else "show in the plots"
    return f'<th scope="row"><a href="{escape(link)}" title="{escape(says)}">{escape(name)}</a></th>'


def _whose(v: Verdict) -> str:
    return f'<div class="why">of {escape(clients_sentence(v.clients))}</div>' if v.clients else ""


def _badge(v: Verdict) -> str:
    return f'<span class="badge {v.verdict}">{v.verdict}</span>'


def _examples(examples: Sequence[Place], columns: int, prefix: str = "", of: str = "") -> str:
    return "".join(
        f'<tr class="example"><td colspan="{columns}"><a href="{escape(p.link(prefix))}">{escape(of)}example {at}</a> '
        f"{escape(p.text)}{_log(p.log)}</td></tr>"
        for at, p in enumerate(examples, start=1)
    )


def _log(lines: Sequence[str]) -> str:
    """What a node wrote then, which opens on demand."""
    if not lines:
        return ""
    shown = escape("\n".join(lines))
    return f'<details class="log"><summary>its log around then</summary><pre>{shown}</pre></details>'


def _measured(v: Verdict) -> str:
    """What was measured; where it is a time against a bound, first how much of the bound it took."""
    said = "".join(f"<div>{escape(text[:1].upper() + text[1:])}.</div>" for text in measured_sentences(v))
    least, measured, bound = v.measured.get("min_ms"), v.measured.get("max_ms"), v.allowed.get("bound_ms")
    if isinstance(least, int | float):
        rest = {key: value for key, value in v.measured.items() if key != "min_ms"}
        return f"<div><b>{seconds(least)}</b> at least</div>{said or _pairs(rest)}"
    if not isinstance(measured, int | float) or not isinstance(bound, int | float):
        return said or _pairs(v.measured)
    # A bound of nothing but delivery is 0; over it is over, whatever the scale.
    share = measured / bound if bound > 0 else float(measured > (v.allowed.get("tolerance_ms") or 0.0)) * 2
    kind = "over" if share > 1 and v.verdict is Validity.INVALID else "fine"
    gauge = f'<div class="gauge {kind}" aria-hidden="true"><i style="width:{min(share, 1) * 100:.0f}%"></i></div>'
    rest = {key: value for key, value in v.measured.items() if key != "max_ms"}
    valid = v.verdict is Validity.VALID
    beyond = f", {seconds(measured - bound)} of it tolerated" if valid and measured > bound else ""
    whose = nearest_sentence(v)
    of = f" of {length(bound)} allowed{beyond}" if bound > 0 else f"{beyond}"
    about = f'<div class="why">{escape(whose)}</div>' if whose else ""
    return f"<div><b>{length(measured)}</b>{of}</div>{gauge}{about}{said or _pairs(rest)}"


def _allowed(allowed: Mapping[str, Any]) -> str:
    """The bound and where it comes from."""
    said = dict(phrases(allowed))
    bound, earliest, formula, tolerance, row = (
        said.pop(key, "") for key in ("bound", "earliest", "formula", "tolerance", "row")
    )
    if formula == NEVER:
        bound, formula, tolerance = NEVER, "", ""
    exact = earliest == bound  # neither late nor early: no window
    if earliest and not exact:
        formula = formula.removeprefix("not before ")
        bound = f"{earliest} to {bound}" if bound else f"not before {earliest}"
    first = f"<b>{escape(bound)}</b> {escape(formula)}".rstrip() if bound else escape(formula)
    if tolerance and bound:
        first += f' <span class="key">{"±" if exact else "+"} {escape(tolerance)} tolerance</span>'
    rest = "".join(_pair(name, text) for name, text in said.items())
    letters = "".join(f"<div class='why'>{symbol}: {escape(says)}</div>" for symbol, says in legend([formula]).items())
    return f'<div>{first}</div>{rest}<div class="why">{escape(row)}</div>{letters}'


def _pairs(values: Mapping[str, Any]) -> str:
    """Each value with its name; lists of places as a table that opens on demand, long texts likewise."""
    return "".join(_pair(key, value) for key, value in values.items())


def _pair(key: str, value: Any) -> str:
    if isinstance(value, Sequence) and value and all(isinstance(entry, Mapping) for entry in value):
        return _list(label(key), value)
    said = dict(phrases({key: value}))
    if not said:
        return ""
    ((name, text),) = said.items()
    if len(text) > LONG:
        return f"<details><summary>{escape(name)}: {escape(text[:SHOWN])}…</summary>{escape(text)}</details>"
    return f'<span class="pair"><span class="key">{escape(name)}</span> {escape(text)}</span> '


def _list(name: str, entries: Sequence[Mapping[str, Any]]) -> str:
    """One line that names the first entry, and all of them in a table below it."""
    keys = list(dict.fromkeys(key for entry in entries for key in entry))
    head = "".join(f"<th>{escape(label(key))}</th>" for key in keys)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(_cell(key, entry.get(key)))}</td>' for key in keys)}</tr>" for entry in entries
    )
    first = ", ".join(filter(None, (_cell(key, value) for key, value in entries[0].items() if key != "bound_ms")))
    shown = first if len(first) <= LONG else f"{first[:SHOWN]}…"
    more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<details><summary>{escape(name)}: {escape(shown)}{more}</summary>{table}</details>"


def _cell(key: str, value: object) -> str:
    return phrase(value, milliseconds=key.endswith("_ms"))
