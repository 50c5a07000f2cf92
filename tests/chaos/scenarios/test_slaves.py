"""How a scenario says which brokers have slaves, and what of them."""

from typing import Any

import pytest
import yaml

from nemesrv.chaos.experiment.nodes import NodePlan
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.topology import NodeKind
from nemesrv.remoting.node.network import Address
from tests.refusals import refusal


def scenario(**document: Any) -> Scenario:
    return parse({"checks": ["routes_are_true"], **document}, file="slaves.yaml")


def slaves(**document: Any) -> tuple[str, ...]:
    return scenario(**document).topology().of(NodeKind.SLAVE)


def test_each_broker_has_as_many_slaves_as_the_cluster_says_and_nodes_may_name_more():
    assert slaves(cluster={"brokers": 2}) == ()
    assert slaves(cluster={"brokers": 2, "slaves": 1}) == ("broker-a/1", "broker-b/1")
    assert slaves(cluster={"brokers": 2}, nodes={"broker-a/1": {}}) == ("broker-a/1",)
    assert slaves(cluster={"brokers": 1, "slaves": 1}, nodes={"broker-a/2": {}}) == ("broker-a/1", "broker-a/2")


def test_the_file_of_a_run_has_them_again():
    one = scenario(cluster={"brokers": 2, "slaves": 1}, nodes={"broker-b/2": {"name_servers": ["ns-0"]}})
    again = parse(yaml.safe_load(one.to_yaml()), file="again.yaml")
    assert again == one
    assert again.topology() == one.topology()


def test_faults_name_slaves_and_their_links():
    one = scenario(
        cluster={"brokers": 2, "slaves": 1},
        timeline=[
            {"at_s": 1, "do": "restart", "nodes": ["broker-a/1"]},
            {"at_s": 2, "do": "black_hole", "links": ["broker-b/1 <-> broker-b", "slaves <-> ns-0"]},
            {"at_s": 9, "do": "rolling_restart", "nodes": ["slaves"]},
        ],
    )
    assert one.timeline[0].nodes == ("broker-a/1",)
    rolled = [planned.action.nodes for planned in one.plan(1).actions if planned.series == 2]
    assert list(dict.fromkeys(rolled)) == [("broker-a/1",), ("broker-b/1",)]


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"nodes": {"broker-z/1": {}}}, "a slave is called by its master and its id, as in broker-a/1"),
        ({"cluster": {"slaves": 4}}, "a whole number from 0 to 3"),
        ({"cluster": {"slaves": 1}, "nodes": {"broker-a/1": {"cluster_name": "eu"}}}, "this key on its master"),
        ({"timeline": [{"at_s": 1, "do": "kill", "nodes": ["broker-a/1"]}]}, "broker-a/1"),
        ({"config": {"broker-a/1": {"registerNameServerPeriod": 20000}}}, "broker-a/1"),
    ],
)
def test_what_is_no_slave_is_refused_in_a_sentence(document: dict[str, Any], sentence: str):
    with refusal(sentence):
        scenario(**document)


def test_a_slave_registers_under_its_masters_name_and_cluster_with_its_own_settings():
    one = scenario(
        cluster={"brokers": 1, "slaves": 1},
        nodes={"broker-a": {"cluster_name": "eu"}},
        config={"brokers": {"registerNameServerPeriod": 20000}, "broker-a/1": {"registerNameServerPeriod": 40000}},
    )
    where = {name: Address("127.0.0.1", 9000 + number) for number, name in enumerate(one.topology().servers)}
    plan = NodePlan(scenario=one, listen=where, advertised=where)
    configs = [plan.factory(name, one.topology().kinds[name]).args[0] for name in ("broker-a", "broker-a/1")]  # type: ignore[attr-defined]
    assert [(c.broker_name, c.broker_id, c.broker_role, c.cluster_name, c.register_period_s) for c in configs] == [
        ("broker-a", 0, "ASYNC_MASTER", "eu", 20.0),
        ("broker-a", 1, "SLAVE", "eu", 40.0),
    ]


KILLED = {"at_s": 10, "do": "kill", "nodes": ["broker-a"]}
SWITCH = {"at_s": 20, "do": "switch", "nodes": ["broker-a/1"]}


def test_a_slave_is_made_master_where_its_own_was_killed():
    one = scenario(cluster={"brokers": 2, "slaves": 1}, timeline=[KILLED, SWITCH])
    assert one.topology().of(NodeKind.ADMIN) == ("admin",)
    assert one.switched_masters() == {"broker-a": "broker-a/1"}


def test_a_slave_that_was_made_master_may_be_started_again():
    again = {"at_s": 30, "do": "restart", "nodes": ["broker-a/1"]}
    one = scenario(cluster={"brokers": 2, "slaves": 1}, timeline=[KILLED, SWITCH, again])
    assert [step.do for step in one.timeline] == ["kill", "switch", "restart"]


@pytest.mark.parametrize(
    ("timeline", "sentence"),
    [
        ([SWITCH], "whose master broker-a was killed or stopped before"),
        ([KILLED, SWITCH, {"at_s": 30, "do": "restart", "nodes": ["broker-a"]}], "is not restarted after"),
        ([KILLED, SWITCH, {**SWITCH, "at_s": 40, "nodes": ["broker-a/2"]}], "one switch under the name broker-a"),
        ([KILLED, {**SWITCH, "nodes": ["broker-a/1", "broker-a/2"]}], "one slave"),
        ([{**SWITCH, "nodes": ["broker-b"]}], "is asked of broker-a/1"),
    ],
)
def test_two_masters_of_one_name_are_refused(timeline: list[dict[str, Any]], sentence: str):
    with refusal(sentence):
        scenario(cluster={"brokers": 2, "slaves": 2}, timeline=timeline)
