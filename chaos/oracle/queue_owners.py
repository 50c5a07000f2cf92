"""The members of each group, the owner of each queue, and when each group must have divided its queues.

    what a member sees  ├ a route, a list changes ├─ Qr + A ─┤ one owner each ────────────┤ the next change

| a member sees                   | from                                            | of                             |
|---------------------------------|-------------------------------------------------|--------------------------------|
| which queues there are          | its own routes (`route_changed`)                | RebalanceImpl                  |
| who is in its group             | any broker of its route: who had sent it a      | ConsumerManager                |
|                                 | heartbeat by a channel that has not ended       |                                |
| both within Qr + A              | waitInterval, or notifyConsumerIdsChanged       | RebalanceService               |
| 5 s more for each queue of a    | the round under way, which asks for its offset  | RebalancePushImpl              |
| hung broker that a route loses  | (QUERY_CONSUMER_OFFSET)                         |                                |
| a look-up, and the wait for its | the round that gives the queue up commits it,   | RemoteBrokerOffsetStore        |
| lock, for each lost queue while | and asks where the broker is that no route has  |                                |
| a NameServer hangs              |                                                 |                                |
| nothing new                     | while it, a broker or the way between is lost   | MQClientInstance               |

So when nothing of it has changed for Qr + A, all have one route, and every broker lists every member that lives, and
nobody twice, each queue has one owner. That each takes its share of what it sees is shares.py's, in disturbed times
too. Brokers of Apache's do not say whom they list: there, and for messages in a queue that nobody holds, a time is
quiet when it is one after every fault has had `aftermath_ms`.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ...remoting.codes import MASTER_ID
from ..topology import node_of_client_id
from .broker import CLIENT_SCAN_MS
from .intervals import Stretch, grouped, without
from .link import earliest_effect_ms, hung, hung_brokers
from .lists import changing
from .quiet import aftermath_ms, brokers_joined, clients_began_ms, felt, harmful_to_deliveries, members_ms
from .recorded import Fault
from .time_outs import CLIENT_EXPIRED_MS, OFFSET_CALL_MS, look_up
from .world import World, once

Queue = tuple[str, int]
"""Broker name and queue id, within one topic."""

_READABLE = 4


class Holding(NamedTuple):
    """One consumer process owns the queue in [start_ms, end_ms)."""

    node: str
    start_ms: float
    end_ms: float


class Change(NamedTuple):
    """Something after which the group may share its queues anew until `due_ms`."""

    at_ms: float
    due_ms: float
    what: str


class Judged(NamedTuple):
    """In [start_ms, end_ms) each of `queues` must have one owner; `change` is the last thing that moved before."""

    change: Change
    start_ms: float
    end_ms: float
    queues: tuple[Queue, ...]
    members: tuple[str, ...] = ()
    """Who shares them."""


class Piece(NamedTuple):
    """The queue had these owners, not one, in [start_ms, end_ms)."""

    queue: Queue
    start_ms: float
    end_ms: float
    owners: tuple[str, ...]


Rows = Callable[..., Sequence[Any]]
"""The rows of these events, in order of time."""


def node_of_client(row: Any) -> str:
    """The node in the clientId of a `client_heartbeat` or `client_gone`: `127.0.0.1@producer-0#1700000000000`."""
    return node_of_client_id(row.said.get("client"))


def least_asked(rows: Rows, what: str) -> Mapping[str, float]:
    """Client to the least that its pulls ask for (`pull_asked`: held_ms, messages); where one broker reads less than
    the others do, that broker reads wrongly."""
    least: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows("pull_asked"):
        of, asked = least[node_of_client(row)], float(row.said.get(what) or 0.0)
        of[row.node] = min(of.get(row.node, asked), asked)
    return {client: max(of.values()) for client, of in least.items()}


Listed = Sequence[tuple[float, tuple[str, ...]]]
"""From when on which clientIds, in order of time."""


def listed_by(world: World, rows: Rows) -> Mapping[tuple[str, str], Sequence[Stretch]]:
    """A broker, or slave, and a clientId to the channels by which it had heard of it: each from its first heartbeat
    until it ended or expired, or the broker's process did (`ConsumerGroupInfo`)."""
    found: dict[tuple[str, str], list[Stretch]] = defaultdict(list)
    since: dict[tuple[tuple[str, int], str | None], tuple[float, str]] = {}
    for row in rows("client_heartbeat", "client_gone"):
        channel, client = (row.process, row.op_id), str(row.said.get("client"))
        if row.event == "client_heartbeat":
            since.setdefault(channel, (row.time_ms, client))
        elif channel in since:
            found[row.node, client].append(Stretch(since.pop(channel)[0], row.time_ms))
    for (process, _), (from_ms, client) in since.items():
        found[process[0], client].append(Stretch(from_ms, min(world.end_ms, world.ended_ms(*process))))
    return found


