"""Which list of NameServers a broker or client may use, if it gets its list from an address server.

    served   ── list 0 ──────────────┬── list 1 ─────────────────────────
    in use   ── list 0 ──────────────┴ 0 or 1 ─────┴── list 1 ───────────
                                     └── N + 3 s ──┘ later where the node cannot reach the address server meanwhile

N: a client asks each 120 s, a broker each 120 s (4.9) or 10 s (5.x).
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ...remoting.top_addressing import CLIENT_PERIOD_S, FIRST_S, TASK, TIMEOUT_S, broker_period_s
from ..topology import ADDRESS_SERVER
from .intervals import Stretch, merged
from .recorded import Served
from .timers import Schedule
from .world import World, once


def period_ms(world: World, node: str) -> float:
    """N: how often this node asks."""
    is_broker = world.kind_of(node) in ("broker", "slave")
    return 1000 * (broker_period_s(world.timers.profile) if is_broker else CLIENT_PERIOD_S)


def fetches(world: World, node: str, row: str) -> tuple[Schedule, ...]:
    """Its task, where an address server has the list."""
    if not world.asks_for_list(node):
        return ()
    return (Schedule(TASK, "N", 1000 * FIRST_S, period_ms(world, node), row, shared=True),)


@once
def due_ms(world: World, node: str, served: Served) -> float:
    """By when the node must have fetched this list, or a later one."""
    at_ms = served.from_ms
    if not math.isfinite(at_ms):
        return at_ms
    round_ms = fetch_ms(world, node)
    due = at_ms + round_ms
    later = [(stretch.start_ms, stretch.end_ms + round_ms) for stretch in out_of_reach(world, node)]
    # A process that begins asks at once, or, a broker, at its first tick; then the period counts from there.
    later += [(life.start_ms, life.start_ms + 1000 * (FIRST_S + TIMEOUT_S)) for life in world.lives_of(node)]
    later += [(begins_ms, until_ms + round_ms) for begins_ms, until_ms in _held_up(world, node, at_ms)]
    for begins_ms, until_ms in sorted(later):
        if begins_ms <= due and until_ms > at_ms:
            due = max(due, until_ms)
    return due


def late_ms(world: World, node: str, served: Served) -> float:
    """How long after it is served the node may take this list; 0 for the first, and for none."""
    return due_ms(world, node, served) - served.from_ms if math.isfinite(served.from_ms) else 0.0


def _held_up(world: World, node: str, at_ms: float) -> Iterator[tuple[float, float]]:
    """When a broker's one timer thread may wait for NameServers that hang, instead of asking: a round lasts up to B,
    and where that is more than R, the next round follows at once."""
    if world.kind_of(node) not in ("broker", "slave"):
        return
    timers = world.timers_of(node)
    for server in world.of_kind("name_server"):
        for fault in (*world.process_faults(server.name), *world.link_faults(node, server.name)):
            if not fault.harmless(timers) and not fault.loss(timers).closes:
                yield fault.start_ms, fault.end_ms if timers.B_ms >= timers.R_ms else at_ms + timers.B_ms


def out_of_reach(world: World, node: str) -> list[Stretch]:
    """When the node may be unable to ask the address server: that, its link to it, or the node itself is not as it
    should be."""
    faults = world.way_faults(node, ADDRESS_SERVER)
    return merged(Stretch(one.start_ms, one.end_ms) for one in faults if not one.harmless(world.timers))


def fetch_ms(world: World, node: str) -> float:
    """How long after the address server is in reach the node has its list at the latest."""
    return period_ms(world, node) + 1000 * TIMEOUT_S


def in_use(world: World, node: str, from_ms: float, to_ms: float) -> Sequence[Served]:
    """The lists that the node may have at some time in [from_ms, to_ms], the oldest first."""
    own = Served(-math.inf, tuple(server.name for server in world.listed(node)))
    served = world.served if world.asks_for_list(node) else (own,)
    first = max((at for at, one in enumerate(served) if due_ms(world, node, one) <= from_ms), default=0)
    while first and set(served[first - 1].entries) == set(served[first].entries):
        first -= 1  # updateNameServerAddressList takes no list that has the same entries in another order
    return [one for one in served[first:] if one.from_ms <= to_ms] or served[first : first + 1]


def may_have(world: World, node: str, name_server: str, from_ms: float, to_ms: float) -> bool:
    """Whether the NameServer may be on the node's list at some time in [from_ms, to_ms]."""
    return any(name_server in one.entries for one in in_use(world, node, from_ms, to_ms))


def must_have(world: World, node: str, name_server: str, from_ms: float, to_ms: float) -> bool:
    """Whether the NameServer is on the node's list all the time in [from_ms, to_ms]."""
    return all(name_server in one.entries for one in in_use(world, node, from_ms, to_ms))


def changing(world: World, *, only_growing: bool = False) -> list[Stretch]:
    """From each change of the served list until the last broker and client must have it. `only_growing`: only of the
    changes after which the list has a NameServer that it had not before, and that brokers may not have found yet."""
    nodes = [
        one.name for one in world.of_kind("broker", "slave", "producer", "consumer") if world.asks_for_list(one.name)
    ]
    return [
        Stretch(served.from_ms, max(due_ms(world, node, served) for node in nodes))
        for before, served in pairwise(world.served)
        if nodes and not (only_growing and {*served.entries} <= {*before.entries})
    ]
