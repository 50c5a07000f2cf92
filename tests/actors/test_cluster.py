"""Real Ray actors: each node its own process, and everything that can be done to one by name."""

import os
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tenacity

from nemesrv.actors.actor import NodeSpec
from nemesrv.actors.cluster import Cluster, ClusterError, NodeState
from nemesrv.actors.processes import Process, command, family
from nemesrv.actors.ray_host import RayHost
from nemesrv.actors.watch import Alarm, Death, ProcessDied, ProcessWatch
from nemesrv.chaos.faults.link_faults import BlackHole
from nemesrv.chaos.faults.ports import PortHolder
from nemesrv.chaos.faults.toxiproxy import ToxiproxyServer
from nemesrv.chaos.faults.toxiproxy_links import LinkFaults
from nemesrv.chaos.history.files import read_raw
from nemesrv.chaos.history.recorder import LagProbe, RecorderSpec
from nemesrv.chaos.topology import Link
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address

from ..chaos.faults.sockets import Rows, dial, is_quiet, is_refused, read_exactly
from .nodes import TinyNode

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def host() -> Iterator[RayHost]:
    with RayHost(workers=5) as ray_host:
        yield ray_host


def commands_below(pid: int) -> list[str]:
    processes = family(pid, lambda _: True)
    found = [command(process.pid) for process in processes]
    for process in processes:
        process.close()
    return found


@pytest.fixture(scope="module")
def ports() -> Iterator[PortHolder]:
    with PortHolder() as holder:
        yield holder


class Nodes:
    """Specs of tiny nodes over one run folder."""

    def __init__(self, folder: Path, ports: PortHolder) -> None:
        self.folder, self._ports, self.clock = folder, ports, RealClock.starting_now(10)

    def spec(self, name: str, *, listens: bool = True, fails_in: str = "", **changes: Any) -> NodeSpec:
        address = self._ports.take() if listens else None
        return NodeSpec(
            name=name,
            role="broker",
            factory=partial(TinyNode, listen=address, fails_in=fails_in),
            clock=self.clock,
            recorder_spec=RecorderSpec.for_run(self.folder, name, "broker", 0, self.clock),
            data_dir=self.folder / "data" / name,
            log_file=self.folder / "logs" / f"{name}.log",
            **changes,
        )

    def events(self, name: str, incarnation: int = 0) -> list[str]:
        """What the node has recorded; waits for the first event, which may be in its buffer for a moment."""
        return [row["event"] for row in self._rows(name, incarnation)]

    def started_ms(self, name: str) -> float:
        """When its first process began to work."""
        return float(self._rows(name, 0)[0]["time_ms"])

    def _rows(self, name: str, incarnation: int) -> list[dict[str, Any]]:
        path = self.folder / "history" / "_raw" / f"{name}.{incarnation}.jsonl"
        found: list[dict[str, Any]] = []
        for attempt in tenacity.Retrying(stop=tenacity.stop_after_delay(5), wait=tenacity.wait_fixed(0.01)):
            with attempt:
                found = [dict(row) for row in read_raw(path) if row is not None]
                assert found
        return found


@pytest.fixture
def nodes(tmp_path: Path, ports: PortHolder) -> Nodes:
    return Nodes(tmp_path, ports)


@pytest.fixture
def cluster(host: RayHost, nodes: Nodes) -> Iterator[Cluster]:
    with Cluster(nodes.clock) as running:
        yield running


def up(cluster: Cluster, *specs: NodeSpec) -> dict[str, Address | None]:
    addresses = cluster.listen(specs)
    cluster.start()
    return addresses


def served(address: Address | None) -> Address:
    assert address is not None
    return address


def pid_of(cluster: Cluster, name: str) -> int:
    pid = cluster.pid(name)
    assert pid is not None
    return pid


@pytest.mark.nightly("none: what Ray starts changes with its version alone, which constraints.txt pins")
def test_ray_has_no_process_that_nobody_needs(host: RayHost):
    programs = {Path(part).name for line in commands_below(os.getpid()) for part in line.split()}
    assert {"gcs_server", "raylet"} <= programs
    assert not {"monitor.py", "log_monitor.py"} & programs


def test_each_node_has_its_own_process_on_uvloop(cluster: Cluster, nodes: Nodes):
    addresses = up(cluster, nodes.spec("a"), nodes.spec("b"), nodes.spec("c", listens=False))
    assert cluster.names == ("a", "b", "c")
    assert addresses["c"] is None
    places = [cluster.call(name, "where") for name in cluster.names]
    assert [pid for pid, _, _ in places] == [cluster.pid(name) for name in cluster.names]
    assert len({os.getpid(), *(pid for pid, _, _ in places)}) == 4
    assert {loop for _, _, loop in places} == {"uvloop"}


