"""Describes each inferred fault and its alternatives: how certain each is, its timeline entry for a scenario, and its
evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...chaos.verdict import seconds
from ..logs_to_rows.signs import Kind, Row, Seen, Sign, where_of
from .candidates import APART, Candidate
from .explains import Fit, fits
from .said import CAUSES

SAME_LINES, SAME_PRICE = 0.5, 2.0
"""Alternatives that differ by less have one rank."""
CERTAIN = 5.0
"""Least lead, in nats, of a certain fault over the next one."""
GAINED = 10.0
"""Least evidence of a certain fault."""
LIKELY, SAID, ALIKE = 0.7, 5.0, 2
"""Least values of a likely fault: share of its rank, evidence for it, and most faults of its rank."""
AGAINST = 0.9
"""Evidence against a fault from which on the fault is not certain, in nats."""
HYPOTHESES = 6
SPOKEN = 12
AT_MOST, LIKELY_AT_MOST = 0.99, 0.98
"""The highest score of a cause that is called certain, and of a cause that is called likely."""
LIKELY_SCORE = 0.8
"""Score of an explicit row whose clock or name is a guess."""
UNKNOWN = 2.0
"""Weight of an unknown cause, in nats."""
CERTAIN_WEIGHT, WEIGHS_AT_MOST, UNSURE_AT_MOST = 7.2, 5.0, 2.5
"""Weights of a certain fault, and most of a likely one and of an unsure one without half of the likelihood."""
DOUBT, RIVALS = 0.9, 0.1
"""How much of what nobody thought of, and of other causes, which often are the same by another name, counts against the
first: claims are then right as often as they say (`python -m tests.operations.importing.calibration --fit`)."""


@dataclass(slots=True, kw_only=True)
class Hypothesis:
    rank: int
    fault: str
    """`do` of the scenario language, or a word of its own (host_lost, part_of_the_list, own_list)."""
    sentence: str
    certainty: str
    """certain, likely or unsure."""
    score: float
    """The fault's share of the likelihood of all explanations of the episode, "no fault" included."""
    timeline: list[dict[str, Any]]
    bounds_ms: list[float | None]
    """Possible error of begin and end."""
    speaks_for: list[dict[str, Any]] = field(default_factory=list)
    speaks_against: list[dict[str, Any]] = field(default_factory=list)
    nodes: dict[str, Any] = field(default_factory=dict)
    """Settings of single nodes, as in a scenario's `nodes:`, if they are the fault."""
    observers: frozenset[str] = frozenset()
    """The nodes whose lines state it; for acts only."""

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "rank": self.rank, "fault": self.fault, "sentence": self.sentence, "certainty": self.certainty,
            "score": round(self.score, 4), "timeline": self.timeline, "bounds_ms": self.bounds_ms,
            "for": self.speaks_for, "against": self.speaks_against,
        }  # fmt: skip
        return told | ({"nodes": self.nodes} if self.nodes else {})


@dataclass(slots=True, kw_only=True)
class Episode:
    from_ms: float
    to_ms: float | None
    hypotheses: list[Hypothesis]
    follows: Episode | None = None
    """The fault whose effect on clients this is."""
    stated: float | None = None
    """The episode's score, if log lines state the cause."""
    is_unmet: bool = False
    """Whether no line shows that the node that is gone ever lived."""

    @property
    def weight(self) -> float:
        """The episode's weight in nats. Explanations of one cause count together, for example a link that fails in one
        direction or in both."""
        first = self.hypotheses[0]
        share = sum(one.score for one in self.hypotheses if _alike(first.fault, one.fault))
        if first.certainty == "certain":
            return CERTAIN_WEIGHT
        odds = math.log(max(share, 0.01) / max(1 - share, 0.01))
        most = UNSURE_AT_MOST if first.certainty == "unsure" and share < 0.5 else WEIGHS_AT_MOST
        return min(most, 2.5 + odds)

    @property
    def score(self) -> float:
        """The probability, from 0 to 1, that the cause is right. `doctor` and `import` print this number."""
        if self.stated is not None:
            return self.stated
        share = 1 / (1 + math.exp(UNKNOWN - self.weight))
        return AT_MOST if self.hypotheses[0].certainty == "certain" else min(LIKELY_AT_MOST, score_of(share, 0.0))

    def to_json(self) -> dict[str, Any]:
        told = [one.to_json() for one in self.hypotheses]
        return {"from_ms": self.from_ms, "to_ms": self.to_ms, "score": round(self.score, 4), "hypotheses": told}


