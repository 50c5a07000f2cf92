"""`implementation` in a scenario: who is what, what follows from it, and what cannot be asked of Apache's programs."""

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


@pytest.mark.parametrize(
    ("cluster", "more", "said"),
    [
        (
            {"implementation": "apache-6"},
            {},
            "x.yaml: cluster.implementation: 'apache-6' is not allowed; expected "
            "ours, apache-VERSION such as apache-4.9.7",
        ),
        (
            {},
            {"nodes": {"ns-0": {"implementation": "kafka"}}},
            "x.yaml: nodes.ns-0.implementation: 'kafka' is not allowed; expected ours, apache-VERSION",
        ),
        (
            {"implementation": "apache-4.9.7"},
            {"clock": "virtual"},
            "x.yaml: clock: virtual is not allowed; expected real where a node is apache-4.9.7",
        ),
        (
            {"implementation": "apache-4.9.7"},
            {"config": {"name_servers": {"brokerChannelExpiredTime": 60_000}}},
            "config: brokerChannelExpiredTime of ns-0: 60000 is not allowed; expected set of a node of ours: ns-0 is "
            "apache-4.9.7, and it is a constant there",
        ),
        (
            {"implementation": "apache-4.9.7", "profile": "5.x"},
            {"config": {"name_servers": {"waitSecondsForService": 10}}},
            "ns-0 is apache-4.9.7, and it has no such setting",
        ),
        (
            {"implementation": "apache-5.3.3"},
            {"config": {"name_servers": {"notifyMinBrokerIdChanged": True}}},
            "ns-0 is apache-5.3.3, and it would dial brokers to tell them (905), where no link of a NameServer leads",
        ),
        (
            {"implementation": "apache-5.3.3"},
            {"config": {"brokers": {"brokerNotActiveTimeoutMillis": 60_000}}},
            "Java sends it with enableSlaveActingMaster only",
        ),
        (
            {"implementation": "apache-4.9.7"},
            {"timeline": [{"at_s": 5, "do": "clock_step", "nodes": ["ns-0"], "by_s": 60}]},
            "timeline.0.nodes: clock_step of ns-0 is not allowed; expected a node of ours: ns-0 is apache-4.9.7",
        ),
        (
            {},
            {"workload": {"implementation": "apache-4.9"}},
            "workload.implementation: 'apache-4.9' is not allowed; expected ours, apache-VERSION",
        ),
        (
            {"profile": "5.x"},
            {"workload": {"implementation": "apache-4.9.8"}, "config": {"consumers": {"minInterval": 500}}},
            "consumer-0 is apache-4.9.8, and it has no such setting",
        ),
        (
            {},
            {"workload": {"implementation": "apache-5.3.3"}, "config": {"clients": {"lockTimeoutMillis": 500}}},
            "apache-5.3.3, and it is a constant there",
        ),
        (
            {"implementation": "apache-4.9.7", "name_server_list": ["ns-0"]},
            {},
            "cluster.name_server_list: given is not allowed; expected no list by HTTP",
        ),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(cluster: dict[str, Any], more: dict[str, Any], said: str) -> None:
    with refusal(said):
        _parse(cluster, **more)


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
