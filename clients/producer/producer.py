"""A producer that sends synchronously, with Java's retries.

| outcome of one try of a synchronous send    | then                                                               |
|---------------------------------------------|--------------------------------------------------------------------|
| no connection, connection lost, no answer   | next try, on another broker if there is one                        |
| no address of the broker                    | next try                                                           |
| code 17, 14, 1, 16, 204, 205 (5.x: 2, 1500) | next try                                                           |
| any other error code                        | raised at once                                                     |
| stored, but not as safely as configured     | a result, unless retry_another_broker_when_not_store_ok: next try  |
| the call's time is used up before a try     | TooManyRequests                                                    |

By default three tries share 3 s, so a broker that hangs uses up the whole time and no retry follows. Every send ends in
a result or in one RocketMQError, whose `definite` is true only if no try can have stored the message. Upstream:
`DefaultMQProducer`, `DefaultMQProducerImpl.sendDefaultImpl`, `sendKernelImpl`.
"""

from collections.abc import Awaitable, Callable, Sequence

from ...remoting.codes import RequestCode, ResponseCode
from ...remoting.command import RemotingCommand
from ...remoting.errors import ClientError, ResponseError, RocketMQError, TooManyRequests
from ...remoting.headers.broker import GetMaxOffsetRequestHeader
from ...remoting.message import Message, MessageQueue
from ...remoting.message_id import UniqIdGenerator
from ...remoting.node.network import Address
from ...remoting.node.node import NodeContext
from ...remoting.node.profile import Profile
from ...remoting.topics import TBW102
from ..client_instance import MQClientInstance
from ..config import CLIENT_IP, ProducerConfig
from ..scheduler import FixedRateScheduler
from . import send_request
from .fault_strategy import DETECT_TIMEOUT_MS, MQFaultStrategy
from .publish_table import Publish, PublishTable
from .send_record import SendRecord
from .send_request import SendRequest
from .send_result import RouteQueryFailed, SendError, SendResult, SendStatus, parse_send_response

DETECT_PERIOD_S = 3.0


