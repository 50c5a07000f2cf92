"""Requests of mqadmin that a broker passes on to its consumers: report the state (307), consume one message (309),
continue at another offset (222, passed on as 220), report the offsets (223, passed on as 221).

To reset offsets, a 4.9 broker sends the new offsets to the consumers, which commit them and pull from there. If no
consumer is online, a 4.9 broker refuses the reset with code 206, and mqadmin commits the new offset itself. To reset an
offset, a 5.x broker commits the new offset at once and starts the queue's next pull there. Upstream:
`AdminBrokerProcessor`, `Broker2Client`, `ConsumerOffsetManager.assignResetOffset`.
"""

from collections.abc import Awaitable, Mapping

from ...remoting.bodies.admin import GetConsumerStatusBody, MessageQueueForC, ResetOffsetBody, ResetOffsetBodyForC
from ...remoting.codes import LanguageCode, RequestCode, ResponseCode
from ...remoting.command import RemotingCommand
from ...remoting.errors import RequestTimeout, RocketMQError
from ...remoting.headers.broker import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
    ResetOffsetRequestHeader,
)
from ...remoting.message import MessageQueue
from ...remoting.message_id import parse_offset_msg_id
from ...remoting.transport import Connection
from .client_manager import Client
from .services import Services, refuse

CALL_TIMEOUT_S = 10.0
STATUS_TIMEOUT_S = 5.0


