"""Apache's NameServer and broker in Ray actors: all that can be done to a node, its JVM included."""

import os
import random
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tenacity

from nemesrv.actors.actor import NodeSpec
from nemesrv.actors.cluster import Cluster, NodeState
from nemesrv.actors.processes import Process, alive, command, family
from nemesrv.actors.ray_host import RayHost
from nemesrv.actors.watch import NodeFailed
from nemesrv.chaos.apache.server import PATIENCE_S, ServerPlan
from nemesrv.chaos.experiment import programs
from nemesrv.chaos.faults.ports import PortHolder
from nemesrv.chaos.history.files import read_raw
from nemesrv.chaos.history.recorder import RecorderSpec
from nemesrv.chaos.topology import NodeKind
from nemesrv.remoting.node.clock import RealClock
from tests.interop.conftest import need
from tests.interop.jars import Jars

pytestmark = [pytest.mark.ray, pytest.mark.java]

_WITHIN_S = 90


def eventually(holds: Callable[[], object]) -> None:
    for attempt in tenacity.Retrying(stop=tenacity.stop_after_delay(_WITHIN_S), wait=tenacity.wait_fixed(0.1)):
        with attempt:
            assert holds()


class World:
    """A NameServer and a broker of Apache's, each in its own process, without proxies between."""

    def __init__(self, folder: Path, cluster: Cluster, ports: PortHolder, clock: RealClock) -> None:
        self.folder, self.cluster, self.clock = folder, cluster, clock
        self.addresses = {"ns-0": ports.take(), "broker-a": ports.take()}

    def spec(self, name: str, **settings: object) -> NodeSpec:
        kind = NodeKind.NAME_SERVER if name == "ns-0" else NodeKind.BROKER
        plan = ServerPlan(
            implementation="apache-5.3.3",
            kind=kind,
            listen=self.addresses[name],
            advertised=self.addresses[name],
            settings=settings,
            name_servers={} if name == "ns-0" else {"ns-0": self.addresses["ns-0"]},
            broker_name="" if name == "ns-0" else name,
        )
        return NodeSpec(
            name=name,
            role=str(kind),
            factory=partial(programs.apache_server, plan),
            clock=self.clock,
            seed=random.SystemRandom().randrange(1 << 30),
            recorder_spec=RecorderSpec.for_run(self.folder, name, str(kind), 0, self.clock),
            data_dir=self.folder / "data" / name,
            log_file=self.folder / "logs" / f"{name}.log",
            links=None,
            patience_s=PATIENCE_S,
        )

    def rows(self, name: str, event: str, incarnation: int = 0) -> list[dict[str, Any]]:
        path = self.folder / "history" / "_raw" / f"{name}.{incarnation}.jsonl"
        rows = read_raw(path) if path.exists() else ()
        return [row for row in rows if row is not None and row["event"] == event]

    def java(self, name: str) -> int:
        """The node's JVM."""
        pid = self.cluster.pid(name)
        assert pid is not None
        found = [process.pid for process in family(pid, lambda line: "org.apache.rocketmq" in line)]
        assert len(found) == 1, command(pid)
        return found[0]


@pytest.fixture(scope="module")
def host() -> Iterator[RayHost]:
    need(Jars.SERVERS_5_X)
    with RayHost(workers=3) as ray_host:
        yield ray_host


@pytest.fixture
def world(tmp_path: Path, host: RayHost) -> Iterator[World]:
    clock = RealClock.starting_now()
    with PortHolder() as ports, Cluster(clock) as cluster:
        yield World(tmp_path, cluster, ports, clock)


def _is_stopped(pid: int) -> bool:
    process = Process(pid)
    try:
        return process.stopped()
    finally:
        process.close()


def test_a_node_of_apaches_is_killed_restarted_paused_and_stopped_with_its_jvm(world: World) -> None:
    cluster = world.cluster
    cluster.listen([world.spec("ns-0"), world.spec("broker-a")])
    cluster.start("ns-0")
    cluster.start("broker-a")
    told = str(world.addresses["broker-a"])
    eventually(lambda: [row for row in world.rows("ns-0", "registration") if row["address"] == told])
    eventually(lambda: [row for row in world.rows("broker-a", "register") if row["type"] == "ok"])
    java = world.java("broker-a")
    cluster.kill("broker-a")
    assert not alive(java) or command(java) == ""
    eventually(lambda: [row for row in world.rows("ns-0", "broker_dropped") if row["broker_name"] == "broker-a"])
    cluster.restart("broker-a")
    eventually(lambda: [row for row in world.rows("broker-a", "register", 1) if row["type"] == "ok"])
    assert world.java("broker-a") != java
    name_server = world.java("ns-0")
    cluster.pause("ns-0")
    assert _is_stopped(name_server)
    cluster.resume("ns-0")
    assert not _is_stopped(name_server)
    before = len(world.rows("ns-0", "broker_dropped"))
    java = world.java("broker-a")
    cluster.stop("broker-a")
    assert not alive(java) or command(java) == ""
    assert world.rows("broker-a", "stopped", 1)
    eventually(lambda: len(world.rows("ns-0", "broker_dropped")) > before)
    assert world.rows("ns-0", "broker_dropped")[-1]["value"]["reason"] == "unregistered"
    os.kill(name_server, signal.SIGKILL)  # somebody else's doing: the node ends as its JVM does
    eventually(lambda: cluster.state("ns-0") is NodeState.GONE)


def test_a_jar_that_dies_at_its_start_is_told_with_its_last_line_and_nothing_is_left(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(NodeFailed) as failed:
        world.cluster.listen([world.spec("ns-0", listenPort=taken.getsockname()[1])])
    said = str(failed.value)
    assert said.startswith("ns-0 failed to listen: ns-0's Java process ended with exit status")
    assert "its last line: " in said
    assert "\n" not in said
    world.cluster.shutdown()
    assert not [p for p in family(os.getpid(), lambda _line: True) if "NamesrvStartup" in command(p.pid)]
