"""Turns observations, log lines and polls of an Apache server into the rows that nemesrv's own server would record.
Does no I/O.

    server front ──Observation──┐
    client fronts ──Observation──┤
    namesrv.log, broker.log ────┼─► ServerRows ─┬─► NameServerRows    registration, broker_dropped, route, write_perm
    polls of 105 and 106 ───────┘               └─► BrokerRows        register, topic, boot, commit, client_heartbeat,
                                                                      client_gone, offset_reset
    both: timer_lag (inexact), the error of their rows

A row's `value.learnt` (in `route` rows: `f`) says how the change was seen: wire, log or poll. If the exact time of a
change was not seen, the row's time is the middle between the observations before and after the change. A `timer_lag`
row records the possible error of the rows' times, which every check allows.

Each row is written once its cause is certain, up to SETTLES_MS plus one polling period late, so rows are not in order
of time. If the process is killed, rows that are not yet written are lost.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..fronts.observed import Observation
from ..fronts.rows import TimedRow
from ..logs.layouts import head_of
from ..logs.shapes import event_of

SETTLES_MS = 50.0
"""Machine time by which decisions are delayed, because earlier events may be reported later."""

Put = Callable[[TimedRow], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAbout:
    """A server's name and addresses; all addresses are the advertised addresses."""

    name: str
    broker_name: str = ""
    broker_id: int = 0
    elects: bool = False
    """Whether the broker's name elects its master, so that its id changes."""
    name_servers: Mapping[str, str] = field(default_factory=dict)
    """A broker's NameServers: name to host:port. The client front of that name shows what it does there."""
    fronts: Mapping[str, str] = field(default_factory=dict)
    """A broker's client fronts: host:port, as in its log, to NameServer."""
    scale: float = 1.0
    """The rate of the run's time, in units of the machine's."""
    register_timeout_ms: float = 6_000.0
    """How long a broker's registration waits for its answer (registerBrokerTimeoutMills)."""


EVERY_MS = 1_000.0
"""The polls of this much time share one row."""
UNTIL_READ_MS = 250.0
"""Machine time between the writing and the reading of a log line, if the file was read in time; if not, as long as it
was not read."""


class Inexact:
    """Records the error of a server's rows as `timer_lag` rows of its node, for the tolerance of the checks.

    answered ── 250 ms ── answered     a poll that took 30 ms: server or poller was 30 ms late
       old value │    │ new value      a change between two polls: the row has the middle, ± half of their distance
    """

    def __init__(self, put: Callable[[TimedRow], None], scale: float = 1.0) -> None:
        self._put, self._until_read_ms = put, UNTIL_READ_MS * scale
        self._looked_ms = -math.inf
        self._since_ms: float | None = None
        self._worst_ms = 0.0

    def polled(self, began_ms: float, ended_ms: float) -> None:
        """Note how long a poll took, whether it was answered or not."""
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
        self._looked_ms = now_ms

    def written_ms(self, read_ms: float) -> float:
        """Return the earliest time at which log lines that were read at `read_ms` can have been written."""
        return min(max(self._looked_ms, read_ms - EVERY_MS * 60), read_ms - self._until_read_ms)

    def between(self, from_ms: float, to_ms: float) -> float:
        """Return the middle of [from_ms, to_ms], and record half of the distance as the error."""
        if to_ms > from_ms:
            self._say(to_ms, (to_ms - from_ms) / 2, to_ms - from_ms)
        return (from_ms + to_ms) / 2

    def _say(self, at_ms: float, lag_ms: float, duration_ms: float) -> None:
        self._put(TimedRow(at_ms, "timer_lag", {"f": "inexact", "lag_ms": lag_ms, "duration_ms": duration_ms}))


class ServerRows(ABC):
    """Makes the history's rows of one process of a server. `put` is called with each row, not in order of time."""

    def __init__(self, put: Put, about: ServerAbout) -> None:
        self._sink, self._about = put, about
        self._inexact = Inexact(put, about.scale)

    @abstractmethod
    def saw(self, one: Observation) -> None:
        """Process one observation at the server's own front (named as the node) or a front to a peer, in order of
        time."""

    @abstractmethod
    def _told(self, at_ms: float, event: str, fields: Mapping[str, str]) -> None:
        """Take a line of the server's logs that was read at that time."""

    @abstractmethod
    def _decide(self, now_ms: float) -> None:
        """Decide the rows that waited, because time has passed."""

    def logged(self, at_ms: float, line: str) -> None:
        """Process a new line of one of the server's log files, read at `at_ms`."""
        record = head_of(line)
        found = None if record is None else event_of(record.text)
        if found is not None:
            self._told(at_ms, *found)

    def passed(self, now_ms: float) -> None:
        """Write each waiting row whose cause is certain by now. Call after all log lines until now have been read."""
        self._decide(now_ms)
        self._inexact.looked(now_ms)

    def end(self, now_ms: float) -> None:
        self._decide(now_ms)
        self._inexact.flush(now_ms)

    def _put(self, at_ms: float, event: str, **fields: Any) -> None:
        self._sink(TimedRow(at_ms, event, fields))
