"""A producer between one NameServer and two brokers, and what its history says of its sends."""

from typing import Any, Self

import pytest

from nemesrv.clients.config import ProducerConfig
from nemesrv.clients.producer.producer import DefaultMQProducer
from nemesrv.remoting.errors import RocketMQError
from nemesrv.remoting.message import Message
from nemesrv.remoting.node.profile import Profile
from tests.clients.fakes import FakeBroker, FakeNameServer, World, route

BOTH = pytest.mark.parametrize("profile", list(Profile))

MESSAGE = Message.create("orders", b"hello", keys="k0")


class Bench:
    """One NameServer, brokers a and b with two queues of `orders` each, and a producer that knows the route."""

    def __init__(self, **settings: Any) -> None:
        self.world, self.settings = World(), settings

    async def __aenter__(self) -> Self:
        self.ns: FakeNameServer = await self.world.name_server()
        self.a: FakeBroker = await self.world.broker("broker-a")
        self.b: FakeBroker = await self.world.broker("broker-b")
        self.ns.routes["orders"] = route(self.a, self.b, queues=2)
        self.config = ProducerConfig(namesrv_addr=(self.ns.address,), **self.settings)
        self.producer = DefaultMQProducer(self.world.context("producer-0"), self.config)
        await self.producer.start()
        await self.producer._publish_table.find("orders")
        await self.world.clock.sleep(5)  # connected by the first heartbeat
        self.begin_s = self.world.clock.monotonic_s()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.producer.stop()

    @property
    def elapsed_s(self) -> float:
        return round(self.world.clock.monotonic_s() - self.begin_s, 3)

    async def sent_to(self) -> str:
        """The broker that takes the message in the end."""
        return (await self.producer.send(MESSAGE)).queue.broker_name

    async def error(self) -> RocketMQError:
        """The error that a send ends in."""
        with pytest.raises(RocketMQError) as caught:
            await self.producer.send(MESSAGE)
        return caught.value

    @property
    def attempts(self) -> list[tuple[str, str, int | None]]:
        """How each attempt ended: broker, type, code."""
        rows = [row for row in self.world.rows("send_attempt") if row["type"] != "invoke"]
        return [(row["broker_name"], row["type"], row["code"]) for row in rows]

    @property
    def outcomes(self) -> list[tuple[str, int | None]]:
        rows = [row for row in self.world.rows("send") if row["type"] != "invoke"]
        return [(row["type"], row.get("code")) for row in rows]

    def first_and_second(self) -> tuple[FakeBroker, FakeBroker]:
        """The broker that the next send tries first, and the other one."""
        ring = self.producer._publish_table._table["orders"].ring  # type: ignore[union-attr]
        index = ring._index
        first = ring.next().broker_name
        ring._index = index
        return (self.a, self.b) if first == "broker-a" else (self.b, self.a)
