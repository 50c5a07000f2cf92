"""For each client and broker: when the broker was lost to the client, and from when the client must know.

    broker lost ── removal at the last NameServer ── P + J (+ k·P + A) ──┬─ not in its routes ──── broker back
                                                            (+ Qr) ──────┴──┬─ not used ──────────┘

Plain functions over `World`. Not judged: a broker that some NameServer may rightly go on naming to the client.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..faults.losses import Loss
from ..topology import broker_name
from .causes import Cause, healed_from_ms, link_causes, process_causes
from .hung import broker_causes, hung_brokers
from .lists import may_have
from .moved import forgotten, restarted_ms
from .named_brokers import UNANSWERED, named_to
from .obligations import RouteState, route_states
from .old_addresses import moved
from .reach import cut_off_until, delayed_by_commits, failed_calls
from .recorded import NodeInfo
from .told_by_hand import told_by_hand
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
    """Brokers that were there throughout, and named to the client whenever it had to ask: a topic that one of them has
    does not lose its last broker."""
    address: str | None = None
    """Of the broker, where this one alone is lost, because it came back at another; None: the broker is."""

    @property
    def lost(self) -> str:
        """What is lost, in words."""
        return f"{self.broker} at {self.address}" if self.address else self.broker

    @property
    def after(self) -> str:
        """Which fault's beginning, or end, it counts from; "" for none."""
        return f"{self.fault_id} {'end' if self.address else 'start'}" if self.fault_id else ""

    def names(self, route: Mapping[str, Any]) -> bool:
        """Whether the route names the lost address."""
        named = (route.get("brokers") or {}).get(broker_name(self.broker)) or {}
        return self.address is not None and self.address in named.values()


def absences(world: World) -> tuple[Absence, ...]:
    """Every stretch of every (client, broker) that outlasts the window of the client's routes."""
    return world.memoized("absences", lambda: tuple(_numbered([*_absences(world), *_of_addresses(world)])))


def _numbered(found: Iterable[Absence]) -> Iterator[Absence]:
    return (replace(absence, id=number) for number, absence in enumerate(found))


def _absences(world: World) -> list[Absence]:
    found: list[Absence] = []
    states: dict[str, list[RouteState]] = defaultdict(list)
    for state in route_states(world):
        states[state.broker].append(state)
    processes = broker_causes(world)
    masters = {node.name: processes[node.name] for node in world.of_kind("broker")}
    for client in world.of_kind("producer", "consumer"):
        for broker in processes:
            causes = [*processes[broker], *link_causes(world, client.name, broker)]
            for start_ms, lasted_ms, fault_id in merged(causes, world.end_ms):
                end_ms = while_it_lives(world, client, start_ms, healed_from_ms(causes, lasted_ms))
                if not alive(world, client.name, start_ms, end_ms):
                    continue
                if _unrouted_by_hand(world, client.name, start_ms, end_ms):
                    continue
                end_ms = _named_again_ms(world, states[broker], client.name, start_ms, end_ms)
                judged = _absence(world, states[broker], client.name, start_ms, end_ms)
                if judged is None:
                    continue
                removal_ms, removal = judged
                lost = _Lost(world, client, start_ms, end_ms, removal_ms, removal)
                others, asks_ms = lost.others(_others(broker, masters, start_ms, end_ms))
                route_from_ms, from_ms, use = lost.due(asks_ms)
                if route_from_ms >= end_ms:
                    continue
                found.append(
                    Absence(
                        id=0,
                        client=client.name,
                        broker=broker,
                        fault_id=fault_id,
                        start_ms=start_ms,
                        removal_ms=removal_ms,
                        route_from_ms=route_from_ms,
                        from_ms=from_ms,
                        window=use._replace(latest_ms=from_ms - start_ms),
                        end_ms=end_ms,
                        others=others,
                    )
                )
    return found


