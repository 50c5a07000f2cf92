"""Slots of a history made by hand, as the tests of what is judged by them take them."""

from __future__ import annotations

from nemesrv.chaos.checks.plain.history import PlainHistory
from nemesrv.chaos.checks.plain.slots import slots_of_rows
from nemesrv.chaos.checks.record.slots import Slots
from nemesrv.chaos.oracle.world import World
from tests.chaos.builder import HistoryBuilder


def slots_of(builder: HistoryBuilder) -> tuple[Slots, World]:
    """What availability and recovery_time are judged by."""
    world = World.of_rows(builder.rows)
    return slots_of_rows(PlainHistory.of_rows(builder.rows), world), world