def heard_by(world: World, rows: Rows) -> Mapping[str, Mapping[str, Sequence[Stretch]]]:
    """The same by node: a broker, or slave, to the node of a client to its channels."""
    found: dict[str, dict[str, list[Stretch]]] = defaultdict(lambda: defaultdict(list))
    for (broker, client), channels in listed_by(world, rows).items():
        found[broker][node_of_client_id(client)] += channels
    return found


def listed(world: World, rows: Rows) -> Mapping[str, Listed]:
    """Whom each broker, and slave, listed, one a channel: a client whose old channel has not ended yet is there twice.
    Nobody while it is dead."""
    edges: dict[str, list[tuple[float, bool, str]]] = defaultdict(list)
    for (node, client), channels in listed_by(world, rows).items():
        for channel in channels:
            if channel.start_ms < channel.end_ms and node_of_client_id(client):
                edges[node] += [(channel.start_ms, True, client), (channel.end_ms, False, client)]
    states: dict[str, list[tuple[float, tuple[str, ...]]]] = {}
    for node, of_node in edges.items():
        now, states[node] = list[str](), [(life.start_ms, ()) for life in world.lives_of(node)]
        for at_ms, comes, client in sorted(of_node):
            now = sorted([*now, client]) if comes else [*now[: now.index(client)], *now[now.index(client) + 1 :]]
            states[node].append((at_ms, tuple(now)))
        states[node].sort(key=lambda state: state[0])
    return states


def holdings(world: World, assigned: Iterable[Any]) -> dict[str, dict[Queue, list[Holding]]]:
    """topic → queue → who owned it, from `assigned` rows whose `value` is [[broker_name, queue_id], …]."""
    found: dict[str, dict[Queue, list[Holding]]] = defaultdict(lambda: defaultdict(list))
    since: dict[tuple[str, int, str], dict[Queue, float]] = defaultdict(dict)
    for row in assigned:
        queues = [(str(broker), int(queue_id)) for broker, queue_id in row.decoded or ()]
        held = since[row.node, row.incarnation, row.topic]
        for queue in [queue for queue in held if queue not in queues]:
            found[row.topic][queue].append(Holding(row.node, held.pop(queue), row.time_ms))
        for queue in queues:
            held.setdefault(queue, row.time_ms)
    for (node, incarnation, topic), held in since.items():
        for queue, start_ms in held.items():
            found[topic][queue].append(Holding(node, start_ms, world.ended_ms(node, incarnation)))
    return found


def readable(route: Mapping[str, Any] | None) -> frozenset[Queue]:
    """The queues that a consumer takes from a `route` row's value."""
    if not route:
        return frozenset()
    return frozenset(
        (broker, queue_id)
        for broker, (read, _write, perm, *_) in (route.get("queues") or {}).items()
        if int(perm) & _READABLE
        for queue_id in range(int(read))
    )


