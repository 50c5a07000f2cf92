"""The producing workload: one DefaultMQProducer that sends keyed messages at a steady rate, one after another.

The producer is a process in Jepsen's sense: its next operation begins after the previous operation has completed. Each
message's key is unique in the run, so checks can follow a message from acknowledgement to receipt.
"""

import asyncio
from dataclasses import dataclass

from ....clients.client_instance import MQClientInstance
from ....clients.config import ProducerConfig
from ....clients.producer.producer import DefaultMQProducer
from ....remoting import message_properties
from ....remoting.errors import RocketMQError
from ....remoting.message import Message
from ....remoting.node.network import Address
from ....remoting.node.node import Node, NodeContext

DELAY_LEVELS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerWorkload:
    topic: str
    sends_per_s: float
    body_bytes: int
    config: ProducerConfig
    ordered_keys: int = 0
    """Number of sharding keys of an ordered workload; 0: messages go to the queues in turn."""
    delayed_share: float = 0.0
    """Share of messages that are delayed, by the first levels in turn."""

    def delay_level(self, number: int) -> int:
        """Return the delay level of a producer's message with this number, from 1 on; 0 for none."""
        delayed = int(number * self.delayed_share)
        return 1 + delayed % DELAY_LEVELS if delayed > int((number - 1) * self.delayed_share) else 0


class ProducerNode(Node):
    """The node of one producer. `begin` starts sending, `finish` stops sending and waits for the last send."""

    def __init__(self, context: NodeContext, workload: ProducerWorkload) -> None:
        self._context, self._workload = context, workload
        self.client = DefaultMQProducer(context, workload.config)
        self._sending: asyncio.Task[None] | None = None
        self._finishing = False
        self._sent = 0

    @property
    def instance(self) -> MQClientInstance:
        return self.client.client

    async def start(self) -> None:
        await self.client.start()

    async def begin(self) -> None:
        self._sending = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        clock, period_s = self._context.clock, 1 / self._workload.sends_per_s
        due_s = clock.monotonic_s() + self._context.rng.random() * period_s
        while not self._finishing:
            await clock.sleep(max(0.0, due_s - clock.monotonic_s()))
            if self._finishing:
                return
            await self._send_one()
            # A send that took longer than the period does not make the next ones hurry.
            due_s = max(due_s + period_s, clock.monotonic_s())

    async def _send_one(self) -> None:
        life = self._context.incarnation
        key = f"{self._context.name}{f'.{life}' if life else ''}-{self._sent}"
        self._sent += 1
        body = key.encode().ljust(self._workload.body_bytes, b".")
        properties = {"number": str(self._sent)}
        message = Message.create(
            self._workload.topic, body, keys=key, tags=self._context.name, user_properties=properties
        )
        if level := self._workload.delay_level(self._sent):
            message = message.with_property(message_properties.DELAY, str(level))
        try:
            if self._workload.ordered_keys:
                await self._send_in_order(message)
            else:
                await self.client.send(message)
        except RocketMQError as exc:
            self._context.log.info("send of %s did not succeed: %s", key, exc)

    async def _send_in_order(self, message: Message) -> None:
        """Send to the queue of the sharding key, like MessageQueueSelector by hash: one attempt, no other queue."""
        shard = self._sent % self._workload.ordered_keys
        message = message.with_property(message_properties.SHARDING_KEY, f"{self._context.name}-{shard}")
        await self.client.send_selected(message, lambda queues: queues[shard % len(queues)])

    async def finish(self) -> None:
        self._finishing = True
        if self._sending is not None:
            await self._sending

    async def chosen_name_server(self) -> Address | None:
        return self.instance.name_server.chosen

    async def stop(self) -> None:
        await self.finish()
        await self.client.stop()
