"""What is said of every verdict besides what its check says: clients under test that nobody met, a run that ended too
soon after its last fault, rows that are missing, the time line, and whose clients were looked at.

Whose clients a run had: how many of each kind, who made them, and by which client's rules they choose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from ..oracle.world import World
from ..verdict import Clients, Verdict
from . import CHECKS
from .blind import with_blind
from .check import Check
from .record.control import Control
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


def clients_of(world: World, kinds: Collection[str]) -> tuple[Clients, ...]:
    """Those of these kinds, in the order of their kinds and makes; none where the run had none."""
    of_kinds = world.of_kind(*kinds) if kinds else ()
    counts = Counter((node.kind, node.implementation, _profile(world, node.name)) for node in of_kinds)
    return tuple(
        Clients(kind=kind, count=count, implementation=made_by, profile=profile)
        for (kind, made_by, profile), count in sorted(
            counts.items(), key=lambda one: ([*kinds].index(one[0][0]), *one[0][1:])
        )
    )


def _profile(world: World, node: str) -> str:
    try:
        return world.client_profile_of(node).name
    except KeyError as exc:  # a profile that this version does not know
        return str(exc.args[0])


def with_joining(checks: Iterable[str], control: Control) -> list[str]:
    """The checks, and those that join for rows of this history, such as what a node did not do for the harness: that
    run is never VALID, whatever it is judged by."""
    named = list(checks)
    others = [check for name, check in CHECKS.items() if name not in named and check.joins_for]
    return [*named, *(check.name for check in others if control.rows(*check.joins_for))]
