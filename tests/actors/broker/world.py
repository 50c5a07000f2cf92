"""A broker among recording NameServers on an in-memory network and a virtual clock."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.actors.broker.server import Broker
from nemesrv.remoting.bodies.client import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from nemesrv.remoting.bodies.register import RegisterBrokerBody
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.headers.broker import SendMessageRequestHeader
from nemesrv.remoting.message import StoredMessage
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.node import NodeContext
from nemesrv.remoting.node.profile import Profile
from nemesrv.remoting.transport import Connection, RemotingClient, RemotingServer
from tests.virtual import MemoryNetwork, VirtualClock

LOG = logging.getLogger("test.broker")

PULL: dict[str, object] = {
    "consumerGroup": "g",
    "topic": "orders",
    "queueId": 0,
    "queueOffset": 0,
    "maxMsgNums": 32,
    "sysFlag": 4,
    "commitOffset": 0,
    "suspendTimeoutMillis": 0,
    "subscription": "*",
    "subVersion": 0,
}


class RecordingNameServer:
    """Accepts every registration and remembers (when, code, ext fields, topics). `answer` replaces its response."""

    def __init__(self, world: World, port: int) -> None:
        self.address = Address("127.0.0.1", port)
        self.requests: list[tuple[float, int, dict[str, str], tuple[str, ...]]] = []
        self.bodies: list[RegisterBrokerBody] = []
        self.answer: Callable[[], RemotingCommand | Awaitable[RemotingCommand]] = RemotingCommand.response
        self._clock = world.clock
        self.server = RemotingServer(clock=world.clock, network=world.network, handler=self._handle, log=LOG)

    def _handle(self, _: Connection, request: RemotingCommand) -> RemotingCommand | Awaitable[RemotingCommand]:
        topics: tuple[str, ...] = ()
        if request.code == RequestCode.REGISTER_BROKER:
            body = RegisterBrokerBody.decode(request.body, version=request.version)
            self.bodies.append(body)
            topics = tuple(topic.topic_name for topic in body.topics)
        self.requests.append((self._clock.monotonic_s(), request.code, request.ext_fields or {}, topics))
        return self.answer()

    def times(self, code: int = RequestCode.REGISTER_BROKER) -> list[float]:
        return [round(at, 3) for at, its_code, _, _ in self.requests if its_code == code]


class World:
    def __init__(self, directory: Path, *, is_up: bool = False, has_orders: bool = False) -> None:
        self.directory, self._is_up, self._has_orders = directory, is_up, has_orders
        self.network = MemoryNetwork()
        self.clock = VirtualClock()
        self.events: list[dict[str, Any]] = []
        self.client = self.new_client()
        self._started: list[Any] = []

    async def __aenter__(self) -> World:
        if self._is_up:
            await self.broker()
        if self._has_orders:
            await self.create_topic()
        return self

    async def __aexit__(self, *_: object) -> None:
        for stop in reversed(self._started):
            await stop()

    async def name_servers(self, count: int) -> list[RecordingNameServer]:
        servers = [RecordingNameServer(self, 9876 + index) for index in range(count)]
        for server in servers:
            await server.server.listen(server.address)
            self._started.append(server.server.close)
        return servers

    def new_client(self, handler: Any = None) -> RemotingClient:
        return RemotingClient(clock=self.clock, network=self.network, handler=handler, log=LOG)

    async def broker(self, *, start: bool = True, port: int = 10911, **config: Any) -> Broker:
        def record(event: str, /, **fields: object) -> None:
            self.events.append({"event": event, "at": round(self.clock.monotonic_s(), 3), **fields})

        name = config.setdefault("broker_name", "broker-a")
        directory = self.directory / f"{name}-{config.get('broker_id', 0)}"
        context = NodeContext(
            name=name,
            clock=self.clock,
            network=self.network,
            rng=random.Random(7),
            record=record,
            log=LOG,
            data_dir=directory,
        )
        broker = Broker(context, BrokerConfig(**config), listen=Address("127.0.0.1", port))
        await broker.listen()
        self._started.append(broker.stop)
        if start:
            await broker.start()
        return broker

    async def stop(self, broker: Broker) -> None:
        self._started.remove(broker.stop)
        await broker.stop()

    def recorded(self, event: str, **fields: object) -> list[dict[str, Any]]:
        return [e for e in self.events if e["event"] == event and fields.items() <= e.items()]

    async def ask(
        self,
        code: int,
        fields: dict[str, Any] | None = None,
        body: bytes = b"",
        *,
        client: RemotingClient | None = None,
        timeout_s: float = 30,
        port: int = 10911,
    ) -> RemotingCommand:
        header = {key: str(value) for key, value in (fields or {}).items()}
        request = RemotingCommand.request(code, header, body)
        return await (client or self.client).invoke(Address("127.0.0.1", port), request, timeout_s=timeout_s)

    async def send(
        self,
        body: bytes = b"hello",
        *,
        topic: str = "orders",
        queue_id: int = 0,
        properties: str = "",
        port: int = 10911,
        **fields: Any,
    ) -> RemotingCommand:
        header = send_header(topic=topic, queue_id=queue_id, properties=properties, **fields)
        return await self.ask(RequestCode.SEND_MESSAGE_V2, header.to_v2(), body, port=port)

    async def pull(
        self,
        offset: int = 0,
        *,
        topic: str = "orders",
        queue_id: int = 0,
        wait_ms: int = 0,
        expression: str = "*",
        client: RemotingClient | None = None,
        port: int = 10911,
        **fields: Any,
    ) -> RemotingCommand:
        asked = {"topic": topic, "queueId": queue_id, "queueOffset": offset, "suspendTimeoutMillis": wait_ms}
        header = {**PULL, **asked, "sysFlag": 4 | (2 if wait_ms else 0), "subscription": expression, **fields}
        return await self.ask(RequestCode.PULL_MESSAGE, header, client=client, port=port)

    async def create_topic(
        self, topic: str = "orders", *, queues: int = 4, perm: int = 6, order: str = "false"
    ) -> RemotingCommand:
        fields = {
            "topic": topic,
            "defaultTopic": "TBW102",
            "readQueueNums": queues,
            "writeQueueNums": queues,
            "perm": perm,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": order,
        }
        response = await self.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
        assert response.code == ResponseCode.SUCCESS, response
        return response

    async def commit(self, offset: int, *, topic: str = "orders", queue_id: int = 0, port: int = 10911) -> None:
        """The group's offset."""
        fields = {"consumerGroup": "g", "topic": topic, "queueId": queue_id, "commitOffset": offset}
        response = await self.ask(RequestCode.UPDATE_CONSUMER_OFFSET, fields, port=port)
        assert response.code == ResponseCode.SUCCESS, response

    async def heartbeat(self, heartbeat: HeartbeatData, client: RemotingClient | None = None) -> None:
        response = await self.ask(RequestCode.HEART_BEAT, body=heartbeat.encode(), client=client)
        assert response.code == ResponseCode.SUCCESS, response


