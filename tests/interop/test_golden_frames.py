"""Frames that real Apache RocketMQ programs sent (golden/*.hex), read and written by ours.

Recorded by tests/interop/capture.py of commit b5490f1a.
"""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.remoting.bodies.client import HeartbeatData
from nemesrv.remoting.bodies.register import RegisterBrokerBody
from nemesrv.remoting.bodies.route import ClusterInfo, TopicList, TopicRouteData
from nemesrv.remoting.codes import LanguageCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.frame import decode_frame, encode_frame
from nemesrv.remoting.headers.broker import (
    ConsumerSendMsgBackRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetEarliestMsgStoretimeRequestHeader,
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    PullMessageRequestHeader,
    QueryConsumerOffsetRequestHeader,
    SearchOffsetRequestHeader,
    SendMessageRequestHeader,
    UnregisterClientRequestHeader,
    UpdateConsumerOffsetRequestHeader,
    ViewMessageRequestHeader,
)
from nemesrv.remoting.headers.namesrv import GetRouteInfoRequestHeader, RegisterBrokerRequestHeader
from nemesrv.remoting.message import StoredMessage
from nemesrv.remoting.message_batch import decode_batch
from nemesrv.remoting.message_properties import parse_properties

GOLDEN = {path.stem: path for path in sorted(Path(__file__).with_name("golden").glob("*.hex"))}

HEADERS: dict[int, Any] = {
    11: PullMessageRequestHeader,
    14: QueryConsumerOffsetRequestHeader,
    15: UpdateConsumerOffsetRequestHeader,
    29: SearchOffsetRequestHeader,
    30: GetMaxOffsetRequestHeader,
    31: GetMinOffsetRequestHeader,
    32: GetEarliestMsgStoretimeRequestHeader,
    33: ViewMessageRequestHeader,
    35: UnregisterClientRequestHeader,
    36: ConsumerSendMsgBackRequestHeader,
    38: GetConsumerListByGroupRequestHeader,
    103: RegisterBrokerRequestHeader,
    105: GetRouteInfoRequestHeader,
    361: PullMessageRequestHeader,
}
NOT_READ = {"bname", "ReqT"}
"""Fields of RpcRequestHeader and of lite pulling that no server of ours has a use for."""


def _frame(name: str) -> bytes:
    lines = GOLDEN[name].read_text().splitlines()
    return bytes.fromhex("".join(line for line in lines if not line.startswith("#")))


def _named(part: str) -> list[str]:
    return [name for name in GOLDEN if part in name]


def _each(names: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", names, ids=names)


def _command(name: str) -> RemotingCommand:
    return decode_frame(_frame(name))


@_each(list(GOLDEN))
def test_a_frame_of_apaches_is_written_as_apache_wrote_it(name: str) -> None:
    frame, command = _frame(name), _command(name)
    assert command.language is LanguageCode.JAVA
    assert command.is_response is ("-response" in name)
    written = encode_frame(command)
    assert decode_frame(written) == command
    # Java's order of extFields is that of its HashMap; every byte else is the same
    assert sorted(written) == sorted(frame)
    assert len(command.ext_fields or ()) > 1 or written == frame


@_each([name for name in GOLDEN if "-response" not in name and int(name.rpartition("-")[2]) in HEADERS])
def test_a_request_header_of_apaches_loses_nothing(name: str) -> None:
    command = _command(name)
    read = HEADERS[command.code].from_ext_fields(command.ext_fields).to_ext_fields()
    sent = command.ext_fields or {}
    assert sent.items() >= read.items()
    assert sent.keys() - read.keys() <= NOT_READ


@_each([*_named("client-310"), *_named("client-320")])
def test_a_send_header_of_apaches_is_written_back_in_its_letters(name: str) -> None:
    command = _command(name)
    assert SendMessageRequestHeader.from_v2(command.ext_fields).to_v2() == command.ext_fields


@_each(_named("client-320"))
def test_a_batch_of_apaches_is_read(name: str) -> None:
    items = decode_batch(_command(name).body)
    properties = [parse_properties(item.properties.decode()) for item in items]
    assert [each["KEYS"] for each in properties] == ["batch-0", "batch-1", "batch-2"]
    assert [item.body for item in items] == [b"body 0", b"body 1", b"body 2"]


@_each(_named("broker-11-response"))
def test_a_message_stored_by_apache_is_written_back_to_the_byte(name: str) -> None:
    body = _command(name).body
    (message,) = StoredMessage.decode_all(body, strict=True)
    assert (message.topic, message.body, message.keys, message.tags) == ("golden", b"body", "k0", "TagA")
    assert message.encode() == body


@_each(_named("nameserver-105-response"))
def test_a_route_of_apaches_is_written_back_to_the_byte(name: str) -> None:
    body = _command(name).body
    route = TopicRouteData.decode(body)
    assert [row.broker_name for row in route.queue_datas] == ["java-b"]
    assert route.encode(standard_json="unquoted" not in name) == body


@_each([*_named("nameserver-106-response"), *_named("nameserver-206-response")])
def test_a_list_of_apaches_name_server_is_written_back_to_the_byte(name: str) -> None:
    body = _command(name).body
    assert (ClusterInfo if "-106-" in name else TopicList).decode(body).encode() == body


@_each(_named("broker-103"))
def test_a_registration_of_apaches_is_read_whole(name: str) -> None:
    command = _command(name)
    body = RegisterBrokerBody.decode(command.body, version=command.version)
    topics = {topic.topic_name: topic for topic in body.topics}
    assert {"TBW102", "DefaultCluster", "java-b", "SCHEDULE_TOPIC_XXXX"} <= topics.keys()
    assert (topics["TBW102"].read_queue_nums, topics["TBW102"].perm) == (8, 7)
    assert RegisterBrokerBody.decode(body.encode(), version=command.version) == body


@_each(_named("client-34"))
def test_a_heartbeat_of_apaches_is_read_whole(name: str) -> None:
    body = _command(name).body
    heartbeat = HeartbeatData.decode(body)
    groups = {data.group_name for data in heartbeat.consumer_data_set}
    assert groups
    assert all(group.startswith("golden-") for group in groups)
    assert HeartbeatData.decode(heartbeat.encode()) == heartbeat
