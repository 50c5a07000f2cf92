"""Counts of what clients' operations came to, by client, operation, and slot of time; availability and recovery_time
are judged by these, however many operations there were.

Buckets are equal parts of the run, at most 200. Segments lie between the edges that a check asks about (a fault, a
heal, the bounds of a quiet time): an operation belongs to the segment in which it began. Each client adds at most
buckets + segments slots an operation, so they are collected and the rest is plain Python (dataframes/operations.py).

Good is an answer: a send that ended ok, a pull or a look-up that was answered at all, for a broker that says "not yet"
or a NameServer that says "no such topic" serves. Operations without an end are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..oracle.intervals import Stretch
from ..oracle.quiet import calm
from ..oracle.reach import moments
from ..oracle.world import World
from .lateness import Lateness

OPERATIONS = ("send", "pull", "name_server_call")
BUCKETS_MAX = 200
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


class Slot(NamedTuple):
    node: str
    operation: str
    bucket: int
    segment: int
    """How many of the edges had passed when its operations began."""
    until: int
    """How many had passed when they ended."""
    good: int
    bad: int
    first_good_ms: float | None
    """The earliest end of a good one."""
    last_ms: float
    """The latest end of any."""
    last_bad_ms: float | None
    first_bad_ms: float | None = None
    slowest_ms: float | None = None
    """How long the slowest good one took; None for pulls, which brokers hold on purpose."""


class _Stall(NamedTuple):
    start_ms: float
    end_ms: float
    took_ms: float
    node: str
    """Whose operation was slow."""


class Stalls:
    """When the machine, or its proxies, stood still, so that operations may have timed out that nothing disturbed.

    Nodes measure how late their own timers fire, and the harness how late Toxiproxy is (tolerance.py). What both miss,
    a stall of one link alone, a send or look-up gives away that succeeded, but took a third of T. That in a stretch
    nothing ended at all says nothing: in an outage it is the same.
    """

    def __init__(self, world: World, seen: Sequence[Slot]) -> None:
        self._width_ms, self._timeout_ms = bucket_ms(world), world.timers.T_ms
        self._found = [
            _Stall(slot.bucket * self._width_ms - took_ms, (slot.bucket + 1) * self._width_ms, took_ms, slot.node)
            for slot in seen
            if (took_ms := slot.slowest_ms) is not None and took_ms >= self._timeout_ms / 3
        ]

    def explain(self, slot: Slot) -> bool:
        """Whether operations that ended badly in this slot may have met a stall."""
        start_ms = slot.bucket * self._width_ms - self._timeout_ms
        return self.worst_ms(start_ms, (slot.bucket + 1) * self._width_ms + self._timeout_ms) > 0

    def worst_ms(self, from_ms: float, to_ms: float, *, but: str | None = None) -> float:
        """The longest in that time that does not rest on the operations of `but`; 0 without any."""
        return max(
            (
                stall.took_ms
                for stall in self._found
                if stall.start_ms < to_ms and stall.end_ms > from_ms and stall.node != but
            ),
            default=0.0,
        )


@dataclass(frozen=True, eq=False)
class Slots:
    """All slots of a history, between `edges`, and how late its nodes' timers were."""

    edges: Sequence[float] = ()
    slots: Sequence[Slot] = ()
    lateness: Lateness = field(default_factory=Lateness)

    def begins_ms(self, slot: Slot) -> float:
        """From when on the slot's operations began."""
        return self.edges[slot.segment - 1] if slot.segment else 0.0

    def is_within(self, slot: Slot, stretch: Stretch) -> bool:
        """Whether the slot's operations began and ended within the stretch."""
        begins = slot.segment > 0 and self.edges[slot.segment - 1] >= stretch.start_ms
        return begins and slot.until < len(self.edges) and self.edges[slot.until] <= stretch.end_ms


def edges(world: World) -> list[float]:
    """Every fault, heal and bound of a quiet stretch, ascending."""
    return sorted({edge for stretch in calm(world) for edge in stretch} | {m.at_ms for m in moments(world)})


def bucket_ms(world: World) -> float:
    """The width of a bucket: a round number of milliseconds, at least 1 s, that makes no more than BUCKETS_MAX."""
    least_ms = max(1000.0, world.end_ms / (BUCKETS_MAX - 1))
    power = 10.0 ** math.floor(math.log10(least_ms))
    return next(power * step for step in _STEPS if power * step >= least_ms)