def beat(
    client_id: str = "one", *topics: str, group: str = "g", version: int = 1, producers: str = "", expression: str = "*"
) -> HeartbeatData:
    """A heartbeat of a consumer of these topics, if there are some, and of a producer of that group, if it has one."""
    subscriptions = tuple(SubscriptionData.of(topic, expression, sub_version=version) for topic in topics)
    consumers = (ConsumerData(group_name=group, subscription_data_set=subscriptions),) if topics else ()
    of_producers = (ProducerData(group_name=producers),) if producers else ()
    return HeartbeatData(client_id=client_id, producer_data_set=of_producers, consumer_data_set=consumers)


class Peer:
    """A client on its own channel. It answers what it is asked with `answer` (None: not at all), and keeps the groups
    of whose new members it is told."""

    def __init__(self, world: World, answer: RemotingCommand | None = None) -> None:
        self.world, self.answer = world, answer
        self.asked: list[RemotingCommand] = []
        self.notified: list[str] = []
        self.client = world.new_client(self._handle)

    async def heartbeat(self, client_id: str = "one", *topics: str, **more: Any) -> None:
        await self.world.heartbeat(beat(client_id, *topics, **more), self.client)

    def _handle(self, _: Connection, request: RemotingCommand) -> RemotingCommand | None:
        if request.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            assert request.is_oneway
            self.notified.append((request.ext_fields or {})["consumerGroup"])
            return None
        self.asked.append(request)
        return self.answer


def bodies(answer: RemotingCommand) -> list[bytes]:
    return [stored.body for stored in StoredMessage.decode_all(answer.body, strict=True)]


def send_header(
    *, topic: str = "orders", queue_id: int = 0, properties: str = "", **fields: Any
) -> SendMessageRequestHeader:
    values: dict[str, Any] = {
        "producer_group": "p",
        "topic": topic,
        "default_topic": "TBW102",
        "default_topic_queue_nums": 4,
        "queue_id": queue_id,
        "sys_flag": 0,
        "born_timestamp": 1000,
        "flag": 0,
        "properties": properties or None,
        **fields,
    }
    return SendMessageRequestHeader(**values)


PROFILES = tuple(Profile)
