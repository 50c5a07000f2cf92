"""A producer that sends synchronously; sender.py makes the retries as Java does.

Every send ends in a result or in one RocketMQError, whose `definite` is true only if no try can have stored the
message. Upstream: `DefaultMQProducer`, `DefaultMQProducerImpl`.
"""

from collections.abc import Awaitable, Callable, Sequence

from ...remoting.codes import RequestCode, ResponseCode
from ...remoting.command import RemotingCommand
from ...remoting.errors import ClientError, RocketMQError
from ...remoting.headers.broker import GetMaxOffsetRequestHeader
from ...remoting.message import Message, MessageQueue
from ...remoting.message_id import UniqIdGenerator
from ...remoting.node.node import NodeContext
from ...remoting.node.profile import Profile
from ...remoting.topics import TBW102
from ..client_instance import MQClientInstance
from ..config import CLIENT_IP, ProducerConfig
from ..scheduler import FixedRateScheduler
from . import send_request
from .fault_strategy import DETECT_TIMEOUT_MS, MQFaultStrategy
from .publish_table import PublishTable
from .send_record import SendRecord
from .send_request import SendRequest
from .send_result import SendResult
from .sender import Sender

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
        self._publish_table = PublishTable(self.client, config, context.rng)
        self._fault = MQFaultStrategy(
            config.profile,
            context.rng,
            enabled=config.send_latency_fault_enable,
            detector_enabled=config.start_detector_enable,
            table=tuple(zip(config.latency_max, config.not_available_duration, strict=True)),
            record=context.record,
        )
        self._sender = Sender(context, config, self.client, self._publish_table, self._fault)
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
        return await self._recorded(message, self._sender.send)

    async def send_selected(
        self, message: Message, select: Callable[[Sequence[MessageQueue]], MessageQueue]
    ) -> SendResult:
        """Send to the queue that `select` picks; `select` gets the topic's writable queues in order of broker name and
        queue id. There is no retry at another queue, so that messages for one queue stay in order. Upstream:
        `sendSelectImpl`."""
        return await self._recorded(
            message, lambda request, record, limit_ms: self._sender.send_selected(request, record, select, limit_ms)
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

    async def _detect(self) -> None:
        """Run the detector once: brokers that have a fault item and answer a probe are reachable again."""
        topic = next(iter(self._publish_table.publish_topics()), None)
        for broker_name in self._fault.due_probes(now_ms=int(self._context.clock.monotonic_s() * 1000)):
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
