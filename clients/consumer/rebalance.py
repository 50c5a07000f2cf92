"""Decides which queues this consumer pulls and from which offset, every 20 s and at once when the group's members
change.

    for each topic:  queues of the cached route ──┐
                     member ids from one broker ──┴─► averaging allocation ─► drop queues lost, take queues won

Broadcasting takes all queues. If a topic's queues or the group's members are unknown, the consumer keeps its queues of
the topic. A queue that was not pulled for 120 s is dropped and taken again. Upstream: `RebalanceImpl`,
`RebalancePushImpl`, `RebalanceService`.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from ...remoting.bodies.client import SubscriptionData
from ...remoting.errors import RocketMQError
from ...remoting.message import MessageQueue
from ...remoting.node.node import NodeContext
from ...remoting.node.profile import Profile
from ...remoting.node.tasks import cancel_all
from ...remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from ..client_instance import MQClientInstance
from .config import ConsumerConfig, MessageModel
from .offset_store import OffsetStore
from .process_queue import ProcessQueue

OnQueueTaken = Callable[[MessageQueue, ProcessQueue, int], None]
"""A queue was won: pull it, from this offset."""


def java_order(text: str) -> bytes:
    """Return a sort key that orders texts as Java's String.compareTo, by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def sort_queues(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """Sort queues by topic, broker name and queue id, as Java's MessageQueue.compareTo does."""
    return sorted(queues, key=lambda queue: (java_order(queue.topic), java_order(queue.broker_name), queue.queue_id))


def allocate_averagely(
    client_id: str, queues: Iterable[MessageQueue], client_ids: Collection[str]
) -> list[MessageQueue]:
    """Return the contiguous slice of the sorted queues that belongs to `client_id`; empty if `client_ids` lacks
    `client_id`. Raises ValueError if there are no queues: a consumer then keeps the queues that it has.

    The first `len(queues) % len(client_ids)` members get one queue more than the others. Members that know different
    lists of queues or members disagree until their next rebalance. Upstream: `AllocateMessageQueueAveragely`.
    """
    all_queues, members = sort_queues(queues), sorted(client_ids, key=java_order)
    if not all_queues:
        raise ValueError("mqAll is null or mqAll empty")
    if client_id not in members:
        return []
    index = members.index(client_id)
    share, remainder = divmod(len(all_queues), len(members))
    start = index * share + min(index, remainder)
    return all_queues[start : start + share + (1 if index < remainder else 0)]


class Rebalancer:
    """Owns the table of the consumer's process queues. Two rebalances never run at once."""

    def __init__(
        self,
        context: NodeContext,
        config: ConsumerConfig,
        instance: MQClientInstance,
        offsets: OffsetStore,
        subscriptions: Iterable[SubscriptionData],
        on_queue_taken: OnQueueTaken,
    ) -> None:
        self._context, self._config, self._instance, self._offsets = context, config, instance, offsets
        self._on_queue_taken = on_queue_taken
        self.subscriptions: dict[str, SubscriptionData] = {data.topic: data for data in subscriptions}
        self.process_queues: dict[MessageQueue, ProcessQueue] = {}
        self._subscribe_info: dict[str, frozenset[MessageQueue]] = {}
        self._taken = 0
        self._wake = asyncio.Event()
        self._shared: set[str] = set()
        """The topics whose queues and members this round knew."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Rebalance now, at each `wake`, and 20 s after the last rebalance (in 5.x 1 s after an incomplete
        rebalance)."""
        self._wake.set()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            await cancel_all((task,))

    def release_all(self) -> None:
        topics = {queue.topic for queue in self.process_queues}
        for queue, process_queue in self.process_queues.items():
            process_queue.dropped = True
            self._record_holding("queue_dropped", queue, process_queue, self._offsets.in_memory(queue))
        self.process_queues.clear()
        for topic in sorted(topics):
            self._record_assigned(topic)

    def update_subscribe_info(self, topic: str, queues: frozenset[MessageQueue]) -> None:
        """Keep the readable queues of `topic` for the next rebalance."""
        if topic in self.subscriptions:
            self._subscribe_info[topic] = queues

    def wake(self) -> None:
        """Rebalance now, or as soon as a running rebalance has ended."""
        self._wake.set()

    async def _run(self) -> None:
        interval_s = self._config.rebalance_interval_ms / 1000
        again_s = self._config.rebalance_min_interval_ms / 1000
        wait_s = interval_s
        while True:
            woken = True
            try:
                async with self._context.clock.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                woken = False
            self._wake.clear()
            began_s = self._context.clock.monotonic_s()
            balanced = await self.rebalance()
            self._context.record_ended(
                began_s,
                "scheduled_task",
                f="doRebalance",
                value={"woken": woken, "balanced": balanced, "shared": sorted(self._shared)},
            )
            wait_s = interval_s if balanced or self._config.profile is Profile.V4_9 else again_s

    async def rebalance(self) -> bool:
        """Rebalance all topics once. Returns whether the consumer now has exactly its share of queues."""
        balanced = True
        self._shared.clear()
        for topic in list(self.subscriptions):
            try:
                balanced = await self._rebalance_topic(topic) and balanced
            except RocketMQError as exc:
                if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                    self._context.log.warning("rebalance of %s failed: %s", topic, exc)
                    balanced = False
            except Exception:
                self._context.log.exception("rebalance of %s failed", topic)
                balanced = False
        return balanced

    async def _rebalance_topic(self, topic: str) -> bool:
        mine = await self._allocate(topic)
        if mine is None:
            return True
        self._shared.add(topic)
        if await self._take_and_drop(topic, mine):
            await self._announce(topic)
        return set(self.working_queues(topic)) == mine

    def working_queues(self, topic: str) -> list[MessageQueue]:
        """The queues of `topic` that this consumer has, in order."""
        return sorted(queue for queue, held in self.process_queues.items() if queue.topic == topic and not held.dropped)

    async def _allocate(self, topic: str) -> set[MessageQueue] | None:
        queues = self._subscribe_info.get(topic)
        if queues is None and not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            self._context.log.warning("rebalance: topic %s has no route yet", topic)
        if self._config.message_model is MessageModel.BROADCASTING:
            return None if queues is None else set(queues)
        client_ids = await self._instance.find_consumer_id_list(topic, self._config.consumer_group)
        if queues is None or client_ids is None:
            return None
        if self._instance.client_id not in client_ids:
            self._context.log.info("the broker does not list %s among %s yet", self._instance.client_id, client_ids)
        return set(allocate_averagely(self._instance.client_id, queues, client_ids))

    async def _take_and_drop(self, topic: str, mine: set[MessageQueue]) -> bool:
        now_ms = self._context.clock.now_ms()
        lost = [
            queue
            for queue, process_queue in self.process_queues.items()
            if queue.topic == topic and (queue not in mine or process_queue.is_pull_expired(now_ms=now_ms))
        ]
        for queue in lost:
            self.process_queues[queue].dropped = True
        for queue in lost:
            await self.drop(queue)
        won = [await self._take(queue) for queue in sorted(mine) if queue not in self.process_queues]
        return bool(lost) or any(won)

    async def drop(self, queue: MessageQueue) -> None:
        """Give up `queue`: commit the queue's offset, then forget the offset."""
        process_queue = self.process_queues.get(queue)
        if process_queue is None:
            return
        process_queue.dropped = True
        committed = self._offsets.in_memory(queue)
        await self._offsets.persist([queue])
        if self.process_queues.get(queue) is not process_queue:
            return  # dropped by another task meanwhile, and perhaps taken anew
        self._record_holding("queue_dropped", queue, process_queue, committed)
        self._offsets.forget(queue)
        del self.process_queues[queue]
        self._context.log.info("group %s dropped %s", self._config.consumer_group, queue)

    async def _take(self, queue: MessageQueue) -> bool:
        self._offsets.forget(queue)
        try:
            offset = await self._start_offset(queue)
        except RocketMQError as exc:
            self._context.log.warning("%s not taken, its start offset is unknown: %s", queue, exc)
            return False
        process_queue = ProcessQueue(now_ms=self._context.clock.now_ms(), op_id=f"take-{self._taken}")
        self._taken += 1
        self.process_queues[queue] = process_queue
        answered = self._offsets.answered(queue)
        self._record_holding("queue_taken", queue, process_queue, offset, value=answered)
        self._context.log.info("group %s took %s at %d", self._config.consumer_group, queue, offset)
        self._on_queue_taken(queue, process_queue, offset)
        return True

    async def _start_offset(self, queue: MessageQueue) -> int:
        """The committed offset, else 0. Raises RocketMQError when unknown."""
        committed = await self._offsets.read(queue)
        return committed or 0  # below the queue's first offset the broker answers 21, and that mends it

    async def _announce(self, topic: str) -> None:
        """Record the new queues and, with a new subscription version, send a heartbeat to the brokers."""
        self._record_assigned(topic)
        self.subscriptions[topic] = replace(self.subscriptions[topic], sub_version=self._context.clock.now_ms())
        await self._instance.send_heartbeat_to_all()

    def _record_holding(
        self, event: str, queue: MessageQueue, held: ProcessQueue, offset: int | None, **more: object
    ) -> None:
        self._context.record(event, op_id=held.op_id, **queue._asdict(), offset=offset, **more)

    def _record_assigned(self, topic: str) -> None:
        value = [[queue.broker_name, queue.queue_id] for queue in self.working_queues(topic)]
        self._context.record("assigned", topic=topic, value=value)
