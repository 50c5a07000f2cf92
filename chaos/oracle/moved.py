"""Brokers that came back at another address: until when the old one may be named, and what that does to clients.

    broker at x  ──┤ ends ├── at y ─┬─ registers ──────────────────────   a NameServer that it reaches: R + C
    NameServer   x ─────────────────┴─ y                                   one that it does not reach drops x, as ever
    client       x ──────────────────────── polls ─ y                      whom it asks, P + J later

A client that is told of the old address for longer than R + C has lost the broker, though nothing is wrong with it: so
there are faults of its link until then, which nobody injected and no row tells of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from .obligations import RouteState, route_states
from .recorded import OLD_ADDRESS, Fault
from .windows import Window, serves_window
from .world import World


class Moved(NamedTuple):
    """A broker's process at another address than the one before it."""

    broker: str
    before: str
    came_ms: float
    """When it was started."""


def moved(world: World) -> Iterator[Moved]:
    """Every such process, by broker and time."""
    for broker in world.of_kind("broker", "slave"):
        for before, move in zip(broker.addresses, broker.moves, strict=False):
            came = (life.start_ms for life in world.lives_of(broker.name) if life.start_ms >= move.from_ms)
            if (came_ms := next(came, None)) is not None:
                yield Moved(broker.name, before, came_ms)


def forgotten(world: World, client: str, broker: str, came_ms: float) -> tuple[float, Window] | None:
    """When the last NameServer that this client may ask names an earlier address of the broker no more, because it has
    the new one, or nobody; None: nothing bounds it."""
    latest: tuple[float, Window] | None = None
    for server in world.listed(client):
        states = (s for s in _states(world, broker, server.name) if s.end_ms > came_ms)
        refill = serves_window(world.timers_of(server.name))
        settled = [
            max(
                (max(state.settled_ms, state.start_ms), state.window),
                (restarted_ms(world, state) + refill.latest_ms, refill),  # until then it has no route to give
                key=lambda one: one[0],
            )
            for state in states
            if state.judged and state.settled_ms < state.end_ms
        ]
        if not settled:
            return None
        first = min(settled, key=lambda one: one[0])
        latest = first if latest is None or first[0] > latest[0] else latest
    return latest


def _states(world: World, broker: str, name_server: str) -> Sequence[RouteState]:
    return [state for state in route_states(world) if (state.broker, state.name_server) == (broker, name_server)]


def restarted_ms(world: World, state: RouteState) -> float:
    """When this NameServer process was started, if it was not there when the run began with filled tables."""
    late = math.isfinite(world.joined_ms(state.name_server))
    later = world.lives_of(state.name_server)[0 if late else 1 :]
    return next((life.start_ms for life in later if life.incarnation == state.incarnation), -math.inf)


def with_old_addresses(world: World) -> World:
    """The same with the faults that old addresses are to clients."""
    found: list[Fault] = []
    for broker, before, came_ms in moved(world):
        soon_ms = came_ms + serves_window(world.timers_of(broker)).latest_ms
        for client in world.of_kind("producer", "consumer", "prober"):
            known = forgotten(world, client.name, broker, came_ms)
            until_ms = math.inf if known is None else known[0]
            if until_ms > soon_ms:
                about = f"{broker} at {before}", "old address", OLD_ADDRESS
                found.append(Fault(*about, client.name, broker, None, came_ms, until_ms))
    if not found:
        return world
    faults = sorted((*world.faults, *found), key=lambda f: (f.start_ms, f.fault_id, f.source, f.target or ""))
    return replace(world, faults=tuple(faults))
