"""The table of verdicts: what was measured against what is allowed, and links to the places in the plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ...verdict import Validity, Verdict
from ..sentences import measured_sentences
from ..values import NEVER, label, phrase, phrases
from .places import Place
from .stretches import seconds

LONG, SHOWN = 110, 56
"""A text of more than LONG letters opens on demand; SHOWN of them stand in the table."""


def verdict_rows(v: Verdict, place: Place, examples: Sequence[Place]) -> str:
    """The check's row, why it is not VALID, and a row with a link for each example."""
    why = f'<tr class="example"><td colspan="6">{escape(v.why)}</td></tr>' if v.why else ""
    row = (
        f'<tr class="check"><th scope="row"><a href="{escape(place.link)}" title="show in the plots">{escape(v.name)}'
        f'</a></th><td><span class="badge {v.verdict}">{v.verdict}</span></td>'
        f'<td class="n">{v.examined:,}</td><td class="n">{v.violations:,}</td>'
        f"<td>{_measured(v)}</td><td>{_allowed(v.allowed)}</td></tr>"
    )
    shown = "".join(
        f'<tr class="example"><td colspan="6"><a href="{escape(p.link)}">example {at}</a> {escape(p.text)}</td></tr>'
        for at, p in enumerate(examples, start=1)
    )
    return row + why + shown


def _measured(v: Verdict) -> str:
    """What was measured; where it is a time against a bound, first how much of the bound it took."""
    said = "".join(f"<div>{escape(text[:1].upper() + text[1:])}.</div>" for text in measured_sentences(v))
    measured, bound = v.measured.get("max_ms"), v.allowed.get("bound_ms")
    if not isinstance(measured, int | float) or not isinstance(bound, int | float):
        return said or _pairs(v.measured)
    # A bound of nothing but delivery is 0; over it is over, whatever the scale.
    share = measured / bound if bound > 0 else float(measured > (v.allowed.get("tolerance_ms") or 0.0)) * 2
    kind = "over" if share > 1 and v.verdict is Validity.INVALID else "fine"
    gauge = f'<div class="gauge {kind}" aria-hidden="true"><i style="width:{min(share, 1) * 100:.0f}%"></i></div>'
    rest = {key: value for key, value in v.measured.items() if key != "max_ms"}
    return f"<div><b>{seconds(measured)}</b> at most</div>{gauge}{said or _pairs(rest)}"


def _allowed(allowed: Mapping[str, Any]) -> str:
    """The bound and where it comes from."""
    said = dict(phrases(allowed))
    bound, formula, tolerance, row = (said.pop(key, "") for key in ("bound", "formula", "tolerance", "row"))
    if formula == NEVER:
        bound, formula = NEVER, ""
    first = f"<b>{escape(bound)}</b> {escape(formula)}".rstrip() if bound else escape(formula)
    if tolerance and bound:
        first += f' <span class="key">+ {escape(tolerance)} tolerance</span>'
    rest = "".join(_pair(name, text) for name, text in said.items())
    return f'<div>{first}</div>{rest}<div class="why">{escape(row)}</div>'


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
