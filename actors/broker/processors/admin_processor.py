"""What mqadmin asks of a broker: topics (17, 18, 21, 215, 351), groups (200, 201, 207, 225), connections (203, 204),
statistics (202, 208, 300), configuration (25, 26), runtime information (28), whole tables (43, 45).

More requests of mqadmin: consume queues (321), store times (303), every group's progress (317), all producers (328),
system topics (305), unused data (306, 316, 329), half messages that were given up (323). Requests 306 and 329 do
nothing on this broker, because its consume queues are rebuilt at each start and its messages do not expire. Request 908
does nothing, because a slave has no second copy of the master's metadata.

Upstream: `AdminBrokerProcessor`; keys of the runtime table: codes.md section 5.
"""

import os
from collections.abc import Awaitable, Callable, Sequence

from ....remoting.bodies import client as bodies
from ....remoting.bodies.admin import (
    ConsumeQueueData,
    ConsumeStatsList,
    CreateTopicListRequestBody,
    ProducerInfo,
    ProducerTableInfo,
    QueryConsumeQueueResponseBody,
    QueryConsumeTimeSpanBody,
    QueueTimeSpan,
    SubscriptionGroupList,
)
from ....remoting.bodies.route import KVTable, TopicConfig, TopicList
from ....remoting.codes import ResponseCode
from ....remoting.command import RemotingCommand
from ....remoting.headers import broker as headers
from ....remoting.message import MessageQueue
from ....remoting.message_id import parse_offset_msg_id
from ....remoting.node.profile import Profile
from ....remoting.properties import format_properties, parse_properties
from ....remoting.transport import Connection
from ...errors import ConfigError
from ..client_manager import Client
from ..config import BrokerConfig
from ..groups import is_group_name
from ..services import Services, refuse
from ..topics import topic_name_error
from ..transactions import Transactions

MAX_QUEUE_NUMS = 65_536
MAX_ENTRIES = 1024
"""The most entries of a consume queue in one answer."""
_VERSIONS = {Profile.V4_9: "V4_9_8", Profile.V5_X: "V5_3_3"}
_OF_THE_MASTER = "Can't modify topic or subscription group from slave broker, please execute it from master broker."
_PERMS = frozenset(range(8))
_NOT_CHANGEABLE = frozenset(
    {"brokerName", "brokerClusterName", "brokerId", "brokerRole", "listenPort", "storePathRootDir"}
)
_ROLE = frozenset({"brokerId", "brokerRole"})
"""Roles between which a running broker may change: a slave becomes master, or a master slave."""


