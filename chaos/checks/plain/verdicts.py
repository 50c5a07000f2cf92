"""Verdicts of a recorded run without Spark: of every check, by its record."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ...history.stored import rows_of
from ...history.wholeness import missing_of_rows
from ...oracle.world import World
from ...verdict import Validity, Verdict
from .. import CHECKS
from ..check import Check
from ..finishing import finished, seen_by, with_joining
from .history import PlainHistory

log = logging.getLogger("nemesrv.checks")


def verdicts(where: Path, names: Collection[str] | None = None) -> list[Verdict]:
    """One a check, or of these checks in their order, of a history on this machine."""
    rows = rows_of(where)
    return verdicts_of_rows([*rows, *missing_of_rows(rows)], names)


def verdicts_of_rows(rows: list[dict[str, Any]], names: Collection[str] | None = None) -> list[Verdict]:
    """One a check, or of these checks in their order and those that join them, of these rows in the history's order.

    A check that fails is UNKNOWN, with the error's text.
    """
    world, history = World.of_rows(rows), PlainHistory.of_rows(rows)
    found = []
    for name in with_joining(CHECKS if names is None else names, history.control):
        try:
            found.append(finished(CHECKS[name], _alone(CHECKS[name], history, world), world))
        except Exception as exc:
            log.info("check %s failed", name, exc_info=True)  # its verdict says so to the person
            found.append(Verdict.of_failed_check(name, exc))
    return found


def _alone(check: Check[Any], history: PlainHistory, world: World) -> Verdict:
    seen = seen_by(check, world)
    return check.judge(check.plain(history, seen), seen)


def found_wrong(folder: Path) -> dict[str, Verdict]:
    """Check to its verdict, of those that say INVALID."""
    return {verdict.name: verdict for verdict in verdicts(folder) if verdict.verdict is Validity.INVALID}
