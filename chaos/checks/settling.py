"""Whether a run went on after its last fault for long enough that a check judges anything there, and how long it takes.

A check that says nothing for a while after a heal names that time itself (`Check.settles`); a run that ends sooner is
not judged by it from the last fault on, whatever it says of the time before. That is told, with the time it takes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..oracle.quiet import felt, harmful
from ..oracle.world import World
from ..verdict import Verdict
from .check import Check

AFTER_THE_LAST_FAULT = "after the last fault"


def settling_needed_s(check: Check[Any], world: World) -> float | None:
    """How many seconds must pass after the last fault before the check judges anything. None: the run had enough, or
    the check asks for none, or there was no fault that ended."""
    last_ms = _last_ms(world)
    if check.settles is None or not math.isfinite(last_ms):
        return None
    needed_ms = check.settles(world)
    return None if world.end_ms - last_ms > needed_ms else math.ceil(needed_ms / 1000) + 1


def _last_ms(world: World) -> float:
    """When the last fault had ended; -inf without any."""
    return max((felt(world, fault).end_ms for fault in harmful(world)), default=-math.inf)


def too_short(checks: Mapping[str, Check[Any]], world: World) -> dict[str, str]:
    """Check → a sentence, of those that judge nothing after the last fault."""
    if world.run.get("imported"):
        return {}  # nobody can have logs settle for longer
    had_s = (world.end_ms - _last_ms(world)) / 1000
    found = {name: settling_needed_s(check, world) for name, check in checks.items()}
    return {
        name: f"nothing is judged, because the {had_s:.0f} s that follow are too short: "
        f"`settle_s: {needed:.0f}` is enough"
        for name, needed in found.items()
        if needed is not None
    }


def with_settling(check: Check[Any], verdict: Verdict, world: World) -> Verdict:
    """The verdict, which names what it does not decide when the run did not settle for long enough."""
    why = too_short({check.name: check}, world).get(check.name)
    if why is None or any(f.examined and f.from_ms >= _last_ms(world) for f in verdict.findings):
        return verdict
    undecided = {**verdict.undecided, AFTER_THE_LAST_FAULT: why}
    if verdict.examined:
        return replace(verdict, undecided=undecided)
    return replace(verdict, undecided=undecided, why=f"{verdict.why}; {AFTER_THE_LAST_FAULT} {why}")
