"""How long operations took, counted by whom they waited for and by how far past a bound they were."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..check import Facts, largest, least

LEVELS = 96
STEPS = 8
"""Levels in each doubling above the bound; of each it is counted how many took that long."""


class Who(NamedTuple):
    """What was timed."""

    operation: str
    """look-up, registration, send or delivery."""
    peer: str
    """Who had to answer."""
    since_ms: float
    """The beginning of the quiet stretch."""


@dataclass(frozen=True)
class Timed(Facts):
    """Operations of one kind, with one peer, in one quiet stretch."""

    count: int = 0
    over: Mapping[int, int] = field(default_factory=dict)
    """By level, how many took longer than that level and not longer than the next."""
    slowest_ms: float | None = largest()
    first_slow_ms: float | None = least()
    """The end of the first that took longer than the bound."""
