"""Infers from a history's rows which faults happened, ranked, with the evidence for and against each fault.

    rows ──► signs ──► candidates ──► fits ──► the fewest that explain all ──► each with its alternatives, ranked

The search takes the fault that explains the signs best, removes the signs that the fault explains, and repeats while
some fault explains more than its price. At the end, simultaneous faults are joined if one fault with a lower price
explains them all. A fault's score is its share of the total likelihood, in which "no fault" is an alternative. Faults
with the same evidence have the same rank.
"""

import math
from collections.abc import Iterable, Sequence

from ...chaos.oracle.timers import Timers
from ...chaos.reports.text import all_of
from ..logs_to_rows.signs import Kind, Row, Seen, Sign
from .acts import acts_in
from .candidates import FORMS, Candidate, candidates_for, hosts_of, normal, of_nodes, together
from .explains import Fit, fits, with_signs_of
from .joining import joined, shapes_of, unions, variants
from .standing import timers_after
from .symptoms import seen_of
from .telling import (
    AT_MOST,
    CERTAIN,
    HYPOTHESES,
    LIKELY_AT_MOST,
    Episode,
    Hypothesis,
    Inferred,
    alternatives,
    apart,
    certainty_of,
    doubted,
    named_in,
    same_rank,
    sentence_of,
    spoken_against,
    spoken_for,
    timeline_of,
    worth_of,
)

ENOUGH = 2.0
"""Least gain of a fault beyond its price."""
MOST_EPISODES = 200


def episodes_of(rows: Iterable[Row], *, timers: Timers | None = None) -> Inferred:
    """Return the episodes (faults with alternatives) that any history's rows show, in order of time. `timers` is used
    if the row `run_begin` has no timers."""
    seen = seen_of(rows, timers)
    acts, taken = acts_in(seen)
    pool = _pool(seen, taken)
    chosen = [fit for fit in _chosen(seen, pool, taken) if not _rests_on_ends(fit) and not _was_cut(seen, fit)]
    found = [*acts, *(_told(seen, fit, chosen, pool, taken) for fit in chosen)]
    found.sort(key=lambda one: one.from_ms)
    return Inferred(episodes=found, not_seen=_not_seen(seen, found))


def _pool(seen: Seen, taken: dict[Sign, float]) -> list[Candidate]:
    found: dict[Candidate, None] = {}
    for sign in seen.bad():
        if normal(sign.kind) > 1 and sign not in taken:
            for candidate in candidates_for(sign, seen):
                found.setdefault(candidate)
    if found:
        for candidate in (*shapes_of(seen), *together(seen)):
            found.setdefault(candidate)
    for nodes in hosts_of(seen).values():
        for name in ("pause", "kill", "host_lost"):
            found.setdefault(of_nodes(name, nodes, seen))
    return list(found)


def _chosen(seen: Seen, pool: Sequence[Candidate], taken: dict[Sign, float]) -> list[Fit]:
    """Return the faults that explain the signs, so that no further fault gains more than it costs."""
    explained = dict(taken)
    all_fits: dict[Candidate, list[Fit]] = {one: fits(one, seen, explained) for one in pool}
    chosen: list[Fit] = []
    while len(chosen) < MOST_EPISODES:
        best = max((fit for some in all_fits.values() for fit in some), key=lambda fit: fit.net, default=None)
        if best is None or best.net < ENOUGH:
            break
        chosen.append(best)
        touched = {sign.edge for sign, _ in best.signs}
        explained |= dict(best.signs)
        for candidate in pool:
            if any(edge in touched for edge, _ in candidate.edges):
                all_fits[candidate] = fits(candidate, seen, explained)
    return joined(seen, chosen, taken)


def _rests_on_ends(fit: Fit) -> bool:
    """Whether the fault's only evidence is silence until the end of the logs; logs that were cut look the same."""
    return fit.end is None and all(sign.row is None for sign, _ in fit.signs)


def _was_cut(seen: Seen, fit: Fit) -> bool:
    """Whether the only evidence that brokers hung is a gap in their own logs, after which they register in their old
    rhythm, so that lines were probably cut from these logs."""
    nodes, end = fit.candidate.nodes, fit.end
    if fit.candidate.name != "pause" or end is None or any(sign.kind is not Kind.OWN_MISSED for sign, _ in fit.signs):
        return False
    is_long = end.from_ms - fit.start.middle_ms >= 3 * seen.timers.R_ms
    return is_long and not any(timers_after(seen, nodes, end.from_ms))


