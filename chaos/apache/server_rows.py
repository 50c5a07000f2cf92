"""Observations, log lines and polls of an Apache server become the rows that our own would have recorded. Sans-IO.

    server front ──Observation──┐
    dialler fronts ─Observation─┤
    namesrv.log, broker.log ────┼─► ServerRows ─┬─► NameServerRows    registration, broker_dropped, route, write_perm
    polls of 105 and 106 ───────┘               └─► BrokerRows        register, topic, boot, commit, client_heartbeat,
                                                                      client_gone, offset_reset
    both: timer_lag, how inexact their rows are (Inexact)

How a row was learnt it says itself: `value.learnt` is wire, log or poll; of a `route` row, whose value is a route and
nothing else, `f`. A moment that nobody saw lies between two that somebody did: the row has the middle, and a
`timer_lag` row over that stretch says by how much it may be wrong, which every check allows.

Rows are put as soon as they are decided, not in order of time, up to SETTLES_MS and a poll's period late; those that
are not decided when the process is killed are lost with it, as a node's own last rows are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...remoting.node.profile import Profile
from ..fronts.observed import Observation
from ..fronts.rows import TimedRow
from ..logs.layouts import head_of
from ..logs.shapes import event_of
from ..topology import NodeKind
from .tables import Table

SETTLES_MS = 50.0
"""What was seen is decided so much later, of the machine's time: what came before it may be told after it."""

Put = Callable[[TimedRow], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAbout:
    """Whose rows they are. All addresses as everybody is told them."""

    name: str
    kind: NodeKind
    profile: Profile
    broker_name: str = ""
    broker_id: int = 0
    elects: bool = False
    """Of a broker: whether it is one of a name that elects its master, so that its id changes."""
    name_servers: Mapping[str, str] = field(default_factory=dict)
    """Of a broker: NameServer → host:port. What a dialler's front of that name shows is a broker's doing there."""
    fronts: Mapping[str, str] = field(default_factory=dict)
    """Of a broker: host:port of its dialler's front, as its log has it → NameServer."""
    scale: float = 1.0
    """How many times as fast as the machine's the run's time goes."""
    register_timeout_ms: float = 6_000.0
    """Of a broker: how long a registration waits for its answer (registerBrokerTimeoutMills)."""


EVERY_MS = 1_000.0
"""One row for the polls of so long."""
UNTIL_READ_MS = 250.0
"""How old a line of a log may be when it is read, of the machine's time: it was written, and the file looked at then;
where nobody has looked for longer, as old as that."""


class Inexact:
    """How inexact a server's rows are, as `timer_lag` rows of its node: the tolerance of the checks.

    answered ── 250 ms ── answered     a poll that took 30 ms: the server, or who asks it, was 30 ms late
       old value │    │ new value      a change between two moments: the row has the middle, ± half of what lies between
    """

    def __init__(self, put: Callable[[TimedRow], None], scale: float = 1.0) -> None:
        self._put, self._until_read_ms = put, UNTIL_READ_MS * scale
        self._looked_ms = -math.inf
        self._since_ms: float | None = None
        self._worst_ms = 0.0

    def polled(self, began_ms: float, ended_ms: float) -> None:
        """A poll took so long, answered or not."""
        if self._since_ms is None:
            self._since_ms = began_ms
        self._worst_ms = max(self._worst_ms, ended_ms - began_ms)
        if ended_ms - self._since_ms >= EVERY_MS:
            self.flush(ended_ms)

    def flush(self, now_ms: float) -> None:
        if self._since_ms is not None and now_ms > self._since_ms:
            self._say(now_ms, self._worst_ms, now_ms - self._since_ms)
        self._since_ms, self._worst_ms = None, 0.0

    def looked(self, now_ms: float) -> None:
        """Its logs have been read until now."""
        self._looked_ms = now_ms

    def written_ms(self, read_ms: float) -> float:
        """The earliest time that a line of this reading may have."""
        return min(max(self._looked_ms, read_ms - EVERY_MS * 60), read_ms - self._until_read_ms)

    def between(self, from_ms: float, to_ms: float) -> float:
        """The moment that stands for one that lies somewhere in [from_ms, to_ms]."""
        if to_ms > from_ms:
            self._say(to_ms, (to_ms - from_ms) / 2, to_ms - from_ms)
        return (from_ms + to_ms) / 2

    def _say(self, at_ms: float, lag_ms: float, duration_ms: float) -> None:
        self._put(TimedRow(at_ms, "timer_lag", {"lag_ms": lag_ms, "duration_ms": duration_ms}))


class ServerRows(ABC):
    """Rows of one process of one server. `put` is given each row, not in order of time."""

    def __init__(self, put: Put, about: ServerAbout) -> None:
        self._sink, self._about = put, about
        self._inexact = Inexact(put, about.scale)

    @abstractmethod
    def saw(self, one: Observation) -> None:
        """At the server front, whose name is the node's, or at one of its dialler's, in order of time."""

    @abstractmethod
    def _told(self, at_ms: float, event: str, fields: Mapping[str, str]) -> None:
        """A line of its logs says this, read then."""

    @abstractmethod
    def polled(self, began_ms: float, ended_ms: float, table: Table | None) -> None:
        """What it held at some moment of [began, ended]; None: it did not answer."""

    @abstractmethod
    def _decide(self, now_ms: float) -> None:
        """It is so late: what waited for more to come is decided."""

    def logged(self, at_ms: float, line: str) -> None:
        """A new line of one of its log files, read at `at_ms` and not there when it was read before."""
        record = head_of(line)
        found = None if record is None else event_of(record.text)
        if found is not None:
            self._told(at_ms, *found)

    def passed(self, now_ms: float) -> None:
        """It is so late, and all lines until now are read: what waited for more to come is decided."""
        self._decide(now_ms)
        self._inexact.looked(now_ms)

    def end(self, now_ms: float) -> None:
        """Nothing more will be seen: the process has ended in peace."""
        self._decide(now_ms)
        self._inexact.flush(now_ms)

    def topics(self) -> tuple[str, ...]:
        """Of a NameServer: what to ask it for."""
        return ()

    def recovered(self, consumer_offsets: str | bytes | None) -> None:  # noqa: B027
        """Of a broker, before it starts: its consumerOffset.json, None without one."""

    def stops(self) -> None:  # noqa: B027
        """Its process is asked to end now; all lines until now were read."""

    def _put(self, at_ms: float, event: str, **fields: Any) -> None:
        self._sink(TimedRow(at_ms, event, fields))
