"""The made-up cluster without its messages: registrations, routes, faults, polls and rebalances, event by event.

    faults ─► brokers ─ register each R ─► NameServers ─ routes ─► clients poll each P ─► consumers rebalance each Qr

A small simulation with a queue of events, written from RocketMQ's rules and not from the checks' windows: what it
comes to is what the checks must find to be right. It knows only the faults of plan.py, which follow one another.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from ...remoting.node.profile import Profile
from ..faults.link_faults import BlackHole, Cut, LinkFault
from ..faults.process_faults import Pause, Stop
from ..history.schema import Row
from .plan import BEGIN_MS, TRAFFIC_MS, Plan, PlannedFault
from .timeline import Timelines

UP, CLOSED, SILENT = 0, 1, 2
"""What a broker is to someone who sends to it."""

HARNESS, PROBER, TOXIPROXY = "harness", "prober", "toxiproxy"
SYSTEM_TOPICS = ("TBW102", "SELF_TEST_TOPIC")
Steps = list[tuple[float, int]]


def role_of(node: str) -> str:
    if node == TOXIPROXY:  # the harness measures its lateness
        return HARNESS
    return "name_server" if node.startswith("ns-") else node.partition("-")[0]


@dataclass(slots=True)
class Control:
    """What the simulation came to. Rows have no `seq` yet and are in no order."""

    rows: list[Row] = field(default_factory=list)
    addresses: dict[str, str] = field(default_factory=dict)
    lives: dict[str, Steps] = field(default_factory=dict)
    """Node → (from_ms, incarnation), -1 while it has no running process."""
    status: list[Steps] = field(default_factory=list)
    """Broker → UP, CLOSED or SILENT."""
    known: list[Steps] = field(default_factory=list)
    """Producer → the brokers that it sends to, as bits."""
    owners: list[Steps] = field(default_factory=list)
    """Queue (topic, broker, queue_id) → the consumer that pulls from it; -1 is nobody."""


@dataclass(slots=True)
class _HeldRegistration:
    """One that a black hole holds, with the close of its channel where the broker has given it up."""

    began_ms: float
    incarnation: int
    given_up: bool = False


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


class Simulation:
    """Runs a plan once: `Simulation(plan).run()`."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.timers = plan, plan.timers
        self.rng = random.Random(f"{plan.seed} control")
        self.never_leave: frozenset[str] = frozenset()
        """Clients that keep a NameServer whatever happens: a planted defect."""
        self.result = Control()
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = count()
        self._topics = (*plan.topic_names, *SYSTEM_TOPICS)
        servers = (*plan.name_server_names, *plan.broker_names)
        self._clients_names = (*plan.producer_names, *plan.consumer_names)
        self.nodes = (*servers, *self._clients_names, PROBER)
        ports = {name: 9876 + index for index, name in enumerate(plan.name_server_names)}
        ports |= {name: 10911 + 100 * index for index, name in enumerate(plan.broker_names)}
        self.result.addresses = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        self._incarnation = dict.fromkeys(self.nodes, 0)
        self._alive = dict.fromkeys(self.nodes, False)
        self._paused = dict.fromkeys(self.nodes, False)
        self._links: dict[tuple[str, str], LinkFault] = {}
        self._held: dict[tuple[str, str], list[_HeldRegistration]] = {}
        self._tables: dict[str, dict[str, float]] = {name: {} for name in plan.name_server_names}
        self._missed: dict[str, bool] = dict.fromkeys(plan.broker_names, False)
        self._resumes: dict[str, float] = {}
        self._clients: dict[str, _Client] = {}
        self.result.status = [[(0.0, UP)] for _ in plan.broker_names]
        self.result.known = [[] for _ in plan.producer_names]
        self._owned: list[list[tuple[float, int, bool]]] = [[] for _ in range(plan.topics * plan.brokers * plan.queues)]

    # -- the queue of events

    def _at(self, time_ms: float, what: Callable[..., None], *args: Any) -> None:
        heapq.heappush(self._queue, (time_ms, next(self._order), what, (time_ms, *args)))

    def _soon(self, low_ms: float = 0.5, high_ms: float = 4.0) -> float:
        return self.rng.uniform(low_ms, high_ms)

    def _row(self, time_ms: float, node: str, event: str, **fields: Any) -> None:
        stamped = {"time_ms": time_ms, "node": node, "role": role_of(node), "event": event}
        self.result.rows.append({**stamped, "incarnation": self._incarnation.get(node, 0), **fields})

    def run(self) -> Control:
        """Everything up to the end of the run."""
        plan, addresses = self.plan, self.result.addresses
        timers = {"profile": str(plan.profile), "time_scale": 1, "timers": self.timers.to_json()}
        workload = {
            **{"topic": plan.topic_names[0], "queues": plan.queues, "client_starts": plan.starts},
            **{"producers": plan.producers, "consumers": plan.consumers, "broadcasting": False},
            "sends_per_s": plan.messages / max(1, plan.producers) / (plan.settled_ms - TRAFFIC_MS) * 1000,
        }
        about = {"scenario": "generated", "seed": plan.seed, "workload": workload, "availability_floor": None}
        about |= {"timeline": [entry.do for entry in plan.timeline], "defect": None}
        self._row(0.0, HARNESS, "run_begin", value={**about, **timers})
        for number, node in enumerate(self.nodes):
            kind = {"kind": role_of(node)}
            self._row(1.0 + number / 100, HARNESS, "node", source=node, address=addresses.get(node), value=kind)
        for source in (*plan.broker_names, *self._clients_names, PROBER):
            dials = plan.name_server_names if source in addresses else (*plan.name_server_names, *plan.broker_names)
            for target in dials:
                self._row(5.0, HARNESS, "link", source=source, target=target, injection="toxiproxy")
        for name_server in plan.name_server_names:
            self._at(10.0 + self._soon(), self._start_name_server, name_server)
        for broker in plan.broker_names:
            self._at(50.0 + self._soon(0, 500), self._start_broker, broker)
        for client in self._clients_names:
            self._at(1_000.0 + self._soon(0, 500), self._start_client, client)
        self._at(1_000.0, self._start_prober)
        for fault in plan.faults:
            self._at(fault.start_ms, self._begin, fault)
            self._at(fault.end_ms, self._end, fault)
        self._phases()
        while self._queue:
            time_ms, _, what, args = heapq.heappop(self._queue)
            if time_ms >= plan.settled_ms:
                break
            what(*args)
        for node in self.nodes:
            self.result.lives.setdefault(node, [(0.0, -1)])
        self._own_queues()
        self._pull_from_the_dead()
        return self.result

    def _phases(self) -> None:
        plan = self.plan
        self._row(BEGIN_MS, HARNESS, "phase", phase="steady")
        for fault in plan.faults:
            self._row(fault.start_ms - 0.5, HARNESS, "phase", phase="fault")
            self._row(fault.end_ms - 0.5, HARNESS, "phase", phase="heal")
        last_ms = max((fault.end_ms for fault in plan.faults), default=BEGIN_MS)
        self._row(last_ms + 10, HARNESS, "phase", phase="settle")
        self._row(plan.settled_ms, HARNESS, "phase", phase="final_reads")
        self._row(plan.end_ms, HARNESS, "phase", phase="end")
        self._row(plan.end_ms + 1, HARNESS, "run_end")

    def _started(self, now_ms: float, node: str) -> None:
        self._alive[node] = True
        if node in self.result.lives:
            self._incarnation[node] += 1
        self.result.lives.setdefault(node, []).append((now_ms, self._incarnation[node]))
        self._row(now_ms, node, "started", address=self.result.addresses.get(node))

    # -- NameServers and brokers

    def _start_name_server(self, now_ms: float, name: str) -> None:
        self._started(now_ms, name)

    def _start_broker(self, now_ms: float, name: str) -> None:
        self._started(now_ms, name)
        for topic in self._topics:
            self._row(now_ms + 0.3, name, "topic", topic=topic, value={"read": 4, "write": 4, "perm": 6})
        self._status(now_ms, name, UP)
        self._at(now_ms + 10 + self._soon(), self._tick, name, self._incarnation[name])

    def _status(self, now_ms: float, broker: str, status: int) -> None:
        self.result.status[self.plan.broker_names.index(broker)].append((now_ms, status))

    def _tick(self, now_ms: float, broker: str, incarnation: int) -> None:
        if incarnation != self._incarnation[broker] or not self._alive[broker]:
            return
        self._at(now_ms + self.timers.R_ms, self._tick, broker, incarnation)
        if self._paused[broker]:
            self._missed[broker] = True
        else:
            self._register(now_ms, broker)

    def _register(self, now_ms: float, broker: str) -> None:
        incarnation = self._incarnation[broker]
        for name_server in self.plan.name_server_names:
            link = self._links.get((broker, name_server))
            to = {"name_server": self.result.addresses[name_server]}
            if not self._alive[name_server] or isinstance(link, Cut):
                self._row(now_ms + self._soon(), broker, "register", type="fail", duration_ms=1.0, **to)
            elif isinstance(link, BlackHole):
                held = _HeldRegistration(now_ms, incarnation)
                self._held.setdefault((broker, name_server), []).append(held)
                self._at(now_ms + self.timers.B_ms, self._give_up, broker, name_server, held)
            elif self._paused[name_server]:
                self._at(self._resumes[name_server] + self._soon(), self._accept, name_server, broker, incarnation)
            else:
                self._at(now_ms + self._soon(), self._accept, name_server, broker, incarnation)

    def _give_up(self, now_ms: float, broker: str, name_server: str, held: _HeldRegistration) -> None:
        """A registration without an answer: the broker closes the channel, and the close waits behind it."""
        if not any(held is one for one in self._held.get((broker, name_server), ())):
            return  # healed meanwhile
        held.given_up = True
        to = {"name_server": self.result.addresses[name_server]}
        self._row(now_ms, broker, "register", type="info", duration_ms=self.timers.B_ms, **to)

    def _let_out(self, now_ms: float, broker: str, name_server: str) -> None:
        """What a black hole held arrives in order: each registration, and the close behind it."""
        for held in self._held.pop((broker, name_server), ()):
            now_ms += self._soon()
            if held.given_up:
                self._at(now_ms, self._accept_closed, name_server, broker)
            else:
                self._at(now_ms, self._accept, name_server, broker, held.incarnation, now_ms - held.began_ms)

    def _accept_closed(self, now_ms: float, name_server: str, broker: str) -> None:
        """A registration whose broker waits no more, and at once the close of its channel."""
        where = {"broker_name": broker, "broker_id": 0, "address": self.result.addresses[broker]}
        self._row(now_ms, name_server, "registration", code=0, **where)
        if self._tables[name_server].setdefault(broker, now_ms) == now_ms:
            self._routes(now_ms + 0.1, name_server)
        self._drop(now_ms + 0.3, name_server, broker, "closed")

    def _accept(self, now_ms: float, name_server: str, broker: str, incarnation: int, took_ms: float = 3.0) -> None:
        if not self._alive[name_server] or not self._alive[broker] or incarnation != self._incarnation[broker]:
            return
        table = self._tables[name_server]
        new = broker not in table
        table[broker] = now_ms
        where = {"broker_name": broker, "broker_id": 0, "address": self.result.addresses[broker]}
        self._row(now_ms, name_server, "registration", code=0, **where)
        if new:
            self._routes(now_ms + 0.1, name_server)
        self._row(
            now_ms + self._soon(),
            broker,
            "register",
            type="ok",
            code=0,
            duration_ms=took_ms,
            name_server=self.result.addresses[name_server],
        )
        self._at(now_ms + self.timers.I_ms + self._soon(), self._idle, name_server, broker, now_ms)

    def _idle(self, now_ms: float, name_server: str, broker: str, since_ms: float) -> None:
        if self._alive[name_server] and self._tables[name_server].get(broker) == since_ms:
            self._drop(now_ms, name_server, broker, "idle")

    def _drop(self, now_ms: float, name_server: str, broker: str, reason: str) -> None:
        if self._tables[name_server].pop(broker, None) is None:
            return
        where = {"broker_name": broker, "broker_id": 0, "address": self.result.addresses[broker]}
        self._row(now_ms, name_server, "broker_dropped", value={"reason": reason}, **where)
        self._routes(now_ms + 0.1, name_server)

    def _routes(self, now_ms: float, name_server: str) -> None:
        held = sorted(self._tables[name_server])
        for number, topic in enumerate(self._topics):
            value = self.route(held) if held else None
            self._row(now_ms + number / 100, name_server, "route", topic=topic, value=value)

    def route(self, brokers: Iterable[str], queues: int | None = None) -> dict[str, Any]:
        """A topic's route with these brokers, as NameServers record it."""
        names, queues = sorted(brokers), queues or self.plan.queues
        return {
            "brokers": {name: {"0": self.result.addresses[name]} for name in names},
            "queues": {name: [queues, queues, 6, 0] for name in names},
        }

    # -- faults

    def _fault_row(self, now_ms: float, fault: PlannedFault, phase: str) -> None:
        about = {"fault_id": fault.fault_id, "fault": fault.kind.do, "injection": fault.kind.injection}
        stream = "both" if fault.target else None
        self._row(
            now_ms, HARNESS, "fault", phase=phase, source=fault.source, target=fault.target, stream=stream, **about
        )

    def _begin(self, now_ms: float, fault: PlannedFault) -> None:
        self._fault_row(now_ms, fault, "start")
        node, is_broker = fault.source, fault.source.startswith("broker-")
        if fault.target is not None:
            assert isinstance(fault.kind, LinkFault)
            self._links[fault.source, fault.target] = fault.kind
            if isinstance(fault.kind, Cut):
                self._at(now_ms + self._soon(1, 20), self._drop, fault.target, fault.source, "closed")
        elif isinstance(fault.kind, Pause):
            self._paused[node], self._resumes[node] = True, fault.end_ms
            if is_broker:
                self._status(now_ms, node, SILENT)
        else:
            graceful = isinstance(fault.kind, Stop)
            self._alive[node] = False
            if graceful:
                self._row(now_ms + 20, node, "stopped")
            self.result.lives[node].append((now_ms, -1))
            if is_broker:
                self._status(now_ms, node, CLOSED)
                for name_server in self.plan.name_server_names:
                    reason = "unregistered" if graceful else "closed"
                    self._at(now_ms + self._soon(1, 20), self._drop, name_server, node, reason)
            else:
                self._tables[node].clear()
                self._disconnect(now_ms, node)

    def _end(self, now_ms: float, fault: PlannedFault) -> None:
        self._fault_row(now_ms, fault, "end")
        node, is_broker = fault.source, fault.source.startswith("broker-")
        if fault.target is not None:
            del self._links[fault.source, fault.target]
            self._let_out(now_ms, fault.source, fault.target)
        elif isinstance(fault.kind, Pause):
            self._paused[node] = False
            if is_broker:
                self._status(now_ms, node, UP)
                if self._missed[node]:
                    self._missed[node] = False
                    self._at(now_ms + self._soon(), self._register, node)
        elif is_broker:
            self._at(now_ms + 3, self._start_broker, node)
        else:
            self._at(now_ms + 3, self._start_name_server, node)

    # -- clients

    def _start_prober(self, now_ms: float) -> None:
        self._started(now_ms, PROBER)
        name_servers = [self.result.addresses[name] for name in self.plan.name_server_names]
        faults = [f for f in self.plan.faults if f.source.startswith("ns-")]
        for number in range(self.plan.starts):
            at_ms = BEGIN_MS + 100 + number * 30_000.0 / max(self.plan.starts, 1)
            assert all(at_ms < fault.start_ms for fault in faults), "the prober starts before the first fault"
            listed = self.rng.sample(name_servers, len(name_servers))
            index = self.rng.randrange(len(listed))
            one = {"op_id": f"prober-start-{number}"}
            self._row(at_ms, PROBER, "name_server_list", value=listed, **one)
            self._chosen(at_ms + 0.2, PROBER, listed, index, None, "first", **one)
            tried = [(listed[index], "answered")]
            self._called(at_ms + 2.0, PROBER, tried, self._topics[0], "ok", 0, 1.8, **one)

    def _chosen(
        self, now_ms: float, node: str, listed: list[str], index: int, old: str | None, reason: str, **fields: Any
    ) -> None:
        value = {"index": index, "old": old, "reason": reason}
        self._row(now_ms, node, "name_server_chosen", name_server=listed[index], value=value, **fields)

    def _called(
        self,
        now_ms: float,
        node: str,
        tried: list[tuple[str, str]],
        topic: str,
        type_: str,
        code: int | None,
        duration_ms: float,
        **fields: Any,
    ) -> None:
        how = {"f": "route", "type": type_, "code": code, "duration_ms": duration_ms, "name_server": tried[-1][0]}
        tries = [{"name_server": address, "outcome": outcome} for address, outcome in tried]
        self._row(now_ms, node, "name_server_call", topic=topic, value={"tried": tries}, **how, **fields)

    def _start_client(self, now_ms: float, name: str) -> None:
        self._started(now_ms, name)
        addresses = [self.result.addresses[server] for server in self.plan.name_server_names]
        listed = self.rng.sample(addresses, len(addresses))
        index = self.rng.randrange(len(listed))
        if name in self.never_leave:
            index = listed.index(addresses[0])
        client = self._clients[name] = _Client(name, listed, index)
        self._row(now_ms + 1, name, "name_server_list", value=listed)
        self._chosen(now_ms + 2, name, listed, client.index, None, "first")
        self._channel(now_ms + 3, name, "open", listed[client.index], "connected")
        self._at(now_ms + 10, self._poll, client)
        if name in self.plan.consumer_names:
            self._at(now_ms + 100, self._rebalance, client)

    def _channel(self, now_ms: float, name: str, f: str, address: str, reason: str) -> None:
        self._row(now_ms, name, "channel", f=f, address=address, value={"reason": reason})

    def _disconnect(self, now_ms: float, name_server: str) -> None:
        """The clients of a NameServer that died see their connections close."""
        address = self.result.addresses[name_server]
        for client in self._clients.values():
            if client.connected and client.listed[client.index] == address:
                client.connected = False
                self._channel(now_ms + self._soon(1, 10), client.name, "close", address, "closed")

    def _poll(self, now_ms: float, client: _Client) -> None:
        self._at(now_ms + self.timers.P_ms, self._poll, client)
        servers = {self.result.addresses[name]: name for name in self.plan.name_server_names}
        at_ms, first = now_ms, self._topics[0]
        tried: list[tuple[str, str]] = []
        for _ in client.listed:
            if client.connected:
                break
            old = client.listed[client.index]
            if client.name not in self.never_leave:
                client.index = (client.index + 1) % len(client.listed)
                reason = "connect_failed" if client.refused else "not_active"
                self._chosen(at_ms + 0.1, client.name, client.listed, client.index, old, reason)
            address = client.listed[client.index]
            client.connected = self._alive[servers[address]]
            client.refused = not client.connected
            how = ("open", "connected") if client.connected else ("connect_failed", "refused")
            self._channel(at_ms + 0.6, client.name, how[0], address, how[1])
            at_ms += 1.0
            if not client.connected:
                tried.append((address, "connect_failed"))
                if self.plan.profile is Profile.V5_X:
                    break  # one candidate a call
        if not client.connected:
            self._called(at_ms + 0.9, client.name, tried, first, "fail", None, at_ms + 0.9 - now_ms)
            return
        address = client.listed[client.index]
        began_ms = now_ms
        name_server = servers[address]
        if self._paused[name_server]:
            if self._resumes[name_server] > began_ms + self.timers.A_ms - 100:
                late_ms = began_ms + self.timers.A_ms
                tried.append((address, "no_answer"))
                self._called(late_ms, client.name, tried, first, "info", None, self.timers.A_ms)
                self._channel(late_ms + 0.5, client.name, "close", address, "timeout")
                client.connected = False
                return
            at_ms = self._resumes[name_server]
        held = frozenset(self._tables[name_server])
        for topic in self.plan.topic_names:
            at_ms += 2.0
            type_, code = ("ok", 0) if held else ("fail", 17)
            tried.append((address, "answered"))
            self._called(at_ms, client.name, tried, topic, type_, code, at_ms - began_ms)
            began_ms, tried = at_ms, []
            if held and held != client.known:
                self._row(at_ms + 0.1, client.name, "route_changed", topic=topic, value=self.route(held))
        if held and held != client.known:
            client.known = held
            if client.name in self.plan.producer_names:
                bits = sum(1 << index for index, name in enumerate(self.plan.broker_names) if name in held)
                self.result.known[self.plan.producer_names.index(client.name)].append((at_ms, bits))

    def _rebalance(self, now_ms: float, client: _Client) -> None:
        """AllocateMessageQueueAveragely over the queues that this consumer knows."""
        self._at(now_ms + self.timers.Qr_ms, self._rebalance, client)
        plan = self.plan
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
            self._row(at_ms, client.name, "assigned", topic=topic, value=[list(queue) for queue in assigned])
            for broker, queue in sorted(before ^ client.assigned):
                owned = self._owned[self.queue_of(number, plan.broker_names.index(broker), queue)]
                owned.append((at_ms, mine, (broker, queue) in client.assigned))

    def queue_of(self, topic: int, broker: int, queue_id: int) -> int:
        """The number of a queue among all."""
        return (topic * self.plan.brokers + broker) * self.plan.queues + queue_id

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
            self.result.owners.append(steps)

    def _pull_from_the_dead(self) -> None:
        """Pulls of owners whose broker does not answer, once in three seconds."""
        plan = self.plan
        for number, steps in enumerate(self.result.owners):
            topic, rest = divmod(number, plan.brokers * plan.queues)
            broker, queue_id = divmod(rest, plan.queues)
            name = plan.broker_names[broker]
            where = {
                "topic": plan.topic_names[topic],
                "broker_name": name,
                "address": self.result.addresses[name],
                "queue_id": queue_id,
            }
            status = self.result.status[broker]
            for (from_ms, what), (to_ms, _) in zip(status, [*status[1:], (plan.settled_ms, UP)], strict=True):
                if what == UP:
                    continue
                owned = Timelines([steps])
                at_ms = from_ms + self._soon(10, 1000)
                while at_ms < to_ms:
                    owner = owned.one_at(0, at_ms)
                    if owner >= 0:
                        consumer = plan.consumer_names[owner]
                        self._row(at_ms, consumer, "pull", type="invoke", offset=0, **where)
                        ends = (1.0, "fail") if what == CLOSED else (2_500.0, "info")
                        self._row(at_ms + ends[0], consumer, "pull", type=ends[1], offset=0, **where)
                    at_ms += 3_000.0
