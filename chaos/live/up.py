"""`nemesrv up`: a cluster without a workload, for your own clients, until Ctrl-C or for a given time.

    session (experiment/): cluster up ─► announced ─► faults, by `nemesrv fault` (fault_door.py) or by others ─► end
        └─ watch: the history is written in parts and judged by --check ──────────────────────────────► verdicts

Every address in the JSON line and in routes belongs to a proxy of the link `external -> server`, so the links of your
own clients can be cut, too. Your clients are not nodes of the run.
"""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import click

from ...actors.cluster import ClusterError
from ...actors.processes import signals_deferred
from ...actors.supervisor import AtASignal, at_a_signal
from ...actors.watch import Death
from ...remoting.node.profile import Profile
from ..apache.distribution import OURS
from ..checks import CHECKS
from ..errors import HarnessError
from ..experiment.harness import Harness
from ..experiment.hosts_stage import real_stage
from ..experiment.nodes import timers_of
from ..experiment.outside_clients import ClientUnderTest
from ..experiment.run_folder import RunFolder, refuse_used
from ..experiment.session import RunningCluster, session
from ..experiment.stage import RealStage
from ..history.merge import discard
from ..judging import Judged, engine_for, exit_status, judge, of_run, show
from ..oracle.recorded import NodeInfo
from ..oracle.world import World
from ..preflight import MachineNeeds, require, require_programs
from ..runner import Options, as_run_with
from ..scenarios.implementations import profile_of
from ..scenarios.loading import parse
from ..scenarios.model import Scenario
from ..topology import broker_id, broker_name
from ..verdict import Validity, Verdict
from .changes import quiet_after_ms
from .fault_door import FaultDoor
from .growing import LiveWatch

UP_CHECKS = ("routes_converge", "routes_are_true", "no_false_eviction", "no_resurrection")
"""Checks of `--check default`, which need no clients."""
CLIENT_CHECKS = tuple(name for name, check in CHECKS.items() if check.outside)
"""Checks that `--check default` adds if there are clients under test."""
FOREVER_S = 1e9


def scenario_of(
    *,
    name_servers: int,
    brokers: int,
    slaves: int = 0,
    profile: str | None,
    time_scale: float,
    implementation: str = OURS,
    checks: Sequence[str] = (),
    clients: Mapping[str, str | None] = MappingProxyType({}),
) -> Scenario:
    """Return a scenario of NameServers, brokers and the links to them, with an empty timeline.

    `clients`: the clients under test by name, with their profiles. A client without a profile gets the profile of the
    servers' implementation; with nemesrv's own servers, 4.9. Raises ScenarioError for an impossible scenario.
    """
    follows = profile_of(implementation, "", "--implementation")
    document = {
        "name": "up",
        "description": "A cluster that stayed up for clients of its own.",
        "cluster": {
            "name_servers": name_servers,
            "brokers": brokers,
            "slaves": slaves,
            "profile": profile or str(follows or Profile.V4_9),
            "implementation": implementation,
            "external": True,
            "clients": dict(clients),
        },
        "timers": {"time_scale": time_scale},
        "workload": {"producers": 0, "consumers": 0, "client_starts": 0, "prober": False},
        "checks": list(checks or UP_CHECKS),
    }
    return as_run_with(parse(document, file="nemesrv up"), Options())


