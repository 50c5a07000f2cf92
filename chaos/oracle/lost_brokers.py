"""For each client and broker: when the broker was lost to the client, and from when the client must know.

    broker lost ── removal at the last NameServer ── P + J (+ k·P + A) ──┬─ not in its routes ──── broker back
                                                            (+ Qr) ──────┴──┬─ not used ──────────┘

Plain functions over `World`. Not judged: a broker that some NameServer may rightly go on naming to the client.

Brokers that came back at another address: until when the old one may be named.

broker at x  ──┤ ends ├── at y ─┬─ registers ──────────────────────   a NameServer that it reaches: R + C
NameServer   x ─────────────────┴─ y                                   one that it does not reach drops x, as ever
client       x ──────────────────────── polls ─ y                      whom it asks, P + J later

When every NameServer that may answer a client must name a broker to it. Plain, over `World`.

broker and ns-0   ├── must hold ──┤ may lack ├────── must hold ──────
broker and ns-1   ├────── must hold ──────────────┤ ns-1 gone: it tells nobody anything
named             ├───────────────┤          ├───────────────────────
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..faults.fault import Loss
from ..topology import broker_name
from .intervals import Stretch, without
from .link import Cause, broker_causes, healed_from_ms, hung_brokers, link_causes, process_causes
from .lists import may_have
from .promises import ObligationKind, RouteState, obligations, route_states, told_by_hand
from .reach import cut_off_until, delayed_by_commits, failed_calls
from .recorded import NodeInfo, moved
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
