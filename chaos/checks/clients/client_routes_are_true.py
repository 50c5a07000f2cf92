"""Each client's routes are those that its NameServers give, and follow within one poll what all of them must hold.

A producer's or consumer's routes (`route_changed`) are held against three things:

    taken      the NameServer's answer to a look-up of the topic is the client's route from then on, until the next
    must       a broker that every NameServer must hold is in the client's route P + A + J later, k·P + A more where k
               of its calls may fail; it stays there as long as they must hold it
    must not   a broker that is lost is in no route any more when the client's window is over (lost_brokers.py), unless
               it was the topic's last

The first is exact whatever NameServers say; the other two find a client that asks too seldom, or whom nobody told.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...oracle.intervals import Stretch, until_next, without
from ...oracle.link import hung_brokers
from ...oracle.lists import certainly_off
from ...oracle.lost_brokers import absences, alive, restarted_ms
from ...oracle.reach import cut_off_until, failed_calls
from ...oracle.recorded import Life
from ...oracle.roles import elected_ids, shown_ids
from ...oracle.windows import Window, client_leave_window
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import Rule, at_no_time, finding, verdict_of
from ..record.control import Control, decoded
from ..record.demands import Demand, Demands, demand_tolerances
from ..record.known_brokers import brokers_at, has_broker, known_brokers, words
from ..record.lateness import Missing
from ..record.route_answers import RouteAnswer, route_answers
from ..record.route_tables import Process, RouteTables, brokers_of, route_tables
from ..tolerance import Tolerance, tolerance

NAME = "client_routes_are_true"
_LOST_ROW = "a client's routes follow those of its NameServer"
_TEMPLATE = "TBW102"
"""What a producer asks for in place of a topic that is not there yet."""

Client = tuple[str, int]
"""Node and incarnation."""


class Taken(NamedTuple):
    """The client's route of a topic in [from_ms, to_ms)."""

    from_ms: float
    to_ms: float
    value: str


class _Span(NamedTuple):
    from_ms: float
    to_ms: float
    after: str
    tolerance_ms: float
    """How much later than `from_ms` NameServers may be right."""


def judge(control: Control, world: World) -> Verdict:
    """Examined: answers that clients had to take, and stretches in which a route must, or must not, have a broker."""
    judged = _Judged(control, world)
    findings = [*judged.taken(), *judged.must(), *judged.must_not()]
    measured = {"answers": sum(f.examined for f in findings if f.kind == _TAKES), "routes": len(judged.routes)}
    return verdict_of(
        NAME,
        findings,
        measured=measured,
        nothing="no client took a route",
        noun="times a client's route was not what NameServers told it, or must have told it",
    )


CHECK = Check(
    name=NAME,
    says="each client's routes are what NameServers answer, and have every broker that all of them must hold",
    group=Group.CLIENT_ROUTES,
    section=Section.CLIENTS,
    needs=(Needs.CLIENTS, Needs.TABLES),
    judge=judge,
    tells=lambda measured: (
        f"{measured.get('answers', 0):,} answers taken, {measured.get('routes', 0):,} topics of clients"
    ),
)

_TAKES = "takes what it is told"


