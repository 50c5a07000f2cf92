"""The window model: what windows.py bounds, as distributions; timers are the scenario's, phases are drawn at random.

    broker      its next registration (p, so that the last one is φ = R - p old) and its NameServers' next scans
    NameServer  drops it when the channel is idle for I, or at the first scan at which it is older than E
    client      sits on one of its NameServers, each as likely; its next poll; its thread, held up by dead brokers (J)
    producer    stands somewhere in its round of queues
    consumer    its next rebalance

One draw of all phases gives one value of each quantity, as one run does. A phase that the scenario sets is not drawn.
What the table has no figure for raises NoFigure, and is told by virtual runs only.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from ...chaos.experiment.nodes import timers_and_differing
from ...chaos.faults.losses import Loss
from ...chaos.oracle.timers import Timers
from ...chaos.oracle.windows import calls_to_leave
from ...chaos.scenarios.model import Scenario
from ...chaos.settings.catalogue import settings_for
from ...chaos.topology import NodeKind, broker_id
from ...clients.producer.fault_strategy import MQFaultStrategy
from .distribution import NEVER
from .quantities import BACK, DROPPED, FAILED_SENDS, LAST_FAILED, LEFT, RELEASED, ROUTE, Quantity, Sample
from .sends import Attempt, sends
from .subject import Subject
from .thread import Job, first_run_ms

DRAWS = 1000
QUICK_MS = 2.0
"""What a call takes where nothing is wrong: a round trip of a local network, a thousandth of any timer."""
_FIGURES = (Loss.CRASH, Loss.CLOSED, Loss.GRACEFUL, Loss.SILENT, Loss.BACKWARD_PACKETS, Loss.HARMLESS, Loss.SLOW)


class NoFigure(Exception):
    """The table has no distribution for this; the text says of what."""


class WindowModel:
    """One fault of one scenario. `draw` is one value of each quantity."""

    def __init__(self, scenario: Scenario, subject: Subject) -> None:
        self._scenario, self._subject = scenario, subject
        self._timers, self._differing = timers_and_differing(scenario)
        self._settings = scenario.settings()
        topology = scenario.topology()
        self._servers = topology.of(NodeKind.NAME_SERVER)
        self._masters = topology.of(NodeKind.BROKER)
        self._producers, self._consumers = topology.of(NodeKind.PRODUCER), topology.of(NodeKind.CONSUMER)
        self._kinds = topology.kinds
        self._of = cache(self._timers_of)  # the same in every draw
        self._setting = cache(self._said)
        self._attempt = cache(self._meets)
        self._held = cache(self._shares)
        self._round = cache(self._round_of)
        self._refuse()

    def sample(self, draws: int = DRAWS, seed: int = 1) -> list[Sample]:
        """So many draws."""
        rng = random.Random(f"{seed}/predict")
        return [self.draw(rng) for _ in range(draws)]

    # -- what there is no figure for

    def _refuse(self) -> None:
        scenario, subject = self._scenario, self._subject
        own = [name for name, node in scenario.nodes.items() if node.name_servers or node.client_profile or node.topic]
        said: Sequence[tuple[bool, str]] = (
            (subject.wiped is None and subject.loss not in _FIGURES, f"{subject.do} ({subject.loss})"),
            (bool(scenario.implementations()), "nodes that are not ours"),
            (bool(own), f"lists, topics or rules of their own ({', '.join(own)})"),
            (scenario.cluster.name_server_list is not None, "lists of NameServers by HTTP"),
            (any(own.joins_at_s is not None for own in scenario.nodes.values()), "nodes that join"),
            (scenario.workload.broadcasting or scenario.workload.ordered, "broadcasting and ordered workloads"),
            (bool(subject.silent) and bool(subject.lost_at), "NameServers and brokers that are lost together"),
            (self._is_slow, "a round trip that is longer than A or B"),
            (bool(set(subject.silent) >= set(self._servers)), "every NameServer lost at once"),
            (any(self._setting(name, "startDetectorEnable") for name in self._producers), "startDetectorEnable"),
            (self._timers.F_ms is not None, "forceRegister: false"),
            (self._timers.W_ms is not None and bool(subject.silent), "needWaitForService"),
        )
        for wrong, what in said:
            if wrong:
                raise NoFigure(what)

    @property
    def _is_slow(self) -> bool:
        delay = self._subject.delay
        return delay is not None and delay.round_trip_max_ms >= min(self._timers.A_ms, self._timers.B_ms)

    @property
    def _clients(self) -> tuple[str, ...]:
        return (*self._producers, *self._consumers)

    def _said(self, node: str, name: str) -> object:
        kind = self._kinds[node]
        known = settings_for(kind)
        if name not in known:
            return None
        return self._settings.get(node, {}).get(name, known[name].default(self._scenario.profile))

    def _timers_of(self, node: str) -> Timers:
        return self._timers.with_(**self._differing[node]) if node in self._differing else self._timers

    # -- one draw

    def draw(self, rng: random.Random) -> Sample:
        found, subject = Sample(), self._subject
        drops = self._drops(found, rng)
        sat = {client: rng.choice(self._servers) for client in self._clients}
        polls = {client: self._phase(client, self._of(client).P_ms, rng) for client in self._clients}
        gone: dict[str, float] = {}
        for client in self._clients:
            for broker in subject.brokers:
                if not subject.lost_at.get(broker) and subject.wiped is None:
                    continue
                at_ms = self._route(client, drops[broker].get(sat[client], NEVER), polls[client], rng)
                kind = "producers" if client in self._producers else "consumers"
                found.add(Quantity(kind, ROUTE, broker), at_ms)
                if subject.wiped is None and broker_id(broker) == 0:
                    gone[client] = max(at_ms, gone.get(client, 0.0))
        for server, clients in subject.silent.items():
            self._left(found, server, [c for c in self._clients if c in clients and sat[c] == server], polls)
            self._refilled(found, server, rng)
        self._released(found, gone, rng)
        self._sends(found, gone, rng)
        return found

    def _phase(self, node: str, period_ms: float, rng: random.Random) -> float:
        """How long after the fault's start the node's timer fires next."""
        if (said_s := self._scenario.phases.get(node)) is not None:
            return (1000 * said_s - self._subject.start_ms) % period_ms
        return rng.random() * period_ms

    def _within(self, at_ms: float) -> float:
        return at_ms if at_ms < self._subject.lasts_ms else NEVER

    def _drops(self, found: Sample, rng: random.Random) -> Mapping[str, Mapping[str, float]]:
        """By broker and NameServer: when it is dropped; what was wiped is gone at once."""
        subject = self._subject
        if subject.wiped is not None:
            broker, servers = subject.wiped
            return {broker: dict.fromkeys(servers, 0.0)}
        drops: dict[str, dict[str, float]] = {}
        for broker in subject.brokers:
            t = self._of(broker)
            next_ms = self._phase(broker, t.R_ms, rng)
            beat_ms = next_ms if t.h_ms is None else rng.random() * t.h_ms
            drops[broker] = {}
            for server in sorted(subject.lost_at.get(broker, ())):
                s = self._of(server)
                age_ms = (t.R_ms if t.h_ms is None else t.h_ms) - beat_ms
                scan_ms = self._phase(server, s.S_ms, rng)
                at_ms = self._within(self._drop(t.E_ms, s, age_ms, next_ms, scan_ms))
                drops[broker][server] = at_ms
                found.add(Quantity(server, DROPPED, broker), at_ms)
                if at_ms < NEVER and (back_ms := self._back(t, next_ms)) is not None:
                    found.add(Quantity(server, BACK, broker), back_ms)
        return drops

    def _drop(self, expires_ms: float, server: Timers, age_ms: float, next_ms: float, scan_ms: float) -> float:
        """When a NameServer drops a broker whose last sign of life is `age_ms` old, and that registers in `next_ms`."""
        loss = self._subject.loss
        if loss.closes:
            return 0.0
        if loss in (Loss.HARMLESS, Loss.SLOW):
            return NEVER
        last_ms = next_ms if loss is Loss.BACKWARD_PACKETS else -age_ms
        expired_ms = last_ms + expires_ms
        at_scan_ms = scan_ms + max(0, math.ceil((expired_ms - scan_ms) / server.S_ms)) * server.S_ms
        return min(last_ms + server.I_ms, at_scan_ms)

    def _back(self, broker: Timers, next_ms: float) -> float | None:
        """From the end of the fault until the broker has registered again.

        None after bytes that were held: registrations arrive at once then, with their channels' closes behind them, and
        which comes last is no timer's.
        """
        lasts_ms = self._subject.lasts_ms
        if self._subject.loss in (Loss.CRASH, Loss.GRACEFUL):
            return 0.0  # one that is started registers at once
        if self._subject.do == "pause":  # its timer is overdue
            return 0.0 if next_ms <= lasts_ms else next_ms - lasts_ms
        if not self._subject.packets:
            return None
        return (next_ms - lasts_ms) % broker.R_ms

    # -- clients

    def _route(self, client: str, from_ms: float, poll_ms: float, rng: random.Random) -> float:
        """When the client's route is without what its NameServer has dropped by `from_ms`."""
        subject, t = self._subject, self._of(client)
        if from_ms == NEVER:
            return NEVER
        masters = {broker for broker in subject.brokers if broker_id(broker) == 0}
        if subject.wiped is None and masters >= set(self._masters):
            return NEVER  # the last broker of a topic: code 17, the client keeps its route
        if subject.loss.closes or subject.wiped is not None or not subject.lost_to:
            waits = max(0, math.ceil((from_ms - poll_ms) / t.P_ms))
            return self._within(poll_ms + waits * t.P_ms)
        return self._within(self._held_up(client, from_ms, poll_ms, t))

    def _held_up(self, client: str, from_ms: float, poll_ms: float, t: Timers) -> float:
        """The same where brokers that do not answer hold up the thread: heartbeats, A each; commits, C each queue whose
        dial nobody answers, from when a heartbeat has closed the channel."""
        lost = [broker for broker, clients in self._subject.lost_to.items() if client in clients]
        consumer = client in self._consumers
        asked = [broker for broker in lost if consumer or broker_id(broker) == 0]
        queues = self._committed(client, lost) if consumer and self._subject.packets else 0
        closed_ms = NEVER

        def takes_ms(job: str, at_ms: float) -> float:
            nonlocal closed_ms
            if job == "heartbeat":
                took_ms = len(asked) * (
                    t.A_ms if closed_ms == NEVER or not self._subject.packets else min(t.A_ms, t.C_ms)
                )
                closed_ms = min(closed_ms, at_ms + took_ms)
                return took_ms
            return queues * t.C_ms if job == "persist" and at_ms >= closed_ms else 0.0

        # all began with the client: the poll 10 ms, the heartbeat 1 s, the first commit 10 s after its start
        commits_ms = (
            float(str(self._setting(client, "persistConsumerOffsetInterval") or 5_000)) if consumer else 5_000.0
        )
        jobs = [
            Job("poll", poll_ms, t.P_ms),
            Job("heartbeat", (poll_ms + 990.0) % t.H_ms, t.H_ms),
            Job("persist", (poll_ms - 10.0) % commits_ms, commits_ms),
        ]
        return first_run_ms(jobs, "poll", from_ms, self._subject.lasts_ms, takes_ms)

    def _committed(self, consumer: str, lost: Sequence[str]) -> int:
        """How many queues of lost masters the consumer commits, its retry topic's among them."""
        held = self._held(consumer)
        retry = self._share(consumer, [(broker, 0) for broker in self._masters])
        return sum(broker in lost for broker, _ in (*held, *retry))

    def _shares(self, consumer: str) -> list[tuple[str, int]]:
        """The queues that the consumer has while all is well."""
        queues = self._scenario.topics()[self._scenario.workload.topic]
        return self._share(consumer, [(broker, number) for broker in self._masters for number in range(queues)])

    def _share(self, consumer: str, queues: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """AllocateMessageQueueAveragely."""
        ids = sorted(self._consumers)
        index, many, whole = ids.index(consumer), len(ids), len(queues)
        rest = whole % many
        size = 1 if whole <= many else whole // many + (1 if rest and index < rest else 0)
        start = index * size if rest and index < rest else index * size + rest
        return list(queues[start : start + min(size, whole - start)]) if start < whole else []

    def _left(self, found: Sample, server: str, sitting: Sequence[str], polls: Mapping[str, float]) -> None:
        """When those who sat on a lost NameServer have chosen another: at the poll, or at the one after that failed."""
        for client in sitting:
            t = self._of(client)
            failed = 0 if self._subject.loss.closes else calls_to_leave(self._scenario.profile, self._subject.loss)
            left_ms = polls[client] + failed * t.P_ms
            if not self._subject.loss.closes and not t.Z:
                left_ms = NEVER
            if len(self._servers) < 2:
                left_ms = NEVER
            kind = "producers" if client in self._producers else "consumers"
            found.add(Quantity(kind, LEFT, server), left_ms)

    def _refilled(self, found: Sample, server: str, rng: random.Random) -> None:
        if self._subject.do == "kill":
            for broker in self._masters:
                t = self._of(broker)
                found.add(
                    Quantity(server, BACK, ""), (self._phase(broker, t.R_ms, rng) - self._subject.lasts_ms) % t.R_ms
                )

    def _released(self, found: Sample, gone: Mapping[str, float], rng: random.Random) -> None:
        """At the first rebalance that sees the new route; each queue's last commit is tried before."""
        for broker in self._subject.brokers if self._subject.wiped is None else ():
            if broker_id(broker) or not self._subject.lost_at.get(broker):
                continue
            for consumer in self._consumers:
                held = [queue for queue in self._held(consumer) if queue[0] == broker]
                if not held:
                    continue
                t = self._of(consumer)
                dials_ms = t.C_ms * len(held) if self._subject.packets else 0.0
                at_ms = gone.get(consumer, NEVER) + rng.random() * t.Qr_ms + dials_ms
                found.add(Quantity("consumers", RELEASED, broker), self._within(at_ms))

    # -- sends

    def _sends(self, found: Sample, gone: Mapping[str, float], rng: random.Random) -> None:
        subject, lasts_ms = self._subject, self._subject.lasts_ms
        period_ms = 1000 / self._scenario.workload.sends_per_s
        last_ms = 0.0
        for producer in self._producers:
            lost = {b for b, clients in subject.lost_to.items() if producer in clients and b in self._masters}
            until_ms = min(lasts_ms, gone.get(producer, NEVER)) if lost <= set(subject.lost_at) else lasts_ms
            round_ = self._round(producer, frozenset(lost))
            first = rng.randrange(len(round_))
            begin_ms = rng.random() * period_ms
            early = sends(
                round_,
                from_ms=begin_ms,
                to_ms=until_ms,
                period_ms=period_ms,
                first=first,
                released_ms=self._released_ms,
            )
            rest = int(max(0.0, lasts_ms - max(until_ms, begin_ms)) / max(period_ms, QUICK_MS))
            found.add(Quantity("producers", LAST_FAILED, ""), early.last_failed_ms)
            last_ms = max(last_ms, early.last_failed_ms)
            found.share(FAILED_SENDS, early.failed, early.begun + rest)
        if self._producers:
            found.add(Quantity("all producers", LAST_FAILED, ""), last_ms)

    def _round_of(self, producer: str, lost: frozenset[str]) -> list[Attempt]:
        """What a producer meets at one queue after the other."""
        queues, meets = self._scenario.topics()[self._scenario.workload.topic], self._attempt(producer)
        retries = int(str(self._setting(producer, "retryTimesWhenSendFailed") or 0)) > 0 and len(self._masters) > 1
        retried = retries and (self._subject.delay is None or meets.fails)
        return [
            replace(meets, skips=queues - number if retried else 0) if broker in lost else Attempt(takes_ms=QUICK_MS)
            for broker in self._masters
            for number in range(queues)
        ]

    @property
    def _released_ms(self) -> float:
        """When what waits for an answer gets one after all: a process that goes on, bytes that were held."""
        return self._subject.lasts_ms if not self._subject.loss.closes else NEVER

    def _meets(self, producer: str) -> Attempt:
        """What a send meets at a queue of a broker that is lost to its producer."""
        met = self._met(producer)
        if not self._setting(producer, "sendLatencyFaultEnable"):
            return met
        failed = self._subject.delay is None or met.fails
        tables = (self._setting(producer, name) for name in ("latencyMax", "notAvailableDuration"))
        table = tuple(zip(*(of if isinstance(of, tuple) else () for of in tables), strict=True))
        strategy = MQFaultStrategy(self._scenario.profile, random.Random(0), table=table)
        return replace(met, isolates_ms=float(strategy.isolation_ms(int(met.takes_ms), failed=failed)))

    def _met(self, producer: str) -> Attempt:
        subject, t = self._subject, self._of(producer)
        retries = int(str(self._setting(producer, "retryTimesWhenSendFailed") or 0))
        others = len(self._masters) > 1
        if subject.delay is not None:
            round_trip_ms = (subject.delay.round_trip_min_ms + subject.delay.round_trip_max_ms) / 2
            return Attempt(takes_ms=min(t.T_ms, round_trip_ms), fails=round_trip_ms >= t.T_ms)
        if subject.loss.closes:
            return Attempt(takes_ms=QUICK_MS, fails=not (retries and others))
        cap_ms = float(str(self._setting(producer, "sendMsgMaxTimeoutPerRequest") or -1))
        tries_ms = min(t.T_ms, cap_ms) if cap_ms > 0 and retries else t.T_ms
        if subject.packets:
            tries_ms = min(tries_ms, t.C_ms)  # a dial that nobody answers, once the channel is closed
        masked = retries > 0 and others and tries_ms < t.T_ms
        return Attempt(takes_ms=tries_ms if masked else t.T_ms, fails=not masked)
