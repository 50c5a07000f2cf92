"""What a test does to its cluster is a step of a timeline, checked as a scenario's, and done at once."""

from types import SimpleNamespace
from typing import Any

import pytest

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.experiment.session import RunningCluster
from nemesrv.chaos.faults.kinds import FAULTS, LINK_FAULTS
from nemesrv.chaos.scenarios.action import ActionModel
from nemesrv.chaos.scenarios.loading import parse


class Acts:
    """An experiment that only notes what it was asked to do."""

    def __init__(self, clock: str, scale: float) -> None:
        document = {"checks": ["exercised"], "clock": clock, "timers": {"time_scale": scale}}
        self.scenario = parse(document, file="mine.yaml")
        self.now_s = 0.0
        self.done: list[ActionModel] = []
        self.folder = SimpleNamespace()

    def act(self, action: ActionModel) -> None:
        self.done.append(action)

    def wait(self, seconds: float) -> None:
        self.now_s += seconds


def running(clock: str = "virtual", scale: float = 10) -> tuple[RunningCluster, Acts]:
    experiment: Any = Acts(clock, scale)
    return RunningCluster(experiment, lambda _folder, _scenario: (), end=lambda: None), experiment


@pytest.mark.parametrize("do", FAULTS)
def test_every_fault_of_a_timeline_can_be_injected_by_its_name(do: str) -> None:
    cluster, experiment = running()
    numbers: dict[str, Any] = {"latency": {"latency_ms": 5}, "bandwidth": {"rate_kb_s": 5}}.get(do, {})
    on_link = do in LINK_FAULTS
    node = "ns-0" if do == "remove" else "broker-a"
    end = "heal" if on_link else {"kill": "restart", "stop": "restart", "pause": "resume"}.get(do)
    cluster.inject(do, "broker-a <-> ns-0" if on_link else node, for_s=30 if end else None, **numbers)
    first = experiment.done[0]
    assert type(first.what) is FAULTS[do]
    assert (first.links or first.nodes) == (("broker-a <-> ns-0",) if on_link else (node,))
    assert [(action.at_s, action.do) for action in experiment.done[1:]] == ([(30, end)] if end else [])
    assert all(action.nodes == first.nodes for action in experiment.done[1:])
    assert cluster.scenario.timeline == tuple(experiment.done)


def test_a_method_of_a_node_s_fault_takes_the_duration_that_a_scenario_s_entry_has() -> None:
    for do, ended_by in (("kill", "restart"), ("stop", "restart"), ("pause", "resume")):
        cluster, experiment = running()
        getattr(cluster, do)("broker-a", "ns-0", for_s=55)
        told = [(action.at_s, action.do, action.nodes) for action in experiment.done]
        assert told == [(0, do, ("broker-a", "ns-0")), (55, ended_by, ("broker-a", "ns-0"))]


def test_a_step_that_makes_no_sense_changes_nothing() -> None:
    cluster, experiment = running()
    for do, target in (("explode", "broker-a"), ("cut", "broker-z <-> ns-0"), ("kill", "prober"), ("heal", "ns-0")):
        with pytest.raises(ScenarioError):
            cluster.inject(do, target)
    assert (experiment.done, cluster.scenario.timeline) == ([], ())


@pytest.mark.parametrize(
    ("do", "target", "sentence"),
    [
        (
            "blackhole",
            "broker-a",
            r"^inject: do: 'blackhole' is not allowed; expected one of cut, .*; did you mean black_hole\?$",
        ),
        ("cut", "nope", "^cut: links: 'nope' is not allowed; expected "),
        ("kill", "broker-aa", r"^kill: nodes: 'broker-aa' is not allowed; expected .*; did you mean broker-a\?$"),
        (
            "packet_loss",
            "broker-a <-> ns-0",
            "^packet_loss: do: packet_loss is not allowed; expected a fault that a proxy can",
        ),
    ],
)
def test_a_wrong_step_is_told_by_its_name_as_the_tests_own_line(do: str, target: str, sentence: str) -> None:
    cluster, _ = running("real")
    with pytest.raises(ScenarioError, match=sentence) as told:
        cluster.inject(do, target)
    shown = str(told.getrepr(style="long"))
    assert "session.py" not in shown
    assert "model.py" not in shown
    assert "cluster.inject(do, target)" in shown


def test_a_check_that_does_not_exist_ends_nothing() -> None:
    cluster, _ = running()
    with pytest.raises(ScenarioError, match=r"^check: checks: 'route_converge' is .*; did you mean routes_converge\?$"):
        cluster.must_be_valid("route_converge")
    cluster.wait(1)
    assert cluster.verdicts is None