def _alike(one: str, other: str) -> bool:
    return one == other or {one, other} <= {*CAUSES["link-failed"].faults} or {one, other} <= {"kill", "stop"}


def score_of(share: float, others: float, doubt: float = DOUBT, rivals: float = RIVALS) -> float:
    """Return the score of the likeliest cause, which is the probability that the cause is right. `share` is the cause's
    share of the total likelihood, `others` the sum of the other causes' shares."""
    return share / (share + doubt * (1 - share - others) + rivals * others)


@dataclass(slots=True, kw_only=True)
class Inferred:
    episodes: list[Episode]
    not_seen: list[str]
    """Missing logs that would decide something."""

    def to_json(self) -> dict[str, Any]:
        numbers = {id(one): number for number, one in enumerate(self.episodes, 1)}
        told = [one.to_json() | ({"follows": numbers[id(one.follows)]} if one.follows else {}) for one in self.episodes]
        return {"episodes": told, "not_seen": self.not_seen}


def act(
    fault: str, sentence: str, timeline: list[dict[str, Any]], rows: Sequence[Row], *,
    from_ms: float | None = None, to_ms: float | None = None, certainty: str = "certain", bounds: float = 1_000.0,
    nodes: dict[str, Any] | None = None, score: float | None = None,
) -> Episode:  # fmt: skip
    """Return an episode without alternatives, because rows state directly what happened: from the first row on, unless
    `from_ms` says another time."""
    said = [{"says": _says(row), "at_ms": row["time_ms"], **where_of(row)} for row in rows[:12]]
    one = Hypothesis(
        rank=1,
        fault=fault,
        sentence=sentence,
        certainty=certainty,
        score={"certain": AT_MOST, "likely": LIKELY_SCORE}.get(certainty, 0.5) if score is None else score,
        timeline=timeline,
        bounds_ms=[bounds, None if to_ms is None else bounds],
        speaks_for=said,
        nodes=nodes or {},
        observers=frozenset(str(row["node"]) for row in rows),
    )
    return Episode(from_ms=float(rows[0]["time_ms"]) if from_ms is None else from_ms, to_ms=to_ms, hypotheses=[one])


def _says(row: Row) -> str:
    about = " ".join(str(row[key]) for key in ("broker_name", "address", "topic", "f") if row.get(key))
    return f"{row['time_ms'] / 1000:.1f} s {row['node']}: {row['event']} {about}".rstrip()


def alternatives(seen: Seen, fit: Fit, pool: Sequence[Candidate], taken: dict[Sign, float]) -> list[Fit]:
    """Return every fault that explains at least half of what `fit` explains, including the fault of `fit`, best first.
    `taken` has the signs that other faults explain."""
    own = dict(fit.signs)
    total = sum(own.values())
    found: list[Fit] = []
    for candidate in dict.fromkeys([fit.candidate, *pool]):
        best: Fit | None = None
        for other in fits(candidate, seen, taken):
            shared = sum(own.get(sign, 0.0) for sign, _ in other.signs)
            if shared >= total / 2 and (best is None or other.net > best.net):
                best = other
        if best is not None and best.net > 0:
            found.append(best)
    found = found or [fit]
    found.sort(key=lambda one: -one.net)
    told: dict[tuple[str, frozenset[object]], Fit] = {}
    for one in found:  # of several ways to say the same, the shortest
        told.setdefault((one.candidate.name, frozenset(one.candidate.edges)), one)
    return list(told.values())


