"""Slots of a history made by hand, as the tests of what is judged by them take them."""

from __future__ import annotations

from nemesrv.chaos.checks.plain.slots import slots_of_rows
from nemesrv.chaos.checks.record.slots import Slots, edges
from nemesrv.chaos.oracle.world import World
from tests.chaos.builder import HistoryBuilder


def slots_of(builder: HistoryBuilder) -> tuple[Slots, World]:
    """What availability and recovery_time are judged by."""
    control, world = builder.facts()
    found = edges(world)
    return Slots(found, slots_of_rows(builder.rows, world, found), control.lateness), world
