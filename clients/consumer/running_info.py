"""What a consumer says of itself when somebody asks for it through a broker (307): `mqadmin consumerStatus`.

The NameServers of its list in the order in use, its settings, what it subscribed to, and each queue that it holds. It
keeps no statistics by topic, so the table of them is empty. Upstream: `DefaultMQPushConsumerImpl`, `ProcessQueue`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...remoting.bodies.client import ConsumerRunningInfo, ProcessQueueInfo, SubscriptionData
from ...remoting.message import MessageQueue
from ...remoting.node.profile import Profile
from .config import ConsumerConfig
from .offset_store import OffsetStore
from .process_queue import ProcessQueue


def running_info(
    config: ConsumerConfig,
    *,
    started_ms: int,
    subscriptions: Iterable[SubscriptionData],
    queues: Mapping[MessageQueue, ProcessQueue],
    offsets: OffsetStore,
) -> ConsumerRunningInfo:
    """All but what the client instance knows: its NameServers and version."""
    return ConsumerRunningInfo(
        properties={
            "consumerGroup": config.consumer_group,
            "messageModel": config.message_model.value,
            "consumeFromWhere": config.consume_from_where.value,
            "consumeThreadMax": str(config.consume_thread_max),
            "consumeMessageBatchMaxSize": str(config.consume_message_batch_max_size),
            "pullBatchSize": str(config.pull_batch_size),
            "pullThresholdForQueue": str(config.pull_threshold_for_queue),
            "consumeConcurrentlyMaxSpan": str(config.consume_concurrently_max_span),
            "pollNameServerInterval": str(config.poll_name_server_interval_ms),
            "heartbeatBrokerInterval": str(config.heartbeat_broker_interval_ms),
            "persistConsumerOffsetInterval": str(config.persist_consumer_offset_interval_ms),
            "PROP_CONSUMEORDERLY": "false",
            "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
            "PROP_CONSUMER_START_TIMESTAMP": str(started_ms),
            "PROP_THREADPOOL_CORE_SIZE": str(config.consume_thread_max),
        },
        subscription_set=tuple(sorted(subscriptions, key=lambda data: data.topic)),
        mq_table={queue: _queue(held, offsets.in_memory(queue)) for queue, held in queues.items()},
        mq_pop_table={} if config.profile is Profile.V5_X else None,
    )


def _queue(held: ProcessQueue, commit_offset: int | None) -> ProcessQueueInfo:
    first, last = held.in_flight
    return ProcessQueueInfo(
        commit_offset=commit_offset or 0,
        cached_msg_min_offset=first,
        cached_msg_max_offset=last,
        cached_msg_count=len(held),
        droped=held.dropped,
        last_pull_timestamp=held.last_pull_ms,
        last_consume_timestamp=held.last_consume_ms,
    )
