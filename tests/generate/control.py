"""The made-up cluster without its messages: registrations, routes and faults, event by event; clients in clients.py.

    faults ─► brokers ─ register each R ─► NameServers ─ routes ─► clients poll each P ─► consumers rebalance each Qr

A small simulation with a queue of events, written from RocketMQ's rules and not from the checks' windows: what it
comes to is what the checks must find to be right. It knows only the faults of plan.py, which follow one another.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

from nemesrv.chaos.faults.link_faults import BlackHole, Cut, LinkFault
from nemesrv.chaos.faults.process_faults import Pause, Stop

from .clients import Clients
from .outcome import CLOSED, HARNESS, PROBER, SILENT, UP, Control, role_of
from .plan import BEGIN_MS, Plan, PlannedFault
from .tasks import scheduled_tasks

SYSTEM_TOPICS = ("TBW102", "SELF_TEST_TOPIC")


@dataclass(slots=True)
class _HeldRegistration:
    """One that a black hole holds, with the close of its channel where the broker has given it up."""

    began_ms: float
    incarnation: int
    given_up: bool = False


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
        self.client_names = (*plan.producer_names, *plan.consumer_names)
        self.nodes = (*servers, *self.client_names, PROBER)
        ports = {name: 9876 + index for index, name in enumerate(plan.name_server_names)}
        ports |= {name: 10911 + 100 * index for index, name in enumerate(plan.broker_names)}
        self.result.addresses = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        self._incarnation = dict.fromkeys(self.nodes, 0)
        self.alive = dict.fromkeys(self.nodes, False)
        self.paused = dict.fromkeys(self.nodes, False)
        self._links: dict[tuple[str, str], LinkFault] = {}
        self._held: dict[tuple[str, str], list[_HeldRegistration]] = {}
        self.tables: dict[str, dict[str, float]] = {name: {} for name in plan.name_server_names}
        self._missed: dict[str, bool] = dict.fromkeys(plan.broker_names, False)
        self.resumes: dict[str, float] = {}
        self.result.status = [[(0.0, UP)] for _ in plan.broker_names]
        self.result.known = [[] for _ in plan.producer_names]
        self._clients = Clients(self)

    # -- the queue of events

    def at(self, time_ms: float, what: Callable[..., None], *args: Any) -> None:
        heapq.heappush(self._queue, (time_ms, next(self._order), what, (time_ms, *args)))

    def soon(self, low_ms: float = 0.5, high_ms: float = 4.0) -> float:
        return self.rng.uniform(low_ms, high_ms)

    def row(self, time_ms: float, node: str, event: str, **fields: Any) -> None:
        stamped = {"time_ms": time_ms, "node": node, "role": role_of(node), "event": event}
        self.result.rows.append({**stamped, "incarnation": self._incarnation.get(node, 0), **fields})

    def run(self) -> Control:
        """Everything up to the end of the run."""
        plan, addresses = self.plan, self.result.addresses
        timers = {"profile": str(plan.profile), "time_scale": 1, "timers": self.timers.to_json()}
        workload = {
            **{"topic": plan.topic_names[0], "queues": plan.queues, "client_starts": plan.starts},
            **{"producers": plan.producers, "consumers": plan.consumers, "broadcasting": False},
            "sends_per_s": plan.sends_per_s,
        }
        about = {"scenario": "generated", "seed": plan.seed, "workload": workload, "availability_floor": None}
        about |= {"timeline": [entry.do for entry in plan.timeline], "defect": None}
        self.row(0.0, HARNESS, "run_begin", value={**about, **timers})
        for number, node in enumerate(self.nodes):
            kind = {"kind": role_of(node)}
            self.row(1.0 + number / 100, HARNESS, "node", source=node, address=addresses.get(node), value=kind)
        for source in (*plan.broker_names, *self.client_names, PROBER):
            dials = plan.name_server_names if source in addresses else (*plan.name_server_names, *plan.broker_names)
            for target in dials:
                self.row(5.0, HARNESS, "link", source=source, target=target, injection="toxiproxy")
        for name_server in plan.name_server_names:
            self.at(10.0 + self.soon(), self._start_name_server, name_server)
        for broker in plan.broker_names:
            self.at(50.0 + self.soon(0, 500), self._start_broker, broker)
        self._clients.begin()
        for fault in plan.faults:
            self.at(fault.start_ms, self._begin, fault)
            self.at(fault.end_ms, self._end, fault)
        self._phases()
        while self._queue:
            time_ms, _, what, args = heapq.heappop(self._queue)
            if time_ms >= plan.end_ms:
                break
            if time_ms >= plan.settled_ms and what != self._clients.poll:
                continue  # clients go on asking for routes while the queues are read
            what(*args)
        for node in self.nodes:
            self.result.lives.setdefault(node, [(0.0, -1)])
        self._clients.end()
        self.result.rows += scheduled_tasks(plan, self.result)
        return self.result

    def _phases(self) -> None:
        plan = self.plan
        self.row(BEGIN_MS, HARNESS, "phase", phase="steady")
        for fault in plan.faults:
            self.row(fault.start_ms - 0.5, HARNESS, "phase", phase="fault")
            self.row(fault.end_ms - 0.5, HARNESS, "phase", phase="heal")
        last_ms = max((fault.end_ms for fault in plan.faults), default=BEGIN_MS)
        self.row(last_ms + 10, HARNESS, "phase", phase="settle")
        self.row(plan.settled_ms, HARNESS, "phase", phase="final_reads")
        self.row(plan.end_ms, HARNESS, "phase", phase="end")
        self.row(plan.end_ms + 1, HARNESS, "run_end")

    def started(self, now_ms: float, node: str) -> None:
        self.alive[node] = True
        if node in self.result.lives:
            self._incarnation[node] += 1
        self.result.lives.setdefault(node, []).append((now_ms, self._incarnation[node]))
        self.row(now_ms, node, "started", address=self.result.addresses.get(node))

    # -- NameServers and brokers

    def _start_name_server(self, now_ms: float, name: str) -> None:
        self.started(now_ms, name)

    def _start_broker(self, now_ms: float, name: str) -> None:
        self.started(now_ms, name)
        for topic in self._topics:
            value = {"read": self.plan.queues, "write": self.plan.queues, "perm": 6, "version": 1}
            self.row(now_ms + 0.3, name, "topic", topic=topic, value=value)
        self._status(now_ms, name, UP)
        self.at(now_ms + 10 + self.soon(), self._tick, name, self._incarnation[name])

    def _status(self, now_ms: float, broker: str, status: int) -> None:
        self.result.status[self.plan.broker_names.index(broker)].append((now_ms, status))

    def _tick(self, now_ms: float, broker: str, incarnation: int) -> None:
        if incarnation != self._incarnation[broker] or not self.alive[broker]:
            return
        self.at(now_ms + self.timers.R_ms, self._tick, broker, incarnation)
        if self.paused[broker]:
            self._missed[broker] = True
        else:
            self._register(now_ms, broker)

    def _register(self, now_ms: float, broker: str) -> None:
        incarnation = self._incarnation[broker]
        for name_server in self.plan.name_server_names:
            link = self._links.get((broker, name_server))
            to = {"name_server": self.result.addresses[name_server]}
            if not self.alive[name_server] or isinstance(link, Cut):
                self.row(now_ms + self.soon(), broker, "register", type="fail", duration_ms=1.0, **to)
            elif isinstance(link, BlackHole):
                held = _HeldRegistration(now_ms, incarnation)
                self._held.setdefault((broker, name_server), []).append(held)
                self.at(now_ms + self.timers.B_ms, self._give_up, broker, name_server, held)
            elif self.paused[name_server]:
                self.at(self.resumes[name_server] + self.soon(), self._accept, name_server, broker, incarnation)
            else:
                self.at(now_ms + self.soon(), self._accept, name_server, broker, incarnation)

    def _give_up(self, now_ms: float, broker: str, name_server: str, held: _HeldRegistration) -> None:
        """A registration without an answer: the broker closes the channel, and the close waits behind it."""
        if not any(held is one for one in self._held.get((broker, name_server), ())):
            return  # healed meanwhile
        held.given_up = True
        to = {"name_server": self.result.addresses[name_server]}
        self.row(now_ms, broker, "register", type="info", duration_ms=self.timers.B_ms, **to)

    def _let_out(self, now_ms: float, broker: str, name_server: str) -> None:
        """What a black hole held arrives in order: each registration, and the close behind it."""
        for held in self._held.pop((broker, name_server), ()):
            now_ms += self.soon()
            if held.given_up:
                self.at(now_ms, self._accept_closed, name_server, broker)
            else:
                self.at(now_ms, self._accept, name_server, broker, held.incarnation, now_ms - held.began_ms)

    def _accept_closed(self, now_ms: float, name_server: str, broker: str) -> None:
        """A registration whose broker waits no more, and at once the close of its channel."""
        where = {"broker_name": broker, "broker_id": 0, "address": self.result.addresses[broker]}
        self.row(now_ms, name_server, "registration", code=0, **where)
        if self.tables[name_server].setdefault(broker, now_ms) == now_ms:
            self._routes(now_ms + 0.1, name_server)
        self._drop(now_ms + 0.3, name_server, broker, "closed")

    def _accept(self, now_ms: float, name_server: str, broker: str, incarnation: int, took_ms: float = 3.0) -> None:
        if not self.alive[name_server] or not self.alive[broker] or incarnation != self._incarnation[broker]:
            return
        table = self.tables[name_server]
        new = broker not in table
        table[broker] = now_ms
        where = {"broker_name": broker, "broker_id": 0, "address": self.result.addresses[broker]}
        self.row(now_ms, name_server, "registration", code=0, **where)
        if new:
            self._routes(now_ms + 0.1, name_server)
        self.row(
            now_ms + self.soon(),
            broker,
            "register",
            type="ok",
            code=0,
            duration_ms=took_ms,
            name_server=self.result.addresses[name_server],
        )
        self.at(now_ms + self.timers.I_ms + self.soon(), self._idle, name_server, broker, now_ms)

    def _idle(self, now_ms: float, name_server: str, broker: str, since_ms: float) -> None:
        if self.alive[name_server] and self.tables[name_server].get(broker) == since_ms:
            self._drop(now_ms, name_server, broker, "idle")

    def _drop(self, now_ms: float, name_server: str, broker: str, reason: str) -> None:
        if self.tables[name_server].pop(broker, None) is None:
            return
        where = {"broker_name": broker, "broker_id": 0, "address": self.result.addresses[broker]}
        self.row(now_ms, name_server, "broker_dropped", value={"reason": reason}, **where)
        self._routes(now_ms + 0.1, name_server)

    def _routes(self, now_ms: float, name_server: str) -> None:
        held = sorted(self.tables[name_server])
        for number, topic in enumerate(self._topics):
            value = self.route(held) if held else None
            self.row(now_ms + number / 100, name_server, "route", topic=topic, value=value)

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
        self.row(
            now_ms, HARNESS, "fault", phase=phase, source=fault.source, target=fault.target, stream=stream, **about
        )

    def _begin(self, now_ms: float, fault: PlannedFault) -> None:
        self._fault_row(now_ms, fault, "start")
        node, is_broker = fault.source, fault.source.startswith("broker-")
        if fault.target is not None:
            assert isinstance(fault.kind, LinkFault)
            self._links[fault.source, fault.target] = fault.kind
            if isinstance(fault.kind, Cut):
                self.at(now_ms + self.soon(1, 20), self._drop, fault.target, fault.source, "closed")
        elif isinstance(fault.kind, Pause):
            self.paused[node], self.resumes[node] = True, fault.end_ms
            if is_broker:
                self._status(now_ms, node, SILENT)
        else:
            graceful = isinstance(fault.kind, Stop)
            self.alive[node] = False
            if graceful:
                self.row(now_ms + 20, node, "stopped")
            self.result.lives[node].append((now_ms, -1))
            if is_broker:
                self._status(now_ms, node, CLOSED)
                for name_server in self.plan.name_server_names:
                    reason = "unregistered" if graceful else "closed"
                    self.at(now_ms + self.soon(1, 20), self._drop, name_server, node, reason)
            else:
                self.tables[node].clear()
                self._clients.disconnect(now_ms, node)

    def _end(self, now_ms: float, fault: PlannedFault) -> None:
        self._fault_row(now_ms, fault, "end")
        node, is_broker = fault.source, fault.source.startswith("broker-")
        if fault.target is not None:
            del self._links[fault.source, fault.target]
            self._let_out(now_ms, fault.source, fault.target)
        elif isinstance(fault.kind, Pause):
            self.paused[node] = False
            if is_broker:
                self._status(now_ms, node, UP)
                if self._missed[node]:
                    self._missed[node] = False
                    self.at(now_ms + self.soon(), self._register, node)
        elif is_broker:
            self.at(now_ms + 3, self._start_broker, node)
        else:
            self.at(now_ms + 3, self._start_name_server, node)
