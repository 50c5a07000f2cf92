"""How a scenario says which brokers have slaves, and what of them."""

from typing import Any

import yaml

from nemesrv.chaos.experiment.nodes import NodePlan
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.topology import NodeKind
from nemesrv.remoting.node.network import Address


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


def test_a_slave_that_was_made_master_may_be_started_again():
    again = {"at_s": 30, "do": "restart", "nodes": ["broker-a/1"]}
    one = scenario(cluster={"brokers": 2, "slaves": 1}, timeline=[KILLED, SWITCH, again])
    assert [step.do for step in one.timeline] == ["kill", "switch", "restart"]
