"""Each broker's registrations of each topic at each NameServer, as the broker recorded them, and when a route may have
them.

    broker's `topic` rows        setting 1 ────────────┬─ setting 2 ──────────────
    its `register` rows                ├──ok──┤        │  ├──ok──┤  (begun, ended, with the dataVersion that they sent)
    at this NameServer   setting 1 may be held from ───┴─────────┤ to: the newer one is acknowledged
                         setting 2 may be held             ├──────────────────────

A setting may be held from the beginning of the first registration that sent it, answered or not (from when it was made,
where its process ended before it recorded any), until the end of the first that sent a newer one and was acknowledged.
One that nobody answered may lie in a link and arrive last, so the registration after that must be acknowledged, too.
What a NameServer read where its transport recorded that, is received.py.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...oracle.broker import Had
from ...oracle.intervals import grouped
from ...oracle.name_server import Sent
from ...oracle.world import World
from .control import Control, Row, once

QueueRow = tuple[int, int, int]
"""readQueueNums, writeQueueNums and perm."""


class Held(NamedTuple):
    """A row of a topic that a NameServer may hold in [from_ms, to_ms); `row` None: the broker has no such topic."""

    from_ms: float
    to_ms: float
    row: QueueRow | None


class RegisteredRows:
    """For each NameServer (by name), topic and broker. A broker that recorded no topic is in none of it."""

    def __init__(self, control: Control, world: World) -> None:
        self._world = world
        self._settings = _settings(control)
        self._sent_by = _sent(control, world)

    def held(self, name_server: str, topic: str, broker: str) -> Sequence[Held]:
        """Every setting of the topic at the broker, with when the NameServer may hold it; empty for a topic that the
        broker never had."""
        settings = self._settings.get(broker, {}).get(topic, ())
        return _spans(settings, self._sent_by.get((broker, name_server), ()))

    def had(self, broker: str) -> Had | None:
        """Whether some process of the broker had exactly these topics at this version (the counter). One topic that
        changed has the broker's permission of when it is sent, which may be of a later version."""
        settings = self._settings.get(broker, {})
        started = {setting.version[0] for of in settings.values() for setting in of}

        def exactly(version: float, rows: Mapping[str, QueueRow], at_ms: float) -> bool:
            if len(rows) == 1:
                ((topic, row),) = rows.items()
                of = settings.get(topic, ())
                then = {_newest(of, (life, version)) for life in started}
                return row in then | {one.row for one in of if one.version[1] >= version and one.at_ms <= at_ms}
            had = ({topic: _newest(of, (life, version)) for topic, of in settings.items()} for life in started)
            return any(rows == {topic: row for topic, row in of.items() if row is not None} for of in had)

        return exactly if settings else None

    def sent(self, broker: str, name_server: str) -> Sequence[Sent]:
        """The broker's registrations there, in the order in which they began."""
        return self._sent_by.get((broker, name_server), ())

    def topics(self, broker: str, version: tuple[int, float]) -> tuple[str, ...]:
        """What the broker had then, and has still."""
        found = self._settings.get(broker, {})
        return tuple(
            topic
            for topic, settings in found.items()
            if settings[0].version <= version and all(setting.row is not None for setting in settings)
        )

    def unchanged(self, broker: str, from_ms: float, to_ms: float) -> Mapping[str, QueueRow]:
        """The topics that the broker had all that time, with rows that did not change in it."""
        found = dict[str, QueueRow]()
        for topic, settings in self._settings.get(broker, {}).items():
            then = [setting.row for setting in settings if setting.at_ms <= from_ms][-1:]
            if then and then[0] is not None and not any(from_ms < one.at_ms <= to_ms for one in settings):
                found[topic] = then[0]
        return found

    def knows(self, broker: str) -> bool:
        """Whether the broker recorded what it has."""
        return broker in self._settings

    def due(self, name_server: str, topic: str, broker: str, from_ms: float, to_ms: float) -> frozenset[QueueRow]:
        """The rows that the NameServer may hold at some moment of [from_ms, to_ms]."""
        held, apart_ms = self.held(name_server, topic, broker), self._world.timers.clocks_ms
        from_ms, to_ms = from_ms - apart_ms, to_ms + apart_ms
        return frozenset(h.row for h in held if h.row is not None and h.from_ms <= to_ms and h.to_ms >= from_ms)


