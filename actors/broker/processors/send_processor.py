"""Stores messages that are sent (10, 310, 320), and messages that a consumer sends back (36). A request's fields are
checked in RocketMQ's order. A broker whose brokerPermission lacks write refuses only sends to ordered topics: its
routes keep producers of other topics away. Upstream: `SendMessageProcessor`, `AbstractSendMessageProcessor`.
"""

from collections.abc import Coroutine
from dataclasses import replace

from ....remoting import message_properties as names
from ....remoting.bodies.client import SubscriptionGroupConfig
from ....remoting.bodies.route import MULTI_TAG, TopicConfig
from ....remoting.codes import PERM_WRITE, V3_4_9, RequestCode, ResponseCode
from ....remoting.command import RemotingCommand
from ....remoting.compression import MULTI_TAGS_FLAG
from ....remoting.errors import RemoteProtocolError
from ....remoting.headers.broker import ConsumerSendMsgBackRequestHeader, SendMessageRequestHeader
from ....remoting.message import StoredMessage
from ....remoting.message_batch import decode_batch
from ....remoting.message_id import UniqIdGenerator, offset_msg_id
from ....remoting.topics import DLQ_GROUP_TOPIC_PREFIX, NOT_ALLOWED_TO_SEND, RETRY_GROUP_TOPIC_PREFIX
from ....remoting.transport import Connection
from ..schedule import parked
from ..services import Refused, Services, refuse
from ..stored import Append, PutMessage, copied
from ..topics import topic_name_error
from ..transactions import Transactions

DLQ_QUEUE_NUMS = 1
_TIMER_PROPERTIES = frozenset({"TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"})


