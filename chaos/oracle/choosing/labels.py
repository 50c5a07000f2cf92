"""Finds by which way a client chooses NameServers, only by comparing the likelihoods of all ways.

    kept                     what is called sticky
    next at every request    takes turns, in the order of its list
    random at each request   draws
    moves                    none of these: it stays as it likes, and goes where it likes

A label is given when the steps are ODDS times as likely by it as by each other one; before that none is. `moves` is a
family: how often it stays, and where it goes, is learned from the steps themselves (Krichevsky and Trofimov). No number
of steps tells a machine from all of a family that comes as near to it as one likes, so its rivals there are those that
are not near:

    of kept and next    who does otherwise every second time; of next also who goes to any entry but its own
    of random           who turns to some entry, or to the one so many places further, twice as often as it should
    of any, with two    who does so three times of four

One that does otherwise once a day is told by that one step, and before it by nothing (`rarest`). By Markov's
inequality a label is false once in ODDS clients, or more rarely (docs/clients-under-test.md: how many steps it takes).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..client_profiles import Advance
from .machine import Machine, Step

KEPT, EVERY, RANDOM, MOVES = "kept", "next at every request", "random at each request", "moves"
WORDS = (KEPT, EVERY, RANDOM, MOVES)
ODDS = 10_000.0
POWER = 0.99

_KEPT = Machine(advance=Advance.ON_FAILURE, shuffled=True)
_TURNS = (Machine(advance=Advance.EVERY_REQUEST), Machine(advance=Advance.EVERY_REQUEST, shuffled=True))
_RANDOM = Machine(advance=None)

Walk = tuple[int, Sequence[Step]]
"""How long its list was, and what one client did there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What so many steps say."""

    word: str | None
    """None: not decided."""
    steps: int
    moved: int
    """How many of them went to another entry."""
    odds: dict[str, float]
    """How likely the steps are by each label, as a share of the likeliest one's."""

    @property
    def rivals(self) -> tuple[str, ...]:
        """The labels that the steps do not tell apart, the likeliest first."""
        return tuple(sorted((word for word in self.odds if self.odds[word] * ODDS > 1), key=lambda w: -self.odds[w]))

    @property
    def takes_turns(self) -> bool:
        """Whether it has no NameServer to leave: it goes elsewhere more often than not, though nothing has failed."""
        return self.word in (EVERY, RANDOM) or (self.moved >= 2 and 2 * self.moved > self.steps)

    @property
    def rarest(self) -> float:
        """Of one that does otherwise in this share of its steps, or more often, it would have shown with POWER."""
        return 1.0 - (1.0 - POWER) ** (1.0 / self.steps) if self.steps else 1.0


def label_of(walks: Iterable[Walk]) -> Label:
    """The label of clients that are all of one kind, by their steps where nothing had failed. Steps that are tied, or a
    client's first, say nothing; nor does a list of one."""
    clear = [
        (entries, [step for step in steps if step.was is not None and not step.tied])
        for entries, steps in walks
        if entries > 1
    ]
    steps = [step for _, of in clear for step in of]
    moved = sum(step.then != step.was for step in steps)
    if not steps:
        return Label(word=None, steps=0, moved=0, odds=dict.fromkeys(WORDS, 1.0))
    pairs: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for entries, of in clear:
        if of:
            pairs[entries] += [(step.was or 0, step.then) for step in of]
    half = sum(math.log(_share(entries)) * len(of) for entries, of in clear)
    logs = {
        KEPT: sum(_KEPT.log_likelihood(of, entries) for entries, of in clear),
        EVERY: _mean([sum(turns.log_likelihood(of, entries) for entries, of in clear) for turns in _TURNS]),
        RANDOM: sum(_RANDOM.log_likelihood(of, entries) for entries, of in clear),
        MOVES: _moving(pairs) if moved else half,
    }
    elsewhere = sum(math.log(1 / (entries - 1) if entries > 2 else _share(entries)) * len(of) for entries, of in clear)
    near = {KEPT: half, EVERY: max(half, elsewhere), RANDOM: _often(pairs) + logs[RANDOM]}
    best = max(logs.values())
    first = max(logs, key=lambda word: logs[word])
    others = [logs[word] for word in WORDS if word not in (first, MOVES)]
    margin = logs[first] - max([*others, near.get(first, -math.inf)])
    odds = {word: math.exp(max(-700.0, log - best)) if log > -math.inf else 0.0 for word, log in logs.items()}
    word = first if margin >= math.log(ODDS) else None
    return Label(word=word, steps=len(steps), moved=moved, odds=odds)


def _share(entries: int) -> float:
    """Who stays, or goes on, in no more of its steps than this is told from who always does."""
    return 0.5 if entries > 2 else 0.75


def _often(by_entries: Mapping[int, Sequence[tuple[int, int]]]) -> float:
    """How much likelier, in logs, the steps are if of each list length one entry, or the one so many places further,
    comes twice as often as the others have it; the likeliest of these."""
    total = 0.0
    for entries, pairs in by_entries.items():
        share = 2.0 / entries if entries > 2 else _share(entries)
        more, less = math.log(share * entries), math.log((1.0 - share) * entries / (entries - 1))
        taken = [then for _, then in pairs], [(then - was) % entries for was, then in pairs]
        times = max(max(Counter(each).values()) for each in taken)
        total += times * more + (len(pairs) - times) * less
    return total


def _moving(by_entries: Mapping[int, Sequence[tuple[int, int]]]) -> float:
    """The log likelihood of one whose frequencies are learned: of how many places further, of entries, or of entries
    behind each other one."""
    total = 0.0
    for entries, pairs in by_entries.items():
        further = _learned([(then - was) % entries for was, then in pairs], entries)
        anyhow = _learned([then for _, then in pairs], entries)
        behind = (_learned([then for was, then in pairs if was == place], entries) for place in range(entries))
        total += _mean([further, anyhow, sum(behind)])
    return total


def _learned(values: Sequence[int], kinds: int) -> float:
    """The log likelihood of values whose frequencies are learned as they come (½ of each is there before)."""
    counts, total = [0.5] * kinds, 0.0
    for number, value in enumerate(values):
        total += math.log(counts[value] / (number + kinds / 2))
        counts[value] += 1
    return total


def _mean(logs: Sequence[float]) -> float:
    """The log of the mean of what these are logs of."""
    most = max(logs)
    if most == -math.inf:
        return most
    return most + math.log(sum(math.exp(log - most) for log in logs) / len(logs))
