"""When every NameServer that may answer a client must name a broker to it. Plain, over `World`.

broker and ns-0   ├── must hold ──┤ may lack ├────── must hold ──────
broker and ns-1   ├────── must hold ──────────────┤ ns-1 gone: it tells nobody anything
named             ├───────────────┤          ├───────────────────────
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from ..faults.losses import Loss
from .causes import process_causes
from .intervals import Stretch, without
from .obligations import ObligationKind, obligations
from .world import World

_UNANSWERED = frozenset({Loss.CLOSED, Loss.SILENT, Loss.BACKWARD_PACKETS, Loss.BACKWARD_PROXY, Loss.DROPPED})
"""Nothing that is asked over such a link is answered."""


def named_to(world: World, client: str, broker: str) -> Sequence[Stretch]:
    """The stretches in which whichever NameServer of its list answers the client, the broker is in that one's table."""

    def found() -> Sequence[Stretch]:
        held = _held(world)
        lacking: list[Stretch] = []
        for server in world.listed(client):
            names = [*held.get((server.name, broker), ()), *_mute(world, client, server.name)]
            lacking += without(-math.inf, math.inf, names)
        return without(-math.inf, math.inf, lacking)

    return world.memoized(("named to", client, broker), found)


def unnamed(world: World, client: str, from_ms: float, to_ms: float) -> frozenset[str]:
    """The brokers that some NameServer which may answer the client may lack at some time in [from_ms, to_ms]."""
    brokers = (node.name for node in world.seen_by(client, "broker"))
    return frozenset(name for name in brokers if without(from_ms, to_ms, named_to(world, client, name)))


def _mute(world: World, client: str, server: str) -> list[Stretch]:
    """When this NameServer answers the client nothing."""
    timers = world.timers_of(client)
    found = [Stretch(cause.start_ms, cause.end_ms) for cause in process_causes(world, server, "name_server")]
    links = world.link_faults(client, server)
    return found + [Stretch(fault.start_ms, fault.end_ms) for fault in links if fault.loss(timers) in _UNANSWERED]


def _held(world: World) -> Mapping[tuple[str, str], Sequence[Stretch]]:
    """(NameServer, broker) → when it must be in the table. Before the timeline begins, tables and clients have all."""

    def found() -> Mapping[tuple[str, str], Sequence[Stretch]]:
        of: dict[tuple[str, str], list[Stretch]] = defaultdict(list)
        for o in obligations(world):
            if o.demand is not ObligationKind.DROP:
                from_start = o.at_ms <= world.timeline_ms and not o.label.fault_id
                of[o.name_server, o.broker].append(Stretch(-math.inf if from_start else o.from_ms, o.to_ms))
        return of

    return world.memoized("must be held", found)
