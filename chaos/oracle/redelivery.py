"""How far from the taking of its queue a message may be received again: what was not committed comes again. Plain.

older holding's receipt ── commit (first after 10 s, then every 5 s) ──┬── younger holding taken ── its receipt
                   └────────── at most U before it was taken ──────────┘
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .intervals import Stretch
from .quiet import aftermath_ms, disturbed, members_window
from .world import World

COMMIT_MS = 10_000.0
"""`MQClientInstance` persists offsets first after 10 s, then every `persistConsumerOffsetInterval` of 5 s."""
FLUSH_MS = 5_000.0
"""`BrokerConfig.flushConsumerOffsetInterval`: what a broker that is killed forgets of the offsets it was told."""


class Redelivery(NamedTuple):
    """How far from the taking of its queue a first receipt may lie, outside of disturbances and within them."""

    uncommitted_ms: float
    owners_ms: float
    disturbed: Sequence[Stretch]

    @classmethod
    def of(cls, world: World) -> Redelivery:
        """`disturbed` reaches from U + flush before each fault until its aftermath is over."""
        stretches = disturbed(world, COMMIT_MS + FLUSH_MS, aftermath_ms(world))
        return cls(COMMIT_MS, members_window(world.timers).latest_ms, stretches)