def same_rank(first: Fit, other: Fit) -> bool:
    """Whether both faults have the same evidence, and neither fault is much simpler."""
    lines = abs(first.evidence - other.evidence) < SAME_LINES
    return lines and abs(first.candidate.price - other.candidate.price) < SAME_PRICE


def certainty_of(seen: Seen, ranked: Sequence[Fit]) -> str:
    """Return how sure it is that the first fault of `ranked` happened: certain, likely or unsure. The fault is certain
    only if no other known fault explains the signs nearly as well, and no missing log could show another fault."""
    first = ranked[0]
    alike = [other for other in ranked[1:] if same_rank(first, other)]
    margin = min((first.net - other.net for other in ranked[1:]), default=first.net)
    ahead = min((first.evidence - other.evidence for other in ranked[1:]), default=first.evidence)
    enough = min(margin, ahead) >= CERTAIN and first.evidence >= GAINED
    if (
        enough
        and not alike
        and _watched(seen, first)
        and _says_how(seen, first)
        and not any(one.cost >= AGAINST for one in first.against)
    ):
        return "certain"
    total = sum(math.exp(other.net - first.net) for other in ranked) + math.exp(-first.net)
    shared = (1 + sum(math.exp(other.net - first.net) for other in alike)) / total
    return "likely" if shared >= LIKELY and first.evidence >= SAID and len(alike) <= ALIKE else "unsure"


def doubted(seen: Seen, certainty: str, worth: Mapping[str, float], names: Iterable[str]) -> str:
    """Return `likely` instead of `certain` if the evidence in logs with known clocks is weak, if all evidence is in one
    log whose clock is not exactly known, or if a NameServer in `names` may be another NameServer.

    `worth` has the evidence from each node's log, in nats; `names` has the fault's nodes.
    """
    if certainty != "certain" or not worth:
        return certainty
    known = sum(nats for node, nats in worth.items() if node not in seen.unsure)
    alone = len(worth) == 1 and not seen.unpinned.isdisjoint(worth)
    return "likely" if known < GAINED or alone or not seen.guessed.isdisjoint(names) else certainty


def worth_of(fit: Fit) -> dict[str, float]:
    found: dict[str, float] = {}
    for sign, nats in fit.signs:
        found[sign.observer] = found.get(sign.observer, 0.0) + nats
    return found


