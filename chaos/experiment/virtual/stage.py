"""The virtual stage of an experiment: one process, one scheduler, nothing that waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from ....actors.actor import NodeSpec, Probe
from ....actors.processes import signals_deferred
from ....remoting.node.network import Address
from ....remoting.node.recording import Recorder
from ...errors import HarnessError
from ...faults.processes import not_done
from ...oracle.client_profiles import ClientProfile
from ...scenarios.model import Scenario
from ...topology import Link
from ..outside_clients import ClientUnderTest
from ..run_folder import RunFolder
from ..stage import Starts
from .cluster import VirtualCluster
from .links import MemoryLinkFaults
from .loop import Scheduler, VirtualClock
from .phases import starts
from .record import MemoryRecorderSpec, VirtualLagProbe
from .watchdog import watched

SLICE_S = 5.0
"""Virtual seconds that pass between two looks at whether the person wants it to end."""


@dataclass(slots=True)
class VirtualStage:
    scheduler: Scheduler = field(default_factory=Scheduler)
    clock: VirtualClock = field(init=False)
    _folder: RunFolder = field(init=False)
    _seed: int = field(init=False)
    _links: MemoryLinkFaults = field(init=False)

    def begin(self, folder: RunFolder, seed: int, scale: float, say: Callable[[str], None]) -> None:
        self._folder, self._seed = folder, seed
        self.clock = VirtualClock(self.scheduler, scale)

    def starts(self, scenario: Scenario, seed: int) -> Starts:
        return starts(scenario, seed)

    def recorder_spec(self, node: str, role: str) -> MemoryRecorderSpec:
        return MemoryRecorderSpec(self._folder.path, node, role, 0, self.clock)

    @property
    def probe(self) -> Callable[[], Probe]:
        return VirtualLagProbe

    @property
    def shared_probe(self) -> Callable[[], Probe]:
        return VirtualLagProbe  # each node has a loop of its own here

    def addresses(self, names: Iterable[str]) -> dict[str, Address]:
        """The ports are RocketMQ's own, each server has an address of its own."""
        ports = {"ns": (1, 9876), "broker": (2, 10911), "address": (4, 8080)}
        of = ((name, number, *ports[name.partition("-")[0]]) for number, name in enumerate(names, start=1))
        return {name: Address(f"10.0.{net}.{number}", port) for name, number, net, port in of}

    def host_name(self, node: str) -> str | None:
        return None

    def spec(self, spec: NodeSpec) -> NodeSpec:
        return spec

    def set_up(
        self, stack: ExitStack, record: Recorder, upstreams: Mapping[Link, Address], say: Callable[[str], None]
    ) -> tuple[VirtualCluster, MemoryLinkFaults]:
        stack.enter_context(watched(self.scheduler))
        self.scheduler.on_spin = lambda node, why: not_done(record, node, "yield", why)
        cluster = stack.enter_context(VirtualCluster(self.scheduler, self.clock, self._seed, self._run_until_done))
        self._links = MemoryLinkFaults(cluster.network, self.clock, record)
        self._links.open(upstreams)
        self._links.watch_bandwidth(stack)
        return cluster, self._links

    def advertised(self, addresses: Mapping[str, Address]) -> dict[str, Address]:
        return dict(addresses)  # nobody outside can dial into the network in memory

    def dials_of(self, node: str) -> dict[Address, Address]:
        return self._links.dials_of(node)

    def join(self, name: str, upstreams: Mapping[Link, Address]) -> None:
        raise HarnessError("a cluster on the virtual clock has no addresses that a client could dial")

    def client_under_test(
        self, name: str, profile: ClientProfile, advertised: Mapping[str, Address], record: Recorder
    ) -> ClientUnderTest:
        raise HarnessError("a cluster on the virtual clock has no addresses that a client could dial")

    def heard(self, event: str, fields: Mapping[str, object]) -> None:
        pass

    def sleep_until(self, at_s: float) -> None:
        while self.scheduler.now_s < at_s:
            with signals_deferred():
                self.scheduler.run(min(at_s, self.scheduler.now_s + SLICE_S))

    def last_writes(self) -> None:
        """Nothing is ever on its way."""

    def _run_until_done(self, future: asyncio.Future[Any], limit_s: float) -> None:
        end_s = self.scheduler.now_s + limit_s
        while not future.done():
            if self.scheduler.now_s >= end_s:
                raise TimeoutError(f"not within {limit_s:g} s of virtual time")
            with signals_deferred(), suppress(TimeoutError):
                self.scheduler.run_until_done(future, min(end_s - self.scheduler.now_s, SLICE_S))
