"""Finds in which order a client goes through its lists, only by comparing the likelihoods of all orders.

    as given      as it was told, from any entry on
    of its own    another order, the same in every process: any, and learned from what is seen
    shuffled      each process draws one

An order cannot be seen, only which entry follows which, and which came first. A label is given when what was seen is
ODDS times as likely by it as by each other one. `as given` and `of its own` are not a matter of chance: of n entries
n - 2 successions show the whole order, which is one or the other. Before that neither is said.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .labels import ODDS
from .machine import Successions

GIVEN, OWN, SHUFFLED = "as given", "of its own", "shuffled"
ORDERS = (GIVEN, OWN, SHUFFLED)

Pairs = tuple[int, Sequence[tuple[int, int]]]
"""How long the list of a process was, and which of its places followed which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOrder:
    """What the successions and first choices of all processes say."""

    word: str | None
    """None: not decided."""
    odds: dict[str, float]
    """How likely they are by each order, as a share of the likeliest one's."""
    power: float
    """How often so many successions and first choices of shuffled lists are not those of one order."""
    known: tuple[Successions, ...]
    """What follows what in all processes, for each length of a list."""


def order_of(seen: Iterable[Pairs], firsts: Iterable[tuple[int, int]]) -> ListOrder:
    """The order of all lists of a client, by the successions in each process, and by each first choice: how long the
    list was, and the place in it."""
    lists, chosen = [each for each in seen if each[1]], list(firsts)
    shared: dict[int, Successions] = {}
    each_alone: dict[int, list[float]] = defaultdict(list)
    is_given, alike = True, 0.0
    for entries, pairs in lists:
        alone, known = Successions(entries), shared.setdefault(entries, Successions(entries))
        each_alone[entries].append(sum(_log(alone.chance(*pair)) for pair in pairs))
        alike += sum(_log(known.chance(*pair)) for pair in pairs)
        is_given = is_given and all(then == (was + 1) % entries for was, then in pairs)
    is_whole = any(len(known.following) >= entries - 2 for entries, known in shared.items())
    is_fixed = len({place for _, place in chosen}) == 1
    same_first = -sum(math.log(entries) for entries, _ in chosen[1:]) if is_fixed else 0.0
    drawn = sum(map(sum, each_alone.values())) + same_first
    logs = {GIVEN: 0.0 if is_given else -math.inf, OWN: -math.inf if is_given and is_whole else alike, SHUFFLED: drawn}
    best = max(logs.values())
    odds = {word: math.exp(log - best) if log > -math.inf else 0.0 for word, log in logs.items()}
    first = max(odds, key=lambda each: odds[each])
    rivals = (odds[other] for other in ORDERS if other != first)
    word = first if is_whole and odds[first] and all(of * ODDS <= 1 for of in rivals) else None
    by_chance = sum(sum(alone) - min(alone) for alone in each_alone.values()) + same_first
    return ListOrder(word=word, odds=odds, power=1.0 - math.exp(by_chance), known=tuple(shared.values()))


def _log(chance: float) -> float:
    return math.log(chance) if chance else -math.inf
