"""The consuming workload: one DefaultMQPushConsumer that takes every message at once."""

from __future__ import annotations

from collections.abc import Sequence

from ...clients.client_instance import MQClientInstance
from ...clients.consumer.config import ConsumerConfig
from ...clients.consumer.consumer import DefaultMQPushConsumer
from ...remoting.message import StoredMessage
from ...remoting.node.network import Address
from ...remoting.node.node import NodeContext


class ConsumerNode:
    """A Node around one push consumer. The `receive` rows are recorded by the consumer itself."""

    def __init__(self, context: NodeContext, config: ConsumerConfig) -> None:
        self._received = 0
        self.client = DefaultMQPushConsumer(context, config, self._consume)

    def _consume(self, messages: Sequence[StoredMessage]) -> bool:
        self._received += len(messages)
        return True

    @property
    def instance(self) -> MQClientInstance:
        """The client's shared half."""
        return self.client.client

    async def listen(self) -> Address | None:
        return None

    async def start(self) -> None:
        await self.client.start()

    async def received(self) -> int:
        """How many messages the listener has been given so far."""
        return self._received

    async def chosen_name_server(self) -> Address | None:
        """The NameServer in use, or None before the first choice."""
        return self.instance.name_server.chosen

    async def stop(self) -> None:
        await self.client.stop()
