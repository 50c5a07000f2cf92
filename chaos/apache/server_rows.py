"""Observations, log lines and polls of an Apache server become the rows that our own would have recorded. Sans-IO.

    server front ──Observation──┐
    dialler fronts ─Observation─┤
    namesrv.log, broker.log ────┼─► ServerRows ─┬─► NameServerRows    registration, broker_dropped, route, write_perm
    polls of 105 and 106 ───────┘               └─► BrokerRows        register, topic, boot, commit, client_heartbeat,
                                                                      client_gone, offset_reset
    both: timer_lag, how inexact their rows are (inexact.py)

How a row was learnt it says itself: `value.learnt` is wire, log or poll; of a `route` row, whose value is a route and
nothing else, `f`. A moment that nobody saw lies between two that somebody did: the row has the middle, and a
`timer_lag` row over that stretch says by how much it may be wrong, which every check allows.

Rows are put as soon as they are decided, not in order of time, up to SETTLES_MS and a poll's period late; those that
are not decided when the process is killed are lost with it, as a node's own last rows are.
"""

from __future__ import annotations

from typing import Protocol

from ..fronts.observed import Observation
from ..topology import NodeKind
from .about import Put, ServerAbout
from .broker_rows import BrokerRows
from .name_server_rows import NameServerRows
from .tables import Table

__all__ = ["ServerAbout", "ServerRows"]


class _Rows(Protocol):
    def saw(self, one: Observation) -> None: ...
    def logged(self, at_ms: float, file: str, line: str) -> None: ...
    def looked(self, now_ms: float) -> None: ...
    def polled(self, began_ms: float, ended_ms: float, table: Table | None) -> None: ...
    def passed(self, now_ms: float) -> None: ...
    def end(self, now_ms: float) -> None: ...


class ServerRows:
    """Rows of one process of one server. `put` is given each row, not in order of time."""

    def __init__(self, put: Put, about: ServerAbout) -> None:
        self._broker = None if about.kind is NodeKind.NAME_SERVER else BrokerRows(put, about)
        self._name_server = NameServerRows(put, about) if self._broker is None else None
        rows = self._broker or self._name_server
        assert rows is not None
        self._rows: _Rows = rows

    def saw(self, one: Observation) -> None:
        """At the server front, whose name is the node's, or at one of its dialler's, in order of time."""
        self._rows.saw(one)

    def logged(self, at_ms: float, file: str, line: str) -> None:
        """A new line of one of its log files, read at `at_ms` and not there when it was read before."""
        self._rows.logged(at_ms, file, line)

    def polled(self, began_ms: float, ended_ms: float, table: Table | None) -> None:
        """What it held at some moment of [began, ended]; None: it did not answer."""
        self._rows.polled(began_ms, ended_ms, table)

    def topics(self) -> tuple[str, ...]:
        """Of a NameServer: what to ask it for."""
        return () if self._name_server is None else self._name_server.topics()

    def recovered(self, consumer_offsets: str | bytes | None) -> None:
        """Of a broker, before it starts: its consumerOffset.json, None without one."""
        if self._broker is not None:
            self._broker.recovered(consumer_offsets)

    def passed(self, now_ms: float) -> None:
        """It is so late, and all lines until now are read: what waited for more to come is decided."""
        self._rows.passed(now_ms)
        self._rows.looked(now_ms)

    def stops(self) -> None:
        """Its process is asked to end now; all lines until now were read."""
        if self._name_server is not None:
            self._name_server.stops()

    def end(self, now_ms: float) -> None:
        """Nothing more will be seen: the process has ended in peace."""
        self._rows.end(now_ms)
