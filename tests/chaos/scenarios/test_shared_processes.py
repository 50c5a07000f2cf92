"""`clients_per_process`: who shares a process with whom, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.explain import explanation
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.scenarios.placement import Offer, PlacementModel, placed

CROWD = {"producers": 60, "consumers": 45, "clients_per_process": 50}

TOO_MANY = {"producers": 2000, "consumers": 2000, "clients_per_process": 2}
UNDER_TEST = {"cluster": {"clients": {"clients-1": None}}, "timers": {"time_scale": 1}}


def hit(do: str, node: str) -> dict[str, Any]:
    return {"timeline": [{"at_s": 1, "do": do, "nodes": [node]}]}


def scenario(workload: dict[str, Any] | None = None, **document: Any) -> Scenario:
    return parse({"checks": ["routes_are_true"], "workload": workload or CROWD, **document}, file="x.yaml")


def test_producers_and_consumers_are_dealt_out_in_turn_and_nobody_else_shares() -> None:
    processes = scenario().topology().processes
    assert {name: len(nodes) for name, nodes in processes.items()} == {
        "clients-0": 35,
        "clients-1": 35,
        "clients-2": 35,
    }
    for nodes in processes.values():
        assert sum(node.startswith("producer-") for node in nodes) == 20
        assert sum(node.startswith("consumer-") for node in nodes) == 15
    assert scenario().topology().process_of["producer-4"] == "clients-1"


def test_without_it_every_node_has_a_process_of_its_own() -> None:
    assert scenario({"producers": 2}).topology().processes == {}


def test_it_is_written_back_and_explained() -> None:
    assert "clients_per_process: 50" in scenario().to_yaml()
    assert explanation(scenario())["processes"] == {"clients-0": 35, "clients-1": 35, "clients-2": 35}


@pytest.mark.parametrize("do", ["kill", "stop"])
def test_one_of_many_may_be_ended_and_started_again(do: str) -> None:
    timeline = [{"at_s": 1, "do": do, "nodes": ["producer-33"]}, {"at_s": 9, "do": "restart", "nodes": ["producer-33"]}]
    assert len(scenario(timeline=timeline).timeline) == 2


def test_all_of_a_process_may_be_paused_together() -> None:
    mates = scenario().topology().processes["clients-1"]
    timeline = [{"at_s": 1, "do": do, "nodes": list(mates)} for do in ("pause", "resume")]
    assert len(scenario(timeline=timeline).timeline) == 2


def test_who_shares_a_process_is_on_one_host_and_processes_are_on_hosts_in_turn() -> None:
    topology = scenario().topology()
    offers = [Offer("a"), Offer("b")]
    at = placed(topology, PlacementModel(), offers, file="x.yaml")
    hosts = [{at[node] for node in nodes} for nodes in topology.processes.values()]
    assert hosts == [{"a"}, {"b"}, {"a"}]
    apart = PlacementModel.model_validate({"producers": {"host": "a"}, "consumers": {"host": "b"}})
    with pytest.raises(
        ScenarioError, match="placement: consumer-0 on b is not allowed; expected on a, as producer-0: clients tha"
    ):
        placed(topology, apart, offers, file="x.yaml")


@pytest.mark.parametrize(
    ("workload", "document", "said"),
    [
        ({**CROWD, "clients_per_process": 0}, {}, "clients_per_process: 0 is not allowed; expected "
        "a whole number from 1 to"),
        ({**CROWD, "clients_per_process": 1}, {}, "producers: 60 is not allowed; expected "
        "a whole number from 0 to 32, or"),
        ({"consumers": 33}, {}, "consumers: 33 is not allowed; expected "
        "a whole number from 0 to 32, or more beside clients_"),
        (TOO_MANY, {}, "workload.clients_per_process: 2 is not allowed; expected "
        "at least 63, so that 4000 clients have 64"),
        (CROWD, hit("pause", "consumer-1"), "timeline.0.nodes: pause of consumer-1 alone is not allowed; expected "
        "pause of all"),
        (CROWD, hit("kill", "producer-60"), "producer-0 to producer-59, consumer-0 to consumer-44"),
        (CROWD, UNDER_TEST, "cluster.clients.clients-1: 'clients-1' is not allowed; expected a name that no node"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(workload: dict[str, Any], document: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(workload, **document)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400