def _of_addresses(world: World) -> Iterator[Absence]:
    """Of each broker that came back at another address the one before: it is nobody's from then on, and NameServers
    name the new one as soon as the broker has registered with them."""
    masters = {node.name: broker_causes(world)[node.name] for node in world.of_kind("broker")}
    for broker, before, _, came_ms in moved(world):
        for client in world.of_kind("producer", "consumer"):
            end_ms = _until_disturbed(world, client.name, came_ms)
            judged = forgotten(world, client.name, broker, came_ms)
            if judged is None or judged[0] >= end_ms:
                continue
            hit = {name for name, causes in masters.items() if _is_hit(causes, came_ms, end_ms)}
            lost = _Lost(world, client, came_ms, end_ms, *judged)
            others, asks_ms = lost.others([name for name in masters if name == broker or name not in hit])
            route_from_ms, from_ms, use = lost.due(asks_ms)
            if others and route_from_ms < end_ms:
                yield Absence(
                    id=0,
                    client=client.name,
                    broker=broker,
                    fault_id=_ended_by(world, broker, came_ms),
                    start_ms=came_ms,
                    removal_ms=judged[0],
                    route_from_ms=route_from_ms,
                    from_ms=from_ms,
                    window=use._replace(latest_ms=from_ms - came_ms),
                    end_ms=end_ms,
                    others=others,
                    address=before,
                )


def _ended_by(world: World, broker: str, came_ms: float) -> str:
    """The last fault before that ended the broker's process."""
    ended = (f.fault_id for f in reversed(world.process_faults(broker)) if f.ends_process and f.start_ms <= came_ms)
    return next(ended, "")


def _until_disturbed(world: World, client: str, from_ms: float) -> float:
    """Until when the client runs on as it does then; `from_ms` itself where it does not run."""
    hit = (fault for fault in world.process_faults(client) if fault.end_ms > from_ms)
    ends = (life.end_ms for life in world.lives_of(client) if life.start_ms <= from_ms < life.end_ms)
    return min([world.end_ms, max(ends, default=from_ms), *(max(fault.start_ms, from_ms) for fault in hit)])


@dataclass(frozen=True, slots=True)
class _Lost:
    """A broker is lost to a client in [start_ms, end_ms), and dropped by every NameServer by `removal_ms`."""

    world: World
    client: NodeInfo
    start_ms: float
    end_ms: float
    removal_ms: float
    removal: Window

    def due(self, asks_ms: float) -> tuple[float, float, Window]:
        """From when on the broker must not be in the client's routes, from when on it must not use it, and that window,
        when NameServers have another broker to name from `asks_ms` on."""
        world, client, timers = self.world, self.client.name, self.world.timers_of(self.client.name)
        hung = hung_brokers(world, client, self.start_ms, self.end_ms)
        # The poll before it was lost, and the one after its removal.
        failed = failed_calls(world, (client,), self.start_ms - timers.P_ms, asks_ms + timers.P_ms)
        told_ms = cut_off_until(world, client, asks_ms, asks_ms + timers.P_ms)

        def until_ms(consumer: bool) -> tuple[float, Window]:
            window = client_leave_window(
                timers, self.removal, consumer=consumer, hung_brokers=hung, failed_calls=failed
            )
            if asks_ms > self.removal_ms:
                window = window._replace(formula=f"{window.formula}, from when NameServers must name another broker")
            window = delayed_by_commits(world, client, window, asks_ms - self.removal.latest_ms)
            return told_ms + window.latest_ms - self.removal.latest_ms, window

        route_from_ms, _ = until_ms(consumer=False)
        return route_from_ms, *until_ms(consumer=self.client.kind == "consumer")

    def others(self, there: Sequence[str]) -> tuple[tuple[str, ...], float]:
        """Those of the brokers that were there which NameServers must have named while the client had to ask, and from
        when on it had to: the removal, or when the first of them is named. None where none is for long enough."""
        named = {other: named_to(self.world, self.client.name, other) for other in there}
        begins = {max(stretch.start_ms, self.removal_ms) for of in named.values() for stretch in of}
        for asks_ms in sorted(at_ms for at_ms in begins if at_ms < self.end_ms):
            until_ms = min(self.due(asks_ms)[0], self.end_ms)
            those = [
                other for other, of in named.items() if any(s.start_ms <= asks_ms and s.end_ms >= until_ms for s in of)
            ]
            if those:
                return tuple(those), asks_ms
        return (), self.removal_ms


