"""The window oracle: who must, may and must not hold a route, use a broker or stay on a NameServer, and when.

    route   NameServer → broker   its table names the broker            must · may · must not
    route   client → broker       its routes name the broker            must · may · must not
    use     client → broker       it sends to it, or pulls from it            may · must not
    stay    client → NameServer   it has chosen it                            may · must not

Every (subject, object, kind) is told without gaps from the subject's start to its end, in plain values, for reports and
for people; the checks judge by the same sources (obligations.py, lost_brokers.py, lost_name_servers.py). `may` is every
time that the project's failure-detection table leaves open; its `row` says why. Plain functions over `World`: no Spark,
no clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ...oracle.lost_brokers import absences
from ...oracle.lost_name_servers import name_server_losses
from ...oracle.obligations import ObligationKind, obligations
from ...oracle.world import Life, World


class Kind(StrEnum):
    ROUTE = "route"
    USE = "use"
    STAY = "stay"


class Rule(StrEnum):
    MUST = "must"
    MAY = "may"
    MUST_NOT = "must_not"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """In [from_ms, to_ms) the rule holds for the subject."""

    subject: str
    """The NameServer or client whose doing it is."""
    incarnation: int
    """Which process of the subject."""
    object: str
    """The broker, or for `stay` the NameServer."""
    kind: Kind
    rule: Rule
    from_ms: float
    to_ms: float
    formula: str = ""
    """The window that led here, in the symbols of the table; empty where none was opened."""
    row: str = ""
    """The row of the table."""
    fault_id: str = ""
    """The fault that this follows from, begun or healed; empty for none."""
    at_ms: float | None = None
    """The change that the window counts from."""


def intervals(world: World) -> tuple[Interval, ...]:
    """Every interval of the run, by subject, kind and object, in order of time."""
    return world.memoized("intervals", lambda: tuple(_intervals(world)))


def _intervals(world: World) -> list[Interval]:
    strict: dict[tuple[str, int, str, Kind], list[Interval]] = defaultdict(list)
    for interval in (*_tables(world), *_client_routes(world), *_uses(world), *_stays(world)):
        strict[interval.subject, interval.incarnation, interval.object, interval.kind].append(interval)
    found: list[Interval] = []
    brokers = [node.name for node in world.of_kind("broker")]
    name_servers = [node.name for node in world.of_kind("name_server")]
    for node in world.of_kind("name_server", "producer", "consumer"):
        told = [(Kind.ROUTE, brokers)]
        if node.kind != "name_server":
            told += [(Kind.USE, brokers), (Kind.STAY, name_servers)]
        for life in world.lives_of(node.name):
            for kind, objects in told:
                for object_ in objects:
                    ruled = strict[node.name, life.incarnation, object_, kind]
                    found += _without_gaps(world, life, object_, kind, ruled)
    return found


def _without_gaps(world: World, life: Life, object_: str, kind: Kind, ruled: Iterable[Interval]) -> list[Interval]:
    """The strict intervals in order of time, with `may` between them; the later of two that overlap is cut."""
    end_ms, now_ms = min(life.end_ms, world.end_ms), life.start_ms
    found: list[Interval] = []

    def may(to_ms: float, following: Interval | None) -> None:
        if now_ms < to_ms:
            found.append(
                Interval(
                    subject=life.node,
                    incarnation=life.incarnation,
                    object=object_,
                    kind=kind,
                    rule=Rule.MAY,
                    from_ms=now_ms,
                    to_ms=to_ms,
                    formula=following.formula if following else "",
                    row=following.row if following else "",
                    fault_id=following.fault_id if following else "",
                    at_ms=following.at_ms if following else None,
                )
            )

    for interval in sorted(ruled, key=lambda interval: interval.from_ms):
        from_ms, to_ms = max(interval.from_ms, now_ms), min(interval.to_ms, end_ms)
        if from_ms >= to_ms:
            continue
        may(from_ms, interval)
        if found and _same(found[-1], interval):
            found[-1] = replace(found[-1], to_ms=to_ms)
        else:
            found.append(replace(interval, from_ms=from_ms, to_ms=to_ms))
        now_ms = to_ms
    may(end_ms, None)
    return found


def _same(before: Interval, after: Interval) -> bool:
    """Whether the second only goes on with the first."""
    return all(getattr(before, name) == getattr(after, name) for name in ("rule", "formula", "row", "fault_id"))


def _tables(world: World) -> list[Interval]:
    """What each NameServer's table must hold, and must not."""
    return [
        Interval(
            subject=o.name_server,
            incarnation=o.incarnation,
            object=o.broker,
            kind=Kind.ROUTE,
            rule=Rule.MUST_NOT if o.demand is ObligationKind.DROP else Rule.MUST,
            from_ms=o.from_ms,
            to_ms=o.to_ms,
            formula=o.window.formula,
            row=o.window.row,
            fault_id=o.label.fault_id,
            at_ms=o.at_ms,
        )
        for o in obligations(world)
    ]


