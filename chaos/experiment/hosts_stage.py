"""The stage of an experiment on the hosts of an existing Ray cluster. HostsStage does what RealStage does, with a
Toxiproxy, ports and probes on each host.

    driver                                  host of a Ray node, each
      Cluster, LinkFaults (facades) ─────►    agent ─► nodes' processes, Toxiproxy, ports, lag probe, link probes
      harness.0.jsonl                         history/_raw/NODE.0.jsonl, logs ── collected all the time ──► run folder
      clocks.0.jsonl  ◄── each host's clock, read all the time (experiment/hosts/clock_probe.py)

A node's clock is the driver's, shifted by the offset between the two hosts' clocks at the begin of the run. The merge
of the history's rows corrects errors of this offset and the drift of the clocks (history/host_clocks.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from os import PRIO_PROCESS, getpriority
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...actors.actor import NodeSpec
from ...actors.cluster import Cluster
from ...actors.hosts import HostsWatch, RemoteHost
from ...actors.joined_ray import JoinedRay
from ...actors.watch import Death
from ...remoting.node.clock import RealClock
from ...remoting.node.network import Address
from ...remoting.node.recording import Recorder
from ..errors import HarnessError
from ..faults.processes import ProcessFaults
from ..history.host_clocks import CLOCKS
from ..history.recorder import RecorderSpec, step_s_of
from ..preflight import bring, programs_of
from ..scenarios.model import Scenario
from ..scenarios.placement import Offer, placed
from ..topology import Link
from .harness import Harness
from .hosts import parts
from .hosts.clock_probe import EVERY_S, HostClocks, clock_identity, offset_ns
from .hosts.collect import FOLLOW_S, CollectedHost, Collector, record_missing
from .run_folder import RunFolder
from .stage import HARNESS_ROLE, RealStage, Starts, disk_watch

if TYPE_CHECKING:
    from ..faults.outside import OutsideFaults
    from ..faults.toxiproxy_links import LinkFaults

BRING_LIMIT_S = 600.0
"""Maven may have to fetch servers and clients of two versions."""
UP_EVERY_S = 5.0
"""Period of clock readings in a run that may last for days."""
OUTSIDE_POLL_S = 0.1
"""As faults.outside.POLL_S; each look is a call of the host's agent."""
UP_FOLLOW_S = 0.5
"""Period of collection in a run that is judged meanwhile; it waits for a host for a second at most."""


