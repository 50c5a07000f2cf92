"""Routes name the brokers that there are, and show queues and permissions as those registered them.

Each route that a NameServer held (`route`) or that a client took (`route_changed`) is held against the nodes of the run
and against what the brokers registered (registered_rows.py), so that what is wrong everywhere is found, too:

    name       a broker of the run has it
    id         so has this broker
    address    it is this broker's; else another's, twice in one route, or nobody's; whose queues are named has one
    queues     readQueueNums, writeQueueNums and perm are those that the broker registered, and none that a newer
               acknowledged registration replaced

In a cluster that others may join (`nemesrv up`) a name that none of our nodes has is the others' own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...oracle.intervals import Stretch, until_next, without
from ...oracle.promises import told_by_hand
from ...oracle.roles import may_be_shown
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import at_no_time, finding, verdict_of
from ..record.control import Control, Row, decoded
from ..record.known_brokers import due_words, known_brokers, words
from ..record.received import received
from ..record.registered_rows import QueueRow, RegisteredRows, registered_rows, row_of
from ..tolerance import Tolerance, tolerance

NAME = "routes_as_registered"
_ROW = "a route shows what brokers registered"


class _Held(NamedTuple):
    """A route of one process in [from_ms, to_ms)."""

    node: str
    is_name_server: bool
    topic: str
    from_ms: float
    to_ms: float
    value: str


class _Wrong(NamedTuple):
    """What of a route was wrong, and in which part of its time."""

    kind: str
    broker: str
    due: str
    from_ms: float
    to_ms: float
    as_read: bool = False
    """Whether a NameServer's transport read it so: the broker registered it."""


def judge(control: Control, world: World) -> Verdict:
    """Examined: routes that NameServers held and clients took. Violations: those with something that nobody has."""
    judged = _Judged(control, world)
    right: dict[str, list[_Held]] = defaultdict(list)
    findings: list[Finding] = []
    for held in _routes(control, world):
        wrong = list(judged.wrong(held))
        findings += [judged.finding(held, one) for one in wrong]
        if not wrong:
            right[held.node].append(held)
    findings += [
        finding(
            node,
            "as registered",
            (routes[0].from_ms, max(held.to_ms for held in routes)),
            at_no_time(_ROW),
            examined=len(routes),
        )
        for node, routes in right.items()
    ]
    return verdict_of(
        NAME,
        findings,
        measured={"routes": sum(f.examined for f in findings), "wrong": sum(f.wrong for f in findings)},
        nothing="no NameServer held a route and no client took one",
        noun="routes named what no broker is, or has",
    )


CHECK = Check(
    name=NAME,
    says="every route names brokers that there are, at their addresses, with queues and permissions as they registered",
    group=Group.ROUTES,
    section=Section.ROUTES,
    needs=(Needs.TABLES, Needs.BROKERS, Needs.TOPICS),
    judge=judge,
    tells=lambda measured: f"{measured.get('wrong', 0):,} of {measured.get('routes', 0):,} routes were wrong",
)


def _routes(control: Control, world: World) -> Iterator[_Held]:
    """Every route that a process held or took, with when: until its next one of the topic, or the process' end."""
    ends = {(life.node, life.incarnation): min(life.end_ms, world.end_ms) for life in world.lives}
    by_topic: dict[tuple[str, int, str], list[Row]] = defaultdict(list)
    for row in control.rows("route", "route_changed"):
        if row.time_ms < world.end_ms:
            by_topic[row.node, row.incarnation, row.topic or ""].append(row)
    for (node, incarnation, topic), rows in by_topic.items():
        end_ms = ends.get((node, incarnation), world.end_ms)
        for row, to_ms in until_next(rows, end_ms):
            if row.value is not None and row.value != "null":
                yield _Held(node, row.event == "route", topic, row.time_ms, to_ms, row.value)


