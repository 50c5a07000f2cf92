"""The clients of the made-up cluster: the prober's starts, polls of NameServers, rebalances, and what comes of those.

Simulation ─ routes, faults ─► Clients ─ route_changed, assigned ─► who owns each queue ─► pulls from the dead
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nemesrv.remoting.node.profile import Profile

from .outcome import CLOSED, PROBER, UP, Steps
from .plan import BEGIN_MS, Plan
from .timeline import Timelines

if TYPE_CHECKING:
    from .control import Simulation


@dataclass(slots=True)
class _Client:
    name: str
    listed: list[str]
    index: int
    connected: bool = True
    refused: bool = False
    """Whether the NameServer in use was chosen and could not be connected to."""
    known: frozenset[str] = frozenset()
    assigned: frozenset[tuple[str, int]] = frozenset()


class Clients:
    """Producers, consumers and the prober of a simulation, whose queue of events they share."""

    def __init__(self, world: Simulation) -> None:
        self._world, self._plan = world, world.plan
        self._clients: dict[str, _Client] = {}
        self._answers: dict[tuple[str, str, str], frozenset[str]] = {}
        queues = self._plan.topics * self._plan.brokers * self._plan.queues
        self._owned: list[list[tuple[float, int, bool]]] = [[] for _ in range(queues)]

    def begin(self) -> None:
        """Every start is in the simulation's queue of events."""
        for client in self._world.client_names:
            self._world.at(1_000.0 + self._world.soon(0, 500), self._start, client)
        self._world.at(1_000.0, self._start_prober)

    def end(self) -> None:
        """What follows from all of it: one owner a queue, and the pulls of those whose broker does not answer."""
        self._own_queues()
        self._pull_from_the_dead()

    def _start_prober(self, now_ms: float) -> None:
        self._world.started(now_ms, PROBER)
        name_servers = [self._world.result.addresses[name] for name in self._plan.name_server_names]
        faults = [f for f in self._plan.faults if f.source.startswith("ns-")]
        for number in range(self._plan.starts):
            at_ms = BEGIN_MS + 100 + number * 30_000.0 / max(self._plan.starts, 1)
            assert all(at_ms < fault.start_ms for fault in faults), "the prober starts before the first fault"
            listed = self._world.rng.sample(name_servers, len(name_servers))
            index = self._world.rng.randrange(len(listed))
            one = {"op_id": f"prober-start-{number}"}
            self._world.row(at_ms, PROBER, "name_server_list", value=listed, **one)
            self._chosen(at_ms + 0.2, PROBER, listed, index, None, "first", **one)
            tried = [(listed[index], "answered")]
            self._called(
                at_ms + 2.0, PROBER, tried, self._plan.topic_names[0], "ok", 0, 1.8, self._plan.broker_names, **one
            )

    def _chosen(
        self, now_ms: float, node: str, listed: list[str], index: int, old: str | None, reason: str, **fields: Any
    ) -> None:
        value = {"index": index, "old": old, "reason": reason}
        self._world.row(now_ms, node, "name_server_chosen", name_server=listed[index], value=value, **fields)

    def _called(
        self,
        now_ms: float,
        node: str,
        tried: list[tuple[str, str]],
        topic: str,
        type_: str,
        code: int | None,
        duration_ms: float,
        held: Iterable[str] = (),
        **fields: Any,
    ) -> None:
        if code == 0:
            self._answered(now_ms, node, tried[-1][0], topic, held, **fields)
        how = {"f": "route", "type": type_, "code": code, "duration_ms": duration_ms, "name_server": tried[-1][0]}
        tries = [{"name_server": address, "outcome": outcome} for address, outcome in tried]
        self._world.row(now_ms, node, "name_server_call", topic=topic, value={"tried": tries}, **how, **fields)

    def _answered(self, now_ms: float, node: str, address: str, topic: str, held: Iterable[str], **fields: Any) -> None:
        """The route that a call got, unless it is the one that this NameServer gave this node last."""
        key, brokers = (node, address, topic), frozenset(held)
        if self._answers.get(key) != brokers:
            self._answers[key] = brokers
            told = {"name_server": address, "topic": topic, "value": self._world.route(brokers)}
            self._world.row(now_ms, node, "route_answer", **told, **fields)

    def _start(self, now_ms: float, name: str) -> None:
        self._world.started(now_ms, name)
        addresses = [self._world.result.addresses[server] for server in self._plan.name_server_names]
        listed = self._world.rng.sample(addresses, len(addresses))
        index = self._world.rng.randrange(len(listed))
        if name in self._world.never_leave:
            index = listed.index(addresses[0])
        client = self._clients[name] = _Client(name, listed, index)
        self._world.row(now_ms + 1, name, "name_server_list", value=listed)
        self._chosen(now_ms + 2, name, listed, client.index, None, "first")
        self._channel(now_ms + 3, name, "open", listed[client.index], "connected")
        self._world.at(now_ms + 10, self.poll, client)
        if name in self._plan.consumer_names:
            self._world.at(now_ms + 100, self._rebalance, client)

    def _channel(self, now_ms: float, name: str, f: str, address: str, reason: str) -> None:
        self._world.row(now_ms, name, "channel", f=f, address=address, value={"reason": reason})

    def disconnect(self, now_ms: float, name_server: str) -> None:
        """The clients of a NameServer that died see their connections close."""
        address = self._world.result.addresses[name_server]
        for client in self._clients.values():
            if client.connected and client.listed[client.index] == address:
                client.connected = False
                self._channel(now_ms + self._world.soon(1, 10), client.name, "close", address, "closed")

    def poll(self, now_ms: float, client: _Client) -> None:
        self._world.at(now_ms + self._world.timers.P_ms, self.poll, client)
        servers = {self._world.result.addresses[name]: name for name in self._plan.name_server_names}
        at_ms, first = now_ms, self._plan.topic_names[0]
        tried: list[tuple[str, str]] = []
        for _ in client.listed:
            if client.connected:
                break
            old = client.listed[client.index]
            if client.name not in self._world.never_leave:
                client.index = (client.index + 1) % len(client.listed)
                reason = "connect_failed" if client.refused else "not_active"
                self._chosen(at_ms + 0.1, client.name, client.listed, client.index, old, reason)
            address = client.listed[client.index]
            client.connected = self._world.alive[servers[address]]
            client.refused = not client.connected
            how = ("open", "connected") if client.connected else ("connect_failed", "refused")
            self._channel(at_ms + 0.6, client.name, how[0], address, how[1])
            at_ms += 1.0
            if not client.connected:
                tried.append((address, "connect_failed"))
                if self._plan.profile is Profile.V5_X:
                    break  # one candidate a call
        if not client.connected:
            self._called(at_ms + 0.9, client.name, tried, first, "fail", None, at_ms + 0.9 - now_ms)
            return
        address = client.listed[client.index]
        began_ms = now_ms
        name_server = servers[address]
        if self._world.paused[name_server]:
            if self._world.resumes[name_server] > began_ms + self._world.timers.A_ms - 100:
                late_ms = began_ms + self._world.timers.A_ms
                tried.append((address, "no_answer"))
                self._called(late_ms, client.name, tried, first, "info", None, self._world.timers.A_ms)
                self._channel(late_ms + 0.5, client.name, "close", address, "timeout")
                client.connected = False
                return
            at_ms = self._world.resumes[name_server]
        held = frozenset(self._world.tables[name_server])
        for topic in self._plan.topic_names:
            at_ms += 2.0
            type_, code = ("ok", 0) if held else ("fail", 17)
            tried.append((address, "answered"))
            self._called(at_ms, client.name, tried, topic, type_, code, at_ms - began_ms, held)
            tried = []  # all are asked for at once
            if held and held != client.known:
                self._world.row(at_ms + 0.1, client.name, "route_changed", topic=topic, value=self._world.route(held))
        if held and held != client.known:
            client.known = held
            if client.name in self._plan.producer_names:
                bits = sum(1 << index for index, name in enumerate(self._plan.broker_names) if name in held)
                self._world.result.known[self._plan.producer_names.index(client.name)].append((at_ms, bits))

    def _rebalance(self, now_ms: float, client: _Client) -> None:
        """AllocateMessageQueueAveragely over the queues that this consumer knows."""
        self._world.at(now_ms + self._world.timers.Qr_ms, self._rebalance, client)
        plan = self._plan
        mine = plan.consumer_names.index(client.name)
        order = sorted(range(plan.consumers), key=lambda index: plan.consumer_names[index])
        place = order.index(mine)
        queues = [(broker, queue) for broker in sorted(client.known) for queue in range(plan.queues)]
        each, rest = divmod(len(queues), plan.consumers)
        first = place * each + min(place, rest)
        assigned = queues[first : first + each + (place < rest)]
        if frozenset(assigned) == client.assigned:
            return
        before, client.assigned = client.assigned, frozenset(assigned)
        for number, topic in enumerate(plan.topic_names):
            at_ms = now_ms + number / 100
            self._world.row(at_ms, client.name, "assigned", topic=topic, value=[list(queue) for queue in assigned])
            for broker, queue in sorted(before ^ client.assigned):
                owned = self._owned[queue_of(plan, number, plan.broker_names.index(broker), queue)]
                owned.append((at_ms, mine, (broker, queue) in client.assigned))

    def _own_queues(self) -> None:
        """One owner at a time: who has a queue keeps it until it gives it up, whoever else was given it meanwhile."""
        for changes in self._owned:
            holders: list[int] = []
            steps: Steps = [(0.0, -1)]
            for at_ms, consumer, gained in changes:
                if gained:
                    holders.append(consumer)
                elif consumer in holders:
                    holders.remove(consumer)
                owner = holders[0] if holders else -1
                if owner != steps[-1][1]:
                    steps.append((at_ms, owner))
            self._world.result.owners.append(steps)

    def _pull_from_the_dead(self) -> None:
        """Pulls of owners whose broker does not answer, once in three seconds."""
        plan = self._plan
        for number, steps in enumerate(self._world.result.owners):
            topic, rest = divmod(number, plan.brokers * plan.queues)
            broker, queue_id = divmod(rest, plan.queues)
            name = plan.broker_names[broker]
            where = {
                "topic": plan.topic_names[topic],
                "broker_name": name,
                "address": self._world.result.addresses[name],
                "queue_id": queue_id,
            }
            status = self._world.result.status[broker]
            for (from_ms, what), (to_ms, _) in zip(status, [*status[1:], (plan.settled_ms, UP)], strict=True):
                if what == UP:
                    continue
                owned = Timelines([steps])
                at_ms = from_ms + self._world.soon(10, 1000)
                while at_ms < to_ms:
                    owner = owned.one_at(0, at_ms)
                    if owner >= 0:
                        consumer = plan.consumer_names[owner]
                        self._world.row(at_ms, consumer, "pull", type="invoke", offset=0, **where)
                        ends = (1.0, "fail") if what == CLOSED else (2_500.0, "info")
                        self._world.row(at_ms + ends[0], consumer, "pull", type=ends[1], offset=0, **where)
                    at_ms += 3_000.0


def queue_of(plan: Plan, topic: int, broker: int, queue_id: int) -> int:
    """The number of a queue among all."""
    return (topic * plan.brokers + broker) * plan.queues + queue_id
