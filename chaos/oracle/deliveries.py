"""By when an acknowledged message must have reached a consumer group: who held its queue, and what disturbed. Plain.

    acknowledged ──► its queue is held, from an offset at or before it ──► nothing disturbs the way ──► D ──► due
                     queue_taken ├────────────────────────┤ queue_dropped

Four rules, each of which alone makes a message due; the first moment counts. D = 5 s: a pull that waits is woken at
once, and where that is missed a broker looks at its held pulls every 5 s (`PullRequestHoldService`).

| rule         | due                                                                                            |
|--------------|------------------------------------------------------------------------------------------------|
| held         | D after one holding of its queue was there, and the way of its consumer to the broker was free  |
|              | for as long: no fault of either or of the link, nor its aftermath; the broker was in the        |
|              | consumer's route, or, where nobody recorded that, nothing that routes depend on was disturbed;  |
|              | its permission, and its topic's there, let it be read (acts by hand);                           |
|              | and H had passed since its queues changed, for until a heartbeat has brought the broker the     |
|              | subscription's new version it may refuse pulls (code 25), and one may be left out for another;  |
|              | and no broker had forgotten the consumer, whose heartbeats a fault held up for 120 s; this one  |
|              | refuses its pulls (code 24) from when its channel closed until the next heartbeat, H after the  |
|              | fault, or after its route names the master again, at the latest                                |
| copied       | D after the route of its holder has named its broker's slave alone for P + C + 31 s, and        |
|              | nothing disturbs the two, and after the master has had it for 13 s in which the slave copied for |
|              | certain (oracle/slaves.py), in its first life                                                  |
| quiet        | D after the group had its time to share its queues: whoever should have held it                 |
| passed over  | when a later holding starts beyond it: its group has committed what nobody received             |

With broadcasting every consumer is a group of its own.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from ..topology import node_of_client_id
from .by_hand import unreadable
from .intervals import Stretch, merged, until_next, without
from .link import RESEND_MAX_MS, most_hung_brokers
from .quiet import (
    BARELY_MS,
    aftermath_ms,
    brokers_joined,
    clients_began_ms,
    earliest_effect_ms,
    felt,
    harmful,
    harmful_to_deliveries,
    members_window,
    quiet,
    unnoticed,
)
from .recorded import Fault
from .slaves import SYNCHRONIZED_MS, offsets_copied, slaves_of
from .world import World

PROMPT_MS = 5_000.0
"""D. `PullRequestHoldService` looks at held pulls every 5 s, whatever woke them before."""
PULL_MS = 31_000.0
"""What a pull that a fault swallowed may keep its queue waiting: its time-out of 30 s, and a pause of 1 s."""
PAUSE_MS = 1_000.0
"""`pullTimeDelayMillsWhenException`."""

Queue = tuple[str, str, int]
"""Topic, broker name, queue id."""


class Holding(NamedTuple):
    """One consumer process pulls the queue from `offset` on, in [start_ms, end_ms)."""

    start_ms: float
    end_ms: float
    node: str
    offset: int


class Asker(NamedTuple):
    """A group that must have every message of its topic; with broadcasting one consumer."""

    name: str
    topic: str
    """"": every topic, where the run does not say which."""
    members: frozenset[str]


class Due(NamedTuple):
    """By when a message must have been received, and why."""

    at_ms: float
    from_ms: float
    """When D began to count."""
    rule: str
    consumer: str = ""
    """Who held its queue; "": the whole group is asked."""
    after: str = ""


def askers(world: World) -> list[Asker]:
    """Every group of the run; with broadcasting every consumer."""
    if world.workload.get("broadcasting"):
        nodes = world.of_kind("consumer")
        return [Asker(node.name, world.topic_of(node.name), frozenset([node.name])) for node in nodes]
    return [Asker(name, world.topic_of(of[0]), frozenset(of)) for name, of in sorted(world.groups.items())]


def holdings(world: World, taken: Iterable[Any], dropped: Iterable[Any]) -> dict[Queue, list[Holding]]:
    """Who held each queue when, from `queue_taken` and `queue_dropped` rows; in order of time."""
    ends = {(row.node, row.incarnation, row.op_id): row.time_ms for row in dropped}
    found: dict[Queue, list[Holding]] = defaultdict(list)
    for row in taken:
        lives = [life.end_ms for life in world.lives_of(row.node) if life.incarnation == row.incarnation]
        end_ms = min(ends.get((row.node, row.incarnation, row.op_id), math.inf), *lives, world.end_ms)
        found[row.topic, row.broker_name, row.queue_id].append(Holding(row.time_ms, end_ms, row.node, row.offset or 0))
    return {queue: sorted(of) for queue, of in found.items()}


def dues(
    world: World,
    held: Mapping[Queue, Sequence[Holding]],
    assigned: Iterable[Any],
    heard: Iterable[Any],
    routes: Iterable[Any] = (),
) -> Dues:
    """`Dues` of a run, from its rows `assigned`, `client_heartbeat` and `client_gone`, and `route_changed` in order of
    time."""
    shared: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in assigned:
        shared[row.node, row.topic or ""].append(row.time_ms)
    routed: dict[tuple[str, str], list[tuple[float, Mapping[str, Mapping[str, str]]]]] = defaultdict(list)
    for row in routes:
        routed[row.node, row.topic or ""].append((row.time_ms, (row.decoded or {}).get("brokers") or {}))
    heard = list(heard)
    return Dues(world, held, shared, forgotten(world, heard), routed, unknown(world, heard))


def forgotten(world: World, heard: Iterable[Any]) -> dict[str, list[Stretch]]:
    """Consumer to when a broker did not know it, because a fault had held up its heartbeats until it expired there.

    A rebalance that asks this broker who is in the group takes every queue from the consumer, of the living brokers
    too; so until a heartbeat is there again, and the group has shared its queues anew. Whether the heartbeats were due,
    and whether the broker was right to forget, `timers_kept` judges.
    """
    found: dict[str, list[Stretch]] = defaultdict(list)
    since: dict[tuple[str, str], float] = {}
    for row in heard:
        consumer = node_of_client(row)
        if row.event == "client_heartbeat":
            if (from_ms := since.pop((row.node, consumer), None)) is not None:
                until_ms = row.time_ms + members_window(world.timers_of(consumer)).latest_ms
                found[consumer].append(Stretch(from_ms, until_ms))
        elif row.f == "expired" and _held_up(world, consumer, row.time_ms - (row.duration_ms or 0.0), row.time_ms):
            since.setdefault((row.node, consumer), row.time_ms)
    for (_, consumer), from_ms in since.items():
        found[consumer].append(Stretch(from_ms, world.end_ms))
    return dict(found)


def unknown(world: World, heard: Iterable[Any]) -> dict[tuple[str, str], list[Stretch]]:
    """(Consumer, broker) to when the broker, or slave, knew nothing of it: from the end of its channel, or its expiry,
    to its next heartbeat there."""
    found: dict[tuple[str, str], list[Stretch]] = defaultdict(list)
    since: dict[tuple[str, str], float] = {}
    for row in heard:
        pair = node_of_client(row), row.node
        if row.event != "client_heartbeat":
            since.setdefault(pair, row.time_ms)
        elif pair in since:
            found[pair].append(Stretch(since.pop(pair), row.time_ms))
    for pair, from_ms in since.items():
        found[pair].append(Stretch(from_ms, world.end_ms))
    return dict(found)


def _held_up(world: World, consumer: str, from_ms: float, to_ms: float) -> bool:
    """Whether a fault of the consumer or of one of its links was felt between the two moments."""
    return any(
        start_ms < to_ms and end_ms > from_ms
        for fault in harmful(world)
        if consumer in (fault.source, fault.target)
        for start_ms, end_ms in (felt(world, fault),)
    )


def node_of_client(row: Any) -> str:
    """The node in the clientId of a `client_heartbeat` or `client_gone`: `127.0.0.1@producer-0#1700000000000`."""
    return node_of_client_id((row.decoded or {}).get("client"))


@dataclass(slots=True, eq=False)
class Dues:
    """Answers for one run: `of` a message and who asks for it."""

    world: World
    held: Mapping[Queue, Sequence[Holding]]
    shared: Mapping[tuple[str, str], Sequence[float]] = field(default_factory=dict)
    """When the queues changed that a consumer has of a topic."""
    forgotten: Mapping[str, Sequence[Stretch]] = field(default_factory=dict)
    """When a broker did not know the consumer."""
    routed: Mapping[tuple[str, str], Sequence[tuple[float, Mapping[str, Mapping[str, str]]]]] = field(
        default_factory=dict
    )
    """Of a consumer and a topic: from when on its route named which brokers, and which addresses by id."""
    unknown: Mapping[tuple[str, str], Sequence[Stretch]] = field(default_factory=dict)
    """Of a consumer and a broker or slave: when that knew nothing of it."""
    _free: dict[Any, list[Stretch]] = field(default_factory=dict)
    _quiet: dict[str, list[Stretch]] = field(default_factory=dict)

    def of(self, queue: Queue, offset: int, acked_ms: float, asker: Asker) -> Due | None:
        """None: nothing makes it due before the run's end."""
        held = [h for h in self.held.get(queue, ()) if h.node in asker.members and self.world.permits(queue[1], h.node)]
        found = [
            due
            for number, holding in enumerate(held)
            if (due := self._of_holding(queue, holding, offset, acked_ms, is_first=not number))
        ]
        found += self._quietly(queue, acked_ms, asker, held)
        due = min(found, default=None)
        return None if due is None or self._is_skipped(queue, offset, asker, due) else due

    def _is_skipped(self, queue: Queue, offset: int, asker: Asker, due: Due) -> bool:
        """Whether an operator sent the group past it before it was due."""
        return any(
            reset.of(queue, asker.name) and reset.offset > offset and reset.at_ms <= due.at_ms
            for reset in self.world.resets
        )

    def _of_holding(
        self, queue: Queue, holding: Holding, offset: int, acked_ms: float, *, is_first: bool
    ) -> Due | None:
        if holding.offset > offset:
            if is_first or acked_ms > holding.start_ms:
                return None  # where a group begins is its consumeFromWhere's to say
            return Due(holding.start_ms, holding.start_ms, "passed over", holding.node)
        leaves_ms, found = self.leaving_ms(holding), list[Due]()
        free = ((max(start_ms, acked_ms), end_ms, "held") for start_ms, end_ms in self.free(queue, holding))
        at_slave = self._at_slave(queue, holding) if self._is_copied(queue[1], acked_ms) else ()
        copied_ms = acked_ms + SYNCHRONIZED_MS
        copied = ((max(start_ms, copied_ms), end_ms, "copied") for start_ms, end_ms in at_slave)
        for from_ms, end_ms, rule in (*free, *copied):
            if from_ms + PROMPT_MS <= min(end_ms, leaves_ms):
                found.append(Due(from_ms + PROMPT_MS, from_ms, rule, holding.node))
        return min(found, default=None)

    def _is_copied(self, master: str, acked_ms: float) -> bool:
        """Whether the only slave must have the message, and its topic, too. A master that has died may come back with a
        log that a slave's does not go on from: then it copies nothing any more."""
        lives = self.world.lives_of(master)
        return len(slaves_of(self.world, master)) == 1 and any(
            one.start_ms <= acked_ms <= one.end_ms - SYNCHRONIZED_MS and one.start_ms < lives[0].end_ms
            for one in offsets_copied(self.world, master)
        )

    def _at_slave(self, queue: Queue, holding: Holding) -> list[Stretch]:
        """Where in the holding its consumer must read the broker's slave, and nothing keeps it from that."""
        topic, broker, _ = queue
        key = "at slave", topic, broker, holding.node, holding.start_ms, holding.end_ms
        if key not in self._free:
            world, timers = self.world, self.world.timers_of(holding.node)
            taken = [*self._unheard(holding.node, topic), *self.forgotten.get(holding.node, ())]
            for slave in slaves_of(world, broker):
                faults = [*world.process_faults(holding.node), *world.process_faults(slave)]
                faults += world.link_faults(holding.node, slave)
                after_ms = PULL_MS + timers.C_ms + timers.H_ms
                taken += [Stretch(earliest_effect_ms(world, fault), fault.end_ms + after_ms) for fault in faults]
            self._free[key] = [
                free
                for one in self._without_master(holding.node, topic, broker)
                if max(one.start_ms, holding.start_ms) < min(one.end_ms, holding.end_ms)
                for free in without(max(one.start_ms, holding.start_ms), min(one.end_ms, holding.end_ms), taken)
            ]
        return self._free[key]

    def _without_master(self, consumer: str, topic: str, broker: str) -> list[Stretch]:
        """When its route has named the broker's slave alone for so long that a pull of the master is over, and routes
        of other topics have followed."""
        states = until_next(self.routed.get((consumer, topic), ()), self.world.end_ms)
        alone = merged(
            Stretch(at_ms, end_ms)
            for (at_ms, brokers), end_ms in states
            if (addresses := brokers.get(broker)) and "0" not in addresses
        )
        after_ms = self.world.timers_of(consumer).P_ms + PULL_MS + self.world.timers.C_ms
        return [Stretch(one.start_ms + after_ms, one.end_ms) for one in alone]

    def leaving_ms(self, holding: Holding) -> float:
        """From when on the consumer may have given the queue up: it says so when it has committed all that it drops,
        each with a broker that, with a fault about, it may have to look up and to connect to first."""
        timers = self.world.timers_of(holding.node)
        dropping_ms = (timers.C_ms + timers.A_ms) * len(self.world.of_kind("broker"))
        after_ms = timers.P_ms + timers.Qr_ms
        slowly = any(
            start_ms < holding.end_ms and end_ms + after_ms > holding.end_ms
            for start_ms, end_ms in (felt(self.world, fault) for fault in harmful(self.world))
        )
        return holding.end_ms - (dropping_ms if slowly else timers.delivery_ms)

    def free(self, queue: Queue, holding: Holding) -> list[Stretch]:
        """Where in the holding nothing keeps its consumer from pulling of this broker."""
        topic, broker, queue_id = queue
        key = queue, holding
        if key not in self._free:
            taken = [self._of(fault, holding) for fault in self._between(holding.node, broker)]
            taken += self._refused(holding.node, topic, broker)
            if (holding.node, topic) in self.routed:
                taken += self._unrouted(holding.node, topic, broker)
            else:
                taken += [self._of(fault, holding) for fault in self._of_routes(holding.node, broker)]
            taken += self._unheard(holding.node, topic)
            taken += self.forgotten.get(holding.node, ())
            closed = unreadable(self.world.acts, broker, topic, queue_id)
            taken += [Stretch(one.start_ms, one.end_ms + PAUSE_MS) for one in closed]
            self._free[key] = without(holding.start_ms, holding.end_ms, taken)
        return self._free[key]

    def _unrouted(self, consumer: str, topic: str, broker: str) -> list[Stretch]:
        """When the consumer's route did not name the broker, or its slave alone, which holds pulls of what it has no
        copy of, until a pull can be on its way again."""
        after_ms = PULL_MS + self.world.timers.C_ms
        return [
            Stretch(at_ms, end_ms + after_ms)
            for (at_ms, brokers), end_ms in until_next(self.routed[consumer, topic], self.world.end_ms)
            if "0" not in brokers.get(broker, ())
        ]

    def _refused(self, consumer: str, topic: str, broker: str) -> list[Stretch]:
        """When pulls may be refused because the broker does not know the consumer, until the heartbeat that is due once
        no fault is in its way, and its route names the master."""
        world, heard_ms = self.world, self.world.timers_of(consumer).H_ms + _hung_ms(self.world)
        states = self.routed.get((consumer, topic), ())
        masterless = [
            Stretch(at_ms, end_ms)
            for (at_ms, brokers), (end_ms, _) in pairwise(states)
            if "0" not in brokers.get(broker, ())
        ]
        found = []
        for node in (broker, *slaves_of(world, broker)):
            faults = [*world.process_faults(consumer), *world.process_faults(node), *world.link_faults(consumer, node)]
            held_up = [felt(world, fault) for fault in faults] + (masterless if node == broker else [])
            for begun_ms, until_ms in self.unknown.get((consumer, node), ()):
                for start_ms, end_ms in held_up:
                    resent_ms = min(end_ms - start_ms, RESEND_MAX_MS)  # the close may come behind what was lost
                    if start_ms <= until_ms and end_ms + resent_ms >= begun_ms:
                        found.append(Stretch(end_ms, min(until_ms + PAUSE_MS, end_ms + heard_ms)))
        return [one for one in found if one.start_ms < one.end_ms]

    def _unheard(self, consumer: str, topic: str) -> list[Stretch]:
        """After each change of its queues, until every broker must have heard of the subscription's new version."""
        timers = self.world.timers_of(consumer)
        heard_ms = timers.H_ms + _hung_ms(self.world)
        if self._name_servers_hit:  # a poll before it on the same thread dials all, and waits for one
            heard_ms += timers.C_ms * len(self.world.addresses_of(consumer)) + timers.A_ms
        return [Stretch(at_ms, at_ms + heard_ms) for at_ms in self.shared.get((consumer, topic), ())]

    def _between(self, consumer: str, broker: str) -> list[Fault]:
        world = self.world
        found = [*world.process_faults(consumer), *world.process_faults(broker)]
        found += [fault for fault in world.link_faults(consumer, broker) if not _barely(fault)]
        for slave in slaves_of(world, broker):  # it may be the one that is pulled from, with what it was sent
            found += [*world.process_faults(slave), *world.link_faults(consumer, slave)]
            found += world.link_faults(slave, broker)
        return found

    def _of_routes(self, consumer: str, broker: str) -> list[Fault]:
        """What may keep the broker out of the consumer's route."""
        world, found = self.world, list[Fault]()
        for name_server in world.of_kind("name_server"):
            of_routes = (
                *world.process_faults(name_server.name),
                *world.link_faults(broker, name_server.name),
                *world.link_faults(consumer, name_server.name),
            )
            found += [fault for fault in of_routes if not fault.harmless(world.timers)]
        return found

    def _of(self, fault: Fault, holding: Holding) -> Stretch:
        """What of the time this fault disturbs. A holding taken after it was over has asked the broker for its offset,
        so that the way is free; the routes may still change for as long as they differ."""
        world = self.world
        start_ms, end_ms = felt(world, fault)
        if unnoticed(world, fault):
            return Stretch(start_ms, end_ms)
        hits_routes = fault.source != holding.node or (
            fault.target is not None and fault.target in {node.name for node in world.of_kind("name_server")}
        )
        after_ms = max(PULL_MS + world.timers.C_ms, aftermath_ms(world) if hits_routes else 0.0)
        if holding.start_ms >= end_ms and not (hits_routes and self._name_servers_hit):
            after_ms = 0.0
        return Stretch(start_ms, end_ms + after_ms)

    @property
    def _name_servers_hit(self) -> bool:
        """Whether one of them was lost to somebody, so that they may say different things some time after a broker is
        back."""
        names = {node.name for node in self.world.of_kind("name_server")}
        return any(
            (fault.source in names or fault.target in names) and not fault.harmless(self.world.timers)
            for fault in self.world.faults
        )

    def _quietly(self, queue: Queue, acked_ms: float, asker: Asker, held: Sequence[Holding]) -> list[Due]:
        topic = queue[0]
        if topic not in self._quiet:
            taken = [stretch for node in self.world.of_kind("consumer") for stretch in self._unheard(node.name, topic)]
            taken += [stretch for stretches in self.forgotten.values() for stretch in stretches]
            self._quiet[topic] = [left for stretch in quiet_for_groups(self.world) for left in without(*stretch, taken)]
        quiet_ = self._quiet[topic]
        named = [{broker.name for broker in self.world.seen_by(member, "broker")} for member in asker.members]
        if not all(queue[1] in brokers for brokers in named):
            return []  # not everybody is told of this broker
        if held and held[0].offset and acked_ms <= held[0].start_ms:
            return []  # where a group begins is its consumeFromWhere's to say
        at = bisect_left(quiet_, acked_ms + PROMPT_MS, key=lambda stretch: stretch.end_ms)
        for start_ms, end_ms in quiet_[at:]:
            from_ms = max(start_ms, acked_ms)
            if from_ms + PROMPT_MS <= end_ms:
                return [Due(from_ms + PROMPT_MS, from_ms, "quiet")]
        return []


