"""What is predicted and measured: quantities by name, and the values of one draw or one run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

DROPPED = "dropped"
"""A NameServer has the broker no more."""
BACK = "back"
"""It has it again; from the end of the fault. Without a broker: all masters."""
ROUTE = "route"
"""A client's route is without the broker (or without writing to it)."""
LAST_FAILED = "last failed send"
RELEASED = "released"
"""A consumer has given up its queues of the broker."""
LEFT = "left"
"""A client that was on the NameServer has chosen another."""
FAILED_SENDS = "failed sends"


class Quantity(NamedTuple):
    """`who`: a NameServer, producers or consumers; `whom`: the broker or NameServer that it is about, or nothing."""

    who: str
    what: str
    whom: str

    @property
    def words(self) -> str:
        """What a person reads."""
        broker, server = self.whom, self.whom
        return {
            DROPPED: f"{self.who}: {broker} dropped",
            BACK: f"{self.who}: {broker or 'a broker'} back, from the end",
            ROUTE: f"{self.who}: {broker} out of the route",
            LAST_FAILED: f"{self.who}: last failed send",
            RELEASED: f"{self.who}: queues of {broker} released",
            LEFT: f"{self.who} on {server}: another chosen",
        }[self.what]


@dataclass(slots=True)
class Sample:
    """One draw of the model, or one run: each quantity's values, one a client or NameServer; sends that failed."""

    values: dict[Quantity, list[float]] = field(default_factory=lambda: defaultdict(list))
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """How many of how many."""

    def add(self, quantity: Quantity, value_ms: float) -> None:
        self.values[quantity].append(value_ms)

    def share(self, what: str, of: int, all_: int) -> None:
        before = self.counts.get(what, (0, 0))
        self.counts[what] = before[0] + of, before[1] + all_
