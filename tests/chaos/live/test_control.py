"""What `nemesrv fault` asks for is done in the words of a timeline; what cannot be is one sentence and a status."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from nemesrv.chaos.commands.fault import ask, newest_up
from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.experiment.session import RunningCluster, session
from nemesrv.chaos.experiment.virtual.stage import VirtualStage
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.live import DOOR
from nemesrv.chaos.live.fault_door import FaultDoor
from nemesrv.chaos.live.up import scenario_of
from tests.refusals import is_told

_SAID = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text(encoding="utf-8"))
REFUSED = [pytest.param(where, case, id=case["says"]) for where, cases in _SAID.items() for case in cases]


class Up:
    """A cluster on the virtual clock, and its door."""

    def __init__(self, cluster: RunningCluster, control: FaultDoor) -> None:
        self.cluster, self.control = cluster, control

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        answer = self.control.answer(json.dumps({"do": do, **request}).encode())
        answer.pop("at_s", None)
        return answer

    def timers(self) -> None:
        """Every --for that was asked is over."""
        for timer in tuple(self.control._timers):
            timer.join(10)

    def rows(self, *events: str) -> list[tuple[Any, ...]]:
        self.cluster.experiment.end()
        self.cluster.leave()
        fields = ("event", "fault_id", "source", "target", "phase")
        rows = read_rows(self.cluster.run_dir)
        return [tuple(row[name] for name in fields) for row in rows if row["event"] in events]


@contextmanager
def running(folder: Path, stage: VirtualStage, *, name_servers: int, brokers: int) -> Iterator[Up]:
    scenario = scenario_of(name_servers=name_servers, brokers=brokers, profile="4.9", time_scale=1)
    of = session(scenario, RunFolder.create("up", folder), stage, lambda _run, _as_run: [])
    with of as cluster, FaultDoor(cluster) as control:
        yield Up(cluster, control)


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    with running(tmp_path / "run", VirtualStage(), name_servers=2, brokers=1) as found:
        yield found


def test_a_fault_of_links_and_one_of_a_node_begin_are_listed_and_end(up: Up) -> None:
    assert up.ask("black_hole", links=["broker-a <-> ns-0"]) == {"begun": ["black_hole-1"]}
    assert up.ask("kill", nodes=["ns-1"]) == {"begun": ["kill-1"]}
    assert up.ask("list")["faults"] == [
        {"fault_id": "black_hole-1", "fault": "black_hole", "on": "broker-a->ns-0"},
        {"fault_id": "kill-1", "fault": "kill", "on": "ns-1"},
    ]
    assert up.ask("heal") == up.ask("restart", nodes=["ns-1"]) == {"begun": []}
    assert up.ask("list")["faults"] == []
    assert up.rows("fault", "gone") == [
        ("fault", "black_hole-1", "broker-a", "ns-0", "start"),
        ("fault", "kill-1", "ns-1", None, "start"),
        ("gone", "kill-1", "ns-1", None, None),
        ("fault", "black_hole-1", "broker-a", "ns-0", "end"),
        ("fault", "kill-1", "ns-1", None, "end"),
    ]
    assert [action.do for action in up.cluster.scenario.timeline] == ["black_hole", "kill", "heal", "restart"]


def test_what_lasts_for_a_time_ends_alone(up: Up) -> None:
    up.ask("cut", links=["broker-a <-> ns-1"])
    up.ask("latency", links=["broker-a <-> ns-0"], latency_ms=5, for_s=0.01)
    up.timers()
    assert [each["fault_id"] for each in up.ask("list")["faults"]] == ["cut-1"]
    up.ask("heal")
    up.ask("pause", nodes=["broker-a"], for_s=0.01)
    up.timers()
    assert up.ask("list")["faults"] == []
    done = [action.do for action in up.cluster.scenario.timeline]
    assert done == ["cut", "latency", "heal", "heal", "pause", "resume"]


def test_a_heal_may_name_links_or_faults(up: Up) -> None:
    up.ask("cut", links=["broker-a <-> ns-0", "broker-a <-> ns-1"])
    up.ask("latency", links=["broker-a <-> ns-1"], latency_ms=5)
    up.ask("heal", links=["broker-a <-> ns-0"])
    up.ask("heal", faults=["latency-2"])
    left = [(each["fault_id"], each["on"]) for each in up.ask("list")["faults"]]
    assert left == [("cut-1", "broker-a->ns-1")]
    assert "a fault of links that lasts then (cut-1)" in up.ask("heal", faults=["latency-2"])["error"]


def test_what_was_ended_before_its_time_is_not_ended_again(up: Up) -> None:
    up.ask("pause", nodes=["broker-a"], for_s=0.05)
    up.ask("resume", nodes=["broker-a"])
    up.ask("pause", nodes=["broker-a"])
    up.timers()
    assert up.ask("list")["faults"] == [{"fault_id": "pause-2", "fault": "pause", "on": "broker-a"}]


@pytest.fixture
def cannot(request: pytest.FixtureRequest) -> Up:
    """The cluster of `request.param`, a heading of refused.yaml."""
    found: Up = request.getfixturevalue("on_hosts" if "hosts" in request.param else "up")
    return found


@pytest.mark.parametrize(("cannot", "case"), REFUSED, indirect=["cannot"])
def test_what_cannot_be_is_one_sentence_and_changes_nothing(cannot: Up, case: dict[str, Any]) -> None:
    answer = cannot.control.answer(json.dumps({key: case[key] for key in case if key != "says"}).encode())
    assert answer["status"] == 2
    assert is_told(f"nemesrv fault: {case['says']}", answer["error"]), answer["error"]
    assert cannot.ask("list")["faults"] == []
    assert cannot.cluster.scenario.timeline == ()


def test_a_request_of_another_version_is_refused(up: Up) -> None:
    answer = up.control.answer(b'{"nodes": ["ns-0"]}')
    assert answer == {"error": "a request that this version of nemesrv does not know", "status": 2}


class ThreeHosts(VirtualStage):
    """Nodes of a kind are on a, b and c in turn, as a Ray cluster would have them."""

    def host_name(self, node: str) -> str | None:
        kind, _, which = node.rpartition("-")
        return {"0": "a", "a": "a", "1": "b", "b": "b"}.get(which, "c") if kind in ("ns", "broker") else None


@pytest.fixture
def on_hosts(tmp_path: Path) -> Iterator[Up]:
    with running(tmp_path / "run", ThreeHosts(), name_servers=3, brokers=2) as found:
        yield found


def test_a_whole_host_is_lost_and_returns_as_the_ordinary_faults_that_this_consists_of(on_hosts: Up) -> None:
    lost = on_hosts.ask("lose_host", hosts=["b"])
    assert lost == {"begun": ["lose_host-1", "kill-1", "kill-2"]}
    hit = {each["fault_id"]: set(each["on"].split(", ")) for each in on_hosts.ask("list")["faults"]}
    assert hit["lose_host-1"] >= {"broker-a->ns-1", "broker-b->ns-0", "external->broker-b"}
    assert not hit["lose_host-1"] & {"broker-b->ns-1", "broker-a->ns-0"}
    assert (hit["kill-1"], hit["kill-2"]) == ({"ns-1"}, {"broker-b"})
    assert on_hosts.ask("return_host", hosts=["b"]) == {"begun": []}
    assert on_hosts.ask("list")["faults"] == []
    done = [(action.do, action.nodes) for action in on_hosts.cluster.scenario.timeline]
    on_b = ("ns-1", "broker-b")
    assert done == [("black_hole", ()), ("kill", on_b), ("heal", ()), ("restart", on_b)]


def test_a_host_that_was_healed_by_hand_returns_with_what_is_left(on_hosts: Up) -> None:
    on_hosts.ask("lose_host", hosts=["b"])
    on_hosts.ask("heal")
    on_hosts.ask("return_host", hosts=["b"])
    assert [action.do for action in on_hosts.cluster.scenario.timeline] == ["black_hole", "kill", "heal", "restart"]
    assert on_hosts.ask("isolate_host", hosts=["c"], for_s=0.01) == {"begun": ["isolate_host-3"]}
    on_hosts.ask("pause_host", hosts=["a"], for_s=0.01)
    on_hosts.timers()
    assert on_hosts.ask("list")["faults"] == []
    assert on_hosts.cluster.scenario.timeline[-1].do in ("heal", "resume")


def test_a_node_that_somebody_else_killed_is_started_again_as_one_of_ours(up: Up) -> None:
    experiment = up.cluster.experiment
    experiment._cluster.kill("ns-1")
    experiment.processes.found_gone("ns-1", "unplanned-1")
    assert up.ask("list")["faults"] == [{"fault_id": "unplanned-1", "fault": "kill", "on": "ns-1"}]
    assert "it is killed already" in up.ask("kill", nodes=["ns-1"])["error"]
    assert up.ask("restart", nodes=["ns-1"]) == {"begun": []}
    assert up.rows("fault") == [("fault", "unplanned-1", "ns-1", None, "end")]


def test_the_door_is_in_the_run_folder_while_the_cluster_is_up(up: Up) -> None:
    up.control.open()
    run_dir = up.cluster.run_dir
    assert newest_up(run_dir.parent) == run_dir
    assert ask(run_dir, {"do": "list"})["faults"] == []
    up.control.__exit__(None, None, None)
    assert not (run_dir / DOOR).exists()
    for asked in (lambda: ask(run_dir, {"do": "list"}), lambda: newest_up(run_dir.parent)):
        with pytest.raises(HarnessError, match="no cluster is up in"):
            asked()