def _by_id(addresses: Mapping[str, str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for broker, address in addresses.items():
        found.setdefault(broker_name(broker), {})[str(broker_id(broker))] = address
    return found


@dataclass(slots=True, kw_only=True)
class Up:
    """A cluster of `nemesrv up`. If `judged`, the scenario's checks judge it while it runs and at its end. The cluster
    runs for `for_s` seconds of RocketMQ time; None: until Ctrl-C."""

    scenario: Scenario
    as_json: bool = False
    judged: bool = False
    out: Path | None = None
    for_s: float | None = None
    ray: str | None = None
    """Address of the Ray cluster on whose hosts the nodes run."""
    outside: str | None = None
    """This machine's address at which programs outside dial; None: the loopback's, or with `ray` the host's own."""
    _cluster: RunningCluster | None = field(default=None, init=False)
    _unsaid: list[str] | None = field(default_factory=list, init=False)
    _saying: threading.Lock = field(default_factory=threading.Lock, init=False)

    def serve(self) -> int:
        """Run the cluster. Returns the exit status: the verdict's if the cluster was judged, else 0. Raises
        HarnessError if a process of the cluster does not start."""
        scenario = self.scenario
        refuse_used(self.out)
        here = MachineNeeds.of_judging(spark=False) if self.ray else MachineNeeds.of_run(scenario, spark=False)
        require(here, self.out or Path("runs"))
        if self.ray is None:  # the hosts of a Ray cluster say what they lack
            require_programs(scenario, scenario.timers.time_scale)
        folder = RunFolder.create(scenario.name, self.out)
        workers = len(scenario.topology().nodes) + 1
        with Harness(workers=workers, ray=self.ray, outside=self.outside) as harness:
            stage = real_stage(harness, unplanned=self._died, rotates=True)
            judged: list[Judged] = []

            def conclude(run: RunFolder, as_run: Scenario) -> Sequence[Verdict]:
                discard(run.path)
                if not self.judged:
                    return ()
                # As on the virtual clock: who reads the verdicts of a small history need not wait for a JVM.
                engine = engine_for(None, virtual=True, where=run.path)
                judged.append(judge(of_run(run, as_run), engine, harness.spark))
                watch.hear(judged[-1].verdicts, stage.clock.monotonic_s() * 1000)
                return judged[-1].verdicts

            try:
                with session(scenario, folder, stage, conclude) as cluster:
                    self._cluster = cluster
                    watch = self._watch(folder, stage)
                    with watch:
                        self._stay(cluster, stage)
                        cluster.experiment.end()
                    with signals_deferred(patient=True):
                        cluster.leave()
            except ClusterError as exc:
                raise HarnessError(f"{exc} (logs: {folder.logs})") from exc
        for each in judged:
            if self.as_json:
                click.echo(_ended(each), err=True)
            else:
                show(each)
            if line := _to_decide(each):
                click.echo(line, err=True)
        return exit_status(judged) if judged else 0

    def _watch(self, folder: RunFolder, stage: RealStage) -> LiveWatch:
        kinds = self.scenario.topology().kinds.items()
        nodes = tuple(NodeInfo(name, str(kind), None) for name, kind in kinds)
        return LiveWatch(
            run_dir=folder.path,
            clock=stage.clock,
            checks=self.scenario.checks if self.judged else (),
            say=self._say,
            quiet_after_ms=quiet_after_ms(World(timers=timers_of(self.scenario), nodes=nodes)),
        )

    def _stay(self, cluster: RunningCluster, stage: RealStage) -> None:
        experiment, api = cluster.experiment, stage.toxiproxy
        outside = stage.outside_faults(experiment.record, lambda: experiment.pids, experiment.processes)
        try:
            with outside, FaultDoor(cluster, outside) as control:
                self._announce(cluster, api.url, control)
                at_a_signal(AtASignal.CTRL_C_IS_ITS_END)
                cluster.wait(FOREVER_S if self.for_s is None else self.for_s)
        except KeyboardInterrupt:
            return  # what it does has been done by then; how a run ends, the experiment knows

    def _died(self, death: Death, fault_id: str) -> None:
        """Record that somebody else killed a node. `nemesrv fault restart` starts the node again."""
        if self._cluster is not None:
            self._cluster.experiment.processes.found_gone(death.name, fault_id)
        again = f"`nemesrv fault restart {death.name}` starts it again"
        click.echo(f"nemesrv: {death}; it is recorded as {fault_id}, and {again}", err=True)

    def _announce(self, cluster: RunningCluster, toxiproxy: str, control: FaultDoor) -> None:
        pids = cluster.experiment.pids
        clients = [cluster.client(name) for name in self.scenario.cluster.clients]
        if self.as_json:
            shown = {
                "name_servers": list(cluster.name_servers),
                "brokers": _by_id(cluster.brokers | cluster.slaves),
                **({"clients": {client.name: _told(client) for client in clients}} if clients else {}),
                "toxiproxy": toxiproxy,
                "pids": pids,
                "run": str(cluster.run_dir),
            }
            click.echo(json.dumps(shown))
        else:
            click.echo(f"name servers  {cluster.name_server_list}")
            for name, address in (cluster.brokers | cluster.slaves).items():
                click.echo(f"{name:<12}  {address}")
            for client in clients:
                click.echo(
                    f"{client.name:<12}  {client.name_server_list}   (the list for it, profile {client.profile.name})"
                )
            click.echo(f"toxiproxy     {toxiproxy}   (proxies external->NODE are your own links)")
            click.echo(f"run           {cluster.run_dir}   (faults: nemesrv fault --help)")
            click.echo("Ctrl-C ends it." if self.for_s is None else f"It ends after {self.for_s:g} s, or at Ctrl-C.")
        control.open()
        with self._saying:
            unsaid, self._unsaid = self._unsaid or [], None
            for line in unsaid:
                click.echo(line)

    def _say(self, at_ms: float, verdict: Verdict) -> None:
        if self.as_json:
            shown = {"type": "verdict", "at_ms": round(at_ms, 1), **verdict.to_json()}
            line = json.dumps(shown, ensure_ascii=False, default=str)
        else:
            why = f"   {verdict.why}" if verdict.why else ""
            line = f"{at_ms / 1000:8.1f} s  {verdict.name} {verdict.verdict} ({verdict.examined} examined){why}"
        with self._saying:
            if self._unsaid is None:
                click.echo(line)
            else:  # what the cluster's addresses are comes first
                self._unsaid.append(line)


def _ended(judged: Judged) -> str:
    """Return the verdict and the run folder, and a line with the reason for each check that is not VALID."""
    wrong = [f"  {v.name} {v.verdict}: {v.why}" for v in judged.verdicts if v.verdict is not Validity.VALID]
    return "\n".join([f"verdicts: {judged.verdict}   {judged.history.where}", *wrong])


def _to_decide(judged: Judged) -> str:
    """Return what decides the checks that examined nothing; "" if each check examined something."""
    empty = [v.name for v in judged.verdicts if v.verdict is Validity.UNKNOWN and not v.examined]
    kept = ",".join(v.name for v in judged.verdicts if v.name not in empty)
    without = f", or leave the check out: --check {kept}" if kept else ""
    said = f"To decide {' and '.join(empty)}, inject such a fault (`nemesrv fault --help`){without}"
    return said if empty else ""


def _told(client: ClientUnderTest) -> dict[str, object]:
    """Return what a client's programs must know: their servers' addresses, and the profile that judges them."""
    servers = {"name_servers": list(client.name_servers), "brokers": _by_id(client.brokers)}
    return {**servers, "profile": client.profile.name}
