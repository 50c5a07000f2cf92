"""Finds in a history at which phase of its period each node's timer fired, so that a replay repeats the order of
events. The phase matters: a fault just after a tick takes effect up to one period (registration R, route poll P or scan
S) later. Pure: no I/O."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...chaos.history.schema import object_of
from ...chaos.oracle.world import World
from ...chaos.topology import broker_node

EVENTS = ("register", "registration", "scheduled_task", "broker_dropped", "name_server_call", "route_changed")
_TASKS = ("scanNotActiveBroker", "updateTopicRouteInfoFromNameServer", "registerBrokerAll")
_TOLERANCE_MS = 1500.0
"""Possible distance of one timer's ticks in the period: stamps have whole seconds, and calls take time."""


_PERIODS = {"producer": "P_ms", "consumer": "P_ms", "name_server": "S_ms", "broker": "R_ms", "slave": "R_ms"}


def phases_in(rows: Iterable[Mapping[str, Any]], world: World, zero_ms: float) -> dict[str, float]:
    """Return each node's timer phase in seconds after `zero_ms`, if the node's rows show it. Ticks before the first
    fault are preferred, because a fault can move ticks."""
    until_ms = min((fault.start_ms for fault in world.faults), default=math.inf)
    of: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for node, rank, at_ms in _ticks(row, world.timers.I_ms):
            of[node][rank if at_ms < until_ms else rank + _LATER].append(at_ms - zero_ms)
    found = {}
    for one in world.nodes:
        if one.name in of and one.kind in _PERIODS:
            period_ms = getattr(world.timers_of(one.name), _PERIODS[one.kind])
            found[one.name] = round(_phase_ms(of[one.name][min(of[one.name])], period_ms) / 1000, 3)
    return found


_LATER = 10


def _ticks(row: Mapping[str, Any], idle_ms: float) -> Iterable[tuple[str, int, float]]:
    """Return (node, how sure it is that this is a tick: 0 first, time)."""
    event, node, at_ms = row["event"], row["node"], float(row["time_ms"])
    took_ms = float(row.get("duration_ms") or 0.0)
    if event == "register":
        yield node, 1, at_ms - took_ms
    elif event == "registration" and not row.get("code"):
        yield broker_node(row["broker_name"], row["broker_id"]), 2, at_ms
    elif event == "scheduled_task" and row.get("f") in _TASKS:
        yield node, 0, at_ms - took_ms
    elif event == "broker_dropped":
        reason = object_of(row.get("value")).get("reason")
        broker = broker_node(row["broker_name"], row["broker_id"])
        if reason == "idle":  # I after the last thing it sent, a registration
            yield broker, 3, at_ms - idle_ms
        elif reason == "expired":
            yield node, 2, at_ms
    elif event == "name_server_call" and row.get("f") == "route" and row["role"] in ("producer", "consumer"):
        yield node, 1, at_ms - took_ms
    elif event == "route_changed" and row["role"] in ("producer", "consumer"):
        yield node, 2, at_ms


def _phase_ms(ticks_ms: Sequence[float], period_ms: float) -> float:
    """The phase at which most ticks fall, as their mean. Of two phases take the later, because a broker also registers
    when it starts and when a topic is created."""
    places = [at_ms % period_ms for at_ms in ticks_ms]

    def near(place: float) -> list[float]:
        return [apart for other in places if abs(apart := _apart(other - place, period_ms)) <= _TOLERANCE_MS]

    best = max(reversed(places), key=lambda place: len(near(place)))
    around = near(best)
    return (best + sum(around) / len(around)) % period_ms


def _apart(ms: float, period_ms: float) -> float:
    return (ms + period_ms / 2) % period_ms - period_ms / 2
