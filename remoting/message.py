"""Messages: what a client sends (`Message`), and what a broker keeps and a consumer pulls (`StoredMessage`).

The layout of a stored record is big-endian; the commit log and the body of a pull answer consist of such records.

     0 totalSize 4      4 magic 4           8 bodyCRC 4       12 queueId 4        16 flag 4      20 queueOffset 8
    28 physicalOffset 8                    36 sysFlag 4       40 bornTimestamp 8  48 bornHost 8 (IPv6: 20)
    56 storeTimestamp 8                    64 storeHost 8 (IPv6: 20)              72 reconsumeTimes 4
    76 preparedTransactionOffset 8         84 bodyLen 4, body · topicLen 1 (V2: 2), topic · propsLen 2, properties

A record's properties stay raw bytes, so that decoding and encoding a record gives the same bytes. Upstream:
`MessageDecoder`, `MessageVersion`, `MessageExt`, `Message`, `MessageQueue`, `CommitLog`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import lru_cache
from typing import NamedTuple

from . import compression, message_properties
from .errors import LocalProtocolError, RemoteProtocolError
from .message_id import offset_msg_id, pack_host, unpack_host
from .message_properties import PROPERTIES_MAX, parse_properties
from .node.network import Address

MAGIC_V1 = -626843481  # 0xDAA320A7
MAGIC_V2 = -626843477  # 0xDAA320AB, for topic names over 127 bytes; clients before 5.x cannot read it
BLANK_MAGIC = -875286124  # 0xCBD43194, the filler at the end of a commit-log file

_V6 = compression.BORN_HOST_V6_FLAG | compression.STORE_HOST_V6_FLAG
_HEADS = {
    sys_flag_bits: struct.Struct(f">iiiiiqqiq{born}sq{store}siqi")
    for sys_flag_bits, born, store in ((0, 8, 8), (0x10, 20, 8), (0x20, 8, 20), (0x30, 20, 20))
}
_SYS_FLAG = struct.Struct(">i")
_LENGTH_2 = struct.Struct(">h")

Buffer = bytes | bytearray | memoryview


class MessageQueue(NamedTuple):
    """One queue of a topic at one broker. Queues are ordered as in Java: by topic, broker name, queue id."""

    topic: str
    broker_name: str
    queue_id: int


@dataclass(frozen=True, slots=True)
class Message:
    """A message that a client sends. `properties` has RocketMQ's properties (KEYS, TAGS, …) and the user's."""

    topic: str
    body: bytes
    _: KW_ONLY
    properties: Mapping[str, str] = field(default_factory=dict)
    flag: int = 0

    @classmethod
    def create(
        cls,
        topic: str,
        body: bytes,
        *,
        tags: str = "",
        keys: str = "",
        user_properties: Mapping[str, str] | None = None,
    ) -> Message:
        """Make a message with the properties that Java's constructor and setters set."""
        own = {message_properties.WAIT: "true", message_properties.KEYS: keys, message_properties.TAGS: tags}
        properties = {name: value for name, value in own.items() if value}
        return cls(topic, body, properties={**properties, **(user_properties or {})})

    def with_property(self, name: str, value: str) -> Message:
        return Message(self.topic, self.body, properties={**self.properties, name: value}, flag=self.flag)

    @property
    def keys(self) -> str | None:
        """The message's keys, separated by spaces."""
        return self.properties.get(message_properties.KEYS)

    @property
    def uniq_key(self) -> str | None:
        return self.properties.get(message_properties.UNIQ_KEY)


@lru_cache(maxsize=4096)
def _topic_field(topic: str, version: int) -> bytes:
    name = topic.encode(errors="replace")  # Java too writes ? for half a surrogate pair
    if version == 1 and len(name) <= 127:
        return len(name).to_bytes(1, "big") + name
    if version == 2 and len(name) <= 32767:
        return len(name).to_bytes(2, "big") + name
    raise LocalProtocolError(f"topic of {len(name)} B does not fit a record of version {version}")


