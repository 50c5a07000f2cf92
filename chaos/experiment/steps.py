"""What happens when in an experiment: the actions of its timeline, and the nodes that join."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ..scenarios.action import ActionModel
from ..scenarios.model import Scenario


class Step(NamedTuple):
    """What happens at a time of the timeline; within a series not sooner than `after_s` behind the one before."""

    at_s: float
    do: Callable[[], object]
    series: int = -1
    after_s: float = -math.inf


def steps_of(
    scenario: Scenario, seed: int, *, join: Callable[[str], object], act: Callable[[ActionModel], object]
) -> list[Step]:
    """In order; of those at the same time nodes join first."""
    joins = sorted((of.joins_at_s, name) for name, of in scenario.nodes.items() if of.joins_at_s is not None)
    steps = [Step(at_s, partial(join, name)) for at_s, name in joins]
    steps += [Step(one.at_s, partial(act, one.action), one.series, one.after_s) for one in scenario.plan(seed).actions]
    return sorted(steps, key=lambda step: step.at_s)
