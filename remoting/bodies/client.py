"""The bodies that clients and brokers exchange: heartbeats, consumers, queue locks, statistics.

Enumerations are plain text: consume type CONSUME_PASSIVELY (push) or CONSUME_ACTIVELY (pull), message model CLUSTERING
or BROADCASTING, consume from where CONSUME_FROM_LAST_OFFSET, _FIRST_OFFSET or _TIMESTAMP. Upstream:
`protocol/heartbeat/*`, `protocol/body/*`, `protocol/admin/*`, `SubscriptionGroupConfig`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ..headers.fields import wire
from ..message import MessageQueue
from ..message_properties import java_hash
from .fields import Body, Long
from .route import DataVersion

SUB_ALL = "*"


class SubscriptionData(Body):
    """A consumer's subscription to one topic. A subscription without tags, or with `*`, gets all messages."""

    topic: str
    sub_string: str = SUB_ALL
    tags_set: frozenset[str] = frozenset()
    code_set: frozenset[int] = frozenset()
    """Java hashes of the tags."""
    sub_version: Long = 0
    expression_type: str = "TAG"
    class_filter_mode: bool = False

    @classmethod
    def of(cls, topic: str, expression: str | None, *, sub_version: int = 0) -> SubscriptionData:
        """Make a subscription from `*` or tags joined by `||`, as Java's `FilterAPI.buildSubscriptionData` does. No tag
        means `*`."""
        tags = frozenset(tag for part in (expression or "").split("||") if (tag := part.strip()))
        if not tags or expression == SUB_ALL:
            return cls(topic=topic, sub_version=sub_version)
        return cls(
            topic=topic,
            sub_string=expression or SUB_ALL,
            tags_set=tags,
            code_set=frozenset(map(java_hash, tags)),
            sub_version=sub_version,
        )


class ProducerData(Body):
    group_name: str


class ConsumerData(Body):
    group_name: str
    consume_type: str = "CONSUME_PASSIVELY"
    message_model: str = "CLUSTERING"
    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    subscription_data_set: tuple[SubscriptionData, ...] = ()
    unit_mode: bool = False


class HeartbeatData(Body):
    """A heartbeat. The last two fields exist in 5.x only, and are left out if None."""

    client_id: str = wire("clientID")
    producer_data_set: tuple[ProducerData, ...] = ()
    consumer_data_set: tuple[ConsumerData, ...] = ()
    heartbeat_fingerprint: int | None = None
    without_sub: bool | None = None


class CheckClientRequestBody(Body):
    client_id: str
    group: str
    namespace: str | None = None
    subscription_data: SubscriptionData


class GetConsumerListByGroupResponseBody(Body):
    consumer_id_list: tuple[str, ...] = ()


ConsumerIdList = GetConsumerListByGroupResponseBody


class GroupList(Body):
    group_list: tuple[str, ...] = ()


class ClientConnection(Body):
    """A client that is connected to a broker. `language` is a LanguageCode's name."""

    client_addr: str
    client_id: str
    language: str | None = None
    version: int = 0


class ConsumerConnection(Body):
    connection_set: tuple[ClientConnection, ...] = ()
    subscription_table: Mapping[str, SubscriptionData] = field(default_factory=dict)
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None


class ProducerConnection(Body):
    connection_set: tuple[ClientConnection, ...] = ()


class LockBatchRequestBody(Body):
    """The queues that one orderly consumer wants to lock (request 41) or unlock (request 42)."""

    consumer_group: str
    client_id: str
    only_this_broker: bool = False
    mq_set: frozenset[MessageQueue] = frozenset()


class LockBatchResponseBody(Body):
    lock_ok_mq_set: frozenset[MessageQueue] = wire("lockOKMQSet", default=frozenset())


class SubscriptionGroupConfig(Body):
    """How a broker serves one consumer group. The last five fields exist in 5.x only, and are left out if None."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    broker_id: Long = 0
    which_broker_when_consume_slowly: Long = 1
    notify_consumer_ids_changed_enable: bool = True
    consume_message_orderly: bool | None = None
    group_retry_policy: object = None
    group_sys_flag: int | None = None
    consume_timeout_minute: int | None = None
    attributes: Mapping[str, str] | None = None


class SubscriptionGroupWrapper(Body):
    """Every group at a broker (GET_ALL_SUBSCRIPTIONGROUP_CONFIG, and a broker's file)."""

    subscription_group_table: Mapping[str, SubscriptionGroupConfig] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)


class TopicOffset(Body):
    min_offset: Long = 0
    max_offset: Long = 0
    last_update_timestamp: Long = 0


class TopicStatsTable(Body):
    offset_table: Mapping[MessageQueue, TopicOffset] = field(default_factory=dict)
    topic_put_tps: float | None = None
    """5.x."""


class OffsetWrapper(Body):
    broker_offset: Long = 0
    consumer_offset: Long = 0
    pull_offset: Long | None = None
    """5.x."""
    last_timestamp: Long = 0


class ConsumeStats(Body):
    offset_table: Mapping[MessageQueue, OffsetWrapper] = field(default_factory=dict)
    consume_tps: float = 0.0


class ProcessQueueInfo(Body):
    """One queue, as its consumer reports it. An offset is 0 if the queue has no message; times are milliseconds since
    1970."""

    commit_offset: Long = 0
    cached_msg_min_offset: Long = 0
    cached_msg_max_offset: Long = 0
    cached_msg_count: int = 0
    transaction_msg_min_offset: Long = 0
    transaction_msg_max_offset: Long = 0
    transaction_msg_count: int = 0
    locked: bool = False
    try_unlock_times: Long = 0
    last_lock_timestamp: Long = 0
    droped: bool = False
    last_pull_timestamp: Long = 0
    last_consume_timestamp: Long = 0


class ConsumerRunningInfo(Body):
    """A consumer's report about itself (GET_CONSUMER_RUNNING_INFO). `status_table` has the consumer's statistics by
    topic, as JSON."""

    properties: Mapping[str, str] = field(default_factory=dict)
    subscription_set: tuple[SubscriptionData, ...] = ()
    mq_table: Mapping[MessageQueue, ProcessQueueInfo] = field(default_factory=dict)
    mq_pop_table: Mapping[str, object] | None = None
    """5.x."""
    status_table: Mapping[str, object] = field(default_factory=dict)
    jstack: str | None = None


def said_of(heartbeat: HeartbeatData, version: int) -> dict[str, object]:
    """Return what a heartbeat says of its client's groups, in the form of a history row: each producer group with the
    word PRODUCER, each consumer group with its message model and how it consumes, each topic with its subscription's
    version, and each subscription's expression but `*`; and the request's version."""
    groups = {data.group_name: "PRODUCER" for data in heartbeat.producer_data_set}
    groups |= {data.group_name: data.message_model for data in heartbeat.consumer_data_set}
    subscribed = [each for data in heartbeat.consumer_data_set for each in data.subscription_data_set]
    versions = {each.topic: each.sub_version for each in subscribed}
    wanted = {each.topic: each.sub_string for each in subscribed if each.sub_string != SUB_ALL}
    consumes = {data.group_name: [data.consume_type, data.consume_from_where] for data in heartbeat.consumer_data_set}
    of_consumers = {"versions": versions, "wanted": wanted, "consumes": consumes}
    optional = {name: value for name, value in of_consumers.items() if value}
    return {"groups": groups, "version": version, **optional}
