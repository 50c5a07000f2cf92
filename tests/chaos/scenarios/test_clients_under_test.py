"""`cluster.clients`: clients under test have profiles and links of their own."""

from typing import Any

import pytest

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.live.up import scenario_of
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.topology import NodeKind


def of(clients: dict[str, Any], **more: Any) -> Scenario:
    document = {
        "name": "x",
        "checks": ["routes_converge"],
        "cluster": {"clients": clients},
        "timers": {"time_scale": 1},
    }
    return parse(document | more, file="x.yaml")


def test_each_client_under_test_dials_every_server_over_links_of_its_own() -> None:
    topology = of({"go": "go", "node-1": None}).topology()
    assert topology.kinds["go"] is NodeKind.EXTERNAL
    assert "go" not in topology.nodes
    links = {str(link) for link in topology.parse_links("go <-> *")}
    assert links == {"go->ns-0", "go->ns-1", "go->ns-2", "go->broker-a", "go->broker-b", "go->broker-c"}
    assert "node-1->ns-0" in {str(link) for link in topology.links}


def test_its_links_may_lose_their_syns_which_those_of_external_cannot() -> None:
    entry = {"at_s": 1, "do": "syn_drop", "links": ["go <-> ns-0"]}
    assert of({"go": "go"}, timeline=[entry]).timeline


def test_up_has_them_too() -> None:
    scenario = scenario_of(name_servers=3, brokers=2, profile="4.9", time_scale=1, clients={"go": "go"})
    assert scenario.cluster.clients == {"go": "go"}
    with pytest.raises(ScenarioError, match="time_scale"):
        scenario_of(name_servers=3, brokers=2, profile="4.9", time_scale=10, clients={"go": "go"})
