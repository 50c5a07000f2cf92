"""The catalogue of settings: each by RocketMQ's name, with its class, default, allowed values, and which nodes take it.

docs/settings.md is written from it. A setting stands here only when our nodes obey it; what RocketMQ has beside these
is in `elsewhere.py` and refused by name. Defaults are those of the nodes' own configurations. Read from Apache
RocketMQ 4.9.8 and 5.3.3; `constant` says where Java has a literal in place of a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...actors.broker.config import BrokerConfig
from ...actors.namesrv.config import Constants, NamesrvConfig
from ...clients.config import ClientConfig, ProducerConfig
from ...clients.consumer.config import ConsumerConfig
from ...clients.producer.fault_strategy import LATENCY_TABLE_4_9, LATENCY_TABLE_5_X
from ...remoting.node.profile import Profile
from ..topology import NodeKind
from .values import Allowed, Ascending, DelayLevels, OneOf, Truth, Value, Whole

NAME_SERVERS, BROKERS = (NodeKind.NAME_SERVER,), (NodeKind.BROKER,)
PRODUCERS, CONSUMERS = (NodeKind.PRODUCER,), (NodeKind.CONSUMER,)
CLIENTS = (NodeKind.PRODUCER, NodeKind.CONSUMER, NodeKind.PROBER)
V4_9, V5_X = Profile.V4_9, Profile.V5_X
BOTH = (V4_9, V5_X)
CONSTANTS = "constants."
"""How the field of a NameServer's constant begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting. `name` and `upstream` (the class) are RocketMQ's; `fields` is where a node's configuration has it.

    `factor`: so many of the field's units are one of the setting's. `symbol`: the window's timer (oracle/timers.py)
    that it sets, in milliseconds `symbol_factor` each. `profiles`: where it exists. `constant`: where Java has a
    literal. `defaults`: where they differ by profile from the configuration's own.
    """

    name: str
    upstream: str
    taken_by: tuple[NodeKind, ...]
    fields: str
    allowed: Allowed
    says: str
    factor: int = 1
    symbol: str | None = None
    profiles: tuple[Profile, ...] = BOTH
    constant: tuple[Profile, ...] = ()
    defaults: Mapping[Profile, Value] = field(default_factory=dict)

    def default(self, profile: Profile) -> Value:
        """RocketMQ's own value in this profile."""
        if profile in self.defaults:
            return self.defaults[profile]
        of = self.fields.removeprefix(CONSTANTS)
        value: Value = getattr(Constants() if of != self.fields else _DEFAULTS[self.taken_by[0]], of)
        return value // self.factor if isinstance(value, int) and self.factor > 1 else value


_DEFAULTS: Mapping[NodeKind, object] = {
    NodeKind.NAME_SERVER: NamesrvConfig(),
    NodeKind.BROKER: BrokerConfig(),
    NodeKind.PRODUCER: ProducerConfig(),
    NodeKind.CONSUMER: ConsumerConfig(),
    NodeKind.PROBER: ClientConfig(),
}

_MS = Whole(1, 600_000, "ms")
_COUNT = Whole(1, 1_000_000)


def _truth(name: str, upstream: str, taken_by: tuple[NodeKind, ...], fields: str, says: str) -> Setting:
    return Setting(name=name, upstream=upstream, taken_by=taken_by, fields=fields, allowed=Truth(), says=says)


def _truth_5(name: str, fields: str, says: str) -> Setting:
    return Setting(
        name=name,
        upstream="NamesrvConfig",
        taken_by=NAME_SERVERS,
        fields=fields,
        allowed=Truth(),
        says=says,
        profiles=(V5_X,),
    )


def _number(
    name: str, upstream: str, taken_by: tuple[NodeKind, ...], fields: str, allowed: Allowed, says: str
) -> Setting:
    return Setting(name=name, upstream=upstream, taken_by=taken_by, fields=fields, allowed=allowed, says=says)


