"""Frames that the benchmarks send: registrations of made-up brokers and route requests, and what answers them."""

import socket
import zlib
from collections.abc import Iterable

from nemesrv.remoting.bodies.register import RegisterBrokerBody, TopicConfigSerializeWrapper
from nemesrv.remoting.bodies.route import DataVersion, TopicConfig
from nemesrv.remoting.codes import RequestCode, SerializeType
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.frame import decode_frame, encode_frame
from nemesrv.remoting.headers.namesrv import RegisterBrokerRequestHeader

from .measure import BenchError, Server, Shot

OPAQUE = 123_456_789


def topics(count: int, *, prefix: str = "topic", queues: int = 8) -> tuple[TopicConfig, ...]:
    """So many topics, with all the fields that a Java broker sends."""
    return tuple(
        TopicConfig(topic_name=f"{prefix}-{number:05}", read_queue_nums=queues, write_queue_nums=queues)
        for number in range(count)
    )


def body(topics: Iterable[TopicConfig], *, counter: int = 1) -> bytes:
    """A broker's topics as its data version `counter`."""
    wrapper = TopicConfigSerializeWrapper.of(tuple(topics), DataVersion(timestamp=1_700_000_000_000, counter=counter))
    return RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=()).encode()


def registration(number: int, body: bytes) -> RemotingCommand:
    """REGISTER_BROKER of the master number `number`."""
    host = f"10.{100 + number // 10_000}.{100 + number // 100 % 100}.{100 + number % 100}"  # all of one length
    header = RegisterBrokerRequestHeader(
        broker_name=f"broker-{number:05}",
        broker_addr=f"{host}:10911",
        cluster_name="DefaultCluster",
        ha_server_addr=f"{host}:10912",
        broker_id=0,
    ).to_ext_fields()
    header["bodyCrc32"] = f"{zlib.crc32(body) & 0x7FFFFFFF:010}"  # of one length, so that all frames are
    return RemotingCommand.request(RequestCode.REGISTER_BROKER, header, body)


def changing(count: int, *, changed: int) -> list[RemotingCommand]:
    """Registrations of one broker with so many topics, to be sent in turn: of each the last `changed` have other queue
    numbers than before. One registration, if none has."""
    fixed = topics(count - changed)
    versions = ((4, 1), (8, 2)) if changed else ((8, 1),)
    return [
        registration(9000, body((*fixed, *topics(count, queues=queues)[count - changed :]), counter=counter))
        for queues, counter in versions
    ]


def route_request(topic: str, kind: SerializeType = SerializeType.JSON) -> RemotingCommand:
    request = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    request.serialize_type = kind
    return request


def connected(server: Server) -> socket.socket:
    return socket.create_connection(server.address, timeout=60)


def shot(connection: socket.socket, name: str, *requests: RemotingCommand) -> Shot:
    """The frames of `requests`, with the answer that each of them gets over `connection` now. BenchError unless it is
    one and the same, with code 0."""
    calls = [call(connection, request) for request in requests]
    asked = [frame for frame, _ in calls]
    answered = calls[0][1]
    if any(answer != answered for _, answer in calls) or any(len(frame) != len(asked[0]) for frame in asked):
        raise BenchError(f"{name}: the frames have several lengths or answers")
    return Shot(
        name=name,
        request=b"".join(asked),
        frames=len(asked),
        request_offset=opaque_offset(asked[0]),
        response=answered,
        response_offset=opaque_offset(answered),
        text=asked[0][4] == SerializeType.JSON,
        response_text=answered[4] == SerializeType.JSON,
    )


def call(connection: socket.socket, command: RemotingCommand) -> tuple[bytes, bytes]:
    """The frames sent and received. BenchError unless the answer is code 0."""
    command.opaque = OPAQUE
    asked = encode_frame(command)
    connection.sendall(asked)
    answered = _receive(connection, 4)
    answered += _receive(connection, int.from_bytes(answered, "big"))
    response = decode_frame(answered)
    if response.code:
        raise BenchError(f"request {command.code} was answered with code {response.code}: {response.remark}")
    return asked, answered


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise BenchError("the NameServer closed the connection")
        data += part
    return data


def opaque_offset(frame: bytes) -> int:
    """Where the opaque of a frame made by `call`, or of the answer to one, stands."""
    return frame.index(b"%d" % OPAQUE) if frame[4] == SerializeType.JSON else 13
