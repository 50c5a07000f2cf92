"""When a client has lost a single broker: by when NameServers drop it, the client's routes lack it, and the client
stops using it.

    broker lost ── t_rm ──┬── P + J (+ k·P + A) ──┬─ not in its routes ─────── broker back, or a second fault
                          │                       └── Qr, of a consumer ─┬─ not used
       every NameServer that may tell the client has dropped it          │
                                                                         └─ client_leave_window (windows.py)

Promises of the whole, asked where one fault at a time met the client (quiet.py): what it does while several meet
follows from what it was told, which is departures' (checks/record/broker_uses.py). Nothing is promised where the fault
keeps all NameServers from the client, or may have one of them name no other broker; nor of a topic's last broker.
Upstream: `RouteInfoManager`, `MQClientInstance.updateTopicRouteInfoFromNameServer`, `RebalanceImpl`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from ..faults.fault import Loss
from .intervals import touching
from .link import Cause, healed_from_ms, hung_brokers, link_causes, process_causes
from .promises import RouteState, route_states, told_by_hand
from .quiet import alone_until
from .reach import delayed_by_commits, failed_calls, is_reached_too_late, undisturbed
from .recorded import NodeInfo
from .windows import NEVER, Window, client_leave_window, serves_window
from .world import World, once

PROMISED = "promised by the scenario"


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A broker is lost to a client in [start_ms, end_ms)."""

    client: str
    broker: str
    fault_id: str
    start_ms: float
    route_from_ms: float
    """From then on the client's routes must not name the broker."""
    from_ms: float
    """From then on the client must not use the broker; not before `end_ms` where the absence was too short for that."""
    window: Window
    end_ms: float
    others: tuple[str, ...]
    """Brokers that were there throughout and named: a topic that one of them has does not lose its last broker."""
    address: str | None = None
    """Of the broker, where this one alone is gone from the client's routes; None: the broker is."""

    def outlasts(self, end_ms: float) -> bool:
        """Whether anything is asked of the client before that end."""
        return min(self.route_from_ms, self.from_ms) < end_ms

    @property
    def lost(self) -> str:
        """What is lost, in words."""
        return f"{self.broker} at {self.address}" if self.address else self.broker

    @property
    def after(self) -> str:
        """Which fault's beginning it counts from; "" for none."""
        return f"{self.fault_id} start" if self.fault_id else ""


def absences(world: World) -> Sequence[Absence]:
    """Every stretch of every (client, broker) that outlasts the window of the client's routes, or a promise."""
    return [absence for absence, _ in _losses(world) if absence.outlasts(absence.end_ms)]


def too_short(world: World) -> Sequence[Absence]:
    """Those in which the broker was back, at the same address, before the client's routes had to lack it, whatever else
    happened then."""

    def is_back(broker: str, start_ms: float, back_ms: float) -> bool:
        return world.address_at(broker, start_ms) == world.address_at(broker, back_ms)

    losses = [(absence, back_ms) for absence, back_ms in _losses(world) if not absence.outlasts(back_ms)]
    return [absence for absence, back_ms in losses if is_back(absence.broker, absence.start_ms, back_ms)]


@once
def _losses(world: World) -> Sequence[tuple[Absence, float]]:
    """Each, until a second fault or the broker's return, and when the broker was back."""
    found: list[tuple[Absence, float]] = []
    for client in world.of_kind("producer", "consumer"):
        for broker in (one.name for one in world.of_kind("broker", "slave")):
            causes = [*process_causes(world, broker), *link_causes(world, client.name, broker)]
            for start_ms, lasted_ms, fault_id in merged(causes, world.end_ms):
                back_ms = while_it_lives(world, client, start_ms, healed_from_ms(causes, lasted_ms))
                end_ms = min(back_ms, alone_until(world, client.name, start_ms))
                if start_ms < end_ms and undisturbed(world, client.name, start_ms, end_ms):
                    absence = _absence(world, client, broker, (start_ms, end_ms), fault_id)
                    found += [(absence, back_ms)] if absence else []
    return found


def _absence(world: World, client: NodeInfo, broker: str, lost: tuple[float, float], fault_id: str) -> Absence | None:
    """The one in this time, if anything is promised of it."""
    (start_ms, end_ms), timers = lost, world.timers_of(client.name)
    asked = [state for state in _states(world, broker, client.name) if state.start_ms < end_ms]
    end_ms = min([end_ms, *(state.start_ms for state in asked if state.up and state.start_ms > start_ms)])
    removed = _removed(world, asked, client.name, start_ms, end_ms)
    others = _others(world, broker, client.name, start_ms, end_ms)
    by_hand, topic = told_by_hand(world), world.topic_of(client.name)
    if any(by_hand.is_deleted(one.name, topic, start_ms, end_ms) for one in world.listed(client.name)):
        return None  # for code 17 it keeps its routes
    if removed is None or not others or is_reached_too_late(world, client.name, start_ms, end_ms):
        return None
    removal_ms, removal = removed
    hung = hung_brokers(world, client.name, start_ms, end_ms)
    failed = failed_calls(world, (client.name,), start_ms - timers.P_ms, removal_ms + timers.P_ms)

    def by(*, consumer: bool) -> tuple[float, Window]:
        window = client_leave_window(timers, removal, consumer=consumer, hung_brokers=hung, failed_calls=failed)
        window = delayed_by_commits(world, client.name, window, removal_ms - removal.latest_ms)
        return removal_ms + window.latest_ms - removal.latest_ms, window

    route_from_ms, _ = by(consumer=False)
    from_ms, use = by(consumer=client.kind == "consumer")
    use = held_to(world, use._replace(latest_ms=from_ms - start_ms), "brokers_left_within_s")
    return Absence(
        client=client.name,
        broker=broker,
        fault_id=fault_id,
        start_ms=start_ms,
        route_from_ms=route_from_ms,
        from_ms=start_ms + use.latest_ms,
        window=use,
        end_ms=end_ms,
        others=others,
    )