_OF_NAME_SERVERS = (
    Setting(
        name="brokerChannelExpiredTime",
        upstream="RouteInfoManager",
        taken_by=NAME_SERVERS,
        fields=CONSTANTS + "broker_channel_expired_ms",
        allowed=_MS,
        says="how long it bears a broker's silence; a 5.x broker says that itself (brokerNotActiveTimeoutMillis)",
        symbol="E",
        profiles=(V4_9,),
        constant=(V4_9,),
    ),
    Setting(
        name="scanNotActiveBrokerInterval",
        upstream="NamesrvConfig",
        taken_by=NAME_SERVERS,
        fields="scan_not_active_broker_interval",
        allowed=_MS,
        says="how often it looks for silent brokers",
        symbol="S",
        constant=(V4_9,),
        defaults={V4_9: Constants().scan_4_9_ms},
    ),
    Setting(
        name="serverChannelMaxIdleTimeSeconds",
        upstream="NettyServerConfig",
        taken_by=NAME_SERVERS,
        fields="server_channel_max_idle_time_seconds",
        allowed=Whole(1, 3_600, "s"),
        says="how long a channel may be idle until it is closed and its broker dropped",
        symbol="I",
    ),
    _truth_5(
        "needWaitForService",
        "need_wait_for_service",
        "whether look-ups are answered with code 1 for waitSecondsForService after the start",
    ),
    Setting(
        name="waitSecondsForService",
        upstream="NamesrvConfig",
        taken_by=NAME_SERVERS,
        fields="wait_seconds_for_service",
        allowed=Whole(0, 600, "s"),
        says="how long after the start needWaitForService holds",
        profiles=(V5_X,),
    ),
    _truth(
        "orderMessageEnable", "NamesrvConfig", NAME_SERVERS, "order_message_enable", "order configuration in routes"
    ),
    _truth_5(
        "returnOrderTopicConfigToBroker",
        "return_order_topic_config_to_broker",
        "order configuration in answers to registrations",
    ),
    _truth_5("supportActingMaster", "support_acting_master", "whether routes show a slave that acts as master as id 0"),
    _truth_5(
        "notifyMinBrokerIdChanged", "notify_min_broker_id_changed", "whether brokers hear that the least id has changed"
    ),
    _truth_5("enableAllTopicList", "enable_all_topic_list", "whether the list of all topics (206) is given"),
    _truth_5("enableTopicList", "enable_topic_list", "whether a cluster's list of topics (224) is given"),
    Setting(
        name="unRegisterBrokerQueueCapacity",
        upstream="NamesrvConfig",
        taken_by=NAME_SERVERS,
        fields="un_register_broker_queue_capacity",
        allowed=_COUNT,
        says="how many unregistrations may wait",
        profiles=(V5_X,),
    ),
)