def test_nodes_reach_each_other_only_through_their_links_which_outlive_a_restart(cluster: Cluster, nodes: Nodes):
    addresses = cluster.listen([nodes.spec("server"), nodes.spec("client", listens=False)])
    known_as = Address("10.0.0.1", 9876)
    cluster.redial("client", {known_as: served(addresses["server"])})
    cluster.start()
    cluster.call("client", "dial", known_as)
    assert cluster.call("client", "ask", b"hello") == b"hello"
    assert cluster.submit("client", "ask", b"again").result(10) == b"again"
    cluster.kill("client")
    cluster.restart("client")
    cluster.call("client", "dial", known_as)
    assert cluster.call("client", "ask", b"hello") == b"hello"


def test_a_nodes_own_exception_comes_through_and_its_stderr_is_in_its_log(cluster: Cluster, nodes: Nodes):
    up(cluster, nodes.spec("a"))
    with pytest.raises(LookupError, match="nothing here"):
        cluster.call("a", "complain")
    text = (nodes.folder / "logs" / "a.log").read_text()
    assert "nemesrv.a: a works" in text
    assert "a stray complaint" in text


def test_a_killed_node_is_gone_at_once_and_comes_back_over_its_files_and_port(cluster: Cluster, nodes: Nodes):
    address = served(up(cluster, nodes.spec("a", probe=LagProbe))["a"])
    assert nodes.events("a")[0] == "started"
    pid, before_ms = pid_of(cluster, "a"), nodes.clock.monotonic_s() * 1000
    killed_ms = cluster.kill("a")
    assert before_ms <= killed_ms <= nodes.clock.monotonic_s() * 1000
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert (cluster.state("a"), cluster.pid("a")) == (NodeState.GONE, None)
    assert is_refused(address)
    assert killed_ms < cluster.restart("a")
    assert (cluster.address("a"), cluster.incarnation("a"), cluster.state("a")) == (address, 1, NodeState.RUNNING)
    assert pid_of(cluster, "a") != pid
    assert cluster.call("a", "starts") == 2
    assert nodes.events("a", 1)[0] == "started"
    assert "stopped" not in nodes.events("a")


def test_a_paused_node_keeps_its_connections_and_answers_when_resumed(cluster: Cluster, nodes: Nodes):
    address = served(up(cluster, nodes.spec("a"))["a"])
    with dial(address) as sock:
        sock.sendall(b"1")
        assert read_exactly(sock, 1) == b"1"
        cluster.pause("a")
        assert cluster.state("a") is NodeState.PAUSED
        sock.sendall(b"2")
        assert is_quiet(sock)
        with pytest.raises(ClusterError, match="a is paused: resume it first"):
            cluster.call("a", "number")
        cluster.resume("a")
        assert read_exactly(sock, 1) == b"2"
    assert cluster.call("a", "starts") == 1


def test_a_stopped_node_has_left_cleanly(cluster: Cluster, nodes: Nodes):
    address = served(up(cluster, nodes.spec("a"))["a"])
    cluster.stop("a")
    assert nodes.events("a") == ["started", "topic", "stopped"]
    assert is_refused(address)
    with pytest.raises(ClusterError, match="a is not running: restart it first"):
        cluster.stop("a")


def test_restarting_a_node_that_runs_stops_it_first(cluster: Cluster, nodes: Nodes):
    up(cluster, nodes.spec("a"))
    cluster.restart("a")
    assert nodes.events("a") == ["started", "topic", "stopped"]
    assert cluster.call("a", "starts") == 2


def test_a_process_that_ended_by_itself_is_noticed(cluster: Cluster, nodes: Nodes):
    up(cluster, nodes.spec("a"))
    process = Process(pid_of(cluster, "a"))
    process.send(signal.SIGKILL)
    assert process.gone(5)
    process.close()
    assert cluster.state("a") is NodeState.GONE
    cluster.restart("a")
    assert cluster.call("a", "starts") == 2


def test_a_node_that_dies_wakes_whoever_waits_and_a_planned_end_does_not(host: RayHost, nodes: Nodes):
    alarm, dead = Alarm(), []

    def told(death: Death) -> bool:
        dead.append((death.name, death.exit_code))
        return False

    with (
        ProcessWatch(nodes.clock, alarm=alarm, told=told) as watch,
        Cluster(nodes.clock, watch=watch, alarm=alarm) as cluster,
    ):
        for name, pid in host.servers().items():
            watch.add(name, pid, carries_others=True)
        up(cluster, nodes.spec("a"), nodes.spec("b"), nodes.spec("c", listens=False))
        cluster.kill("a")
        cluster.restart("a")
        cluster.stop("b")
        cluster.restart("b")
        cluster.pause("a")
        cluster.restart("a")
        alarm.check()
        waits = cluster.submit("c", "never")
        os.kill(pid_of(cluster, "a"), signal.SIGKILL)
        with pytest.raises(ProcessDied, match=r"a \(pid \d+\) was killed by SIGKILL from outside the scenario at "):
            waits.result(30)
        with pytest.raises(ProcessDied, match="a "):
            cluster.call("c", "never")
    assert dead == [("a", -signal.SIGKILL)]


