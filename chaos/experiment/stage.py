"""The parts of an experiment that differ between the real clock and the virtual one.

`RealStage` uses Ray actors, Toxiproxy and the machine's time. The stage in chaos/experiment/virtual/ uses one process,
a network in memory and a virtual clock. The code in experiment.py is the same for the real and the virtual stage.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ...actors.actor import NodeSpec, OpensRecorder, Probe
from ...actors.cluster import Cluster, Submitted
from ...actors.watch import Alarm, Death, ProcessWatch, Repeating
from ...remoting.node.clock import Clock, RealClock
from ...remoting.node.network import Address
from ...remoting.node.recording import Recorder
from ..errors import HarnessError
from ..faults.injector import LinkFaultInjector, ScaledClock
from ..faults.processes import Processes, ProcessFaults, UnplannedDeaths
from ..history.files import ROTATE_BYTES, read_raw
from ..history.recorder import LagProbe, RecorderSpec, step_s_of
from ..history.schema import raw_dir
from ..machine import free_bytes
from ..oracle.client_profiles import ClientProfile
from ..scenarios.model import Scenario
from ..topology import Link
from .harness import Harness
from .outside_clients import ClientUnderTest, OutsideClients, Servers
from .run_folder import RunFolder

if TYPE_CHECKING:
    from ..faults.outside import OutsideFaults
    from ..faults.toxiproxy import Toxiproxy, ToxiproxyServer
    from ..faults.toxiproxy_links import LinkFaults

HARNESS_ROLE = "harness"
NOBODY_DIALS = "a cluster on the virtual clock has no addresses that a client could dial"
STILL_S = 1.0
"""RocketMQ time in which calls of a process that stands still may time out."""
LAST_WRITE_S = 0.1
"""Machine time: longer than a node may keep an event in memory."""


class AskedNodes(Protocol):
    def call(self, name: str, method: str, *args: Any, timeout_s: float = 30.0, **kwargs: Any) -> Any: ...
    def submit(self, name: str, method: str, *args: Any, **kwargs: Any) -> Submitted: ...


class RunningNodes(Processes, AskedNodes, Protocol):
    def listen(self, specs: Iterable[NodeSpec]) -> dict[str, Address | None]: ...
    def start(self, *names: str) -> None: ...
    def pid(self, name: str) -> int | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """When each node begins to work, and when the timeline starts, in seconds of the clock."""

    of: Mapping[str, float] = field(default_factory=dict)
    """The node's start; a node that is not listed starts with the others of its group."""
    timeline_s: float = 0.0


class StageClock(Clock, ScaledClock, Protocol):
    """The clock that nodes and harness share."""


class Stage(Protocol):
    """The clock, network and processes that an experiment runs on. The experiment calls the methods in the order in
    which this class lists them. A stage registers each clean-up for the end in `stack`."""

    @property
    def clock(self) -> StageClock: ...

    def begin(self, folder: RunFolder, seed: int, scale: float, say: Callable[[str], None]) -> None:
        """Start slow parts such as Ray. The clock starts now, at 0."""

    def starts(self, scenario: Scenario, seed: int) -> Starts:
        """Return when each node begins to work, and when the timeline starts. By default no start is delayed: each
        group of nodes starts as soon as the group before is ready, and the timeline starts as soon as all clients have
        started."""
        return Starts()

    def recorder_spec(self, node: str, role: str) -> OpensRecorder: ...

    @property
    def probe(self) -> Callable[[], Probe]: ...

    def addresses(self, names: Iterable[str]) -> dict[str, Address]:
        """Return the address at which each of these servers must listen."""

    def host_name(self, node: str) -> str | None:
        """Return the name of the node's host; None if all nodes are on one host."""
        return None

    def spec(self, spec: NodeSpec) -> NodeSpec:
        """Return the settings of the node's recorder, valid on the node's host."""
        return spec

    def set_up(
        self, stack: ExitStack, record: Recorder, upstreams: Mapping[Link, Address], say: Callable[[str], None]
    ) -> tuple[RunningNodes, LinkFaultInjector]:
        """Create the proxy of every link, before any node exists."""

    def advertised(self, addresses: Mapping[str, Address]) -> dict[str, Address]:
        """Return the addresses that servers advertise: `addresses`, or the servers' addresses for outside clients."""
        return dict(addresses)

    def dials_of(self, node: str) -> dict[Address, Address]:
        """Return for each advertised address the address at which `node` must connect."""

    def join(self, name: str, upstreams: Mapping[Link, Address]) -> None:
        """Open the links of an outside client that joins. Raises HarnessError if the stage allows no outside client."""
        raise HarnessError(NOBODY_DIALS)

    def client_under_test(
        self, name: str, profile: ClientProfile, advertised: Mapping[str, Address], record: Recorder
    ) -> ClientUnderTest:
        """Return the client under test of this name, the same object at each call. Raises HarnessError if the stage
        allows no client under test."""
        raise HarnessError(NOBODY_DIALS)

    def heard(self, event: str, fields: Mapping[str, object]) -> None:
        """React to a history row that the harness has recorded."""
        return None

    def sleep_until(self, at_s: float) -> None:
        """Wait until the clock shows this time."""

    def stood_still(self, since_s: float) -> bool:
        """Return whether the machine let a process of the run stand still after that time, for STILL_S or longer. On
        the virtual clock no process stands still."""
        return False

    def last_writes(self) -> None:
        """Wait until every node has written its recorded rows."""