class ConsumerCalls:
    def __init__(self, services: Services) -> None:
        self._services = services

    # Passed on as it came

    def running_info(self, _: Connection, request: RemotingCommand) -> RemotingCommand | Awaitable[RemotingCommand]:
        """Request 307: what a consumer reports about itself."""
        header = GetConsumerRunningInfoRequestHeader.from_ext_fields(request.ext_fields)
        return self._passed_on(request, header.consumer_group, header.client_id, request.ext_fields or {}, b"")

    def consume_directly(self, _: Connection, request: RemotingCommand) -> RemotingCommand | Awaitable[RemotingCommand]:
        """Request 309: the broker asks a consumer to consume one stored message, and passes on the result."""
        header = ConsumeMessageDirectlyResultRequestHeader.from_ext_fields(request.ext_fields)
        offset = parse_offset_msg_id(header.msg_id or "")[1]
        stored = self._services.store.look(offset)
        if stored is None:
            return refuse(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}")
        fields = {**(request.ext_fields or {}), "brokerName": self._services.config.broker_name}
        return self._passed_on(request, header.consumer_group, header.client_id or "", fields, stored.encode())

    def _passed_on(
        self, request: RemotingCommand, group: str, client_id: str, fields: Mapping[str, str], body: bytes
    ) -> RemotingCommand | Awaitable[RemotingCommand]:
        client = self._services.clients.consumer(group, client_id)
        if client is None:
            return refuse(ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{client_id}> not online")
        return self._call(client, group, RemotingCommand.request(request.code, fields, body))

    async def _call(self, client: Client, group: str, command: RemotingCommand) -> RemotingCommand:
        """The broker's answer to mqadmin, made from the client's answer."""
        try:
            answer = await client.channel.invoke(command, timeout_s=CALL_TIMEOUT_S)
        except RequestTimeout as exc:
            return refuse(ResponseCode.CONSUME_MSG_TIMEOUT, f"consumer <{group}> <{client.client_id}> Timeout: {exc}")
        except RocketMQError as exc:
            remark = f"invoke consumer <{group}> <{client.client_id}> Exception: {exc}"
            return refuse(ResponseCode.SYSTEM_ERROR, remark)
        return RemotingCommand.response(answer.code, answer.remark, header=answer.ext_fields, body=answer.body)

    # Offsets

    def reset_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 222: move a group's offsets to a timestamp (-1: to each queue's end). In 5.x the request can instead
        name one queue and its new offset."""
        header = ResetOffsetRequestHeader.from_ext_fields(request.ext_fields)
        services = self._services
        services.context.log.info(
            "[reset-offset] reset offset started by %s. topic=%s, group=%s, timestamp=%d, isForce=%s",
            connection.remote_address,
            header.topic,
            header.group,
            header.timestamp,
            str(header.is_force).lower(),
        )
        if services.config.is_5x:
            return self._reset_here(connection, header)
        return self._reset_by_consumers(request, header)

    def _reset_here(self, connection: Connection, header: ResetOffsetRequestHeader) -> RemotingCommand:
        services = self._services
        topic, group = header.topic, header.group
        config = services.topics.get(topic)
        if services.config.is_slave:
            return refuse(ResponseCode.SYSTEM_ERROR, "Can not reset offset in slave broker")
        if config is None:
            return refuse(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} does not exist")
        if group not in services.groups.table:
            return refuse(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} does not exist")
        offsets: dict[int, int] = {}
        if header.queue_id >= 0 and header.offset is not None and header.offset != -1:
            first, end = (
                find(topic, header.queue_id) for find in (services.store.min_offset, services.store.max_offset)
            )
            if not first <= header.offset <= end + 1:
                remark = f"Target offset {header.offset} not in consume queue range [{first}-{end}]"
                return refuse(ResponseCode.SYSTEM_ERROR, remark)
            offsets[header.queue_id] = header.offset
        else:
            queues = [header.queue_id] if header.queue_id >= 0 else range(config.read_queue_nums)
            offsets = {queue_id: self._offset_at(topic, queue_id, header.timestamp) for queue_id in queues}
        if not offsets:
            return refuse(ResponseCode.SYSTEM_ERROR, "No queues to reset.")
        self._record_reset("here", topic, group, offsets)
        for queue_id, offset in offsets.items():
            services.commit(connection, "reset", group, topic, queue_id, offset)
            services.offsets.reset(group, topic, queue_id, offset)
        table = {services.queue(topic, queue_id): offset for queue_id, offset in offsets.items()}
        return RemotingCommand.response(body=ResetOffsetBody(offset_table=table).encode())

    def _reset_by_consumers(self, request: RemotingCommand, header: ResetOffsetRequestHeader) -> RemotingCommand:
        services = self._services
        topic, group = header.topic, header.group
        config = services.topics.get(topic)
        if config is None:
            remark = f"[reset-offset] reset offset failed, no topic in this broker. topic={topic}"
            return refuse(ResponseCode.SYSTEM_ERROR, remark)
        table: dict[MessageQueue, int] = {}
        for queue_id in range(config.write_queue_nums):
            committed = services.offsets.query(group, topic, queue_id)
            if committed == -1:
                return refuse(ResponseCode.SYSTEM_ERROR, f"THe consumer group <{group}> not exist")
            offset = self._offset_at(topic, queue_id, header.timestamp)
            later = offset >= committed and not header.is_force
            table[services.queue(topic, queue_id)] = committed if later else offset
        consumers = services.clients.consumers.get(group)
        if consumers is None:
            remark = (
                f"Consumer not online, so can not reset offset, Group: {group} Topic: {topic} "
                f"Timestamp: {header.timestamp}"
            )
            return refuse(ResponseCode.CONSUMER_NOT_ONLINE, remark)
        body = ResetOffsetBody(offset_table=table).encode()
        told = body
        if request.language is LanguageCode.CPP:
            queues = tuple(MessageQueueForC(**queue._asdict(), offset=offset) for queue, offset in table.items())
            told = ResetOffsetBodyForC(offset_table=queues).encode()
        fields = {"topic": topic, "group": group, "timestamp": str(header.timestamp), "isForce": "false"}
        self._record_reset("by_consumers", topic, group, {queue.queue_id: offset for queue, offset in table.items()})
        for client in consumers.clients.values():
            command = RemotingCommand.request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, told, oneway=True)
            try:
                client.channel.send(command)
            except RocketMQError as exc:
                services.context.log.error(
                    "[reset-offset] reset offset exception. topic=%s, group=%s ,error=%s", topic, group, exc
                )
        return RemotingCommand.response(body=body)

    def _record_reset(self, f: str, topic: str, group: str, offsets: Mapping[int, int]) -> None:
        services = self._services
        value = {"group": group, "offsets": {str(queue_id): offset for queue_id, offset in offsets.items()}}
        services.context.record("offset_reset", f=f, topic=topic, broker_name=services.config.broker_name, value=value)

    def consumer_status(self, _: Connection, request: RemotingCommand) -> RemotingCommand | Awaitable[RemotingCommand]:
        """Request 223: the offsets at which each client of a group is in a topic's queues."""
        header = GetConsumerStatusRequestHeader.from_ext_fields(request.ext_fields)
        consumers = self._services.clients.consumers.get(header.group)
        if consumers is None:
            remark = f"No Any Consumer online in the consumer group: [{header.group}]"
            return refuse(ResponseCode.SYSTEM_ERROR, remark)
        wanted = (header.client_addr or "").strip()
        clients = [client for client in consumers.clients.values() if wanted in ("", client.client_id)]
        return self._status(clients, header)

    async def _status(self, clients: list[Client], header: GetConsumerStatusRequestHeader) -> RemotingCommand:
        table: dict[str, Mapping[MessageQueue, int]] = {}
        fields = {"topic": header.topic, "group": header.group}
        for client in clients:
            command = RemotingCommand.request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, fields)
            try:
                answer = await client.channel.invoke(command, timeout_s=STATUS_TIMEOUT_S)
                if answer.code == ResponseCode.SUCCESS and answer.body:
                    table[client.client_id] = GetConsumerStatusBody.decode(answer.body).message_queue_table
            except RocketMQError as exc:
                self._services.context.log.error(
                    "[get-consumer-status] get consumer status exception. topic=%s, group=%s, error=%s",
                    header.topic,
                    header.group,
                    exc,
                )
        return RemotingCommand.response(body=GetConsumerStatusBody(consumer_table=table).encode())

    # Small things

    def _offset_at(self, topic: str, queue_id: int, timestamp: int) -> int:
        store = self._services.store
        if timestamp < 0:
            return store.max_offset(topic, queue_id)
        return store.offset_by_time(topic, queue_id, timestamp)