class AdminProcessor:
    """Answers mqadmin. `reconfigured(old)` is called after the configuration has changed; `told` waits until
    NameServers have what has changed; `started_ms` is when the broker started."""

    def __init__(
        self,
        services: Services,
        *,
        reconfigured: Callable[[BrokerConfig], None],
        told: Callable[[], Awaitable[None]],
        started_ms: int,
        delay_offsets: Callable[[], bytes],
        transactions: Transactions,
    ) -> None:
        self._services, self._transactions = services, transactions
        self._delay_offsets = delay_offsets
        self._reconfigured, self._told = reconfigured, told
        self._started_ms = started_ms

    # Topics

    async def create_topic(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 17: create a topic, or change its settings."""
        header = headers.CreateTopicRequestHeader.from_ext_fields(request.ext_fields)
        services = self._services
        if services.config.is_slave:
            return refuse(ResponseCode.SYSTEM_ERROR, _OF_THE_MASTER)
        topic = TopicConfig(
            topic_name=header.topic,
            read_queue_nums=header.read_queue_nums,
            write_queue_nums=header.write_queue_nums,
            perm=header.perm,
            topic_filter_type=header.topic_filter_type,
            topic_sys_flag=header.topic_sys_flag or 0,
            order=header.order,
        )
        return await self._put_topics(connection, (topic,))

    async def create_topics(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 18: create several topics, or none if one of them is invalid."""
        if self._services.config.is_slave:
            return refuse(ResponseCode.SYSTEM_ERROR, _OF_THE_MASTER)
        return await self._put_topics(connection, CreateTopicListRequestBody.decode(request.body).topic_config_list)

    async def _put_topics(self, connection: Connection, topics: Sequence[TopicConfig]) -> RemotingCommand:
        """Create or replace the topics. NameServers have the topics before the sender has the answer
        (`registerIncrementBrokerData`)."""
        services = self._services
        error = next(filter(None, map(self._topic_error, topics)), None)
        if error is not None:
            return services.invalid(error)
        for topic in topics:
            services.topics.put(topic, now_ms=services.now_ms)
            services.context.log.info("updateAndCreateTopic called by %s: %s", connection.remote_address, topic)
        await self._told()
        return RemotingCommand.response()

    def _topic_error(self, topic: TopicConfig) -> str | None:
        nums = (topic.read_queue_nums, topic.write_queue_nums)
        if error := topic_name_error(topic.topic_name):
            return error
        if self._services.topics.is_system(topic.topic_name):
            return f"The topic[{topic.topic_name}] is conflict with system topic."
        if not all(0 <= num <= MAX_QUEUE_NUMS for num in nums):
            return f"queue numbers {nums} are not 0 to {MAX_QUEUE_NUMS}"
        return None if topic.perm in _PERMS else f"perm {topic.perm} is not 0 to 7"

    def delete_topic(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 215: delete the topic and its messages, in 5.x its consumer offsets; mqadmin tells the NameServers
        (216)."""
        topic = headers.DeleteTopicRequestHeader.from_ext_fields(request.ext_fields).topic
        services = self._services
        if services.config.is_slave:
            return refuse(ResponseCode.SYSTEM_ERROR, _OF_THE_MASTER)
        if not topic.strip() or services.topics.is_system(topic):
            return services.invalid(f"The topic[{topic}] is blank or a system topic.")
        services.context.log.info("deleteTopic called by %s: %s", connection.remote_address, topic)
        services.store.delete_topic(topic)
        services.topics.delete(topic, now_ms=services.now_ms)
        if services.config.is_5x:
            services.offsets.forget_topic(topic)
        return RemotingCommand.response()

    def all_topics(self, _: Connection, __: RemotingCommand) -> RemotingCommand:
        """Request 21: all topics."""
        return RemotingCommand.response(body=self._services.topics.encode())

    def topic_config(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 351: one topic's settings."""
        name = headers.GetTopicConfigRequestHeader.from_ext_fields(request.ext_fields).topic
        topic = self._services.topics.get(name)
        if topic is None:
            return refuse(ResponseCode.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {name}")
        return RemotingCommand.response(body=topic.encode())

    def topic_stats(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 202: each queue's first and end offset, and when the queue's last message was stored (0 if the queue
        is empty)."""
        name = headers.GetTopicStatsInfoRequestHeader.from_ext_fields(request.ext_fields).topic
        topic = self._services.topics.get(name)
        if topic is None:
            return refuse(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
        store, queues = self._services.store, topic.write_queue_nums
        if self._services.config.is_5x:
            queues = max(topic.read_queue_nums, queues)
        table = {}
        for queue_id in range(queues):
            newest = store.max_offset(name, queue_id)
            table[self._services.queue(name, queue_id)] = bodies.TopicOffset(
                min_offset=store.min_offset(name, queue_id),
                max_offset=newest,
                last_update_timestamp=max(0, store.store_time(name, queue_id, newest - 1)),
            )
        return RemotingCommand.response(body=bodies.TopicStatsTable(offset_table=table).encode())

    # Groups and clients

    def update_group(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 200: create or change one consumer group."""
        if self._services.config.is_slave:
            return refuse(ResponseCode.SYSTEM_ERROR, _OF_THE_MASTER)
        return self._put_groups((bodies.SubscriptionGroupConfig.decode(request.body),))

    def update_groups(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 225: create or change several groups, or none if one of them is invalid."""
        if self._services.config.is_slave:
            return refuse(ResponseCode.SYSTEM_ERROR, _OF_THE_MASTER)
        return self._put_groups(SubscriptionGroupList.decode(request.body).group_config_list)

    def _put_groups(self, groups: Sequence[bodies.SubscriptionGroupConfig]) -> RemotingCommand:
        for group in groups:
            if not is_group_name(group.group_name):
                return self._services.invalid(f"The specified group {group.group_name[:130]!r} is not a group's name")
            if not 0 <= group.retry_queue_nums <= MAX_QUEUE_NUMS:
                return self._services.invalid(f"retryQueueNums {group.retry_queue_nums} is not 0 to {MAX_QUEUE_NUMS}")
        for group in groups:
            self._services.groups.put(group, now_ms=self._services.now_ms)
        return RemotingCommand.response()

    def all_groups(self, _: Connection, __: RemotingCommand) -> RemotingCommand:
        """Request 201: all consumer groups."""
        return RemotingCommand.response(body=self._services.groups.encode())

    def delete_group(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 207: delete a consumer group, and its offsets if `cleanOffset` is true."""
        if self._services.config.is_slave:
            return refuse(ResponseCode.SYSTEM_ERROR, _OF_THE_MASTER)
        header = headers.DeleteSubscriptionGroupRequestHeader.from_ext_fields(request.ext_fields)
        self._services.groups.delete(header.group_name, now_ms=self._services.now_ms)
        if header.clean_offset:
            self._services.offsets.forget_group(header.group_name)
        return RemotingCommand.response()

    def consumer_connections(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 203: the connected consumers of a group."""
        name = headers.GetConsumerConnectionListRequestHeader.from_ext_fields(request.ext_fields).consumer_group
        group = self._services.clients.consumers.get(name)
        if group is None:
            return refuse(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online")
        body = bodies.ConsumerConnection(
            connection_set=tuple(map(_connection, group.clients.values())),
            subscription_table=dict(group.subscriptions),
            consume_type=group.consume_type,
            message_model=group.message_model,
            consume_from_where=group.consume_from_where,
        )
        return RemotingCommand.response(body=body.encode())

    def producer_connections(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 204: the connected producers of a group."""
        name = headers.GetProducerConnectionListRequestHeader.from_ext_fields(request.ext_fields).producer_group
        clients = self._services.clients.producers.get(name)
        if clients is None:
            return refuse(ResponseCode.SYSTEM_ERROR, f"the producer group[{name}] not exist")
        body = bodies.ProducerConnection(connection_set=tuple(map(_connection, clients.values())))
        return RemotingCommand.response(body=body.encode())

    def consume_stats(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 208: for each queue of the group's topics, the broker's newest offset and the group's committed
        offset."""
        header = headers.GetConsumeStatsRequestHeader.from_ext_fields(request.ext_fields)
        services, group, table = self._services, header.consumer_group, dict[MessageQueue, bodies.OffsetWrapper]()
        for name in (header.topic,) if header.topic else services.offsets.topics_of(group):
            topic = services.topics.get(name)
            table |= self._offsets(group, name, 0 if topic is None else topic.read_queue_nums)
        return RemotingCommand.response(body=bodies.ConsumeStats(offset_table=table).encode())

    def _offsets(self, group: str, topic: str, queues: int) -> dict[MessageQueue, bodies.OffsetWrapper]:
        services, store, table = self._services, self._services.store, {}
        for queue_id in range(queues):
            committed = max(0, services.offsets.query(group, topic, queue_id))
            pulled = max(committed, services.offsets.query_pulled(group, topic, queue_id))
            table[services.queue(topic, queue_id)] = bodies.OffsetWrapper(
                broker_offset=store.max_offset(topic, queue_id),
                consumer_offset=committed,
                pull_offset=pulled if services.config.is_5x else None,
                last_timestamp=max(0, store.store_time(topic, queue_id, committed - 1)),
            )
        return table

    def topic_groups(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 300: the groups that consume the topic now, or have consumed it."""
        topic = headers.QueryTopicConsumeByWhoRequestHeader.from_ext_fields(request.ext_fields).topic
        groups = set(self._services.offsets.groups_of(topic))
        groups |= {name for name, group in self._services.clients.consumers.items() if topic in group.subscriptions}
        return RemotingCommand.response(body=bodies.GroupList(group_list=tuple(sorted(groups))).encode())

    def all_delay_offsets(self, _: Connection, __: RemotingCommand) -> RemotingCommand:
        """Request 45: how far each delay level has been delivered."""
        return RemotingCommand.response(body=self._delay_offsets())

    def all_consumer_offsets(self, _: Connection, __: RemotingCommand) -> RemotingCommand:
        """Request 43: all committed offsets."""
        return RemotingCommand.response(body=self._services.offsets.encode())

    # The broker

    def update_config(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 25: change the configuration of the running broker. A change of the broker's name, cluster, port or
        store path is refused."""
        try:
            changes = parse_properties(request.body)
            kept = sorted((_NOT_CHANGEABLE - (_ROLE if changes.keys() >= _ROLE else frozenset())) & changes.keys())
            if kept:
                return self._services.invalid(f"{', '.join(kept)} cannot be changed while the broker runs")
            config = self._services.config.updated(changes, source="request")
        except (ConfigError, ValueError) as exc:
            return self._services.invalid(str(exc))
        self._services.context.log.info("updateBrokerConfig, new config: %s client: %s", changes, connection)
        old, self._services.config = self._services.config, config
        self._reconfigured(old)
        return RemotingCommand.response()

    def get_config(self, _: Connection, __: RemotingCommand) -> RemotingCommand:
        """Request 26: the broker's configuration."""
        body = format_properties(self._services.config.to_properties()).encode()
        version = self._services.topics.data_version
        header = headers.GetBrokerConfigResponseHeader(version=version.encode().decode())
        return RemotingCommand.response(header=header, body=body)

    def runtime_info(self, _: Connection, __: RemotingCommand) -> RemotingCommand:
        """Request 28: the broker's figures for clusterList and brokerStatus. Totals count from the start of the broker
        process."""
        services, store = self._services, self._services.store
        up_s = max(1.0, (services.now_ms - self._started_ms) / 1000)
        puts, gets = store.stored_messages, services.transferred_messages
        table = {
            "brokerVersionDesc": _VERSIONS[services.config.profile],
            "brokerVersion": str(services.config.profile.version),
            "brokerActive": "true",
            "bootTimestamp": str(self._started_ms),
            "putTps": " ".join([f"{puts / up_s:.4f}"] * 3),
            "getTransferredTps": " ".join([f"{gets / up_s:.4f}"] * 3),
            "getTransferedTps": " ".join([f"{gets / up_s:.4f}"] * 3),  # as 4.9 spells it
            "sendThreadPoolQueueSize": "0",
            "pullThreadPoolQueueSize": str(len(services.holds)),
            "sendThreadPoolQueueHeadWaitTimeMills": "0",
            "pullThreadPoolQueueHeadWaitTimeMills": "0",
            "ackThreadPoolQueueSize": "0",  # 5.x; and all that clusterList misses, it shows as N
            "ackThreadPoolQueueHeadWaitTimeMills": "0",
            "pageCacheLockTimeMills": "0",
            "earliestMessageTimeStamp": str(store.earliest_store_time()),
            "commitLogMinOffset": str(store.min_physical_offset),
            "commitLogMaxOffset": str(store.max_physical_offset),
            "commitLogDiskRatio": _disk_ratio(store.directory),
            "timerReadBehind": "0",
            "timerOffsetBehind": "0",
            "timerCongestNum": "0",
            "timerEnqueueTps": "0.0",
            "timerDequeueTps": "0.0",
            "dispatchBehindBytes": "0",
            "msgPutTotalYesterdayMorning": "0",
            "msgPutTotalTodayMorning": "0",
            "msgPutTotalTodayNow": str(puts),
            "msgGetTotalYesterdayMorning": "0",
            "msgGetTotalTodayMorning": "0",
            "msgGetTotalTodayNow": str(gets),
        }
        return RemotingCommand.response(body=KVTable(table=table).encode())

    # What it looks into

    def consume_queue(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 321: a consume queue's entries from an index on, and the group's subscription if the group is
        online."""
        header = headers.QueryConsumeQueueRequestHeader.from_ext_fields(request.ext_fields)
        store, topic, queue_id = self._services.store, header.topic, header.queue_id
        if queue_id not in store.queue_ids(topic):
            return refuse(ResponseCode.SYSTEM_ERROR, f"{queue_id}@{topic} is not exist!")
        subscription, filter_data = None, None
        if header.consumer_group:
            consumers = self._services.clients.consumers.get(header.consumer_group)
            subscription = None if consumers is None else consumers.subscriptions.get(topic)
            filter_data = f"{header.consumer_group}@{topic} is not online!" if subscription is None else "null"
        first, end = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
        if not first <= header.index < end:
            return RemotingCommand.response(remark=f"Index {header.index} of {queue_id}@{topic} is not exist!")
        entries = (
            store.entry(topic, queue_id, offset)
            for offset in range(header.index, min(end, header.index + min(header.count, MAX_ENTRIES)))
        )
        data = tuple(
            ConsumeQueueData(physic_offset=entry[0], physic_size=entry[1], tags_code=entry[2])
            for entry in entries
            if entry is not None
        )
        body = QueryConsumeQueueResponseBody(
            subscription_data=subscription,
            filter_data=filter_data,
            queue_data=data,
            max_queue_index=end,
            min_queue_index=first,
        )
        return RemotingCommand.response(body=body.encode())

    def time_span(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 303: for each queue, when its first, last and last consumed messages were stored, and how long its
        next unconsumed message has waited."""
        header = headers.QueryConsumeTimeSpanRequestHeader.from_ext_fields(request.ext_fields)
        services, store, name = self._services, self._services.store, header.topic
        topic = services.topics.get(name)
        if topic is None:
            return refuse(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
        spans = []
        for queue_id in range(topic.write_queue_nums):
            end, committed = store.max_offset(name, queue_id), services.offsets.query(header.group, name, queue_id)
            first_ms = store.store_time(name, queue_id, store.min_offset(name, queue_id))
            waits = committed < end
            spans.append(
                QueueTimeSpan(
                    message_queue=services.queue(name, queue_id),
                    min_time_stamp=first_ms,
                    max_time_stamp=store.store_time(name, queue_id, end - 1),
                    consume_time_stamp=store.store_time(name, queue_id, committed - 1) if committed > 0 else first_ms,
                    delay_time=services.now_ms - store.store_time(name, queue_id, committed) if waits else 0,
                )
            )
        body = QueryConsumeTimeSpanBody(consume_time_span_set=tuple(spans))
        return RemotingCommand.response(body=body.encode())

    def all_consume_stats(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 317: how far each group has consumed each of its topics (`isOrder`: ordered topics only)."""
        header = headers.GetConsumeStatsInBrokerHeader.from_ext_fields(request.ext_fields)
        services = self._services
        every, behind, in_flight = [], 0, 0
        for group in services.groups.table:
            found = []
            for name in services.offsets.topics_of(group):
                topic, consumers = services.topics.get(name), services.clients.consumers.get(group)
                if topic is None or (header.is_order and not topic.order):
                    continue
                if consumers is not None and consumers.subscriptions and name not in consumers.subscriptions:
                    continue
                table = self._offsets(group, name, topic.write_queue_nums)
                behind += sum(one.broker_offset - one.consumer_offset for one in table.values())
                in_flight += sum((one.pull_offset or 0) - one.consumer_offset for one in table.values())
                found.append(bodies.ConsumeStats(offset_table=table))
            every.append({group: tuple(found)})
        body = ConsumeStatsList(
            consume_stats_list=tuple(every),
            broker_addr=str(services.address),
            total_diff=behind,
            total_inflight_diff=in_flight if self._services.config.is_5x else None,
        )
        return RemotingCommand.response(body=body.encode())

    def all_producers(self, _: Connection, __: RemotingCommand) -> RemotingCommand:
        """Request 328: all connected producers, by group."""
        groups = {
            group: tuple(
                ProducerInfo(
                    client_id=client.client_id,
                    remote_ip=f"/{client.channel.remote_address}",  # as Java writes a socket's address
                    language=None if client.language is None else client.language.name,
                    version=client.version,
                    last_update_timestamp=client.seen_ms,
                )
                for client in clients.values()
            )
            for group, clients in self._services.clients.producers.items()
        }
        return RemotingCommand.response(body=ProducerTableInfo(data=groups).encode())

    def system_topics(self, _: Connection, __: RemotingCommand) -> RemotingCommand:
        """Request 305: the broker's system topics."""
        topics = tuple(sorted(self._services.topics.system_topics))
        return RemotingCommand.response(body=TopicList(topic_list=topics).encode())

    def nothing_to_do(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """Requests 306, 329 and 908: answer SUCCESS without doing anything."""
        self._services.context.log.warning("%d invoked by %s: nothing to do", request.code, connection)
        return RemotingCommand.response()

    def clean_unused_topics(self, connection: Connection, _: RemotingCommand) -> RemotingCommand:
        """Request 316: delete the messages of topics that no longer exist."""
        services = self._services
        services.context.log.warning("invoke cleanUnusedTopic by %s", connection)
        for topic in services.store.topics():
            if topic not in services.topics and not services.topics.is_system(topic):
                services.store.delete_topic(topic)
        return RemotingCommand.response()

    def resume_check(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 323: check a half message again that the broker gave up after transactionCheckMax checks."""
        header = headers.ResumeCheckHalfMessageRequestHeader.from_ext_fields(request.ext_fields)
        stored = self._services.store.look(parse_offset_msg_id(header.msg_id or "")[1])
        if stored is None:
            remark = "Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC."
            return refuse(ResponseCode.SYSTEM_ERROR, remark)
        self._transactions.resume(stored)
        return RemotingCommand.response()


def _connection(client: Client) -> bodies.ClientConnection:
    return bodies.ClientConnection(
        client_addr=str(client.channel.remote_address),
        client_id=client.client_id,
        language=None if client.language is None else client.language.name,
        version=client.version,
    )


def _disk_ratio(directory: os.PathLike[str]) -> str:
    """The used share (0.0 to 1.0) of the unreserved space on the store's disk; -1 if the share is unknown. Upstream:
    `UtilAll.getDiskPartitionSpaceUsedPercent`, which rounds up to whole percents."""
    try:
        stats = os.statvfs(directory)
    except OSError:
        return "-1"
    used = stats.f_blocks - stats.f_bfree
    entire = used + stats.f_bavail
    return f"{-(-used * 100 // entire) / 100:.2f}" if entire else "-1"
