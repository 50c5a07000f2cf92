"""mqadmin, 4.9.8 and 5.3.3, against our NameServers and brokers while Java clients are at work."""

from functools import partial

import pytest

from .conftest import PREFIX, World
from .mqadmin import rows, settings
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


def test_broker_status_has_the_keys_that_people_watch(world: World) -> None:
    address = world.brokers["broker-a"]
    status = settings(world.mqadmin.ok("brokerStatus", "-n", world.name_server, "-b", address))
    assert status["brokerVersionDesc"] == VERSIONS[world.profile]
    assert int(status["msgPutTotalTodayNow"]) > 0
    assert int(status["commitLogMaxOffset"]) > int(status["commitLogMinOffset"]) == 0
    assert 0 <= float(status["commitLogDiskRatio"]) <= 1
    for key in ("putTps", "bootTimestamp", "sendThreadPoolQueueSize", "earliestMessageTimeStamp"):
        assert status[key]


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


@pytest.mark.nightly_but("4.9.8")
def test_the_connections_of_clients_are_shown(world: World) -> None:
    server = ("-n", world.name_server)
    printed = world.mqadmin.ok("consumerConnection", *server, "-g", f"{PREFIX}-tagged")
    assert "TagA || TagC" in printed
    for line in ("CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_FIRST_OFFSET", "JAVA", VERSIONS[world.profile]):
        assert line in printed
    assert "JAVA" in world.mqadmin.ok("producerConnection", *server, "-g", f"{PREFIX}-producers", "-t", TOPIC)


@pytest.mark.nightly_but("4.9.8")
def test_a_message_is_found_by_id_by_key_and_by_queue_offset(world: World) -> None:
    sent = next(line.split("\t") for line in world.clients.lines if line.startswith("SEND\tlast\t"))
    _, _, key, _, uniq_id, offset_id, broker, queue, offset = sent
    server = ("-n", world.name_server, "-t", TOPIC)
    by_id = ("-n", world.name_server) if world.profile == "4.9" else server
    for printed in (
        world.mqadmin.ok("queryMsgById", *by_id, "-i", offset_id),
        world.mqadmin.ok("queryMsgByUniqueKey", *server, "-i", uniq_id),
        world.mqadmin.ok("queryMsgByOffset", *server, "-b", broker, "-i", queue, "-o", offset),
    ):
        found = {name: value.strip() for name, _, value in (line.partition(":") for line in printed.splitlines())}
        assert (found["Topic"], found["Tags"], found["Keys"]) == (TOPIC, "[TagA]", f"[{key}]")
        assert (found["Queue ID"], found["Queue Offset"]) == (queue, offset)
        assert found["Store Host"] == world.brokers[broker]
        assert f"UNIQ_KEY={uniq_id}" in found["Properties"]
    assert uniq_id in world.mqadmin.ok("queryMsgByKey", *server, "-k", key)


def test_write_permission_is_wiped_and_given_back(world: World) -> None:
    mqadmin = world.mqadmin

    def check(name_server: str) -> None:
        wiped = mqadmin.ok("wipeWritePerm", "-n", name_server, "-b", "broker-b")
        assert f"wipe write perm of broker[broker-b] in name server[{name_server}] OK, " in wiped
        assert '"perm":4' in mqadmin.ok("topicRoute", "-n", name_server, "-t", TOPIC)
        given = mqadmin.ok("addWritePerm", "-n", name_server, "-b", "broker-b")
        assert wiped.rpartition(" ")[2] == given.rpartition(" ")[2] != "0"
        assert '"perm":4' not in mqadmin.ok("topicRoute", "-n", name_server, "-t", TOPIC)

    # each command of 5.3.3's mqadmin may take 3 s to end, whoever's the NameServer
    for name_server in world.name_servers if world.profile == "4.9" else world.name_servers[:1]:
        eventually(partial(check, name_server))  # a topic of another test may come or go between the two commands


@pytest.mark.nightly_but("4.9.8")
def test_the_brokers_settings_are_shown_and_changed(world: World) -> None:
    target = ("-n", world.name_server, "-b", world.brokers["broker-b"])
    assert settings(world.mqadmin.ok("getBrokerConfig", *target))["brokerName"] == "broker-b"
    world.mqadmin.ok("updateBrokerConfig", *target, "-k", "maxMessageSize", "-v", "2097152")
    assert settings(world.mqadmin.ok("getBrokerConfig", *target))["maxMessageSize"] == "2097152"


@pytest.mark.nightly_but("4.9.8")
def test_a_consumer_says_of_itself_what_it_does(world: World) -> None:
    connections = world.mqadmin.ok("consumerConnection", "-n", world.name_server, "-g", f"{PREFIX}-all")
    client_id = next(cell for row in rows(connections) for cell in row if "@" in cell)
    printed = world.mqadmin("consumerStatus", "-n", world.name_server, "-g", f"{PREFIX}-all", "-i", client_id)
    for line in ("#Consumer Properties#", "#Consumer Subscription#", "#Consumer MQ Detail#", f"{PREFIX}-topic"):
        assert line in printed


@pytest.mark.nightly
def test_the_progress_of_every_group_is_shown(world: World) -> None:
    def check() -> None:
        target = ("-n", world.name_server, "-b", world.brokers["broker-a"], "-o", "false")
        printed = rows(world.mqadmin.ok("brokerConsumeStats", *target))
        queues = [row for row in printed if row[0] == f"{PREFIX}-topic" and row[1] == f"{PREFIX}-all"]
        assert sum(int(row[4]) for row in queues) > 0
        assert [row[4] for row in queues] == [row[5] for row in queues]  # broker offsets, consumer offsets

    eventually(check, within_s=60)  # consumers commit every 5 s, and in the suite they are the last to get a core
    check()  # a command that has shut its client down is not asked again


@pytest.mark.nightly_but("4.9.8")
def test_a_consume_queue_is_shown(world: World) -> None:
    sent = next(line.split("\t") for line in world.clients.lines if line.startswith("SEND\tlast\t"))
    broker, queue, offset = sent[6:9]
    target = ("-t", TOPIC, "-q", queue, "-i", offset, "-c", "5", "-b", world.brokers[broker], "-g", f"{PREFIX}-tagged")
    printed = world.mqadmin.ok("queryCq", *target)
    assert "TagA || TagC" in printed
    [end] = [row[3] for row in _queues(world, TOPIC) if row[:2] == [broker, queue]]
    assert int(end) > int(offset)  # other tests' mqadmin may have sent to this queue by now
    assert f"max: {end}, min: 0" in printed
    assert f"idx: {offset}\nConsumeQueueData{{physicOffset=" in printed


@pytest.mark.nightly
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
