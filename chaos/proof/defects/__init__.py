"""Planted defects: named ways for a node to be wrong, and the checks that must find each, in which scenario.

The self-test runs each in its scenario, beside the same scenario without it; a check that cannot find its defect, or
that finds one which is not there, is worth nothing. `python -m nemesrv.chaos.proof.defects > docs/defects.md` writes
the list again; a test compares the two.
"""

from __future__ import annotations

from ...scenarios.defect import Defect as Defect
from . import (
    answers,
    broker,
    by_hand,
    client,
    consumer,
    drops,
    offsets,
    producer,
    registrations,
    slaves,
    slow,
    tables,
    timers,
    unasked,
    waits,
)
from .apache import OF_APACHE as OF_APACHE
from .incidents import OF_INCIDENTS as OF_INCIDENTS

_ALL = (
    *drops.DEFECTS,
    *registrations.DEFECTS,
    *tables.DEFECTS,
    *slow.DEFECTS,
    *answers.DEFECTS,
    *by_hand.DEFECTS,
    *broker.DEFECTS,
    *client.DEFECTS,
    *producer.DEFECTS,
    *consumer.DEFECTS,
    *offsets.DEFECTS,
    *slaves.DEFECTS,
    *timers.DEFECTS,
    *waits.DEFECTS,
    *unasked.DEFECTS,
)

DEFECTS: dict[str, Defect] = {defect.name: defect for defect in _ALL}
"""By name, in the order of the table. No two have one name: a test counts."""

EVERY: dict[str, Defect] = DEFECTS | OF_APACHE | OF_INCIDENTS
"""The self-test's, those of Apache's own servers, and those of reported incidents."""
