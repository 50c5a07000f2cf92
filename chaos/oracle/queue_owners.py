"""Who owned which queue, and when a consumer group must have shared its queues: the plain half of queue_ownership.

    change (member, route, broker)  ├──── window ────┤ judged: one owner each ├──── next change …

Rows in, stretches and pieces out: no Spark, so that it can be tested and reused on rows from anywhere. They are few:
`assigned` rows come with rebalances and `route` rows with changes of a table, not with traffic.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from .intervals import Stretch, without
from .quiet import calm, earliest_effect_ms, members_window, sharing_from
from .reach import cut_offs, delayed_by_commits, failed_calls
from .recorded import OURS, Fault
from .schedules import CLIENT_SCAN_MS
from .time_outs import CLIENT_EXPIRED_MS
from .windows import Window, drop_window, return_window, staleness_window
from .world import World

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
    window: Window
    what: str


class Unanswered(NamedTuple):
    """A consumer's heartbeat to this broker ran into its time-out, and its channel was closed."""

    at_ms: float
    consumer: str
    broker: str


class Judged(NamedTuple):
    """In [start_ms, end_ms) each of `queues` must have one owner; `change` is the last thing that moved before."""

    topic: str
    change: Change
    start_ms: float
    end_ms: float
    queues: tuple[Queue, ...]


class Piece(NamedTuple):
    """The queue had these owners, not one, in [start_ms, end_ms)."""

    queue: Queue
    start_ms: float
    end_ms: float
    owners: tuple[str, ...]


def holdings(world: World, assigned: Iterable[Mapping[str, Any]]) -> dict[str, dict[Queue, list[Holding]]]:
    """topic → queue → who owned it, from `assigned` rows whose `value` is [[broker_name, queue_id], …]."""
    rows: dict[tuple[str, int, str], list[tuple[float, int, frozenset[Queue]]]] = defaultdict(list)
    for row in assigned:
        queues = frozenset((str(broker), int(queue_id)) for broker, queue_id in row["value"] or ())
        key = (row["node"], row["incarnation"], row["topic"])
        rows[key].append((row["time_ms"], row["seq"], queues))
    found: dict[str, dict[Queue, list[Holding]]] = defaultdict(lambda: defaultdict(list))
    for (node, incarnation, topic), states in rows.items():
        ends = [life.end_ms for life in world.lives_of(node) if life.incarnation == incarnation]
        life_end_ms = max(ends, default=math.inf)
        since: dict[Queue, float] = {}
        for at_ms, _, queues in sorted(states):
            for queue in [queue for queue in since if queue not in queues]:
                found[topic][queue].append(Holding(node, since.pop(queue), at_ms))
            for queue in queues:
                since.setdefault(queue, at_ms)
        for queue, start_ms in since.items():
            found[topic][queue].append(Holding(node, start_ms, life_end_ms))
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


class Tables:
    """What each NameServer process routed a topic to, and when that changed."""

    def __init__(self, world: World, routes: Iterable[Mapping[str, Any]]) -> None:
        self._world = world
        self._states: dict[tuple[str, str, int], list[tuple[float, int, frozenset[Queue]]]] = defaultdict(list)
        for row in routes:
            key = (row["topic"], row["node"], row["incarnation"])
            self._states[key].append((row["time_ms"], row["seq"], readable(row["value"])))
        for states in self._states.values():
            states.sort()

    def changes(self, topic: str) -> list[tuple[float, bool]]:
        """(when, whether a queue was added) for each change of the topic's readable queues in any table."""
        found = []
        for (of_topic, _, _), states in self._states.items():
            before: frozenset[Queue] = frozenset()
            for at_ms, _, queues in states if of_topic == topic else ():
                if queues != before:
                    found.append((at_ms, bool(queues - before)))
                before = queues
        return sorted(found)

    def at(self, topic: str, at_ms: float) -> frozenset[Queue] | None:
        """The queues that every living NameServer routes to at that moment; None when they differ, or none lives."""
        seen: set[frozenset[Queue]] = set()
        for node in self._world.of_kind("name_server"):
            for life in self._world.lives_of(node.name):
                if life.start_ms <= at_ms < life.end_ms:
                    states = self._states.get((topic, node.name, life.incarnation), [])
                    position = bisect_right(states, at_ms, key=lambda state: state[0])
                    seen.add(states[position - 1][2] if position else frozenset())
        return seen.pop() if len(seen) == 1 else None


