"""The body of a batch send (320): messages of one topic in one request.

    totalSize 4 · magic 4 (0) · bodyCRC 4 (0) · flag 4 · bodyLen 4 · body · propsLen 2 · properties      repeated

Topic, queue, born timestamp and sysFlag are in the request's header. Upstream: `MessageDecoder.decodeMessages`.
"""

import struct
from typing import NamedTuple

from .errors import RemoteProtocolError

_HEAD = struct.Struct(">iiiii")
_LENGTH_2 = struct.Struct(">h")


class BatchItem(NamedTuple):
    """One message of a batch; `properties` are the bytes of its properties string."""

    flag: int
    body: bytes
    properties: bytes


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
