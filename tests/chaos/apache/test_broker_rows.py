"""A broker seen from outside, frame by frame: what it registers, who its clients are, and what they commit."""

from typing import Any

import pytest

from nemesrv.chaos.apache.broker_rows import BrokerRows
from nemesrv.chaos.apache.server_rows import ServerAbout
from nemesrv.chaos.fronts.observed import Answered, Asked, Closed, Observation, Opened, Pushed
from nemesrv.chaos.fronts.observed import By as Who
from nemesrv.chaos.fronts.rows import TimedRow
from nemesrv.remoting.bodies.admin import ResetOffsetBody
from nemesrv.remoting.bodies.client import ConsumerData, HeartbeatData
from nemesrv.remoting.bodies.register import RegisterBrokerBody, TopicConfigSerializeWrapper
from nemesrv.remoting.bodies.route import DataVersion, QueueData, TopicConfig, TopicRouteData
from nemesrv.remoting.message import MessageQueue
from nemesrv.remoting.node.network import Address

LINE = "2026-11-22 20:00:00 WARN t - "
NS = "127.0.0.1:9876"


class Seen:
    """A broker `broker-a`, and what was learnt of it. Connections below 100 are its clients', others its own."""

    def __init__(self) -> None:
        self.all: list[TimedRow] = []
        about = ServerAbout(
            name="broker-a",
            broker_name="broker-a",
            name_servers={"ns-0": NS},
            fronts={"127.0.0.1:40001": "ns-0"},
        )
        self.rows = BrokerRows(self.all.append, about)

    def of(self, event: str) -> list[tuple[float, dict[str, Any]]]:
        found = [row for row in self.all if row.event == event]
        return [(row.at_ms, row.fields) for row in sorted(found, key=lambda row: row.at_ms)]

    def values(self, event: str) -> list[dict[str, Any]]:
        return [fields["value"] for _, fields in self.of(event)]

    def saw(self, one: Observation) -> None:
        self.rows.saw(one)

    def _front(self, connection: int) -> str:
        return "broker-a" if connection < 100 else "ns-0"

    def opened(self, at_ms: float, connection: int) -> None:
        peer = Address("127.0.0.1", connection)
        self.saw(Opened(at_ms=at_ms, front=self._front(connection), connection=connection, peer=peer))

    def asked(
        self,
        at_ms: float,
        connection: int,
        code: int,
        opaque: int,
        body: bytes = b"",
        *,
        oneway: bool = False,
        **f: str,
    ) -> None:
        where = {"front": self._front(connection), "connection": connection}
        one = Asked(at_ms=at_ms, opaque=opaque, code=code, fields=f, body=body, oneway=oneway, version=479, **where)  # type: ignore[arg-type]
        self.saw(one)

    def answered(self, at_ms: float, connection: int, opaque: int, code: int = 0, body: bytes = b"") -> None:
        front = self._front(connection)
        self.saw(Answered(at_ms=at_ms, front=front, connection=connection, opaque=opaque, code=code, body=body))

    def closed(self, at_ms: float, connection: int) -> None:
        self.saw(Closed(at_ms=at_ms, front=self._front(connection), connection=connection, by=Who.CLIENT))

    def registered(self, at_ms: float, opaque: int, counter: int, *topics: str, code: int | None = 0) -> None:
        version = DataVersion(timestamp=1, counter=counter)
        configs = tuple(TopicConfig(topic_name=topic, read_queue_nums=4, write_queue_nums=4) for topic in topics)
        wrapper = TopicConfigSerializeWrapper.of(configs, version)
        body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=()).encode(compressed=True)
        self.asked(at_ms, 100, 103, opaque, body, brokerName="broker-a")
        if code is not None:
            self.answered(at_ms + 2, 100, opaque, code)

    def heartbeat(self, at_ms: float, connection: int, client: str) -> None:
        said = HeartbeatData(client_id=client, consumer_data_set=(ConsumerData(group_name="g"),))
        self.asked(at_ms, connection, 34, 1, said.encode())
        self.answered(at_ms + 1, connection, 1)

    def pull(self, at_ms: float, connection: int, opaque: int, commit: int) -> None:
        numbers = {"queueId": "2", "queueOffset": "50", "maxMsgNums": "32", "sysFlag": "3", "subVersion": "1"}
        rest = {"commitOffset": str(commit), "suspendTimeoutMillis": "15000", "subscription": "*"}
        self.asked(at_ms, connection, 11, opaque, consumerGroup="g", topic="T", **numbers, **rest)

    def update(self, at_ms: float, connection: int, offset: int) -> None:
        fields = {"consumerGroup": "g", "topic": "T", "queueId": "2", "commitOffset": str(offset)}
        self.asked(at_ms, connection, 15, 99, oneway=True, **fields)

    @property
    def commits(self) -> list[tuple[float, str, int, int]]:
        """When, how, before, and after."""
        return [(at_ms, of["f"], of["value"]["before"], of["offset"]) for at_ms, of in self.of("commit")]


