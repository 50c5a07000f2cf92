"""The tries of one send call: the queue and time-out of each try, and what follows from each try's outcome.

| outcome of one try of a synchronous send    | then                                                               |
|---------------------------------------------|--------------------------------------------------------------------|
| no connection, connection lost, no answer   | next try, on another broker if there is one                        |
| no address of the broker                    | next try                                                           |
| code 17, 14, 1, 16, 204, 205 (5.x: 2, 1500) | next try                                                           |
| any other error code                        | raised at once                                                     |
| stored, but not as safely as configured     | a result, unless retry_another_broker_when_not_store_ok: next try  |
| the call's time is used up before a try     | TooManyRequests                                                    |

By default three tries share 3 s, so a broker that hangs uses up the whole time and no retry follows. Upstream:
`DefaultMQProducerImpl.sendDefaultImpl`, `sendKernelImpl`.
"""

from collections.abc import Callable, Sequence

from ...remoting.errors import ClientError, ResponseError, RocketMQError, TooManyRequests
from ...remoting.message import MessageQueue
from ...remoting.node.network import Address
from ...remoting.node.node import NodeContext
from ...remoting.node.profile import Profile
from ..client_instance import MQClientInstance
from ..config import ProducerConfig
from .fault_strategy import MQFaultStrategy
from .publish_table import Publish, PublishTable
from .send_record import SendRecord
from .send_request import SendRequest
from .send_result import RouteQueryFailed, SendError, SendResult, SendStatus, parse_send_response


class Sender:
    """Sends requests for one producer; it keeps no state between calls."""

    def __init__(
        self,
        context: NodeContext,
        config: ProducerConfig,
        client: MQClientInstance,
        publish_table: PublishTable,
        fault: MQFaultStrategy,
    ) -> None:
        self._context = context
        self._config = config
        self._client = client
        self._publish_table = publish_table
        self._fault = fault

    async def send(self, request: SendRequest, record: SendRecord, timeout_ms: int) -> SendResult:
        """Send synchronously: up to 1 + retry_times_when_send_failed tries within `timeout_ms`, as the table at the top
        of this module says."""
        config, begin_ms = self._config, self._now_ms()
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
                result = await self.send_once(request, record, queue, self._cap(left_ms, last=number + 1 == tries))
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

    async def send_once(
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
            response = await self._client.remoting.invoke(address, command, timeout_s=left_ms / 1000)
            attempt.code = response.code
            return parse_send_response(response, request.msg_id, request.topic, queue.broker_name)

    async def send_selected(
        self,
        request: SendRequest,
        record: SendRecord,
        select: Callable[[Sequence[MessageQueue]], MessageQueue],
        timeout_ms: int,
    ) -> SendResult:
        """Try once, at the queue that `select` picks. Raises the errors of `send_once` and of `PublishTable.find`."""
        begin_ms = self._now_ms()
        publish = await self._publish_table.find(request.topic)
        queue = select(publish.ring.queues)
        return await self.send_once(request, record, queue, timeout_ms - (self._now_ms() - begin_ms))

    async def _address_of(self, queue: MessageQueue, request: SendRequest, record: SendRecord) -> Address:
        """Return the master's address, if need be after a look-up. Raises ClientError if there is no address."""
        address = self._client.find_broker_address_in_publish(queue.broker_name)
        if address is None:
            await self._publish_table.refresh_if_missing(request.topic)
            address = self._client.find_broker_address_in_publish(queue.broker_name)
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


def still_failed(topic: str, brokers_sent: list[str], cost_ms: int, error: RocketMQError) -> SendError:
    """Return the error of a call whose tries all failed; `error` is the error of the last try."""
    return SendError(
        f"Send [{len(brokers_sent)}] times, still failed, cost [{cost_ms}]ms, Topic: {topic}, "
        f"BrokersSent: [{', '.join(brokers_sent)}]: {error!r}",
        code=int(error.code) if isinstance(error, ResponseError) else None,
        definite=error.definite,
        retriable=error.retriable,
    )
