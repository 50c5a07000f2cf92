"""The push consumer: gets queues by rebalancing, pulls them, and calls a listener with the messages.

    MQClientInstance ──routes, 40──► Rebalancer ──queue won──► PullService ──messages──► ConsumeService ──► listener
                                         └──────── drop ───────────┘                           │
                                     OffsetStore ◄──────────────── offsets ────────────────────┘

In clustering the members of a group share a topic's queues; in broadcasting each member has all queues. Messages are
consumed at least once: messages that were not committed come again. Upstream: `DefaultMQPushConsumerImpl`.
"""

from collections.abc import Iterable
from pathlib import Path

from ...remoting.bodies.client import SUB_ALL, ConsumerData, ConsumerRunningInfo, ProcessQueueInfo, SubscriptionData
from ...remoting.message import MessageQueue
from ...remoting.node.network import Address
from ...remoting.node.node import NodeContext
from ...remoting.node.profile import Profile
from ..client_instance import MQClientInstance
from .config import CONSUME_FROM_WHERE, ConsumerConfig, MessageModel, retry_topic
from .consume_service import ConsumeService, Listener
from .offset_store import LocalFileOffsetStore, OffsetStore, RemoteBrokerOffsetStore
from .process_queue import ProcessQueue
from .pull_service import PullService
from .rebalance import Rebalancer
from .send_back import SendBackService


class DefaultMQPushConsumer:
    """A push consumer, with the methods that every node has. Call `start`, then `stop`."""

    def __init__(self, context: NodeContext, config: ConsumerConfig, listener: Listener) -> None:
        self._context, self._config = context, config
        self._started_ms = 0
        self.client = MQClientInstance(context, config, config.namesrv_addr)
        clustering = config.message_model is MessageModel.CLUSTERING
        self._send_back = SendBackService(context, config, self.client) if clustering else None
        self._offsets = self._offset_store()
        self._consume_service = ConsumeService(context, config, listener, self._offsets, self._send_back)
        self._rebalancer = Rebalancer(
            context,
            config,
            self.client,
            self._offsets,
            self._initial_subscriptions(),
            on_queue_taken=lambda *taken: self._pull_service.pull_queue(*taken),
        )
        self._pull_service = PullService(
            context, config, self.client, self._rebalancer, self._offsets, self._consume_service
        )

    def _offset_store(self) -> OffsetStore:
        group, log = self._config.consumer_group, self._context.log
        if self._config.message_model is MessageModel.CLUSTERING:
            return RemoteBrokerOffsetStore(self.client, group, log=log)
        data_dir = self._context.data_dir
        path = None if data_dir is None else offsets_path(data_dir, group)
        return LocalFileOffsetStore(path, log=log, group=group, record=self._context.record)

    def _initial_subscriptions(self) -> list[SubscriptionData]:
        now_ms = self._context.clock.now_ms()
        pairs = list(self._config.subscriptions)
        if self._config.message_model is MessageModel.CLUSTERING:
            pairs.append((retry_topic(self._config.consumer_group), SUB_ALL))
        return [SubscriptionData.of(topic, expression, sub_version=now_ms) for topic, expression in pairs]

    # -- lifecycle

    async def listen(self) -> Address | None:
        return None

    async def start(self) -> None:
        """Join the group and begin to consume. Raises ClientError if the group has a consumer on this client already,
        TransportError if no NameServer answers. After an error no task of the consumer is left running."""
        self._started_ms = self._context.clock.now_ms()
        self.client.register_consumer(self._config.consumer_group, self)
        self._consume_service.start()
        try:
            await self.client.start()
            for data in self.subscriptions():
                await self.client.update_route(data.topic)
        except BaseException:
            await self.stop()
            raise
        await self.client.send_heartbeat_to_all()
        self._rebalancer.start()

    async def stop(self) -> None:
        """Leave the group: commit the offsets, unregister at the brokers, close the channels. The group's other members
        get the messages that the listener has not finished."""
        await self._rebalancer.stop()
        await self._pull_service.stop()
        await self._consume_service.stop()
        await self.persist_offsets()
        self._rebalancer.release_all()
        if self._send_back is not None:
            await self._send_back.stop()
        await self.client.unregister_consumer(self._config.consumer_group)
        await self.client.stop()

    # -- what the instance asks (ConsumerInner)

    def subscriptions(self) -> Iterable[SubscriptionData]:
        """The consumer's current subscriptions; in clustering they include the group's retry topic."""
        return tuple(self._rebalancer.subscriptions.values())

    def consumer_data(self) -> ConsumerData:
        return ConsumerData(
            group_name=self._config.consumer_group,
            message_model=self._config.message_model.value,
            consume_from_where=CONSUME_FROM_WHERE,
            subscription_data_set=tuple(self.subscriptions()),
        )

    def running_info(self) -> ConsumerRunningInfo:
        """The consumer's report for `mqadmin consumerStatus` (307), without the parts that the client instance adds.
        The report's statistics by topic are empty."""
        config, queues = self._config, self._rebalancer.process_queues
        return ConsumerRunningInfo(
            properties={
                "consumerGroup": config.consumer_group,
                "messageModel": config.message_model.value,
                "consumeFromWhere": CONSUME_FROM_WHERE,
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
                "PROP_CONSUMER_START_TIMESTAMP": str(self._started_ms),
                "PROP_THREADPOOL_CORE_SIZE": str(config.consume_thread_max),
            },
            subscription_set=tuple(sorted(self.subscriptions(), key=lambda data: data.topic)),
            mq_table={queue: _queue(held, self._offsets.in_memory(queue)) for queue, held in queues.items()},
            mq_pop_table={} if config.profile is Profile.V5_X else None,
        )

    async def persist_offsets(self) -> None:
        """Commit the offsets of the queues that the consumer has now."""
        await self._offsets.persist(list(self._rebalancer.process_queues))

    def on_consumer_ids_changed(self) -> None:
        self._rebalancer.wake()

    def update_subscribe_info(self, topic: str, queues: frozenset[MessageQueue]) -> None:
        self._rebalancer.update_subscribe_info(topic, queues)


def offsets_path(data_dir: Path, group: str) -> Path:
    """Return the file in which a broadcasting consumer keeps its offsets."""
    return data_dir / "rocketmq_offsets" / group / "offsets.json"


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
