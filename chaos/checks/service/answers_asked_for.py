"""No peer answers a client what it did not ask: not oneway requests, and no request twice.

A client records `unasked_answer` when a response comes on a channel where no request with its opaque waits, or was
given up: one that came late is nothing to wonder at. RocketMQ's peers never answer a request whose oneway flag is set,
and each other request once (`NettyRemotingAbstract.processRequestCommand`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ...oracle.world import World
from ...verdict import FINDINGS_MAX, Finding, Verdict
from ..check import Check, Facts, Group, Needs, Reads, Section
from ..findings import Rule, finding, verdict_by_counts
from ..plain.history import value_of

if TYPE_CHECKING:
    from ..dataframes.gathering import Gathering
    from ..plain.history import PlainHistory

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
    rows: tuple[Unasked, ...] = ()
    """The first of them, and the last."""


def gather(gathering: Gathering, _world: World) -> Answers:
    """Counted; a wrong peer's answers are as many as the messages, so only some are looked at."""
    from pyspark.sql import functions as F

    from ..dataframes.shared import parts_of

    is_unasked = F.col("event") == "unasked_answer"
    # Counted apart from the examples: an aggregate of these beside one of millions of answers would make Spark sort.
    counts = [
        part.agg(
            F.count(F.when(~is_unasked & (F.col("type") == "ok"), True)).alias("answered"),
            F.count(F.when(is_unasked, True)).alias("unasked"),
        ).collect()[0]
        for part in parts_of(gathering.history, *_OPERATIONS, "unasked_answer")
    ]
    answered, unasked = (sum(row[name] for row in counts) for name in ("answered", "unasked"))
    if not unasked:
        return Answers(answered)
    rows = gathering.history.where(is_unasked).select(
        "time_ms",
        F.col("node").alias("client"),
        F.coalesce("address", F.lit("")).alias("address"),
        F.coalesce(F.get_json_object("value", "$.reason"), F.lit("")).alias("answer"),
    )
    found = rows.agg(F.collect_set("address").alias("peers"), F.max(F.struct(*rows.columns)).alias("last")).collect()[0]
    shown = [*rows.orderBy(*rows.columns).limit(FINDINGS_MAX).collect(), found["last"]]
    peers = tuple(sorted(peer for peer in found["peers"] if peer))
    return Answers(answered, unasked, peers, tuple(dict.fromkeys(Unasked(**row.asDict()) for row in shown)))


def plain(history: PlainHistory, _world: World) -> Answers:
    """The same of its rows."""
    answered = sum(row["event"] in _OPERATIONS and row["type"] == "ok" for row in history.rows)
    unasked = sorted(
        Unasked(row["time_ms"], row["node"], row["address"] or "", value_of(row).get("reason") or "")
        for row in history.rows
        if row["event"] == "unasked_answer"
    )
    peers = tuple(sorted({one.address for one in unasked if one.address}))
    return Answers(answered, len(unasked), peers, tuple(dict.fromkeys([*unasked[:FINDINGS_MAX], *unasked[-1:]])))


def judge(answers: Answers, world: World) -> Verdict:
    """Examined: calls of clients that were answered. Violations: answers that no call had asked for."""
    measured = {"answered": answers.answered, "unasked": answers.unasked}
    if not answers.answered and not answers.unasked:
        return Verdict.nothing_examined(NAME, "no call was answered", measured=measured, allowed=_ALLOWED)
    names = world.owners
    findings = tuple(_finding(row, names.get(row.address, row.address)) for row in sorted(answers.rows))
    return verdict_by_counts(
        NAME,
        examined=answers.answered + answers.unasked,
        wrong=answers.unasked,
        measured=measured,
        allowed=_ALLOWED,
        examples=tuple(f.example for f in (*findings[:1], *findings[1:][-1:])),
        findings=findings,
        why=f"{answers.unasked} answers of {len(answers.peers)} peers were not asked for",
    )


CHECK = Check(
    name=NAME,
    says="no answer came that nobody asked for",
    group=Group.SERVICE,
    section=Section.OPERATIONS,
    needs=(Needs.WIRE,),
    reads=Reads.OPERATIONS,
    gather=gather,
    plain=plain,
    judge=judge,
    tells=lambda measured: f"{measured.get('unasked', 0):,} that nobody asked for",
    adds_up=True,
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
