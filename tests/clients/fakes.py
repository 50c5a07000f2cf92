"""A world for client tests: virtual time, a network in memory, NameServers and brokers that do as they are told.

    world = World()
    ns = await world.name_server("ns-0")                      # a FakeNameServer, listening
    broker = await world.broker("broker-a")                   # a FakeBroker, listening
    ns.routes["orders"] = route(broker, queues=4)
    producer = DefaultMQProducer(world.context("producer-0"), ProducerConfig(namesrv_addr=(ns.address,)))

Every fake has `requests` (what it was asked, when), `silent` (asked, but it never answers), `crash()` and `revive()`.
`world.network.swallow(address)` leaves dials to an address unanswered. `world.rows("send", type="ok")` are the history.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nemesrv.remoting.bodies.client import GetConsumerListByGroupResponseBody, HeartbeatData
from nemesrv.remoting.bodies.route import BrokerData, QueueData, TopicRouteData
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.headers.broker import (
    GetConsumerListByGroupRequestHeader,
    GetMaxOffsetResponseHeader,
    NotifyConsumerIdsChangedRequestHeader,
    SendMessageRequestHeader,
    SendMessageResponseHeader,
)
from nemesrv.remoting.message_batch import decode_batch
from nemesrv.remoting.message_id import offset_msg_id
from nemesrv.remoting.node.network import Address, ProtocolFactory
from nemesrv.remoting.node.node import NodeContext
from nemesrv.remoting.transport import Connection, RemotingServer
from tests.virtual import MemoryNetwork, VirtualClock

LOG = logging.getLogger("tests.clients")


class ClientNetwork(MemoryNetwork):
    """MemoryNetwork on which a dial may also get no answer at all."""

    def __init__(self) -> None:
        super().__init__()
        self.swallowed: set[Address] = set()

    def swallow(self, address: Address) -> None:
        """From now on dials to `address` are neither accepted nor refused, as when packets are dropped."""
        self.swallowed.add(address)

    async def connect(self, address: Address, factory: ProtocolFactory) -> asyncio.BaseProtocol:
        if address in self.swallowed:
            self.dials.append(address)
            await asyncio.Event().wait()
        return await super().connect(address, factory)


@dataclass(frozen=True, slots=True)
class Request:
    """What a fake was asked, and when (seconds of the virtual clock)."""

    at_s: float
    code: int
    command: RemotingCommand
    connection: Connection


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.network = ClientNetwork()
        self.history: list[dict[str, Any]] = []
        self._ports = itertools.count(1)

    def address(self, port: int | None = None) -> Address:
        """A new address; nobody listens there."""
        return Address("10.0.0.1", next(self._ports) if port is None else port)

    def context(self, name: str = "client-0", seed: int = 0) -> NodeContext:
        def record(event: str, /, **fields: object) -> None:
            self.history.append({"at_s": self.clock.monotonic_s(), "node": name, "event": event, **fields})

        return NodeContext(
            name=name, clock=self.clock, network=self.network, rng=random.Random(seed), record=record, log=LOG
        )

    def rows(self, event: str, **fields: object) -> list[dict[str, Any]]:
        """The history's rows of `event` that have these fields, in order."""
        return [
            row
            for row in self.history
            if row["event"] == event and all(row.get(name) == value for name, value in fields.items())
        ]

    async def name_server(self, name: str = "ns-0") -> FakeNameServer:
        server = FakeNameServer(self, name)
        await server.listen()
        return server

    async def broker(self, name: str = "broker-a", broker_id: int = 0) -> FakeBroker:
        server = FakeBroker(self, name, broker_id)
        await server.listen()
        return server


class FakeServer:
    """Answers by `answer(request)`, after `delay_s`. `answers[code]` (a response or a function) goes before that."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.address = world.address()
        self.requests: list[Request] = []
        self.silent = False
        self.delay_s = 0.0
        self.answers: dict[int, Callable[[Request], RemotingCommand | None]] = {}
        self._server = RemotingServer(clock=world.clock, network=world.network, handler=self._handle, log=LOG)

    async def listen(self) -> None:
        self.address = await self._server.listen(self.address)

    def crash(self) -> None:
        """Every connection closes at once and dials are refused."""
        self.world.network.refuse(self.address)

    def revive(self) -> None:
        self.world.network.refused.discard(self.address)

    def close_connections(self) -> None:
        for connection in list(self._server.connections):
            connection.close()

    @property
    def connections(self) -> list[Connection]:
        return list(self._server.connections)

    def asked(self, code: int) -> list[Request]:
        return [request for request in self.requests if request.code == code]

    def answer(self, request: Request) -> RemotingCommand | None:
        raise AssertionError(f"{self.name} was asked {request.code}")

    def _handle(
        self, connection: Connection, command: RemotingCommand
    ) -> RemotingCommand | Awaitable[RemotingCommand | None] | None:
        request = Request(self.world.clock.monotonic_s(), command.code, command, connection)
        self.requests.append(request)
        if self.silent:
            return None
        response = self.answers.get(command.code, self.answer)(request)
        return response if self.delay_s == 0 else self._later(response)

    async def _later(self, response: RemotingCommand | None) -> RemotingCommand | None:
        await self.world.clock.sleep(self.delay_s)
        return response


class FakeNameServer(FakeServer):
    """`routes[topic]` is the answer to a route query; `codes[topic]`, or 17, where there is none."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.routes: dict[str, TopicRouteData] = {}
        self.codes: dict[str, int] = {}

    def route_queries(self, topic: str | None = None) -> list[Request]:
        queries = self.asked(RequestCode.GET_ROUTEINFO_BY_TOPIC)
        return [query for query in queries if topic is None or (query.command.ext_fields or {})["topic"] == topic]

    def answer(self, request: Request) -> RemotingCommand | None:
        assert request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC, request.code
        topic = (request.command.ext_fields or {})["topic"]
        code = self.codes.get(topic)
        if code is None and topic in self.routes:
            return RemotingCommand.response(body=self.routes[topic].encode(standard_json=True))
        return RemotingCommand.response(
            ResponseCode.TOPIC_NOT_EXIST if code is None else code, f"No topic route: {topic}"
        )


