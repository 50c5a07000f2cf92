"""What a test does to its cluster is a step of a timeline, checked as a scenario's, and done at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.experiment.session import RunningCluster
from nemesrv.chaos.faults.kinds import FAULTS, LINK_FAULTS
from nemesrv.chaos.scenarios.model import ActionModel, parse


class Acts:
    """An experiment that only notes what it was asked to do."""

    def __init__(self) -> None:
        self.scenario = parse({"checks": ["exercised"]}, file="mine.yaml")
        self.now_s = 0.0
        self.done: list[ActionModel] = []
        self.folder = SimpleNamespace()

    def act(self, action: ActionModel) -> None:
        self.done.append(action)

    def wait(self, seconds: float) -> None:
        self.now_s += seconds


def running() -> tuple[RunningCluster, Acts]:
    experiment: Any = Acts()
    return RunningCluster(experiment, lambda _folder, _scenario: (), end=lambda: None), experiment


@pytest.mark.parametrize("do", FAULTS)
def test_every_fault_of_a_timeline_can_be_injected_by_its_name(do: str) -> None:
    cluster, experiment = running()
    numbers: dict[str, Any] = {"latency": {"latency_ms": 5}, "bandwidth": {"rate_kb_s": 5}}.get(do, {})
    on_link = do in LINK_FAULTS
    cluster.inject(do, "broker-a <-> ns-0" if on_link else "broker-a", for_s=30 if on_link else None, **numbers)
    first = experiment.done[0]
    assert (type(first.what), first.links or first.nodes) == (
        FAULTS[do],
        ("broker-a <-> ns-0",) if on_link else ("broker-a",),
    )
    assert [(action.at_s, action.do) for action in experiment.done[1:]] == ([(30, "heal")] if on_link else [])
    assert cluster.scenario.timeline == tuple(experiment.done)


def test_a_step_that_makes_no_sense_changes_nothing() -> None:
    cluster, experiment = running()
    for do, target in (("explode", "broker-a"), ("cut", "broker-z <-> ns-0"), ("kill", "producer-0"), ("heal", "ns-0")):
        with pytest.raises(ScenarioError):
            cluster.inject(do, target)
    assert (experiment.done, cluster.scenario.timeline) == ([], ())
