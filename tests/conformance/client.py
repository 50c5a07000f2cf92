"""Our producer or consumer on any clock and network, which tells what docs/conform-protocol.md's lines would.

It is whole, or has a defect (sabotage.py). As a program of its own it is tests/clients_matrix/drivers/ours.py.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from nemesrv.clients.client_instance import MQClientInstance
from nemesrv.clients.config import ProducerConfig
from nemesrv.clients.consumer.config import ConsumerConfig
from nemesrv.clients.consumer.consumer import DefaultMQPushConsumer
from nemesrv.clients.name_server_client import NameServerClient
from nemesrv.clients.producer.producer import DefaultMQProducer
from nemesrv.conformance.situations import Role
from nemesrv.remoting.errors import RocketMQError
from nemesrv.remoting.message import Message, StoredMessage
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.node import Node, NodeContext
from nemesrv.remoting.node.profile import Profile

Tell = Callable[..., None]


class Client(Node):
    """One process of the program. `settings` go into its producer's or consumer's config; a defect changes either."""

    def __init__(
        self,
        context: NodeContext,
        *,
        name_servers: Sequence[Address],
        topic: str,
        group: str,
        role: Role = Role.PRODUCER,
        profile: Profile = Profile.V5_X,
        every_s: float = 0.2,
        tell: Tell = lambda **said: None,
        **settings: Any,
    ) -> None:
        self.context, self.topic, self.role, self.every_s = context, topic, role, every_s
        self.configured = tuple(name_servers)
        self.tell = tell
        common = {"namesrv_addr": self.configured, "profile": profile, **settings}
        self.node: DefaultMQProducer | DefaultMQPushConsumer
        if role is Role.PRODUCER:
            self.node = DefaultMQProducer(context, ProducerConfig(producer_group=group, **common))
        else:
            config = ConsumerConfig(consumer_group=group, subscriptions=((topic, "*"),), **common)
            self.node = DefaultMQPushConsumer(context, config, self._received)
        self._sending: asyncio.Task[None] | None = None

    @property
    def instance(self) -> MQClientInstance:
        return self.node.client

    @property
    def name_server(self) -> NameServerClient:
        return self.instance.name_server

    def said(self, number: int, ok: bool) -> bool:
        """What it tells of that send; a defect may lie."""
        return ok

    async def start(self) -> None:
        await self.node.start()
        self.tell(f="started")
        if isinstance(self.node, DefaultMQProducer):
            self._sending = asyncio.create_task(self._send_all(self.node))

    async def stop(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        await self.node.stop()

    async def _send_all(self, producer: DefaultMQProducer) -> None:
        number = 0
        while True:
            key = f"{self.context.name}-{number}"
            self.tell(f="send", id=key)
            broker = ""
            try:
                broker = (await producer.send(Message.create(self.topic, key.encode(), keys=key))).queue.broker_name
            except RocketMQError:
                pass
            ok = self.said(number, bool(broker))
            self.tell(f="sent", id=key, type="ok" if ok else "fail", **({"broker": broker} if broker else {}))
            number += 1
            await self.context.clock.sleep(self.every_s)

    def _received(self, messages: Sequence[StoredMessage]) -> bool:
        for message in messages:
            self.tell(f="received", id=message.body.decode())
        return True
