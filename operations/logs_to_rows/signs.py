"""Defines signs: facts about links and processes in a history's rows, from which faults are inferred. Pure: no I/O.

    rows ──► Seen: nodes, their logs and how exact these are, and the signs by link and node

A sign is one fact about one link (`dialler` to `peer`) or one node: a request was answered, unanswered or refused, a
channel ended, or a registration was missing. Most signs cover a time: a request that had no answer for 3 s shows a
fault during these 3 s.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from ...chaos.oracle.timers import Timers

Row = Mapping[str, Any]
T = TypeVar("T")
LEAVING_MS = 300_000.0
"""The longest that a broker takes to end after its unregistration."""
HARNESS = frozenset({"harness", "prober", "admin", "clocks", "toxiproxy"})
"""Nodes with rows and no log."""


class Kind(StrEnum):
    """The kinds of facts that a sign can state. The fact is about a link, unless a comment says that it is about a
    node."""

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
    """A link from `dialler`, the connecting node, to `peer`. For a sign about one node, `peer` is empty."""

    dialler: str
    peer: str

    def __str__(self) -> str:
        return f"{self.dialler} <-> {self.peer}" if self.peer else self.dialler


@dataclass(frozen=True, slots=True, eq=False)
class Sign:
    kind: Kind
    edge: Edge
    at_ms: float
    from_ms: float
    """Since when it held at the latest: the request was sent, the registration was due."""
    observer: str
    row: Row | None
    """The row with the fact; None if a missing row shows the fact."""
    value: str = ""


@dataclass(slots=True)
class Seen:
    """The nodes, logs and signs of one history, from which faults are inferred."""

    timers: Timers
    kinds: dict[str, str] = field(default_factory=dict)
    """The kind of each node."""
    addresses: dict[str, str] = field(default_factory=dict)
    """The node at each address."""
    own: dict[str, list[float]] = field(default_factory=dict)
    """The times of each node's own lines, in order."""
    exact_ms: dict[str, float] = field(default_factory=dict)
    """Node to the possible error of its stamps, either way."""
    by_edge: dict[Edge, list[Sign]] = field(default_factory=dict)
    """In order of time. The edge of a node has no peer."""
    chosen: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    """Client to its chosen NameServer from that time on."""
    idle: dict[Edge, list[float]] = field(default_factory=dict)
    """Times at which the client closed an unused channel."""
    unsure: frozenset[str] = frozenset()
    """Nodes with an unknown clock."""
    unpinned: frozenset[str] = frozenset()
    """Nodes whose clock is known only up to whole periods."""
    guessed: frozenset[str] = frozenset()
    """NameServers whose log and address are matched by a guess."""
    rows: Sequence[Row] = ()
    first_ms: float = 0.0
    last_ms: float = 0.0

    def tolerance_ms(self, *nodes: str) -> float:
        """Return by how many milliseconds the times of two rows of these nodes can differ, although both rows report
        one event."""
        worst = sorted((self.exact_ms.get(node, 50.0) for node in nodes), reverse=True)[:2]
        return sum(worst) + 50.0

    def is_written(self, node: str) -> bool:
        return bool(self.own.get(node))

    def own_from(self, node: str) -> float:
        """Return the time of the first line in the node's own log; inf if the log has no line."""
        return next(iter(self.own.get(node, ())), math.inf)

    def covers(self, node: str, from_ms: float, to_ms: float) -> bool:
        """Whether the node's own log begins before `from_ms` and ends after `to_ms`."""
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
        return [edge for edge in self.by_edge if edge.peer and node in edge]

    def add(self, kind: Kind, edge: Edge, row: Row, *, from_ms: float | None = None, value: str = "") -> None:
        at_ms = float(row["time_ms"])
        sign = Sign(kind, edge, at_ms, at_ms if from_ms is None else from_ms, str(row["node"]), row, value)
        self.by_edge.setdefault(edge, []).append(sign)

    def bad(self) -> Iterable[Sign]:
        for signs in self.by_edge.values():
            yield from (sign for sign in signs if sign.kind not in WORKS)


def in_time(sign: Sign) -> tuple[float, int]:
    """Return a sort key that orders signs by time. Of signs at the same time, successes come last."""
    last = sign.kind in (Kind.BOOT, Kind.ARRIVED, Kind.OPEN, Kind.OK)
    return sign.at_ms, int(last)


def value_of(row: Row) -> Mapping[str, Any]:
    value = row.get("value")
    return value if isinstance(value, Mapping) else {}


def is_inferred(row: Row) -> bool:
    """Whether the row was inferred, and so is not from a line of the node's own log."""
    return value_of(row).get("learnt") == "inferred"


def is_registration(row: Row) -> bool:
    """Whether the row says that a NameServer accepted a broker's registration."""
    return row["event"] == "registration" and bool(row.get("broker_name")) and row.get("code") in (0, None)


def is_near(times: Sequence[float], at_ms: float, within_ms: float) -> bool:
    """Whether a list of ascending times has a time at most `within_ms` from `at_ms`."""
    at = bisect_left(times, at_ms - within_ms)
    return at < len(times) and times[at] <= at_ms + within_ms


def bundles(items: Iterable[T], at_ms: Callable[[T], float], within_ms: float) -> list[list[T]]:
    """Return the items in order of time, in groups. A group ends `within_ms` after its first item."""
    found: list[list[T]] = []
    for item in sorted(items, key=at_ms):
        if found and at_ms(item) - at_ms(found[-1][0]) <= within_ms:
            found[-1].append(item)
        else:
            found.append([item])
    return found


def heads(links: Iterable[tuple[T, T]]) -> Callable[[T], T]:
    """Return a function that gives the same item for all items that the links join, directly or through others."""
    head: dict[T, T] = {}

    def find(one: T) -> T:
        while (up := head.setdefault(one, one)) != one:
            head[one] = head.get(up, up)
            one = up
        return one

    for one, other in links:
        head[find(one)] = find(other)
    return find


def last_before(times: Sequence[float], at_ms: float) -> float:
    """Return the last time before `at_ms` in a list of ascending times; -inf if there is none."""
    at = bisect_left(times, at_ms)
    return times[at - 1] if at else -math.inf


def first_after(times: Sequence[float], at_ms: float) -> float:
    """Return the first time after `at_ms` in a list of ascending times; inf if there is none."""
    at = bisect_right(times, at_ms)
    return times[at] if at < len(times) else math.inf


def where_of(row: Row | None) -> dict[str, Any]:
    """Return file and line number of the log line from which the row was made, if known."""
    value = {} if row is None else value_of(row)
    if row is not None and "file" not in value and row["event"] != "node" and ":" in str(row.get("source")):
        file, _, line = str(row["source"]).rpartition(":")
        return {"file": file, "line": int(line)} if line.isdigit() else {}
    return {key: value[key] for key in ("file", "line") if key in value}
