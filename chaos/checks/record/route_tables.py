"""The contents of each NameServer's table over time: the `route` rows as stretches of time."""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from ...oracle.intervals import grouped, until_next
from ...oracle.roles import shown_ids
from ...oracle.world import World
from ...topology import broker_name
from .control import Control, decoded, once

BEFORE_ALL_MS = -1.0
"""A process's table is empty before its first row, whenever that is."""

Process = tuple[str, int]
"""Node and incarnation."""


class RouteStretch(NamedTuple):
    """The topic's route in [s, e): its JSON text with sorted keys (or what had to be), None if it is not there."""

    s: float
    e: float
    value: Any


class Presence(NamedTuple):
    """Whether the route had the broker in [s, e). Neighbouring stretches differ in `present`."""

    present: bool
    s: float
    e: float


class TopicChange(NamedTuple):
    """A broker's process, started at `started_ms`, made, changed or lost a topic."""

    broker: str
    incarnation: int
    topic: str
    time_ms: float
    started_ms: float
    is_there: bool


class RouteTables:
    """The routes of every NameServer process, from the control rows; made once for each history."""

    def __init__(self, control: Control, world: World) -> None:
        self._world = world
        rows = [row._replace(value=None) if row.value == "null" else row for row in control.rows("route")]
        said = (*rows, *control.rows("topic"))
        self.topics = tuple(sorted({row.topic for row in said if exists(row.value) and row.topic}))
        """Every topic that any NameServer held at any time, or that any broker had: it may be missing everywhere."""
        self._changes = grouped(((row.process, row.topic), (row.time_ms, row.value)) for row in rows)
        self.stretches: dict[Process, dict[str, list[RouteStretch]]] = {}
        """NameServer process → topic → its stretches in order of time. A process that ended holds nothing after it."""
        for life in world.lives_of_kind("name_server"):
            end_ms = min(life.end_ms, world.end_ms)
            self.stretches[life.process] = {
                topic: _stretches([(BEFORE_ALL_MS, None), *self._changes.get((life.process, topic), ())], end_ms)
                for topic in self.topics
            }
        self.perms_set: dict[Process, dict[str, float]] = defaultdict(dict)
        """NameServer process → broker → when somebody first had its write permission wiped, or added, there."""
        for row in control.rows("write_perm"):
            self.perms_set[row.process].setdefault(row.broker_name, row.time_ms)
        started = {life.process: life.start_ms for life in reversed(world.lives)}
        self.topic_changes = tuple(
            TopicChange(row.node, row.incarnation, row.topic, row.time_ms, started[row.process], exists(row.value))
            for row in control.rows("topic")
            if row.process in started
        )
        self._presence: dict[tuple[Process, str, str, bool], list[Presence]] = {}

    def held(self, process: Process, topic: str, from_ms: float, to_ms: float) -> Iterator[str | None]:
        """Every route of the topic that the table had in [from_ms, to_ms], for a moment of no length, too: a NameServer
        that was stopped reads all that waits for it at once; or by as much earlier or later as clocks are apart."""
        changes, apart_ms = self._changes.get((process, topic), ()), self._world.timers.clocks_ms
        from_ms, to_ms = from_ms - apart_ms, to_ms + apart_ms
        first, last = bisect_left(changes, from_ms, key=itemgetter(0)), bisect_right(changes, to_ms, key=itemgetter(0))
        yield changes[first - 1][1] if first else None
        yield from (value for _, value in changes[first:last])

    def of(self, process: Process, topic: str) -> Sequence[RouteStretch]:
        return self.stretches.get(process, {}).get(topic, ())

    def presence(self, process: Process, topic: str, broker: str, *, anywhere: bool = False) -> Sequence[Presence]:
        """Whether the topic's route had the broker: under its name and id, with the address that it has then; or, of
        what must not be there, `anywhere`: with any that it ever has."""
        node = self._world.node(broker)
        key = process, topic, broker, anywhere and node is not None and bool(node.moves)
        if key not in self._presence:
            self._presence[key] = self.present(self.of(process, topic), broker, key[-1])
        return self._presence[key]

    def present(self, stretches: Sequence[RouteStretch], broker: str, anywhere: bool) -> list[Presence]:
        """The same of these routes."""
        found: list[Presence] = []
        node, name = self._world.node(broker), broker_name(broker)
        moves = node.moves if node is not None else ()
        cuts = sorted((self._world.heard_ms(broker), *(move.from_ms for move in moves)))
        parts = [
            (max(st.s, from_ms), min(st.e, to_ms), st.value)
            for st in stretches
            for from_ms, to_ms in pairwise((-math.inf, *cuts, math.inf))
            if max(st.s, from_ms) < min(st.e, to_ms)
        ]
        for s, e, value in parts:
            named = brokers_of(value).get(name, {})
            held = [named[str(id_)] for id_ in shown_ids(self._world, broker, s, e) if str(id_) in named]
            own = () if node is None else node.addresses if anywhere else (node.address_at(s),)
            present = any(not own or one in own or None in own for one in held)
            if found and found[-1].present == present:
                found[-1] = found[-1]._replace(e=e)
            else:
                if found:
                    found[-1] = found[-1]._replace(e=s)
                found.append(Presence(present, s, e))
        return found


route_tables = once(RouteTables)


def exists(value: str | None) -> bool:
    """Whether the row's value says that the topic is there."""
    return value is not None and value != "null"


def brokers_of(value: str | Mapping[str, Any] | None) -> Mapping[str, Mapping[str, str]]:
    """broker name → broker id → address, of a route or its JSON text."""
    route: Any = value if isinstance(value, Mapping) else decoded(value)
    return (route or {}).get("brokers") or {}


def _stretches(changes: Sequence[tuple[float, str | None]], end_ms: float) -> list[RouteStretch]:
    return [
        RouteStretch(s, min(e, end_ms), value) for (s, value), e in until_next(changes, end_ms) if s < min(e, end_ms)
    ]
