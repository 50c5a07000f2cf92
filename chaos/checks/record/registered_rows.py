"""How each broker registered each topic at each NameServer, and when a route may, or must, show it so.

    broker's `topic` rows        setting 1 ────────────┬─ setting 2 ──────────────
    its `register` rows                ├──ok──┤        │  ├──ok──┤  (begun, ended, with the dataVersion that they sent)
    at this NameServer   setting 1 may be held from ───┴─────────┤ to: the newer one is acknowledged
                         setting 2 may be held             ├──────────────────────

A setting may be held from the beginning of the first registration that sent it, answered or not (from when it was made,
where its process ended before it recorded any), until the end of the
first that sent a newer one and was acknowledged. One that nobody answered may lie in a link and arrive last, so the
registration after that must be acknowledged, too. Both ends are the broker's own record, not the NameServer's. Where
somebody had the broker's write permission wiped or added at a NameServer, that process may hold that, too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ....remoting.node.profile import Profile
from ....remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from ...oracle.name_server import Sent
from ...oracle.promises import told_by_hand
from ...oracle.roles import members_of
from ...oracle.slaves import slaves_of
from ...oracle.world import World
from .control import Control, Row

READ, WRITE = 4, 2
_RETRY = 1, 1, READ | WRITE
"""The row of a group's own topic."""
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
        self._control, self._world = control, world
        self._settings = _settings(control)
        self._sent_by = _sent(control, world)
        self._held: dict[tuple[str, str, str], Sequence[Held]] = {}
        self._perms_set: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        """(NameServer, broker) → from when until when its write permission may be what somebody had it set to there."""
        for row in control.rows("write_perm"):
            lives = (life for life in world.lives_of(row.node) if life.incarnation == row.incarnation)
            until_ms = max((life.end_ms for life in lives), default=math.inf)
            until_ms = min(until_ms, self._changed_ms(row.broker_name or "", row.node, row.time_ms))
            self._perms_set[row.node, row.broker_name or ""].append((row.time_ms, until_ms))

    def _changed_ms(self, broker: str, name_server: str, at_ms: float) -> float:
        """When the NameServer had acknowledged all topics of a version that was new to it, and with it the broker's own
        rows. One topic of a new version brings the version, and leaves the other rows as they are."""
        sent = self.sent(broker, name_server)
        held = max((one.version for one in sent if one.is_ok and one.ended_ms <= at_ms), default=None)
        if held is None or any(one.began_ms <= at_ms < one.ended_ms for one in sent):
            return math.inf
        for one in sent:
            if one.began_ms > at_ms and one.is_ok and one.version > held:
                if one.topics > 1:
                    return one.ended_ms
                held = one.version
        return math.inf

    def held(self, name_server: str, topic: str, broker: str) -> Sequence[Held]:
        """Every setting of the topic at the broker, with when the NameServer may hold it; empty for a topic that the
        broker never had."""
        key = name_server, topic, broker
        if key not in self._held:
            settings = self._settings.get(broker, {}).get(topic, ())
            spans = _spans(settings, self._sent_by.get((broker, name_server), ()))
            set_here = self._perms_set.get((name_server, broker), ())
            spans = [*spans, *self._told_by_hand(*key), *self._told_by_slaves(name_server, topic, broker, settings)]
            self._held[key] = [*spans, *(held for span in set_here for held in _with_perms_set(spans, *span))]
        return self._held[key]

    def _told_by_hand(self, name_server: str, topic: str, broker: str) -> Iterator[Held]:
        """What somebody else registered for the broker: its own next registration need not replace that."""
        for act in told_by_hand(self._world).registered.get(name_server, ()):
            queues = (act.value.get("topics") or {}).get(topic)
            if act.broker == broker and queues is not None:
                yield Held(act.began_ms, math.inf, (queues, queues, act.value.get("perm") or READ | WRITE))

    def _told_by_slaves(
        self, name_server: str, topic: str, broker: str, settings: Sequence[_Setting]
    ) -> Iterator[Held]:
        """What slaves register of their master's topics: in 5.x the one with the smallest id does while there is no
        master, as old as it is there (`isPrimeSlave`); in 4.9 none does."""
        slaves = slaves_of(self._world, broker) if self._world.timers.profile is Profile.V5_X else ()
        sent = [one.began_ms for slave in slaves for one in self.sent(slave, name_server)]
        if sent:
            yield from (Held(min(sent), math.inf, setting.row) for setting in settings)
            if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):  # made, too, when the first of the group's consumers comes
                yield Held(min(sent), math.inf, _RETRY)
        members = members_of(self._world).get(broker)
        if members is not None and members.has_acting_master:  # of such a name none may be written to without a master
            yield from [
                Held(max(own.from_ms, from_ms), to_ms, (read, write, perm & ~WRITE))
                for own in (*_spans(settings, ()), Held(-math.inf, math.inf, _RETRY))
                if own.row is not None
                for read, write, perm in (own.row,)
                for from_ms, to_ms in self._without_master(name_server, broker)
                if own.from_ms < to_ms
            ]
        for slave in slaves_of(self._world, broker):  # one that was made master has topics of its own
            yield from (Held(-math.inf, math.inf, own.row) for own in self._settings.get(slave, {}).get(topic, ()))

    def _without_master(self, name_server: str, name: str) -> Sequence[tuple[float, float]]:
        """From when until when each process of the NameServer had no master of that name, as it says itself.

        With the master's registration its rows take the place of those that a slave acted by.
        """
        found, at_once_ms = list[tuple[float, float]](), self._world.timers.delivery_ms
        told = [row for row in self._control.rows("registration", "broker_dropped") if row.node == name_server]
        told = [row for row in told if row.broker_name == name and not row.broker_id and not row.code]
        for life in self._world.lives_of(name_server):
            since_ms: float | None = -math.inf if life.incarnation == 0 else life.start_ms
            for row in sorted(told, key=lambda row: (row.time_ms, row.seq)):
                if row.incarnation != life.incarnation:
                    continue
                if row.event == "broker_dropped":
                    since_ms = row.time_ms - at_once_ms if since_ms is None else since_ms
                elif since_ms is not None:
                    found.append((since_ms, row.time_ms + at_once_ms))
                    since_ms = None
            if since_ms is not None:
                found.append((since_ms, math.inf))
        return found

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

    def knows(self, broker: str) -> bool:
        """Whether the broker recorded what it has."""
        return broker in self._settings

    def due(self, name_server: str, topic: str, broker: str, from_ms: float, to_ms: float) -> frozenset[QueueRow]:
        """The rows that the NameServer may hold at some moment of [from_ms, to_ms]."""
        held, apart_ms = self.held(name_server, topic, broker), self._world.timers.clocks_ms or 0.0
        from_ms, to_ms = from_ms - apart_ms, to_ms + apart_ms
        return frozenset(h.row for h in held if h.row is not None and h.from_ms <= to_ms and h.to_ms >= from_ms)