class DefaultMQProducer:
    """A producer, like Java's DefaultMQProducer. Call `start` before the first send, and `stop` after the last.

    If `client` is given, the producer uses that client instance, and the caller starts and stops the instance.
    `context.rng` picks the starting queue of each topic and the first NameServer. The producer records a row
    `send` for each send and a row `send_attempt` for each try; its client instance records rows of its own.
    """

    def __init__(self, context: NodeContext, config: ProducerConfig, *, client: MQClientInstance | None = None) -> None:
        self._context = context
        self._config = config
        self._owns_client = client is None
        self.client = client or MQClientInstance(context, config, config.namesrv_addr)
        self._publish_table = PublishTable(self.client, context.rng)
        self._fault = MQFaultStrategy(
            config.profile,
            context.rng,
            enabled=config.send_latency_fault_enable,
            detector_enabled=config.start_detector_enable,
            table=tuple(zip(config.latency_max, config.not_available_duration, strict=True)),
            record=context.record,
        )
        self._detector = FixedRateScheduler(context.clock, context.log)
        self._uniq_ids = UniqIdGenerator(CLIENT_IP, context.rng)
        self._running = False

    async def start(self) -> None:
        """Register the producer's group and begin the client's jobs. Raises ClientError if the producer is started
        twice, or if the group already has a producer on this client."""
        if self._running:
            raise ClientError("The producer service state not OK, maybe started once")
        self.client.register_producer(self._config.producer_group, self._publish_table)
        self._running = True
        if self._config.profile is Profile.V4_9:
            # 4.9 polls the template topic's route from the start.
            self._publish_table.want(TBW102)
        if self._owns_client:
            await self.client.start()
        if self._config.start_detector_enable and self._config.profile is Profile.V5_X:
            self._detector.add("broker detector", self._detect, initial_s=DETECT_PERIOD_S, period_s=DETECT_PERIOD_S)
            self._detector.start()
        await self.client.send_heartbeat_to_all()

    async def stop(self) -> None:
        """Unregister at every broker, end the jobs, close the channels."""
        if not self._running:
            return
        self._running = False
        await self._detector.stop()
        await self.client.unregister_producer(self._config.producer_group)
        if self._owns_client:
            await self.client.stop()

    async def send(self, message: Message) -> SendResult:
        """Send a message and wait for the broker's answer; send_msg_timeout_ms covers all tries.

        Raises ClientError (nothing was sent), ResponseError (a code that is not retried), SendError (all tries failed),
        TooManyRequests.
        """
        return await self._recorded(message, self._send)

    async def send_selected(
        self, message: Message, select: Callable[[Sequence[MessageQueue]], MessageQueue]
    ) -> SendResult:
        """Send to the queue that `select` picks; `select` gets the topic's writable queues in order of broker name and
        queue id. There is no retry at another queue, so that messages for one queue stay in order. Upstream:
        `sendSelectImpl`."""
        return await self._recorded(
            message, lambda request, record, limit_ms: self._send_selected(request, record, select, limit_ms)
        )

    async def _recorded(
        self, message: Message, call: Callable[[SendRequest, SendRecord, int], Awaitable[SendResult]]
    ) -> SendResult:
        """Returns the outcome of `call`; the history gets one invoke row and one outcome row."""
        request = send_request.single(message, self._config, self._next_id)
        if not self._running:
            raise ClientError("The producer service state not OK, not running")
        record = SendRecord(self._context, request, self._next_id())
        record.invoked()
        try:
            result = await call(request, record, self._config.send_msg_timeout_ms)
        except RocketMQError as exc:
            record.failed(exc)
            raise
        except BaseException:
            record.unknown()
            raise
        record.returned(result)
        return result

    def _next_id(self) -> str:
        return self._uniq_ids.next_id(self._context.clock.now_ms())

    # -- the tries of one send

    async def _send(self, request: SendRequest, record: SendRecord, timeout_ms: int) -> SendResult:
        """Send with up to 1 + retry_times_when_send_failed tries within `timeout_ms`, as the table at the top
        of this module says."""
        config, begin_ms = self._config, int(record.begin_s * 1000)
        publish = await self._publish_table.find(request.topic)
        tries = 1 + config.retry_times_when_send_failed
        brokers_sent: list[str] = []
        result: SendResult | None = None
        error: RocketMQError | None = None
        timed_out = False
        for number in range(tries):
            queue = self._select(publish, brokers_sent[-1] if brokers_sent else None, retry=number > 0)
            brokers_sent.append(queue.broker_name)
            try_begin_ms = self._now_ms()
            left_ms = timeout_ms - (try_begin_ms - begin_ms)
            if left_ms <= 0:
                # Java tries with the 0 ms that may be left, but its clock has always moved on by then.
                timed_out = True
                break
            try:
                result = await self._send_once(request, record, queue, self._cap(left_ms, last=number + 1 == tries))
            except RouteQueryFailed:
                raise
            except RocketMQError as exc:
                error = exc
                self._note_failure(exc, queue.broker_name, try_begin_ms)
                if isinstance(exc, ResponseError) and exc.code not in config.retry_response_codes:
                    if result is None:
                        raise
                    return result
                self._context.log.warning("send try %d to %s failed: %r", number, queue.broker_name, exc)
                continue
            self._note_success(queue.broker_name, try_begin_ms)
            if result.status is SendStatus.SEND_OK or not config.retry_another_broker_when_not_store_ok:
                return result
        if result is not None:
            return result
        if timed_out or error is None:
            used_ms = self._now_ms() - begin_ms
            raise TooManyRequests(f"sendDefaultImpl call timeout: {used_ms} of {timeout_ms} ms used") from error
        raise still_failed(request.topic, brokers_sent, self._now_ms() - begin_ms, error) from error

    async def _send_once(
        self, request: SendRequest, record: SendRecord, queue: MessageQueue, timeout_ms: int
    ) -> SendResult:
        """Try once, at `queue`. Raises ClientError if the queue's broker has no address, and every error of the call to
        the broker."""
        begin_ms = self._now_ms()
        address = await self._address_of(queue, request, record)
        left_ms = timeout_ms - (self._now_ms() - begin_ms)
        with record.attempt(queue, address) as attempt:
            if left_ms < 0:
                raise TooManyRequests(f"sendKernelImpl call timeout: {timeout_ms - left_ms} of {timeout_ms} ms used")
            command = request.command(queue, self._config, now_ms=self._context.clock.now_ms())
            response = await self.client.remoting.invoke(address, command, timeout_s=left_ms / 1000)
            attempt.code = response.code
            return parse_send_response(response, request.msg_id, request.topic, queue.broker_name)

    async def _send_selected(
        self,
        request: SendRequest,
        record: SendRecord,
        select: Callable[[Sequence[MessageQueue]], MessageQueue],
        timeout_ms: int,
    ) -> SendResult:
        """Try once, at the queue that `select` picks. Raises the errors of `_send_once` and of `PublishTable.find`."""
        begin_ms = int(record.begin_s * 1000)
        publish = await self._publish_table.find(request.topic)
        queue = select(publish.ring.queues)
        return await self._send_once(request, record, queue, timeout_ms - (self._now_ms() - begin_ms))

    async def _address_of(self, queue: MessageQueue, request: SendRequest, record: SendRecord) -> Address:
        """Return the master's address, if need be after a look-up. Raises ClientError if there is no address."""
        address = self.client.find_broker_address_in_publish(queue.broker_name)
        if address is None:
            await self._publish_table.refresh_if_missing(request.topic)
            address = self.client.find_broker_address_in_publish(queue.broker_name)
        if address is None:
            with record.attempt(queue, None):
                raise ClientError(f"The broker[{queue.broker_name}] not exist")
        return address

    def _select(self, publish: Publish, last_broker_name: str | None, *, retry: bool = False) -> MessageQueue:
        return self._fault.select(
            publish.ring,
            last_broker_name,
            now_ms=self._now_ms(),
            write_queue_nums=publish.info.write_queue_nums,
            retry=retry,
        )

    def _cap(self, left_ms: int, *, last: bool) -> int:
        cap_ms = self._config.send_msg_max_timeout_per_request_ms
        capped = self._config.profile is Profile.V5_X and cap_ms > -1 and not last
        return min(left_ms, cap_ms) if capped else left_ms

    def _note_success(self, broker_name: str, begin_ms: int) -> None:
        now_ms = self._now_ms()
        self._fault.attempt_succeeded(broker_name, now_ms - begin_ms, now_ms=now_ms)

    def _note_failure(self, error: RocketMQError, broker_name: str, begin_ms: int) -> None:
        now_ms = self._now_ms()
        if isinstance(error, ResponseError):
            note = self._fault.broker_refused
        elif isinstance(error, ClientError):
            note = self._fault.client_refused
        else:
            note = self._fault.transport_failed
        note(broker_name, now_ms - begin_ms, now_ms=now_ms)

    def _now_ms(self) -> int:
        return int(self._context.clock.monotonic_s() * 1000)

    # -- brokers that may be reachable again

    async def _detect(self) -> None:
        """Run the detector once: brokers that have a fault item and answer a probe are reachable again."""
        topic = next(iter(self._publish_table.publish_topics()), None)
        for broker_name in self._fault.due_probes(now_ms=self._now_ms()):
            address = self.client.find_broker_address_in_publish(broker_name)
            if address is None:
                self._fault.forget(broker_name)
                continue
            header = GetMaxOffsetRequestHeader(topic=topic or "", queue_id=0)
            command = RemotingCommand.request(RequestCode.GET_MAX_OFFSET, header)
            try:
                response = await self.client.remoting.invoke(address, command, timeout_s=DETECT_TIMEOUT_MS / 1000)
            except RocketMQError as exc:
                self._context.log.debug("probe of %s failed: %r", broker_name, exc)
                continue
            if response.code == ResponseCode.SUCCESS:
                self._fault.probe_succeeded(broker_name)


def still_failed(topic: str, brokers_sent: list[str], cost_ms: int, error: RocketMQError) -> SendError:
    """Return the error of a call whose tries all failed; `error` is the error of the last try."""
    return SendError(
        f"Send [{len(brokers_sent)}] times, still failed, cost [{cost_ms}]ms, Topic: {topic}, "
        f"BrokersSent: [{', '.join(brokers_sent)}]: {error!r}",
        code=int(error.code) if isinstance(error, ResponseError) else None,
        definite=error.definite,
        retriable=error.retriable,
    )
