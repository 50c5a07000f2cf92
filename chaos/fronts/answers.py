"""Makes a front's own answers, and removes brokers or replaces addresses in route answers. fastjson writes brokerIds in
two ways, `{0:"10.0.0.1:10911"}` and `{"0":"10.0.0.1:10911"}`; a changed body keeps its original way. A change of
addresses leaves all other bytes of the body as they are.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from ...remoting.bodies.route import TopicRouteData
from ...remoting.codes import FLAG_RESPONSE, V4_9_8, LanguageCode, ResponseCode
from ...remoting.command import RemotingCommand
from ...remoting.errors import ProtocolError
from ...remoting.frame import decode_frame, encode_frame

_QUOTED_IDS = re.compile(rb'"brokerAddrs"\s*:\s*\{\s*"')


def answer_to(frame: bytes, code: int, topic: str = "") -> bytes:
    """Return a response with `code`, and with the opaque and the header encoding of the message in `frame`. The remark
    of code 17 names `topic`."""
    command = decode_frame(frame)
    remark = f"response code {code} of a front"
    if code == ResponseCode.TOPIC_NOT_EXIST:
        remark = f"No topic route info in name server for the topic: {topic}"
    return encode_frame(
        RemotingCommand(
            code,
            LanguageCode.JAVA,
            V4_9_8,
            command.opaque,
            FLAG_RESPONSE,
            remark,
            {},  # a Java producer wants the map in every answer to a send
            serialize_type=command.serialize_type,
        )
    )


def with_body(frame: bytes, body: bytes) -> bytes:
    """Return the frame with another body; the header stays the same byte for byte."""
    header = int.from_bytes(frame[4:8], "big") & 0xFF_FFFF
    return b"".join(((4 + header + len(body)).to_bytes(4, "big"), frame[4 : 8 + header], body))


def readdressed(body: bytes, addresses: Mapping[str, str]) -> bytes:
    """Return the body with each old address in `addresses` replaced by its new address."""
    # quotes and all, so that 10.0.0.1:1091 is not found in 10.0.0.1:10911; at once, as one's new may be another's old
    told = {f'"{old}"'.encode(): f'"{new}"'.encode() for old, new in addresses.items()}
    return re.sub(b"|".join(map(re.escape, told)), lambda found: told[found[0]], body) if told else body


def told(frame: bytes, addresses: Mapping[str, str], *, answers: bool = False) -> bytes:
    if not any(old.encode() in frame for old in addresses):
        return frame
    try:
        command = decode_frame(frame)
    except ProtocolError:
        return frame
    fields = command.ext_fields or {}
    if command.is_response is not answers or not any(value in addresses for value in fields.values()):
        return frame
    command.ext_fields = {key: addresses.get(value, value) for key, value in fields.items()}
    return encode_frame(command)


def without(body: bytes, names: Collection[str]) -> bytes | None:
    """Return the route without the brokers `names`; None if no broker is left. Raises RemoteProtocolError for an
    unreadable route."""
    route = TopicRouteData.decode(body)
    brokers = tuple(broker for broker in route.broker_datas if broker.broker_name not in names)
    queues = tuple(row for row in route.queue_datas if row.broker_name not in names)
    if not brokers or not queues:
        return None
    is_standard = _QUOTED_IDS.search(body) is not None
    return replace(route, broker_datas=brokers, queue_datas=queues).encode(standard_json=is_standard)
