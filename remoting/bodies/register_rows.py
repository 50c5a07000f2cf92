"""Reads the topics of a REGISTER_BROKER body quickly, if nearly the same body was read before. Pure: no I/O.

A broker with ten thousand topics sends all topics every 30 s: 1.5 MB of JSON in which at most one topic has changed. A
long body is therefore cut into pieces between topics, and a piece that the broker's last body had is not read again.

    {..."dataVersion":{...},"topicConfigTable":{ "a":{...},"b":{...} , "c":{...},"d":{...} , "e":{...}}}
    |------------------ head ------------------|-------piece--------|-------piece--------|---- rest ----|

The bytes before and after the topics are parsed as a registration, and each new piece as `{piece}`. If a piece is no
JSON, the cut was wrong, and the whole body is parsed. Short, compressed and non-standard bodies are never cut into
pieces. The cuts of the broker's last body are tried first, so that an additional topic does not shift the cuts.

If a JSON object has a key twice, either value can be used; brokers never write such objects.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from .. import fastjson
from ..codes import V3_0_11
from ..errors import RemoteProtocolError
from .register import RegisterBrokerBody, TopicConfigSerializeWrapper, check_count
from .route import QueueData, Row, TopicConfig

PIECE = 16_384
"""About the bytes of one piece: a hundred topics."""

_TABLE = b'"topicConfigTable":{'
_LAST_FIELD = b'"writeQueueNums":'  # names are sorted; where this is not so, bodies are not cut or cut in vain
_BETWEEN = b'},"'
_MARK = ""
"""A member put where the pieces were: it must turn up in the registration's own table, and not elsewhere."""

_numbers = itemgetter("readQueueNums", "writeQueueNums", "perm", "topicSysFlag", "order", "topicFilterType")

_Shared = dict[tuple[object, ...], QueueData]


class Start(NamedTuple):
    """Where a piece begins: its first key with the brace, and the distance in bytes from the previous piece's begin."""

    key: bytes
    distance: int


class Pieces(NamedTuple):
    """The pieces of one body: where each piece begins, in order, and the digest of each piece's bytes."""

    starts: tuple[Start, ...] = ()
    digests: frozenset[bytes] = frozenset()
    shared: Mapping[tuple[object, ...], QueueData] = {}
    """The rows met so far, by what they were made from: topics with the same numbers have the same row."""


NO_PIECES = Pieces()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredRows:
    """A registration: `body` has everything but the topics; `rows` has the topics in new pieces."""

    body: RegisterBrokerBody
    rows: list[Row]
    pieces: Pieces


def read_rows(data: bytes, broker_name: str, *, version: int, last: Pieces = NO_PIECES) -> RegisteredRows:
    """Read the body `data` of a registration by a broker with RocketMQ `version`, without the topics whose bytes are in
    `last`, the broker's previous body. Raises RemoteProtocolError, as RegisterBrokerBody.decode does."""
    shared, rows = dict(last.shared), list[Row]()
    if version < V3_0_11 or data[:1] != b"{":
        body = RegisterBrokerBody.decode(data, version=version)
        _add_topics(body.topics, broker_name, shared, rows)
        return RegisteredRows(body=body, rows=rows, pieces=NO_PIECES)
    head_and_rest, starts, pieces = _cut(data, last.starts)
    digests = [hashlib.sha256(piece, usedforsecurity=False).digest() for piece in pieces]
    try:
        for piece, digest in zip(pieces, digests, strict=True):
            if digest not in last.digests:
                _add_rows(orjson.loads(b"".join((b"{", piece, b"}"))), broker_name, shared, rows)
        value = fastjson.loads(head_and_rest)
        table = _taken_table(value)
        if pieces and (table is None or table.pop(_MARK, None) != 0):
            raise ValueError("it was another topicConfigTable")
    except (ValueError, RemoteProtocolError):  # the cut was wrong; or it was right, and the next line says so again
        starts, digests, rows = (), [], []
        value = fastjson.loads(data)
        table = _taken_table(value)
    if table is not None:
        check_count(len(table) + len(rows))
        _add_rows(table, broker_name, shared, rows)
    body = RegisterBrokerBody.from_json(value)
    return RegisteredRows(body=body, rows=rows, pieces=Pieces(starts, frozenset(digests), shared))


def _taken_table(value: object) -> dict[str, Any] | None:
    wrapper = value.get("topicConfigSerializeWrapper") if isinstance(value, dict) else None
    if isinstance(wrapper, dict) and isinstance(wrapper.get("topicConfigTable"), dict):
        table: dict[str, Any] = wrapper.pop("topicConfigTable")
        return table
    return None


def _cut(data: bytes, last: tuple[Start, ...]) -> tuple[bytes, tuple[Start, ...], list[memoryview]]:
    """Head, mark and rest, and the pieces between head and rest with their beginnings; of a short body all is rest."""
    begin = at = data.find(_TABLE) + len(_TABLE)
    starts, pieces = list[Start](), list[memoryview]()
    if len(data) < 2 * PIECE or begin < len(_TABLE) or (b"$" in data and b'"$ref"' in data):
        return data, (), pieces
    view, wanted, distance = memoryview(data), iter(last[1:]), 0
    while len(data) - at > 2 * PIECE:
        end = next((end for start in wanted if (end := _find(data, at, start)) > at), 0)
        if not end:
            end = data.find(_BETWEEN, data.find(_LAST_FIELD, at + PIECE)) + 2
            if end < at + PIECE:
                break
        pieces.append(view[at : end - 1])
        starts.append(Start(data[at : data.find(b"{", at) + 1], distance))
        at, distance = end, end - at
    if not pieces:
        return data, (), pieces
    return b"".join((view[:begin], b'"', _MARK.encode(), b'":0,', view[at:])), tuple(starts), pieces


def _find(data: bytes, at: int, start: Start) -> int:
    if data.startswith(start.key, at + start.distance):
        return at + start.distance
    return data.find(start.key, at, at + 2 * PIECE)


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
