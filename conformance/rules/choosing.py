"""Which NameServer comes first, whether it stays, and which comes next: the list and the place in it.

A shuffled list is not seen, only what follows what. `as given`: every choice is the same number of places after the one
before it, which a shuffled list does with the probability `p`. Of a shuffled list what can be seen is that all others
have their turn before one comes again.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...chaos.oracle.start_choice import ALPHA, POWER, p_value, smallest_bias
from ..situations import Watched
from .lookups import ENDED_WITH_ANSWER, TryOutcome, at_ms, broken, lookups, rotates, tries
from .rule import LeftOut, Measured, Measurement, Rule

LEAVES = ("refused", "syn_dropped", "black_hole", "silent", "closed", "reset", "closes_each")
CALM = ("starts", "quiet")
CHOICES = (*CALM, *LEAVES, "all_gone")
TURNS_MIN, TURNS_UNEVEN_MIN, TURNS_SHARE = 3, 7, 0.8
"""Of turns taken at random, of three NameServers, half go on to the next."""
TIE_MS, TIES_SHARE = 1.0, 0.1
"""Dials of a client's two threads that are so near may be seen in either order (C++ 3.0.0: 0.6 ms, once of 16); of ten
successions no more than one, for a client that is out of turn may dial as quickly."""
AGAIN = "the lost one again, then the next"
ENOUGH = 0.01
"""A list is called `as given` when a shuffled one would look so no more often than this."""
ONE_NAME_SERVER = LeftOut(why="one NameServer leaves nothing to choose")


def first_choice(watched: Watched) -> str | None:
    """The NameServer that it asked first, or dialled first where it asked none."""
    found = tries(watched)
    return next((one.front for one in found if one.asked_ms is not None), found[0].front if found else None)


def choices(watched: Watched) -> list[str]:
    """The NameServers in the order in which it turned to them; one that was kept, or tried again, is told once."""
    return _told_once([one.front for one in tries(watched) if one.outcome is not TryOutcome.UNUSED])


def _told_once(found: Sequence[str]) -> list[str]:
    return [front for number, front in enumerate(found) if not number or front != found[number - 1]]


def _with_tie_exchanged(watched: Watched) -> list[str] | None:
    """The same with two refused dials exchanged that were seen less than TIE_MS apart, where that puts all in turn;
    None: no such exchange does."""
    found = [one for one in tries(watched) if one.outcome is not TryOutcome.UNUSED]
    for at, (a, b) in enumerate(itertools.pairwise(found)):
        if a.outcome is b.outcome is TryOutcome.REFUSED and b.began_ms - a.began_ms < TIE_MS:
            fronts = [one.front for one in (*found[:at], b, a, *found[at + 2 :])]
            if _is_in_turn(made := _told_once(fronts), len(watched.name_servers)):
                return made
    return None


def _in_order(watched: Sequence[Watched]) -> Iterator[tuple[Watched, list[str]]]:
    """The choices of processes that made two or more and could be seen to."""
    for one in watched:
        if one.situation == "all_gone" and one.dials_unseen:
            continue  # those that refused are not in what was seen
        made = choices(one)
        if len(made) > 1 and len(one.name_servers) > 2:
            yield one, made


def _is_in_turn(made: Sequence[str], name_servers: int) -> bool:
    """Whether nobody comes again before all others had their turn."""
    return all(front not in made[max(0, at - name_servers + 1) : at] for at, front in enumerate(made))


def _places(watched: Watched, pairs: Iterable[tuple[str, str]]) -> list[int]:
    """How many places of the list the second of each pair is after the first."""
    place = {front: number for number, front in enumerate(watched.name_servers)}
    return [(place[b] - place[a]) % len(place) for a, b in pairs]


def _chance_of_cycle(pairs: int, name_servers: int) -> float:
    """How often a shuffled list has so many given successions."""
    chance = 1.0
    for known in range(min(pairs, name_servers - 2)):
        chance /= name_servers - 1 - known
    return chance


def _chance_of_firsts(watched: Sequence[Watched]) -> tuple[float, Counter[int]]:
    """How often a random first choice is the same in all of so many starts, and how often each was first."""
    firsts: Counter[int] = Counter()
    chance = 1.0
    for one in watched:
        front = first_choice(one) if one.situation == "starts" else None
        if front is not None:
            chance /= len(one.name_servers) if firsts else 1
            firsts[one.name_servers.index(front)] += 1
    return chance, firsts


def _example(watched: Watched, **what: Any) -> Mapping[str, Any]:
    return {"situation": watched.situation, "process": watched.number, **what}


def _order(watched: Sequence[Watched]) -> Measurement:
    if all(len(one.name_servers) < 2 for one in watched):
        return ONE_NAME_SERVER
    made_two = list(_in_order(watched))
    seen = [(one, made) for one, made in made_two if _is_in_turn(made, len(one.name_servers))]
    has_turns = 2 * len(seen) >= len(made_two)
    places: Counter[int] = Counter()
    chance = 1.0
    for one, made in seen:
        pairs = sorted({*itertools.pairwise(made)})
        places.update(_places(one, pairs))
        chance *= _chance_of_cycle(len(pairs), len(one.name_servers))
    count = len(seen)
    examples = [_example(one, chosen=made[:8]) for one, made in seen]
    if len(places) > 1 and has_turns:
        return Measured(value="shuffled", count=count, p=chance, examples=examples)
    same, firsts = _chance_of_firsts(watched)
    if firsts:
        count += sum(firsts.values())
    p = min(chance, same if len(firsts) == 1 else 1.0)
    if p <= ENOUGH:
        return Measured(value="as given", count=count, p=p, doubt=p, examples=examples)
    if not has_turns:
        return LeftOut(why="it turns to NameServers out of turn, which shows nothing of its list's order")
    if not firsts and not seen:
        return Measured.undecided("no process chose a NameServer")
    why = (
        f"{len(seen)} successions, and {sum(firsts.values())} first choices: a shuffled list looks so with p = {p:.2g}"
    )
    return Measured.undecided(why, count, p=p, examples=examples)


def _start(watched: Sequence[Watched]) -> Measurement:
    of = [(one, first_choice(one)) for one in watched]
    began = [(one, front) for one, front in of if front is not None]
    n = max((len(one.name_servers) for one, _ in began), default=0)
    if n == 1:
        return ONE_NAME_SERVER
    if not began:
        return Measured.undecided("no process turned to a NameServer")
    counts = Counter(one.name_servers.index(front) for one, front in began)
    ordered = [counts[place] for place in range(n)]
    total, says = len(began), " / ".join(map(str, (counts[place] for place in range(n))))
    p = p_value(ordered)
    examples = ({"first choices": ordered},)
    if sum(_dials_all_first(one) for one, _ in began) > total / 2:
        return Measured(value="scored", count=total, p=p, why=f"dials all, asks one: {says}", examples=examples)
    if len(counts) == 1:
        doubt = n ** (1.0 - total)
        why = f"first choices {says}; chance alone gives that with p = {doubt:.2g}"
        if doubt > ENOUGH:
            return Measured.undecided(why, total, p=p, examples=examples)
        return Measured(value=str(next(iter(counts))), count=total, p=p, doubt=doubt, why=why, examples=examples)
    if p < ALPHA:
        return Measured(value="uneven", count=total, p=p, why=f"first choices {says}", examples=examples)
    bias = smallest_bias(total, n, power=POWER, alpha=ALPHA)
    if bias is None:
        why = f"first choices {says}: too few starts to find any bias"
        return Measured.undecided(why, total, p=p, examples=examples)
    why = f"first choices {says}; so many starts find one chosen {100 * bias:.0f} points too often"
    return Measured(value="random", count=total, p=p, power=POWER, why=why, examples=examples)


def _dials_all_first(watched: Watched) -> bool:
    found = tries(watched)
    asked = next((number for number, one in enumerate(found) if one.asked_ms is not None), len(found))
    opened_ms = found[asked].asked_ms if asked < len(found) else None
    dialled = {one.front for one in found if one.dialled and (opened_ms is None or one.began_ms <= opened_ms)}
    return len(watched.name_servers) > 1 and dialled == set(watched.name_servers)


def _sticky(watched: Sequence[Watched]) -> Measurement:
    if all(len(one.name_servers) < 2 for one in watched):
        return ONE_NAME_SERVER
    again = moved = 0
    examples = []
    for one in watched:
        asked = lookups(one)
        for a, b in itertools.pairwise(asked):
            if a.outcome in ENDED_WITH_ANSWER:
                again += 1
                moved += a.front != b.front
                if a.front != b.front:
                    examples.append(_example(one, at_ms=at_ms(one, b.began_ms), was=a.front, then=b.front))
    if not again:
        return Measured.undecided("no look-up followed one that was answered")
    if not moved:
        return Measured(value="kept", count=again)
    value = "next at every request" if any(rotates(one) for one in watched) else "moves"
    why = f"{moved} of {again} look-ups went to another one than the last, which had answered"
    return Measured(value=value, count=again, why=why, examples=examples)


def _next(watched: Sequence[Watched]) -> Measurement:
    if all(len(one.name_servers) < 3 for one in watched):
        return LeftOut(why="fewer than three NameServers have but one order")
    order = _order(watched)
    seen = [*_in_order(watched)]
    if not seen:
        unseen = next((one.dials_unseen for one in watched if one.dials_unseen), None)
        return Measured.undecided(unseen or "no process turned to a second NameServer")
    as_given = isinstance(order, Measured) and order.value == "as given"
    if as_given and any(rotates(one) for one, _ in seen):
        return _next_of_turns([(one, made) for one, made in seen if one.situation in CALM])
    in_turn = [(one, made) for one, made in seen if _is_in_turn(made, len(one.name_servers))]
    out = [pair for pair in seen if pair not in in_turn]
    decided = sum(max(0, len(made) - (1 if as_given else 2)) for _, made in seen)
    tied = [(one, made) for one, _ in out if (made := _with_tie_exchanged(one)) is not None]
    if len(tied) < len(out) or len(out) > TIES_SHARE * decided:
        examples = [_example(one, chosen=made[:8]) for one, made in out]
        return Measured(value="out of turn", count=decided, why="one came again before others' turn", examples=examples)
    seen = in_turn + tied
    if not decided:
        return Measured.undecided("no process chose often enough to come round")
    places = Counter(place for one, made in seen for place in _places(one, itertools.pairwise(made)))
    if as_given and set(places) != {1}:
        skipped = next(iter(places)) - 1
        return Measured(value="skips", count=decided, why=f"{skipped} of the list are left out each time")
    again, lost = _again(watched)
    value = AGAIN if lost and again > lost / 2 else "the next"
    why = f"{len(tied)} time two dials less than {TIE_MS:g} ms apart were seen in the other order" if tied else ""
    return Measured(value=value, count=decided, why=why)


def _next_of_turns(seen: Sequence[tuple[Watched, list[str]]]) -> Measured:
    """Of a client that takes turns at every request: two requests at once may be seen in the other order."""
    places = Counter(place for one, made in seen for place in _places(one, itertools.pairwise(made)))
    if places.total() < (TURNS_MIN if len(places) == 1 else TURNS_UNEVEN_MIN):
        return Measured.undecided("too few look-ups follow each other", places.total())
    place, times = places.most_common(1)[0]
    if times < TURNS_SHARE * places.total():
        said = ", ".join(f"{place} further {times}" for place, times in sorted(places.items()))
        return Measured(value="out of turn", count=places.total(), why=said)
    why = f"{times} of {places.total()}" if times < places.total() else ""
    if place == 1:
        return Measured(value="the next", count=places.total(), why=why)
    return Measured(value="skips", count=places.total(), why=f"{place - 1} of the list are left out each time")


def _again(watched: Sequence[Watched]) -> tuple[int, int]:
    """How often the one that closed its connections was dialled once more before another one, of how many times."""
    again = lost = 0
    for one in watched:
        when = broken(one) if one.situation in ("refused", "syn_dropped", "closes_each") else None
        if when is None or rotates(one):
            continue
        after = [tried.front for tried in tries(one) if tried.began_ms >= when[0]]
        if after and set(after) - {when[1]}:
            lost += 1
            again += after[0] == when[1]
    return again, lost


RULES = (
    Rule(
        "list_order",
        "the list in use: in the order that it was told, or shuffled; from the starts of many processes and from "
        "which NameServer follows which",
        CHOICES,
        _order,
        words=("as given", "shuffled"),
    ),
    Rule(
        "start",
        "the NameServer that is asked first: random (p: how often even choices are at least so uneven), a fixed "
        "place of the list, or chosen by its latency",
        ("starts",),
        _start,
        words=("random", *map(str, range(10)), "scored", "uneven"),
        also={"0 of the shuffle": ("random",)},
    ),
    Rule(
        "sticky",
        "whether the NameServer that answered is asked again",
        ("quiet", "slow"),
        _sticky,
        words=("kept", "next at every request", "moves"),
    ),
    Rule(
        "next",
        "the NameServer that follows: the next of the list; in a shuffled one all others have their turn first",
        CHOICES,
        _next,
        words=("the next", AGAIN, "skips", "out of turn"),
        by_time=True,
    ),
)
