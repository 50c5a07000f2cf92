"""Bodies that only mqadmin exchanges with brokers. Upstream: `protocol/body/*`."""

from collections.abc import Mapping
from dataclasses import field

from ..message import MessageQueue
from .fields import Body, Long


class ResetOffsetBody(Body):
    """The new consumer offset of each queue after a reset (requests 222 and 220)."""

    offset_table: Mapping[MessageQueue, Long] = field(default_factory=dict)


class MessageQueueForC(Body):
    topic: str
    broker_name: str
    queue_id: int
    offset: Long


class ResetOffsetBodyForC(Body):
    """The data of ResetOffsetBody for C++ clients, which cannot read JSON with objects as keys."""

    offset_table: tuple[MessageQueueForC, ...] = ()