def judged(world: World, topics: Iterable[str], tables: Tables, unanswered: Iterable[Unanswered] = ()) -> list[Judged]:
    """Every stretch in which every queue of a topic must have one owner in each group."""
    starts = [life.start_ms for node in world.of_kind("consumer") for life in world.lives_of(node.name)]
    if not starts:
        return []
    found = []
    common = [*_common_changes(world), *_after_unanswered(world, unanswered)]
    for topic in sorted(topics):
        changes = [*common, *_route_changes(world, tables.changes(topic), min(starts))]
        changes += _unheard(world, changes, min(starts))
        blocked = [Stretch(change.at_ms, change.due_ms) for change in changes]
        for start_ms, end_ms in without(min(starts), world.end_ms, blocked):
            queues = tables.at(topic, start_ms)
            if queues:
                last = max(
                    (change for change in changes if change.due_ms <= start_ms), key=lambda change: change.due_ms
                )
                found.append(Judged(topic, last, start_ms, end_ms, tuple(sorted(queues))))
    return found


def _route_changes(world: World, changes: Sequence[tuple[float, bool]], first_ms: float) -> list[Change]:
    """What a consumer that starts later fetches at its start is no change to it."""
    found = []
    for at_ms, grows in changes:
        if at_ms < first_ms:
            continue
        window = sharing_from(world, at_ms, grows=grows)
        delayed = [delayed_by_commits(world, node.name, window, at_ms) for node in world.of_kind("consumer")]
        window = max(delayed, key=lambda window: window.latest_ms)
        stale = _staleness(world, at_ms, at_ms + window.latest_ms)
        if stale is not None:
            latest_ms, chained = window.latest_ms + stale.latest_ms, window.timers + stale.timers
            window = window._replace(latest_ms=latest_ms, formula=f"{window.formula} + {stale.formula}", timers=chained)
        found.append(Change(at_ms, at_ms + window.latest_ms, window, "route changed"))
    return found


def _unheard(world: World, changes: Sequence[Change], first_ms: float) -> list[Change]:
    """Stretches in which a consumer is cut off from every NameServer of its list while something changes: what it
    cannot hear then is a change to it when it can ask again."""
    found = []
    for node in world.of_kind("consumer"):
        for cut_off in cut_offs(world, node.name):
            if not any(c.at_ms < cut_off.end_ms and c.due_ms > cut_off.start_ms for c in changes):
                continue
            again_ms = min(cut_off.end_ms, world.end_ms)
            for heard in _route_changes(world, [(again_ms, True), (again_ms, False)], first_ms):
                what = f"{node.name} could ask no NameServer"
                found.append(heard._replace(at_ms=max(cut_off.start_ms, first_ms), what=what))
    return found


def _staleness(world: World, from_ms: float, to_ms: float) -> Window | None:
    """What lost NameServers add to the time in which consumers learn of a change; None without any."""
    consumers = [node.name for node in world.of_kind("consumer")]
    calls = failed_calls(world, consumers, from_ms - world.timers.P_ms, to_ms)
    return staleness_window(world.timers, calls) if calls else None


