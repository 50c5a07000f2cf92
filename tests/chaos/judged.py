"""Verdicts of a folder or of rows, as tests ask for them."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from nemesrv.chaos.checks.plain.verdicts import in_memory, verdicts, verdicts_of
from nemesrv.chaos.history.rows import to_table
from nemesrv.chaos.verdict import Validity, Verdict


def found_wrong(folder: Path) -> dict[str, Verdict]:
    """Check to its verdict, of those that say INVALID."""
    return {verdict.name: verdict for verdict in verdicts(folder) if verdict.verdict is Validity.INVALID}


def verdicts_of_rows(rows: list[dict[str, Any]], names: Collection[str] | None = None) -> list[Verdict]:
    """One a check, or of these checks in their order and those that join them."""
    return verdicts_of(*in_memory(to_table(rows)), names)
