"""What is put into the store, what comes out of it, and why nothing was stored. Upstream: `MessageExtBrokerInner`,
`PutMessageResult`, `GetMessageResult`, `GetMessageStatus`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ...remoting.node.network import Address
from .commit_log import StoreError


class StoreFull(StoreError):
    """Nothing was stored: the disk is full or failing."""


class MessageIllegal(Exception):
    """Nothing was stored: the message does not fit a record, or the log's limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PutMessage:
    """A message to store. Its broker side (offsets, store time, store host) is given by the store."""

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
    """Of a committed transaction: where its half message lies."""


@dataclass(frozen=True, slots=True)
class Append:
    """Where messages went: consecutive queue offsets from `queue_offset`, and each one's commit-log offset."""

    queue_offset: int
    physical_offsets: tuple[int, ...]


class GetStatus(Enum):
    """Names as they stand in a pull answer's remark (`GetMessageStatus`)."""

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
    """What a pull got: records back to back in `data`, and where to pull next."""

    status: GetStatus
    next_offset: int
    min_offset: int
    max_offset: int
    data: bytes = b""
    count: int = 0


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was there at the start: topic -> queue id -> max offset, and how much of a torn tail was cut off."""

    recovered: dict[str, dict[int, int]] = field(default_factory=dict)
    truncated_bytes: int = 0