_OF_BROKERS = (
    Setting(
        name="registerNameServerPeriod",
        upstream="BrokerConfig",
        taken_by=BROKERS,
        fields="register_name_server_period",
        allowed=Whole(10_000, 60_000, "ms"),
        says="how often it registers with every NameServer; RocketMQ clamps it to these bounds",
        symbol="R",
    ),
    Setting(
        name="registerBrokerTimeoutMills",
        upstream="BrokerConfig",
        taken_by=BROKERS,
        fields="register_broker_timeout_mills",
        allowed=_MS,
        says="how long it waits for the answer to a registration",
        symbol="B",
        defaults={V4_9: 6_000, V5_X: 24_000},
    ),
    Setting(
        name="brokerNotActiveTimeoutMillis",
        upstream="BrokerConfig",
        taken_by=BROKERS,
        fields="broker_not_active_timeout_millis",
        allowed=_MS,
        says="how long NameServers bear its silence; Java sends it with enableSlaveActingMaster only (then 10000)",
        symbol="E",
        profiles=(V5_X,),
    ),
    Setting(
        name="connectTimeoutMillis",
        upstream="NettyClientConfig",
        taken_by=BROKERS,
        fields="connect_timeout_millis",
        allowed=_MS,
        says="how long connecting to a NameServer may take",
        symbol="C",
    ),
    Setting(
        name="clientCloseSocketIfTimeout",
        upstream="NettyClientConfig",
        taken_by=BROKERS,
        fields="client_close_socket_if_timeout",
        allowed=Truth(),
        says="whether a channel to a NameServer is closed after an answer that did not come (false up to 4.9.0)",
        symbol="Z",
    ),
    _number(
        "clientChannelMaxIdleTimeSeconds",
        "NettyClientConfig",
        BROKERS,
        "client_channel_max_idle_time_seconds",
        Whole(1, 3_600, "s"),
        "how long a channel to a NameServer may be idle until it is closed",
    ),
    _number(
        "serverChannelMaxIdleTimeSeconds",
        "NettyServerConfig",
        BROKERS,
        "server_channel_max_idle_time_seconds",
        Whole(1, 3_600, "s"),
        "how long a client's channel may be idle until it is closed",
    ),
    _truth(
        "forceRegister", "BrokerConfig", BROKERS, "force_register", "whether it registers without asking first (322)"
    ),
    _truth(
        "compressedRegister", "BrokerConfig", BROKERS, "compressed_register", "whether registrations are compressed"
    ),
    Setting(
        name="brokerPermission",
        upstream="BrokerConfig",
        taken_by=BROKERS,
        fields="broker_permission",
        allowed=Whole(2, 6, also=0),
        says="2 write, 4 read, 6 both, 0 neither",
    ),
    _truth(
        "autoCreateTopicEnable", "BrokerConfig", BROKERS, "auto_create_topic_enable", "topics made by their first send"
    ),
    _number(
        "defaultTopicQueueNums", "BrokerConfig", BROKERS, "default_topic_queue_nums", Whole(1, 65_536), "of TBW102"
    ),
    _truth(
        "autoCreateSubscriptionGroup",
        "BrokerConfig",
        BROKERS,
        "auto_create_subscription_group",
        "groups made by their first heartbeat",
    ),
    _truth("clusterTopicEnable", "BrokerConfig", BROKERS, "cluster_topic_enable", "whether it has its cluster's topic"),
    _truth("brokerTopicEnable", "BrokerConfig", BROKERS, "broker_topic_enable", "whether it has a topic of its name"),
    _truth("traceTopicEnable", "BrokerConfig", BROKERS, "trace_topic_enable", "whether it has the topic of traces"),
    _truth(
        "notifyConsumerIdsChangedEnable",
        "BrokerConfig",
        BROKERS,
        "notify_consumer_ids_changed_enable",
        "whether consumers hear at once that their group changed",
    ),
    _truth("longPollingEnable", "BrokerConfig", BROKERS, "long_polling_enable", "whether pulls without a message wait"),
    _number(
        "shortPollingTimeMills",
        "BrokerConfig",
        BROKERS,
        "short_polling_time_mills",
        _MS,
        "how long they wait without longPollingEnable",
    ),
    _number(
        "flushConsumerOffsetInterval",
        "BrokerConfig",
        BROKERS,
        "flush_consumer_offset_interval",
        _MS,
        "how often committed offsets are written to disk",
    ),
    Setting(
        name="flushDiskType",
        upstream="MessageStoreConfig",
        taken_by=BROKERS,
        fields="flush_disk_type",
        allowed=OneOf(("ASYNC_FLUSH", "SYNC_FLUSH")),
        says="whether a message is on disk before it is acknowledged",
    ),
    _number(
        "maxMessageSize",
        "MessageStoreConfig",
        BROKERS,
        "max_message_size",
        Whole(1, 16_000_000, "B"),
        "the largest body it stores",
    ),
    _number(
        "maxTransferBytesOnMessageInMemory",
        "MessageStoreConfig",
        BROKERS,
        "max_transfer_bytes_on_message_in_memory",
        Whole(1, 1 << 30, "B"),
        "what one pull gets at most",
    ),
    _number(
        "maxTransferCountOnMessageInMemory",
        "MessageStoreConfig",
        BROKERS,
        "max_transfer_count_on_message_in_memory",
        _COUNT,
        "how many messages one pull gets at most",
    ),
    Setting(
        name="messageDelayLevel",
        upstream="MessageStoreConfig",
        taken_by=BROKERS,
        fields="message_delay_level",
        allowed=DelayLevels(),
        says="the delay of level 1, 2, …",
    ),
)

