"""A cluster that stays up for a person's own clients: NameServers and brokers behind Toxiproxy, until Ctrl-C.

Every address that a client gets to see, in the JSON line and in routes, is that of a proxy of the dialler `external`,
so the links of a person's own clients can be cut through Toxiproxy too. With checks it is recorded and judged while it
is up, and leaves a run folder (chaos/live); without, it leaves nothing.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import click

from ...actors.actor import NodeSpec
from ...actors.cluster import Cluster, ClusterError, RayHost
from ...actors.processes import signals_deferred
from ...actors.supervisor import AtASignal, at_a_signal
from ...remoting.node.clock import RealClock
from ...remoting.node.network import Address
from ...remoting.node.recording import ignore
from ..errors import HarnessError
from ..experiment.nodes import NodePlan
from ..faults.ports import PortHolder
from ..faults.toxiproxy import ToxiproxyServer
from ..faults.toxiproxy_links import LinkFaults
from ..preflight import Needs, require
from ..scenarios.model import ClusterModel, Scenario, TimersModel, WorkloadModel
from ..topology import EXTERNAL, NodeKind, Topology
from .judged_up import JudgedUp


def bring_up(
    *,
    name_servers: int,
    brokers: int,
    profile: str,
    time_scale: float,
    as_json: bool,
    checks: tuple[str, ...] = (),
    out: Path | None = None,
) -> None:
    """Serve until interrupted, judged by `checks` meanwhile. HarnessError when a part does not start."""
    topology = Topology(
        name_servers=name_servers, brokers=brokers, producers=0, consumers=0, prober=False, external=True
    )
    scenario = Scenario(
        name="up",
        cluster=ClusterModel(name_servers=name_servers, brokers=brokers, profile=profile),
        timers=TimersModel(time_scale=time_scale),
        workload=WorkloadModel(producers=0, consumers=0),
        checks=checks or ("routes_converge",),
        seed=0,
    )
    require(Needs.of_run(scenario), out or Path("runs"))
    stack = ExitStack()
    try:
        try:
            _serve(stack, topology, scenario, as_json, judged=bool(checks), out=out)
        except ClusterError as exc:
            raise HarnessError(str(exc)) from exc
        at_a_signal(AtASignal.CTRL_C_IS_ITS_END)
        threading.Event().wait()
    finally:
        with signals_deferred(patient=True):
            stack.close()


def _serve(
    stack: ExitStack, topology: Topology, scenario: Scenario, as_json: bool, *, judged: bool, out: Path | None
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="nemesrv-up-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    ports = stack.enter_context(PortHolder())
    host = stack.enter_context(RayHost(workers=len(topology.nodes)))
    clock = RealClock.starting_now(scenario.timers.time_scale)
    judge = JudgedUp(stack, scenario, clock, out, as_json) if judged else None
    api = stack.enter_context(ToxiproxyServer(folder / "toxiproxy.log", ports=ports))
    listen = {name: ports.take() for name in topology.servers}
    links = LinkFaults(api, clock, judge.record if judge else ignore)

    # What clients are told is the external dialler's proxy; our own brokers reach it through their own links.
    external = {link: listen[link.peer] for link in topology.links if link.node == EXTERNAL}
    advertised = {link.peer: address for link, address in links.open(external, ports).items()}
    inner = {link: listen[link.peer] for link in topology.links if link.node != EXTERNAL}
    dials = links.open(inner, ports)
    if judge is not None:
        judge.begin(topology, advertised)

    cluster = stack.enter_context(Cluster(host, clock))
    plan = NodePlan(scenario=scenario, listen=listen, advertised=advertised)
    cluster.listen(
        NodeSpec(
            name=name,
            role=str(kind),
            factory=plan.factory(name, kind),
            clock=clock,
            data_dir=folder / name,
            log_file=folder / f"{name}.log",
            links={advertised[link.peer]: at for link, at in dials.items() if link.node == name},
            **(judge.node(name, kind) if judge else {}),
        )
        for name, kind in topology.kinds.items()
        if kind is not NodeKind.EXTERNAL
    )
    for kind in (NodeKind.NAME_SERVER, NodeKind.BROKER):
        cluster.start(*topology.of(kind))
    _announce(topology, advertised, api.url, as_json)
    if judge is not None:
        pids = {name: pid for name in cluster.names if (pid := cluster.pid(name)) is not None}
        judge.watch(stack, api.address, pids)


def _announce(topology: Topology, advertised: Mapping[str, Address], toxiproxy: str, as_json: bool) -> None:
    name_servers = [str(advertised[name]) for name in topology.of(NodeKind.NAME_SERVER)]
    brokers = {name: {"0": str(advertised[name])} for name in topology.of(NodeKind.BROKER)}
    if as_json:
        click.echo(json.dumps({"name_servers": name_servers, "brokers": brokers, "toxiproxy": toxiproxy}))
        return
    click.echo(f"name servers  {';'.join(name_servers)}")
    for name, addresses in brokers.items():
        click.echo(f"{name:<12}  {addresses['0']}")
    click.echo(f"toxiproxy     {toxiproxy}   (proxies external->NODE are your own links)")
    click.echo("Ctrl-C ends it.")
