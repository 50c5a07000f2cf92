"""The consuming workload: one DefaultMQPushConsumer, which consumes without delay what its listener does not fail."""

import asyncio
from collections.abc import Sequence

from ....clients.client_instance import MQClientInstance
from ....clients.consumer.config import ConsumerConfig
from ....clients.consumer.consumer import DefaultMQPushConsumer
from ....remoting.errors import TransportError
from ....remoting.message import StoredMessage
from ....remoting.message_properties import is_of_share
from ....remoting.node.network import Address
from ....remoting.node.node import Node, NodeContext
from ....remoting.node.tasks import cancel_all

START_AGAIN_S = 1.0


class ConsumerNode(Node):
    """The node of one push consumer, which records a `receive` row for each message. Its listener fails
    `failing_share` of the messages at the first receipt."""

    def __init__(self, context: NodeContext, config: ConsumerConfig, failing_share: float = 0.0) -> None:
        self._context, self._config, self._failing_share = context, config, failing_share
        self._starting: asyncio.Task[None] | None = None
        self.client = DefaultMQPushConsumer(context, config, self._consume)

    def _consume(self, messages: Sequence[StoredMessage]) -> bool:
        return not any(one.reconsume_times == 0 and is_of_share(one.keys, self._failing_share) for one in messages)

    @property
    def instance(self) -> MQClientInstance:
        return self.client.client

    async def start(self) -> None:
        """Start to consume. If no NameServer is reachable, the start fails as in Java, and is repeated as a process
        supervisor would do."""
        try:
            await self.client.start()
        except TransportError as exc:
            self._starting = asyncio.create_task(self._start_again(exc))

    async def _start_again(self, failed: TransportError | None) -> None:
        while failed is not None:
            self._context.log.warning("start failed and is tried again: %s", failed)
            await self._context.clock.sleep(START_AGAIN_S)
            self.client = DefaultMQPushConsumer(self._context, self._config, self._consume)
            try:
                await self.client.start()
                failed = None
            except TransportError as exc:
                failed = exc

    async def chosen_name_server(self) -> Address | None:
        return self.instance.name_server.chosen

    async def stop(self) -> None:
        if self._starting is not None and not self._starting.done():
            await cancel_all((self._starting,))
        else:
            await self.client.stop()
