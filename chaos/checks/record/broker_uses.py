"""The facts of dead_brokers_avoided: what clients did while brokers were lost to them.

Of two parts of a history they add up to those of the whole: an absence is told by its client, its broker and when it
began, which stay the same whenever a growing history is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...oracle.lost_brokers import Absence
from ...oracle.world import World
from ..check import Facts, largest


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
    last_ms: float | None = largest()
    """When the last use of the lost one was chosen that was in time, or late for such a topic."""
    worst: Use | None = largest()  # noqa: RUF009
    """Of the late ones."""
    lag_ms: float | None = largest()
    """How late the machine was when the window lasted; None: nobody measured it."""


Key = tuple[str, str, float]
"""Client, broker, and when the broker was lost: what tells an absence from others, whenever a history is judged."""


@dataclass(frozen=True, slots=True)
class BrokerUses(Facts):
    """What clients did while brokers were lost to them."""

    of: Mapping[Key, Uses] = field(default_factory=dict)


def lost_at(absence: Absence, world: World) -> str | None:
    """By which address uses of the lost broker are told from others of its name; None: there are no others."""
    return absence.address or (world.address_at(absence.broker, absence.start_ms) if world.has_slaves else None)


def key_of(absence: Absence) -> Key:
    return absence.client, absence.broker, absence.start_ms
