"""Verdicts of a recorded run without Spark: of every check."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache, partial
from pathlib import Path
from typing import Any

from ...history.rows import read_rows
from ...history.wholeness import missing_of_rows
from ...oracle.world import World
from ...verdict import Validity, Verdict
from .. import CHECKS
from ..finishing import finished
from ..record.control import Control
from ..record.slots import Slots, edges
from ..service import availability, exercised, recovery_time
from . import commits, deliveries, uses
from .effects import effects_of_rows
from .slots import slots_of_rows
from .traffic import judges_of_traffic

CONTROL_CHECKS = (
    "done_by_hand",
    "answers_are_true",
    "client_routes_are_true",
    "registrations_are_kept",
    "routes_as_registered",
    "dead_name_servers_left",
    "name_server_selection",
    "no_false_eviction",
    "no_resurrection",
    "one_master",
    "queue_ownership",
    "routes_are_true",
    "routes_converge",
    "timers_kept",
)


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
    control = Control.of_rows(rows)

    @cache
    def slots() -> Slots:
        between = edges(world)
        return Slots(between, slots_of_rows(rows, world, between), control.lateness)

    def exercise() -> Verdict:
        effects = effects_of_rows(rows, exercised.asked_of_calls(world))
        good = frozenset(slot.node for slot in slots().slots if slot.good)
        return exercised.judge(exercised.Evidence(control, effects, good), world)

    judges: dict[str, Callable[[], Verdict]] = {
        **{name: partial(CHECKS[name].judge, control, world) for name in CONTROL_CHECKS},
        "availability": lambda: availability.judge(availability.tallies(slots(), world), world),
        "recovery_time": lambda: recovery_time.judge(slots(), world),
        "messages_delivered": lambda: deliveries.verdict_of(rows, control, world),
        **judges_of_traffic(rows, control, world),
        "commits_follow_work": lambda: commits.verdict_of(rows, control, world),
        "living_are_used": lambda: uses.verdict_of(rows, control, world),
        "exercised": exercise,
    }
    return [judge() for name, judge in judges.items() if names is None or name in names]


def found_wrong(folder: Path) -> dict[str, Verdict]:
    """Check to its verdict, of those that say INVALID."""
    return {verdict.name: verdict for verdict in verdicts(folder) if verdict.verdict is Validity.INVALID}
