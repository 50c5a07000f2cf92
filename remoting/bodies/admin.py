"""Bodies that only mqadmin exchanges with brokers. Upstream: `protocol/body/*`."""

from collections.abc import Mapping
from dataclasses import field

from ..headers.fields import wire
from ..message import MessageQueue
from .client import ConsumeStats, SubscriptionData, SubscriptionGroupConfig
from .fields import Body, Long
from .route import TopicConfig


class CreateTopicListRequestBody(Body):
    """Topics to create or change, with their new settings (request 18)."""

    topic_config_list: tuple[TopicConfig, ...] = ()


class SubscriptionGroupList(Body):
    """Consumer groups to create or change, with their new settings (request 225)."""

    group_config_list: tuple[SubscriptionGroupConfig, ...] = ()


class HAConnectionRuntimeInfo(Body):
    """A slave's state, as its master reports it."""

    addr: str
    slave_ack_offset: Long = 0
    diff: Long = 0
    in_sync: bool = False
    transferred_byte_in_second: Long = 0
    transfer_from_where: Long = 0


class HAClientRuntimeInfo(Body):
    """A slave's state, as the slave reports it."""

    master_addr: str | None = None
    transferred_byte_in_second: Long = 0
    max_offset: Long = 0
    last_read_timestamp: Long = 0
    last_write_timestamp: Long = 0
    master_flush_offset: Long = 0
    activated: bool = False


class HARuntimeInfo(Body):
    """How many bytes each slave is behind its master (request 907)."""

    master: bool
    master_commit_log_max_offset: Long = 0
    in_sync_slave_nums: int = 0
    ha_connection_info: tuple[HAConnectionRuntimeInfo, ...] = ()
    ha_client_runtime_info: HAClientRuntimeInfo = field(default_factory=HAClientRuntimeInfo)


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


class GetConsumerStatusBody(Body):
    """One client's own offsets (request 221), or every client's offsets, by client id (223)."""

    message_queue_table: Mapping[MessageQueue, Long] = field(default_factory=dict)
    consumer_table: Mapping[str, Mapping[MessageQueue, Long]] = field(default_factory=dict)


class ProducerInfo(Body):
    client_id: str
    remote_ip: str = wire("remoteIP")
    language: str | None = None
    version: int = 0
    last_update_timestamp: Long = 0


class ProducerTableInfo(Body):
    """Every producer at a broker, by group (request 328)."""

    data: Mapping[str, tuple[ProducerInfo, ...]] = field(default_factory=dict)


class ConsumeStatsList(Body):
    """The progress of every consumer group (request 317). The last field exists in 5.x only."""

    consume_stats_list: tuple[Mapping[str, tuple[ConsumeStats, ...]], ...] = ()
    broker_addr: str
    total_diff: Long = 0
    total_inflight_diff: Long | None = None


class ConsumeQueueData(Body):
    physic_offset: Long
    physic_size: int
    tags_code: Long
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    msg: str | None = None


class QueryConsumeQueueResponseBody(Body):
    """Entries of one consume queue, and a consumer group's filter for them (request 321)."""

    subscription_data: SubscriptionData | None = None
    filter_data: str | None = None
    queue_data: tuple[ConsumeQueueData, ...] | None = None
    max_queue_index: Long = 0
    min_queue_index: Long = 0


class QueueTimeSpan(Body):
    message_queue: MessageQueue
    min_time_stamp: Long = 0
    max_time_stamp: Long = 0
    consume_time_stamp: Long = 0
    delay_time: Long = 0


class QueryConsumeTimeSpanBody(Body):
    """For each queue, the store times of the first, the last and the last consumed message (request 303)."""

    consume_time_span_set: tuple[QueueTimeSpan, ...] = ()