@pytest.fixture
def seen() -> Seen:
    return Seen()


def test_a_topic_is_had_from_when_it_is_registered_first_until_all_others_are_without_it(seen: Seen) -> None:
    seen.registered(1000, 1, 0, "SELF_TEST_TOPIC", "T")
    seen.registered(2000, 2, 1, "U")
    seen.registered(3000, 3, 1, "SELF_TEST_TOPIC", "T", "U")
    seen.registered(4000, 4, 2, "SELF_TEST_TOPIC", "U")
    found = [(at_ms, of["topic"], of["value"] and of["value"]["version"]) for at_ms, of in seen.of("topic")]
    assert found == [(1000, "SELF_TEST_TOPIC", 0), (1000, "T", 0), (2000, "U", 1), (4000, "T", None)]
    assert [(of["type"], of["duration_ms"], of["value"]["topics"]) for _, of in seen.of("register")] == [
        ("ok", 2, 2),
        ("ok", 2, 1),
        ("ok", 2, 3),
        ("ok", 2, 2),
    ]


def test_of_a_broker_that_was_elected_topics_and_commits_are_those_of_its_time_as_master(seen: Seen) -> None:
    def registers(at_ms: float, id_: int) -> None:
        version = DataVersion(timestamp=1, counter=1)
        wrapper = TopicConfigSerializeWrapper.of(
            (TopicConfig(topic_name="SELF_TEST_TOPIC"), TopicConfig(topic_name="T")), version
        )
        body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=()).encode(compressed=True)
        seen.asked(at_ms, 100, 103, int(at_ms), body, oneway=True, brokerName="broker-a", brokerId=str(id_))

    registers(1000, -1)
    registers(2000, 2)
    assert seen.of("topic") == []
    registers(3000, 0)
    registers(4000, 0)
    registers(5000, 2)
    registers(6000, 0)
    assert [at_ms for at_ms, of in seen.of("topic") if of["topic"] == "T"] == [3000, 6000]
    assert [of["type"] for _, of in seen.of("register")] == ["info"] * 6  # nobody tells it how they went


def test_one_topic_by_itself_has_a_version_between_two(seen: Seen) -> None:
    seen.registered(1000, 1, 5, "SELF_TEST_TOPIC")
    row = QueueData(broker_name="broker-a", read_queue_nums=4, write_queue_nums=4, perm=6)
    seen.asked(2000, 100, 217, 2, TopicRouteData(queue_datas=(row,)).encode(), topic="T")
    seen.answered(2003, 100, 2)
    seen.registered(3000, 3, 6, "SELF_TEST_TOPIC", "T")
    assert [of["topic"] for _, of in seen.of("topic")] == ["SELF_TEST_TOPIC", "T"]
    _, alone, _ = versions = [of["value"]["version"] for _, of in seen.of("register")]
    assert versions == [5, alone, 6]
    assert 5 < alone < 6


def test_a_registration_ends_by_its_answer_its_connection_its_time_or_as_the_log_says(seen: Seen) -> None:
    seen.registered(1000, 1, 0, "SELF_TEST_TOPIC", code=1)
    seen.registered(2000, 2, 0, "SELF_TEST_TOPIC", code=None)
    seen.closed(2500, 100)
    seen.registered(3000, 3, 0, "SELF_TEST_TOPIC", code=None)
    seen.rows.passed(9_001)
    seen.rows.logged(20_000, LINE + "Failed to register current broker to name server. TargetHost=127.0.0.1:40001")
    found = [(at_ms, of["type"], of["name_server"], of["value"]["learnt"]) for at_ms, of in seen.of("register")]
    assert found == [
        (1002, "fail", NS, "wire"),
        (2500, "info", NS, "wire"),
        (9000, "info", NS, "wire"),
        (20_000, "fail", NS, "log"),
    ]