def _hung_ms(world: World) -> float:
    """What hung brokers add until a heartbeat has reached all, and the pause of 1 s after a refused pull."""
    return world.timers.A_ms * most_hung_brokers(world) + PAUSE_MS


def quiet_for_groups(world: World) -> list[Stretch]:
    """Where every queue has its consumer: no fault, and each that was, each broker that joined, and each member that
    came or went, has had its time."""
    consumers = [node.name for node in world.of_kind("consumer")]
    if not consumers:
        return []
    members_ms = members_window(world.timers).latest_ms + world.timers.H_ms
    after_ms = max(aftermath_ms(world) + world.timers.H_ms, PULL_MS + world.timers.C_ms)
    lasting = [fault for fault in harmful_to_deliveries(world) if not unnoticed(world, fault)]
    free = quiet(world, after_ms, from_ms=clients_began_ms(world) + members_ms, faults=lasting)
    taken = [felt(world, fault) for fault in harmful(world) if unnoticed(world, fault)]
    taken += [
        Stretch(at_ms, at_ms + members_ms)
        for name in consumers
        for life in world.lives_of(name)
        for at_ms in (life.start_ms, life.end_ms)
        if at_ms < world.end_ms
    ]
    taken += [
        Stretch(earliest_effect_ms(world, fault), fault.end_ms + PULL_MS)
        for fault in world.faults
        if fault.source in consumers and not _barely(fault) and not unnoticed(world, fault)
    ]
    taken += brokers_joined(world, after_ms)
    return [left for stretch in free for left in without(*stretch, taken)]


def _barely(fault: Fault) -> bool:
    """Whether it is a latency that nothing here is slower by: pulls still bring 32 messages a turn, in their time."""
    latency_ms = fault.value.get("latency_ms")
    if fault.fault != "latency" or latency_ms is None:
        return False
    return float(latency_ms) + float(fault.value.get("jitter_ms") or 0.0) <= BARELY_MS