def _asked(route: Mapping[str, Any]) -> Iterator[str]:
    """The addresses that a consumer may ask who is in its group: of each name the master's, without a master any
    (`BrokerData.selectBrokerAddr`)."""
    for ids in (route.get("brokers") or {}).values():
        yield from [ids[str(MASTER_ID)]] if str(MASTER_ID) in ids else ids.values()


class States(NamedTuple):
    """What something was from when on, in order of time."""

    at_ms: Sequence[float]
    values: Sequence[Any]

    def at(self, at_ms: float) -> Any | None:
        """What it was at that time; None if it was not known."""
        last = bisect_right(self.at_ms, at_ms)
        return self.values[last - 1] if last else None

    def throughout(self, from_ms: float, to_ms: float) -> Any | None:
        """What it was all the time; None if it was not known, or changed."""
        first, last = bisect_right(self.at_ms, from_ms), bisect_right(self.at_ms, to_ms)
        return self.values[first - 1] if first == last and first else None


class Seen:
    """What the members of groups saw: their routes, and whom brokers listed."""

    def __init__(self, world: World, rows: Rows) -> None:
        self.world = world
        self._listed = heard_by(world, rows)
        routes = grouped(((r.node, r.topic), (r.time_ms, r.said)) for r in rows("route_changed"))
        for (name, _), of in routes.items():  # a process begins without any
            of += [(life.start_ms, {}) for life in world.lives_of(name)]
            of.sort(key=lambda state: (state[0], bool(state[1])))
        self._routes = {key: States(*zip(*of, strict=True)) for key, of in routes.items()}
        """Node and topic to the routes that it had."""
        self._is_told = all(node.is_ours for node in world.of_kind("broker", "slave"))
        # Ours record each call that a stall cost: without one nobody's channel ended, and no list changed.
        are_ours = all(node.is_ours for node in world.of_kind("consumer"))
        felt_by_all = changes(world.but_stalls() if are_ours else world)
        self._of_all = [] if self._is_told else [*felt_by_all, *_unanswered(world, rows)]

    def judged(self, topic: str, members: Collection[str]) -> Iterator[Judged]:
        """Every stretch in which every queue of the topic must have one owner among these consumers."""
        starts = [life.start_ms for name in members for life in self.world.lives_of(name)]
        of_all = {key: of for key, of in self._routes.items() if key[0] in members}
        routes = {name: of for (name, of_topic), of in of_all.items() if of_topic == topic}
        if not starts or not routes:
            return
        seen = [*self._of_all, *self._changes(members, of_all)]
        for free in without(min(starts), self.world.end_ms, (Stretch(c.at_ms, c.due_ms) for c in seen)):
            alive = [name for name in members if self.world.life_at(name, free.start_ms)]
            saw: list[Any] = [routes[name].at(free.start_ms) if name in routes else {} for name in alive]
            queues = {readable(route) for route in saw}
            shared = queues.pop() if len(queues) == 1 else None
            asked = {self.world.owners.get(address, "") for route in saw for address in _asked(route)}
            if not shared or not all(self._lists(broker, alive, free.start_ms) for broker in asked):
                continue
            # A round shares one topic after the other, and waits for each broker that hangs: a call a topic asks who is
            # there, and a call a queue from where on to read.
            calls = len({of_topic for _, of_topic in of_all}) + len(shared)
            named = [(of.at(free.start_ms) or {}).get("brokers") or {} for of in of_all.values()]
            all_ = [*seen, *self._lost(members, named, calls)]
            for start_ms, end_ms in without(*free, (Stretch(c.at_ms, c.due_ms) for c in all_)):
                last = max((one for one in all_ if one.due_ms <= start_ms), key=lambda one: one.due_ms)
                yield Judged(last, start_ms, end_ms, tuple(sorted(shared)), tuple(alive))

    def _changes(self, members: Collection[str], routes: Mapping[tuple[str, str], States]) -> Iterator[Change]:
        yield from _of_members(self.world, members)
        window_ms = members_ms(self.world.timers)
        steps = (
            (name, (at_ms, len(readable(before) - readable(now)) if now else 0))  # a process begins with no queue
            for (name, _), of in routes.items()
            for at_ms, before, now in zip(of.at_ms, ({}, *of.values), of.values, strict=False)
        )
        for name, of_name in grouped(steps).items():
            asks_ms, due_ms = 0.0, -math.inf
            for at_ms, lost in sorted(of_name):  # one round may do what several routes ask for
                asks_ms = (asks_ms if at_ms < due_ms else 0.0) + self._asks_ms(name, at_ms, lost)
                due_ms = at_ms + window_ms + asks_ms
                yield Change(at_ms, due_ms, f"{name}'s route changed")
        for broker, channels in self._listed.items():
            edges = {at_ms for name in members for channel in channels.get(name, ()) for at_ms in channel}
            yield from (Change(at_ms, at_ms + window_ms, f"{broker} listed others") for at_ms in sorted(edges))

    def _asks_ms(self, consumer: str, at_ms: float, lost: int) -> float:
        """How long the consumer's rounds may wait because its route lost so many queues: a round under way asks a hung
        broker for the offset of each, whatever route comes; and a round that gives them up commits each, and asks a
        NameServer, one call at a time, where the broker is."""
        world = self.world
        each_ms = OFFSET_CALL_MS if hung_brokers(world, consumer, at_ms, at_ms + 1.0) else 0.0
        servers = world.listed(consumer)
        look_up_ms = world.number(consumer, "lockTimeoutMillis") + look_up(world, consumer, len(servers)).ms
        until_ms = at_ms + members_ms(world.timers) + lost * (each_ms + look_up_ms)
        each_ms += look_up_ms if hung(world, consumer, servers, at_ms, until_ms) else 0.0
        return lost * each_ms

    def _lost(
        self, members: Collection[str], routes: Iterable[Mapping[str, Mapping[str, str]]], calls: int
    ) -> Iterator[Change]:
        """When a member, a broker of these routes, or the way between was lost, or so slow that a round of so many
        calls takes longer than a call may."""
        world, window_ms = self.world, members_ms(self.world.timers)
        listed = (one for route in routes for one in route.items())
        brokers = sorted({world.owners.get(address, name) for name, ids in listed for address in ids.values()})
        faults = [fault for node in (*sorted(members), *brokers) for fault in world.process_faults(node)]
        faults += [fault for name in sorted(members) for broker in brokers for fault in world.link_faults(name, broker)]
        for fault in faults:
            is_slow = fault.kind.delay is not None and calls * fault.kind.delay.round_trip_max_ms > world.timers.A_ms
            is_felt = is_slow or not world.harmless(fault)
            if is_felt and not (fault.ends_process and fault.source in members):
                yield Change(felt(world, fault).start_ms, felt(world, fault).end_ms + window_ms, _named(fault))

    def _lists(self, broker: str, members: Collection[str], at_ms: float) -> bool:
        """Whether the broker lists each of these once: it lists channels, and a lost one counts until it expires
        (`ConsumerGroupInfo`). With broadcasting nobody asks."""
        if not self._is_told or self.world.workload.get("broadcasting"):
            return True
        channels = self._listed.get(broker, {})
        return all(sum(c.start_ms <= at_ms < c.end_ms for c in channels.get(name, ())) == 1 for name in members)


