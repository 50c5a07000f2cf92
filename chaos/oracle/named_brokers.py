"""When every NameServer that may answer a client must name a broker to it. Plain, over `World`.

broker and ns-0   ├── must hold ──┤ may lack ├────── must hold ──────
broker and ns-1   ├────── must hold ──────────────┤ ns-1 gone: it tells nobody anything
named             ├───────────────┤          ├───────────────────────
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ..faults.losses import Loss
from .causes import process_causes
from .intervals import Stretch, without
from .obligations import ObligationKind, obligations
from .world import World

UNANSWERED = frozenset({Loss.CLOSED, Loss.SILENT, Loss.BACKWARD_PACKETS, Loss.BACKWARD_PROXY, Loss.DROPPED})
"""Nothing that is asked over such a link is answered."""


def named_to(world: World, client: str, broker: str) -> Sequence[Stretch]:
    """The stretches in which whichever NameServer of its list answers the client, the broker is in that one's table."""
    return _told_alike(world, client, broker, holds=True)


def unnamed(world: World, client: str, from_ms: float, to_ms: float) -> frozenset[str]:
    """The brokers that some NameServer which may answer the client may lack at some time in [from_ms, to_ms]."""
    brokers = (node.name for node in world.seen_by(client, "broker"))
    return frozenset(name for name in brokers if without(from_ms, to_ms, named_to(world, client, name)))


def denied_to(world: World, client: str, broker: str) -> Sequence[Stretch]:
    """The stretches in which none that answers the client has the broker in its table."""
    return _told_alike(world, client, broker, holds=False)


class NewRoutes(NamedTuple):
    """Up to so many routes that a client may newly take, the last of them at `until_ms` at the latest."""

    most: int
    until_ms: float


def new_routes(
    world: World, client: str, from_ms: float, to_ms: float, learns_ms: float, missing: Collection[str]
) -> NewRoutes:
    """Those of (from_ms, to_ms), of which each begins a producer's round of queues anew: one a poll, while NameServers
    may change, or differ in, what they name, and for `learns_ms` after. `missing`: the brokers that are lost; with a
    route that lacks the last of them all is well."""
    begins_ms, ends_ms = math.inf, from_ms
    others = [node for node in world.of_kind("broker", "slave") if {node.name} != {*missing}]
    for node in others:
        named, denied = (of(world, client, node.name) for of in (named_to, denied_to))
        found = without(-math.inf, math.inf, [*named, *denied])
        found += [Stretch(one.start_ms, one.start_ms) for one in (*named, *denied)]
        gone = {one.start_ms for one in denied} if node.name in missing else ()
        for change in found:
            known_ms = change.end_ms + (0.0 if change.end_ms in gone else learns_ms)
            if change.start_ms < to_ms and known_ms > from_ms:
                begins_ms, ends_ms = min(begins_ms, change.start_ms), max(ends_ms, known_ms)
    if math.isinf(begins_ms):
        return NewRoutes(0, from_ms)
    asks_ms = min(to_ms, ends_ms) - max(from_ms, begins_ms)
    return NewRoutes(1 + int(asks_ms // world.timers_of(client).P_ms), ends_ms)


def _told_alike(world: World, client: str, broker: str, *, holds: bool) -> Sequence[Stretch]:
    """When each NameServer of the client's list that answers it must hold the broker; `holds` False: must not."""

    def found() -> Sequence[Stretch]:
        tables = _tables(world, holds=holds)
        otherwise: list[Stretch] = []
        for server in world.listed(client):
            sure = [*tables.get((server.name, broker), ()), *_mute(world, client, server.name)]
            otherwise += without(-math.inf, math.inf, sure)
        return without(-math.inf, math.inf, otherwise)

    return world.memoized(("told alike", client, broker, holds), found)


def _mute(world: World, client: str, server: str) -> list[Stretch]:
    """When this NameServer answers the client nothing."""
    timers = world.timers_of(client)
    found = [Stretch(cause.start_ms, cause.end_ms) for cause in process_causes(world, server, "name_server")]
    links = world.link_faults(client, server)
    return found + [Stretch(fault.start_ms, fault.end_ms) for fault in links if fault.loss(timers) in UNANSWERED]


def _tables(world: World, *, holds: bool) -> Mapping[tuple[str, str], Sequence[Stretch]]:
    """(NameServer, broker) → when it must be in the table; `holds` False: must not. Before the timeline begins, tables
    and clients have all."""

    def found() -> Mapping[tuple[str, str], Sequence[Stretch]]:
        of: dict[tuple[str, str], list[Stretch]] = defaultdict(list)
        for o in obligations(world):
            if (o.demand is not ObligationKind.DROP) is holds:
                from_start = holds and o.at_ms <= world.timeline_ms and not o.label.fault_id
                of[o.name_server, o.broker].append(Stretch(-math.inf if from_start else o.from_ms, o.to_ms))
        return of

    return world.memoized(("told tables", holds), found)
