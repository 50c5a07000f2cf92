"""Request-reply: the broker stores a reply (324, 325), and pushes it (326) to the client that sent the request, on that
client's channel.

    requester --send--> broker --pull--> replier --325--> broker --326--> requester
                                                              └ answers 325 when the requester has answered 326

The broker finds the requester by the client id in producers' heartbeats. Upstream: `ReplyMessageProcessor`.
"""

from collections.abc import Awaitable

from ....remoting import message_properties as names
from ....remoting.bodies.route import TopicConfig
from ....remoting.codes import RequestCode, ResponseCode
from ....remoting.command import RemotingCommand
from ....remoting.errors import RocketMQError
from ....remoting.headers.broker import GivenBySender, ReplyMessageRequestHeader, SendMessageRequestHeader
from ....remoting.headers.fields import plan
from ....remoting.transport import Connection
from ..services import Services
from ..stored import Append, MessageIllegal, PutMessage, StoreFull
from .send_processor import SendProcessor

PUSH_TIMEOUT_S = 10.0


class ReplyProcessor:
    def __init__(self, services: Services, send: SendProcessor) -> None:
        self._services = services
        self._send = send

    def reply(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | Awaitable[RemotingCommand]:
        """Answer a reply (324, 325) with code 0 if the requesting client has received the reply, 1 if not. The reply is
        stored in both cases, unless storeReplyMessageEnable is false."""
        header = SendMessageRequestHeader.for_code(request.code, request.ext_fields)
        topic = self._send.checked(connection, request, header)
        return self._pushed(connection, request, header, topic)

    async def _pushed(
        self, connection: Connection, request: RemotingCommand, header: SendMessageRequestHeader, topic: TopicConfig
    ) -> RemotingCommand:
        failure = await self._push(connection, request, header)
        queue_id = header.queue_id
        if queue_id < 0:
            queue_id = self._services.context.rng.randrange(topic.write_queue_nums)
        stored = self._store(connection, request, header, queue_id)
        response = self._send.acknowledge(stored, queue_id, None)
        if failure is not None:
            response.code, response.remark = ResponseCode.SYSTEM_ERROR, failure
        return response

    async def _push(
        self, connection: Connection, request: RemotingCommand, header: SendMessageRequestHeader
    ) -> str | None:
        services = self._services
        properties = names.parse_properties(header.properties)
        client_id = properties.get(names.REPLY_TO_CLIENT)
        if client_id is None:
            return f"reply message properties[{names.REPLY_TO_CLIENT}] is null"
        channel = services.clients.producer_channel(client_id)
        if channel is None:
            return f"push reply message fail, channel of <{client_id}> not found."
        properties[names.PUSH_REPLY_TIME] = str(services.now_ms)
        given = {field.name: getattr(header, field.name) for field in plan(GivenBySender)}
        given["properties"] = names.format_properties(properties)
        pushed = ReplyMessageRequestHeader(
            **given,
            born_host=str(connection.remote_address),
            store_host=str(services.store.store_host),
            store_timestamp=services.now_ms,
        )
        command = RemotingCommand.request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, pushed, request.body)
        try:
            answer = await channel.invoke(command, timeout_s=PUSH_TIMEOUT_S)
        except RocketMQError as exc:
            reason = str(exc)
        else:
            if answer.code == ResponseCode.SUCCESS:
                return None
            reason = f"CODE: {answer.code}  DESC: {answer.remark}"
        services.context.log.warning("push reply message to <%s> fail. %s", client_id, reason)
        return f"push reply message to {client_id} fail."

    def _store(
        self, connection: Connection, request: RemotingCommand, header: SendMessageRequestHeader, queue_id: int
    ) -> Append | None:
        """Store the reply in its topic. If storing fails, the failure is logged, and the reply counts as delivered."""
        services = self._services
        if not services.config.store_reply_message_enable:
            return None
        text = header.properties or ""
        message = PutMessage(
            topic=header.topic,
            queue_id=queue_id,
            body=request.body,
            properties=text.encode(),
            tags_code=names.tags_code(names.parse_properties(text).get(names.TAGS)),
            born_timestamp=header.born_timestamp,
            born_host=connection.remote_address,
            flag=header.flag,
            reconsume_times=header.reconsume_times or 0,
        )
        try:
            return services.put([message])
        except (MessageIllegal, StoreFull) as exc:
            services.context.log.warning("a reply is not stored: %s", exc)
            return None
