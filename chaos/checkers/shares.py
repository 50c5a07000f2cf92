"""Each rebalance takes the share that the averaging allocation gives: of queue_ownership, in disturbed times too.

    its route's readable queues, sorted        q0 q1 q2 │ q3 q4 │ q5 q6
    the group's clientIds, sorted               member 0   1       2        the first (queues % members) have one more

All members do the same sum over what each sees, so a round is held to what its own consumer held as route, and to whom
every broker that it may have asked knew. Judged are rounds in which none of that changed, no fault was in force of
these brokers, the consumer or a link between them, and no call ran out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from ..oracle.deliveries import node_of_client
from ..oracle.queue_owners import Queue, readable
from ..oracle.recorded import OURS, Life, NodeInfo
from ..oracle.schedules import REBALANCE
from ..oracle.world import World
from ..verdict import Finding
from .control import Control, Row
from .findings import NEVER, lasted

_ROW = "AllocateMessageQueueAveragely: every member takes its own slice of the same queues"


class _States(NamedTuple):
    """What something was from when on, in order of time."""

    at_ms: Sequence[float]
    values: Sequence[Any]

    def throughout(self, from_ms: float, to_ms: float) -> Any | None:
        """What it was all the time; None where it was not known, or changed."""
        first, last = bisect_right(self.at_ms, from_ms), bisect_right(self.at_ms, to_ms)
        return self.values[first - 1] if first == last and first else None


def share(client_id: str, queues: Collection[Queue], client_ids: Collection[str]) -> frozenset[Queue]:
    """The queues of this member, by broker name and queue id."""
    members, in_order = sorted(client_ids), sorted(queues)
    number = members.index(client_id)
    each, more = divmod(len(in_order), len(members))
    first = number * each + min(number, more)
    return frozenset(in_order[first : first + each + (number < more)])


def shares_taken(control: Control, world: World) -> Iterator[Finding]:
    """One of each consumer process that had a round which is judged."""
    brokers = world.of_kind("broker", "slave")
    if world.workload.get("broadcasting") or any(node.implementation != OURS for node in brokers):
        return
    if world.of_kind("slave"):
        return  # which of a name's brokers was asked nobody records
    known = _known(control, world)
    for node in world.of_kind("consumer"):
        for life in world.lives_of(node.name) if node.implementation == OURS else ():
            yield from _of_process(control, world, node, life, known)


def _of_process(
    control: Control, world: World, node: NodeInfo, life: Life, known: Mapping[str, _States]
) -> Iterator[Finding]:
    process = node.name, life.incarnation
    mine = [row for row in control.rows("assigned", "route_changed", "scheduled_task") if row.process == process]
    topics = _topics(world, node.name, [row for row in control.rows("assigned") if row.topic])
    routes = {topic: _states(mine, "route_changed", topic) for topic in topics}
    taken = {topic: _states(mine, "assigned", topic) for topic in topics}
    examined, wrong, until_ms = 0, [], min(life.end_ms, world.end_ms)
    righted_ms = until_ms
    near_ms = world.timers_of(node.name).delivery_ms
    for row in mine:
        if row.f != REBALANCE or not (row.decoded or {}).get("balanced"):
            continue
        from_ms, to_ms = row.time_ms - (row.duration_ms or 0.0) - near_ms, row.time_ms + near_ms
        if to_ms - from_ms - 2 * near_ms >= world.timers_of(node.name).A_ms / 2:
            continue
        for topic in topics:
            route = routes[topic].throughout(from_ms, to_ms)
            queues = readable(route) if isinstance(route, Mapping) else frozenset()
            names = set((route or {}).get("brokers") or ()) if isinstance(route, Mapping) else set()
            if not queues or _disturbed(world, node.name, names, from_ms, to_ms):
                continue
            members = {known[name].throughout(from_ms, to_ms) if name in known else None for name in names}
            ids = members.pop() if len(members) == 1 else None
            group = set(world.members_of(node.name))
            ids = [one for one in ids or () if one.partition("@")[2].partition("#")[0] in group]
            own = [one for one in ids if one.partition("@")[2].partition("#")[0] == node.name]
            if len(own) != 1:
                continue
            states = taken[topic]
            at = bisect_right(states.at_ms, row.time_ms)
            held = frozenset((str(name), int(number)) for name, number in (states.values[at - 1] if at else None) or ())
            examined += 1
            if held != share(own[0], queues, ids):
                wrong.append((row.time_ms, topic))
                righted_ms = until_ms
            elif wrong and wrong[-1][1] == topic:
                righted_ms = min(righted_ms, row.time_ms)
    if examined:
        yield Finding(
            subject=node.name,
            topic=wrong[0][1] if wrong else "",
            kind="takes its own share",
            from_ms=life.start_ms,
            to_ms=until_ms,
            row=_ROW,
            examined=examined,
            wrong=len(wrong),
            wrong_from_ms=wrong[0][0] if wrong else None,
            wrong_to_ms=righted_ms if wrong else None,
            **(lasted(wrong[0][0], righted_ms) if wrong else {"bound_ms": 0.0, "formula": NEVER}),
        )


def _topics(world: World, consumer: str, assigned: Sequence[Row]) -> list[str]:
    """The consumer's topic, if the run says which, and its group's retry topic; else what is assigned to anybody."""
    topic = world.topic_of(consumer)
    own = {f"{RETRY_GROUP_TOPIC_PREFIX}{group}" for group, members in world.groups.items() if consumer in members}
    found = {row.topic for row in assigned if row.topic}
    return sorted(of for of in found if not topic or of == topic or of in own)


def _states(rows: Sequence[Row], event: str, topic: str) -> _States:
    found = [row for row in rows if row.event == event and row.topic == topic]
    return _States([row.time_ms for row in found], [row.decoded for row in found])


def _disturbed(world: World, consumer: str, brokers: Collection[str], from_ms: float, to_ms: float) -> bool:
    faults = [*world.process_faults(consumer)]
    for broker in brokers:
        faults += [*world.process_faults(broker), *world.link_faults(consumer, broker)]
    return any(fault.overlaps(from_ms, to_ms) for fault in faults)


def _known(control: Control, world: World) -> dict[str, _States]:
    """Of each broker the clientIds that it had heard and not forgotten, from when on; nobody's while it is dead."""
    of_broker: dict[str, list[tuple[float, frozenset[str]]]] = defaultdict(list)
    channels: dict[tuple[str, int], dict[str | None, str]] = defaultdict(dict)
    for node in world.of_kind("broker"):
        for life in world.lives_of(node.name):
            of_broker[node.name] += [(life.start_ms, frozenset()), (life.end_ms, frozenset())]
    for row in control.rows("client_heartbeat", "client_gone"):
        here = channels[row.process]
        before = frozenset(here.values())
        if row.event == "client_gone":
            here.pop(row.op_id, None)
        else:
            here[row.op_id] = str((row.decoded or {}).get("client"))
        if (now := frozenset(here.values())) != before and node_of_client(row):
            of_broker[row.node].append((row.time_ms, now))
    return {
        name: _States([at_ms for at_ms, _ in states], [ids for _, ids in states])
        for name, states in ((name, sorted(of, key=lambda one: one[0])) for name, of in of_broker.items())
    }
