"""Planted defects: named ways in which a node is wrong, with the scenario and the checks that must find each defect.

The self-test runs each defect's scenario with the defect and without it. The checks must find the defect, and must find
nothing in the run without the defect. planting.py shows how a defect is written.
"""

from itertools import chain

from ...scenarios.defect import Defect as Defect
from . import (
    answers,
    apache,
    broker,
    by_hand,
    client,
    consumer,
    incidents,
    name_server_table,
    producer,
    slaves,
    timers,
)

_MODULES = (name_server_table, answers, by_hand, broker, client, producer, consumer, slaves, timers)
_ALL = tuple(chain.from_iterable(module.planted for module in _MODULES))

DEFECTS: dict[str, Defect] = {defect.name: defect for defect in _ALL}
"""By name, in the order of the table. No two have one name: a test counts."""

OF_APACHE: dict[str, Defect] = {defect.name: defect for defect in apache.planted}
OF_INCIDENTS: dict[str, Defect] = {defect.name: defect for defect in incidents.planted}

EVERY: dict[str, Defect] = DEFECTS | OF_APACHE | OF_INCIDENTS
"""The self-test's, those of Apache's own servers, and those of reported incidents."""
