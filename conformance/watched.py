"""One process of the program under test, from its start to its end: what rules are measured on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ..chaos.fronts.observed import Observation

Seen = TypeVar("Seen", bound=Observation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What was seen of one process in one situation. Times in milliseconds on the stand's clock."""

    situation: str
    number: int
    """Which process of the situation, from 0; two consumers of one group are two of these on one stand."""
    name_servers: tuple[str, ...]
    """Names of the fronts in the order in which the program was told them."""
    brokers: tuple[str, ...]
    topic: str
    group: str
    process: int
    began_ms: float
    at_work_ms: float | None
    """The first look-up of a route that a NameServer answered with a route; None: none was."""
    stopping_ms: float
    """When it was told to stop, or ended by itself; what comes later is its farewell."""
    ended_ms: float
    ended: str
    """How: "stopped" by us; "exit 1", "signal 11" by itself; "killed", because the situation wants it; "hung"."""
    dials_unseen: str | None
    """Why connect() calls are not in `seen`; None: they are."""
    late_ms: float = 0.0
    """By how much the stand's event loop was late at worst meanwhile: what was seen may have been so much earlier."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """host:port of each front by its name, as the program dials it."""
    seen: tuple[Observation, ...]
    """In order of time; of this process alone."""

    def of(self, kind: type[Seen]) -> Iterator[Seen]:
        """The observations of one kind, in order of time."""
        return (one for one in self.seen if isinstance(one, kind))
