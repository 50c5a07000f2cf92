"""The pull loops of a push consumer: one loop for each queue of the consumer, until the queue is dropped.

A pull loop pulls from the queue's broker, gives the messages to the listener, and pulls again from the next offset. The
broker holds a pull request for up to 15 s if there is no new message. A pull loop pauses while too many messages are
unfinished, and after errors. Upstream: `DefaultMQPushConsumerImpl.pullMessage`, `PullAPIWrapper.pullKernelImpl`,
`PullMessageService`.
"""

from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise

from ...remoting.codes import MASTER_ID, ResponseCode
from ...remoting.errors import ResponseError, RocketMQError
from ...remoting.headers.broker import PullMessageRequestHeader
from ...remoting.message import MessageQueue
from ...remoting.node.network import Address
from ...remoting.node.node import NodeContext
from ...remoting.node.profile import Profile
from ...remoting.node.tasks import Tasks
from ..client_instance import MQClientInstance
from .config import ConsumerConfig, MessageModel
from .consume_service import ConsumeService
from .offset_store import OffsetStore
from .process_queue import ProcessQueue
from .pull import PullResult, PullStatus, matching_tags, pull, pull_sys_flag
from .rebalance import Rebalancer

DELAY_ROW_EACH_MS = 1_000.0


class PullDelays:
    """Writes history rows `pull_delayed`, which say how long pulls of one queue were delayed.

    Successive delays with the same reason and the same broker code become one row, until they add up to 1 s. Upstream:
    `executePullRequestLater`.
    """

    def __init__(self, context: NodeContext, queue: MessageQueue) -> None:
        self._context, self._queue = context, queue
        self._why: tuple[str, int | None] = "", None
        self._took_ms: list[float] = []

    async def put_off(self, why: str, sleep: Callable[[], Awaitable[None]], code: int | None = None) -> None:
        if (why, code) != self._why:
            self.over()
        self._why, begin_s = (why, code), self._context.clock.monotonic_s()
        await sleep()
        self._took_ms.append((self._context.clock.monotonic_s() - begin_s) * 1000)
        if sum(self._took_ms) >= DELAY_ROW_EACH_MS:
            self.over()

    def over(self) -> None:
        """Write the delays since the last row as one row."""
        took_ms, self._took_ms = self._took_ms, []
        if took_ms:
            self._context.record(
                "pull_delayed",
                f=self._why[0],
                code=self._why[1],
                **self._queue._asdict(),
                duration_ms=max(took_ms),
                value={"times": len(took_ms), "shortest_ms": min(took_ms)},
            )


BROKER_SUSPEND_MAX_MS = 15_000
PULL_TIMEOUT_S = 30.0
FLOW_CONTROL_PAUSE_S = 0.050
BROKER_FLOW_CONTROL_PAUSE_S = 0.020
FIRST_PULL_DELAY_5X_S = 0.5
ILLEGAL_OFFSET_DELAY_4_9_S = 10.0
PULL_BATCH_BYTES_5X = 262_144


