"""Brokers that came back at another address: until when the old one may be named.

broker at x  ──┤ ends ├── at y ─┬─ registers ──────────────────────   a NameServer that it reaches: R + C
NameServer   x ─────────────────┴─ y                                   one that it does not reach drops x, as ever
client       x ──────────────────────── polls ─ y                      whom it asks, P + J later
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .obligations import RouteState, route_states
from .windows import Window, serves_window
from .world import World


def forgotten(world: World, client: str, broker: str, came_ms: float) -> tuple[float, Window] | None:
    """When the last NameServer that this client may ask names an earlier address of the broker no more, because it has
    the new one, or nobody; None: nothing bounds it."""
    latest: tuple[float, Window] | None = None
    for server in world.listed(client):
        states = (s for s in _states(world, broker, server.name) if s.end_ms > came_ms)
        refill = serves_window(world.timers_of(server.name))
        settled = []
        for state in states:
            if state.judged and state.settled_ms < state.end_ms:
                serves_ms = restarted_ms(world, state.name_server, state.incarnation) + refill.latest_ms
                there = max(state.settled_ms, state.start_ms), state.window
                # Until it serves it has no route to give.
                settled.append(max(there, (serves_ms, refill), key=lambda one: one[0]))
        if not settled:
            return None
        first = min(settled, key=lambda one: one[0])
        latest = first if latest is None or first[0] > latest[0] else latest
    return latest


def _states(world: World, broker: str, name_server: str) -> Sequence[RouteState]:
    return [state for state in route_states(world) if (state.broker, state.name_server) == (broker, name_server)]


def restarted_ms(world: World, name_server: str, incarnation: int) -> float:
    """When this NameServer process was started, if it was not there when the run began with filled tables."""
    late = math.isfinite(world.joined_ms(name_server))
    later = world.lives_of(name_server)[0 if late else 1 :]
    return next((life.start_ms for life in later if life.incarnation == incarnation), -math.inf)
