"""Verdicts of a recorded run without Spark: of every check, by its record."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from ...history.rows import read_rows
from ...history.wholeness import missing_of_rows
from ...oracle.world import World
from ...verdict import Validity, Verdict
from .. import CHECKS
from ..finishing import finished, seen_by
from .history import PlainHistory


def verdicts(folder: Path) -> list[Verdict]:
    """One a check, of the history in the run folder."""
    rows = read_rows(folder)
    return verdicts_of_rows([*rows, *missing_of_rows(rows)])


def verdicts_of_rows(rows: list[dict[str, Any]], names: Collection[str] | None = None) -> list[Verdict]:
    """One a check, or of these checks only, of these rows in the history's order."""
    world = World.of_rows(rows)
    return [finished(CHECKS[verdict.name], verdict, world) for verdict in unfinished(rows, world, names)]


def unfinished(rows: list[dict[str, Any]], world: World, names: Collection[str] | None = None) -> list[Verdict]:
    """What each check alone says; nothing is gathered for a check that is not asked for."""
    history = PlainHistory.of_rows(rows)
    found = []
    for check in CHECKS.values():
        if names is None or check.name in names:
            seen = seen_by(check, world)
            found.append(check.judge(check.plain(history, seen), seen))
    return found


def found_wrong(folder: Path) -> dict[str, Verdict]:
    """Check to its verdict, of those that say INVALID."""
    return {verdict.name: verdict for verdict in verdicts(folder) if verdict.verdict is Validity.INVALID}