_OF_CLIENTS = (
    Setting(
        name="pollNameServerInterval",
        upstream="ClientConfig",
        taken_by=CLIENTS,
        fields="poll_name_server_interval_ms",
        allowed=Whole(1_000, 600_000, "ms"),
        says="how often it asks for its routes",
        symbol="P",
    ),
    Setting(
        name="mqClientApiTimeout",
        upstream="ClientConfig",
        taken_by=CLIENTS,
        fields="mq_client_api_timeout_ms",
        allowed=_MS,
        says="how long it waits for an answer of a NameServer or broker",
        symbol="A",
    ),
    Setting(
        name="connectTimeoutMillis",
        upstream="NettyClientConfig",
        taken_by=CLIENTS,
        fields="connect_timeout_ms",
        allowed=_MS,
        says="how long connecting may take",
        symbol="C",
    ),
    Setting(
        name="heartbeatBrokerInterval",
        upstream="ClientConfig",
        taken_by=CLIENTS,
        fields="heartbeat_broker_interval_ms",
        allowed=Whole(1_000, 110_000, "ms"),
        says="how often it sends heartbeats to brokers, which forget a client after 120 s without one",
        symbol="H",
    ),
    Setting(
        name="clientCloseSocketIfTimeout",
        upstream="NettyClientConfig",
        taken_by=CLIENTS,
        fields="client_close_socket_if_timeout",
        allowed=Truth(),
        says="whether a channel is closed after an answer that did not come (false up to 4.9.0)",
        symbol="Z",
    ),
    Setting(
        name="clientChannelMaxIdleTimeSeconds",
        upstream="NettyClientConfig",
        taken_by=CLIENTS,
        fields="client_channel_max_idle_time_ms",
        factor=1000,
        allowed=Whole(1, 3_600, "s"),
        says="how long a channel may be idle until it is closed",
    ),
    Setting(
        name="lockTimeoutMillis",
        upstream="MQClientInstance",
        taken_by=CLIENTS,
        fields="lock_timeout_ms",
        allowed=_MS,
        says="how long a call waits for another that updates a route or chooses a NameServer",
        constant=BOTH,
    ),
)

_OF_PRODUCERS = (
    Setting(
        name="sendMsgTimeout",
        upstream="DefaultMQProducer",
        taken_by=PRODUCERS,
        fields="send_msg_timeout_ms",
        allowed=_MS,
        says="how long a send may take with all its tries",
        symbol="T",
    ),
    Setting(
        name="sendMsgMaxTimeoutPerRequest",
        upstream="DefaultMQProducer",
        taken_by=PRODUCERS,
        fields="send_msg_max_timeout_per_request_ms",
        allowed=Whole(0, 600_000, "ms", also=-1),
        says="how long one try may take, but the last; -1 is off",
        profiles=(V5_X,),
    ),
    _number(
        "retryTimesWhenSendFailed",
        "DefaultMQProducer",
        PRODUCERS,
        "retry_times_when_send_failed",
        Whole(0, 16),
        "how many tries may follow the first",
    ),
    _truth(
        "retryAnotherBrokerWhenNotStoreOK",
        "DefaultMQProducer",
        PRODUCERS,
        "retry_another_broker_when_not_store_ok",
        "whether an answer other than SEND_OK is tried again",
    ),
    _truth(
        "sendLatencyFaultEnable",
        "ClientConfig",
        PRODUCERS,
        "send_latency_fault_enable",
        "whether slow and failed brokers are isolated",
    ),
    Setting(
        name="latencyMax",
        upstream="DefaultMQProducer",
        taken_by=PRODUCERS,
        fields="latency_max",
        allowed=Ascending("ms"),
        says="the latencies from which a broker is isolated",
        defaults={V4_9: tuple(ms for ms, _ in LATENCY_TABLE_4_9), V5_X: tuple(ms for ms, _ in LATENCY_TABLE_5_X)},
    ),
    Setting(
        name="notAvailableDuration",
        upstream="DefaultMQProducer",
        taken_by=PRODUCERS,
        fields="not_available_duration",
        allowed=Ascending("ms", ascends=False),
        says="for how long, one for each of latencyMax",
        defaults={V4_9: tuple(ms for _, ms in LATENCY_TABLE_4_9), V5_X: tuple(ms for _, ms in LATENCY_TABLE_5_X)},
    ),
    Setting(
        name="startDetectorEnable",
        upstream="ClientConfig",
        taken_by=PRODUCERS,
        fields="start_detector_enable",
        allowed=Truth(),
        says="whether brokers that failed are probed",
        profiles=(V5_X,),
    ),
    _number(
        "compressMsgBodyOverHowmuch",
        "DefaultMQProducer",
        PRODUCERS,
        "compress_msg_body_over_howmuch",
        Whole(0, 16_000_000, "B"),
        "from which size on bodies are compressed",
    ),
    _number(
        "maxMessageSize",
        "DefaultMQProducer",
        PRODUCERS,
        "max_message_size",
        Whole(1, 16_000_000, "B"),
        "the largest body it sends",
    ),
)

