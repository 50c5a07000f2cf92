"""A client that chooses NameServers is a small machine: a list, a place in it, and what it met there.

    step      from the entry that it used last, and what came of that, to the entry that it turns to
    machine   the probability of each step; a step of probability 0 is one that it does not allow

        kept     after an answer the same entry; after a failure the same once more, or the next of its list
        every    the next of its list, whatever came before
        random   any entry, whatever came before

The list is as it was given, or shuffled: then only what follows what is seen, and each succession that is new has the
probability that so many are left. The first step is from nowhere: to a fixed entry, or to any.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..client_profiles import Advance, ClientProfile, Order


class Step(NamedTuple):
    """From one entry of a list to another. Entries are places of the list as it was given."""

    was: int | None
    """None: it is the client's first."""
    then: int
    failed: bool = False
    """Whether nobody answered at the entry that it comes from, or may have been the reason to leave it."""
    tied: bool = False
    """Whether it began before the one before it had ended: nobody knows which was first."""


@dataclass(slots=True)
class Successions:
    """What is known of a list of `entries`: which entry follows which."""

    entries: int
    following: dict[int, int] = field(default_factory=dict)

    @classmethod
    def given(cls, entries: int) -> Successions:
        """Of a list as it was given: all of it."""
        return cls(entries, {place: (place + 1) % entries for place in range(entries)})

    def chance(self, was: int, then: int) -> float:
        """That `then` follows, which is known from now on; 0 where another one does, or nobody can."""
        known = self.following.get(was)
        if known is not None:
            return float(known == then)
        left = self.entries - len(self.following)
        if then in self.following.values() or (left > 1 and self._leads(then, was)) or then == was:
            return 0.0
        self.following[was] = then
        return 1.0 / max(1, left - 1)

    def chains(self) -> list[list[int]]:
        """The entries in the order in which they follow each other; several where it is not known which comes then."""
        heads = [place for place in range(self.entries) if place not in self.following.values()] or [0]
        found = [[head] for head in heads]
        for chain in found:
            while (then := self.following.get(chain[-1], chain[0])) != chain[0]:
                chain.append(then)
        return found

    def _leads(self, here: int, there: int) -> bool:
        """Whether the second is known to come some time after the first, or is the same."""
        at: int | None = here
        while at is not None and at != there:
            at = self.following.get(at)
        return at == there


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One way through a list."""

    advance: Advance | None
    """None: it draws an entry at each request."""
    shuffled: bool = False
    start: int | None = None
    """The first entry; None: any."""

    @classmethod
    def of(cls, profile: ClientProfile, entries: int) -> Machine:
        """That of a profile, for a list of so many."""
        shuffled = profile.order is Order.SHUFFLED
        return cls(advance=profile.advance, shuffled=shuffled, start=profile.start.place(entries))

    def chance(self, step: Step, known: Successions) -> float:
        """How likely this step is; 0: the machine does not allow it."""
        entries = known.entries
        if step.was is None:
            return 1.0 / entries if self.start is None else float(step.then == self.start)
        if self.advance is None or step.tied:
            return 1.0 / entries
        if self.advance is Advance.EVERY_REQUEST:
            return known.chance(step.was, step.then) if entries > 1 else 1.0
        if step.then == step.was:
            return 0.5 if step.failed else 1.0
        return 0.5 * known.chance(step.was, step.then) if step.failed else 0.0

    def log_likelihood(self, steps: Iterable[Step], entries: int) -> float:
        """Of all steps of one client; minus infinity where it does not allow one of them."""
        known, total = Successions(entries) if self.shuffled else Successions.given(entries), 0.0
        for step in steps:
            chance = self.chance(step, known)
            if not chance:
                return -math.inf
            total += math.log(chance)
        return total