@dataclass(slots=True)
class RealStage(Stage):
    """A stage of Ray actors behind Toxiproxy, on the machine's clock. `rotates`: rows go into files of ROTATE_BYTES
    each."""

    harness: Harness
    unplanned: Callable[[Death, str], None] | None = None
    """Called in a thread with each node that died unplanned, and with the fault's id; the experiment goes on. None: it
    ends at once with ProcessDied. The history has the death as a `kill`."""
    rotates: bool = False
    toxiproxy: Toxiproxy = field(init=False)
    """Known after set-up."""
    clock: RealClock = field(init=False)
    _alarm: Alarm = field(init=False, default_factory=Alarm)
    _folder: RunFolder = field(init=False)
    links: LinkFaults = field(init=False)
    """Known after set-up."""
    _outside: OutsideClients = field(init=False, default_factory=OutsideClients)

    def begin(self, folder: RunFolder, seed: int, scale: float, say: Callable[[str], None]) -> None:
        self._folder = folder
        say("starting Ray")
        self.harness.ray.start()
        self.clock = RealClock.starting_now(scale)

    def recorder_spec(self, node: str, role: str) -> RecorderSpec:
        rotate_bytes = ROTATE_BYTES if self.rotates else None
        return RecorderSpec.for_run(self._folder.path.resolve(), node, role, 0, self.clock, rotate_bytes=rotate_bytes)

    @property
    def probe(self) -> Callable[[], Probe]:
        return LagProbe

    def addresses(self, names: Iterable[str]) -> dict[str, Address]:
        return {name: self.harness.ports.take(vip=True) for name in names}

    def set_up(
        self, stack: ExitStack, record: Recorder, upstreams: Mapping[Link, Address], say: Callable[[str], None]
    ) -> tuple[Cluster, LinkFaults]:
        from ..faults.proxy_lag import TOXIPROXY, ProxyLagProbe
        from ..faults.toxiproxy import ToxiproxyServer  # and what speaks HTTP, which the virtual clock needs not
        from ..faults.toxiproxy_links import LinkFaults

        say("starting Toxiproxy and its links")
        ports = self.harness.ports
        server = ToxiproxyServer(self._folder.logs / "toxiproxy.log", ports=ports)
        api = self.toxiproxy = stack.enter_context(server)
        lateness = self.recorder_spec(TOXIPROXY, HARNESS_ROLE).open()
        stack.callback(lateness.close)
        step_s = step_s_of(self.clock.scale)
        stack.enter_context(ProxyLagProbe(api, ports, self.clock, lateness, step_s=step_s))
        self.links = LinkFaults(api, self.clock, record)
        self.links.open(upstreams, ports)
        watch = stack.enter_context(self._watch(record, server))
        stack.enter_context(disk_watch(self._folder.path, self._alarm))
        cluster = Cluster(self.clock, watch=watch, alarm=self._alarm, dials=self.links)
        return self._entered(stack, cluster), self.links

    def _entered(self, stack: ExitStack, cluster: Cluster) -> Cluster:
        def tell(node: str, dials: Mapping[Address, Address]) -> None:
            self._outside.redial(node, dials)
            cluster.redial(node, dials)

        self.links.tell = tell
        stack.enter_context(cluster)
        stack.enter_context(self._outside)
        return cluster

    def _watch(self, record: Recorder, toxiproxy: ToxiproxyServer) -> ProcessWatch:
        """Return the watch with values that are known before the cluster; the cluster adds its nodes."""
        carriers = {f"Ray's {name}": pid for name, pid in self.harness.ray.servers().items()}
        if toxiproxy.pid is not None:
            carriers["Toxiproxy"] = toxiproxy.pid
        told, at_once = self._of_deaths(record, carriers)
        watch = ProcessWatch(self.clock, alarm=self._alarm, told=told, at_once=at_once)
        for name, pid in carriers.items():
            watch.add(name, pid, carries_others=True)
        return watch

    def _of_deaths(
        self, record: Recorder, carriers: Container[str]
    ) -> tuple[Callable[[Death], bool], Callable[[str, int], None]]:
        """Return how to react to an unplanned death of a process, and how often to look for one. `carriers` are
        processes of the harness, such as Toxiproxy, that are not nodes."""
        deaths = UnplannedDeaths(record)

        def at_once(name: str, pid: int) -> None:
            if name not in carriers:
                with deaths.noted(name):
                    self.links.refuse(name, pid)

        def told(death: Death) -> bool:
            if death.name in carriers:
                return False
            if self.unplanned is not None:
                self.unplanned(death, deaths.ids[death.name])
            return self.unplanned is not None

        return told, at_once

    def outside_faults(
        self, record: Recorder, pids: Callable[[], Mapping[str, int]], processes: ProcessFaults
    ) -> OutsideFaults:
        """Record, within the block, faults that others inject into proxies and processes. The block gets the object
        that records these faults."""
        from ..faults.outside import HostLooks, OutsideFaults

        here = HostLooks(self.toxiproxy.address)
        known = record, self.clock.scale, pids, self.links, processes
        return OutsideFaults({"": here.look}, lambda _node: "", *known, at_end=here.close)

    def advertised(self, addresses: Mapping[str, Address]) -> dict[str, Address]:
        return {name: self.links.advertised(address) for name, address in addresses.items()}

    def dials_of(self, node: str) -> dict[Address, Address]:
        return self.links.dials_of(node)

    def join(self, name: str, upstreams: Mapping[Link, Address]) -> None:
        self.links.open(upstreams, self.harness.ports)

    @property
    def outside_host(self) -> str:
        return self.harness.ports.outside

    def client_under_test(
        self, name: str, profile: ClientProfile, advertised: Mapping[str, Address], record: Recorder
    ) -> ClientUnderTest:
        client = self._outside.get(name)
        if client is None:
            client = ClientUnderTest(
                name=name,
                profile=profile,
                servers=Servers(
                    name_servers={server: at for server, at in advertised.items() if server.startswith("ns-")},
                    brokers={server: at for server, at in advertised.items() if server.startswith("broker-")},
                    dials=self.dials_of(name),
                    host=self.outside_host,
                ),
                clock=self.clock,
                record=record,
                spec=lambda node, kind: self.recorder_spec(node, str(kind)),
            )
            self._outside.add(client)
        return client

    def heard(self, event: str, fields: Mapping[str, object]) -> None:
        self._outside.heard(event, fields)

    def sleep_until(self, at_s: float) -> None:
        self._alarm.sleep((at_s - self.clock.monotonic_s()) / self.clock.scale)

    def stood_still(self, since_s: float) -> bool:
        rows = (row for raw in raw_dir(self._folder.path).glob("*.jsonl") for row in read_raw(raw))
        lags = (row for row in rows if row is not None and row["event"] == "timer_lag")
        return any(row["time_ms"] > 1000 * since_s and row["lag_ms"] >= 1000 * STILL_S for row in lags)

    def last_writes(self) -> None:
        self._alarm.sleep(LAST_WRITE_S)


LOW_BYTES = 24 * 1024 * 1024
"""Room for the merged history of a run of minutes, and for what nodes record until they end."""

DISK_LOOK_EVERY_S = 1.0


def disk_full(folder: Path, free: int) -> HarnessError:
    return HarnessError(
        f"the disk of {folder} has {free / 1024**2:.0f} MB left, too little to record on: free some of it, or name a "
        "folder on another disk with --out; what was recorded is kept, and nothing is judged"
    )


def disk_watch(folder: Path, alarm: Alarm) -> Repeating:
    """Raise the alarm if fewer than LOW_BYTES are free on the disk, now or later. After the alarm the experiment ends
    while the recorded rows can still be saved."""

    def look() -> None:
        free = free_bytes(folder)
        if free < LOW_BYTES:
            alarm.ring(disk_full(folder, free))

    look()
    return Repeating(look, DISK_LOOK_EVERY_S, "disk-watch")