def _told(
    seen: Seen, fit: Fit, chosen: Sequence[Fit], pool: Sequence[Candidate], taken: dict[Sign, float]
) -> Episode:  # fmt: skip
    explained = with_signs_of((other for other in chosen if other is not fit), taken)
    more = [*unions(seen, [fit]), *variants(fit.candidate, seen)]
    ranked = alternatives(seen, fit, [*pool, *more], explained)[:HYPOTHESES]
    shares = [math.exp(min(0.0, one.net - ranked[0].net)) for one in ranked]
    total = sum(shares) + math.exp(min(0.0, -ranked[0].net))
    certainty = certainty_of(seen, ranked)
    if certainty == "certain" and any(
        one.candidate != fit.candidate
        for one in alternatives(seen, fit, [*pool, *more, *(other.candidate for other in chosen)], taken)
        if one.net > fit.net - CERTAIN
    ):
        certainty = "likely"  # something else would account for it, and for more
    certainty = doubted(seen, certainty, worth_of(ranked[0]), named_in(timeline_of(ranked[0])))
    hypotheses: list[Hypothesis] = []
    rank = 0
    for position, (one, share) in enumerate(zip(ranked, shares, strict=True)):
        alike = same_rank(ranked[0], one)
        rank = 1 if alike else max(rank + (position > 0), 2)
        against = spoken_against(one, ranked[0])
        if position and alike and (how := apart(ranked[0], one)) is not None:
            against.append({"says": how})
        hypotheses.append(
            Hypothesis(
                rank=rank,
                fault=one.candidate.do,
                sentence=sentence_of(one),
                certainty=certainty if position == 0 else ("likely" if alike and certainty == "likely" else "unsure"),
                score=min(AT_MOST if certainty == "certain" else LIKELY_AT_MOST, share / total),
                timeline=timeline_of(one),
                bounds_ms=[_half(one.start.half_ms), None if one.end is None else _half(one.end.half_ms)],
                speaks_for=spoken_for(one),
                speaks_against=against,
            )
        )
    if hypotheses[0].fault == "pause" and ranked[0].end is not None:
        after = timers_after(seen, ranked[0].candidate.nodes, ranked[0].end.from_ms)
        hypotheses[0].speaks_for += [{"says": says} for says in after]
    if is_unmet := _is_unmet(seen, fit):
        first, *others = hypotheses
        same = [one for one in others if FORMS[one.fault].ends_process]
        first.sentence = UNMET.format(who=all_of(fit.candidate.nodes))
        first.score = min(LIKELY_AT_MOST, first.score + sum(one.score for one in same))
        hypotheses = [first, *(one for one in others if one not in same)]
    to_ms = None if fit.end is None else fit.end.middle_ms
    return Episode(from_ms=fit.start.middle_ms, to_ms=to_ms, hypotheses=hypotheses, is_unmet=is_unmet)


def _is_unmet(seen: Seen, fit: Fit) -> bool:
    """Whether no line shows that the nodes that the fault is said to have ended ever lived."""
    nodes = fit.candidate.nodes
    signs = (sign for node in nodes for edge in seen.edges_of(node) for sign in seen.by_edge[edge])
    is_written = any(seen.is_written(node) for node in nodes)
    return fit.candidate.form.ends_process and not is_written and all(sign.kind in _UNMET for sign in signs)


_UNMET = frozenset({Kind.REFUSED, Kind.NO_DIAL, Kind.FAILED})
UNMET = "{who} was reached by no connection of these logs: it did not run, or its address is wrong"


def _half(ms: float) -> float | None:
    return round(ms, 1) if math.isfinite(ms) else None


def _not_seen(seen: Seen, found: Sequence[Episode]) -> list[str]:
    asked: list[str] = []
    for node in sorted(seen.kinds):
        if seen.is_written(node):
            continue
        about = [one for one in found if any(node in str(entry) for entry in one.hypotheses[0].timeline)]
        if about:
            when = f"{about[0].from_ms / 1000:.0f} s"
            asked.append(
                f"{node}'s own log is not here: it would say whether its process ended, hung or ran on at {when}"
            )
    return asked