def _named(fault: Fault) -> str:
    return f"{fault.fault_id} of {fault.source}" + (f" -> {fault.target}" if fault.target else "")


def _of_members(world: World, members: Iterable[str]) -> Iterator[Change]:
    """Members that come and go. Asked to stop one gives its queues up first, and ends when all have answered."""
    window_ms = members_ms(world.timers)
    for name in sorted(members):
        for life in world.lives_of(name):
            for at_ms, what in ((life.start_ms, "started"), (life.end_ms, "ended")):
                if at_ms < world.end_ms:
                    yield Change(at_ms, at_ms + window_ms, f"{name} {what}")
        for fault in world.process_faults(name):
            if fault.ends_process:
                yield Change(earliest_effect_ms(world, fault), fault.start_ms + window_ms, _named(fault))


@once
def quiet_for_groups(world: World) -> Sequence[Stretch]:
    """Where every queue has its consumer, and every broker has heard of it."""
    if not world.of_kind("consumer"):
        return []
    H_ms = world.timers.H_ms
    blocked = (Stretch(change.at_ms, change.due_ms + H_ms) for change in changes(world))
    return without(clients_began_ms(world) + members_ms(world.timers) + H_ms, world.end_ms, blocked)


def changes(world: World) -> list[Change]:
    """What every group feels, as far as the faults tell."""
    consumers, after_ms = {node.name for node in world.of_kind("consumer")}, aftermath_ms(world)
    found = [*_of_members(world, consumers)]
    for fault in harmful_to_deliveries(world):
        if fault.ends_process and fault.source in consumers:
            continue
        start_ms, end_ms = felt(world, fault)
        found.append(Change(start_ms, end_ms + after_ms, _named(fault)))
        if not fault.loss(world.timers).closes and not world.is_ours(fault.target or fault.source):
            found.append(_ghosts(world, end_ms, f"{_named(fault)} ended"))
    lists = changing(world, only_growing=True)
    found += [Change(start_ms, end_ms + after_ms, "the list of NameServers changed") for start_ms, end_ms in lists]
    return found + [Change(*joined, "a broker joined") for joined in brokers_joined(world, after_ms)]


