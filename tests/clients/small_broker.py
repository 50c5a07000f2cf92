"""A broker and NameServer in one, for tests of consumers and of the admin client: just enough, all in memory.

It knows the queues it is given, holds pulls as a broker does, keeps offsets and members, and logs what it was asked.
`answers[code]` replaces what it says to a request.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from nemesrv.remoting.bodies.client import GetConsumerListByGroupResponseBody, HeartbeatData
from nemesrv.remoting.bodies.route import BrokerData, QueueData, TopicRouteData
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.headers.broker import (
    ConsumerSendMsgBackRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetResponseHeader,
    NotifyConsumerIdsChangedRequestHeader,
    PullMessageRequestHeader,
    PullMessageResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    SearchOffsetResponseHeader,
    SendMessageRequestHeader,
    SendMessageResponseHeader,
    UnregisterClientRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from nemesrv.remoting.headers.namesrv import GetRouteInfoRequestHeader
from nemesrv.remoting.message import StoredMessage
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.transport import Connection, RemotingServer
from tests.virtual import MemoryNetwork, VirtualClock

from .records import stored

Answer = Callable[[RemotingCommand], RemotingCommand]
QueueKey = tuple[str, int]


class SmallBroker:
    """`topics`: topic to number of queues; all are routed to this broker, under the name it is given."""

    def __init__(self, network: MemoryNetwork, topics: dict[str, int], *, name: str = "broker-a", port: int = 10911):
        self.name, self.address = name, Address("10.0.0.1", port)
        self.topics = dict(topics)
        self.queues: dict[QueueKey, list[StoredMessage]] = {}
        self.first_offsets: dict[QueueKey, int] = {}
        self.committed: dict[tuple[str, str, int], int] = {}
        self.members: dict[str, dict[str, Connection]] = {}
        self.heartbeats: list[HeartbeatData] = []
        self.requests: list[RemotingCommand] = []
        self.answers: dict[int, Answer] = {}
        self.other_brokers: list[SmallBroker] = []
        self.slaves: dict[int, SmallBroker] = {}
        self.suggested_broker_id = 0
        self._arrived = asyncio.Condition()
        self.clock = VirtualClock()
        self.server = RemotingServer(
            clock=self.clock, network=network, handler=self._handle, log=logging.getLogger("fake")
        )

    async def listen(self) -> Address:
        return await self.server.listen(self.address)

    def asked(self, code: RequestCode) -> list[RemotingCommand]:
        """Every request of that code so far."""
        return [request for request in self.requests if request.code == code]

    async def append(self, topic: str, queue_id: int = 0, body: bytes = b"hello", **properties: str) -> StoredMessage:
        """Store one message and wake the pulls that wait."""
        queue = self.queues.setdefault((topic, queue_id), [])
        offset = self.first_offsets.get((topic, queue_id), 0) + len(queue)
        queue.append(stored(offset, body, topic=topic, queue_id=queue_id, **properties))
        async with self._arrived:
            self._arrived.notify_all()
        return queue[-1]

    def max_offset(self, topic: str, queue_id: int) -> int:
        key = (topic, queue_id)
        return self.first_offsets.get(key, 0) + len(self.queues.get(key, ()))

    def notify_members(self, group: str) -> None:
        """Oneway 40 to every member."""
        header = NotifyConsumerIdsChangedRequestHeader(consumer_group=group)
        for connection in self.members.get(group, {}).values():
            if not connection.closed:
                connection.send(RemotingCommand.request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, header, oneway=True))

    @property
    def addresses(self) -> dict[int, str]:
        return {0: str(self.address), **{broker_id: str(slave.address) for broker_id, slave in self.slaves.items()}}

    def route(self, topic: str) -> TopicRouteData | None:
        brokers = [broker for broker in (self, *self.other_brokers) if topic in broker.topics]
        if not brokers:
            return None
        return TopicRouteData(
            queue_datas=tuple(
                QueueData(broker_name=b.name, read_queue_nums=n, write_queue_nums=n, perm=6)
                for b in brokers
                for n in [b.topics[topic]]
            ),
            broker_datas=tuple(
                BrokerData(cluster="DefaultCluster", broker_name=b.name, broker_addrs=b.addresses) for b in brokers
            ),
        )

    async def _handle(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        self.requests.append(replace(request))
        if request.code in self.answers:
            return self.answers[request.code](request)
        fields = request.ext_fields
        match request.code:
            case RequestCode.GET_ROUTEINFO_BY_TOPIC:
                topic = GetRouteInfoRequestHeader.from_ext_fields(fields).topic
                route = self.route(topic)
                if route is None:
                    return RemotingCommand.response(ResponseCode.TOPIC_NOT_EXIST, f"no route of {topic}")
                return RemotingCommand.response(body=route.encode())
            case RequestCode.HEART_BEAT:
                return self._heartbeat(connection, HeartbeatData.decode(request.body))
            case RequestCode.UNREGISTER_CLIENT:
                gone = UnregisterClientRequestHeader.from_ext_fields(fields)
                self.members.get(gone.consumer_group or "", {}).pop(gone.client_id, None)
                self.notify_members(gone.consumer_group or "")
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
            case RequestCode.CONSUMER_SEND_MSG_BACK:
                ConsumerSendMsgBackRequestHeader.from_ext_fields(fields)
                return RemotingCommand.response()
            case RequestCode.SEND_MESSAGE_V2:
                return await self._send(SendMessageRequestHeader.from_v2(fields), request.body)
        return self._offset(request)

    def _offset(self, request: RemotingCommand) -> RemotingCommand:
        fields = request.ext_fields or {}
        topic, queue_id = fields.get("topic", ""), int(fields.get("queueId", "0"))
        match request.code:
            case RequestCode.GET_MAX_OFFSET:
                header = GetMaxOffsetResponseHeader(offset=self.max_offset(topic, queue_id))
                return RemotingCommand.response(header=header)
            case RequestCode.GET_MIN_OFFSET:
                first = GetMinOffsetResponseHeader(offset=self.first_offsets.get((topic, queue_id), 0))
                return RemotingCommand.response(header=first)
            case RequestCode.SEARCH_OFFSET_BY_TIMESTAMP:
                return RemotingCommand.response(header=SearchOffsetResponseHeader(offset=2))
        return RemotingCommand.response(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f"code {request.code}")

    def _heartbeat(self, connection: Connection, heartbeat: HeartbeatData) -> RemotingCommand:
        self.heartbeats.append(heartbeat)
        for consumer in heartbeat.consumer_data_set:
            members = self.members.setdefault(consumer.group_name, {})
            joined = heartbeat.client_id not in members
            members[heartbeat.client_id] = connection
            if joined:
                self.notify_members(consumer.group_name)
        return RemotingCommand.response()

    async def _send(self, header: SendMessageRequestHeader, body: bytes) -> RemotingCommand:
        message = await self.append(header.topic, header.queue_id, body)
        return RemotingCommand.response(
            header=SendMessageResponseHeader(
                msg_id=message.offset_msg_id, queue_id=header.queue_id, queue_offset=message.queue_offset
            )
        )

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
            return self._pulled(ResponseCode.PULL_OFFSET_MOVED, key, right, [])
        if header.queue_offset == end:
            return self._pulled(ResponseCode.PULL_NOT_FOUND, key, end, [])
        start = header.queue_offset - first
        messages = self.queues[key][start : start + header.max_msg_nums]
        return self._pulled(ResponseCode.SUCCESS, key, header.queue_offset + len(messages), messages)

    async def _wait_for(self, key: QueueKey, end: int, timeout_s: float) -> None:
        try:
            async with self.clock.timeout(timeout_s), self._arrived:
                await self._arrived.wait_for(lambda: self.max_offset(*key) > end)
        except TimeoutError:
            pass

    def _pulled(self, code: int, key: QueueKey, next_offset: int, messages: list[StoredMessage]) -> RemotingCommand:
        header = PullMessageResponseHeader(
            suggest_which_broker_id=self.suggested_broker_id,
            next_begin_offset=next_offset,
            min_offset=self.first_offsets.get(key, 0),
            max_offset=self.max_offset(*key),
        )
        body = b"".join(message.encode() for message in messages)
        return RemotingCommand.response(code, header=header, body=body)
