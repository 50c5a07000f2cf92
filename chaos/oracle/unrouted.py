"""How long a producer that has no route yet may go on failing: until a NameServer answers it with one. Plain.

A client that has a route keeps it whatever its NameServer says or does not say. One that never had any asks with every
send, and fails with it: at a NameServer that is lost to it, and at one that holds no broker.
"""

from __future__ import annotations

import math

from ..faults.losses import Dial
from ..topology import is_slave
from .obligations import route_states
from .reach import Moment, lost, sticks
from .windows import NEVER, Window
from .world import World

_ROW = "producer without a route asks with each send"


def unrouted_window(world: World, client: str, moment: Moment) -> Window | None:
    """From the moment to the first good send of a producer without a route; None where every NameServer has one."""
    timers, servers = world.timers_of(client), world.seen_by(client, "name_server")
    now = lost(world, client, "name_server", moment.at_ms)
    failing = lost(world, client, "name_server", moment.at_ms, for_ms=timers.P_ms + timers.A_ms)
    if len(now) == len(servers):
        return Window(0, NEVER, "never", "no route, and every NameServer is lost to the client") if servers else None
    if any(_takes_the_whole_call(world, client, node.name, moment.at_ms) for node in servers):
        return Window(
            0, NEVER, "never", "no route, and a NameServer in the list whose dial takes a look-up's whole time"
        )
    if any(sticks(world, client, node.name, moment.at_ms - timers.A_ms, moment.at_ms) for node in servers):
        return Window(0, NEVER, "never", "no route, and a NameServer that it stays with though it does not answer")
    held_ms = max(_held_ms(world, node.name, moment.at_ms) for node in servers if node.name not in now)
    if not failing and held_ms <= moment.at_ms:
        return None
    if math.isinf(held_ms):
        return Window(0, NEVER, "never", "no route, and a NameServer that holds no broker")
    rate = float(world.workload.get("sends_per_s") or 1.0)
    k, waits_ms = len(failing), max(0.0, held_ms - moment.at_ms)
    latest_ms = waits_ms + (k + 1) * (2 * timers.A_ms + 1000.0 / rate)
    formula = f"({k} + 1)·(2·A + 1/rate)"
    return Window(0, latest_ms, f"R + C + {formula}" if waits_ms else formula, _ROW, k + 2)


def _takes_the_whole_call(world: World, client: str, name_server: str, at_ms: float) -> bool:
    """Whether a dial to it, whose SYNs are lost, leaves a look-up no time: the next NameServer of the list is dialled,
    not asked, and its connection closed for the call's time-out, so that the next look-up begins with the same dial."""
    timers = world.timers_of(client)
    if timers.C_ms < timers.A_ms:
        return False
    faults = world.link_faults(client, name_server)
    return any(fault.kind.dial is Dial.DROPPED and fault.start_ms <= at_ms < fault.end_ms for fault in faults)


def _held_ms(world: World, name_server: str, at_ms: float) -> float:
    """From when on this NameServer must hold some broker; inf where nothing says so."""
    settled = [
        state.settled_ms
        for state in route_states(world)
        if not is_slave(state.broker)  # it brings no topics
        and state.name_server == name_server
        and state.up
        and state.start_ms <= at_ms < state.end_ms
    ]
    return min(settled, default=math.inf)
