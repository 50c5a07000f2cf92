"""Each rebalance takes the share that the averaging allocation gives: of queue_ownership, in disturbed times too.

    its route's readable queues, sorted        q0 q1 q2 │ q3 q4 │ q5 q6
    the group's clientIds, sorted               member 0   1       2        the first (queues % members) have one more

All members do the same sum over what each sees, so a round is held to what its own consumer held as route, and to whom
every broker that it may have asked knew. With broadcasting each consumer takes all readable queues of its route, and
asks nobody. Judged are rounds in which none of that changed, no fault was in force of these brokers, the consumer or a
link between them, and no call ran out.

A broker is guilty, and not the consumer, where it answered a list of members that it did not have (`members_listed`)
and the consumer's share is right by that list.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ....remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from ...oracle.link import MOMENT_MS
from ...oracle.queue_owners import Queue, States, listed, readable
from ...oracle.recorded import Life, NodeInfo
from ...oracle.time_outs import REBALANCE
from ...oracle.world import World
from ...topology import node_of_client_id
from ...verdict import Finding
from ..findings import at_no_time, finding
from ..record.control import Control, Row

_ROW = "AllocateMessageQueueAveragely: every member takes its own slice of the same queues"

_ALL_ROW = "RebalanceImpl.rebalanceByTopic: with broadcasting a consumer has all queues of its route"


def share(client_id: str, queues: Collection[Queue], client_ids: Collection[str]) -> frozenset[Queue]:
    """The queues of this member, by broker name and queue id. Who is listed twice has the share of its first place."""
    members, in_order = sorted(client_ids), sorted(queues)
    number = members.index(client_id)
    each, more = divmod(len(in_order), len(members))
    first = number * each + min(number, more)
    return frozenset(in_order[first : first + each + (number < more)])


def shares_taken(control: Control, world: World) -> Iterator[Finding]:
    """One of each consumer process that had a round which is judged."""
    brokers = world.of_kind("broker", "slave")
    if not all(node.is_ours for node in brokers):
        return
    if world.of_kind("slave") and not world.workload.get("broadcasting"):
        return  # which of a name's brokers was asked nobody records
    known = {name: States(*zip(*states, strict=True)) for name, states in listed(world, control.rows).items()}
    assigned = [row for row in control.rows("assigned") if row.topic]
    said = control.by_process("assigned", "route_changed", "scheduled_task", "members_listed")
    for node in (one for one in world.ours("consumer") if world.topic_of(one.name) not in world.deleted):
        topics = _topics(world, node.name, assigned)
        for life in world.lives_of(node.name):
            rounds = _Rounds(world, node, said.get(life.process, ()), known)
            judged = [(at_ms, topic, right) for topic in topics for at_ms, right in rounds.of(topic)]
            if judged:
                rule = _ALL_ROW if rounds.takes_all else _ROW
                yield _finding(node.name, life, min(life.end_ms, world.end_ms), judged, rounds.misled_by, rule)


class _Rounds:
    def __init__(self, world: World, node: NodeInfo, said: Sequence[Row], known: Mapping[str, States]) -> None:
        self._world, self._said, self._known = world, said, known
        self._consumer, self._group = node.name, frozenset(world.members_of(node.name))
        self.takes_all = bool(world.workload.get("broadcasting"))
        """So that no broker is asked, and each round can be whole."""
        self.misled_by = ""
        """Who answered it, before its first wrong round, a list that its brokers did not have, and that it went by."""
        # On the virtual clock a row has the time of what it tells, so a round that follows a change at once is judged;
        # but for what the clocks of its hosts are apart.
        timers = world.timers_of(node.name)
        self._near_ms = timers.clocks_ms if world.run.get("clock") == "virtual" else timers.delivery_ms
        slow_ms = timers.A_ms / 2
        rows = [row for row in said if row.f == REBALANCE]
        done = [row for row in rows if self.takes_all or row.said.get("balanced")]
        self._ended = [(row.time_ms, took) for row in done if (took := row.duration_ms or 0.0) < slow_ms]

    def of(self, topic: str) -> Iterator[tuple[float, bool]]:
        """When each ended that is judged, and whether what its consumer held then was its share."""
        routes, taken = _states(self._said, "route_changed", topic), _states(self._said, "assigned", topic)
        for ended_ms, took_ms in self._ended:
            due = self._share(routes, ended_ms - took_ms - self._near_ms, ended_ms + self._near_ms)
            if due is not None:
                held = {(str(name), int(number)) for name, number in taken.at(ended_ms) or ()}
                if held != due and not self.misled_by:
                    began_ms = ended_ms - took_ms - MOMENT_MS
                    self.misled_by = self._misled_by(topic, held, routes.at(ended_ms), began_ms, ended_ms)
                yield ended_ms, held == due

    def _misled_by(self, topic: str, held: Collection[Queue], route: Any, from_ms: float, to_ms: float) -> str:
        """The broker whose list, the last of that round, makes this the share of the consumer; "" without any."""
        listed_ = [row for row in self._said if row.event == "members_listed" and row.topic == topic]
        for row in [row for row in listed_ if from_ms <= row.time_ms <= to_ms][-1:]:
            own = [one for one in row.decoded or () if node_of_client_id(one) == self._consumer]
            if own and share(own[0], readable(route), row.decoded) == held:
                return self._world.owners.get(row.address, "")
        return ""

    def _share(self, routes: States, from_ms: float, to_ms: float) -> frozenset[Queue] | None:
        """What it had to take; None where that is not known of all the time."""
        route = routes.throughout(from_ms, to_ms)
        queues = readable(route) if isinstance(route, Mapping) else frozenset()
        if not queues or not isinstance(route, Mapping):
            return None
        brokers = frozenset(str(name) for name in route.get("brokers") or ())
        if self._disturbed(brokers, from_ms, to_ms):
            return None
        if self.takes_all:
            return queues
        heard = {self._known[name].throughout(from_ms, to_ms) if name in self._known else None for name in brokers}
        ids = heard.pop() if len(heard) == 1 else None
        members = [one for one in ids or () if node_of_client_id(one) in self._group]
        own = {one for one in members if node_of_client_id(one) == self._consumer}
        return share(own.pop(), queues, members) if len(own) == 1 else None

    def _disturbed(self, brokers: Collection[str], from_ms: float, to_ms: float) -> bool:
        faults = [*self._world.process_faults(self._consumer)]
        for broker in brokers:
            faults += [*self._world.process_faults(broker), *self._world.link_faults(self._consumer, broker)]
        return any(fault.overlaps(from_ms, to_ms) for fault in faults)


def _finding(
    consumer: str, life: Life, until_ms: float, judged: Sequence[tuple[float, str, bool]], misled_by: str, rule: str
) -> Finding:
    """Wrong from the first wrong round on, until the same topic's next right one after the last that was wrong."""
    wrong = sorted((at_ms, topic) for at_ms, topic, right in judged if not right)
    topic, out = "", None
    if wrong:
        (first_ms, topic), (last_ms, last_of) = wrong[0], wrong[-1]
        later = (at_ms for at_ms, of, right in judged if right and of == last_of and at_ms > last_ms)
        out = first_ms, min(later, default=until_ms)
    return finding(
        (consumer, "", topic),
        "takes its own share",
        (life.start_ms, until_ms),
        at_no_time(rule),
        out=out,
        examined=len(judged),
        wrong=len(wrong),
        more={"holder": misled_by, "because": f"{misled_by} listed other members"} if misled_by else {},
    )


def retry_topics(world: World, consumer: str) -> set[str]:
    """The retry topic of each of its groups; none with broadcasting, which sends nothing back."""
    groups = [] if world.workload.get("broadcasting") else world.groups.items()
    return {f"{RETRY_GROUP_TOPIC_PREFIX}{group}" for group, members in groups if consumer in members}


def _topics(world: World, consumer: str, assigned: Sequence[Row]) -> list[str]:
    """The consumer's topic, if the run says which, and its group's retry topic; else what is assigned to anybody. Ours
    have a share of the retry topic whether or not they took any of it."""
    topic, own = world.topic_of(consumer), retry_topics(world, consumer)
    found = {row.topic for row in assigned if row.topic} | (own if world.is_ours(consumer) else set())
    return sorted(of for of in found if not topic or of == topic or of in own)


def _states(rows: Sequence[Row], event: str, topic: str) -> States:
    found = [row for row in rows if row.event == event and row.topic == topic]
    return States([row.time_ms for row in found], [row.decoded for row in found])
