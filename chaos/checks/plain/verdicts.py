"""Verdicts of a recorded run without Spark: of every check, by its record."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path

from ...arrow import pa, pc
from ...history.rows import table_in
from ...history.schema import Group, named
from ...history.stored import merged_files
from ...history.wholeness import missing_of_table
from ...oracle.world import World
from ...verdict import Verdict
from .. import CHECKS
from ..finishing import finished, seen_by, with_joining
from ..record.control import told_by
from .part import Gathering, Part, Whole, is_one_of

log = logging.getLogger("nemesrv.checks")

COUNTED_ONLY = named(Group.TRAFFIC, Group.ANSWERS)
"""As many as messages or calls, if only in a wrong run."""


def verdicts(where: Path, names: Collection[str] | None = None) -> list[Verdict]:
    """One a check, or of these checks in their order, of a history on this machine."""
    return verdicts_of(*in_memory(table_in(merged_files(where)), is_whole=True), names)


def in_memory(table: pa.Table, *, is_whole: bool = False) -> tuple[Whole, World]:
    """A history as the checks see it, and the World that it tells of. Where it is a whole run's, rows that are not
    there are missed."""
    counted = is_one_of(table["event"], sorted(COUNTED_ONLY))
    lost = missing_of_table(table) if is_whole else []
    last_ms = pc.max(table["time_ms"]).as_py()
    control, world = told_by(table.filter(pc.invert(counted)), lost=lost, last_ms=last_ms)
    return Whole(Part(table, control)), world


def verdicts_of(history: Gathering, world: World, names: Collection[str] | None = None) -> list[Verdict]:
    """One a check, or of these and those that join them. A check that fails is UNKNOWN, with the error's text."""
    found = []
    for name in with_joining(CHECKS if names is None else names, history.control):
        check, seen = CHECKS[name], seen_by(CHECKS[name], world)
        try:
            found.append(finished(check, check.judged(history, seen), world))
        except Exception as exc:
            log.info("check %s failed", name, exc_info=True)  # its verdict says so to the person
            found.append(Verdict.of_failed_check(name, exc))
    return found
