"""Rows are those of the body read as a whole, and a body that comes again is not read."""

import orjson
import pytest

from nemesrv.remoting.bodies.register import RegisterBrokerBody, TopicConfigSerializeWrapper
from nemesrv.remoting.bodies.register_rows import RegisteredRows, read_rows
from nemesrv.remoting.bodies.route import DataVersion, QueueData, Row, TopicConfig
from nemesrv.remoting.errors import RemoteProtocolError

BROKER = "broker-a"


def body(topics: dict[str, TopicConfig], counter: int = 1, filters: tuple[str, ...] = ()) -> RegisterBrokerBody:
    version = DataVersion(timestamp=1, counter=counter)
    wrapper = TopicConfigSerializeWrapper(data_version=version, topic_config_table=topics)
    return RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=filters)


def many(count: int, **fields: object) -> dict[str, TopicConfig]:
    names = [f"topic-{number:04}" for number in range(count)]
    return {name: TopicConfig(topic_name=name, **fields) for name in names}  # type: ignore[arg-type]


def read(data: bytes, last: RegisteredRows | None = None, version: int = 477) -> RegisteredRows:
    return read_rows(data, BROKER, version=version, last=last)


def expected(data: bytes, version: int = 477) -> list[Row]:
    return [
        (
            topic.topic_name,
            QueueData(
                broker_name=BROKER,
                read_queue_nums=topic.read_queue_nums,
                write_queue_nums=topic.write_queue_nums,
                perm=topic.perm,
                topic_sys_flag=topic.topic_sys_flag,
            ),
        )
        for topic in RegisterBrokerBody.decode(data, version=version).topics
    ]


def test_equal_rows_are_one_object_and_a_body_that_comes_again_is_not_read() -> None:
    data = body(many(100), filters=("10.0.0.1:1",)).encode()
    found = read(data)
    assert found.rows == expected(data)
    assert found.body == body({}, filters=("10.0.0.1:1",))
    assert len({id(row) for _, row in found.rows}) == 1
    assert read(data, found) is found
    changed = body(many(100, perm=4), counter=2).encode()
    assert read(changed, found).rows == expected(changed)


def test_attributes_compressed_and_ancient_bodies_have_the_same_rows() -> None:
    for data, version in (
        (body(many(3, attributes={"+message.type": "NORMAL"})).encode(), 477),
        (body(many(3)).encode(compressed=True), 477),
        (b"", 477),
        (body(many(3)).topic_config_serialize_wrapper.encode(), 1),
    ):
        assert read(data, version=version).rows == expected(data, version)


def test_a_table_in_another_place_is_not_taken_for_the_brokers_own() -> None:
    inner = orjson.loads(body(many(3)).encode())["topicConfigSerializeWrapper"]["topicConfigTable"]
    whole = orjson.loads(body(many(2)).encode())
    for data in (
        orjson.dumps({"a": {"topicConfigTable": inner}, **whole}),
        orjson.dumps({"a": {"topicConfigTable": inner}}),
        orjson.dumps({**whole, 'z\\"topicConfigTable': {"x": inner}}),
    ):
        assert read(data).rows == expected(data)


@pytest.mark.parametrize(
    "topic",
    [
        {"topicName": "", "perm": "6"},
        {"perm": True, "order": "true", "readQueueNums": 4.0},
        {"topicName": 7},
        {"topicName": "t", "attributes": {"a": 1}, "writeQueueNums": None},
        {"topicName": "t", "readQueueNums": 16, "order": 0},
    ],
)
def test_what_no_broker_writes_is_read_as_ever(topic: dict[str, object]) -> None:
    usual = {"perm": 6, "readQueueNums": 16, "writeQueueNums": 16, "topicSysFlag": 0, "order": False}
    table = {"first": {**usual, "topicFilterType": "SINGLE_TAG", "topicName": "first"}, "key": {**usual, **topic}}
    data = orjson.dumps({"topicConfigSerializeWrapper": {"topicConfigTable": table}})
    assert read(data).rows == expected(data)


@pytest.mark.parametrize("damage", ['"perm":[]', '"perm":', "}"])
def test_a_damaged_body_is_refused(damage: str) -> None:
    data = body(many(3)).encode().replace(b'"perm":6', damage.encode(), 1)
    with pytest.raises(RemoteProtocolError):
        read(data)


def test_a_table_that_is_nobodys_is_ignored_whatever_is_in_it() -> None:
    encoded = body(many(3)).encode().replace(b'"perm":6', b'"perm":"much"', 1)
    encoded = encoded.replace(b"topicConfigSerializeWrapper", b"somethingElse")
    assert read(encoded).rows == expected(encoded) == []
