"""What `nemesrv museum` prints: one row an incident, or one object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from ...reports.terminal import print_fitting, standard_output
from ...verdict import Validity
from .shown import Shown, Variant

WIDTH = 180
"""Of a pipe, where COLUMNS does not say how wide it is."""


def museum_table(shown: Sequence[Shown]) -> Table:
    """One row an incident: what was reported, what found it, and what the checks say of it with its fix."""
    wrong = [one.name for one in shown if not one.as_meant]
    caption = f"{len(shown) - len(wrong)} of {len(shown)} are INVALID as reported and VALID with their fix"
    caption += f"; not so: {', '.join(wrong)}" if wrong else ""
    table = Table(title="museum", title_justify="left", caption=caption, caption_justify="left", show_lines=True)
    table.add_column("incident", no_wrap=True)
    for column in ("upstream", "what was reported", "as it was", "with its fix"):
        table.add_column(column)
    for one in shown:
        upstream = "\n".join(one.incident.upstream)
        table.add_row(one.name, upstream, one.incident.reported, _buggy(one), _fixed(one))
    return table


def print_museum(table: Table) -> None:
    """On stdout, as wide as the terminal; in a pipe as COLUMNS says, else 180 columns."""
    print_fitting(standard_output(WIDTH, highlight=False), table)


def _buggy(one: Shown) -> str:
    names = ", ".join(one.incident.found_by)
    if not one.is_red:
        silent = sorted({*one.incident.found_by} - one.buggy.of(Validity.INVALID).keys())
        return f"[bold red]not found[/] by {', '.join(silent)}"
    also = f" (and {', '.join(one.also)})" if one.also else ""
    return f"[bold red]INVALID[/] by {names}{also}: {one.finding}"


def _fixed(one: Shown) -> str:
    wrong = one.fixed.of(Validity.INVALID)
    unsure = [name for name in one.incident.found_by if name in one.fixed.of(Validity.UNKNOWN)]
    if wrong:
        return f"[bold red]INVALID[/] by {', '.join(wrong)}. {one.incident.fixed.by}"
    said = f"[yellow]UNKNOWN[/] by {', '.join(unsure)}" if unsure else "[green]VALID[/]"
    return f"{said}. {one.incident.fixed.by}"


def document(one: Shown) -> dict[str, Any]:
    """An entry of `museum --json`."""
    return {
        "name": one.name,
        "description": one.description,
        **one.incident.model_dump(mode="json", exclude={"fixed"}),
        "finding": one.finding,
        "also": list(one.also),
        "buggy": _said(one.buggy),
        "fixed": {**_said(one.fixed), "by": one.incident.fixed.by, "sets": dict(one.incident.fixed.sets)},
        "as_meant": one.as_meant,
    }


def _said(variant: Variant) -> dict[str, list[str]]:
    return {str(validity): list(variant.of(validity)) for validity in Validity}
