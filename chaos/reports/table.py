"""The verdict table that a person reads at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from ..verdict import Validity, Verdict
from .sentences import measured_sentences
from .values import phrases

LONGEST, FORMULA_LONGEST = 60, 140

_STYLE = {Validity.VALID: "green", Validity.INVALID: "bold red", Validity.UNKNOWN: "yellow"}


def brief(values: Mapping[str, object]) -> str:
    """A verdict's numbers and short texts; the nested and the long are left to report.html and verdicts.json."""
    flat = {key: value for key, value in values.items() if isinstance(value, int | float | str)}
    return ", ".join(
        text if name == "formula" else f"{name} {text}"
        for name, text in phrases(flat)
        if len(text) <= (FORMULA_LONGEST if name == "formula" else LONGEST)
    )


def measured(v: Verdict) -> str:
    """What the check measured, in a line or two."""
    return "; ".join(measured_sentences(v)[:2]) or brief(v.measured)


def allowed(v: Verdict) -> str:
    """What the check allows, in a line or two; a tolerance only where there is a bound that it widens."""
    bounded = v.allowed.get("bound_ms") is not None
    return brief({name: value for name, value in v.allowed.items() if bounded or name != "tolerance_ms"})


def verdict_table(verdicts: Sequence[Verdict], *, title: str) -> Table:
    """One row a check: verdict, how much it examined, what was measured against what was allowed."""
    table = Table(title=title, title_justify="left")
    table.add_column("check", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("examined", justify="right")
    table.add_column("violations", justify="right")
    table.add_column("measured")
    table.add_column("allowed")
    for v in verdicts:
        style = _STYLE[v.verdict]
        table.add_row(
            v.name,
            f"[{style}]{v.verdict}[/]",
            str(v.examined),
            str(v.violations),
            measured(v),
            v.why if v.verdict is Validity.UNKNOWN and v.why else allowed(v),
        )
    return table


def print_table(verdicts: Sequence[Verdict], *, title: str) -> None:
    """The table on stdout, as wide as the terminal or 160 columns in a pipe."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    console.print(verdict_table(verdicts, title=title))