def test_dials_are_refused_when_a_process_is_gone_and_admitted_when_the_next_one_listens(host: RayHost, nodes: Nodes):
    class Notes:
        def __init__(self) -> None:
            self.said: list[tuple[str, str, int | None]] = []

        def refuse(self, name: str, pid: int) -> None:
            assert cluster.state(name) is NodeState.GONE
            self.said.append(("refuse", name, pid))

        def make_way(self, name: str) -> None:
            self.said.append(("make way", name, None))

        def admit(self, name: str, pid: int) -> None:
            assert cluster.address(name) is not None
            self.said.append(("admit", name, pid))

    dials = Notes()
    effects: list[tuple[str, str, int | None]] = []
    with Cluster(nodes.clock, dials=dials) as cluster:
        up(cluster, nodes.spec("a"))
        first = pid_of(cluster, "a")
        cluster.kill("a")
        cluster.restart("a", on_effect=lambda: effects.append(dials.said[-1]))
        second = pid_of(cluster, "a")
        cluster.pause("a")
        cluster.resume("a")
        cluster.stop("a")
    assert dials.said == [
        ("admit", "a", first), ("refuse", "a", first),
        ("make way", "a", None), ("admit", "a", second), ("refuse", "a", second),
    ]  # fmt: skip
    assert effects == [("admit", "a", second)]


@pytest.mark.parametrize("step", ["listen", "start"])
def test_a_node_that_cannot_come_up_is_named_with_its_reason(cluster: Cluster, nodes: Nodes, step: str):
    with pytest.raises(ClusterError, match=rf"bad failed to {step}: OSError: .*planted in {step}"):
        up(cluster, nodes.spec("bad", fails_in=step))


def test_a_port_in_use_is_named(cluster: Cluster, nodes: Nodes):
    spec = nodes.spec("a")
    up(cluster, spec)
    other = nodes.spec("b", listens=False)
    with pytest.raises(ClusterError, match=r"b failed to listen: OSError.*in use"):
        cluster.listen([NodeSpec(name="b", role="broker", factory=spec.factory, clock=other.clock)])


def test_unknown_and_doubled_names_are_refused(cluster: Cluster, nodes: Nodes):
    up(cluster, nodes.spec("a"))
    with pytest.raises(ClusterError, match="no node called z; there are a"):
        cluster.kill("z")
    with pytest.raises(ClusterError, match="called a already"):
        cluster.listen([nodes.spec("a")])


def test_shutting_down_ends_every_process_paused_ones_too_and_may_be_repeated(host: RayHost, nodes: Nodes):
    cluster = Cluster(nodes.clock)
    up(cluster, nodes.spec("a"), nodes.spec("b"))
    processes = [Process(pid_of(cluster, name)) for name in cluster.names]
    cluster.pause("b")
    threads = [threading.Thread(target=cluster.shutdown) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    cluster.shutdown()
    assert all(process.gone(5) for process in processes)
    for process in processes:
        process.close()
    with pytest.raises(ClusterError, match="the cluster is shut down"):
        cluster.listen([nodes.spec("c")])


@pytest.mark.toxiproxy
def test_peers_of_a_killed_node_see_the_close(
    cluster: Cluster, nodes: Nodes, ports: PortHolder, tmp_path: Path
) -> None:
    with ToxiproxyServer(tmp_path / "toxiproxy.log", ports=ports) as api, LinkFaults(api, nodes.clock, Rows()) as links:
        addresses = cluster.listen([nodes.spec("server"), nodes.spec("client", listens=False)])
        server, link = served(addresses["server"]), Link("client", "server")
        links.open({link: server}, ports)
        cluster.redial("client", links.dials_of("client"))
        cluster.start()
        cluster.call("client", "dial", server)
        assert cluster.call("client", "ask", b"hello") == b"hello"
        closed = cluster.submit("client", "closed_at_ms")
        killed_ms = cluster.kill("server")
        assert closed.result(10) - killed_ms < 1000 * nodes.clock.scale
        cluster.restart("server")
        cluster.call("client", "dial", server)
        with links.fault(BlackHole(), [link]):
            held = cluster.submit("client", "ask", b"held")
            assert not cluster.call("client", "is_cut_off")
            cluster.pause("server")
        assert not held.done()
        assert not cluster.call("client", "is_cut_off")
        cluster.resume("server")
        assert held.result(10) == b"held"