def _incarnation(world: World, node: str, at_ms: float) -> int:
    living = (life.incarnation for life in world.lives_of(node) if life.start_ms <= at_ms < life.end_ms)
    return next(living, -1)


def _absent(world: World, kind: Kind) -> list[Interval]:
    found: list[Interval] = []
    for a in absences(world):
        from_ms, window = (a.route_from_ms, a.route_window) if kind is Kind.ROUTE else (a.from_ms, a.window)
        found.append(
            Interval(
                subject=a.client,
                incarnation=_incarnation(world, a.client, a.start_ms),
                object=a.broker,
                kind=kind,
                rule=Rule.MUST_NOT,
                from_ms=from_ms,
                to_ms=a.end_ms,
                formula=window.formula,
                row=window.row,
                fault_id=a.fault_id,
                at_ms=a.start_ms,
            )
        )
    return found


def _uses(world: World) -> list[Interval]:
    return _absent(world, Kind.USE)


def _stays(world: World) -> list[Interval]:
    """When a client must not be on a NameServer that it had chosen before that one was lost."""
    return [
        Interval(
            subject=loss.client,
            incarnation=loss.incarnation,
            object=loss.name_server,
            kind=Kind.STAY,
            rule=Rule.MUST_NOT,
            from_ms=loss.from_ms,
            to_ms=loss.end_ms,
            formula=loss.window.formula,
            row=loss.window.row,
            fault_id=loss.fault_id,
            at_ms=loss.start_ms,
        )
        for loss in name_server_losses(world)
    ]


_CLIENT_ROW = "a client takes a route with its next poll"


def _client_routes(world: World) -> list[Interval]:
    """When a client's routes must name a broker: every NameServer has had to for one poll, failed calls included."""
    timers = world.timers
    found = _absent(world, Kind.ROUTE)
    held: dict[tuple[str, int, str], list[tuple[float, float]]] = defaultdict(list)
    for o in obligations(world):
        if o.demand is not ObligationKind.DROP:
            held[o.name_server, o.incarnation, o.broker].append((o.from_ms, o.to_ms))
    name_servers = [life for node in world.of_kind("name_server") for life in world.lives_of(node.name)]
    clients = world.of_kind("producer", "consumer")
    troubled = {client.name: _trouble(world, client.name) for client in clients}
    for broker in world.of_kind("broker"):
        # What any NameServer in use may leave out at some time, a client may lack until the poll after it.
        lacking: list[tuple[float, float]] = []
        for life in name_servers:
            stretches = held[life.node, life.incarnation, broker.name]
            lacking += _gaps(stretches, life.start_ms, min(life.end_ms, world.end_ms))
        for client in clients:
            for life in world.lives_of(client.name):
                unsure = [(from_ms, to_ms + timers.P_ms + timers.A_ms) for from_ms, to_ms in lacking]
                unsure += [*troubled[client.name], (life.start_ms, life.start_ms + timers.P_ms + timers.A_ms)]
                for from_ms, to_ms in _gaps(_union(unsure), life.start_ms, min(life.end_ms, world.end_ms)):
                    found.append(
                        Interval(
                            subject=client.name,
                            incarnation=life.incarnation,
                            object=broker.name,
                            kind=Kind.ROUTE,
                            rule=Rule.MUST,
                            from_ms=from_ms,
                            to_ms=to_ms,
                            formula="+ P + A",
                            row=_CLIENT_ROW,
                        )
                    )
    return found


def _trouble(world: World, client: str) -> list[tuple[float, float]]:
    """When the client itself, or a NameServer that it may be asking, is not as it should be, and two polls after it."""
    after_ms = 2 * world.timers.P_ms + world.timers.A_ms
    faults = list(world.process_faults(client))
    for node in world.of_kind("name_server"):
        faults += [*world.process_faults(node.name), *world.link_faults(client, node.name)]
    return [(fault.start_ms, fault.end_ms + after_ms) for fault in faults]


def _union(stretches: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for from_ms, to_ms in sorted(stretches):
        if found and from_ms <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], to_ms))
        else:
            found.append((from_ms, to_ms))
    return found


def _gaps(stretches: Sequence[tuple[float, float]], from_ms: float, to_ms: float) -> list[tuple[float, float]]:
    """What these stretches leave uncovered of [from_ms, to_ms)."""
    edges = [from_ms, *(edge for stretch in _union(stretches) for edge in stretch), to_ms]
    found = []
    for start_ms, end_ms in zip(edges[::2], edges[1::2], strict=True):
        start_ms, end_ms = max(start_ms, from_ms), min(end_ms, to_ms)
        if start_ms < end_ms:
            found.append((start_ms, end_ms))
    return found