class _Judged:
    def __init__(self, control: Control, world: World) -> None:
        self._control, self._world = control, world
        self._addresses = known_brokers(world) if world.has_slaves else {}
        """By which a lost broker is told from another of its name, where there may be one."""
        self._lives: Mapping[Client, Life] = {
            (life.node, life.incarnation): life
            for node in world.of_kind("producer", "consumer")
            for life in world.lives_of(node.name)
        }
        self.routes = self._taken_routes()
        """(client, topic) → its routes in order of time."""

    def _taken_routes(self) -> Mapping[tuple[Client, str], Sequence[Taken]]:
        changes: dict[tuple[Client, str], list[tuple[float, str]]] = defaultdict(list)
        for row in self._control.rows("route_changed"):
            if row.process in self._lives and row.value is not None and row.time_ms < self._world.end_ms:
                changes[row.process, row.topic or ""].append((row.time_ms, row.value))
        found = {}
        for (client, topic), of in changes.items():
            states = until_next(of, self._end_ms(client))
            found[client, topic] = [Taken(at_ms, to_ms, value) for (at_ms, value), to_ms in states]
        return found

    def _end_ms(self, client: Client) -> float:
        return min(self._lives[client].end_ms, self._world.end_ms)

    # -- taken

    def taken(self) -> Iterator[Finding]:
        """Each client and topic: whether every answer became its route."""
        told: dict[tuple[Client, str], list[RouteAnswer]] = defaultdict(list)
        templates: dict[Client, set[str]] = defaultdict(set)
        for answer in route_answers(self._control, self._world):
            client = answer.asker, answer.incarnation
            if client not in self._lives or not answer.is_readable:
                continue
            if answer.topic == _TEMPLATE:
                templates[client] |= set(brokers_of(answer.value))
            else:
                told[client, answer.topic].append(answer)
        for (client, topic), answers in told.items():
            yield self._took(client, topic, answers, templates[client])

    def _took(self, client: Client, topic: str, answers: Sequence[RouteAnswer], template: set[str]) -> Finding:
        routes = self.routes.get((client, topic), ())
        starts = [taken.from_ms for taken in routes]
        worst: tuple[float, RouteAnswer, str | None] = (0.0, answers[0], None)
        for answer, to_ms in until_next(answers, self._end_ms(client), lambda answer: answer.from_ms):
            if not alive(self._world, client[0], answer.from_ms, answer.to_ms):
                continue
            at = bisect_right(starts, answer.to_ms) - 1
            kept = routes[at].value if at >= 0 else None
            if kept == answer.value or (kept is not None and decoded(kept) == answer.route):
                continue
            until_ms = next((t.from_ms for t in routes[at + 1 :] if t.value == answer.value), to_ms)
            over_ms = min(until_ms, to_ms) - answer.to_ms
            if over_ms > worst[0] and not self._is_borrowed(kept, answer, template):
                worst = over_ms, answer, kept
        over_ms, answer, kept = worst
        tolerance_ = self._tolerance(client[0], answer.from_ms, answer.to_ms, 1)
        wrong = over_ms > tolerance_.valid_up_to_ms
        return finding(
            (client[0], answer.name_server, topic),
            _TAKES,
            (answers[0].from_ms, self._end_ms(client)),
            at_no_time("an answer becomes the client's route at once"),
            out=(answer.to_ms, answer.to_ms + over_ms) if wrong else None,
            tolerance=tolerance_,
            measured_ms=over_ms or None,
            over_ms=over_ms,
            examined=len(answers),
            more={"came": words(decoded(kept)) if kept else "no route", "due": answer.came} if wrong else {},
        )

    def _is_borrowed(self, kept: str | None, answer: RouteAnswer, template: set[str]) -> bool:
        """Whether the route may be TBW102's: only where the topic's own has no queue to write to."""
        writable = any(row[2] & 2 for row in ((answer.route or {}).get("queues") or {}).values())
        return not writable and kept is not None and set(brokers_of(kept)) <= template

    # -- must and must not

    def must(self) -> Iterator[Finding]:
        """Each client, topic and broker, for each stretch in which all NameServers of its list must hold it."""
        wanted: dict[tuple[str, str], dict[str, list[_Span]]] = defaultdict(lambda: defaultdict(list))
        tables = route_tables(self._control, self._world)
        tolerances = demand_tolerances(self._control, self._world)
        for (process, topic), demands in Demands(tables, self._world).by_route().items():
            for d in demands:
                if d.wants:
                    tolerance_ms = tolerances[d.obligation.id].unknown_up_to_ms
                    from_ms = max(d.from_ms, min(self._serves_ms(process), d.to_ms))
                    wanted[topic, d.obligation.broker][process[0]] += [
                        _Span(had.start_ms, had.end_ms, str(d.obligation.label), tolerance_ms)
                        for had in without(from_ms, d.to_ms, self._stalls(tables, process, topic, d))
                    ]
        for (topic, broker), by_name_server in wanted.items():
            common: dict[tuple[object, ...], list[_Span]] = {}
            for client, of in self.routes:
                if of != topic:
                    continue
                names = tuple(sorted(node.name for node in self._world.listed(client[0])))
                key = (client[0] if self._world.asks_for_list(client[0]) else "", *names)
                if key not in common:
                    each = [[*by_name_server.get(name, []), *self._off(client[0], name)] for name in names]
                    common[key] = [*_common(each)]
                yield from self._must_have(client, topic, broker, common[key])

    def _serves_ms(self, process: Process) -> float:
        """From when on it tells what it has: with needWaitForService W after its start."""
        return restarted_ms(self._world, *process) + (self._world.timers_of(process[0]).W_ms or 0.0)

    def _stalls(self, tables: RouteTables, process: Process, topic: str, demand: Demand) -> list[Stretch]:
        """When the NameServer did not have the broker, though it had to, and the machine explains it: what it does not
        have it tells nobody."""
        lost = [
            Stretch(s, min(e, demand.to_ms))
            for present, s, e in tables.presence(process, topic, demand.obligation.broker)
            if not present and demand.from_ms <= s < demand.to_ms
        ]
        pair = process[0], demand.obligation.broker
        missing = {number: Missing(pair, *stretch) for number, stretch in enumerate(lost)}
        return [lost[number] for number in sorted(self._control.lateness.stalled(self._world, missing))]

    def _off(self, client: str, name_server: str) -> Iterator[_Span]:
        """When the NameServer cannot be on the client's list, so that it tells it nothing."""
        for stretch in certainly_off(self._world, client, name_server):
            yield _Span(stretch.start_ms, stretch.end_ms, "", 0.0)

    def _must_have(self, client: Client, topic: str, broker: str, spans: Iterable[_Span]) -> Iterator[Finding]:
        routes, life = self.routes[client, topic], self._lives[client]
        for span in spans:
            since_ms = max(span.from_ms, life.start_ms, routes[0].from_ms)
            polls_ms = since_ms + self._world.timers_of(client[0]).P_ms
            since_ms = cut_off_until(self._world, client[0], since_ms, polls_ms)  # nobody can tell it before
            window = self._follows(client[0], since_ms)
            from_ms, to_ms = since_ms + span.tolerance_ms + window.latest_ms, min(span.to_ms, self._end_ms(client))
            if from_ms < to_ms and alive(self._world, client[0], since_ms - window.latest_ms, to_ms):
                missing = [t for t in routes if not self._has(t, broker, span.from_ms)]
                yield self._finding(client, topic, broker, window, since_ms, (from_ms, to_ms), missing, span.after)

    def _has(self, taken: Taken, broker: str, at_ms: float) -> bool:
        """Whether it names the broker, at the address that it has then."""
        ids = shown_ids(self._world, broker, taken.from_ms, taken.to_ms)
        return has_broker(decoded(taken.value), broker, brokers_at(self._world, at_ms), ids)

    def _follows(self, client: str, since_ms: float) -> Window:
        """How long after NameServers have a broker the client must have it."""
        timers = self._world.timers_of(client)
        hung = hung_brokers(self._world, client, since_ms, since_ms + timers.P_ms + timers.A_ms)
        reach_ms = since_ms + 2 * (timers.P_ms + timers.A_ms)
        failed = failed_calls(self._world, (client,), since_ms - timers.P_ms - timers.A_ms, reach_ms)
        held = Window(0, timers.A_ms, "A", "all NameServers have the broker")
        return client_leave_window(timers, held, hung_brokers=hung, failed_calls=failed)

    def must_not(self) -> Iterator[Finding]:
        """Each client, topic and lost broker from when on its routes must not name it."""
        topics = {topic for _, topic in self.routes}
        has: dict[str, set[str]] = defaultdict(set)
        for row in self._control.rows("topic"):
            if row.topic in topics and row.value not in (None, "null"):
                has[row.topic or ""].add(row.node)
        for a in absences(self._world):
            if not a.route_from_ms < a.end_ms:
                continue
            for client, topic in self.routes:
                life = self._lives[client]
                if client[0] != a.client or not life.start_ms <= a.start_ms or not has[topic] & set(a.others):
                    continue
                there = self._addresses
                ids = elected_ids(self._world, a.broker)
                kept = [
                    taken
                    for taken in self.routes[client, topic]
                    for route in [decoded(taken.value) or {}]
                    if (a.names(route) if a.address else has_broker(route, a.broker, there, ids))
                ]
                bound_ms = a.route_from_ms - a.start_ms
                formula = a.window.formula.replace(" + Qr", "")  # a consumer's queues follow later, its routes do not
                window = a.window._replace(latest_ms=bound_ms, formula=formula, row=_LOST_ROW)
                span = a.route_from_ms, min(a.end_ms, self._end_ms(client))
                yield self._finding(client, topic, a.broker, window, a.start_ms, span, kept, a.after, must=False)

    def _finding(
        self,
        client: Client,
        topic: str,
        broker: str,
        window: Window,
        at_ms: float,
        span: tuple[float, float],
        wrong: Sequence[Taken],
        after: str,
        *,
        must: bool = True,
    ) -> Finding:
        found = [(max(t.from_ms, span[0]), min(t.to_ms, span[1])) for t in wrong]
        worst = max(found, key=lambda part: part[1] - part[0], default=(0.0, 0.0))
        over_ms = max(worst[1] - worst[0], 0.0)
        tolerance_ = self._tolerance(client[0], at_ms, span[0], window.timers)
        settled = [t.to_ms for t in wrong if t.from_ms < span[0] and t.to_ms > at_ms]
        ends = [worst[1]] if over_ms else settled
        rule = Rule(window.row, window.formula, span[0] - at_ms)
        measured_ms = max(ends) - at_ms if ends else None
        if over_ms and worst[0] > span[0]:
            rule, measured_ms = at_no_time(window.row), over_ms
        return finding(
            (client[0], broker, topic),
            "must have" if must else "must not have",
            span,
            rule,
            out=worst if over_ms else None,
            tolerance=tolerance_,
            measured_ms=measured_ms,
            over_ms=over_ms,
            after=after,
        )

    def _tolerance(self, client: str, from_ms: float, to_ms: float, timers: int) -> Tolerance:
        lag_ms = self._control.lateness.largest(self._world, (client,), from_ms, to_ms)
        return tolerance(self._world.timers, lag_ms, timers)


def _common(of_each: Sequence[Sequence[_Span]]) -> list[_Span]:
    """Where all have a span: each stretch with the latest beginning, and what that followed."""
    common = sorted(of_each[0]) if of_each else []
    for spans in of_each[1:]:
        both = []
        for one in common:
            for other in spans:
                from_ms, to_ms = max(one.from_ms, other.from_ms), min(one.to_ms, other.to_ms)
                if from_ms < to_ms:
                    later = one if one.from_ms >= other.from_ms else other
                    late_ms = max(one.tolerance_ms, other.tolerance_ms)
                    both.append(_Span(from_ms, to_ms, later.after, late_ms))
        common = sorted(both)
    return common