def _common_changes(world: World) -> list[Change]:
    """Changes that concern every topic: members that come and go, brokers and links that fail and heal."""
    timers = world.timers
    brokers = [node.name for node in world.of_kind("broker")]
    name_servers = [node.name for node in world.of_kind("name_server")]
    members, returns = members_window(timers), return_window(timers)
    again = members._replace(latest_ms=members.latest_ms + timers.H_ms, formula=f"H + {members.formula}", timers=3)
    found: list[Change] = []

    def add(at_ms: float, window: Window, what: str) -> None:
        if at_ms < world.end_ms:
            found.append(Change(at_ms, at_ms + window.latest_ms, window, what))

    def back(from_ms: float) -> Window:
        return _after(returns, sharing_from(world, from_ms, after_ms=returns.latest_ms))

    def throughout(fault: Fault, after: Window, what: str) -> None:
        found.append(Change(fault.start_ms, fault.end_ms + after.latest_ms, after, what))

    for node in world.of_kind("consumer"):
        for life in world.lives_of(node.name):
            add(life.start_ms, members, f"{node.name} started")
            later_life = life is not world.lives_of(node.name)[0]
            if later_life or life.start_ms == world.joined_ms(node.name):  # without a NameServer it starts until one is
                later = (max(c.start_ms, life.start_ms) for c in calm(world) if c.end_ms > life.start_ms)
                began_ms = min(later, default=world.end_ms)
                if began_ms > life.start_ms:
                    what = f"{node.name} {'was started' if later_life else 'joined'} while faults were in force"
                    found.append(Change(life.start_ms, began_ms + members.latest_ms, members, what))
            add(life.end_ms, members, f"{node.name} ended")
        for fault in world.process_faults(node.name):
            if not fault.loss(timers).closes:
                throughout(fault, again, f"{fault.fault_id} of {node.name}")
            left_ms = earliest_effect_ms(world, fault)
            if left_ms < fault.start_ms:  # asked to stop it gives its queues up first, and ends when all have answered
                due_ms = fault.start_ms + members.latest_ms
                found.append(Change(left_ms, due_ms, members, f"{node.name} was asked to stop"))
        for broker in brokers:
            for fault in _harmful(world, world.link_faults(node.name, broker)):
                throughout(fault, back(fault.end_ms), f"{fault.fault_id} of {node.name} -> {broker}")
                if world.made_by(broker) != OURS and not fault.loss(timers).closes:
                    add(fault.end_ms, _ghosts(members), f"{fault.fault_id} of {node.name} -> {broker} ended")
    for broker in brokers:
        for fault in _harmful(world, world.process_faults(broker)):
            if world.made_by(broker) != OURS and not fault.loss(timers).closes:
                add(fault.end_ms, _ghosts(members), f"{fault.fault_id} of {broker} ended")
            drop = drop_window(timers, fault.loss(timers))
            if math.isfinite(drop.latest_ms):
                shrinks = sharing_from(world, fault.start_ms, after_ms=drop.latest_ms, grows=False)
                add(fault.start_ms, _after(drop, shrinks), f"{fault.fault_id} of {broker} began")
                add(fault.end_ms, back(fault.end_ms), f"{fault.fault_id} of {broker} ended")
            else:
                throughout(fault, back(fault.end_ms), f"{fault.fault_id} of {broker}")
        for name_server in name_servers:
            for fault in _harmful(world, world.link_faults(broker, name_server)):
                throughout(fault, back(fault.end_ms), f"{fault.fault_id} of {broker} -> {name_server}")
    for node in world.of_kind("name_server"):
        for life in world.lives_of(node.name)[1:]:
            add(life.start_ms, returns, f"{node.name} started again, empty")
    return found


def _after_unanswered(world: World, unanswered: Iterable[Unanswered]) -> list[Change]:
    """What no fault explains: a JVM that was just started answers its first heartbeat after up to a second of the
    machine's time (5.5.0 at x3: 3 s, and four members for two until 117 s later)."""
    window = _ghosts(members_window(world.timers))
    return [
        Change(at_ms, at_ms + window.latest_ms, window, f"{consumer}'s heartbeat to {broker} had no answer")
        for at_ms, consumer, broker in unanswered
        if world.made_by(broker) != OURS
    ]


def _ghosts(members: Window) -> Window:
    """Apache's broker that was hung, or that clients spoke to in vain, reads, when it is heard again, heartbeats of
    channels that have ended meanwhile, some of them behind those ends, so that these channels stay until they expire.
    It lists a group's members by channel (`ConsumerGroupInfo`; apache/rocketmq#6810 is the like of producers), so who
    has come back counts as several until then. Measured on 4.9.7: five members for two, for 122 s after a hang, and
    for 123 s after a black hole."""
    latest_ms = CLIENT_EXPIRED_MS + CLIENT_SCAN_MS + members.latest_ms
    formula = f"client's channel expires + its scan + {members.formula}"
    return Window(0, latest_ms, formula, "members that an Apache broker counts twice after it was hung", 4)


def _harmful(world: World, faults: Iterable[Fault]) -> list[Fault]:
    return [fault for fault in faults if not fault.harmless(world.timers)]


def _after(first: Window, then: Window) -> Window:
    """Both, one behind the other."""
    latest_ms, formula = first.latest_ms + then.latest_ms, f"({first.formula}) + {then.formula}"
    return Window(0, latest_ms, formula, then.row, first.timers + then.timers)


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
