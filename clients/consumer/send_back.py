"""Sends a failed message back to its broker (request 36), or else to the group's retry topic as a new message.

The broker stores a failed message in the group's retry topic. The broker delivers a failed message again, after a delay
that grows with each failure, up to the allowed number of retries. If the message's broker does not accept the message,
the client sends it to any queue of the group's retry topic. Upstream: `DefaultMQPushConsumerImpl.sendMessageBack`,
`sendMessageBackAsNormalMessage`.
"""

from dataclasses import replace

from ...remoting import message_properties as names
from ...remoting.codes import RequestCode
from ...remoting.command import RemotingCommand, success
from ...remoting.errors import ClientError, RocketMQError
from ...remoting.headers.broker import ConsumerSendMsgBackRequestHeader
from ...remoting.message import Message, MessageQueue, StoredMessage
from ...remoting.node.node import NodeContext
from ..client_instance import MQClientInstance
from ..config import ProducerConfig
from ..producer.producer import DefaultMQProducer
from .config import ConsumerConfig, retry_topic
from .consume_service import restore_topic

SEND_BACK_TIMEOUT_S = 5.0
CLIENT_INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"
TO_BROKER, ANEW = "broker", "anew"
FIRST_RETRY_DELAY_LEVEL = 3
DELAY_LEVEL_BY_BROKER = 0
"""The broker picks the delay from the number of failures."""


class SendBackService:
    """Sends failed messages back to the broker. Call the object with a queue and a message of this queue."""

    def __init__(self, context: NodeContext, config: ConsumerConfig, instance: MQClientInstance) -> None:
        self._context, self._config, self._instance = context, config, instance
        self._producer: DefaultMQProducer | None = None

    async def __call__(self, queue: MessageQueue, message: StoredMessage) -> str:
        """Return how the group will get the message again: TO_BROKER or ANEW; "" if neither was possible."""
        try:
            await self._send_to_broker(queue, message)
            return TO_BROKER
        except RocketMQError as exc:
            self._context.log.warning("%s offset %d not sent back: %s", queue, message.queue_offset, exc)
        try:
            await self._send_anew(message)
            return ANEW
        except RocketMQError as exc:
            self._context.log.warning("%s offset %d not sent anew either: %s", queue, message.queue_offset, exc)
            return ""

    async def stop(self) -> None:
        if self._producer is not None:
            await self._producer.stop()

    async def _send_to_broker(self, queue: MessageQueue, message: StoredMessage) -> None:
        address = self._instance.find_broker_address_in_publish(queue.broker_name)
        if address is None:
            raise ClientError(f"Broker[{queue.broker_name}] master node does not exist")
        header = ConsumerSendMsgBackRequestHeader(
            offset=message.physical_offset,
            group=self._config.consumer_group,
            delay_level=DELAY_LEVEL_BY_BROKER,
            origin_msg_id=message.msg_id,
            origin_topic=restore_topic(message, self._config.consumer_group).topic,
            max_reconsume_times=self._config.max_reconsume_times,
        )
        request = RemotingCommand.request(RequestCode.CONSUMER_SEND_MSG_BACK, header)
        success(await self._instance.remoting.invoke(address, request, timeout_s=SEND_BACK_TIMEOUT_S))

    async def _send_anew(self, message: StoredMessage) -> None:
        group = self._config.consumer_group
        properties = dict(message.properties)
        properties.pop("TRAN_MSG", None)
        properties[names.ORIGIN_MESSAGE_ID] = properties.get(names.ORIGIN_MESSAGE_ID) or message.msg_id
        properties[names.RETRY_TOPIC] = restore_topic(message, group).topic
        properties[names.RECONSUME_TIME] = str(message.reconsume_times + 1)
        properties[names.MAX_RECONSUME_TIMES] = str(self._config.max_reconsume_times)
        properties[names.DELAY] = str(FIRST_RETRY_DELAY_LEVEL + message.reconsume_times)
        anew = Message(retry_topic(group), message.inflated_body, properties=properties, flag=message.flag)
        await (await self._started_producer()).send(anew)

    def _record_time_outs(self, event: str, /, **fields: object) -> None:
        if event == "timed_out":
            self._context.record(event, **fields)

    async def _started_producer(self) -> DefaultMQProducer:
        if self._producer is None:
            # What it sends is no operation of the workload; but a call that times out closes a shared channel.
            context = replace(self._context, record=self._record_time_outs)
            config = ProducerConfig(producer_group=CLIENT_INNER_PRODUCER_GROUP, profile=self._config.profile)
            self._producer = DefaultMQProducer(context, config, client=self._instance)
            await self._producer.start()
        return self._producer