_OF_CONSUMERS = (
    Setting(
        name="waitInterval",
        upstream="RebalanceService",
        taken_by=CONSUMERS,
        fields="rebalance_interval_ms",
        allowed=_MS,
        says="how often queues are shared anew (the system property rocketmq.client.rebalance.waitInterval)",
        symbol="Qr",
    ),
    Setting(
        name="minInterval",
        upstream="RebalanceService",
        taken_by=CONSUMERS,
        fields="rebalance_min_interval_ms",
        allowed=_MS,
        says="the wait after a round that left queues unbalanced (rocketmq.client.rebalance.minInterval)",
        profiles=(V5_X,),
    ),
    _number(
        "persistConsumerOffsetInterval",
        "ClientConfig",
        CONSUMERS,
        "persist_consumer_offset_interval_ms",
        _MS,
        "how often offsets are committed",
    ),
    _number(
        "pullTimeDelayMillsWhenException",
        "ClientConfig",
        CONSUMERS,
        "pull_time_delay_when_exception_ms",
        _MS,
        "the wait after a pull that failed",
    ),
    _number(
        "pullBatchSize",
        "DefaultMQPushConsumer",
        CONSUMERS,
        "pull_batch_size",
        Whole(1, 1_024),
        "messages a pull asks for",
    ),
    _number(
        "pullThresholdForQueue",
        "DefaultMQPushConsumer",
        CONSUMERS,
        "pull_threshold_for_queue",
        Whole(1, 65_535),
        "messages of a queue that may wait in the consumer",
    ),
    _number(
        "pullThresholdSizeForQueue",
        "DefaultMQPushConsumer",
        CONSUMERS,
        "pull_threshold_size_for_queue_mib",
        Whole(1, 1_024, "MiB"),
        "how large they may be together",
    ),
    _number(
        "consumeConcurrentlyMaxSpan",
        "DefaultMQPushConsumer",
        CONSUMERS,
        "consume_concurrently_max_span",
        Whole(1, 65_535),
        "how far apart their offsets may be",
    ),
    _number(
        "consumeThreadMax",
        "DefaultMQPushConsumer",
        CONSUMERS,
        "consume_thread_max",
        Whole(1, 1_000),
        "how many listener calls run at once",
    ),
    _number(
        "consumeMessageBatchMaxSize",
        "DefaultMQPushConsumer",
        CONSUMERS,
        "consume_message_batch_max_size",
        Whole(1, 1_024),
        "messages that one listener call gets",
    ),
    _number(
        "maxReconsumeTimes",
        "DefaultMQPushConsumer",
        CONSUMERS,
        "max_reconsume_times",
        Whole(0, 1_000),
        "how often a message that failed comes back",
    ),
    _truth(
        "postSubscriptionWhenPull",
        "DefaultMQPushConsumer",
        CONSUMERS,
        "post_subscription_when_pull",
        "whether pulls carry the subscription",
    ),
    _number(
        "awaitTerminationMillisWhenShutdown",
        "DefaultMQPushConsumer",
        CONSUMERS,
        "await_termination_when_shutdown_ms",
        Whole(0, 600_000, "ms"),
        "how long a stop waits for listener calls",
    ),
)

CATALOGUE: tuple[Setting, ...] = (*_OF_NAME_SERVERS, *_OF_BROKERS, *_OF_CLIENTS, *_OF_PRODUCERS, *_OF_CONSUMERS)
"""Every setting that our nodes obey. A name may stand twice, for other nodes each time."""

GROUPS: Mapping[str, tuple[NodeKind, ...]] = {
    "name_servers": NAME_SERVERS,
    "brokers": BROKERS,
    "clients": CLIENTS,
    "producers": PRODUCERS,
    "consumers": CONSUMERS,
}
"""What `config:` may name beside single nodes; what a smaller group says comes before what a larger one says."""


def settings_for(*kinds: NodeKind) -> dict[str, Setting]:
    """Name to setting, of those that any node of these kinds takes."""
    return {one.name: one for one in CATALOGUE if set(one.taken_by) & set(kinds)}
