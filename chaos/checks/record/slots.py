"""Counts the outcomes of clients' operations by client, operation, and slot of time; availability and recovery_time are
judged by these, however many operations there were.

Buckets are equal parts of the run, at most 200. Segments lie between the edges that a check asks about (a fault, a
heal, the bounds of a quiet time): an operation belongs to the segment in which it began. Each client adds at most
buckets + segments slots an operation (plain/slots.py).

Good is an answer: a send that ended ok, or was stored on no slave while there may have been none
(oracle/slaves.py); a pull or a look-up that was answered at all, for a broker that says "not yet" or a NameServer
that says "no such topic" serves. Each try of a send is counted besides, as its broker's: what a broker refuses, or
leaves without an answer, is no good try. Operations without an end are not counted. The prober's starts are counted,
too: they ask the NameServers that no client sits at, and are no client's operations.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ...oracle.quiet import calm_but_stalls
from ...oracle.reach import first_harm_ms, moments
from ...oracle.world import World
from ..check import Facts, largest, least

OPERATIONS = {"send": "sends", "pull": "pulls", "name_server_call": "look-ups"}
TRY = "send_attempt"
"""One try of a send: it is counted as the broker's that was asked, for a retry elsewhere may save the send."""
BUCKETS_MAX = 200
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


class Slot(NamedTuple):
    """What tells operations apart."""

    node: str
    operation: str
    bucket: int
    segment: int
    """How many of the edges had passed when its operations began."""
    until: int
    """How many had passed when they ended."""


@dataclass(frozen=True)
class Tally(Facts):
    """Operations that ended, when the first and the last of them did, and when the first of them began."""

    good: int = 0
    bad: int = 0
    first_good_ms: float | None = least()
    last_ms: float | None = largest()
    first_bad_ms: float | None = least()
    last_bad_ms: float | None = largest()
    first_began_ms: float | None = least()

    @property
    def ended(self) -> int:
        return self.good + self.bad

    @property
    def ratio(self) -> float:
        """To six places; 1 only when nothing failed."""
        return 1.0 if not self.bad else min(round(self.good / self.ended, 6), 0.999999)


def counted_nodes(world: World) -> list[str]:
    """Whose operations are counted: clients, and the prober."""
    return [node.name for node in world.of_kind("producer", "consumer", "prober")]


def of_clients(slots: Mapping[Slot, Tally], world: World) -> Mapping[Slot, Tally]:
    """The clients' operations, without the prober's, and without single tries."""
    probers = {node.name for node in world.of_kind("prober")}
    return {slot: of for slot, of in slots.items() if slot.node not in probers and slot.operation != TRY}


def edges(world: World) -> list[float]:
    """Every fault, heal and bound of a quiet stretch, and the first act by hand, ascending."""
    found = {edge for stretch in calm_but_stalls(world) for edge in stretch} | {m.at_ms for m in moments(world)}
    first_ms = first_harm_ms(world)
    return sorted(found if first_ms is None else found | {first_ms})


def bucket_ms(world: World) -> float:
    """The width of a bucket: a round number of milliseconds, at least 1 s, that makes no more than BUCKETS_MAX."""
    least_ms = max(1000.0, world.end_ms / (BUCKETS_MAX - 1))
    power = 10.0 ** math.floor(math.log10(least_ms))
    return next(power * step for step in _STEPS if power * step >= least_ms)
