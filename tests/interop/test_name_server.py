"""Our NameServer before Apache's broker and mqadmin, beside Apache's own NameServer wherever both can be asked."""

from pathlib import Path

import pytest

from nemesrv.clients.admin import AdminClient
from nemesrv.remoting.bodies.route import ClusterInfo

from . import programs
from .conftest import SERVERS, Apache, need
from .mqadmin import MQAdmin, rows, settings
from .waiting import ask, eventually

pytestmark = pytest.mark.java

TOPIC = "interop-topic"


@pytest.fixture(scope="module")
def topic(apache: Apache, mqadmin: MQAdmin) -> str:
    """A topic of the Java broker, created by mqadmin by way of our NameServer."""
    cluster = ("-c", "DefaultCluster")
    printed = mqadmin.ok("updateTopic", "-n", apache.our_name_server, *cluster, "-t", TOPIC, "-r", "3", "-w", "2")
    assert f"create topic to {apache.broker} success." in printed
    return TOPIC


@pytest.mark.nightly("test_the_topics_of_a_java_broker_are_listed_as_by_apache")
def test_a_java_broker_is_in_the_cluster_list_of_ours_as_of_apaches(apache: Apache, mqadmin: MQAdmin) -> None:
    # in its first second Apache's broker has no statistics and answers with a NoSuchElementException of its own
    eventually(lambda: mqadmin.ok("clusterList", "-n", apache.name_server))
    ours, theirs = (rows(mqadmin.ok("clusterList", "-n", address)) for address in _both(apache))
    assert [row[:5] for row in ours] == [row[:5] for row in theirs]
    assert ours[0][:5] == ["DefaultCluster", "java-b", "0", apache.broker, "V4_9_7"]


def test_the_topics_of_a_java_broker_are_listed_as_by_apache(apache: Apache, mqadmin: MQAdmin, topic: str) -> None:
    ours, theirs = (rows(mqadmin.ok("topicList", "-n", address)) for address in _both(apache))
    assert ours == theirs
    assert [topic] in ours


def test_the_route_that_mqadmin_prints_is_apaches(apache: Apache, mqadmin: MQAdmin, topic: str) -> None:
    for name in (topic, "TBW102", "DefaultCluster"):
        ours, theirs = (mqadmin.ok("topicRoute", "-n", address, "-t", name) for address in _both(apache))
        assert ours == theirs
        assert f'"brokerAddrs":{{0:"{apache.broker}"' in ours


def test_topic_status_finds_the_java_broker_by_our_route(apache: Apache, mqadmin: MQAdmin, topic: str) -> None:
    ours, theirs = (mqadmin.ok("topicStatus", "-n", address, "-t", topic) for address in _both(apache))
    assert ours == theirs
    assert [row[:4] for row in rows(ours)] == [["java-b", str(queue), "0", "0"] for queue in range(2)]


def test_the_settings_have_apaches_names_and_defaults(apache: Apache, mqadmin: MQAdmin) -> None:
    ours, theirs = (settings(mqadmin.ok("getNamesrvConfig", "-n", address)) for address in _both(apache))
    own = {"listenPort", "kvConfigPath", "configStorePath", "rocketmqHome"}
    # this Apache NameServer is 4.9.7, and the black list came with 4.9.8
    assert {key: value for key, value in ours.items() if key not in own | {"configBlackList"}} == {
        key: value for key, value in theirs.items() if key not in own
    }


@pytest.mark.nightly_but("5.x")
@pytest.mark.parametrize("profile", ["4.9", "5.x"])
def test_a_java_broker_registers_with_ours_and_is_dropped_when_killed(profile: str, tmp_path: Path) -> None:
    need(SERVERS[profile])
    first, one = programs.name_server("ns-0", tmp_path / "ns-0", profile=profile)
    second, other = programs.name_server("ns-1", tmp_path / "ns-1", profile=profile)
    with first, second:
        java, address = programs.java_broker("java", tmp_path / "java", SERVERS[profile], [one, other], "java-b")
        with java:
            for name_server in (one, other):
                # a 5.x broker that found no NameServer available at its start registers in its 10 s tick
                eventually(lambda at=name_server: ask(at, lambda admin: admin.topic_route("TBW102")), within_s=30)  # type: ignore[misc]
                info = ask(name_server, AdminClient.cluster_info)
                assert info.cluster_addr_table == {"DefaultCluster": ("java-b",)}
                assert info.broker_addr_table["java-b"].broker_addrs == {0: address}
        for name_server in (one, other):
            eventually(lambda at=name_server: _gone(at), within_s=5)  # type: ignore[misc]


def _gone(name_server: str) -> None:
    info = ask(name_server, AdminClient.cluster_info)
    assert info == ClusterInfo(broker_addr_table={}, cluster_addr_table={})
    assert ask(name_server, AdminClient.topic_list) == []


def _both(apache: Apache) -> tuple[str, str]:
    return apache.our_name_server, apache.name_server
