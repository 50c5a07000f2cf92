"""Slots of a history made by hand, as the tests of what is judged by them take them."""

from nemesrv.chaos.checks.plain.slots import slots_of as counted
from nemesrv.chaos.checks.plain.verdicts import in_memory
from nemesrv.chaos.checks.record.slots import Slots
from nemesrv.chaos.history.rows import to_table
from nemesrv.chaos.oracle.world import World
from tests.chaos.builder import HistoryBuilder


def slots_of(builder: HistoryBuilder) -> tuple[Slots, World]:
    """What availability and recovery_time are judged by."""
    history, world = in_memory(to_table(builder.rows))
    return counted(history, world), world
