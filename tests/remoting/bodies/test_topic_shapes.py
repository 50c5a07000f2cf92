"""Topics read by their shape are what JSON says they are; what is not certain is left to JSON."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesrv.remoting.bodies.route import QueueData, Row
from nemesrv.remoting.bodies.topic_shapes import CHANCES, SHAPE_MAX, TopicShapes

parsed: list[str] = []


def row_of(table: Mapping[str, Any]) -> QueueData:
    """What the tests' topics differ in, as a row."""
    [(key, topic)] = table.items()
    parsed.append(key)
    return QueueData(broker_name="b", read_queue_nums=topic["readQueueNums"], perm=topic["perm"])


def member(name: str, *, queues: int = 4, attributes: object = None, key: str | None = None, last: str = "") -> str:
    topic: dict[str, object] = {} if attributes is None else {"attributes": attributes}
    topic |= {"order": False, "perm": 6, "readQueueNums": queues, "topicName": name, "writeQueueNums": queues}
    if last:
        topic[last] = 1
    return orjson.dumps({name if key is None else key: topic}).decode()[1:-1]


def expected(topics: str) -> list[Row]:
    """As JSON reads them, where each has its key for its name."""
    return [(name, row_of({name: topic})) for name, topic in orjson.loads(f"{{{topics}}}").items()]


NAMES = [f"topic-{number}" for number in range(0, 300, 7)]


@pytest.mark.parametrize("attributes", [None, {}, {"+message.type": "NORMAL"}])
def test_of_topics_that_differ_in_their_names_one_is_parsed(attributes: object) -> None:
    topics = ",".join(member(name, attributes=attributes) for name in (*NAMES, "%RETRY%группа", "x y"))
    shapes = TopicShapes(row_of)
    parsed.clear()
    rows = shapes.rows(topics)
    assert len(parsed) == 1
    assert rows == expected(topics)
    again = ",".join(member(name, attributes=attributes) for name in "abc")
    parsed.clear()
    assert shapes.rows(again) is not None
    assert parsed == []


@pytest.mark.parametrize("attributes", [None, {}])
def test_of_several_shapes_one_topic_each_is_parsed_wherever_they_stand(attributes: object) -> None:
    rng = random.Random(1)
    topics = ",".join(member(name, queues=rng.choice([4, 8, 16]), attributes=attributes) for name in NAMES)
    parsed.clear()
    rows = TopicShapes(row_of).rows(topics)
    assert len(parsed) == 3
    assert rows == expected(topics)
    assert len({id(row) for _, row in rows or ()}) == 3


def test_with_more_shapes_than_it_is_worth_nothing_is_learnt_any_more() -> None:
    shapes, topics = TopicShapes(row_of), ",".join(member(name, queues=int(name[6:])) for name in NAMES)
    parsed.clear()
    assert shapes.rows(topics) is None
    assert len(parsed) == CHANCES
    assert shapes.rows(member("another", queues=0)) is None


GOOD = [member(name) for name in NAMES]


@pytest.mark.parametrize(
    "odd",
    [
        member("a", key="b"),
        member(""),
        member('a"b'),
        member("a\\b"),
        member("a\nb"),
        member("a\x7fb"),
        member("a").replace(":6", ': "6"'),
        member("a").replace(":6", ":6 "),
        member("a").replace(":6", ":"),
        member("a").replace("topicName", "name"),
        member("a")[:-1],
        member("a") + "}",
        member("a") + ',"b":1',
        member("a") + ',"b":{}',
        member("a", attributes={"topicName": "a"}).replace('"topicName":"a","w', '"w'),
        member("a", last="x" * SHAPE_MAX),
        member("a", last="@topicName"),
        member("a", last="\\"),
        '"a":"b"',
        "",
        ",",
        '"',
    ],
)
def test_what_is_strange_is_left_to_json_or_is_as_json_says(odd: str) -> None:
    for place in (0, 5, len(GOOD)):
        topics = ",".join([*GOOD[:place], odd, *GOOD[place:]])
        rows = TopicShapes(lambda table: QueueData(broker_name="b", perm=4)).rows(topics)
        if rows is not None:
            table = orjson.loads(f"{{{topics}}}")
            assert [name for name, _ in rows] == list(table) == [topic["topicName"] for topic in table.values()]


def test_what_the_reader_of_a_topic_refuses_is_refused() -> None:
    def refuse(table: Mapping[str, Any]) -> QueueData:
        raise ValueError(str(table["@topicName"]["perm"]))

    with pytest.raises(ValueError, match="6"):
        TopicShapes(refuse).rows(",".join(GOOD))


@given(st.data())
def test_a_text_that_was_damaged_anywhere_has_the_rows_of_its_json_or_none(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.text('ab{}:,"\\é\n', max_size=4), min_size=1, max_size=6, unique=True))
    attributes = data.draw(st.sampled_from([None, {}, {"a": '},"'}]))
    topics = ",".join(member(name, queues=data.draw(st.sampled_from([4, 8])), attributes=attributes) for name in names)
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(topics)))
        cut = data.draw(st.integers(0, 3))
        topics = (
            topics[:at]
            + data.draw(st.sampled_from(["", '"', ",", "}", "{", "8", "a", '},"', "\\", "\n"]))
            + topics[at + cut :]
        )
    try:
        rows = TopicShapes(row_of).rows(topics)
    except (KeyError, TypeError):  # the tests' own row_of
        return
    if rows is not None:
        assert dict(rows) == dict(expected(topics))
        assert {name for name, _ in rows} == {topic["topicName"] for topic in orjson.loads(f"{{{topics}}}").values()}
