"""The body of a batch send (320): messages of one topic in one request.

    totalSize 4 · magic 4 (0) · bodyCRC 4 (0) · flag 4 · bodyLen 4 · body · propsLen 2 · properties      repeated

Topic, queue, born timestamp and sysFlag are in the request's header. Upstream: `MessageDecoder.encodeMessages`,
`MessageBatch`.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from .errors import LocalProtocolError, RemoteProtocolError
from .message import Message, raw_properties
from .message_properties import PROPERTIES_MAX
from .topics import RETRY_GROUP_TOPIC_PREFIX

_HEAD = struct.Struct(">iiiii")
_LENGTH_2 = struct.Struct(">h")


class BatchItem(NamedTuple):
    """One message of a batch; `properties` are the bytes of its properties string."""

    flag: int
    body: bytes
    properties: bytes


def encode_batch(messages: Sequence[Message]) -> bytes:
    """Return the request's body. Raises LocalProtocolError if there is no message, if topics or values of WAIT differ,
    and for a delayed or retried message."""
    if not messages:
        raise LocalProtocolError("a batch needs at least one message")
    first = messages[0]
    parts: list[bytes] = []
    for message in messages:
        if message.topic != first.topic:
            raise LocalProtocolError(f"a batch has one topic, not {first.topic} and {message.topic}")
        if message.wait_store_msg_ok != first.wait_store_msg_ok:
            raise LocalProtocolError("the messages of a batch must agree on WAIT")
        if message.delay_level > 0:
            raise LocalProtocolError("a delayed message cannot be in a batch")
        if message.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            raise LocalProtocolError("a retry message cannot be in a batch")
        parts.append(encode_item(BatchItem(message.flag, message.body, raw_properties(message.properties))))
    return b"".join(parts)


def encode_item(item: BatchItem) -> bytes:
    if len(item.properties) > PROPERTIES_MAX:
        raise LocalProtocolError(f"properties of {len(item.properties)} B exceed {PROPERTIES_MAX} B")
    size = _HEAD.size + len(item.body) + 2 + len(item.properties)
    head = _HEAD.pack(size, 0, 0, item.flag, len(item.body))
    return b"".join((head, item.body, _LENGTH_2.pack(len(item.properties)), item.properties))


def decode_batch(data: bytes | memoryview) -> list[BatchItem]:
    """Return the batch's messages in order. Raises RemoteProtocolError for a message that is cut short. The fields
    totalSize, magic and CRC are ignored, as in Java's broker."""
    items: list[BatchItem] = []
    position = 0
    while position < len(data):
        try:
            _, _, _, flag, body_size = _HEAD.unpack_from(data, position)
            body_at = position + _HEAD.size
            if body_size < 0:
                raise RemoteProtocolError(f"message {len(items)} of the batch says body of {body_size} B")
            (properties_size,) = _LENGTH_2.unpack_from(data, body_at + body_size)
        except struct.error as exc:
            raise RemoteProtocolError(f"message {len(items)} of the batch is cut short: {exc}") from exc
        properties_at = body_at + body_size + 2
        position = properties_at + properties_size
        if properties_size < 0 or position > len(data):
            raise RemoteProtocolError(f"message {len(items)} of the batch says properties of {properties_size} B")
        body = bytes(data[body_at : body_at + body_size])
        items.append(BatchItem(flag, body, bytes(data[properties_at:position])))
    return items