def named_in(timeline: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    said = (entry.get(key) or () for entry in timeline for key in ("nodes", "links", "name_servers"))
    return frozenset(word for words in said for text in words for word in str(text).split())


def _says_how(seen: Seen, first: Fit) -> bool:
    """Whether logs can show how a process of this kind ended: a broker unregisters, others must log it themselves."""
    if first.candidate.name not in ("kill", "stop"):
        return True
    stopped = {sign.edge.dialler for sign, _ in first.signs if sign.kind is Kind.STOPPED}
    return all(node in seen.brokers or node in stopped for node in first.candidate.nodes)


def _watched(seen: Seen, first: Fit) -> bool:
    """Whether each server concerned has a log from before the fault to after it."""
    end_ms = seen.last_ms if first.end is None else first.end.to_ms
    from_ms = max(seen.first_ms, first.start.from_ms)
    to_ms = min(seen.last_ms - seen.timers.R_ms, end_ms + seen.timers.R_ms)
    servers = [one for one in first.candidate.about if seen.kinds.get(one) in ("name_server", "broker", "slave")]
    return all(seen.covers(one, max(from_ms, min(first.start.to_ms, seen.own_from(one))), to_ms) for one in servers)


def sentence_of(fit: Fit) -> str:
    candidate = fit.candidate
    broker = next((edge.dialler for edge, _ in candidate.edges if edge.peer), "")
    who = " and ".join(candidate.nodes)
    links = ", ".join(_with_members(link, candidate) for link in candidate.links)
    what = candidate.form.says.format(who=who, links=links, broker=broker)
    start = f"at {seconds(fit.start.middle_ms)} ± {seconds(fit.start.half_ms)}"
    if candidate.instant:
        return f"{what}, {start}"
    end = "and it lasts to the end of these logs" if fit.end is None else (
        f"until {seconds(fit.end.middle_ms)} ± {seconds(fit.end.half_ms)}")  # fmt: skip
    return f"{what}, from {start.removeprefix('at ')} {end}"


def _with_members(link: str, candidate: Candidate) -> str:
    """Return `clients (consumer-0, producer-0) <-> ns-0`: the link expression, with the members of its group."""
    end, arrow, other = link.partition(" <-> ")
    if other in _GROUPS:
        return f"{end}{arrow}{other} ({', '.join(sorted(e.peer for e, _ in candidate.edges if e.dialler == end))})"
    if end in _GROUPS:
        return f"{end} ({', '.join(sorted(e.dialler for e, _ in candidate.edges if e.peer == other))}){arrow}{other}"
    return link


_GROUPS = ("brokers", "clients", "name_servers")


def timeline_of(fit: Fit) -> list[dict[str, Any]]:
    """Return the fault as entries of a scenario's timeline. `at_s` counts from the begin of the history."""
    candidate, at_s = fit.candidate, round(fit.start.middle_ms / 1000, 3)
    end_s = None if fit.end is None else max(at_s + 0.001, round(fit.end.middle_ms / 1000, 3))
    on: dict[str, Any] = {"nodes": list(candidate.nodes)} if candidate.nodes else {"links": list(candidate.links)}
    if candidate.name == "host_lost":
        away = {"links": [f"isolate {' '.join(candidate.nodes)}"]}
        told = [{"at_s": at_s, "do": "black_hole", **away}, {"at_s": round(at_s + 0.1, 3), "do": "kill", **on}]
        back = [] if end_s is None else [{"at_s": end_s, "do": "heal", **away}, {"at_s": end_s, "do": "restart", **on}]
        return told + back
    entry: dict[str, Any] = {"at_s": at_s, "do": candidate.do, **on, **candidate.form.more}
    if candidate.form.stream is not None:
        entry["stream"] = candidate.form.stream
    if candidate.name == "unregister":
        entry["broker"] = next(edge.dialler for edge, _ in candidate.edges)
    if candidate.instant or end_s is None:
        return [entry]
    return [entry, {"at_s": end_s, "do": candidate.form.undo, **on}]


def said_of(sign: Sign) -> dict[str, Any]:
    edge, at = sign.edge, seconds(sign.at_ms)
    about = f"{edge.dialler} -> {edge.peer}" if edge.peer else edge.dialler
    kind = f"{sign.kind} ({sign.value})" if sign.value else str(sign.kind)
    return {"says": f"{at} {sign.observer or about}: {about}: {kind}", "at_ms": sign.at_ms, **where_of(sign.row)}


def spoken_for(fit: Fit) -> list[dict[str, Any]]:
    most = sorted(fit.signs, key=lambda one: -one[1])[:SPOKEN]
    return [said_of(sign) for sign, _ in sorted(most, key=lambda one: one[0].at_ms)]


def spoken_against(fit: Fit, first: Fit) -> list[dict[str, Any]]:
    """Return the evidence against a fault: missing or contradicting log lines. For an alternative, signs that only the
    first fault explains are evidence, too."""
    told = [{"says": one.says, **where_of(one.row)} for one in fit.against]
    own = {sign for sign, _ in fit.signs}
    left = [sign for sign, worth in first.signs if sign not in own and worth > 0.5] if fit is not first else []
    return told + [{**said_of(sign), "says": f"not accounted for: {said_of(sign)['says']}"} for sign in left[:SPOKEN]]


def apart(first: Fit, other: Fit) -> str | None:
    """Return a sentence about which log could tell which of two equally ranked faults happened; None if both faults are
    of one kind."""
    one, two = sorted((first.candidate.name, other.candidate.name))
    return APART.get(f"{one}, {two}", "no line of these logs tells them apart") if one != two else None