class SendProcessor:
    """Stores what clients send, and answers success only once the message is in the store."""

    def __init__(self, services: Services, transactions: Transactions) -> None:
        self._services = services
        self._transactions = transactions
        self._uniq_ids = UniqIdGenerator(services.store.store_host.host, services.context.rng)
        self._common = {
            names.MSG_REGION: services.config.region_id,
            names.TRACE_ON: str(services.config.trace_on).lower(),
        }
        self._marks = {names.CLUSTER: services.config.cluster_name}
        if services.config.is_5x:
            self._marks |= self._common

    def send(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand | Coroutine[object, object, RemotingCommand]:
        """Store messages (10, 310, 320) and answer with their queue offset and ids. Unless waitStoreMsgOK is false, a
        SYNC_MASTER answers when a slave has the messages, or with an error if no slave has them in time."""
        header = SendMessageRequestHeader.for_code(request.code, request.ext_fields)
        topic = self.checked(connection, request, header)
        queue_id = header.queue_id
        if queue_id < 0:
            queue_id = self._services.context.rng.randrange(topic.write_queue_nums)
        is_batch = request.code == RequestCode.SEND_BATCH_MESSAGE or header.batch
        store = self._send_batch if is_batch else self._send_one
        stored, uniq_key = store(connection, request, header, topic, queue_id)
        acknowledged = self.acknowledge(stored, queue_id, uniq_key)
        if self._services.config.broker_role != "SYNC_MASTER":
            return acknowledged
        if names.parse_properties(header.properties or "").get(names.WAIT, "").lower() == "false":
            return acknowledged
        return self._once_copied(acknowledged, self._services.store.max_physical_offset)

    async def _once_copied(self, acknowledged: RemotingCommand, end: int) -> RemotingCommand:
        code = await self._services.copied(end)
        if code == ResponseCode.SUCCESS:
            return acknowledged
        return RemotingCommand.response(code, header=acknowledged.ext_fields)

    def send_back(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 36: put a message that a consumer could not handle into the group's retry topic, or after the last
        retry (or with a negative delay level) into the group's DLQ."""
        header = ConsumerSendMsgBackRequestHeader.from_ext_fields(request.ext_fields)
        services, group = self._services, header.group
        settings = services.groups.find(group, now_ms=services.now_ms)
        if settings is None:
            return refuse(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group not exist, {group}")
        if not services.config.broker_permission & PERM_WRITE:
            raise self._broker_forbids()
        if settings.retry_queue_nums <= 0:
            return RemotingCommand.response()
        stored = services.store.look(header.offset)
        if stored is None:
            return refuse(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {header.offset}")
        limit = settings.retry_max_times
        if request.version >= V3_4_9 and header.max_reconsume_times is not None:
            limit = header.max_reconsume_times
        dead = stored.reconsume_times >= limit or header.delay_level < 0
        target = self._group_topic(group, settings, dead=dead, unit_mode=header.unit_mode)
        level = 0 if dead else header.delay_level or 3 + stored.reconsume_times
        self._put_back(stored, target, level)
        return RemotingCommand.response()

    # Checks

    def checked(
        self, connection: Connection, request: RemotingCommand, header: SendMessageRequestHeader
    ) -> TopicConfig:
        """Return the message's topic; create the topic if it does not exist. Raises Refused if the topic does not allow
        the send."""
        services = self._services
        name = header.topic
        topic = services.topics.get(name)
        if topic is not None and topic.order and not services.config.broker_permission & PERM_WRITE:
            raise self._broker_forbids()
        if topic is None:
            error = topic_name_error(name)
            if error is not None:
                raise Refused(services.invalid_code, error)
        if name in NOT_ALLOWED_TO_SEND:
            raise Refused(ResponseCode.NO_PERMISSION, f"Sending message to topic[{name}] is forbidden.")
        if topic is None:
            topic = self._create(connection, header)
            if topic is None:
                raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist, apply first please!")
        illegal = header.queue_id >= max(topic.read_queue_nums, topic.write_queue_nums)
        if illegal or (header.queue_id < 0 and topic.write_queue_nums <= 0):
            raise Refused(
                services.invalid_code,
                f"request queueId[{header.queue_id}] is illegal, {topic} Producer: {connection.remote_address}",
            )
        limit = services.config.max_message_size
        if len(request.body) > limit:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, f"msg body of {len(request.body)} B, limit {limit} B")
        length, limit = len(header.properties or ""), names.PROPERTIES_MAX
        if length > limit:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, f"msg properties of {length}, limit {limit} B")
        return topic

    def _create(self, connection: Connection, header: SendMessageRequestHeader) -> TopicConfig | None:
        services, name = self._services, header.topic
        services.context.log.warning("the topic %s not exist, producer: %s", name, connection.remote_address)
        retry = name.startswith(RETRY_GROUP_TOPIC_PREFIX)
        sys_flag = (2 if retry else 1) if header.unit_mode else 0
        created = services.topics.create_by_default(
            name, header.default_topic, header.default_topic_queue_nums, topic_sys_flag=sys_flag, now_ms=services.now_ms
        )
        if created is None and retry:
            created = services.topics.create_for_group(name, 1, topic_sys_flag=sys_flag, now_ms=services.now_ms)
        if created is not None:
            services.context.log.info(
                "Create new topic by default topic:[%s] config:[%s] producer:[%s]",
                header.default_topic,
                created,
                connection.remote_address,
            )
        return created

    def _broker_forbids(self) -> Refused:
        return Refused(ResponseCode.NO_PERMISSION, f"the broker[{self._services.host}] sending message is forbidden")

    # Messages

    def _send_one(
        self,
        connection: Connection,
        request: RemotingCommand,
        header: SendMessageRequestHeader,
        topic: TopicConfig,
        queue_id: int,
    ) -> tuple[Append, str | None]:
        """Store a single message: at once, after its delay, or as half of a transaction; and its uniq key. Raises
        Refused, MessageIllegal, StoreFull."""
        services = self._services
        text = header.properties or ""
        properties = names.parse_properties(text)
        name, delay = topic.topic_name, _level(properties.get(names.DELAY))
        # a retry of clients before 4.6.1 has it still
        transactional = _is_transactional(properties) and not (header.reconsume_times and delay)
        if transactional and services.config.reject_transaction_message:
            remark = f"the broker[{services.host}] sending transaction message is forbidden"
            raise Refused(ResponseCode.NO_PERMISSION, remark)
        if name.startswith(RETRY_GROUP_TOPIC_PREFIX):
            dead = self._retry_is_dead(request, header)
            if dead is not None:
                name, queue_id, delay = dead.topic_name, 0, 0
                properties[names.DELAY] = "-1"
                text = names.format_properties(properties)
        if services.config.is_5x:
            if not _TIMER_PROPERTIES.isdisjoint(properties):
                raise Refused(ResponseCode.MESSAGE_ILLEGAL, "timer messages are not supported by this broker")
            if names.UNIQ_KEY not in properties:
                properties[names.UNIQ_KEY] = self._uniq_ids.next_id(services.now_ms)
                text = names.append_property(text, names.UNIQ_KEY, properties[names.UNIQ_KEY])
        elif names.WAIT in properties:
            # 4.9 saves these bytes in what it stores, though not in what it parks for a delay
            text = names.format_properties({name: value for name, value in properties.items() if name != names.WAIT})
        text = self._marked(text, properties)
        message = PutMessage(
            topic=name,
            queue_id=queue_id,
            body=request.body,
            properties=text.encode(),
            tags_code=names.tags_code(properties.get(names.TAGS)),
            born_timestamp=header.born_timestamp,
            born_host=connection.remote_address,
            flag=header.flag,
            sys_flag=header.sys_flag | (MULTI_TAGS_FLAG if topic.topic_filter_type == MULTI_TAG else 0),
            reconsume_times=header.reconsume_times or 0,
        )
        if transactional:
            return self._transactions.prepare(message, properties), properties.get(names.UNIQ_KEY)
        if delay > 0:
            levels = services.config.delay_levels_ms
            message = parked(message, properties, delay, levels, now_ms=services.now_ms)
        return services.put([message]), properties.get(names.UNIQ_KEY)

    def _marked(self, text: str, properties: dict[str, str]) -> str:
        """The properties as text, with this broker's additions, which `properties` gets, too."""
        for name, value in self._marks.items():
            if name not in properties:
                properties[name] = value
                text = names.append_property(text, name, value)
        return text

    def _retry_is_dead(self, request: RemotingCommand, header: SendMessageRequestHeader) -> TopicConfig | None:
        """The dead-letter topic, where a retry that came as an ordinary send has used up its tries; else None. Raises
        Refused."""
        services, group = self._services, header.topic[len(RETRY_GROUP_TOPIC_PREFIX) :]
        settings = services.groups.find(group, now_ms=services.now_ms)
        if settings is None:
            raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group not exist, {group}")
        limit = settings.retry_max_times
        if request.version >= V3_4_9 and header.max_reconsume_times is not None:
            limit = header.max_reconsume_times
        times = header.reconsume_times or 0
        if times < limit or (times == limit and services.config.is_5x):
            return None
        try:
            return self._group_topic(group, settings, dead=True, unit_mode=False)
        except Refused as exc:
            raise Refused(ResponseCode.SYSTEM_ERROR, str(exc)) from exc

    def _send_batch(
        self,
        connection: Connection,
        request: RemotingCommand,
        header: SendMessageRequestHeader,
        topic: TopicConfig,
        queue_id: int,
    ) -> tuple[Append, str | None]:
        """Store a batch as consecutive messages, all or none. Raises Refused, MessageIllegal, StoreFull."""
        if topic.topic_name.startswith(RETRY_GROUP_TOPIC_PREFIX):
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, "batch request does not support retry group")
        try:
            items = decode_batch(request.body)
        except RemoteProtocolError as exc:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, str(exc)) from exc
        if not items:
            raise Refused(ResponseCode.MESSAGE_ILLEGAL, "the batch is empty")
        messages, keys = [], []
        for item in items:
            properties = names.parse_properties(item.properties.decode(errors="replace"))
            if _level(properties.get(names.DELAY)) > 0 or _is_transactional(properties):
                raise Refused(ResponseCode.MESSAGE_ILLEGAL, "a batch cannot hold delayed or transactional messages")
            keys.append(properties.get(names.UNIQ_KEY, ""))
            messages.append(
                PutMessage(
                    topic=topic.topic_name,
                    queue_id=queue_id,
                    body=item.body,
                    properties=self._marked(item.properties.decode(errors="surrogateescape"), properties).encode(
                        errors="surrogateescape"
                    ),
                    tags_code=names.tags_code(properties.get(names.TAGS)),
                    born_timestamp=header.born_timestamp,
                    born_host=connection.remote_address,
                    flag=item.flag,
                    sys_flag=header.sys_flag,
                    reconsume_times=header.reconsume_times or 0,
                )
            )
        return self._services.put(messages), ",".join(filter(None, keys)) or None

    def _group_topic(
        self, group: str, settings: SubscriptionGroupConfig, *, dead: bool, unit_mode: bool
    ) -> TopicConfig:
        """The group's retry or dead-letter topic, created if need be. Raises Refused."""
        name = (DLQ_GROUP_TOPIC_PREFIX if dead else RETRY_GROUP_TOPIC_PREFIX) + group
        nums = DLQ_QUEUE_NUMS if dead else settings.retry_queue_nums
        topic = self._services.topics.create_for_group(
            name, nums, topic_sys_flag=2 if unit_mode and not dead else 0, now_ms=self._services.now_ms
        )
        if topic is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"topic[{name}] not exist")
        if not topic.perm & PERM_WRITE:
            raise Refused(ResponseCode.NO_PERMISSION, f"the topic[{name}] sending message is forbidden")
        return topic

    def _put_back(self, stored: StoredMessage, target: TopicConfig, level: int) -> None:
        services = self._services
        properties = stored.properties
        properties.setdefault(names.RETRY_TOPIC, stored.topic)
        properties.setdefault(names.ORIGIN_MESSAGE_ID, stored.offset_msg_id)
        properties[names.WAIT] = "false"
        properties.pop(names.DELAY, None)
        if level:
            properties[names.DELAY] = str(level)
        queue_id = services.context.rng.randrange(max(1, target.write_queue_nums))
        message = copied(stored, target.topic_name, queue_id, properties)
        message = replace(message, reconsume_times=stored.reconsume_times + 1)
        if level:
            message = parked(message, properties, level, services.config.delay_levels_ms, now_ms=services.now_ms)
        services.put([message])

    def acknowledge(self, stored: Append | None, queue_id: int, uniq_key: str | None) -> RemotingCommand:
        """Return the successful answer to a send; if `stored` is None, the answer has message id and offset 0."""
        host = self._services.store.store_host
        offsets = () if stored is None else stored.physical_offsets
        fields = {
            "msgId": ",".join(offset_msg_id(host, offset) for offset in offsets) or "0",
            "queueId": str(queue_id),
            "queueOffset": "0" if stored is None else str(stored.queue_offset),
            **self._common,
        }
        if uniq_key is not None and self._services.config.is_5x:
            fields["transactionId"] = uniq_key
        return RemotingCommand.response(header=fields)


def _is_transactional(properties: dict[str, str]) -> bool:
    return properties.get(names.TRANSACTION_PREPARED, "").lower() == "true"


def _level(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0
