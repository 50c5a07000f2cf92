"""What mqadmin looks into and tidies up at a broker: consume queues (321), times (303), every group's progress (317),
all producers (328), system topics (305), what is not used (306, 316, 329), half messages set aside (323).

306 and 329 have nothing to do here: consume queues are made at each start, and messages do not expire. Upstream:
`AdminBrokerProcessor`.
"""

from __future__ import annotations

from ...remoting.bodies.admin import (
    ConsumeQueueData,
    ConsumeStatsList,
    ProducerInfo,
    ProducerTableInfo,
    QueryConsumeQueueResponseBody,
    QueryConsumeTimeSpanBody,
    QueueTimeSpan,
)
from ...remoting.bodies.client import ConsumeStats, OffsetWrapper
from ...remoting.bodies.route import TopicConfig, TopicList
from ...remoting.codes import ResponseCode
from ...remoting.command import RemotingCommand
from ...remoting.headers.broker import (
    GetConsumeStatsInBrokerHeader,
    QueryConsumeQueueRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
    ResumeCheckHalfMessageRequestHeader,
)
from ...remoting.message import MessageQueue
from ...remoting.message_id import parse_offset_msg_id
from ...remoting.node.profile import Profile
from ...remoting.transport import Connection
from .services import Services, not_stored, refuse
from .stored import MessageIllegal, StoreFull
from .transactions import Transactions

MAX_ENTRIES = 1024
"""Entries of a consume queue in one answer."""


class InspectionProcessor:
    def __init__(self, services: Services, transactions: Transactions) -> None:
        self._services = services
        self._transactions = transactions

    def consume_queue(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """321: entries from an index on, and what a group that is online filters by."""
        header = QueryConsumeQueueRequestHeader.from_ext_fields(request.ext_fields)
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
        """303: when each queue's first, last and last consumed message were stored, and how long the next one waits."""
        header = QueryConsumeTimeSpanRequestHeader.from_ext_fields(request.ext_fields)
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
                    message_queue=self._queue(name, queue_id),
                    min_time_stamp=first_ms,
                    max_time_stamp=store.store_time(name, queue_id, end - 1),
                    consume_time_stamp=store.store_time(name, queue_id, committed - 1) if committed > 0 else first_ms,
                    delay_time=services.now_ms - store.store_time(name, queue_id, committed) if waits else 0,
                )
            )
        body = QueryConsumeTimeSpanBody(consume_time_span_set=tuple(spans))
        return RemotingCommand.response(body=body.encode())

    def all_consume_stats(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """317: how far each group is in each topic that it has consumed (`isOrder`: in ordered ones)."""
        header = GetConsumeStatsInBrokerHeader.from_ext_fields(request.ext_fields)
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
                stats = self._stats(group, topic)
                behind += sum(one.broker_offset - one.consumer_offset for one in stats.offset_table.values())
                in_flight += sum((one.pull_offset or 0) - one.consumer_offset for one in stats.offset_table.values())
                found.append(stats)
            every.append({group: tuple(found)})
        body = ConsumeStatsList(
            consume_stats_list=tuple(every),
            broker_addr=str(services.address),
            total_diff=behind,
            total_inflight_diff=in_flight if self._is_5 else None,
        )
        return RemotingCommand.response(body=body.encode())

    def _stats(self, group: str, topic: TopicConfig) -> ConsumeStats:
        services, store, name = self._services, self._services.store, topic.topic_name
        table = {}
        for queue_id in range(topic.write_queue_nums):
            committed = max(0, services.offsets.query(group, name, queue_id))
            pulled = max(committed, services.offsets.query_pulled(group, name, queue_id))
            table[self._queue(name, queue_id)] = OffsetWrapper(
                broker_offset=store.max_offset(name, queue_id),
                consumer_offset=committed,
                pull_offset=pulled if self._is_5 else None,
                last_timestamp=max(0, store.store_time(name, queue_id, committed - 1)),
            )
        return ConsumeStats(offset_table=table)

    def all_producers(self, _: Connection, __: RemotingCommand) -> RemotingCommand:
        """328"""
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
        """305"""
        topics = tuple(sorted(self._services.topics.system_topics))
        return RemotingCommand.response(body=TopicList(topic_list=topics).encode())

    # Tidying up

    def nothing_to_clean(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """306, 329"""
        self._services.context.log.warning("%d invoked by %s: nothing to clean", request.code, connection)
        return RemotingCommand.response()

    def clean_unused_topics(self, connection: Connection, _: RemotingCommand) -> RemotingCommand:
        """316: messages of topics that are there no more are forgotten."""
        services = self._services
        services.context.log.warning("invoke cleanUnusedTopic by %s", connection)
        for topic in services.store.topics():
            if topic not in services.topics and not services.topics.is_system(topic):
                services.store.delete_topic(topic)
        return RemotingCommand.response()

    def resume_check(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """323: a half message that was set aside is asked about again."""
        header = ResumeCheckHalfMessageRequestHeader.from_ext_fields(request.ext_fields)
        stored = self._services.store.look(parse_offset_msg_id(header.msg_id or "")[1])
        if stored is None:
            remark = "Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC."
            return refuse(ResponseCode.SYSTEM_ERROR, remark)
        try:
            self._transactions.resume(stored)
        except (MessageIllegal, StoreFull) as exc:
            return not_stored(exc)
        return RemotingCommand.response()

    @property
    def _is_5(self) -> bool:
        return self._services.config.profile is Profile.V5_X

    def _queue(self, topic: str, queue_id: int) -> MessageQueue:
        return MessageQueue(topic, self._services.config.broker_name, queue_id)
