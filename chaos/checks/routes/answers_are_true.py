"""Every look-up of a route is answered with the route that its NameServer holds then.

A client records each answer of a NameServer that differs from the last one (`route_answer`), so that of every call
(`name_server_call`) it is known what came. The NameServer answered at some moment between the call's beginning and its
end, and the answer must have been right at one of them. Whether that table was right is registrations_are_kept's and
routes_are_true's to say:

    its table    it is the topic's route in this NameServer's own table, code 17 where it holds none
    rows         where nobody recorded that: queue counts and permissions are those that the broker registered there,
                 and none older than the newest that was acknowledged (registered_rows.py); its own addresses and ids
    codes        0, or 17; 1 only by a NameServer that is to wait for service, or one of 5.x that is being stopped
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ....remoting.codes import ResponseCode
from ....remoting.node.profile import Profile
from ...faults.process_faults import Stop
from ...oracle.promises import told_by_hand
from ...oracle.quiet import earliest_effect_ms
from ...oracle.recorded import Life
from ...oracle.roles import may_be_shown
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Check, Group, Needs, Section
from ..findings import Rule, finding, verdict_of
from ..record.control import Control, decoded
from ..record.known_brokers import due_words, known_brokers, words
from ..record.registered_rows import QueueRow, registered_rows, row_of
from ..record.route_answers import RouteAnswer, route_answers
from ..record.route_tables import Process, route_tables

NAME = "answers_are_true"
_ROW = "a look-up is answered with the topic's route, or with code 17"
_FORMULA = "the route that the NameServer holds then"


class _Wrong(NamedTuple):
    """Why an answer was wrong, and what was due."""

    kind: str
    due: str


@dataclass(slots=True)
class _Counted:
    """What was wrong in one way with the answers of one NameServer to one asker about one topic."""

    first: RouteAnswer
    why: _Wrong
    times: int = 0
    last_ms: float = 0.0


def judge(control: Control, world: World) -> Verdict:
    """Examined: look-ups that were answered. Violations: answers that were right at no moment of their call."""
    judged = _Judged(control, world)
    right: dict[tuple[str, str], list[RouteAnswer]] = defaultdict(list)
    wrong: dict[tuple[str, str, str, str], _Counted] = {}
    for answer in route_answers(control, world):
        why = judged.why_wrong(answer)
        if why is None:
            right[answer.name_server, answer.asker].append(answer)
            continue
        key = answer.name_server, answer.asker, answer.topic, why.kind
        counted = wrong.setdefault(key, _Counted(answer, why))
        counted.times, counted.last_ms = counted.times + 1, answer.to_ms
    findings = [_wrong_finding(counted) for counted in wrong.values()]
    findings += [_right_finding(*who, answers) for who, answers in right.items()]
    return _verdict(findings, world)


CHECK = Check(
    name=NAME,
    says="every answer to a look-up is the NameServer's route at that moment, as brokers registered it",
    group=Group.ROUTES,
    section=Section.ROUTES,
    needs=(Needs.WIRE,),
    judge=judge,
    tells=lambda measured: f"{measured.get('wrong', 0):,} of {measured.get('answers', 0):,} answers were wrong",
)


class _Judged:
    """What every answer is held against."""

    def __init__(self, control: Control, world: World) -> None:
        self._control, self._world = control, world
        self._tables = route_tables(control, world)
        self._rows = registered_rows(control, world)
        self._known = known_brokers(world)
        self._by_hand = told_by_hand(world)
        self._records = {row.node for row in control.rows("route")}
        """The NameServers that recorded their tables."""

    def why_wrong(self, answer: RouteAnswer) -> _Wrong | None:
        """None when the answer was right at some moment of its call."""
        if answer.code == ResponseCode.SYSTEM_ERROR and (self._may_wait(answer) or self._may_leave(answer)):
            return None
        if answer.code not in (ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST):
            return _Wrong(f"code {answer.code}", self._held(answer))
        if answer.route is not None and not answer.is_readable:
            return _Wrong("unreadable", self._held(answer))
        return self._not_its_table(answer) or self._not_registered(answer)

    def _may_wait(self, answer: RouteAnswer) -> bool:
        """Whether the NameServer may wait for service then (needWaitForService). Its wall clock may go back."""
        wait_ms = self._world.timers_of(answer.name_server).W_ms
        return wait_ms is not None and any(
            self._up_ms(life, answer) <= wait_ms + self._world.timers.delivery_ms
            for life in self._world.lives_of(answer.name_server)
            if life.start_ms <= answer.to_ms and life.end_ms >= answer.from_ms
        )

    def _may_leave(self, answer: RouteAnswer) -> bool:
        """Whether the NameServer was being stopped: one of 5.5.1 answers "name server not ready" from SIGTERM to its
        end (apache/rocketmq#11073); one of 4.9 goes on answering from its table."""
        if self._world.timers_of(answer.name_server).profile is not Profile.V5_X:
            return False
        stops = (f for f in self._world.process_faults(answer.name_server) if isinstance(f.kind, Stop))
        return any(earliest_effect_ms(self._world, f) <= answer.to_ms and answer.from_ms <= f.start_ms for f in stops)

    def _up_ms(self, life: Life, answer: RouteAnswer) -> float:
        """For how long it may have been running, as it sees it."""
        started_ms = self._world.wall_ms(life.node, life.start_ms)
        by_its_clock = (self._world.wall_ms(life.node, at_ms) - started_ms for at_ms in (answer.from_ms, answer.to_ms))
        return min(answer.from_ms - life.start_ms, *by_its_clock)

    def _processes(self, answer: RouteAnswer) -> list[Process]:
        lives = self._world.lives_of(answer.name_server)
        return [
            (life.node, life.incarnation)
            for life in lives
            if life.start_ms <= answer.to_ms and life.end_ms >= answer.from_ms
        ]

    def _values(self, answer: RouteAnswer) -> Iterator[str | None]:
        """What the NameServer's table held for the topic in the course of the call."""
        for process in self._processes(answer):
            yield from self._tables.held(process, answer.topic, answer.from_ms, answer.to_ms)

    def _held(self, answer: RouteAnswer) -> str:
        if answer.name_server not in self._records:
            return "a route, or code 17"
        values = [decoded(value) for value in self._values(answer)]
        return words(values[-1]) if values and values[-1] else "code 17"

    def _not_its_table(self, answer: RouteAnswer) -> _Wrong | None:
        if answer.name_server not in self._records:
            return None
        values = list(self._values(answer))
        if not values or answer.value in values or answer.route in [decoded(value) for value in values]:
            return None
        return _Wrong("not its table", self._held(answer))

    def _not_registered(self, answer: RouteAnswer) -> _Wrong | None:
        """A broker's row, name, id or address that this broker did not register there."""
        route = answer.route or {}
        if answer.name_server in self._records:
            return None  # whether its table is right, routes_as_registered says
        for broker, addresses in (route.get("brokers") or {}).items():
            known = self._known.get(broker)
            by_hand = self._by_hand
            if known is not None and any(
                address not in known.get(id_, ())
                and not by_hand.may_name(broker, id_, address)
                and not may_be_shown(self._world, broker, id_, address)
                for id_, address in addresses.items()
            ):
                return _Wrong("not the broker's address", due_words(broker, known))
        for broker, row in (route.get("queues") or {}).items():
            if not self._rows.knows(broker):
                continue
            rows = self._rows.due(answer.name_server, answer.topic, broker, answer.from_ms, answer.to_ms)
            if row_of(row) not in rows:
                return _Wrong("not as registered", f"{broker} {_said(rows)}")
        return None


def _said(rows: frozenset[QueueRow]) -> str:
    if not rows:
        return "did not register the topic"
    return " or ".join(f"[{read} read, {write} write, perm {perm}]" for read, write, perm in sorted(rows))


def _wrong_finding(counted: _Counted) -> Finding:
    answer, why = counted.first, counted.why
    return finding(
        (answer.name_server, answer.asker, answer.topic),
        why.kind,
        (answer.from_ms, answer.to_ms),
        Rule(_ROW, _FORMULA),
        out=(answer.from_ms, answer.to_ms),
        examined=counted.times,
        wrong=counted.times,
        times={"last": counted.last_ms} if counted.times > 1 else {},
        more={"came": answer.came, "due": why.due, "answers": counted.times},
    )


def _right_finding(name_server: str, asker: str, answers: Sequence[RouteAnswer]) -> Finding:
    return finding(
        (name_server, asker),
        "answered",
        (answers[0].from_ms, answers[-1].to_ms),
        Rule(_ROW, _FORMULA),
        examined=len(answers),
    )


def _verdict(findings: Sequence[Finding], world: World) -> Verdict:
    measured = {"answers": sum(f.examined for f in findings), "wrong": sum(f.wrong for f in findings)}
    nothing = "no look-up was answered, or nobody recorded with what"
    verdict = verdict_of(NAME, findings, measured=measured, nothing=nothing, noun="answers were wrong")
    if not findings:
        return verdict
    why = ""
    if verdict.violations:
        first = min((f for f in findings if f.validity is verdict.verdict), key=lambda f: f.from_ms)
        why = f"{verdict.violations} of {verdict.examined} answers were wrong; {_told(first, world)}"
    return replace(verdict, measured=measured, why=why)  # an answer is right or wrong: nothing of it is timed


def _told(finding: Finding, world: World) -> str:
    at_s = round((finding.to_ms - world.timeline_ms) / 1000, 1) + 0.0  # no -0.0
    asked = f"{finding.object} asked {finding.subject} for {finding.topic} at {at_s:.1f} s"
    return f"{asked}, got {finding.more['came']}, due was {finding.more['due']}"