class _Judged:
    """What every route is held against."""

    def __init__(self, control: Control, world: World) -> None:
        self._control, self._world = control, world
        self._known = known_brokers(world)
        self._owners = {at: name for name, ids in self._known.items() for of in ids.values() for at in of}
        self._rows: RegisteredRows = registered_rows(control, world)
        self._received = received(control, world)
        self._name_servers = tuple(node.name for node in world.of_kind("name_server"))
        self._by_hand = told_by_hand(world)
        self._others = self._joined(control) if world.run.get("scenario") == "up" else frozenset()
        self._said: dict[str, tuple[_Wrong, ...]] = {}

    def _joined(self, control: Control) -> frozenset[str]:
        """The brokers that others brought, by what NameServers say of their registrations."""
        rows = control.rows("registration")
        return frozenset(row.broker_name or "" for row in rows if not row.code and row.broker_name not in self._known)

    def wrong(self, held: _Held) -> Iterator[_Wrong]:
        """What is wrong with the route: one entry for each broker."""
        route = decoded(held.value)
        if not isinstance(route, Mapping):
            return
        if held.value not in self._said:  # names and addresses are wrong whenever they are told
            self._said[held.value] = tuple(self._of_brokers(route))
        found = self._said[held.value]
        yield from (one._replace(from_ms=held.from_ms, to_ms=held.to_ms) for one in found)
        seen = {one.broker for one in found}
        for broker, row in (route.get("queues") or {}).items():
            if broker not in seen and self._rows.knows(broker):
                yield from self._of_row(held, broker, row_of(row))

    def _of_brokers(self, route: Mapping[str, Any]) -> Iterator[_Wrong]:
        brokers: Mapping[str, Mapping[str, str]] = route.get("brokers") or {}
        named: dict[str, list[str]] = defaultdict(list)
        for name, ids in brokers.items():
            for address in set(ids.values()):
                named[address].append(name)
        for name in dict.fromkeys((*brokers, *(route.get("queues") or {}))):
            if name in self._others:
                continue
            known, told = self._known.get(name), brokers.get(name, {})
            ids = {
                id_: at
                for id_, at in told.items()
                if not self._by_hand.may_name(name, id_, at) and not may_be_shown(self._world, name, id_, at)
            }
            if known is None and not ids and name in self._by_hand.named:
                continue
            if known is None:
                yield _Wrong("no broker has this name", name, "no such broker", 0, 0)
                continue
            if not told:  # `pickupTopicRouteData` finds rows and brokers together; a consumer shares these queues out
                yield _Wrong("queues without an address", name, f"no queues of {name}", 0, 0)
                continue
            wrong = {at: kind for at in ids.items() if (kind := self._kind(known, *at, named))}
            if wrong:
                several = len(set(told.values())) > len(known)
                kind = "two addresses under one name" if several else next(iter(wrong.values()))
                read = any(self._received.was_read(name, *at) for at in wrong)
                yield _Wrong(kind, name, due_words(name, known), 0, 0, read)

    def _kind(
        self, known: Mapping[str, tuple[str, ...]], id_: str, address: str, named: Mapping[str, list[str]]
    ) -> str:
        """In words, what is wrong with an address; "" for nothing. When each is right is routes_are_true's business."""
        if address in known.get(id_, ()):
            return ""
        if any(address in of for of in known.values()):
            return "an id that the broker has not"
        if len(named[address]) > 1:
            return "one address under two names"
        return "another broker's address" if address in self._owners else "an address that no broker has"

    def _of_row(self, held: _Held, broker: str, row: QueueRow | None) -> Iterator[_Wrong]:
        """The longest time for which the row was not what the broker had registered; a client took it, and keeps it."""
        timers = self._world.timers
        if held.is_name_server:
            spans = [h for h in self._rows.held(held.node, held.topic, broker) if h.row == row]
            gaps = without(held.from_ms, held.to_ms, (Stretch(h.from_ms, h.to_ms) for h in spans))
            if gaps:
                from_ms, to_ms = max(gaps, key=lambda gap: gap.end_ms - gap.start_ms)
                yield _Wrong("not as registered", broker, self._due(held, broker, from_ms), from_ms, to_ms)
            return
        asked_ms = held.from_ms - timers.A_ms - timers.C_ms
        for name_server in self._name_servers:
            if row in self._rows.due(name_server, held.topic, broker, asked_ms, held.from_ms):
                return
        if self._is_borrowed(held, broker, row, asked_ms):
            return
        yield _Wrong("not as registered", broker, self._due(held, broker, held.from_ms), held.from_ms, held.to_ms)

    def _is_borrowed(self, held: _Held, broker: str, row: QueueRow | None, asked_ms: float) -> bool:
        """Whether the route is TBW102's, which a producer takes for that of a topic that is not there yet."""
        return row is not None and any(
            row[0] == row[1] <= max(read, write) and row[2] == perm
            for name_server in self._name_servers
            for read, write, perm in self._rows.due(name_server, "TBW102", broker, asked_ms, held.from_ms)
        )

    def _due(self, held: _Held, broker: str, at_ms: float) -> str:
        node = held.node if held.is_name_server else self._name_servers[0]
        rows = self._rows.due(node, held.topic, broker, at_ms, at_ms)
        if not rows:
            return f"{broker} without the topic"
        return f"{broker} " + " or ".join(f"[{r} read, {w} write, perm {p}]" for r, w, p in sorted(rows))

    def finding(self, held: _Held, wrong: _Wrong) -> Finding:
        over_ms = max(wrong.to_ms - wrong.from_ms, 0.0)
        tolerance_ = self._tolerance(held, wrong)
        return finding(
            (held.node, wrong.broker, held.topic),
            wrong.kind,
            (held.from_ms, held.to_ms),
            at_no_time(_ROW),
            out=(wrong.from_ms, wrong.to_ms),
            tolerance=tolerance_,
            more={"came": words(decoded(held.value)), "due": wrong.due, **({"as_read": True} if wrong.as_read else {})},
            **({} if wrong.kind == "not as registered" else {"wrong": int(over_ms > 0)}),
        )

    def _tolerance(self, held: _Held, wrong: _Wrong) -> Tolerance:
        nodes = (held.node, *([wrong.broker] if wrong.broker in self._known else []))
        lag_ms = self._control.lateness.largest(self._world, nodes, held.from_ms, wrong.from_ms)
        return tolerance(self._world.timers, lag_ms, 1)
