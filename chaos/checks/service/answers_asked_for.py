"""No unasked answer comes to a client: none to a oneway request, and at most one to any other request.

A client records `unasked_answer` when a response comes on a channel where no request with its opaque waits, or was
given up: one that came late is nothing to wonder at. RocketMQ's peers never answer a request whose oneway flag is set,
and each other request once (`NettyRemotingAbstract.processRequestCommand`).
"""

from dataclasses import dataclass
from typing import NamedTuple

from ...oracle.world import World
from ...verdict import FINDINGS_MAX, Finding, Verdict
from ..check import Check, Facts, Group, Needs, Section, first, largest
from ..findings import Rule, finding, verdict_by_counts
from ..plain.part import Part, Reading, Together, rows_in, value_of

NAME = "answers_asked_for"
_OPERATIONS = ("name_server_call", "send_attempt", "pull")
_ALLOWED = {"bound_ms": None, "formula": "0 unasked", "tolerance_ms": 0, "row": "oneway requests have no answer"}


class Unasked(NamedTuple):
    """An answer that no call had asked for."""

    time_ms: float
    client: str
    address: str
    """Of the peer that answered."""
    answer: str


@dataclass(frozen=True)
class Answers(Facts):
    """How many calls were answered, and how many answers nobody had asked for."""

    answered: int = 0
    unasked: int = 0
    peers: tuple[str, ...] = ()
    """The addresses that such answers came from."""
    first: tuple[Unasked, ...] = first(lambda one: one)
    last: Unasked | None = largest()  # noqa: RUF009


def answers(part: Part, _world: World) -> Answers:
    """Counted; a wrong peer's answers are as many as the messages, so only some are looked at."""
    unasked = sorted(
        Unasked(row["time_ms"], row["node"], row["address"] or "", value_of(row).get("reason") or "")
        for row in rows_in(part.of("unasked_answer"))
    )
    peers = tuple(sorted({one.address for one in unasked if one.address}))
    answered = len(part.of(*_OPERATIONS, types=("ok",)))
    return Answers(answered, len(unasked), peers, tuple(unasked[:FINDINGS_MAX]), max(unasked, default=None))


ANSWERS = Reading(Together.ROW, (*_OPERATIONS, "unasked_answer"), ("type", "address", "value"), answers)


def judge(answers: Answers, world: World) -> Verdict:
    """Examined: calls of clients that were answered. Violations: answers that no call had asked for."""
    names, rows = world.owners, dict.fromkeys((*answers.first, *([answers.last] if answers.last else [])))
    findings = tuple(_finding(row, names.get(row.address, row.address)) for row in rows)
    return verdict_by_counts(
        NAME,
        examined=answers.answered + answers.unasked,
        wrong=answers.unasked,
        nothing="no call was answered",
        measured={"answered": answers.answered, "unasked": answers.unasked},
        allowed=_ALLOWED,
        examples=tuple(f.example for f in (*findings[:1], *findings[1:][-1:])),
        findings=findings,
        why=f"{answers.unasked} answers of {len(answers.peers)} peers were not asked for",
    )


CHECK = Check(
    name=NAME,
    says="no client received a response that no request had asked for, or two responses to one request",
    group=Group.SERVICE,
    section=Section.OPERATIONS,
    accuses_object=("unasked",),
    needs=(Needs.WIRE,),
    readings=(ANSWERS,),
    judge=judge,
    tells=lambda measured: f"{measured.get('unasked', 0):,} unsolicited responses",
)


def _finding(row: Unasked, peer: str) -> Finding:
    return finding(
        (row.client, peer),
        "unasked",
        (row.time_ms, row.time_ms),
        Rule("oneway requests have no answer", "0 unasked"),
        out=(row.time_ms, None),
        wrong=1,
        more={"answer": row.answer},
    )
