"""Reads the topics of a REGISTER_BROKER body as rows of the route table. Pure: no I/O.

A broker with ten thousand topics sends all topics every 30 s: 1.5 MB of JSON, in which nearly always nothing has
changed. A body with the same bytes as the broker's last body is therefore not read again. Topics with the same numbers
have the same row, so that a row is made once and not for each topic.

If a JSON object has a key twice, either value can be used; brokers never write such objects.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from .. import fastjson
from ..codes import V3_0_11
from .register import RegisterBrokerBody, TopicConfigSerializeWrapper, check_count
from .route import QueueData, Row, TopicConfig

_numbers = itemgetter("readQueueNums", "writeQueueNums", "perm", "topicSysFlag", "order", "topicFilterType")

_Shared = dict[tuple[object, ...], QueueData]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredRows:
    """A registration: `body` has everything but the topics, `rows` the topics, and `digest` is of the body's bytes."""

    body: RegisterBrokerBody
    rows: Sequence[Row]
    digest: bytes


def read_rows(data: bytes, broker_name: str, *, version: int, last: RegisteredRows | None = None) -> RegisteredRows:
    """Read the body `data` of a registration by a broker with RocketMQ `version`. Returns `last`, the broker's previous
    registration, if `data` has the same bytes. Raises RemoteProtocolError, as RegisterBrokerBody.decode does."""
    digest = hashlib.sha256(data, usedforsecurity=False).digest()
    if last is not None and last.digest == digest:
        return last
    shared, rows = _Shared(), list[Row]()
    if version < V3_0_11 or data[:1] != b"{":
        body = RegisterBrokerBody.decode(data, version=version)
        _add_topics(body.topics, broker_name, shared, rows)
        return RegisteredRows(body=body, rows=rows, digest=digest)
    value = fastjson.loads(data)
    wrapper = value.get("topicConfigSerializeWrapper") if isinstance(value, dict) else None
    if isinstance(wrapper, dict) and isinstance(wrapper.get("topicConfigTable"), dict):
        table: dict[str, Any] = wrapper.pop("topicConfigTable")
        check_count(len(table))
        _add_rows(table, broker_name, shared, rows)
    return RegisteredRows(body=RegisterBrokerBody.from_json(value), rows=rows, digest=digest)


def _add_rows(table: Mapping[str, Any], broker_name: str, shared: _Shared, rows: list[Row]) -> None:
    """The rows of a table's members, as `_add_topics` has them; quick where all is as brokers send it."""
    for key, topic in table.items():
        try:
            numbers = _numbers(topic)
            row = shared[numbers]
            name, attributes = topic["topicName"], topic.get("attributes")
            if type(name) is str and name and (not attributes or _texts(attributes)):
                rows.append((name, row))
                continue
        except (AttributeError, KeyError, TypeError):
            pass
        wrapper = TopicConfigSerializeWrapper.from_json({"topicConfigTable": {key: topic}})
        _add_topics(tuple(wrapper.topic_config_table.values()), broker_name, shared, rows)


def _texts(attributes: object) -> bool:
    return isinstance(attributes, dict) and all(isinstance(value, str) for value in attributes.values())


def _add_topics(topics: Iterable[TopicConfig], broker_name: str, shared: _Shared, rows: list[Row]) -> None:
    for topic in topics:
        numbers = topic.read_queue_nums, topic.write_queue_nums, topic.perm, topic.topic_sys_flag
        key = (*numbers, topic.order, topic.topic_filter_type)
        row = shared.get(key)
        if row is None:
            row = shared[key] = QueueData(
                broker_name=broker_name,
                read_queue_nums=topic.read_queue_nums,
                write_queue_nums=topic.write_queue_nums,
                perm=topic.perm,
                topic_sys_flag=topic.topic_sys_flag,
            )
        rows.append((topic.topic_name, row))
