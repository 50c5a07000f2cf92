"""Failed operations in quiet times, and what explains them: a client's own list of NameServers, or a late machine.

Timers or proxies as late as a third of the time-out explain a failure. That other operations were slow as well explains
nothing, for it may be the same node's doing.
"""

import math
from typing import NamedTuple

from ...oracle.intervals import Stretch, merged
from ...oracle.lists import may_have, must_have
from ...oracle.quiet import dead
from ...oracle.reach import polls_meet_idle_closes
from ...oracle.recorded import stall_ms
from ...oracle.recovery import LOOK_UP
from ...oracle.world import World
from .slots import TRY, Tally
from .tallies import Tallies

_HOPS = 3
"""Event loops that must run one after the other for an answer: client, server, client."""


class Shortfall(NamedTuple):
    """Operations that failed where fewer, or none, may."""

    operation: str
    client: str
    start_ms: float
    end_ms: float
    tally: Tally
    why: str
    floor: float = 1.0


def lets_fail(world: World, from_ms: float, operation: str, client: str) -> bool:
    """Whether it may ask where nobody listens, or on a channel that is closed for idleness just then, or, of a send or
    pull, a NameServer that has no broker to name."""
    if operation == LOOK_UP:
        return polls_meet_idle_closes(world, client) or _dead_entries(world, client, from_ms, math.inf) > 0
    return frozenset() in world.views_of(client) or any(
        not any(
            must_have(world, one.name, server.name, from_ms, from_ms) and world.joined_ms(one.name) <= from_ms
            for one in world.seen_by(client, "broker")
        )
        for server in world.listed(client)
    )


def _dead_entries(world: World, client: str, from_ms: float, to_ms: float) -> int:
    """How many entries of its list nobody may listen at in that time: a NameServer's that is not there yet, or not any
    more, among them."""
    listed = (node.name for node in world.listed(client) if may_have(world, client, node.name, from_ms, to_ms))
    absent = [node for node in listed if any(fault.overlaps(from_ms, to_ms) for fault in dead(world, node))]
    return world.dead_entries(client) + len(absent)


def asks_first(tallied: Tallies, world: World, client: str, from_ms: float, tally: Tally) -> bool:
    """Whether these sends failed before the producer had a route, one at each dead entry of its list; all, where every
    entry is one."""
    until_ms = tally.last_bad_ms
    if until_ms is None:
        return False
    gone = (dead(world, node.name) for node in world.listed(client))
    if all(any(fault.start_ms <= from_ms and fault.end_ms >= until_ms for fault in faults) for faults in gone):
        return not tally.good
    if tally.bad > _dead_entries(world, client, from_ms, until_ms) * len(world.lives_of(client)):
        return False
    return len(world.lives_of(client)) > 1 or until_ms <= tallied.first_sent_ms.get(client, math.inf)


def lateness_of(fall: Shortfall, tallied: Tallies, world: World) -> float | None:
    """How late timers fired meanwhile."""
    nodes = [node.name for node in world.of_kind("name_server", "broker", "producer", "consumer")]
    return tallied.lateness.largest(world, nodes, fall.start_ms - world.timers.T_ms, fall.end_ms)


def is_explained(fall: Shortfall, late_ms: float | None, world: World) -> bool:
    """Whether loops so late can make these calls time out that nothing else disturbed; None: nobody measured it."""
    if late_ms is None:
        return True
    least_ms = min(_time_out_ms(world, fall), world.timers.A_ms)
    return late_ms * _HOPS >= least_ms and fall.tally.bad <= _most_late(world, fall, late_ms)


def _time_out_ms(world: World, fall: Shortfall) -> float:
    """The shortest that one of these operations waits."""
    producers = world.of_kind("producer") if fall.operation == TRY else ()
    caps = (world.send_cap_ms(producer.name) for producer in producers)
    return min([world.timers.T_ms, *(cap_ms for cap_ms in caps if cap_ms is not None)])


def _most_late(world: World, fall: Shortfall, lag_ms: float) -> float:
    """How many of these operations may have failed because processes, or Toxiproxy, stood still: one in each second of
    it, of a producer's tries one in each time-out, and those under way at both ends. inf: nothing stood still for
    long, so that many short delays are what there was."""
    timeout_ms = _time_out_ms(world, fall)
    from_ms = fall.start_ms - timeout_ms
    stalls = (Stretch(one.start_ms, one.end_ms) for one in world.faults if one.stood_still)
    met = merged(one for one in stalls if one.start_ms < fall.end_ms and one.end_ms > from_ms)
    if not fall.client or lag_ms < stall_ms(world.timers):
        return math.inf
    each, every_ms = (len(world.of_kind("producer")), timeout_ms) if fall.operation == TRY else (1, 1000.0)
    return each * (2 + sum(2 + math.ceil((end_ms - begin_ms) / every_ms) for begin_ms, end_ms in met))
