"""How far from the taking of its queue a message may be received again: what was not committed comes again. Plain.

older holding's receipt ── commit (first after 10 s, then every 5 s) ──┬── younger holding taken ── its receipt
                   └────────── at most U before it was taken ──────────┘
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .intervals import Stretch, merged
from .quiet import aftermath_ms, brokers_joined, disturbed, members_window
from .resets import Reset
from .world import World

COMMIT_MS = 10_000.0
"""`MQClientInstance` persists offsets first after 10 s, then every `persistConsumerOffsetInterval` of 5 s."""
FLUSH_MS = 5_000.0
"""`BrokerConfig.flushConsumerOffsetInterval`: what a broker that is killed forgets of the offsets it was told."""


def commit_ms(world: World) -> float:
    """How long a receipt may stay uncommitted, by the slowest consumer."""
    return max([COMMIT_MS, *_longest(world, "consumer", "persistConsumerOffsetInterval")])


def flush_ms(world: World) -> float:
    """How much of what it was told a killed broker forgets, by the slowest broker."""
    return max(_longest(world, "broker", "flushConsumerOffsetInterval"), default=FLUSH_MS)


def _longest(world: World, kind: str, name: str) -> list[float]:
    """The setting at each node of the kind, where the scenario sets any."""
    nodes = world.of_kind(kind) if world.run.get("settings") else ()
    return [float(str(world.setting(node.name, name))) for node in nodes]


class Redelivery(NamedTuple):
    """How far from the taking of its queue a first receipt may lie, outside of disturbances and within them."""

    uncommitted_ms: float
    owners_ms: float
    disturbed: Sequence[Stretch]
    resets: Sequence[Reset] = ()
    """What an operator sent a group back to comes again."""

    @classmethod
    def of(cls, world: World) -> Redelivery:
        """`disturbed` reaches from U + flush before each fault, and broker that joins, until its aftermath is over:
        consumers see a new broker one poll apart, and share out its queues by what they see."""
        before_ms, after_ms = commit_ms(world) + flush_ms(world), aftermath_ms(world)
        joined = (Stretch(at_ms - before_ms, end_ms) for at_ms, end_ms in brokers_joined(world, after_ms))
        stretches = merged([*disturbed(world, before_ms, after_ms), *joined])
        return cls(commit_ms(world), members_window(world.timers).latest_ms, stretches, world.resets)