class PullService:
    """Runs one pull loop for each queue that the consumer has. The rebalancer calls `pull_queue` for each queue that
    the consumer gets."""

    def __init__(
        self,
        context: NodeContext,
        config: ConsumerConfig,
        instance: MQClientInstance,
        rebalancer: Rebalancer,
        offsets: OffsetStore,
        consume_service: ConsumeService,
    ) -> None:
        self._context, self._config, self._instance = context, config, instance
        self._rebalancer, self._offsets, self._consume_service = rebalancer, offsets, consume_service
        self._suggested_broker_ids: dict[MessageQueue, int] = {}
        self._tasks = Tasks()

    async def stop(self) -> None:
        await self._tasks.cancel()

    def pull_queue(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None:
        """Pull `queue` from `offset` until `process_queue` is dropped."""
        self._tasks.spawn(self._loop(queue, process_queue, offset))

    async def _loop(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int) -> None:
        delays = PullDelays(self._context, queue)
        if self._config.profile is Profile.V5_X:
            await self._later(delays, "first", FIRST_PULL_DELAY_5X_S)
        while not process_queue.dropped:
            process_queue.last_pull_ms = self._context.clock.now_ms()
            if process_queue.over_limit(self._config.flow_limits):
                await self._later(delays, "flow_control", FLOW_CONTROL_PAUSE_S)
                continue
            delays.over()
            try:
                result = await self._pull(queue, offset)
            except RocketMQError as exc:
                await self._later(delays, *self._pause_after(queue, exc))
                continue
            except Exception:
                self._context.log.exception("pulling %s failed", queue)
                await self._later(delays, "exception", self._config.pull_time_delay_when_exception_ms / 1000)
                continue
            if process_queue.dropped:
                self._context.log.info("what was pulled from %s is left to its new owner", queue)
                return
            if result.status is PullStatus.OFFSET_ILLEGAL:
                await self._mend_offset(queue, process_queue, offset, result.next_begin_offset, delays)
                return
            offset = result.next_begin_offset
            self._deliver(queue, process_queue, result)

    async def _later(self, delays: PullDelays, why: str, delay_s: float, code: int | None = None) -> None:
        await delays.put_off(why, lambda: self._context.clock.sleep(delay_s), code)

    def _pause_after(self, queue: MessageQueue, exc: RocketMQError) -> tuple[str, float, int | None]:
        self._context.log.warning("pulling %s failed: %s", queue, exc)
        code = int(exc.code) if isinstance(exc, ResponseError) else None
        if code == ResponseCode.FLOW_CONTROL:
            return "broker_flow_control", BROKER_FLOW_CONTROL_PAUSE_S, code
        return "exception", self._config.pull_time_delay_when_exception_ms / 1000, code

    def _deliver(self, queue: MessageQueue, process_queue: ProcessQueue, result: PullResult) -> None:
        messages = matching_tags(result.messages, self._rebalancer.subscriptions[queue.topic].tags_set)
        if messages:
            process_queue.put(messages)
            self._consume_service.submit(queue, process_queue, messages)
        elif not len(process_queue):
            # Nothing in flight stands before what was skipped: without this the group would never get past it.
            self._offsets.update(queue, result.next_begin_offset)

    async def _mend_offset(
        self, queue: MessageQueue, process_queue: ProcessQueue, asked: int, right: int, delays: PullDelays
    ) -> None:
        """Commit the offset that the broker named, and take the queue anew from there at a rebalance."""
        process_queue.dropped = True
        self._context.log.warning("%s has no offset %d, going on at %d", queue, asked, right)
        if self._config.profile is Profile.V4_9:
            await self._later(delays, "illegal_offset", ILLEGAL_OFFSET_DELAY_4_9_S)
        if self._rebalancer.process_queues.get(queue) is not process_queue:
            return  # a rebalance gave it up, or took it anew, meanwhile
        self._offsets.update(queue, right, increase_only=False)
        await self._rebalancer.drop(queue)
        if self._config.profile is Profile.V5_X:
            self._rebalancer.wake()

    async def _pull(self, queue: MessageQueue, offset: int) -> PullResult:
        broker = await self._instance.find_broker(queue, self._suggested_broker_ids.get(queue, MASTER_ID))
        committed = None
        if self._config.message_model is MessageModel.CLUSTERING:
            committed = self._offsets.in_memory(queue)
        subscription = self._rebalancer.subscriptions[queue.topic]
        header = PullMessageRequestHeader(
            consumer_group=self._config.consumer_group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=self._config.pull_batch_size,
            sys_flag=pull_sys_flag(
                commit_offset=bool(committed) and not broker.slave,
                suspend=True,
                subscription=self._config.post_subscription_when_pull,
            ),
            commit_offset=-1 if committed is None else committed,
            suspend_timeout_millis=BROKER_SUSPEND_MAX_MS,
            subscription=subscription.sub_string if self._config.post_subscription_when_pull else None,
            sub_version=subscription.sub_version,
            expression_type=subscription.expression_type,
            max_msg_bytes=PULL_BATCH_BYTES_5X if self._config.profile is Profile.V5_X else None,
        )
        begin_s = self._context.clock.monotonic_s()
        self._record("invoke", broker.address, queue, offset)
        try:
            result = await pull(self._instance.remoting, broker.address, header, timeout_s=PULL_TIMEOUT_S)
        except RocketMQError as exc:
            code = exc.code if isinstance(exc, ResponseError) else None
            self._record("fail" if exc.definite else "info", broker.address, queue, offset, code, begin_s)
            raise
        offsets = [message.queue_offset for message in result.messages]
        said = {"max": result.max_offset, "min": result.min_offset, "next": result.next_begin_offset}
        if offsets:
            rising = 1 + sum(one < other for one, other in pairwise(offsets))
            said |= {"count": len(offsets), "first": offsets[0], "last": offsets[-1], "rising": rising}
        self._record("ok", broker.address, queue, offset, result.status.value, begin_s, said)
        self._take_suggestion(queue, broker.address, result.suggest_which_broker_id)
        return result

    def _take_suggestion(self, queue: MessageQueue, address: Address, broker_id: int) -> None:
        """The queue's next pull goes to this broker id; who suggested it is recorded where it changes."""
        if self._suggested_broker_ids.get(queue, MASTER_ID) != broker_id:
            self._context.record("pull_suggested", **queue._asdict(), address=str(address), value=broker_id)
        self._suggested_broker_ids[queue] = broker_id

    def _record(
        self,
        type_: str,
        address: Address,
        queue: MessageQueue,
        offset: int,
        code: int | None = None,
        begin_s: float | None = None,
        said: Mapping[str, int] | None = None,
    ) -> None:
        of_pull: dict[str, object] = {**queue._asdict(), "address": str(address), "offset": offset}
        if begin_s is None:
            self._context.record("pull", type=type_, **of_pull)
        else:
            of_pull |= {"code": None if code is None else int(code), "value": said}
            self._context.record_ended(begin_s, "pull", type=type_, **of_pull)
