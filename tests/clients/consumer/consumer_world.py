"""One broker and its NameServer, and the push consumers made on them."""

from typing import Any, Self

from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.headers.broker import PullMessageRequestHeader
from nemesrv.remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from tests.clients import fakes
from tests.virtual import VirtualClock

from .consumers import Consuming

CLOCK = VirtualClock()

RETRY = RETRY_GROUP_TOPIC_PREFIX + "group"


class World(fakes.World):
    """A broker with the topic `orders` and the retry topic, and the consumers made on it, which end with it."""

    def __init__(self, queues: int = 4) -> None:
        super().__init__()
        self.queues = queues
        self._consumers: list[Consuming] = []

    async def __aenter__(self) -> Self:
        self.ns: fakes.FakeNameServer = await self.name_server()
        self.a: fakes.FakeBroker = await self.broker()
        self.ns.routes |= {"orders": fakes.route(self.a, queues=self.queues), RETRY: fakes.route(self.a, queues=1)}
        return self

    async def __aexit__(self, *_: object) -> None:
        for consuming in self._consumers:
            await consuming.consumer.stop()

    async def consumer(self, name: str = "consumer-0", **config: Any) -> Consuming:
        consuming = Consuming(self.network, (self.ns.address,), name=name, **config)
        await consuming.consumer.start()
        self._consumers.append(consuming)
        return consuming

    async def fill(self, count: int, *, then_s: float = 0) -> list[bytes]:
        bodies = [b"%d" % number for number in range(count)]
        for number, body in enumerate(bodies):
            await self.a.append("orders", number % self.queues, body, KEYS=f"k{number}")
        await CLOCK.sleep(then_s)
        return bodies

    def pulls(self, topic: str = "orders") -> list[PullMessageRequestHeader]:
        headers = [
            PullMessageRequestHeader.from_ext_fields(request.command.ext_fields)
            for request in self.a.asked(RequestCode.PULL_MESSAGE)
        ]
        return [header for header in headers if header.topic == topic]
