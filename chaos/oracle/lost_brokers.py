"""For each client and broker: when the broker was lost to the client, and from when the client must know.

    broker lost ── removal at the last NameServer ── P + J (+ k·P + A) ──┬─ not in its routes ──── broker back
                                                            (+ Qr) ──────┴──┬─ not used ──────────┘

Plain functions over `World`. Not judged: a broker that some NameServer may rightly go on naming to the client.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .causes import Cause, link_causes
from .hung import broker_causes, hung_brokers
from .obligations import RouteState, route_states
from .reach import cut_off_until, delayed_by_commits, failed_calls
from .windows import Window, client_leave_window, serves_window
from .world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A broker is lost to a client in [start_ms, end_ms)."""

    id: int
    client: str
    broker: str
    fault_id: str
    start_ms: float
    removal_ms: float
    """When the last NameServer that the client may ask must have dropped the broker."""
    route_from_ms: float
    """From then on the client's routes must not name the broker."""
    from_ms: float
    """From then on the client must not use the broker; not before `end_ms` where the absence was too short for that."""
    window: Window
    end_ms: float
    others: tuple[str, ...]
    """Brokers that were there throughout: a topic that one of them has does not lose its last broker."""


def absences(world: World) -> tuple[Absence, ...]:
    """Every stretch of every (client, broker) that outlasts the window of the client's routes."""
    return world.memoized("absences", lambda: tuple(_absences(world)))


def _absences(world: World) -> list[Absence]:
    found: list[Absence] = []
    states: dict[str, list[RouteState]] = defaultdict(list)
    for state in route_states(world):
        states[state.broker].append(state)
    processes = broker_causes(world)
    for client in world.of_kind("producer", "consumer"):
        timers = world.timers_of(client.name)
        for broker in processes:
            causes = [*processes[broker], *link_causes(world, client.name, broker)]
            for start_ms, end_ms, fault_id in merged(causes, world.end_ms):
                if not alive(world, client.name, start_ms, end_ms):
                    continue
                judged = _absence(world, states[broker], client.name, start_ms, end_ms)
                if judged is None:
                    continue
                removal_ms, removal = judged
                hung = hung_brokers(world, client.name, start_ms, end_ms)
                poll_ms = timers.P_ms  # the poll before it was lost, and the one after its removal
                failed = failed_calls(world, (client.name,), start_ms - poll_ms, removal_ms + poll_ms)
                route = client_leave_window(timers, removal, hung_brokers=hung, failed_calls=failed)
                began_ms = removal_ms - removal.latest_ms
                route = delayed_by_commits(world, client.name, route, began_ms)
                use = client_leave_window(
                    timers,
                    removal,
                    consumer=client.kind == "consumer",
                    hung_brokers=hung,
                    failed_calls=failed,
                )
                use = delayed_by_commits(world, client.name, use, began_ms)
                told_ms = cut_off_until(world, client.name, removal_ms, removal_ms + poll_ms)
                route_from_ms = told_ms + route.latest_ms - removal.latest_ms
                from_ms = told_ms + use.latest_ms - removal.latest_ms
                if route_from_ms >= end_ms:
                    continue
                found.append(
                    Absence(
                        id=len(found),
                        client=client.name,
                        broker=broker,
                        fault_id=fault_id,
                        start_ms=start_ms,
                        removal_ms=removal_ms,
                        route_from_ms=route_from_ms,
                        from_ms=from_ms,
                        window=use._replace(latest_ms=from_ms - start_ms),
                        end_ms=end_ms,
                        others=_others(broker, processes, start_ms, end_ms),
                    )
                )
    return found


def _others(broker: str, processes: Mapping[str, Sequence[Cause]], start_ms: float, end_ms: float) -> tuple[str, ...]:
    return tuple(
        other
        for other, causes in processes.items()
        if other != broker and not any(c.start_ms < end_ms and c.end_ms > start_ms for c in causes)
    )


def merged(causes: Sequence[Cause], until_ms: float) -> list[tuple[float, float, str]]:
    """The stretches in which any of these causes held, with the fault that began each; the run's own start is none."""
    found: list[tuple[float, float, str]] = []
    for cause in sorted(causes, key=lambda cause: (cause.start_ms, -cause.end_ms)):
        end_ms = min(cause.end_ms, until_ms)
        if cause.start_ms >= end_ms:
            continue
        if found and cause.start_ms <= found[-1][1]:
            start_ms, before_ms, fault_id = found[-1]
            found[-1] = (start_ms, max(before_ms, end_ms), fault_id or cause.fault_id)
        else:
            found.append((cause.start_ms, end_ms, cause.fault_id))
    return [stretch for stretch in found if stretch[0] > -math.inf]


def _absence(
    world: World, states: Sequence[RouteState], client: str, start_ms: float, end_ms: float
) -> tuple[float, Window] | None:
    """When the last NameServer that this client may ask has dropped the broker, and by which window; None: never."""
    latest: tuple[float, Window] | None = None
    listed = {server.name for server in world.listed(client)}
    for state in states:
        if state.end_ms <= start_ms or state.start_ms >= end_ms or state.name_server not in listed:
            continue
        unreachable = any(
            fault.start_ms <= max(state.start_ms, start_ms) and fault.end_ms >= min(state.end_ms, end_ms)
            for fault in world.link_faults(client, state.name_server)
        )
        if unreachable:
            continue
        if state.up:
            return None
        if not state.judged:
            if any(f.overlaps(state.start_ms, state.end_ms) for f in world.process_faults(state.name_server)):
                continue  # a stopped NameServer tells nobody anything; what it does afterwards is another state
            return None
        settled_ms, window = max(state.settled_ms, start_ms), state.window
        refill = serves_window(world.timers_of(state.name_server))
        refilled_ms = _restarted_ms(world, state) + refill.latest_ms
        if refilled_ms > settled_ms:  # until then it has no route to give, and a client keeps the old one
            settled_ms, window = refilled_ms, refill
        if latest is None or settled_ms > latest[0]:
            latest = (settled_ms, window)
    return latest


def _restarted_ms(world: World, state: RouteState) -> float:
    """When this NameServer process was started, if it is not the node's first: the run began with filled tables."""
    later = world.lives_of(state.name_server)[1:]
    return next((life.start_ms for life in later if life.incarnation == state.incarnation), -math.inf)


def alive(world: World, client: str, start_ms: float, end_ms: float) -> bool:
    """Whether the client ran undisturbed all the time."""
    disturbed = any(fault.overlaps(start_ms, end_ms) for fault in world.process_faults(client))
    running = any(life.start_ms <= start_ms and life.end_ms >= end_ms for life in world.lives_of(client))
    return running and not disturbed
