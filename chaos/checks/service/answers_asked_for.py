"""No unasked answer comes to a client: none to a oneway request, and at most one to any other request.

A client records `unasked_answer` when a response comes on a channel where no request with its opaque waits, or was
given up: one that came late is nothing to wonder at. RocketMQ's peers never answer a request whose oneway flag is set,
and each other request once (`NettyRemotingAbstract.processRequestCommand`).
"""

from dataclasses import dataclass

from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Found, Group, Needs, Section, check, foremost
from ..findings import Rule, finding, verdict_by_counts
from ..plain.part import Gathering, Part, Reading, Row, Together, rows_in, value_of

_OPERATIONS = ("name_server_call", "send_attempt", "pull")
_ALLOWED = {"bound_ms": None, "formula": "0 unasked", "tolerance_ms": 0, "row": "oneway requests have no answer"}


@dataclass(frozen=True)
class Answers(Found):
    """How many calls were answered, and how many answers nobody had asked for."""

    peers: tuple[str, ...] = ()
    """The addresses that such answers came from."""


def answers(part: Part, world: World) -> Answers:
    """Counted; a wrong peer's answers are as many as the messages, so only some are kept."""
    unasked = rows_in(part.of("unasked_answer"))
    peers = tuple(sorted({row["address"] for row in unasked if row["address"]}))
    counts = {"answered": len(part.of(*_OPERATIONS, types=("ok",))), "unasked": len(unasked)}
    return Answers(counts, foremost(_finding(row, world) for row in unasked), peers)


ANSWERS = Reading(Together.ROW, (*_OPERATIONS, "unasked_answer"), ("type", "address", "value"), answers)


@check(
    says="no client received a response that no request had asked for, or two responses to one request",
    group=Group.SERVICE,
    section=Section.OPERATIONS,
    accuses_object=("unasked",),
    needs=(Needs.WIRE,),
    readings=(ANSWERS,),
    tells=lambda measured: f"{measured.get('unasked', 0):,} unsolicited responses",
)
def judge(history: Gathering, world: World) -> Verdict:
    """Examined: calls of clients that were answered. Violations: answers that no call had asked for."""
    answers = history.counted(ANSWERS, world)
    findings = answers.findings
    return verdict_by_counts(
        examined=sum(answers.counts.values()),
        wrong=answers.counts["unasked"],
        nothing="no call was answered",
        measured=answers.counts,
        allowed=_ALLOWED,
        examples=tuple(f.example for f in (*findings[:1], *findings[1:][-1:])),
        findings=findings,
        why=f"{answers.counts['unasked']} answers of {len(answers.peers)} peers were not asked for",
    )


def _finding(row: Row, world: World) -> Finding:
    at_ms, address = row["time_ms"], row["address"] or ""
    return finding(
        (row["node"], world.owners.get(address, address)),
        "unasked",
        (at_ms, at_ms),
        Rule("oneway requests have no answer", "0 unasked"),
        out=(at_ms, None),
        wrong=1,
        more={"answer": value_of(row).get("reason") or ""},
    )
