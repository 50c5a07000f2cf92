"""A world for client tests: virtual time, a network in memory, NameServers and brokers that do as they are told.

    world = World()
    ns = await world.name_server("ns-0")                      # a FakeNameServer, listening
    broker = await world.broker("broker-a")                   # a FakeBroker, listening
    ns.routes["orders"] = route(broker, queues=4)
    await broker.append("orders", 0, b"hello")                # for consumers to pull
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nemesrv.remoting.bodies.client import GetConsumerListByGroupResponseBody, HeartbeatData
from nemesrv.remoting.bodies.route import BrokerData, QueueData, TopicRouteData
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.headers.broker import (
    GetConsumerListByGroupRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetResponseHeader,
    NotifyConsumerIdsChangedRequestHeader,
    PullMessageRequestHeader,
    PullMessageResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    SendMessageRequestHeader,
    SendMessageResponseHeader,
    UnregisterClientRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from nemesrv.remoting.message import StoredMessage
from nemesrv.remoting.message_batch import decode_batch
from nemesrv.remoting.message_id import offset_msg_id
from nemesrv.remoting.node.network import Address, ProtocolFactory
from nemesrv.remoting.node.node import NodeContext
from nemesrv.remoting.transport import Connection, RemotingServer
from tests.virtual import MemoryNetwork, VirtualClock

from .records import stored

LOG = logging.getLogger("tests.clients")
QueueKey = tuple[str, int]


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
        for connection in list(self._server.connections.values()):
            connection.close()

    @property
    def connections(self) -> list[Connection]:
        return list(self._server.connections.values())

    def asked(self, code: int) -> list[Request]:
        return [request for request in self.requests if request.code == code]

    async def answer(self, request: Request) -> RemotingCommand | None:
        raise AssertionError(f"{self.name} was asked {request.code}")

    async def _handle(self, connection: Connection, command: RemotingCommand) -> RemotingCommand | None:
        request = Request(self.world.clock.monotonic_s(), command.code, command, connection)
        self.requests.append(request)
        if self.silent:
            return None
        told = self.answers.get(command.code)
        response = await self.answer(request) if told is None else told(request)
        if self.delay_s:
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

    async def answer(self, request: Request) -> RemotingCommand | None:
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
    """Takes sends and heartbeats, keeps members and offsets, and has the queues that `append` fills; a pull waits as at
    a broker. The codes in `next_codes` answer the next sends."""

    def __init__(self, world: World, name: str, broker_id: int = 0) -> None:
        super().__init__(world, name)
        self.broker_id = broker_id
        self.stored: list[Stored] = []
        self.next_codes: deque[int] = deque()
        self.heartbeats: list[HeartbeatData] = []
        self.members: dict[str, dict[str, Connection]] = {}
        self.queues: dict[QueueKey, list[StoredMessage]] = {}
        self.first_offsets: dict[QueueKey, int] = {}
        self.committed: dict[tuple[str, str, int], int] = {}
        self.suggested_broker_id = 0
        self._arrived = asyncio.Condition()

    @property
    def sends(self) -> list[Request]:
        return self.asked(RequestCode.SEND_MESSAGE_V2) + self.asked(RequestCode.SEND_BATCH_MESSAGE)

    def notify_members(self, group: str) -> None:
        """40, oneway, to every member of the group."""
        header = NotifyConsumerIdsChangedRequestHeader(consumer_group=group)
        for connection in self.members.get(group, {}).values():
            if not connection.closed:
                connection.send(RemotingCommand.request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, header, oneway=True))

    async def append(self, topic: str, queue_id: int = 0, body: bytes = b"hello", **properties: str) -> StoredMessage:
        """Store one message and wake the pulls that wait."""
        message = stored(self.max_offset(topic, queue_id), body, topic=topic, queue_id=queue_id, **properties)
        self.queues.setdefault((topic, queue_id), []).append(message)
        async with self._arrived:
            self._arrived.notify_all()
        return message

    def max_offset(self, topic: str, queue_id: int) -> int:
        key = (topic, queue_id)
        return self.first_offsets.get(key, 0) + len(self.queues.get(key, ()))

    async def answer(self, request: Request) -> RemotingCommand | None:
        command, fields = request.command, request.command.ext_fields
        match request.code:
            case RequestCode.SEND_MESSAGE_V2 | RequestCode.SEND_BATCH_MESSAGE:
                return self._store(command)
            case RequestCode.HEART_BEAT:
                return self._heartbeat(request.connection, HeartbeatData.decode(command.body))
            case RequestCode.UNREGISTER_CLIENT:
                gone = UnregisterClientRequestHeader.from_ext_fields(fields)
                self.members.get(gone.consumer_group or "", {}).pop(gone.client_id, None)
                self.notify_members(gone.consumer_group or "")
                return RemotingCommand.response()
            case RequestCode.CONSUMER_SEND_MSG_BACK:
                return RemotingCommand.response()
            case RequestCode.GET_CONSUMER_LIST_BY_GROUP:
                group = GetConsumerListByGroupRequestHeader.from_ext_fields(fields).consumer_group
                ids = tuple(self.members.get(group, {}))
                if not ids:
                    return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {group}")
                return RemotingCommand.response(body=GetConsumerListByGroupResponseBody(consumer_id_list=ids).encode())
            case RequestCode.QUERY_CONSUMER_OFFSET:
                query = QueryConsumerOffsetRequestHeader.from_ext_fields(fields)
                offset = self.committed.get((query.consumer_group, query.topic, query.queue_id))
                if offset is None:
                    return RemotingCommand.response(ResponseCode.QUERY_NOT_FOUND, "Not found")
                return RemotingCommand.response(header=QueryConsumerOffsetResponseHeader(offset=offset))
            case RequestCode.UPDATE_CONSUMER_OFFSET:
                update = UpdateConsumerOffsetRequestHeader.from_ext_fields(fields)
                self.committed[update.consumer_group, update.topic, update.queue_id] = update.commit_offset
                return RemotingCommand.response()
            case RequestCode.PULL_MESSAGE:
                return await self._pull(PullMessageRequestHeader.from_ext_fields(fields))
        return self._offset(request)

    def _offset(self, request: Request) -> RemotingCommand:
        fields = request.command.ext_fields or {}
        topic, queue_id = fields.get("topic", ""), int(fields.get("queueId", "0"))
        match request.code:
            case RequestCode.GET_MAX_OFFSET:
                header = GetMaxOffsetResponseHeader(offset=self.max_offset(topic, queue_id))
                return RemotingCommand.response(header=header)
            case RequestCode.GET_MIN_OFFSET:
                first = GetMinOffsetResponseHeader(offset=self.first_offsets.get((topic, queue_id), 0))
                return RemotingCommand.response(header=first)
        raise AssertionError(f"{self.name} was asked {request.code}")

    def _heartbeat(self, connection: Connection, heartbeat: HeartbeatData) -> RemotingCommand:
        self.heartbeats.append(heartbeat)
        for consumer in heartbeat.consumer_data_set:
            members = self.members.setdefault(consumer.group_name, {})
            joined = heartbeat.client_id not in members
            members[heartbeat.client_id] = connection
            if joined:
                self.notify_members(consumer.group_name)
        return RemotingCommand.response()

    async def _pull(self, header: PullMessageRequestHeader) -> RemotingCommand:
        key = (header.topic, header.queue_id)
        first, end = self.first_offsets.get(key, 0), self.max_offset(*key)
        if header.sys_flag & 1:
            self.committed[header.consumer_group, header.topic, header.queue_id] = header.commit_offset
        if header.queue_offset == end and header.sys_flag & 2:
            await self._wait_for(key, end, header.suspend_timeout_millis / 1000)
            end = self.max_offset(*key)
        if not first <= header.queue_offset <= end:
            right = first if header.queue_offset < first else end
            return self.pulled(ResponseCode.PULL_OFFSET_MOVED, key, right, [])
        if header.queue_offset == end:
            return self.pulled(ResponseCode.PULL_NOT_FOUND, key, end, [])
        start = header.queue_offset - first
        messages = self.queues[key][start : start + header.max_msg_nums]
        return self.pulled(ResponseCode.SUCCESS, key, header.queue_offset + len(messages), messages)

    async def _wait_for(self, key: QueueKey, end: int, timeout_s: float) -> None:
        try:
            async with self.world.clock.timeout(timeout_s), self._arrived:
                await self._arrived.wait_for(lambda: self.max_offset(*key) > end)
        except TimeoutError:
            pass

    def pulled(self, code: int, key: QueueKey, next_offset: int, messages: list[StoredMessage]) -> RemotingCommand:
        """What it answers to a pull."""
        header = PullMessageResponseHeader(
            suggest_which_broker_id=self.suggested_broker_id,
            next_begin_offset=next_offset,
            min_offset=self.first_offsets.get(key, 0),
            max_offset=self.max_offset(*key),
        )
        body = b"".join(message.encode() for message in messages)
        return RemotingCommand.response(code, header=header, body=body)

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
