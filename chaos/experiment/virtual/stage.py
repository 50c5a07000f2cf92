"""The stage of an experiment on the virtual clock: one process, one scheduler, no waiting."""

import asyncio
import math
import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from ....actors.actor import Probe
from ....actors.namesrv.server import FIRST_SCAN_S
from ....actors.processes import signals_deferred
from ....remoting.node.network import Address
from ....remoting.node.profile import Profile
from ....remoting.node.recording import Recorder
from ....remoting.top_addressing import FIRST_S, TIMEOUT_S
from ...faults.processes import not_done
from ...scenarios.model import Scenario
from ...topology import Link, NodeKind
from ..nodes import timers_and_differing, timers_of
from ..run_folder import RunFolder
from ..stage import Stage, Starts
from .cluster import VirtualCluster
from .loop import Scheduler, VirtualClock, watched
from .network import MemoryLinkFaults
from .recording import MemoryRecorderSpec, VirtualLagProbe

SLICE_S = 5.0
"""Virtual seconds between two checks for a signal of the user."""


@dataclass(slots=True)
class VirtualStage(Stage):
    scheduler: Scheduler = field(default_factory=Scheduler)
    clock: VirtualClock = field(init=False)
    _folder: RunFolder = field(init=False)
    _seed: int = field(init=False)
    _links: MemoryLinkFaults = field(init=False)

    def begin(self, folder: RunFolder, seed: int, scale: float, say: Callable[[str], None]) -> None:
        self._folder, self._seed = folder, seed
        self.clock = VirtualClock(self.scheduler, scale)

    def starts(self, scenario: Scenario, seed: int) -> Starts:
        return drawn_starts(scenario, seed)

    def recorder_spec(self, node: str, role: str) -> MemoryRecorderSpec:
        return MemoryRecorderSpec.for_run(self._folder.path, node, role, 0, self.clock)

    @property
    def probe(self) -> Callable[[], Probe]:
        return VirtualLagProbe

    def addresses(self, names: Iterable[str]) -> dict[str, Address]:
        """Return for each server an address with a host of its own and RocketMQ's usual port."""
        ports = {"ns": (1, 9876), "broker": (2, 10911), "address": (4, 8080)}
        of = ((name, number, *ports[name.partition("-")[0]]) for number, name in enumerate(names, start=1))
        return {name: Address(f"10.0.{net}.{number}", port) for name, number, net, port in of}

    def set_up(
        self, stack: ExitStack, record: Recorder, upstreams: Mapping[Link, Address], say: Callable[[str], None]
    ) -> tuple[VirtualCluster, MemoryLinkFaults]:
        stack.enter_context(watched(self.scheduler))
        self.scheduler.on_spin = lambda node, why: not_done(record, node, "yield", why)
        cluster = stack.enter_context(VirtualCluster(self.scheduler, self.clock, self._seed, self._run_until_done))
        self._links = MemoryLinkFaults(cluster.network, self.clock, record)
        self._links.open(upstreams)
        return cluster, self._links

    def dials_of(self, node: str) -> dict[Address, Address]:
        return self._links.dials_of(node)

    def sleep_until(self, at_s: float) -> None:
        while self.scheduler.now_s < at_s:
            with signals_deferred():
                self.scheduler.run(min(at_s, self.scheduler.now_s + SLICE_S))

    def last_writes(self) -> None:
        """Do nothing, because rows are in memory."""

    def _run_until_done(self, future: asyncio.Future[Any], limit_s: float) -> None:
        end_s = self.scheduler.now_s + limit_s
        while not future.done():
            if self.scheduler.now_s >= end_s:
                raise TimeoutError(f"not within {limit_s:g} s of virtual time")
            with signals_deferred(), suppress(TimeoutError):
                self.scheduler.run_until_done(future, min(end_s - self.scheduler.now_s, SLICE_S))


# When each node starts to work: so that its timer meets the timeline at a phase of its own.
#
#     NameServers ├ S ┤ brokers ├── R ──┤ topic ├ clients ├── P ──┤ timeline
#                                                                  ├ phase ┤ tick ── period ── tick …
#
# A phase is how long after the timeline's start the node's timer fires next: a broker registers, a client polls, a
# NameServer looks for silent brokers. The scenario sets it (`phases`), or the seed draws it: nodes that all began in
# one moment would tick at the same seconds of every run, and no fault would ever meet another edge.

_FIRST_TICK_S = {
    NodeKind.NAME_SERVER: None,
    NodeKind.BROKER: 10.0,
    NodeKind.SLAVE: 10.0,
    NodeKind.PRODUCER: 0.010,
    NodeKind.CONSUMER: 0.010,
}
"""How long after a node's start its timer first fires (`BrokerController.start`, `MQClientInstance`). None: by
profile."""

_BROKERS = (NodeKind.BROKER, NodeKind.SLAVE)

TOPIC_S = 5.0
"""Time to create the topic and to have its routes. Without a fault it takes none."""

LAST_STARTS_S = 1.0
"""Time for the clients that start last: they fetch their route and send heartbeats."""


def drawn_starts(scenario: Scenario, seed: int) -> Starts:
    """Draw each node's start time by the seed, within the start period of the node's kind. The prober starts with the
    brokers."""
    kinds = scenario.topology().kinds
    periods = {name: _period(scenario, name, kind) for name, kind in kinds.items() if kind in _FIRST_TICK_S}

    def longest_s(*of: NodeKind) -> float:
        return max((period_s for name, period_s in periods.items() if kinds[name] in of), default=0.0)

    brokers_s = longest_s(NodeKind.NAME_SERVER)
    lists_s = 0.0 if scenario.cluster.name_server_list is None else FIRST_S + TIMEOUT_S  # brokers ask for it first
    clients_s = brokers_s + longest_s(*_BROKERS) + TOPIC_S + lists_s + (timers_of(scenario).W_ms or 0.0) / 1000
    begin_s = {NodeKind.NAME_SERVER: 0.0, **dict.fromkeys(_BROKERS, brokers_s)}
    timeline_s = math.ceil(clients_s + longest_s(NodeKind.CONSUMER, NodeKind.PRODUCER) + LAST_STARTS_S)
    of: dict[str, float] = {}
    for name, period_s in periods.items():
        drawn_s = random.Random(f"{seed}/phase/{name}").random() * period_s
        after_s = begin_s.get(kinds[name], clients_s)
        first_s = _FIRST_TICK_S[kinds[name]] or FIRST_SCAN_S[Profile(scenario.cluster.profile)]
        phase_s = scenario.phases.get(name, drawn_s)
        of[name] = after_s + (timeline_s + phase_s - first_s - after_s) % period_s
    return Starts(of=of, timeline_s=timeline_s)


def _period(scenario: Scenario, name: str, kind: NodeKind) -> float:
    timers, differing = timers_and_differing(scenario)
    own = timers.with_(**differing.get(name, {}))
    period_ms = {NodeKind.NAME_SERVER: own.S_ms, **dict.fromkeys(_BROKERS, own.R_ms)}.get(kind, own.P_ms)
    return period_ms / 1000