def _ghosts(world: World, at_ms: float, what: str) -> Change:
    """Apache's broker that was hung, or that clients spoke to in vain, reads, when it is heard again, heartbeats of
    channels that have ended meanwhile, some of them behind those ends, so that these channels stay until they expire.
    It lists a group's members by channel (`ConsumerGroupInfo`; apache/rocketmq#6810 is the like of producers), so who
    has come back counts as several until then. Measured on 4.9.7: five members for two, for 122 s after a hang, and
    for 123 s after a black hole."""
    after_ms = CLIENT_EXPIRED_MS + CLIENT_SCAN_MS + members_ms(world.timers)
    return Change(at_ms, at_ms + after_ms, what)


def _unanswered(world: World, rows: Rows) -> Iterator[Change]:
    """Calls that ran into their time-outs, which closed the channels, perhaps with a heartbeat on its way. No fault
    explains these: a JVM stood still, or was just started and answers its first heartbeat after up to a second of the
    machine's time (5.5.0 at x3: 3 s, and four members for two until 117 s later)."""
    brokers = {node.address: node.name for node in world.of_kind("broker", "slave") if not node.is_ours}
    consumers = {node.name for node in world.of_kind("consumer")}
    for row in rows("timed_out"):
        if row.f != "connect" and row.node in consumers and row.address in brokers:
            yield _ghosts(world, row.time_ms, f"{row.node}'s call to {brokers[row.address]} had no answer")


def pieces(queue: Queue, held: Iterable[Holding], from_ms: float, to_ms: float) -> list[Piece]:
    """Where in [from_ms, to_ms) the queue did not have exactly one owner."""
    within = [
        Holding(h.node, max(h.start_ms, from_ms), min(h.end_ms, to_ms))
        for h in held
        if h.start_ms < to_ms and h.end_ms > from_ms
    ]
    edges = sorted({from_ms, to_ms, *(edge for h in within for edge in (h.start_ms, h.end_ms))})
    found: list[Piece] = []
    for start_ms, end_ms in pairwise(edges):
        owners = tuple(sorted({h.node for h in within if h.start_ms <= start_ms and h.end_ms >= end_ms}))
        if len(owners) == 1:
            continue
        if found and found[-1].end_ms == start_ms and found[-1].owners == owners:
            found[-1] = found[-1]._replace(end_ms=end_ms)
        else:
            found.append(Piece(queue, start_ms, end_ms, owners))
    return found
