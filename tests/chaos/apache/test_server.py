"""Apache's server as a node, without Java: what its process begins with, and the files that it writes."""

import signal
import subprocess
import sys

import pytest

from nemesrv.chaos.experiment.nodes import NodePlan
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.topology import NodeKind
from nemesrv.remoting.node.network import Address

_SCENARIO = {
    "cluster": {"name_servers": 2, "brokers": 1, "implementation": "apache-5.3.3"},
    "nodes": {"ns-1": {"implementation": "ours"}, "broker-a": {"cluster_name": "eu", "name_servers": ["ns-1"]}},
    "config": {"brokers": {"registerNameServerPeriod": 20_000}},
    "checks": ["routes_converge"],
}


def _plan() -> NodePlan:
    scenario = parse(_SCENARIO, file="x.yaml")
    servers = scenario.topology().servers
    listen = {name: Address("127.0.0.1", 20_000 + index) for index, name in enumerate(servers)}
    told = {name: Address("127.0.0.1", 21_000 + index) for index, name in enumerate(servers)}
    return NodePlan(scenario=scenario, listen=listen, advertised=told)


def test_a_broker_of_apaches_begins_with_what_the_scenario_says() -> None:
    plan = _plan().factory("broker-a", NodeKind.BROKER).args[0]  # type: ignore[attr-defined]
    assert (plan.implementation, plan.broker_name, plan.cluster_name) == ("apache-5.3.3", "broker-a", "eu")
    assert plan.name_servers == {"ns-1": Address("127.0.0.1", 21_001)}
    assert plan.settings == {"registerNameServerPeriod": 20_000}
    assert (plan.listen.port, plan.advertised.port) == (20_002, 21_002)


def test_a_node_that_is_ours_stays_ours() -> None:
    made = _plan().factory("ns-1", NodeKind.NAME_SERVER)
    assert made.func.__name__ == "name_server"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("code", "ends"), [(-signal.SIGKILL, -signal.SIGKILL), (-signal.SIGTERM, -signal.SIGTERM), (3, 3), (0, 1)]
)
def test_a_node_ends_as_its_java_process_did(code: int, ends: int) -> None:
    script = f"from nemesrv.chaos.apache.jvm import end_as; end_as({code})"
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == ends
