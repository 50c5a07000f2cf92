"""What the rows of a history say of each link and process: the signs that faults are told by. Pure.

    rows ──► Seen: who is who, whose log is there and until when, how exact it is, and by link and node the signs

A sign is one thing that somebody wrote down of one link (`dialler` dials `peer`) or of one node: that it worked, that
nobody answered, that it was refused, that a channel ended, that a registration did not come. Most signs have a
stretch: a request that had no answer at t, begun at t - 3 s, says that something was wrong all that time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from ...chaos.oracle.timers import Timers

Row = Mapping[str, Any]
LEAVING_MS = 300_000.0
"""So long, at most, a broker that takes its leave takes to end."""
INFINITE = math.inf
HARNESS = frozenset({"harness", "prober", "admin", "clocks", "toxiproxy"})
"""Who has rows and no log."""


class Kind(StrEnum):
    """What a sign says. Of a link, as far as the comment says nothing else."""

    OK = "answered"
    ARRIVED = "arrived at the peer"
    OPEN = "connected"
    NO_ANSWER = "no answer"
    NO_DIAL = "no answer to the SYN"
    REFUSED = "refused"
    FAILED = "failed"
    BROKEN = "broken off at once"
    HALF = "arrived, but the answer did not"
    HALF_LATE = "arrived late, and the answer did not"
    LATE = "answered late"
    CLOSED_BY_DIALLER_SEEN = "the dialler saw its channel end"
    CLOSED_BY_PEER_SEEN = "the peer saw the channel end"
    CLOSED_AFTER = "the peer saw the channel end that the dialler had given up"
    SILENCE = "given up after silence"
    EARLY = "expired although it had registered"
    MISSED = "a registration that was due did not come"
    LEFT = "unregistered"
    GONE = "no longer held, and nobody says why"
    BOOT = "started again"  # of a node
    STOPPED = "stopped cleanly"  # of a node
    OWN_MISSED = "its own log says nothing where a line was due"  # of a node


WORKS = frozenset({Kind.OK, Kind.ARRIVED, Kind.OPEN})
CLOSES = frozenset({Kind.CLOSED_BY_DIALLER_SEEN, Kind.CLOSED_BY_PEER_SEEN})


class Edge(NamedTuple):
    """`dialler` dials `peer`; a sign of a node alone has an empty `peer`."""

    dialler: str
    peer: str

    def __str__(self) -> str:
        return f"{self.dialler} <-> {self.peer}" if self.peer else self.dialler


@dataclass(frozen=True, slots=True)
class Sign:
    kind: Kind
    edge: Edge
    at_ms: float
    from_ms: float
    """Since when what it says held at the latest: the request was sent, the registration was due."""
    observer: str
    row: Row | None
    """The row that says it; None: a row that is missing says it."""
    value: str = ""

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


@dataclass(slots=True)
class Seen:
    """A history as far as faults can be told from it."""

    timers: Timers
    kinds: dict[str, str] = field(default_factory=dict)
    """Node to its kind."""
    addresses: dict[str, str] = field(default_factory=dict)
    """Address to the node."""
    own: dict[str, list[float]] = field(default_factory=dict)
    """Node to when it wrote something itself, in order."""
    exact_ms: dict[str, float] = field(default_factory=dict)
    """Node to by how much its stamps may be wrong, either way."""
    by_edge: dict[Edge, list[Sign]] = field(default_factory=dict)
    """In order of time; the edge of a node alone has no peer."""
    chosen: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    """Client to the NameServer it sat on from then on."""
    idle: dict[Edge, list[float]] = field(default_factory=dict)
    """When the dialler closed a channel that nobody used."""
    held: dict[Edge, list[tuple[float, float]]] = field(default_factory=dict)
    """When the NameServer's table had the broker, of one whose table was looked at all the time."""
    arrivals: dict[Edge, list[float]] = field(default_factory=dict)
    """Of a NameServer whose log tells every registration."""
    unsure: frozenset[str] = frozenset()
    """Nodes whose clocks nobody knows."""
    unpinned: frozenset[str] = frozenset()
    """Nodes whose clocks are known by what recurs only, so but for whole periods."""
    guessed: frozenset[str] = frozenset()
    """NameServers of which it is a guess that a log and an address are one's."""
    rows: Sequence[Row] = ()
    first_ms: float = 0.0
    last_ms: float = 0.0

    def tolerance_ms(self, *nodes: str) -> float:
        """By how much the times of these nodes' rows may be apart for the same moment."""
        worst = sorted((self.exact_ms.get(node, 50.0) for node in nodes), reverse=True)[:2]
        return sum(worst) + 50.0

    def is_written(self, node: str) -> bool:
        """Whether there is a log of its own."""
        return bool(self.own.get(node))

    def own_from(self, node: str) -> float:
        """From when on there are lines of its own; inf: never."""
        return next(iter(self.own.get(node, ())), INFINITE)

    def covers(self, node: str, from_ms: float, to_ms: float) -> bool:
        """Whether its own log has lines before and after."""
        own = self.own.get(node, [])
        return bool(own) and own[0] <= from_ms and own[-1] >= to_ms

    def of_kind(self, *kinds: str) -> list[str]:
        return sorted(node for node, kind in self.kinds.items() if kind in kinds)

    @property
    def name_servers(self) -> list[str]:
        return self.of_kind("name_server")

    @property
    def brokers(self) -> list[str]:
        return self.of_kind("broker", "slave")

    @property
    def clients(self) -> list[str]:
        return self.of_kind("producer", "consumer", "client")

    def edges_of(self, node: str) -> list[Edge]:
        """The links of this node that anything is known of."""
        return [edge for edge in self.by_edge if edge.peer and node in edge]

    def bad(self) -> Iterable[Sign]:
        for signs in self.by_edge.values():
            yield from (sign for sign in signs if sign.kind not in WORKS)


def in_time(sign: Sign) -> tuple[float, int]:
    """Of one moment: what worked, what ended, what began."""
    last = sign.kind in (Kind.BOOT, Kind.ARRIVED, Kind.OPEN, Kind.OK)
    return sign.at_ms, int(last)


def value_of(row: Row) -> Mapping[str, Any]:
    value = row.get("value")
    return value if isinstance(value, Mapping) else {}


def where_of(row: Row | None) -> dict[str, Any]:
    """File and line of the row, as far as it has them."""
    value = {} if row is None else value_of(row)
    if row is not None and "file" not in value and row["event"] != "node" and ":" in str(row.get("source")):
        file, _, line = str(row["source"]).rpartition(":")
        return {"file": file, "line": int(line)} if line.isdigit() else {}
    return {key: value[key] for key in ("file", "line") if key in value}


class Signs:
    """By link and node, still in no order."""

    def __init__(self) -> None:
        self.signs: dict[Edge, list[Sign]] = defaultdict(list)

    def add(
        self,
        kind: Kind,
        edge: Edge,
        row: Row | None,
        *,
        at_ms: float,
        from_ms: float | None = None,
        observer: str = "",
        value: str = "",
    ) -> None:
        began_ms = at_ms if from_ms is None else from_ms
        self.signs[edge].append(Sign(kind, edge, at_ms, began_ms, observer, row, value))
