"""The acts by hand (`admin` rows), and which entries of which tables are unknown because of them, from when until when.

    register    ├─ asked ─ answered ┤ R + C        the broker whose name or address it was: as after a link that was
    unregister                                     away for a moment, it is back at its own next registration
    closed      (the NameServer drops whoever has that channel last)

    register    ├─ asked ───────────────── unregistered, closed, or silent for min(I, the scan after E) ┤
    topics, permissions, settings
                ├─ asked ─ answered ─ R + B ┤      longer, while what clients use is not as it was
                                                   what these do to clients is nobody's fault: it is no quiet time

The second kind are faults between `admin` and whom it asked, which no rule but those of quiet times asks for.

Offsets that an operator set for a group (mqadmin resetOffsetByTime), and what they excuse.

    reset to 40 of 100 ── until its consumers go by it ──┬── 40 … 99 come again
                       └── offsets may go back ──────────┘
    reset to 100 of 40 ── 40 … 99, unless received, are nobody's any more

4.9: each consumer is told, drops the queue, commits the new offset and pulls from there. 5.x: the broker has it at
once, and sends the group's next pull of the queue there; what a consumer commits before that pull may overtake it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...remoting.codes import PERM_READ
from ...remoting.node.profile import Profile
from ...remoting.topics import DEFAULT_CLUSTER
from ..history.schema import object_of
from ..topology import ADMIN, broker_name
from .intervals import Stretch
from .recorded import BY_HAND, Fault
from .timers import Timers

if TYPE_CHECKING:
    from .world import World

_RW = 6


class Act(NamedTuple):
    """One request of one node by hand. What nobody answered may have been done at any moment up to `ended_ms`."""

    act_id: str
    f: str
    node: str
    """Who was asked."""
    broker: str
    broker_id: int
    address: str
    topic: str
    began_ms: float
    ended_ms: float
    is_answered: bool
    is_done: bool
    code: int | None
    value: Mapping[str, Any]

    @property
    def identity(self) -> tuple[str, str, int]:
        return self.broker, self.address, self.broker_id

    @property
    def may_be_done(self) -> bool:
        return self.is_done or not self.is_answered

    @property
    def settings(self) -> Mapping[str, Any]:
        """What an `update_config` asked for, by RocketMQ's names."""
        return self.value.get("settings") or {}

    @property
    def broker_permission(self) -> int | None:
        """The brokerPermission that an `update_config` asked for; None if it asked for none."""
        permission = self.settings.get("brokerPermission")
        return None if permission is None else int(permission)


def acts_of(world: World, rows: Iterable[Mapping[str, Any]]) -> tuple[Act, ...]:
    """From `admin` rows, in order of time."""
    found = []
    for row in rows:
        began_ms, ended_ms = row["time_ms"] - (row.get("duration_ms") or 0.0), float(row["time_ms"])
        node, is_answered = str(row.get("target")), row.get("type") != "info"
        if not is_answered:  # it may be on its way for as long as something keeps it from the node
            hit = (*world.link_faults(ADMIN, node), *world.process_faults(node))
            ends = [fault.end_ms for fault in hit if fault.overlaps(began_ms, ended_ms)]
            ended_ms = max([ended_ms, *ends]) + world.timers.delivery_ms
        found.append(
            Act(
                act_id=row.get("fault_id") or "",
                f=row.get("f") or "",
                node=node,
                broker=row.get("broker_name") or "",
                broker_id=row.get("broker_id") or 0,
                address=row.get("address") or "",
                topic=row.get("topic") or "",
                began_ms=began_ms,
                ended_ms=ended_ms,
                is_answered=is_answered,
                is_done=row.get("type") == "ok",
                code=row.get("code"),
                value=object_of(row.get("value")),
            )
        )
    return tuple(sorted(found, key=lambda act: (act.began_ms, act.node)))


def affected(world: World, acts: Sequence[Act]) -> Iterator[Fault]:
    """What the acts leave open: each between a broker and the NameServer that was asked, or between `admin` and whom it
    asked."""
    done = [act for act in acts if act.may_be_done]
    for number, act in enumerate(done):
        later = [one for one in done[number + 1 :] if one.node == act.node]
        open_ = [*(_pairs(world, act, later) if act.f in ("register", "unregister", "closed") else ())]
        until_ms = _quiet_from_ms(world, act, later, done)
        if until_ms > act.began_ms:
            open_.append((ADMIN, until_ms))
        for source, end_ms in open_:
            yield Fault(act.act_id, act.f, BY_HAND, source, act.node, None, act.began_ms, end_ms)


def gone_ms(act: Act, later: Sequence[Act], timers: Timers) -> float:
    """When what this act registered is gone by itself, or by a later act at the same NameServer."""
    ended = (one.ended_ms for one in later if one.f in ("unregister", "closed") and one.identity == act.identity)
    return min([act.ended_ms + min(timers.I_ms, expires_ms(timers) + timers.S_ms) + timers.delivery_ms, *ended])


