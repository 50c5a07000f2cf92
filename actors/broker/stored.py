"""The messages that go into the store, the results of reading, and the reasons why nothing was stored. Upstream:
`MessageExtBrokerInner`, `PutMessageResult`, `GetMessageResult`, `GetMessageStatus`."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from ...remoting.message import StoredMessage
from ...remoting.message_properties import REAL_QUEUE_ID, REAL_TOPIC, TAGS, format_properties, tags_code
from ...remoting.node.network import Address
from .commit_log import StoreError


class StoreFull(StoreError):
    """The message was not stored, because the disk is full or failing, or because the broker is a slave."""


class MessageIllegal(Exception):
    """The message was not stored, because it is too long for a record or for the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PutMessage:
    """A message to store. The store adds offsets, store time and store host."""

    topic: str
    queue_id: int
    body: bytes
    properties: bytes = b""
    tags_code: int = 0
    born_timestamp: int
    born_host: Address
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    """Of a committed transaction's message: the commit-log offset of its half message."""


def copied(stored: StoredMessage, topic: str, queue_id: int, properties: Mapping[str, str]) -> PutMessage:
    return PutMessage(
        topic=topic,
        queue_id=queue_id,
        body=stored.body,
        properties=format_properties(properties).encode(),
        tags_code=tags_code(properties.get(TAGS)),
        born_timestamp=stored.born_timestamp,
        born_host=stored.born_host,
        flag=stored.flag,
        sys_flag=stored.sys_flag,
        reconsume_times=stored.reconsume_times,
    )


def set_aside(message: PutMessage, topic: str, queue_id: int, properties: Mapping[str, str]) -> PutMessage:
    """Return the message as it is stored while it waits in an internal topic (for its delay, or for its commit)."""
    kept = {**properties, REAL_TOPIC: message.topic, REAL_QUEUE_ID: str(message.queue_id)}
    return replace(message, topic=topic, queue_id=queue_id, properties=format_properties(kept).encode())


def taken_up(stored: StoredMessage) -> PutMessage | None:
    """Return the original message of a message that waited in an internal topic; None if the record lacks the original
    topic or queue. The properties REAL_TOPIC, REAL_QID and the one that made the message wait stay, as with Apache's
    brokers."""
    properties = stored.properties
    topic, queue_id = properties.get(REAL_TOPIC), properties.get(REAL_QUEUE_ID, "")
    return copied(stored, topic, int(queue_id), properties) if topic is not None and queue_id.isdigit() else None


@dataclass(frozen=True, slots=True)
class Append:
    """The offsets of stored messages: consecutive queue offsets from `queue_offset` on, and each message's commit-log
    offset."""

    queue_offset: int
    physical_offsets: tuple[int, ...]


SYS_FLAG_AT, STORE_TIME = 39, struct.Struct(">q")
"""Offsets in a record: of the low byte of its sysFlag, and of its store time."""


def store_time_at(sys_flag: int) -> int:
    """Return the store time's position in a record with this sysFlag: 56, or 68 if the born host is IPv6."""
    return 68 if sys_flag & 0x10 else 56


class GetStatus(Enum):
    """The possible results of a pull, named as in the answer's remark (`GetMessageStatus`)."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    OFFSET_RESET = "OFFSET_RESET"


@dataclass(frozen=True, slots=True)
class Found:
    """The store's answer to a pull: the records in `data`, and the offset for the consumer's next pull."""

    status: GetStatus
    next_offset: int
    min_offset: int
    max_offset: int
    data: bytes = b""
    count: int = 0


@dataclass(frozen=True, slots=True)
class Recovery:
    """The result of recovering the commit log: the end of each topic's queues, and how many bytes were cut off the
    log's end."""

    recovered: dict[str, dict[int, int]] = field(default_factory=dict)
    truncated_bytes: int = 0
