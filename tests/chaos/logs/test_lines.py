"""Lines as Apache's servers and clients of 4.9 and 5.x write them, each with the event that it is."""

from __future__ import annotations

from datetime import UTC, datetime, timezone

import pytest

from nemesrv.chaos.logs.lines import EVENTS, Counted, Tail, event_of, events_of, record_of, time_of

IDENTITY = "BrokerIdentityInfo [clusterName=DefaultCluster, brokerAddr=10.0.0.1:10911]"
ROW = "QueueData [brokerName=broker-a, readQueueNums=4, writeQueueNums=4, perm=6, topicSysFlag=0]"

TEXTS = [
    ("The Name Server boot success. serializeType=JSON", "name_server_boot", {"serialize": "JSON"}),
    (
        "The Name Server boot success. serializeType=JSON, address 0.0.0.0:9876",
        "name_server_boot",
        {"serialize": "JSON", "address": "0.0.0.0:9876"},
    ),
    (
        "new broker registered, 10.0.0.1:10911 HAServer: 10.0.0.1:10912",
        "broker_registered",
        {"address": "10.0.0.1:10911", "ha": "10.0.0.1:10912"},
    ),
    (
        f"new broker registered, {IDENTITY} HAService: 10.0.0.1:10912",
        "broker_registered",
        {"cluster": "DefaultCluster", "address": "10.0.0.1:10911", "ha": "10.0.0.1:10912"},
    ),
    (f"new topic registered, T {ROW}", "topic_registered", {"topic": "T", "row": ROW}),
    ("The broker channel expired, 10.0.0.1:10911 120000ms", "broker_expired", {"address": "10.0.0.1:10911"}),
    (f"The broker channel expired, {IDENTITY} 10000ms", "broker_expired", {"timeout_ms": "10000"}),
    (
        "the broker's channel destroyed, 10.0.0.1:10911, clean it's data structure at once",
        "channel_destroyed",
        {"address": "10.0.0.1:10911"},
    ),
    (
        "the broker's channel destroyed, submit the unregister request at once, broker info: "
        "org.apache.rocketmq.X@1f, submit result: true",
        "channel_destroyed",
        {"broker_info": "org.apache.rocketmq.X@1f", "result": "true"},
    ),
    (
        "remove brokerAddr[1, 10.0.0.1:10911] from brokerAddrTable, because channel destroyed",
        "address_removed",
        {"id": "1", "address": "10.0.0.1:10911"},
    ),
    (
        "unregisterBroker, remove addr from brokerAddrTable OK, 10.0.0.1:10911",
        "address_removed",
        {"result": "OK", "address": "10.0.0.1:10911"},
    ),
    (
        f"unregisterBroker, remove addr from brokerAddrTable Failed, {IDENTITY}",
        "address_removed",
        {"result": "Failed", "cluster": "DefaultCluster", "address": "10.0.0.1:10911"},
    ),
    ("remove topic[T null], from topicQueueTable, because channel destroyed", "topic_removed", {"row": "null"}),
    (
        "Registering Broker conflicts with the existed one, just ignore.: Cluster:c, BrokerName:b, BrokerId:0, "
        "Old BrokerAddr:10.0.0.1:1, Old Version:2, New BrokerAddr:10.0.0.4:1, New Version:1.",
        "conflict_ignored",
        {"old": "10.0.0.1:1", "address": "10.0.0.4:1", "id": "0"},
    ),
    (
        "wipe write perm of broker[broker-a], client: 127.0.0.1:55128, 7",
        "write_perm_wiped",
        {"broker": "broker-a", "topics": "7"},
    ),
    ("start scanNotActiveBroker", "scanned", {}),
    ("NETTY SERVER PIPELINE: IDLE exception [127.0.0.1:41234]", "channel_idle", {"address": "127.0.0.1:41234"}),
    ("NETTY SERVER PIPELINE: exceptionCaught 127.0.0.1:41234", "channel_failed", {"address": "127.0.0.1:41234"}),
    ("register broker[0]to name server 10.0.0.9:9876 OK", "registered", {"id": "0", "name_server": "10.0.0.9:9876"}),
    ("register broker [0] to name server 10.0.0.9:9876 OK", "registered", {"id": "0"}),
    (
        "Registering current broker to name server completed. TargetHost=10.0.0.9:9876",
        "registered",
        {"name_server": "10.0.0.9:9876"},
    ),
    ("registerBroker Exception, 10.0.0.9:9876", "register_failed", {"name_server": "10.0.0.9:9876"}),
    (
        "Failed to register current broker to name server. TargetHost=10.0.0.9:9876",
        "register_failed",
        {"name_server": "10.0.0.9:9876"},
    ),
    ("unregisterBroker OK, NamesrvAddr: 10.0.0.9:9876", "unregistered", {"name_server": "10.0.0.9:9876"}),
    (
        "The broker[broker-a, 10.0.0.1:10911] boot success. serializeType=JSON and name server is 10.0.0.9:9876",
        "broker_boot",
        {"broker": "broker-a", "address": "10.0.0.1:10911", "name_servers": "10.0.0.9:9876"},
    ),
    (
        "SCAN: remove expired channel from ConsumerManager consumerTable. channel=/127.0.0.1:4, consumerGroup=g",
        "consumer_expired",
        {"channel": "/127.0.0.1:4", "group": "g"},
    ),
    (
        "new name server is chosen. OLD: null , NEW: 10.0.0.9:9876. namesrvIndex = 790",
        "name_server_chosen",
        {"old": "null", "new": "10.0.0.9:9876", "index": "790"},
    ),
    (
        "name server address updated. NEW : [10.0.0.9:9876, 10.0.0.8:9876] , OLD: null",
        "name_servers_set",
        {"new": "10.0.0.9:9876, 10.0.0.8:9876", "old": "null"},
    ),
    (
        "invokeSync: close socket because of timeout, 3000ms, null",
        "closed_on_timeout",
        {"timeout_ms": "3000", "address": "null"},
    ),
    (
        "invokeSync: close socket because of timeout, 3000ms, channel[addr=10.0.0.9:9876, id=0a1b]",
        "closed_on_timeout",
        {"timeout_ms": "3000", "address": "10.0.0.9:9876"},
    ),
    ("NETTY CLIENT PIPELINE: CLOSE 10.0.0.9:9876", "closed", {"address": "10.0.0.9:9876"}),
    ("NETTY CLIENT PIPELINE: CLOSE channel[addr=10.0.0.9:9876, id=0a1b]", "closed", {"address": "10.0.0.9:9876"}),
]


