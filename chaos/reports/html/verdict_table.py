"""What the table of verdicts says of each: what was measured, what is allowed. How it looks, the template says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...checks import CHECKS
from ...oracle.windows import legend
from ...verdict import NEVER, Validity, Verdict, length, seconds
from ..sentences import measured_sentences, nearest_sentence
from ..text import label, phrase, phrases

LONG, SHOWN = 110, 56
"""A text of more than LONG letters opens on demand; SHOWN of them stand in the table."""


class Pair(NamedTuple):
    """A value with its name. With a `brief` form, the whole opens on demand: `text`, or a table."""

    name: str
    text: str = ""
    brief: str = ""
    keys: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


class Measured(NamedTuple):
    """What was measured; where it is a time against a bound, first how much of the bound it took."""

    said: Sequence[str]
    """In sentences; without any, `rest` says it."""
    rest: Sequence[Pair]
    best: str = ""
    of: str = ""
    percent: int | None = None
    is_over: bool = False
    whose: str = ""


class Allowed(NamedTuple):
    """The bound and where it comes from."""

    bound: str
    formula: str
    tolerance: str
    rest: Sequence[Pair]
    row: str
    letters: Iterable[tuple[str, str]]


def says_of(check: str) -> str:
    return CHECKS[check].says if check in CHECKS else "show in the plots"


def measured_of(v: Verdict) -> Measured:
    said = [text[:1].upper() + text[1:] for text in measured_sentences(v)]
    least, measured, bound = v.measured.get("min_ms"), v.measured.get("max_ms"), v.allowed.get("bound_ms")
    rest = _pairs({key: value for key, value in v.measured.items() if key not in ("min_ms", "max_ms")})
    if isinstance(least, int | float):
        return Measured(said, rest, seconds(least), " at least")
    if not isinstance(measured, int | float) or not isinstance(bound, int | float):
        return Measured(said, _pairs(v.measured))
    # A bound of nothing but delivery is 0; over it is over, whatever the scale.
    share = measured / bound if bound > 0 else float(measured > (v.allowed.get("tolerance_ms") or 0.0)) * 2
    is_tolerated = v.verdict is Validity.VALID and measured > bound
    of = f" of {length(bound)} allowed" if bound > 0 else ""
    return Measured(
        said,
        rest,
        length(measured),
        of + (f", {seconds(measured - bound)} of it tolerated" if is_tolerated else ""),
        percent=round(min(share, 1) * 100),
        is_over=share > 1 and v.verdict is Validity.INVALID,
        whose=nearest_sentence(v),
    )


def allowed_of(allowed: Mapping[str, Any]) -> Allowed:
    said = dict(phrases(allowed))
    bound, earliest, formula, tolerance, row = (
        said.pop(key, "") for key in ("bound", "earliest", "formula", "tolerance", "row")
    )
    if formula == NEVER:
        bound, formula, tolerance = NEVER, "", ""
    is_exact = earliest == bound  # neither late nor early: no window
    if earliest and not is_exact:
        formula = formula.removeprefix("not before ")
        bound = f"{earliest} to {bound}" if bound else f"not before {earliest}"
    tolerance = f"{'±' if is_exact else '+'} {tolerance}" if tolerance and bound else ""
    return Allowed(bound, formula, tolerance, _pairs(said), row, legend([formula]).items())


def _pairs(values: Mapping[str, Any]) -> list[Pair]:
    """Those that say something; lists of places as a table that opens on demand, long texts likewise."""
    found = []
    for key, value in values.items():
        if isinstance(value, Sequence) and value and all(isinstance(entry, Mapping) for entry in value):
            found.append(_table(label(key), value))
        else:
            said = phrases({key: value})
            found += [Pair(name, text, f"{text[:SHOWN]}…" if len(text) > LONG else "") for name, text in said]
    return found


def _table(name: str, entries: Sequence[Mapping[str, Any]]) -> Pair:
    """One line that names the first entry, and all of them."""

    def cell(key: str, value: object) -> str:
        return phrase(value, milliseconds=key.endswith("_ms"))

    keys = list(dict.fromkeys(key for entry in entries for key in entry))
    rows = [[cell(key, entry.get(key)) for key in keys] for entry in entries]
    first = ", ".join(filter(None, (cell(key, value) for key, value in entries[0].items() if key != "bound_ms")))
    more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
    brief = (first if len(first) <= LONG else f"{first[:SHOWN]}…") + more
    return Pair(name, "", brief, [*map(label, keys)], rows)
