"""One small broker, and the push consumers made on it."""

from typing import Any, Self

from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.headers.broker import PullMessageRequestHeader
from nemesrv.remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from tests.virtual import MemoryNetwork, VirtualClock

from ..small_broker import SmallBroker
from .consumers import Consuming

CLOCK = VirtualClock()

RETRY = RETRY_GROUP_TOPIC_PREFIX + "group"


class World:
    """One broker with the topic `orders` and the retry topic, and the consumers made on it, which end with it."""

    def __init__(self, queues: int = 4) -> None:
        self._consumers: list[Consuming] = []
        self.network = MemoryNetwork()
        self.broker = SmallBroker(self.network, {"orders": queues, RETRY: 1})

    async def consumer(self, name: str = "consumer-0", **config: Any) -> Consuming:
        if not self.network.listening:
            await self.broker.listen()
        consuming = Consuming(self.network, (self.broker.address,), name=name, **config)
        await consuming.consumer.start()
        self._consumers.append(consuming)
        return consuming

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for consuming in self._consumers:
            await consuming.consumer.stop()

    async def fill(self, count: int, **properties: str) -> list[bytes]:
        queues = self.broker.topics["orders"]
        bodies = [b"%d" % number for number in range(count)]
        for number, body in enumerate(bodies):
            await self.broker.append("orders", number % queues, body, KEYS=f"k{number}", **properties)
        return bodies

    def pulls(self, topic: str = "orders") -> list[PullMessageRequestHeader]:
        headers = [
            PullMessageRequestHeader.from_ext_fields(request.ext_fields)
            for request in self.broker.asked(RequestCode.PULL_MESSAGE)
        ]
        return [header for header in headers if header.topic == topic]
