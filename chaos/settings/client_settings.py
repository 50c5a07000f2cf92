"""The settings of clients. Classes and defaults were read from Apache RocketMQ 4.9.8 and 5.3.3."""

from __future__ import annotations

from ...clients.producer.fault_strategy import LATENCY_TABLE_4_9, LATENCY_TABLE_5_X
from .setting import (
    BOTH,
    CLIENTS,
    CONSUMERS,
    MS,
    PRODUCERS,
    V4_9,
    V5_X,
    Ascending,
    Truth,
    Whole,
    of_class,
)

client_config_of_clients = of_class("ClientConfig", CLIENTS)
netty_client_config_of_clients = of_class("NettyClientConfig", CLIENTS)
mq_client_instance_of_clients = of_class("MQClientInstance", CLIENTS)
mq_producer = of_class("DefaultMQProducer", PRODUCERS)
client_config_of_producers = of_class("ClientConfig", PRODUCERS)
rebalance_service_of_consumers = of_class("RebalanceService", CONSUMERS)
client_config_of_consumers = of_class("ClientConfig", CONSUMERS)
push_consumer = of_class("DefaultMQPushConsumer", CONSUMERS)

OF_CLIENTS = (
    client_config_of_clients(
        "pollNameServerInterval", Whole(1_000, 600_000, "ms"), "how often it asks for its routes", symbol="P"
    ),
    client_config_of_clients(
        "mqClientApiTimeout", MS, "how long it waits for an answer of a NameServer or broker", symbol="A"
    ),
    netty_client_config_of_clients(
        "connectTimeoutMillis", MS, "how long connecting may take", fields="connect_timeout_ms", symbol="C"
    ),
    client_config_of_clients(
        "heartbeatBrokerInterval",
        Whole(1_000, 110_000, "ms"),
        "how often it sends heartbeats to brokers, which forget a client after 120 s without one",
        symbol="H",
    ),
    netty_client_config_of_clients(
        "clientCloseSocketIfTimeout",
        Truth(),
        "whether a channel is closed after an answer that did not come (false up to 4.9.0)",
        symbol="Z",
    ),
    netty_client_config_of_clients(
        "clientChannelMaxIdleTimeSeconds",
        Whole(1, 3_600, "s"),
        "how long a channel may be idle until it is closed",
        fields="client_channel_max_idle_time_ms",
        factor=1000,
    ),
    mq_client_instance_of_clients(
        "lockTimeoutMillis",
        MS,
        "how long a call waits for another that updates a route or chooses a NameServer",
        fields="lock_timeout_ms",
        constant=BOTH,
    ),
)

OF_PRODUCERS = (
    mq_producer("sendMsgTimeout", MS, "how long a send may take with all its tries", symbol="T"),
    mq_producer(
        "sendMsgMaxTimeoutPerRequest",
        Whole(0, 600_000, "ms", also=-1),
        "how long one try may take, but the last; -1 is off",
        profiles=(V5_X,),
    ),
    mq_producer("retryTimesWhenSendFailed", Whole(0, 16), "how many tries may follow the first"),
    mq_producer("retryAnotherBrokerWhenNotStoreOK", Truth(), "whether an answer other than SEND_OK is tried again"),
    client_config_of_producers("sendLatencyFaultEnable", Truth(), "whether slow and failed brokers are isolated"),
    mq_producer(
        "latencyMax",
        Ascending("ms"),
        "the latencies from which a broker is isolated",
        defaults={V4_9: tuple(ms for ms, _ in LATENCY_TABLE_4_9), V5_X: tuple(ms for ms, _ in LATENCY_TABLE_5_X)},
    ),
    mq_producer(
        "notAvailableDuration",
        Ascending("ms", ascends=False),
        "for how long, one for each of latencyMax",
        defaults={V4_9: tuple(ms for _, ms in LATENCY_TABLE_4_9), V5_X: tuple(ms for _, ms in LATENCY_TABLE_5_X)},
    ),
    client_config_of_producers(
        "startDetectorEnable", Truth(), "whether brokers that failed are probed", profiles=(V5_X,)
    ),
    mq_producer("compressMsgBodyOverHowmuch", Whole(0, 16_000_000, "B"), "from which size on bodies are compressed"),
    mq_producer("maxMessageSize", Whole(1, 16_000_000, "B"), "the largest body it sends"),
)

OF_CONSUMERS = (
    rebalance_service_of_consumers(
        "waitInterval",
        MS,
        "how often queues are shared anew (the system property rocketmq.client.rebalance.waitInterval)",
        fields="rebalance_interval_ms",
        symbol="Qr",
    ),
    rebalance_service_of_consumers(
        "minInterval",
        MS,
        "the wait after a round that left queues unbalanced (rocketmq.client.rebalance.minInterval)",
        fields="rebalance_min_interval_ms",
        profiles=(V5_X,),
    ),
    client_config_of_consumers("persistConsumerOffsetInterval", MS, "how often offsets are committed"),
    client_config_of_consumers(
        "pullTimeDelayMillsWhenException",
        MS,
        "the wait after a pull that failed",
        fields="pull_time_delay_when_exception_ms",
    ),
    push_consumer("pullBatchSize", Whole(1, 1_024), "messages a pull asks for"),
    push_consumer("pullThresholdForQueue", Whole(1, 65_535), "messages of a queue that may wait in the consumer"),
    push_consumer(
        "pullThresholdSizeForQueue",
        Whole(1, 1_024, "MiB"),
        "how large they may be together",
        fields="pull_threshold_size_for_queue_mib",
    ),
    push_consumer("consumeConcurrentlyMaxSpan", Whole(1, 65_535), "how far apart their offsets may be"),
    push_consumer("consumeThreadMax", Whole(1, 1_000), "how many listener calls run at once"),
    push_consumer("consumeMessageBatchMaxSize", Whole(1, 1_024), "messages that one listener call gets"),
    push_consumer("maxReconsumeTimes", Whole(0, 1_000), "how often a message that failed comes back"),
    push_consumer("postSubscriptionWhenPull", Truth(), "whether pulls carry the subscription"),
    push_consumer(
        "awaitTerminationMillisWhenShutdown",
        Whole(0, 600_000, "ms"),
        "how long a stop waits for listener calls",
        fields="await_termination_when_shutdown_ms",
    ),
)