registered_rows = once(RegisteredRows)


def row_of(value: Any) -> QueueRow | None:
    """The row of a `topic` event's value, or of a route's queues; None for anything else."""
    if isinstance(value, Mapping) and {"read", "write", "perm"} <= value.keys():
        return value["read"], value["write"], value["perm"]
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) >= 3:
        return value[0], value[1], value[2]
    return None


class _Setting(NamedTuple):
    version: tuple[int, float]
    row: QueueRow | None
    at_ms: float = -math.inf
    """When its broker made it so."""


def _settings(control: Control) -> Mapping[str, Mapping[str, Sequence[_Setting]]]:
    """Broker → topic → its settings in order of time; what a restart says again is one."""
    found: dict[str, dict[str, list[_Setting]]] = defaultdict(lambda: defaultdict(list))
    last: dict[tuple[str, int], float] = {}
    for row in control.rows("topic"):
        settings = found[row.node][row.topic]
        is_as = row_of(row.decoded)
        # A row of a topic that is gone does not say its version: it is the next one.
        version = last.get(row.process, row.time_ms) + 1 if is_as is None else _version(row, row.time_ms)
        last[row.process] = max(version, last.get(row.process, version))
        if not settings or settings[-1].row != is_as:
            settings.append(_Setting((row.incarnation, version), is_as, row.time_ms))
    return found


def _sent(control: Control, world: World) -> Mapping[tuple[str, str], Sequence[Sent]]:
    """(broker, NameServer) → the registrations in the order in which they began."""
    names = {node.address: node.name for node in world.of_kind("name_server")}

    def sent(row: Row) -> Sent:
        said = row.decoded if isinstance(row.decoded, Mapping) else {}
        version = row.incarnation, _version(row, row.began_ms)
        is_single = said.get("topics") == 1
        return Sent(row.began_ms, row.time_ms, row.type == "ok", version, int(said.get("id") or 0), is_single)

    rows = control.rows("register")
    found = grouped(((row.node, names.get(row.name_server, row.name_server)), sent(row)) for row in rows)
    return {pair: sorted(of) for pair, of in found.items()}


def _version(row: Row, or_else: float) -> float:
    """The counter of the dataVersion; a history without any is ordered by time."""
    value = row.decoded
    found = value.get("version") if isinstance(value, Mapping) else None
    return float(found) if isinstance(found, int | float) else or_else


def _spans(settings: Sequence[_Setting], sent: Sequence[Sent]) -> Sequence[Held]:
    found: list[Held] = []
    for number, setting in enumerate(settings):
        first = next((one for one in sent if one.version >= setting.version), None)
        from_ms = math.inf if first is None else first.began_ms
        if first is not None and first.version[0] > setting.version[0]:
            from_ms = setting.at_ms  # its process ended, and may have sent it in a call that it did not live to record
        if number == 0 and not sent:
            from_ms = -math.inf  # nobody recorded how it registered
        to_ms = math.inf
        # A topic that its broker deleted stays at NameServers.
        following = next((later for later in settings[number + 1 :] if later.row is not None), None)
        if following is not None:
            to_ms = _acknowledged_ms(sent, following.version)
        found.append(Held(from_ms, to_ms, setting.row))
    return found


def _newest(settings: Sequence[_Setting], version: tuple[int, float]) -> QueueRow | None:
    return next((setting.row for setting in reversed(settings) if setting.version <= version), None)


def _acknowledged_ms(sent: Sequence[Sent], version: tuple[int, float]) -> float:
    """When the NameServer had to have that version, and nothing older could come after it."""
    older = [number for number, one in enumerate(sent) if one.version < version]
    newer = [one for one in sent[older[-1] + 1 if older else 0 :] if one.is_ok]
    is_behind = any(not sent[number].is_ok for number in older)
    return newer[is_behind].ended_ms if len(newer) > is_behind else math.inf
