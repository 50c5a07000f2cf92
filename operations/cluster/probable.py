"""Finds the most probable cause of the clients' trouble, with the strongest log lines and the remedy. Pure: no I/O.

    what lines say     (inferring/conditions.py)  ─┐
    faults             (inferring/episodes.py)     ├─► weighed together ─► the likeliest
    causes of no route (log_causes.py)             │
    nothing was wrong, and an unknown cause        ─┘

A root cause (a full disk, a failed start, a stop) is preferred to its effects (no answer, no route). If no cause has
half of the total likelihood, the answer is `unknown`, and names the logs that are missing.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from ...chaos.reports.imported import capital, other_forms, times_of_day
from ..inferring.conditions import (
    NOTHING,
    UNKNOWN,
    WORDS_AT_MOST,
    Condition,
    clock_set_back,
    conditions,
    dropped,
    in_words,
    no_broker,
    not_belied,
    shared,
)
from ..inferring.said import BY_WORDS, CAUSES, Texts
from ..inferring.suffering import Suffered
from ..inferring.telling import Episode
from ..inferring.words import TROUBLED
from ..logs_to_rows.reconstruct import Reconstructed
from ..logs_to_rows.sources import BROKER, NAME_SERVER
from .causes import NoRouteCause
from .logged import Failure

KNOWN_FROM = 0.55
"""Least share of the total likelihood of a known answer."""
WEIGHTS = {True: 7.2, False: 3.5}
"""Weights of a certain and of a likely cause of no route."""
SYMPTOMS = {"name-server-gives-no-answer": 4.5, "broker-gives-no-answer": 4.5, "topic-is-nowhere": 4.5}
"""Causes that may be effects of another."""
KNOWN_WEIGHT, EXPLAINED = 3.5, 4.0
"""If a fault weighs the first, lines about its effects weigh the second less."""
BEFORE_MS = 300_000.0
"""A fault that ended longer before the clients' trouble is not its cause."""
ELSEWHERE, BESIDE = 2.0, 2.2
CALM_LINES = 3
"""With this number of lines, and none about trouble, the answer is that nothing is wrong."""
BESIDE_TROUBLE = 3.0
"""How much less "nothing was wrong" weighs beside a cause."""
TROUBLED_SHARE = 0.2
"""Share of warnings and exceptions above which "nothing was wrong" weighs less."""

FAULTS = {fault: (name, about.remedy) for name, about in CAUSES.items() for fault in about.faults}


def probable(
    texts: Texts,
    found: Reconstructed,
    episodes: Sequence[Episode],
    causes: Sequence[NoRouteCause],
    failures: Sequence[Failure],
    suffering: Sequence[Suffered],
) -> Condition:
    """Return the likeliest cause, `nothing` or `unknown`, with the others."""
    weighed: dict[str, Condition] = {}
    faults = _most_of(_of_episodes(found, episodes, failures, suffering))
    told = conditions(not_belied(texts.said, found), texts.times)
    if texts.fails and not (failures and all(one.is_over for one in failures)):
        told = [one for one in told if one.name != NOTHING]
    failures = [one for one in failures if not one.is_over]
    if any(one.weight >= KNOWN_WEIGHT for one in faults):
        for one in told:
            one.weight -= EXPLAINED if CAUSES[one.name].is_effect else 0.0
    told += [*map(_of_cause, causes[:1]), *faults]  # further causes of no route go with the first, not against it
    told += [*no_broker(found, texts), *clock_set_back(found)]
    if not any(one.weight >= KNOWN_WEIGHT for one in told):
        told += dropped(found)
    is_said = any(one.weight >= BY_WORDS for one in told)
    if spoken := [] if is_said else in_words(not_belied(texts.in_words, found)):
        told = [*(one for one in told if one.name != NOTHING), *spoken]
    if not found.found and not told and not texts.unread and texts.lines - texts.frames >= CALM_LINES:
        told.append(_well(BY_WORDS))
    for one in told:
        weighed[one.name] = _joined(weighed[one.name], one) if one.name in weighed else one
    if found.found:
        well = _nothing(found, texts, weighed.values(), failures)
        is_troubled = spoken or any(one.cause != NOTHING and TROUBLED.search(one.text) for one in texts.said)
        well.weight -= BESIDE_TROUBLE if is_troubled else 0.0
        weighed[NOTHING] = _joined(weighed[NOTHING], well) if NOTHING in weighed else well
    ranked = shared(weighed.values())
    if not ranked or ranked[0].share < KNOWN_FROM:
        for one in ranked:
            one.score = one.share  # the fitted score is that of known answers
        return _unknown(ranked, found)
    first = ranked[0]
    if first in spoken:
        first.score = min(first.score, WORDS_AT_MOST)
    sentence = first.sentence if first.times < 2 else f"{first.sentence} {first.times:,} lines say so."
    return replace(first, sentence=sentence, others=ranked[1:], is_over=first.is_over and not failures)


def _most_of(faults: Iterable[Condition]) -> list[Condition]:
    """Return the faults, likeliest first. All faults may have happened, so one fault counts little against another
    fault."""
    ordered = sorted(faults, key=lambda one: (-one.weight, one.name in _PLAIN))
    for one in ordered[1:]:
        one.weight -= BESIDE
    return ordered


_CLIENTS = frozenset({"producer", "consumer", "client"})
_PLAIN = frozenset({"process-ended", "stopped-in-order"})
"""Causes that another fault may state more exactly."""