def held_to(world: World, window: Window, promise: str) -> Window:
    """The window, or what the scenario promises by that name where that is less."""
    promised_ms = world.promised_ms(promise)
    if promised_ms is None or promised_ms >= window.latest_ms:
        return window
    own = f"; RocketMQ allows {window.latest_ms / 1000:.4g} s: {window.formula}" if window.latest_ms < NEVER else ""
    return window._replace(latest_ms=promised_ms, formula=promise, row=PROMISED + own)


def merged(causes: Sequence[Cause], until_ms: float) -> list[tuple[float, float, str]]:
    """The stretches in which any of these causes held, with the fault that began each; the run's own start is none."""
    held = sorted(causes, key=lambda cause: (cause.start_ms, -cause.end_ms))
    held = [cause for cause in held if cause.start_ms < min(cause.end_ms, until_ms)]
    found = []
    for of in touching(held, attrgetter("start_ms"), attrgetter("end_ms")):
        fault_id = next((cause.fault_id for cause in of if cause.fault_id), "")
        if of[0].start_ms > -math.inf:
            found.append((of[0].start_ms, min(max(cause.end_ms for cause in of), until_ms), fault_id))
    return found


def _states(world: World, broker: str, client: str) -> list[RouteState]:
    listed = {server.name for server in world.listed(client)}
    return [state for state in route_states(world) if state.broker == broker and state.name_server in listed]


def _removed(
    world: World, states: Sequence[RouteState], client: str, start_ms: float, end_ms: float
) -> tuple[float, Window] | None:
    """When the last NameServer that may tell the client has dropped the broker, and by which window; None: never."""
    latest: tuple[float, Window] | None = None
    for state in states:
        from_ms, to_ms = max(state.start_ms, start_ms), min(state.end_ms, end_ms)
        if from_ms >= to_ms or _is_mute(world, client, state.name_server, from_ms, to_ms):
            continue
        if state.up or not state.judged:
            return None
        settled = max(state.settled_ms, start_ms), state.window
        refill = serves_window(world.timers_of(state.name_server))
        if state.incarnation:  # until it has its brokers again it has no route to give
            settled = max(settled, (state.start_ms + refill.latest_ms, refill), key=lambda one: one[0])
        latest = settled if latest is None else max(latest, settled, key=lambda one: one[0])
    return latest


_UNANSWERED = frozenset(
    {Loss.CLOSED, Loss.SILENT, Loss.BACKWARD_PACKETS, Loss.BACKWARD_PROXY, Loss.DROPPED, Loss.RESET}
)
"""Nothing that is asked over such a link is answered."""


def _is_mute(world: World, client: str, server: str, start_ms: float, end_ms: float) -> bool:
    """Whether the NameServer tells the client nothing all that time."""
    timers = world.timers_of(client)
    links = (one for one in world.link_faults(client, server) if one.loss(timers) in _UNANSWERED)
    return any(one.start_ms <= start_ms and one.end_ms >= end_ms for one in (*links, *world.process_faults(server)))


def _others(world: World, broker: str, client: str, start_ms: float, end_ms: float) -> tuple[str, ...]:
    """The other masters that nothing happened to, nor to the word of them of a NameServer that tells the client any."""
    tell = [one.name for one in world.listed(client) if not _is_mute(world, client, one.name, start_ms, end_ms)]
    starts = [life.start_ms for server in tell for life in world.lives_of(server)]

    def is_hit(other: str) -> bool:
        ways = [link_causes(world, other, server) for server in tell]
        causes = [cause for of in (process_causes(world, other), *ways) for cause in of]
        hit = any(cause.start_ms < end_ms and cause.end_ms > start_ms for cause in causes)
        return hit or any(start_ms < at_ms < end_ms for at_ms in starts)

    names = [node.name for node in world.seen_by(client, "broker") if node.name != broker]
    return tuple(name for name in names if not is_hit(name))


def while_it_lives(world: World, client: NodeInfo, start_ms: float, end_ms: float) -> float:
    """The end of what began then, for a client under test: whoever started it ends it when he likes."""
    life = world.life_at(client.name, start_ms) if client.is_under_test else None
    return min(end_ms, life.end_ms) if life else end_ms
