"""Verdicts of a recorded run without Spark: of every check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...history.rows import read_rows
from ...oracle.world import World
from ...verdict import Validity, Verdict
from .. import CHECKS, availability, exercised, recovery_time
from ..control import Control
from ..finishing import finished
from ..slots import Slots, edges
from . import commits, deliveries, uses
from .effects import effects_of_rows
from .slots import slots_of_rows
from .traffic import verdicts_of_traffic

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
    return verdicts_of_rows(read_rows(folder))


def verdicts_of_rows(rows: list[dict[str, Any]]) -> list[Verdict]:
    """One a check, of these rows in the history's order."""
    world = World.of_rows(rows)
    return [finished(CHECKS[verdict.name], verdict, world) for verdict in unfinished(rows, world)]


def unfinished(rows: list[dict[str, Any]], world: World) -> list[Verdict]:
    """What each check alone says."""
    control = Control.of_rows(rows)
    between = edges(world)
    slots = Slots(between, slots_of_rows(rows, world, between), control.lateness)
    return [
        *(CHECKS[name].judge(control, world) for name in CONTROL_CHECKS),
        availability.judge(availability.tallies(slots, world), world),
        recovery_time.judge(slots, world),
        deliveries.verdict_of(rows, control, world),
        *verdicts_of_traffic(rows, control, world),
        commits.verdict_of(rows, control, world),
        uses.verdict_of(rows, control, world),
        exercised.judge(
            exercised.Evidence(
                control,
                effects_of_rows(rows, exercised.asked_of_calls(world)),
                frozenset(slot.node for slot in slots.slots if slot.good),
            ),
            world,
        ),
    ]


def found_wrong(folder: Path) -> dict[str, Verdict]:
    """Check to its verdict, of those that say INVALID."""
    return {verdict.name: verdict for verdict in verdicts(folder) if verdict.verdict is Validity.INVALID}