def encode_record(
    *,
    topic: str,
    body: bytes,
    properties: bytes,
    queue_id: int,
    queue_offset: int,
    physical_offset: int,
    born_timestamp: int,
    born_host: Address,
    store_timestamp: int,
    store_host: Address,
    flag: int = 0,
    sys_flag: int = 0,
    reconsume_times: int = 0,
    prepared_transaction_offset: int = 0,
    version: int = 1,
) -> bytes:
    """Encode one record without making a StoredMessage first.

    The IPv6 bits of `sys_flag` follow the hosts' addresses, even if the caller set other bits. Raises
    LocalProtocolError if a value does not fit into its field.
    """
    born, store = pack_host(born_host), pack_host(store_host)
    bits = (0x10 if len(born) == 20 else 0) | (0x20 if len(store) == 20 else 0)
    head = _HEADS[bits]
    topic_field = _topic_field(topic, version)
    if len(properties) > PROPERTIES_MAX:
        raise LocalProtocolError(f"properties of {len(properties)} B exceed {PROPERTIES_MAX} B")
    try:
        return b"".join(
            (
                head.pack(
                    head.size + len(body) + len(topic_field) + 2 + len(properties),
                    MAGIC_V1 if version == 1 else MAGIC_V2,
                    zlib.crc32(body) & 0x7FFFFFFF,
                    queue_id,
                    flag,
                    queue_offset,
                    physical_offset,
                    (sys_flag & ~_V6) | bits,
                    born_timestamp,
                    born,
                    store_timestamp,
                    store,
                    reconsume_times,
                    prepared_transaction_offset,
                    len(body),
                ),
                body,
                topic_field,
                _LENGTH_2.pack(len(properties)),
                properties,
            )
        )
    except struct.error as exc:
        raise LocalProtocolError(f"message of topic {topic} does not fit a record: {exc}") from exc


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """One stored record. Timestamps are wall-clock milliseconds; `body` stays compressed if sys_flag says so."""

    topic: str
    body: bytes
    raw_properties: bytes = b""
    queue_id: int
    queue_offset: int
    physical_offset: int
    born_timestamp: int
    born_host: Address
    store_timestamp: int
    store_host: Address
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    version: int = 1
    """Of the record layout: 1, or 2 with a 2-byte topic length."""

    def encode(self) -> bytes:
        """Return the record's bytes. Raises LocalProtocolError if a value does not fit into its field."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return encode_record(properties=values.pop("raw_properties"), **values)

    @classmethod
    def decode_at(cls, data: Buffer, position: int = 0, *, strict: bool = False) -> tuple[StoredMessage, int]:
        """Return the record at `position` and the position after the record.

        Raises RemoteProtocolError if no record is there. As in Java, the lengths of body, topic and properties decide;
        `strict` also compares these lengths with totalSize, checks bodyCRC and requires valid UTF-8 in the topic.
        """
        try:
            return _decode_at(data, position, strict)
        except (struct.error, UnicodeDecodeError) as exc:
            raise RemoteProtocolError(f"record at {position} of {len(data)} B cannot be read: {exc}") from exc

    @classmethod
    def decode_all(cls, data: Buffer, *, strict: bool = False) -> list[StoredMessage]:
        """Return all records up to the first bad record, as Java does; with `strict` a bad record raises
        RemoteProtocolError."""
        messages = []
        position = 0
        while position < len(data):
            try:
                message, position = cls.decode_at(data, position, strict=strict)
            except RemoteProtocolError:
                if strict:
                    raise
                break
            messages.append(message)
        return messages

    @property
    def properties(self) -> dict[str, str]:
        """Return the message's properties by name, as a new dict."""
        return _parsed(self.raw_properties).copy()

    @property
    def inflated_body(self) -> bytes:
        """Return the body as its producer gave it. Raises RemoteProtocolError for a body that cannot be inflated or is
        too large."""
        return compression.decompress(self.body, self.sys_flag)

    @property
    def offset_msg_id(self) -> str:
        return offset_msg_id(self.store_host, self.physical_offset)

    @property
    def msg_id(self) -> str:
        """The message id that a Java consumer shows: the uniq id if the message has one, else the offset id."""
        return self.uniq_key or self.offset_msg_id

    @property
    def uniq_key(self) -> str | None:
        return _parsed(self.raw_properties).get(message_properties.UNIQ_KEY)

    @property
    def tags(self) -> str | None:
        return _parsed(self.raw_properties).get(message_properties.TAGS)

    @property
    def keys(self) -> str | None:
        """The message's keys, separated by spaces."""
        return _parsed(self.raw_properties).get(message_properties.KEYS)


@lru_cache(maxsize=64)  # who looks at a message looks at several of its properties
def _parsed(raw: bytes) -> dict[str, str]:
    return parse_properties(raw.decode(errors="replace"))


def _decode_at(data: Buffer, position: int, strict: bool) -> tuple[StoredMessage, int]:
    (sys_flag,) = _SYS_FLAG.unpack_from(data, position + 36)
    head = _HEADS[sys_flag & _V6]
    (
        total_size,
        magic,
        body_crc,
        queue_id,
        flag,
        queue_offset,
        physical_offset,
        _,
        born_timestamp,
        born_host,
        store_timestamp,
        store_host,
        reconsume_times,
        prepared_transaction_offset,
        body_size,
    ) = head.unpack_from(data, position)
    if magic == MAGIC_V1:
        topic_at, version = position + head.size + body_size + 1, 1
    elif magic == MAGIC_V2:
        topic_at, version = position + head.size + body_size + 2, 2
    else:
        raise RemoteProtocolError(f"record at {position} has magic {magic & 0xFFFFFFFF:#010x}, not a message's")
    if body_size < 0 or topic_at > len(data):
        raise RemoteProtocolError(f"record at {position} says body of {body_size} B, {len(data) - position} B remain")
    body = bytes(data[position + head.size : position + head.size + body_size])
    topic_size = int.from_bytes(data[topic_at - version : topic_at], "big", signed=True)
    properties_at = topic_at + topic_size + 2
    if topic_size < 0 or properties_at > len(data):
        raise RemoteProtocolError(f"record at {position} says topic of {topic_size} B, more than it holds")
    topic = str(data[topic_at : properties_at - 2], "utf-8", "strict" if strict else "replace")
    (properties_size,) = _LENGTH_2.unpack_from(data, properties_at - 2)
    end = properties_at + properties_size
    if properties_size < 0 or end > len(data):
        raise RemoteProtocolError(f"record at {position} says properties of {properties_size} B, more than it holds")
    if strict and total_size != end - position:
        raise RemoteProtocolError(f"record at {position} says {total_size} B and holds {end - position} B")
    if strict and body_crc != zlib.crc32(body) & 0x7FFFFFFF:
        raise RemoteProtocolError(f"record at {position} has a body that does not match its CRC")
    message = StoredMessage(
        topic=topic,
        body=body,
        raw_properties=bytes(data[properties_at:end]),
        queue_id=queue_id,
        queue_offset=queue_offset,
        physical_offset=physical_offset,
        born_timestamp=born_timestamp,
        born_host=unpack_host(born_host),
        store_timestamp=store_timestamp,
        store_host=unpack_host(store_host),
        flag=flag,
        sys_flag=sys_flag,
        reconsume_times=reconsume_times,
        prepared_transaction_offset=prepared_transaction_offset,
        version=version,
    )
    return message, end
