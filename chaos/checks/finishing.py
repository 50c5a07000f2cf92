"""What is said of every verdict besides what its check says: clients under test that nobody met, a run that ended too
soon after its last fault, rows that are missing, the time line, and whose clients were looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..oracle.makes import clients_of
from ..oracle.world import World
from ..verdict import Verdict
from .blind import with_blind
from .check import Check
from .settling import with_settling
from .under_test import with_clients_under_test


def finished(check: Check[Any], verdict: Verdict, world: World) -> Verdict:
    """The verdict of `judge`, complete."""
    seen = seen_by(check, world)
    verdict = with_clients_under_test(check, with_settling(check, verdict, seen), world)
    verdict = with_blind(check, verdict, seen)
    return replace(verdict, timeline_ms=seen.timeline_ms, clients=clients_of(seen, check.looks_at))


def seen_by(check: Check[Any], world: World) -> World:
    """The world as the check sees it."""
    return world if check.outside else world.of_ours()
