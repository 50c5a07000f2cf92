"""The facts of dead_brokers_avoided: what clients did while brokers were lost to them.

Of two parts of a history they add up to those of the whole: an absence is told by its client, its broker and when it
began, which stay the same whenever a growing history is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from ...oracle.lost_brokers import Absence
from ...oracle.world import World
from ..check import Facts, Inconsistent


class Use(NamedTuple):
    """A use of the lost broker after the window; the greatest is furthest out of bounds."""

    reaches_ms: float
    """How far from the nearer end of the time after the window: what lateness may explain."""
    time_ms: float
    topic: str
    op_id: str
    """Empty for a pull that has none."""
    over_ms: float
    """How long after the window it was chosen."""


@dataclass(frozen=True, slots=True)
class Uses(Facts):
    """What a client did while a broker was lost to it."""

    after: int = 0
    """Uses of any broker after the window."""
    late: int = 0
    """Uses of the lost one after it, for topics that another broker had as well."""
    last_ms: float | None = None
    """When the last use of the lost one was chosen that was in time, or late for such a topic."""
    worst: Use | None = None
    """Of the late ones."""
    lag_ms: float | None = None
    """How late the machine was when the window lasted; None: nobody measured it."""

    def plus(self, other: Self) -> Self:
        """Counts add up; of all else the larger is the whole's."""
        return type(self)(
            self.after + other.after,
            self.late + other.late,
            _larger(self.last_ms, other.last_ms),
            _larger(self.worst, other.worst),
            _larger(self.lag_ms, other.lag_ms),
        )

    def minus(self, part: Self) -> Self:
        """What is larger stays: it was there, whether it is in the part or in the rest."""
        if part.after > self.after or part.late > self.late:
            raise Inconsistent(f"{self} became {part}")
        return type(self)(self.after - part.after, self.late - part.late, self.last_ms, self.worst, self.lag_ms)


Key = tuple[str, str, float]
"""Client, broker, and when the broker was lost: what tells an absence from others, whenever a history is judged."""


@dataclass(frozen=True, slots=True)
class BrokerUses(Facts):
    """What clients did while brokers were lost to them."""

    of: Mapping[Key, Uses] = field(default_factory=dict)

    def plus(self, other: Self) -> Self:
        """The uses of both parts."""
        nothing = Uses()
        keys = {**self.of, **other.of}
        return type(self)({key: self.of.get(key, nothing).plus(other.of.get(key, nothing)) for key in keys})

    def minus(self, part: Self) -> Self:
        """The uses of the rest."""
        nothing = Uses()
        keys = {**self.of, **part.of}
        return type(self)({key: self.of.get(key, nothing).minus(part.of.get(key, nothing)) for key in keys})


def lost_at(absence: Absence, world: World) -> str | None:
    """By which address uses of the lost broker are told from others of its name; None: there are no others."""
    return absence.address or (world.address_at(absence.broker, absence.start_ms) if world.has_slaves else None)


def _larger(one: Any, other: Any) -> Any:
    return max((value for value in (one, other) if value is not None), default=None)


def key_of(absence: Absence) -> Key:
    return absence.client, absence.broker, absence.start_ms
