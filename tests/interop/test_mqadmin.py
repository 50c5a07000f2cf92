"""mqadmin, 4.9.8 and 5.3.3, against our NameServers and brokers while Java clients are at work."""

import pytest

from .conftest import PREFIX, World
from .mqadmin import rows
from .waiting import eventually

pytestmark = pytest.mark.java

TOPIC = f"{PREFIX}-topic"
CLUSTER = "DefaultCluster"
VERSIONS = {"4.9": "V4_9_8", "5.x": "V5_3_3"}


def test_cluster_list_shows_both_brokers(world: World) -> None:
    printed = rows(world.mqadmin.ok("clusterList", "-n", world.name_server))
    version = VERSIONS[world.profile]
    assert [row[:5] for row in printed] == [
        [CLUSTER, name, "0", address, version] for name, address in sorted(world.brokers.items())
    ]


def test_the_topic_list_has_topics_of_users_groups_and_the_broker(world: World) -> None:
    printed = world.mqadmin.ok("topicList", "-n", world.name_server).split()
    expected = {TOPIC, f"{PREFIX}-ordered", f"%RETRY%{PREFIX}-all", "TBW102", "SCHEDULE_TOPIC_XXXX", CLUSTER}
    assert expected | set(world.brokers) <= set(printed)


@pytest.mark.nightly_but("4.9.8")
def test_a_topic_is_created_changed_and_deleted(world: World) -> None:
    mqadmin, server = world.mqadmin, ("-n", ";".join(world.name_servers))
    printed = mqadmin.ok("updateTopic", *server, "-c", CLUSTER, "-t", "made", "-r", "3", "-w", "2", "-p", "4")
    assert all(f"create topic to {address} success." in printed for address in world.brokers.values())
    for name_server in world.name_servers:
        route = mqadmin.ok("topicRoute", "-n", name_server, "-t", "made")
        for line in ('"perm":4', '"readQueueNums":3', '"writeQueueNums":2', '"brokerName":"broker-b"'):
            assert line in route
    queues = 2 if world.profile == "4.9" else 3
    assert [row[:4] for row in _queues(world, "made")] == [
        [broker, str(queue), "0", "0"] for broker in sorted(world.brokers) for queue in range(queues)
    ]
    printed = mqadmin.ok("deleteTopic", *server, "-c", CLUSTER, "-t", "made")
    assert "delete topic [made] from NameServer success." in printed
    for name_server in world.name_servers:
        assert "CODE: 17" in mqadmin("topicRoute", "-n", name_server, "-t", "made")


def test_topic_status_counts_what_was_sent(world: World) -> None:
    queues = _queues(world, f"{PREFIX}-ordered")
    assert [row[1] for row in queues] == ["0", "1", "2", "3"] * len({row[0] for row in queues})
    assert sum(int(row[3]) for row in queues) == 10


def _queues(world: World, topic: str) -> list[list[str]]:
    """Broker, queue, smallest and largest offset of each queue of the topic."""
    printed = rows(world.mqadmin.ok("topicStatus", "-n", world.name_server, "-t", topic))
    return [row for row in printed if row[0] in world.brokers]  # 5.3.3 has a line for the rate, too


def test_consumer_progress_reaches_the_end_of_every_queue(world: World) -> None:
    def check() -> None:
        printed = world.mqadmin.ok("consumerProgress", "-n", world.name_server, "-g", f"{PREFIX}-orderly")
        totals = dict(line.split(": ") for line in printed.splitlines() if ": " in line)
        queues = [row for row in rows(printed) if row[0] == f"{PREFIX}-ordered"]
        assert sum(int(row[3]) for row in queues) == 10  # broker offsets
        assert [row[4] for row in queues] == [row[3] for row in queues]  # consumer offsets
        assert totals["Diff Total" if world.profile == "4.9" else "Consume Diff Total"] == "0"
        assert totals.get("Consume Inflight Total", "0") == "0"

    eventually(check)  # a consumer commits every 5 s


@pytest.mark.nightly("test_consumer_progress_reaches_the_end_of_every_queue")
def test_a_group_goes_on_where_an_operator_sends_it(world: World) -> None:
    """4.9's clients wait for 10 s before they go there, and 4.9's brokers for the group's first commits. A consumer of
    5.x rebalances only 20 s after its start if another heartbeat was under way or a route was missing then."""
    mqadmin, name = world.mqadmin, f"{PREFIX}-reset"
    server = ("-n", world.name_server)
    mqadmin.ok("updateTopic", *server, "-b", world.brokers["broker-a"], "-t", name, "-r", "1", "-w", "1")
    world.clients.say("listen reset")

    def received(times: int) -> None:
        keys = [line.split("\t")[2] for line in list(world.clients.lines) if line.startswith("RECEIVE\treset\t")]
        assert sorted(keys) == sorted(f"reset-{number}" for number in range(3) for _ in range(times))

    def reset() -> None:
        printed = mqadmin("resetOffsetByTime", *server, "-g", name, "-t", name, "-s", "0")
        assert "Exception" not in printed, printed
        assert "broker-a" in printed

    eventually(lambda: received(1), within_s=60)
    eventually(reset)
    eventually(lambda: received(2), within_s=60)