@dataclass(slots=True)
class HostsStage(RealStage):
    """A stage on the hosts that belong to the Ray cluster when the run begins. A host that joins later has no part in
    the run."""

    _hosts: dict[str, RemoteHost] = field(init=False, default_factory=dict)
    _placed: dict[str, str] = field(init=False, default_factory=dict)
    _folders: dict[str, Path] = field(init=False, default_factory=dict)
    _ports: parts.HostsPorts = field(init=False)
    _collector: Collector = field(init=False)
    _one_clock: frozenset[str] = field(init=False, default=frozenset())
    """The hosts whose clock is the driver's own."""

    def begin(self, folder: RunFolder, seed: int, scale: float, say: Callable[[str], None]) -> None:
        self._folder = folder
        say("joining Ray")
        self.harness.ray.start()
        joined = self.joined
        self._hosts = {host.name: host for host in joined.hosts if not host.lost}
        own, asking = clock_identity(), {name: h.asking("run", clock_identity) for name, h in self._hosts.items()}
        self._one_clock = frozenset(name for name, ref in asking.items() if self._hosts[name].answer(ref) == own)
        for name in self._hosts.keys() - self._one_clock:
            self._hosts[name].offset_ns = offset_ns(partial(self._hosts[name].ask, "monotonic_ns"))
        self.clock = RealClock.starting_now(scale)
        asked = {host: host.asking("begin_run", host.clock(self.clock)) for host in self._hosts.values()}
        self._folders = {host.name: Path(host.answer(ref)) for host, ref in asked.items()}
        self._ports = parts.HostsPorts(self.host_of)
        for host in self._hosts.values():
            host.ask("open", parts.PORTS, parts.HostPorts, host.address)

    @property
    def joined(self) -> JoinedRay:
        assert isinstance(self.harness.ray, JoinedRay)
        return self.harness.ray

    def host_of(self, node: str) -> RemoteHost:
        name = self._placed.get(node)
        return self.joined.driver_host if name is None else self._hosts[name]

    def starts(self, scenario: Scenario, seed: int) -> Starts:
        here = self.joined.driver_host
        hosts = [here, *(host for host in self._hosts.values() if host is not here)]
        offers = [Offer(host.name, host.labels, host.resources) for host in hosts]
        self._placed = placed(scenario.topology(), scenario.placement, offers, file=scenario.name)
        self._bring_programs(scenario)
        return Starts()

    def _bring_programs(self, scenario: Scenario) -> None:
        asked = {}
        for host in self._hosts.values():
            there = {node for node, name in self._placed.items() if name == host.name}
            if programs := programs_of(scenario, there):
                asked[host] = host.asking("run", bring, programs, self.clock.scale)
        _answers(asked, BRING_LIMIT_S)

    def host_name(self, node: str) -> str | None:
        return self._placed.get(node) if len(self._hosts) > 1 else None

    def spec(self, spec: NodeSpec) -> NodeSpec:
        host = self.host_of(spec.name)
        folder, near = self._folders[host.name], self._folder.path.resolve()
        assert isinstance(spec.recorder_spec, RecorderSpec)
        return replace(
            spec,
            clock=host.clock(self.clock),
            recorder_spec=self._there(spec.recorder_spec, host),
            data_dir=spec.data_dir and folder / spec.data_dir.relative_to(near),
            log_file=spec.log_file and folder / spec.log_file.relative_to(near),
            niceness=getpriority(PRIO_PROCESS, 0),
        )

    def _there(self, spec: RecorderSpec, host: RemoteHost, incarnation: int = 0) -> RecorderSpec:
        path = self._folders[host.name] / spec.path.relative_to(self._folder.path.resolve())
        moved = replace(spec, path=path, clock=host.clock(self.clock))
        return moved.for_incarnation(incarnation) if incarnation else moved

    def addresses(self, names: Iterable[str]) -> dict[str, Address]:
        return self._ports.take_servers(names)

    def set_up(
        self, stack: ExitStack, record: Recorder, upstreams: Mapping[Link, Address], say: Callable[[str], None]
    ) -> tuple[Cluster, LinkFaults]:
        from ..faults.proxy_lag import TOXIPROXY as LATE_NODE
        from ..faults.toxiproxy import Toxiproxy
        from ..faults.toxiproxy_links import LinkFaults

        hosts = tuple(self._hosts.values())
        on = "this host" if len(hosts) == 1 else f"{len(hosts)} hosts"
        say(f"starting Toxiproxy on {on} and its links")
        stack.callback(self._end_run, record)
        far = [CollectedHost(host, str(self._folders[host.name])) for host in hosts]
        follow_s = UP_FOLLOW_S if self.rotates else FOLLOW_S
        self._collector = Collector(far, self._folder.path, self._now_ms, follow_s)
        self._collector.__enter__()
        if len(hosts) > 1:
            clocks = self.recorder_spec(CLOCKS, HARNESS_ROLE).open()
            stack.callback(clocks.close)
            asks = {host.name: None if host.name in self._one_clock else self._shown_by(host) for host in hosts}
            every_s = UP_EVERY_S if self.rotates else EVERY_S
            stack.enter_context(HostClocks(asks, self._now_ms, clocks, every_s))
        asked = {}
        for host in hosts:
            log_name = "toxiproxy.log" if len(hosts) == 1 else f"toxiproxy-{host.name}.log"
            log = self._folders[host.name] / "logs" / log_name
            asked[host] = host.asking("open", parts.TOXIPROXY, parts.HostToxiproxy, log)
        opened = _answers(asked, 30.0)
        self.toxiproxy = Toxiproxy(opened[self.joined.driver_host][0])
        lateness = self.recorder_spec(LATE_NODE, HARNESS_ROLE)
        step_s = step_s_of(self.clock.scale)
        for number, host in enumerate(hosts):
            there = self._there(lateness, host, number)
            host.ask("open", parts.LAG, parts.HostLag, host.clock(self.clock), there, step_s)
        api = parts.HostsToxiproxy(hosts, self.host_of)
        self.links = LinkFaults(api, self.clock, record, front_for=lambda node: parts.RemoteFront(self.host_of(node)))
        self.links.open(upstreams, self._ports)
        watch = stack.enter_context(self._hosts_watch(record, {host: pid for host, (_, pid) in opened.items()}))
        stack.enter_context(self.joined.head_watch(self._alarm))
        stack.enter_context(disk_watch(self._folder.path, self._alarm))
        cluster = Cluster(self.clock, watch=watch, alarm=self._alarm, dials=self.links, home=self.host_of)
        return self._entered(stack, cluster), self.links

    def _hosts_watch(self, record: Recorder, toxiproxies: Mapping[RemoteHost, int]) -> HostsWatch:
        carriers = {f"Toxiproxy of {host}": host for host in toxiproxies}
        told, at_once = self._of_deaths(record, carriers)
        watch = HostsWatch(
            self.clock,
            hosts=self._hosts.values(),
            host_of=lambda name: carriers.get(name) or self.host_of(name),
            alarm=self._alarm,
            told=told,
            at_once=at_once,
            also=self.joined.said_of_the_head,
        )
        for name, host in carriers.items():
            watch.add(name, toxiproxies[host])
        return watch

    def outside_faults(
        self, record: Recorder, pids: Callable[[], Mapping[str, int]], processes: ProcessFaults
    ) -> OutsideFaults:
        from ..faults.outside import OutsideFaults

        for host in self._hosts.values():
            host.ask("open", parts.OUTSIDE, parts.HostOutside)
        looks = {name: partial(host.ask, "call", parts.OUTSIDE, "look") for name, host in self._hosts.items()}
        ours = self.links, processes
        return OutsideFaults(
            looks, lambda node: self.host_of(node).name, record, self.clock.scale, pids, *ours, poll_s=OUTSIDE_POLL_S
        )

    def _now_ms(self) -> float:
        return self.clock.monotonic_s() * 1000.0

    def _shown_by(self, host: RemoteHost) -> Callable[[], float]:
        clock = host.clock(self.clock)

        def shown_ms() -> float:
            return float((host.ask("monotonic_ns") - clock.origin_monotonic_ns) * clock.scale / 1e6)

        return shown_ms

    def _end_run(self, record: Recorder) -> None:
        hosts = self._hosts.values()
        self._collector.finish()
        record_missing(record, self._collector.gone, self._placed)
        for host in hosts:
            if not host.lost:
                host.ask("end_run", timeout_s=30.0)

    def join(self, name: str, upstreams: Mapping[Link, Address]) -> None:
        self.links.open(upstreams, self._ports)

    @property
    def outside_host(self) -> str:
        return self.joined.driver_host.address


def _answers(asked: Mapping[RemoteHost, Any], limit_s: float) -> dict[RemoteHost, Any]:
    found = {}
    for host, ref in asked.items():
        try:
            found[host] = host.answer(ref, limit_s)
        except HarnessError as exc:
            raise HarnessError(f"on the host {host}: {exc}") from exc
    return found


def real_stage(
    harness: Harness, *, unplanned: Callable[[Death, str], None] | None = None, rotates: bool = False
) -> RealStage:
    """Return the stage on this machine, or on the hosts of the Ray cluster that the harness has joined."""
    made = HostsStage if isinstance(harness.ray, JoinedRay) else RealStage
    return made(harness, unplanned=unplanned, rotates=rotates)
