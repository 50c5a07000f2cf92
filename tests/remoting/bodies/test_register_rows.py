"""Rows read piece by piece are those of the body read in one go, and what is left out is what stood there before."""

import random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesrv.remoting.bodies import register_rows
from nemesrv.remoting.bodies.register import RegisterBrokerBody, TopicConfigSerializeWrapper
from nemesrv.remoting.bodies.register_rows import NO_PIECES, PIECE, Pieces, RegisteredRows, read_rows
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


def read(data: bytes, last: Pieces = NO_PIECES, version: int = 477) -> RegisteredRows:
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


def test_a_long_body_is_cut_and_has_the_rows_it_has_in_one_go() -> None:
    data = body(many(1000), filters=("10.0.0.1:1",)).encode()
    found = read(data)
    assert len(found.pieces.starts) >= len(data) // PIECE - 3
    assert found.rows == expected(data)
    assert found.body == body({}, filters=("10.0.0.1:1",))
    assert len({id(row) for _, row in found.rows}) == 1  # equal rows are one object


def test_pieces_that_stood_there_last_time_are_left_out_wherever_they_are_now() -> None:
    topics = many(1000)
    last = read(body(topics).encode()).pieces
    again = read(body(topics, counter=2).encode(), last)
    assert len(again.rows) < 300
    assert again.body.data_version.counter == 2
    assert again.pieces == last
    topics["topic-0500"] = TopicConfig(topic_name="topic-0500", perm=4)
    more = {"a": TopicConfig(topic_name="a"), **topics, "topic-0501x": TopicConfig(topic_name="topic-0501x")}
    changed = read(body(more, counter=3).encode(), last)
    assert {"a", "topic-0500", "topic-0501x"} <= {name for name, _ in changed.rows}
    assert len(changed.rows) < 600
    assert dict(changed.rows)["topic-0500"].perm == 4
    assert len(read(body(more, counter=4).encode(), changed.pieces).rows) < 300


def test_compressed_short_and_ancient_bodies_are_read_in_one_go() -> None:
    for data, version in (
        (body(many(1000)).encode(compressed=True), 477),
        (body(many(3)).encode(), 477),
        (b"", 477),
        (body(many(1000)).topic_config_serialize_wrapper.encode(), 1),
    ):
        found = read(data, version=version)
        assert (found.rows, found.pieces.starts) == (expected(data, version), ())


def test_a_table_in_another_place_is_not_taken_for_the_brokers_own() -> None:
    inner = orjson.loads(body(many(1000)).encode())["topicConfigSerializeWrapper"]["topicConfigTable"]
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
def test_a_damaged_body_is_refused_wherever_it_is_damaged(damage: str) -> None:
    good = body(many(1000)).encode()
    last = read(good).pieces
    for number in (0, 300, 600, 999):
        at = good.index(b'"perm":6', number * 140)
        data = good[:at] + damage.encode() + good[at + 8 :]
        for pieces in (NO_PIECES, last):
            with pytest.raises(RemoteProtocolError):
                read(data, pieces)


@given(st.data())
def test_whatever_changes_the_rows_read_and_those_left_out_are_all_rows(data: st.DataObject) -> None:
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(register_rows, "PIECE", data.draw(st.sampled_from([1, 64, 300, 1000])))
        topics, last, table = many(data.draw(st.integers(0, 40))), NO_PIECES, dict[str, QueueData]()
        for _ in range(6):
            for _ in range(rng.randrange(3)):
                name = f"topic-{rng.randrange(60):04}"
                if rng.random() < 0.3:
                    topics.pop(name, None)
                else:
                    quote = rng.choice(["", '"', '},"', "\\", "é", '"writeQueueNums":1},"'])
                    attributes = {quote: quote} if quote else None
                    key = f"{name}{quote}"
                    topics[key] = TopicConfig(topic_name=key, perm=rng.choice([2, 4, 6]), attributes=attributes)
            encoded = body(topics).encode()
            found = read(encoded, last)
            last = found.pieces
            table.update(found.rows)
            assert {name: table[name] for name in topics} == dict(expected(encoded))


def test_a_table_that_is_nobodys_is_ignored_whatever_is_in_it() -> None:
    """Found by fuzzing: read in pieces, it was refused; read whole, it is an unknown field."""
    encoded = body(many(1000)).encode().replace(b'"perm":6', b'"perm":"much"', 1)
    encoded = encoded.replace(b"topicConfigSerializeWrapper", b"somethingElse")
    assert read(encoded, NO_PIECES).rows == expected(encoded) == []
