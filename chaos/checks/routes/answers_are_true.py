"""Every answer to a look-up is the route that the NameServer has at that moment.

A client records each answer of a NameServer that differs from the last one (`route_answer`), so that of every call
(`name_server_call`) it is known what came. The NameServer answered at some moment between the call's beginning and its
end, and the answer must have been right at one of them. Whether that table was right is registrations_are_kept's and
routes_are_true's to say:

    its table    it is the topic's route in this NameServer's own table, code 17 where it holds none
    order        it has an order configuration only with orderMessageEnable
    rows         where nobody recorded that: queue counts and permissions are those that the broker registered there,
                 and none older than the newest that was acknowledged (registered_rows.py); its own addresses and ids
    codes        0, or 17; 1 only by a NameServer that is to wait for service, and always by that, or by one of 5.x
                 that is being stopped; such a one keeps its table to its end
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....remoting.codes import ResponseCode
from ...oracle.intervals import grouped
from ...oracle.name_server import is_stopping, may_refuse, must_refuse
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import Rule, finding, verdict_of
from ..record.control import Control, decoded
from ..record.known_brokers import due_words, is_misplaced, known_brokers, words
from ..record.received import received
from ..record.registered_rows import QueueRow, registered_rows, row_of
from ..record.route_answers import RouteAnswer, route_answers
from ..record.route_tables import route_tables

_RULE = Rule(
    "a look-up is answered with the topic's route, or with code 17", "the route that the NameServer holds then"
)
_RIGHT = ("", "")


@check(
    says="each answer to a look-up is what the NameServer's own table had during the call: a route, or none (code 17)",
    group=Group.ROUTES,
    section=Section.ROUTES,
    needs=(Needs.WIRE,),
    tells=lambda measured: f"{measured.get('wrong', 0):,} of {measured.get('answers', 0):,} answers were wrong",
)
def judge(control: Control, world: World) -> Verdict:
    """Examined: look-ups that were answered. Violations: answers that were right at no moment of their call."""
    judged = _Judged(control, world)
    every = ((answer, *judged.wrong(answer)) for answer in route_answers(control, world))
    of = grouped(((a.name_server, a.asker, a.topic if kind else "", kind), (a, due)) for a, kind, due in every)
    findings = [_finding(*key, answers) for key, answers in of.items()]
    measured = {"answers": sum(f.examined for f in findings), "wrong": sum(f.wrong for f in findings)}
    nothing = "no look-up was answered, or no client recorded answers"
    verdict = verdict_of(findings, measured=measured, nothing=nothing, noun="answers were wrong")
    if not findings:
        return verdict
    why = ""
    if verdict.violations:
        first = min((f for f in findings if f.wrong), key=lambda f: f.from_ms)
        why = f"{verdict.violations} of {verdict.examined} answers were wrong; {_told(first, world)}"
    return replace(verdict, measured=measured, why=why)  # an answer is right or wrong: nothing of it is timed


class _Judged:
    """What every answer is held against."""

    def __init__(self, control: Control, world: World) -> None:
        self._control, self._world, self._tables = control, world, route_tables(control, world)
        self._rows = registered_rows(control, world)
        self._known = known_brokers(world)
        self._records = {row.node for row in control.rows("route")}
        """The NameServers that recorded their tables."""

    def wrong(self, answer: RouteAnswer) -> tuple[str, str]:
        """Why, and what was due; _RIGHT where it was right at some moment of its call."""
        lives = [
            life
            for life in self._world.lives_of(answer.name_server)
            if life.start_ms <= answer.to_ms and life.end_ms >= answer.from_ms
        ]
        span = answer.from_ms, answer.to_ms
        if answer.code == ResponseCode.SYSTEM_ERROR and may_refuse(self._world, lives, *span):
            return _RIGHT
        if must_refuse(self._world, lives, *span):
            return "answered before it serves", "code 1, as it waits for service"
        if answer.name_server not in self._records:
            due, values = "a route, or code 17", None
        else:  # whether its table is right, routes_as_registered says
            processes = [life.process for life in lives]
            values = [value for one in processes for value in self._tables.held(one, answer.topic, *span)]
            routes = [decoded(value) for value in values]
            due = words(routes[-1]) if routes and routes[-1] else "code 17"
        if answer.code not in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST):
            return f"code {answer.code}", due
        if answer.route is not None and not answer.is_readable:
            return "unreadable", due
        if "order" in (answer.route or {}) and not any(
            self._world.values(answer.name_server, "orderMessageEnable", *span)
        ):
            return "order configuration", due
        if values is None:
            return self._not_registered(answer)
        if values and answer.value not in values and _without_order(answer.route) not in routes:
            return "unlike its table", due
        if answer.code == ResponseCode.TOPIC_NOT_EXIST and is_stopping(self._world, answer.name_server, *span):
            every = (received(self._control, self._world).routes(life) for life in lives)
            had = [read.at(answer.topic, answer.from_ms) if read else None for read in every]
            if had and had[0] and all(had):  # a process that was just started may have answered, too
                return "code 17 while stopping", words(had[0])
        return _RIGHT

    def _not_registered(self, answer: RouteAnswer) -> tuple[str, str]:
        """A broker's row, name, id or address that this broker did not register there."""
        route = answer.route or {}
        for broker, addresses in (route.get("brokers") or {}).items():
            known = self._known.get(broker)
            if known is not None and is_misplaced(self._world, broker, addresses):
                return "not the broker's address", due_words(broker, known)
        for broker, row in (route.get("queues") or {}).items():
            rows = self._rows.due(answer.name_server, answer.topic, broker, answer.from_ms, answer.to_ms)
            if self._rows.knows(broker) and row_of(row) not in rows:
                return "unlike registered", f"{broker} {_said(rows)}"
        return _RIGHT


def _without_order(route: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The NameServer adds the order configuration to what its table has."""
    return None if route is None else {part: of for part, of in route.items() if part != "order"}


def _said(rows: frozenset[QueueRow]) -> str:
    if not rows:
        return "did not register the topic"
    return " or ".join(f"[{read} read, {write} write, perm {perm}]" for read, write, perm in sorted(rows))


def _finding(
    name_server: str, asker: str, topic: str, kind: str, answers: Sequence[tuple[RouteAnswer, str]]
) -> Finding:
    count, (first, due), (last, _) = len(answers), answers[0], answers[-1]
    about, span = (name_server, asker, topic), (first.from_ms, first.to_ms)
    if not kind:
        return finding(about, "answered", (first.from_ms, last.to_ms), _RULE, examined=count)
    more = {"came": first.came, "due": due, "answers": count}
    times = {"last": last.to_ms} if count > 1 else {}
    return finding(about, kind, span, _RULE, out=span, examined=count, wrong=count, times=times, more=more)


def _told(finding: Finding, world: World) -> str:
    at_s = round((finding.to_ms - world.timeline_ms) / 1000, 1) + 0.0  # no -0.0
    asked = f"{finding.object} asked {finding.subject} for {finding.topic} at {at_s:.1f} s"
    return f"{asked}, got {finding.more['came']}, due was {finding.more['due']}"