def test_a_client_is_known_by_its_heartbeats_until_its_connection_closes_or_the_broker_forgets_it(seen: Seen) -> None:
    for connection in (1, 2):
        seen.opened(100, connection)
        seen.heartbeat(1000 * connection, connection, f"127.0.0.1@consumer-{connection}#1")
    seen.heartbeat(100_000, 2, "127.0.0.1@consumer-2#1")
    line = "SCAN: remove expired channel from ConsumerManager consumerTable. channel=/127.0.0.1:4, consumerGroup=g"
    seen.rows.logged(130_000, LINE + line)
    seen.closed(140_000, 1)
    seen.closed(150_001, 2)
    found = [(of["f"], of["value"]["client"], of["value"]["groups"]) for _, of in seen.of("client_gone")]
    assert found == [("expired", "127.0.0.1@consumer-1#1", ["g"]), ("closed", "127.0.0.1@consumer-2#1", ["g"])]
    assert seen.of("client_gone")[1][1]["duration_ms"] == 50_000
    assert len(seen.of("client_heartbeat")) == 3


def test_a_channel_that_ended_before_its_heartbeat_was_read_expires_for_nobody(seen: Seen) -> None:
    for connection in (1, 2):
        seen.opened(100, connection)
    said = HeartbeatData(client_id="127.0.0.1@consumer-1#1", consumer_data_set=(ConsumerData(group_name="g"),))
    seen.asked(1000, 1, 34, 1, said.encode())
    seen.closed(4000, 1)  # the client gave it up, and the broker read it later
    for at_ms in (5_000, 100_000):
        seen.heartbeat(at_ms, 2, "127.0.0.1@consumer-1#1")
    line = "SCAN: remove expired channel from ConsumerManager consumerTable. channel=/127.0.0.1:4, consumerGroup=g"
    seen.rows.logged(130_000, LINE + line)
    assert seen.of("client_gone") == []


def test_a_pull_commits_when_it_is_served_or_held_and_not_when_it_is_refused(seen: Seen) -> None:
    seen.opened(100, 1)
    seen.pull(1000, 1, 1, 10)
    seen.answered(1001, 1, 1, code=24)
    seen.pull(2000, 1, 2, 11)
    seen.answered(2001, 1, 2, code=0)
    seen.pull(3000, 1, 3, 12)
    seen.rows.passed(3200)
    assert seen.commits == [(2000, "pull", -1, 11), (3000, "pull", 11, 12)]


def test_a_commit_by_itself_comes_after_the_pull_that_the_same_bytes_brought(seen: Seen) -> None:
    seen.opened(100, 1)
    seen.pull(1000, 1, 1, 47)
    seen.update(1000, 1, 48)
    seen.rows.passed(2000)
    assert [row.fields["offset"] for row in seen.all if row.event == "commit"] == [47, 48]


def test_what_a_broker_recovers_is_what_stood_before(seen: Seen) -> None:
    seen.rows.recovered(b'{"offsetTable":{"T@g":{0:3,2:40}}}')
    seen.opened(100, 1)
    seen.update(1000, 1, 40)
    seen.update(2000, 1, 41)
    assert seen.commits == [(2000, "update", 40, 41)]


def test_offsets_are_reset_by_consumers_where_the_broker_told_them_and_here_where_not(seen: Seen) -> None:
    seen.opened(100, 1)
    body = ResetOffsetBody(offset_table={MessageQueue("T", "broker-a", 2): 7}).encode()
    fields = {"group": "g", "topic": "T", "timestamp": "-1", "isForce": "true"}
    seen.asked(1000, 1, 222, 1, **fields)
    seen.answered(1002, 1, 1, body=body)
    seen.asked(2000, 1, 222, 2, **fields)
    seen.saw(Pushed(at_ms=2001, front="broker-a", connection=1, code=220, fields=fields))
    seen.answered(2002, 1, 2, body=body)
    assert [(at_ms, of["f"], of["value"]["offsets"]) for at_ms, of in seen.of("offset_reset")] == [
        (1002, "here", {"2": 7}),
        (2002, "by_consumers", {"2": 7}),
    ]
    assert seen.commits == [(1002, "reset", -1, 7)]


def test_that_a_broker_is_up_its_log_says(seen: Seen) -> None:
    text = "The broker[broker-a, 10.0.2.1:10911] boot success. serializeType=JSON and name server is 10.0.1.1:9876"
    seen.rows.logged(1000, LINE + text)
    seen.rows.end(2000)
    assert seen.of("boot") == [(1000, {"value": {"learnt": "log"}})]