def _unrouted_by_hand(world: World, client: str, start_ms: float, end_ms: float) -> bool:
    """Whether somebody had the client's topic deleted at a NameServer of its list: for code 17 it keeps its routes."""
    by_hand, topic = told_by_hand(world), world.topic_of(client)
    return any(by_hand.is_deleted(server.name, topic, start_ms, end_ms) for server in world.listed(client))


def _others(broker: str, processes: Mapping[str, Sequence[Cause]], start_ms: float, end_ms: float) -> tuple[str, ...]:
    return tuple(
        other for other, causes in processes.items() if other != broker and not _is_hit(causes, start_ms, end_ms)
    )


def _is_hit(causes: Sequence[Cause], start_ms: float, end_ms: float) -> bool:
    return any(c.start_ms < end_ms and c.end_ms > start_ms for c in causes)


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


def _asked(
    world: World, states: Sequence[RouteState], client: str, start_ms: float, end_ms: float
) -> Iterator[RouteState]:
    """The states in that time of the NameServers that the client may ask."""
    listed = {server.name for server in world.listed(client)}
    for state in states:
        if state.end_ms <= start_ms or state.start_ms >= end_ms or state.name_server not in listed:
            continue
        from_ms, to_ms = max(state.start_ms, start_ms), min(state.end_ms, end_ms)
        if not may_have(world, client, state.name_server, from_ms, to_ms):
            continue
        asks = world.link_faults(client, state.name_server)
        silent = [f for f in asks if f.loss(world.timers) in (*UNANSWERED, Loss.RESET)]
        if not any(f.start_ms <= from_ms and f.end_ms >= to_ms for f in silent):
            yield state


def _named_again_ms(world: World, states: Sequence[RouteState], client: str, start_ms: float, end_ms: float) -> float:
    """The end of what began then, or when a NameServer may have the broker again while the client still cannot reach
    it: a fault of many links is healed link by link."""

    def from_ms(state: RouteState) -> float:
        broker, server = state.broker, state.name_server
        return healed_from_ms([*process_causes(world, broker), *link_causes(world, broker, server)], state.start_ms)

    asked = _asked(world, states, client, start_ms, end_ms)
    again = (from_ms(state) for state in asked if state.up and state.start_ms > start_ms)
    return max(start_ms, min(again, default=end_ms))


def _absence(
    world: World, states: Sequence[RouteState], client: str, start_ms: float, end_ms: float
) -> tuple[float, Window] | None:
    """When the last NameServer that this client may ask has dropped the broker, and by which window; None: never."""
    latest: tuple[float, Window] | None = None
    for state in _asked(world, states, client, start_ms, end_ms):
        if state.up:
            return None
        if not state.judged:
            if any(f.overlaps(state.start_ms, state.end_ms) for f in world.process_faults(state.name_server)):
                continue  # a stopped NameServer tells nobody anything; what it does afterwards is another state
            return None
        settled_ms, window = max(state.settled_ms, start_ms), state.window
        refill = serves_window(world.timers_of(state.name_server))
        refilled_ms = restarted_ms(world, state.name_server, state.incarnation) + refill.latest_ms
        if refilled_ms > settled_ms:  # until then it has no route to give, and a client keeps the old one
            settled_ms, window = refilled_ms, refill
        if latest is None or settled_ms > latest[0]:
            latest = (settled_ms, window)
    return latest


def while_it_lives(world: World, client: NodeInfo, start_ms: float, end_ms: float) -> float:
    """The end of what began then, for a client under test: whoever started it ends it when he likes."""
    if not client.is_under_test:
        return end_ms
    life = next((life for life in world.lives_of(client.name) if life.start_ms <= start_ms < life.end_ms), None)
    return end_ms if life is None else min(end_ms, life.end_ms)


def alive(world: World, client: str, start_ms: float, end_ms: float) -> bool:
    """Whether the client ran undisturbed all the time."""
    disturbed = any(fault.overlaps(start_ms, end_ms) for fault in world.process_faults(client))
    running = any(life.start_ms <= start_ms and life.end_ms >= end_ms for life in world.lives_of(client))
    return running and not disturbed
