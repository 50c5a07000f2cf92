"""A push consumer with its listener and its history, ready to start."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nemesrv.clients.consumer.config import ConsumerConfig
from nemesrv.clients.consumer.consumer import DefaultMQPushConsumer
from nemesrv.remoting.message import StoredMessage
from nemesrv.remoting.node.network import Address, Network
from nemesrv.remoting.node.node import NodeContext
from nemesrv.remoting.node.recording import Recorder, ignore
from tests.virtual import VirtualClock


class Consuming:
    """`received`: the messages that the listener took, in order. `events`: what the node recorded."""

    def __init__(
        self,
        network: Network,
        name_servers: tuple[Address, ...],
        *,
        name: str = "consumer-0",
        listener: Callable[[StoredMessage], bool] = lambda message: True,
        data_dir: Path | None = None,
        record: Recorder = ignore,
        **config: Any,
    ) -> None:
        self.received: list[StoredMessage] = []
        self.events: list[dict[str, Any]] = []
        self._listener, self._also_record = listener, record
        settings: dict[str, Any] = {"consumer_group": "group", "subscriptions": (("orders", "*"),)}
        context = NodeContext(
            name=name,
            clock=VirtualClock(),
            network=network,
            rng=random.Random(name),
            record=self._record,
            data_dir=data_dir,
        )
        self.consumer = DefaultMQPushConsumer(
            context, ConsumerConfig(namesrv_addr=name_servers, **(settings | config)), self._consume
        )

    async def stop(self) -> None:
        """With its last oneway requests having arrived."""
        await self.consumer.stop()
        await asyncio.sleep(0)

    def _record(self, event: str, /, **fields: object) -> None:
        self.events.append({"event": event, **fields})
        self._also_record(event, **fields)

    def _consume(self, messages: list[StoredMessage]) -> bool:
        consumed = all([self._listener(message) for message in messages])
        if consumed:
            self.received += messages
        return consumed

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.received]

    def recorded(self, event: str) -> list[dict[str, Any]]:
        return [row for row in self.events if row["event"] == event]

    def assigned(self, topic: str = "orders") -> list[list[object]]:
        """The queues of `topic` by the latest `assigned` event."""
        values = [row["value"] for row in self.recorded("assigned") if row["topic"] == topic]
        return values[-1] if values else []