def registered_rows(control: Control, world: World) -> RegisteredRows:
    """Made once for these facts."""
    made = control.memoized(("registered_rows", id(world)), lambda: (world, RegisteredRows(control, world)))
    found: RegisteredRows = made[1]
    return found


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
    for row in control.rows("topic"):
        settings = found[row.node][row.topic or ""]
        is_as = row_of(row.decoded)
        if not settings or settings[-1].row != is_as:
            settings.append(_Setting((row.incarnation, _version(row, row.time_ms)), is_as, row.time_ms))
    return found


def _sent(control: Control, world: World) -> Mapping[tuple[str, str], Sequence[Sent]]:
    """(broker, NameServer) → the registrations in the order in which they began."""
    names = {node.address: node.name for node in world.of_kind("name_server")}
    found: dict[tuple[str, str], list[Sent]] = defaultdict(list)
    for row in control.rows("register"):
        began_ms = row.time_ms - (row.duration_ms or 0.0)
        version = row.incarnation, _version(row, began_ms)
        name_server = names.get(row.name_server, row.name_server or "")
        said = row.decoded
        topics = int(said.get("topics") or 0) if isinstance(said, Mapping) else 0
        id_ = int(said.get("id") or 0) if isinstance(said, Mapping) else 0
        found[row.node, name_server].append(Sent(began_ms, row.time_ms, row.type == "ok", version, topics, id_))
    for sent in found.values():
        sent.sort()
    return found


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


def _with_perms_set(spans: Sequence[Held], from_ms: float, to_ms: float) -> Iterator[Held]:
    """The same rows without the write permission, and with no other than to read and write, in that time."""
    for held in spans:
        start_ms, end_ms = max(held.from_ms, from_ms), min(held.to_ms, to_ms)
        if held.row is not None and start_ms < end_ms:
            read, write, perm = held.row
            yield from (Held(start_ms, end_ms, (read, write, set_)) for set_ in (perm & ~WRITE, READ | WRITE))


def _acknowledged_ms(sent: Sequence[Sent], version: tuple[int, float]) -> float:
    """When the NameServer had to have that version, and nothing older could come after it."""
    older = [number for number, one in enumerate(sent) if one.version < version]
    newer = [one for one in sent[older[-1] + 1 if older else 0 :] if one.is_ok]
    is_behind = any(not sent[number].is_ok for number in older)
    return newer[is_behind].ended_ms if len(newer) > is_behind else math.inf
