"""The rules of one client as a person reads them: a table, or in a narrow terminal a paragraph a rule."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..chaos.reports.console import standard_output
from ..chaos.verdict import Validity
from .judging import RuleVerdict
from .result import MEASURED, Result
from .rules import Measured
from .rules.rule import said

PIPE_COLUMNS = 120
NARROW = 72
_STYLE = {Validity.VALID: "green", Validity.INVALID: "bold red", Validity.UNKNOWN: "yellow"}


def title(result: Result) -> str:
    """Who was held against what, and what came of it."""
    against = f" held against {result.profile}" if result.profile else ""
    return f"{result.client}{against}: {result.said}"


def measured_text(found: RuleVerdict) -> str:
    """`3.0 s (2.9 to 3.1)`, `random (p = 0.42)`, or why nothing was decided."""
    measured = found.measured
    if not isinstance(measured, Measured):
        return f"left out: {measured.why}"
    if measured.value is None:
        return measured.why
    value = measured.value
    unit = f" {found.rule.unit}" if found.rule.unit else ""
    text = value if isinstance(value, str) else f"{value:.3g}{unit}"
    more = []
    if measured.interval is not None:
        low, high = (f"{end:.3g}" for end in measured.interval)
        more += [f"{low} to {high}"] if low != high else []
    if measured.p is not None:
        more.append(f"p = {measured.p:.2g}")
    if measured.power is not None:
        more.append(f"power {measured.power:.2g}")
    return f"{text} ({', '.join(more)})" if more else text


def expected_text(found: RuleVerdict) -> str:
    if found.expected is None:
        return ""
    unit = f" {found.rule.unit}" if found.rule.unit and not isinstance(found.expected, str) else ""
    return f"{said(found.expected)}{unit}"


def verdict_text(found: RuleVerdict) -> Text:
    if found.verdict is None:
        return Text(MEASURED, style="dim")
    return Text(str(found.verdict), style=_STYLE[found.verdict])


def table(result: Result) -> RenderableType:
    """One row a rule."""
    rows = Table(title=Text(title(result)), title_justify="left", pad_edge=False)
    rows.add_column("rule", no_wrap=True)
    rows.add_column("measured")
    rows.add_column("n", justify="right", no_wrap=True)
    rows.add_column("expected")
    rows.add_column("verdict", no_wrap=True)
    for found in result.decided:
        assert isinstance(found.measured, Measured)
        style = "bold" if found.verdict is Validity.INVALID else ""
        measured = Text(_with_why(found), style=style)
        expected = Text(expected_text(found))
        rows.add_row(found.rule.name, measured, f"{found.measured.count:,}", expected, verdict_text(found))
    return Group(rows, *_below(result))


def paragraphs(result: Result) -> RenderableType:
    """The same for a terminal that is too narrow for columns."""
    parts: list[RenderableType] = [Text(title(result), style="italic")]
    for found in result.decided:
        assert isinstance(found.measured, Measured)
        parts.append(Text.assemble(verdict_text(found), f" {found.rule.name}"))
        parts.append(Padding(Text(f"{_with_why(found)}; n = {found.measured.count:,}"), (0, 0, 0, 2)))
        if found.expected is not None:
            parts.append(Padding(Text(f"expected: {expected_text(found)}"), (0, 0, 0, 2)))
    return Group(*parts, *_below(result))


def _with_why(found: RuleVerdict) -> str:
    assert isinstance(found.measured, Measured)
    text = measured_text(found)
    why = found.measured.why
    return f"{text}; {why}" if why and why != text and found.verdict is not Validity.VALID else text


def _below(result: Result) -> list[Text]:
    lines = [Text(note, style="yellow") for note in result.trial.notes]
    if result.left_out:
        by_reason: dict[str, list[str]] = {}
        for name, why in result.left_out.items():
            by_reason.setdefault(why, []).append(name)
        told = "; ".join(f"{', '.join(names)} ({why})" for why, names in by_reason.items())
        lines.append(Text(f"left out: {told}", style="dim"))
    return lines


def print_table(result: Result) -> None:
    """On stdout, as wide as the terminal; in a pipe as COLUMNS says, else 120 columns."""
    console = standard_output(PIPE_COLUMNS, highlight=False)
    console.print(paragraphs(result) if console.width < NARROW else table(result))