def _pairs(world: World, act: Act, later: Sequence[Act]) -> Iterator[tuple[str, float]]:
    """Each broker, or slave, that the act concerns, and until when."""
    for broker in world.of_kind("broker", "slave"):
        is_its_place = broker.address == act.address
        if broker_name(broker.name) != act.broker and not is_its_place:
            continue
        timers = world.timers_of(broker.name, act.node)
        end_ms = max(act.ended_ms, act.began_ms + 1.0)
        if timers.profile is Profile.V5_X:
            end_ms += timers.delivery_ms  # what leaves is taken out by another thread
        named = act.value.get("cluster_name") or DEFAULT_CLUSTER
        is_another = timers.profile is Profile.V5_X and named != world.cluster_of(broker.name)
        if act.f != "closed" and timers.F_ms is not None and (is_another or not is_its_place):
            # The NameServer has the broker's version under its address, in 5.x under cluster and address. The version
            # is still there, so the broker need not register.
            end_ms = math.inf
        elif act.f == "register" and is_its_place:  # which it need not lose with its own channel
            until_ms = gone_ms(act, later, timers)
            back_ms = min(until_ms, end_ms + timers.R_ms + timers.C_ms)
            if any(one.overlaps(act.began_ms, back_ms) for one in world.way_faults(broker.name, act.node)):
                end_ms = max(end_ms, until_ms)
        elif act.f == "register" and timers.profile is Profile.V5_X and act.value.get("state_version"):
            end_ms = max(end_ms, gone_ms(act, later, timers))  # the broker's own is refused meanwhile
        yield broker.name, end_ms


def _quiet_from_ms(world: World, act: Act, later: Sequence[Act], done: Sequence[Act]) -> float:
    timers, brokers = world.timers_of(act.node), {node.name: node.address for node in world.of_kind("broker")}
    soon_ms = act.ended_ms + timers.R_ms + timers.B_ms
    match act.f:
        case "register" if brokers.get(act.broker) == act.address:
            return soon_ms
        case "register" if act.broker not in brokers and not world.topics & (act.value.get("topics") or {}).keys():
            return act.ended_ms  # no client hears of it
        case "register":
            return gone_ms(act, later, timers)
        case "wipe_write_perm":
            back = (one for one in later if one.f == "add_write_perm" and one.broker == act.broker)
            wiped = {one.broker for one in done if one.f == act.f and one.node == act.node}
            here = {broker for broker in brokers if world.lists(broker, act.node)}
            return _until(back) if wiped >= here else soon_ms
        case "delete_topic":
            made = (one for one in done if one.f == "update_topic" and one.topic == act.topic)
            again = (one for one in made if one.began_ms > act.began_ms)
            return _until(again) + timers.R_ms if act.topic in world.topics else soon_ms
        case "update_topic" if act.topic in world.topics and not _is_whole(world, act):
            whole = (one for one in later if one.f == act.f and one.topic == act.topic and _is_whole(world, one))
            return _until(whole) + timers.R_ms
        case "update_config" if act.broker_permission not in (None, _RW):
            again = (one for one in later if one.broker_permission == _RW)
            return _until(again) + timers.R_ms
    return soon_ms


def unreadable(acts: Iterable[Act], node: str, topic: str, queue_id: int) -> list[Stretch]:
    """When this broker refuses pulls of the queue (NO_PERMISSION, or no such queue), because its own permission or its
    topic's was changed so."""
    asked = [act for act in acts if act.node == node and act.may_be_done]
    of_broker = [
        (act, bool(permission & PERM_READ)) for act in asked if (permission := act.broker_permission) is not None
    ]
    of_topic = [
        (act, bool(act.value.get("perm", _RW) & PERM_READ) and queue_id < (act.value.get("read_queues") or 0))
        for act in asked
        if act.f == "update_topic" and act.topic == topic
    ]
    found = []
    for changes in (of_broker, of_topic):
        for number, (act, readable) in enumerate(changes):
            if not readable:
                back = (one for one, may_be_read in changes[number + 1 :] if may_be_read and one.is_done)
                found.append(Stretch(act.began_ms, _until(back)))
    return found


def _until(acts: Iterable[Act]) -> float:
    return min((act.ended_ms for act in acts), default=math.inf)


def _is_whole(world: World, act: Act) -> bool:
    """Whether every queue that clients may know is there, to be read and written."""
    clients = world.of_kind("producer", "consumer")
    queues = {world.topic_of(client.name): world.queues_of(client.name) for client in clients}
    counts = act.value.get("read_queues") or 0, act.value.get("write_queues") or 0
    return min(counts) >= (queues.get(act.topic) or 0) and act.value.get("perm") == _RW


OBEYED_MS = 34_000.0
"""By when consumers go by it: a pull may be under way for 30 s, its error costs a pause of 1 s, a connect C = 3 s."""


class Reset(NamedTuple):
    """Of one queue."""

    topic: str
    broker_name: str
    queue_id: int
    group: str
    """As RocketMQ has it."""
    offset: int
    at_ms: float

    def of(self, queue: tuple[str, str, int], group: str) -> bool:
        """Whether it is of this queue and group."""
        return (self.topic, self.broker_name, self.queue_id, self.group) == (*queue, group)

    def near(self, from_ms: float, to_ms: float) -> bool:
        """Whether it was asked for in that time, or so shortly before that consumers may not go by it yet."""
        return from_ms - OBEYED_MS <= self.at_ms <= to_ms


def resets_in(rows: Iterable[Mapping[str, Any]]) -> tuple[Reset, ...]:
    """Of `offset_reset` rows."""
    found = []
    for row in rows:
        value = object_of(row.get("value"))
        for queue_id, offset in (value.get("offsets") or {}).items():
            place = str(row["topic"]), str(row["broker_name"]), int(queue_id)
            found.append(Reset(*place, str(value.get("group")), int(offset), float(row["time_ms"])))
    return tuple(found)


def expires_ms(timers: Timers) -> float:
    """E of what is registered by hand: it names no time-out of its own, as brokers do that act for their masters."""
    return Timers.for_profile(timers.profile).E_ms if timers.profile is Profile.V5_X else timers.E_ms
