"""`implementation` in a scenario: who is what, and what follows from it."""

from typing import Any

import pytest
from click.testing import CliRunner

from nemesrv.chaos.apache.distribution import ProgramPart
from nemesrv.chaos.commands.explain import explain
from nemesrv.chaos.errors import HarnessError, ScenarioError
from nemesrv.chaos.live.up import scenario_of
from nemesrv.chaos.preflight import bring, programs_of
from nemesrv.chaos.runner import Options, run_all
from nemesrv.chaos.scenarios.loading import find, parse
from nemesrv.remoting.node.profile import Profile
from tests.refusals import refusal

CHECKS = ["routes_converge"]


def _parse(cluster: dict[str, Any], **more: Any) -> Any:
    return parse({"cluster": cluster, "checks": CHECKS, **more}, file="x.yaml")


def test_the_cluster_says_it_of_servers_and_nodes_of_themselves() -> None:
    nodes = {"ns-1": {"implementation": "apache-4.9.7"}, "broker-a": {"implementation": "ours"}}
    nodes["producer-0"] = {"implementation": "apache-4.9.8"}
    scenario = _parse({"name_servers": 2, "brokers": 2, "implementation": "apache-5.3.3"}, nodes=nodes)
    assert scenario.implementations() == {
        "ns-0": "apache-5.3.3",
        "ns-1": "apache-4.9.7",
        "broker-b": "apache-5.3.3",
        "producer-0": "apache-4.9.8",
    }
    assert scenario.implementation_of("broker-a") == "ours"
    assert scenario.implementation_of("consumer-0") == "ours"


def test_the_workload_says_it_of_producers_and_consumers() -> None:
    scenario = _parse(
        {"name_servers": 1, "brokers": 1},
        workload={"producers": 1, "consumers": 2, "implementation": "apache-5.3.3"},
        nodes={"consumer-1": {"implementation": "ours"}},
    )
    assert scenario.implementations() == {"producer-0": "apache-5.3.3", "consumer-0": "apache-5.3.3"}


def test_the_profile_follows_from_it_unless_it_is_said() -> None:
    assert _parse({"implementation": "apache-5.3.3"}).profile is Profile.V5_X
    assert _parse({"implementation": "apache-4.9.7"}).profile is Profile.V4_9
    assert _parse({"implementation": "apache-5.3.3", "profile": "4.9"}).profile is Profile.V4_9


def test_the_pace_is_one_that_jvms_go_along_with_unless_it_is_said() -> None:
    nodes = {"ns-0": {"implementation": "apache-4.9.7"}}
    assert _parse({}).timers.time_scale == 10
    assert _parse({"implementation": "apache-5.3.3"}).timers.time_scale == 3
    assert _parse({}, nodes=nodes).timers.time_scale == 3
    assert _parse({}, nodes=nodes, timers={"time_scale": 10}).timers.time_scale == 10


def test_a_scenario_as_run_reads_as_it_was() -> None:
    scenario = _parse({"implementation": "apache-5.3.3"}, nodes={"ns-0": {"implementation": "ours"}})
    import yaml

    assert parse(yaml.safe_load(scenario.to_yaml()), file="x.yaml") == scenario


def test_the_command_says_it_over_the_file_and_the_profile_follows() -> None:
    scenario = find("smoke", (), "apache-5.3.3")
    assert (scenario.cluster.implementation, scenario.profile) == ("apache-5.3.3", Profile.V5_X)
    assert find("smoke", ("cluster.profile='4.9'",), "apache-5.3.3").profile is Profile.V4_9
    assert find("smoke", (), "ours").implementations() == {}


def test_a_setting_that_java_lets_be_set_is_taken() -> None:
    scenario = _parse({"implementation": "apache-5.3.3"}, config={"ns-0": {"scanNotActiveBrokerInterval": 2000}})
    assert scenario.settings()["ns-0"] == {"scanNotActiveBrokerInterval": 2000}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("apache-9", "--implementation: 'apache-9' is not allowed; expected ours, apache-VERSION"),
        ("apache:/nowhere", "a distribution of RocketMQ: /nowhere is no RocketMQ distribution"),
    ],
)
def test_the_command_is_told_what_is_wrong_with_it(text: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=r"^--implementation") as refused:
        find("smoke", (), text)
    assert said in str(refused.value)


def test_where_it_cannot_run_nothing_is_started() -> None:
    with refusal("clock: virtual is not allowed; expected the real clock where a node is apache-4.9.7"):
        run_all([_parse({"implementation": "apache-4.9.7"})], Options(virtual=True))


def test_a_host_is_asked_for_the_programs_of_its_own_nodes() -> None:
    scenario = _parse({"implementation": "apache-4.9.7"}, nodes={"ns-1": {"implementation": "ours"}})
    servers = (("apache-4.9.7", ProgramPart.SERVERS),)
    assert programs_of(scenario) == programs_of(scenario, {"ns-0", "ns-1"}) == servers
    assert programs_of(scenario, {"ns-1", "producer-0"}) == ()
    upgraded = find("upgrade-clients")
    assert programs_of(upgraded, {"ns-1"}) == (*servers, ("apache-5.3.3", ProgramPart.SERVERS))
    assert programs_of(upgraded, {"consumer-1"}) == (("apache-5.3.3", ProgramPart.CLIENTS),)


def test_what_a_host_lacks_is_said_before_a_node_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEMESRV_FAKETIME", "/nowhere/libfaketimeMT.so.1")
    with pytest.raises(HarnessError, match="NEMESRV_FAKETIME names /nowhere"):
        bring((), 3)
    bring((), 1)


def test_a_cluster_that_stays_up_has_the_profile_of_its_implementation() -> None:
    scenario = scenario_of(name_servers=1, brokers=1, profile=None, time_scale=1, implementation="apache-5.3.3")
    assert scenario.implementations() == {"ns-0": "apache-5.3.3", "broker-a": "apache-5.3.3"}
    assert scenario.profile is Profile.V5_X
    assert scenario_of(name_servers=1, brokers=1, profile=None, time_scale=1).profile is Profile.V4_9


def test_explain_says_who_is_whose() -> None:
    result = CliRunner().invoke(explain, ["smoke", "--implementation", "apache-4.9.7"])
    assert "apache-4.9.7: ns-0, ns-1, ns-2, broker-a, broker-b, broker-c\n" in result.output