@dataclass(frozen=True, slots=True)
class Stored:
    """One message that a FakeBroker took."""

    header: SendMessageRequestHeader
    body: bytes
    offset: int


class FakeBroker(FakeServer):
    """Takes sends, heartbeats (kept in `heartbeats`), 30, 35, 38. The codes in `next_codes` answer the next sends."""

    def __init__(self, world: World, name: str, broker_id: int = 0) -> None:
        super().__init__(world, name)
        self.broker_id = broker_id
        self.stored: list[Stored] = []
        self.next_codes: deque[int] = deque()
        self.heartbeats: list[HeartbeatData] = []
        self.consumer_ids: dict[str, list[str]] = {}

    @property
    def sends(self) -> list[Request]:
        return self.asked(RequestCode.SEND_MESSAGE_V2) + self.asked(RequestCode.SEND_BATCH_MESSAGE)

    def notify_consumer_ids_changed(self, group: str) -> None:
        """40, oneway, to every connected client."""
        header = NotifyConsumerIdsChangedRequestHeader(consumer_group=group)
        for connection in self.connections:
            connection.send(RemotingCommand.request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, header, oneway=True))

    def answer(self, request: Request) -> RemotingCommand | None:
        command = request.command
        if request.code in (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE):
            return self._store(command)
        if request.code == RequestCode.HEART_BEAT:
            self.heartbeats.append(HeartbeatData.decode(command.body))
            return RemotingCommand.response()
        if request.code == RequestCode.UNREGISTER_CLIENT:
            return RemotingCommand.response()
        if request.code == RequestCode.GET_MAX_OFFSET:
            return RemotingCommand.response(header=GetMaxOffsetResponseHeader(offset=0))
        if request.code == RequestCode.GET_CONSUMER_LIST_BY_GROUP:
            group = GetConsumerListByGroupRequestHeader.from_ext_fields(command.ext_fields).consumer_group
            ids = self.consumer_ids.get(group)
            if not ids:
                return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {group}")
            return RemotingCommand.response(
                body=GetConsumerListByGroupResponseBody(consumer_id_list=tuple(ids)).encode()
            )
        raise AssertionError(f"{self.name} was asked {request.code}")

    def _store(self, command: RemotingCommand) -> RemotingCommand:
        code = self.next_codes.popleft() if self.next_codes else ResponseCode.SUCCESS
        stored_codes = (ResponseCode.SUCCESS, ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.FLUSH_SLAVE_TIMEOUT)
        if code not in (*stored_codes, ResponseCode.SLAVE_NOT_AVAILABLE):
            return RemotingCommand.response(code, "as told")
        header = SendMessageRequestHeader.from_v2(command.ext_fields)
        bodies = [item.body for item in decode_batch(command.body)] if header.batch else [command.body]
        first = sum(
            (kept.header.topic, kept.header.queue_id) == (header.topic, header.queue_id) for kept in self.stored
        )
        self.stored += [Stored(header, body, first + index) for index, body in enumerate(bodies)]
        answer = SendMessageResponseHeader(
            msg_id=offset_msg_id(self.address, 1000 + first), queue_id=header.queue_id, queue_offset=first
        )
        return RemotingCommand.response(code, header=answer)


def route(*brokers: FakeBroker, queues: int | Mapping[str, int] = 4, perm: int = 6) -> TopicRouteData:
    """The route of a topic that each of `brokers` holds with `queues` queues; fakes of one name are one broker."""
    addresses: dict[str, dict[int, str]] = {}
    for broker in brokers:
        addresses.setdefault(broker.name, {})[broker.broker_id] = str(broker.address)
    counts = {name: queues if isinstance(queues, int) else queues[name] for name in addresses}
    return TopicRouteData(
        queue_datas=tuple(
            QueueData(broker_name=name, read_queue_nums=count, write_queue_nums=count, perm=perm)
            for name, count in counts.items()
        ),
        broker_datas=tuple(
            BrokerData(cluster="DefaultCluster", broker_name=name, broker_addrs=known)
            for name, known in addresses.items()
        ),
    )
