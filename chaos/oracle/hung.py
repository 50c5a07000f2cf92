"""Which brokers do not answer a client and do not refuse it either, so that they hold up its only scheduler thread.

A broker whose process is gone refuses at once: it costs a client nothing. Plain, over `World`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from .causes import Cause, link_causes, process_causes
from .world import World


def broker_causes(world: World) -> Mapping[str, Sequence[Cause]]:
    """Broker to the times when its process was not there or did not answer."""
    brokers = world.of_kind("broker", "slave")
    return world.memoized("broker causes", lambda: {one.name: process_causes(world, one.name) for one in brokers})


def hung_brokers(world: World, client: str, start_ms: float, end_ms: float) -> int:
    """How many brokers did not answer this client at some time in the stretch, their connections being open."""
    timers = world.timers_of(client)

    def hangs(cause: Cause) -> bool:
        answers_late = cause.delay is not None and cause.delay.round_trip_max_ms < timers.A_ms
        return cause.start_ms < end_ms and cause.end_ms > start_ms and not cause.loss.closes and not answers_late

    return sum(
        any(hangs(cause) for cause in (*causes, *link_causes(world, client, broker)))
        for broker, causes in broker_causes(world).items()
    )


def most_hung_brokers(world: World, from_ms: float = -math.inf, to_ms: float = math.inf) -> int:
    """The same for the client that it is most for, from one round of heartbeats earlier on."""
    key = "most hung brokers", from_ms, to_ms
    early_ms = from_ms - world.timers.A_ms * len(world.of_kind("broker", "slave"))
    clients = [node.name for node in world.of_kind("producer", "consumer")]
    return world.memoized(key, lambda: max((hung_brokers(world, name, early_ms, to_ms) for name in clients), default=0))
