"""Each client's routes follow from the answers that it got: an answer becomes its route of the topic at once.

| it has             | what comes next                                       | its route then                |
|--------------------|-------------------------------------------------------|-------------------------------|
| no route, or one   | a NameServer's answer with a route                    | that one, at once             |
| a route            | the same again; code 17 or 1; no answer               | the same                      |
| none to write to   | an answer to TBW102, which producers ask for in place | may name TBW102's brokers     |
|                    | of a topic that is not there yet                      | and 4 queues of each at most  |

Upstream: `MQClientInstance.updateTopicRouteInfoFromNameServer`. No fault is looked at: that it asks each P, and keeps
its route after code 17, is timers_kept's, that NameServers answer what they hold answers_are_true's, and what it does
with its routes dead_brokers_avoided's and living_are_used's.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....clients.config import DEFAULT_TOPIC_QUEUE_NUMS
from ....remoting.codes import PERM_WRITE
from ....remoting.topics import TBW102
from ...oracle.intervals import grouped, until_next
from ...oracle.reach import undisturbed
from ...oracle.recorded import Life
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import Done, at_no_time, finding, of_done, verdict_of
from ..record.control import Control, decoded
from ..record.known_brokers import words
from ..record.route_answers import RouteAnswer, route_answers
from ..record.route_tables import Process, RouteStretch, brokers_of
from ..tolerance import Tolerance


@check(
    says="each client uses the route from the latest NameServer answer that had a route for the topic",
    group=Group.CLIENT_ROUTES,
    section=Section.CLIENTS,
    needs=(Needs.CLIENTS, Needs.WIRE),
    tells=lambda measured: (
        f"{measured.get('answers', 0):,} answers taken, {measured.get('routes', 0):,} topics of clients"
    ),
)
def judge(control: Control, world: World) -> Verdict:
    """Examined: answers that clients had to take. Violations: topics of a client that kept another route."""
    judged = _Judged(control, world)
    findings = [*judged.taken()]
    measured = {"answers": sum(f.examined for f in findings), "routes": len(judged.routes)}
    return verdict_of(
        findings,
        measured=measured,
        nothing="no client took a route",
        noun="times a client's route was not the route that a NameServer had answered",
    )


_TAKES, _CUTS = "takes the answered route", "cuts a borrowed route"
_CUT_ROW = "updateTopicRouteInfoFromNameServer: a route of TBW102 gets defaultTopicQueueNums queues at most"


def _is_cut(route: Mapping[str, Any]) -> bool:
    return all(max(row[:2]) <= DEFAULT_TOPIC_QUEUE_NUMS for row in (route.get("queues") or {}).values())


class _Judged:
    def __init__(self, control: Control, world: World) -> None:
        self._control, self._world = control, world
        self._lives: Mapping[Process, Life] = {one.process: one for one in world.lives_of_kind("producer", "consumer")}
        self.routes = self._taken_routes()
        """(client, topic) → its routes in order of time."""

    def _taken_routes(self) -> Mapping[tuple[Process, str], Sequence[RouteStretch]]:
        rows = (row for row in self._control.rows("route_changed") if row.process in self._lives)
        taken = (row for row in rows if row.value is not None and row.time_ms < self._world.end_ms)
        changes, found = grouped(((row.process, row.topic), (row.time_ms, row.value or "")) for row in taken), {}
        for (client, topic), of in changes.items():
            states = until_next(of, self._end_ms(client))
            found[client, topic] = [RouteStretch(at_ms, to_ms, value) for (at_ms, value), to_ms in states]
        return found

    def _end_ms(self, client: Process) -> float:
        return min(self._lives[client].end_ms, self._world.end_ms)

    def taken(self) -> Iterator[Finding]:
        """Each client and topic: whether every answer became its route."""
        told: dict[tuple[Process, str], list[RouteAnswer]] = defaultdict(list)
        templates: dict[Process, set[str]] = defaultdict(set)
        for answer in route_answers(self._control, self._world):
            client = answer.asker, answer.incarnation
            if client not in self._lives or not answer.is_readable:
                continue
            if answer.topic == TBW102:  # what a producer asks for in place of a topic that is not there yet
                templates[client] |= set(brokers_of(answer.value))
            else:
                told[client, answer.topic].append(answer)
        for (client, topic), answers in told.items():
            yield self._took(client, topic, answers, templates[client])
        for client, brokers in templates.items():
            if self._world.is_ours(client[0]):
                own = {str(answer.value) for (who, _), of in told.items() if who == client for answer in of}
                yield from self._borrowed(client, brokers, own)

    def _borrowed(self, client: Process, template: set[str], own: set[str]) -> Iterator[Finding]:
        """Each topic whose route is TBW102's: whether the client cut the route to defaultTopicQueueNums queues."""
        taken = ((topic, one) for (who, topic), of in self.routes.items() if who == client for one in of)
        foreign = ((topic, one) for topic, one in taken if topic != TBW102 and one.value not in own)
        borrowed = ((topic, one) for topic, one in foreign if {*brokers_of(one.value)} <= template)
        for topic, of in grouped(borrowed).items():
            done = (Done(one.s, _is_cut(decoded(one.value))) for one in of)
            yield from of_done((client[0], "", topic), _CUTS, _CUT_ROW, done)

    def _took(self, client: Process, topic: str, answers: Sequence[RouteAnswer], template: set[str]) -> Finding:
        routes = self.routes.get((client, topic), ())
        starts = [taken.s for taken in routes]
        allowed, over_ms, answer, kept = self._allowed(client, answers[0], 0.0), 0.0, answers[0], None
        for one, to_ms in until_next(answers, self._end_ms(client), lambda answer: answer.from_ms):
            if not undisturbed(self._world, client[0], one.from_ms, one.to_ms):
                continue
            at = bisect_right(starts, one.to_ms) - 1
            had = routes[at].value if at >= 0 else None
            if had == one.value or (had is not None and decoded(had) == one.route):
                continue
            until_ms = next((t.s for t in routes[at + 1 :] if t.value == one.value), to_ms)
            late_ms = min(until_ms, to_ms) - one.to_ms
            its = self._allowed(client, one, late_ms)
            beyond_ms = late_ms - its.unknown_up_to_ms
            if beyond_ms > over_ms - allowed.unknown_up_to_ms and not self._is_borrowed(had, one, template):
                allowed, over_ms, answer, kept = its, late_ms, one, had
        wrong = over_ms > allowed.valid_up_to_ms
        return finding(
            (client[0], answer.name_server, topic),
            _TAKES,
            (answers[0].from_ms, self._end_ms(client)),
            at_no_time("an answer becomes the client's route at once"),
            out=(answer.to_ms, answer.to_ms + over_ms) if wrong else None,
            tolerance=allowed,
            measured_ms=over_ms or None,
            over_ms=over_ms,
            examined=len(answers),
            more={"came": words(decoded(kept)) if kept else "no route", "due": answer.came} if wrong else {},
        )

    def _allowed(self, client: Process, answer: RouteAnswer, over_ms: float) -> Tolerance:
        span = answer.from_ms, answer.to_ms + over_ms
        return self._control.lateness.tolerance(self._world, (client[0],), *span, 1)

    def _is_borrowed(self, kept: str | None, answer: RouteAnswer, template: set[str]) -> bool:
        """Whether the route may be TBW102's: only where the topic's own has no queue to write to."""
        writable = any(row[2] & PERM_WRITE for row in ((answer.route or {}).get("queues") or {}).values())
        return not writable and kept is not None and set(brokers_of(kept)) <= template