@pytest.mark.parametrize(("text", "event", "fields"), TEXTS)
def test_a_text_is_the_event_that_it_tells_of(text: str, event: str, fields: dict[str, str]) -> None:
    found = event_of(text)
    assert found is not None
    assert found[0] == event
    assert found[0] in EVENTS
    assert fields.items() <= found[1].items()


@pytest.mark.parametrize("text", ["kvConfigPath=/root/namesrv/kvConfig.json", "remove brokerAddr[", "", "the"])
def test_a_text_of_no_known_shape_is_none(text: str) -> None:
    assert event_of(text) is None


TEXT = "register broker[0]to name server 10.0.0.9:9876 OK"


@pytest.mark.parametrize(
    ("line", "zone", "time"),
    [
        (f"2026-11-20 20:17:34 INFO brokerOutApi_thread_1 - {TEXT}", None, "2026-11-20T12:17:34+00:00"),
        (f"2026-11-20 12:18:51,122 INFO RocketmqRemoting - {TEXT}", UTC, "2026-11-20T12:18:51.122000+00:00"),
        (f"2026-11-20 12:18:51,122 INFO RocketmqRemoting - {TEXT}", None, None),
        (
            f"2025-09-19 17:25:40.123 INFO  [4711] [main] [o.a.r.r.n.N#update:540] - {TEXT}",
            None,
            "2025-09-19T09:25:40.123000+00:00",
        ),
        (
            f"[2019-09-17T16:27:19,850][INFO ][RocketmqRemoting         ] {TEXT}",
            UTC,
            "2019-09-17T16:27:19.850000+00:00",
        ),
        (f"2026-13-40 20:17:34 INFO main - {TEXT}", None, None),
    ],
)
def test_each_layout_says_when_it_was_in_its_own_zone(line: str, zone: timezone | None, time: str | None) -> None:
    record = record_of(line)
    assert record is not None
    assert record.text == TEXT
    assert (record.level, record.thread != "") == ("INFO", True)
    assert time_of(record, zone) == (None if time is None else datetime.fromisoformat(time))


def test_lines_that_go_on_and_lines_of_no_shape_are_counted() -> None:
    counted = Counted()
    lines = [
        f"2026-11-20 20:17:34 WARN t - {TEXT}",
        "org.apache.rocketmq.remoting.exception.RemotingConnectException: connect to 10.0.0.9:9876 failed",
        "\tat org.apache.rocketmq.remoting.netty.NettyRemotingClient.invokeSync(NettyRemotingClient.java:400)",
        "",
        "2026-11-20 20:17:35 INFO main - listenPort=9876",
        "2026-11-20 20:17:36 INFO t - start scanNotActiveBroker",
    ]
    found = list(events_of("namesrv.log", lines, counted))
    assert [(one.file, one.line, one.event) for one in found] == [
        ("namesrv.log", 1, "registered"),
        ("namesrv.log", 6, "scanned"),
    ]
    assert counted == Counted(events=2, other=1, continued=3)


def test_a_tail_gives_each_line_once_and_only_whole_ones() -> None:
    tail, data = Tail("namesrv.log"), "eins\r\nzwölf\ndrei\nvi".encode()
    found = [line for number in range(len(data)) for line in tail.fed(data[number : number + 1])]
    assert found == [(1, "eins"), (2, "zwölf"), (3, "drei")]
    assert list(tail.fed(b"er\n")) == [(4, "vier")]