def _joined(one: Condition, other: Condition) -> Condition:
    """Join the same cause from two sources: the stronger one, with the other's evidence."""
    strong, weak = (one, other) if one.weight >= other.weight else (other, one)
    strong.weight += min(1.0, max(0.0, weak.weight) / 6)
    strong.of_fault = max(strong.of_fault, weak.of_fault)
    told = {where for where, _ in strong.lines}
    strong.lines = [*strong.lines, *(line for line in weak.lines if line[0] not in told)][:3]
    return strong


def _of_cause(one: NoRouteCause) -> Condition:
    weight = min(WEIGHTS[one.certain], SYMPTOMS.get(one.name, math.inf))
    return Condition(one.name, weight, 1, one.sentence, one.then, [(where, "") for where in one.lines[:3]])


def _of_episodes(
    found: Reconstructed, episodes: Sequence[Episode], failures: Sequence[Failure], suffering: Sequence[Suffered]
) -> Iterator[Condition]:
    origin = datetime.fromtimestamp(found.origin_ms / 1000, found.zone)
    for episode in episodes:
        one = episode.hypotheses[0]
        stopped = {node for entry in one.timeline if entry["do"] == "stop" for node in entry.get("nodes") or ()}
        if stopped and all(found.nodes.roles.get(node) in _CLIENTS for node in stopped):
            continue  # a program that ends has nothing to do with the cluster
        name, remedy = FAULTS.get(one.fault, (one.fault.replace("_", "-"), ""))
        if episode.is_unmet:
            is_server = {found.nodes.roles.get(node) for node in one.timeline[0]["nodes"]} == {"name_server"}
            name = "name-server-not-reached" if is_server else "broker-address-not-reached"
            remedy = CAUSES[name].remedy
        is_near = not failures or _is_before(found, episode, [(one.first.ms, one.last.ms) for one in failures])
        weight = episode.weight - (0.0 if is_near else ELSEWHERE)
        lines = [(f"{said['file']}:{said['line']}", "") for said in one.speaks_for if "file" in said]
        when = times_of_day(episode.to_json(), {"origin": origin.isoformat()})
        sentence = f"{capital(one.sentence)}{when}. 0 s is {origin:%Y-%m-%d %H:%M:%S %Z}."
        told = list(dict.fromkeys(lines))[:3]
        is_felt = _is_before(found, episode, [(one.from_ms, one.to_ms) for one in suffering])
        is_over = episode.to_ms is not None and not is_felt
        says = episode.score if is_near else 0.0
        forms = tuple(f"or {form}" for _, form in other_forms(episode.to_json()))
        yield Condition(name, weight, 1, sentence, remedy, told, is_over=is_over, of_fault=says, forms=forms)


def _is_before(found: Reconstructed, episode: Episode, trouble: Iterable[tuple[float, float]]) -> bool:
    """Whether clients had trouble during the fault, or soon after. `trouble`: begin and end of each trouble."""
    from_ms = found.origin_ms + episode.from_ms
    to_ms = math.inf if episode.to_ms is None else found.origin_ms + episode.to_ms
    return any(last_ms >= from_ms - 1_000 and first_ms <= to_ms + BEFORE_MS for first_ms, last_ms in trouble)


def _nothing(found: Reconstructed, texts: Texts, others: Iterable[Condition], failures: Sequence[Failure]) -> Condition:
    """Return the answer that nothing was wrong; more registrations and fewer failures make it likelier."""
    lines = sum(len(source.lines) for source in found.found)
    events = (("registered" if one.kind == BROKER else "broker_registered", one.lines) for one in found.found)
    well = sum(line.event == event for event, of in events for line in of)
    weight = 3.5 + min(2.0, 0.5 * math.log1p(well)) if lines >= 3 else 2.0 if texts.unread or texts.said else 2.3
    weight -= 4.0 if failures else 0.0
    weight -= 1.5 if texts.troubled >= TROUBLED_SHARE * max(texts.lines, 10) else 0.0
    weight -= BESIDE_TROUBLE if any(one.weight >= KNOWN_WEIGHT for one in others) else 0.0
    return _well(weight)


def _well(weight: float) -> Condition:
    said = "Nothing in these logs shows that anything was wrong."
    return Condition(NOTHING, weight, 0, said, CAUSES[NOTHING].remedy)


def _unknown(ranked: Sequence[Condition], found: Reconstructed) -> Condition:
    kinds = {source.kind for source in found.found}
    missing = [
        what
        for kind, what in ((NAME_SERVER, "every NameServer's namesrv.log"), (BROKER, "every broker's broker.log"))
        if kind not in kinds
    ]
    bring = " and ".join([*missing, "the client's log from its start"])
    first = ranked[0] if ranked and ranked[0].share >= 0.1 else None
    lean = ""
    if first is not None and first.name != NOTHING:
        lean = f" The most these lines suggest ({first.score:.2f}): {first.sentence}"
    several = sum(one.share >= 0.1 for one in ranked) > 1
    few = "speak of several causes and do not decide" if several else "are too few to tell the cause"
    return Condition(
        UNKNOWN,
        0.0,
        score=1.0 - (ranked[0].score if ranked else 0.0),
        share=ranked[0].share if ranked else 0.0,
        sentence=f"Unknown: these lines {few}.{lean}",
        then=f"Bring {bring}, of the time from ten minutes before.",
        lines=first.lines if first is not None else [],
        others=ranked,
    )


def is_well(answer: Condition) -> bool:
    """Whether the answer is that nothing is wrong, or not any more."""
    return answer.is_over or answer.name == NOTHING
