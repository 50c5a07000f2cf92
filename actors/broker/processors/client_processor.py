"""Requests of clients about themselves and their group: heartbeats, members, consumer offsets, queue locks.

Request codes: clients and members 34, 35, 38, 46; offsets 14, 15; locks 41, 42. The broker itself sends 40 (members
changed). Upstream: `ClientManageProcessor`, `ConsumerManageProcessor`, `DefaultConsumerIdsChangeListener`.
"""

from collections.abc import Iterable, Mapping, Sequence

from ....remoting.bodies import client as bodies
from ....remoting.codes import RequestCode, ResponseCode
from ....remoting.command import RemotingCommand
from ....remoting.errors import RocketMQError
from ....remoting.headers import broker as headers
from ....remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from ....remoting.transport import Connection
from ..client_manager import Client
from ..services import Services, refuse
from ..sql_filter import SqlError
from ..subscriptions import FilterUnsupported, wanted_by

IN_MEMORY_BYTES = 2 << 30
"""A message this near to the log's end counts as in memory (`accessMessageInMemoryMaxRatio` of the machine's)."""


class ClientProcessor:
    def __init__(self, services: Services) -> None:
        self._services = services

    # Membership

    def heartbeat(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 34: register the client's groups and subscriptions, create retry topics, and notify the groups whose
        members or subscribed topics changed."""
        heartbeat = bodies.HeartbeatData.decode(request.body)
        services, now_ms = self._services, self._services.now_ms
        client = Client(heartbeat.client_id, connection, request.language, request.version, now_ms)
        self._record("client_heartbeat", client, bodies.said_of(heartbeat, request.version))
        for data in heartbeat.consumer_data_set:
            group = services.groups.find(data.group_name, now_ms=now_ms)
            if group is None:
                if services.groups.auto_create:  # its name cannot be a group's, or there are too many
                    return services.invalid(f"consumer group {data.group_name[:130]!r} cannot be created")
            else:
                services.topics.create_for_group(
                    RETRY_GROUP_TOPIC_PREFIX + data.group_name,
                    group.retry_queue_nums,
                    topic_sys_flag=2 if data.unit_mode else 0,
                    now_ms=now_ms,
                )
            new, changed = services.clients.register_consumer(data, client)
            if new:
                services.context.log.info(
                    "new consumer connected, group: %s %s %s channel: %s",
                    data.group_name,
                    data.consume_type,
                    data.message_model,
                    connection.remote_address,
                )
            if changed and (group is None or group.notify_consumer_ids_changed_enable):
                self._notify([data.group_name])
        for name in services.clients.register_producers(heartbeat, client):
            services.context.log.info("new producer connected, group: %s channel: %s", name, connection.remote_address)
        return RemotingCommand.response()

    def unregister(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = headers.UnregisterClientRequestHeader.from_ext_fields(request.ext_fields)
        clients = self._services.clients
        client, groups = clients.on_channel(connection.id), clients.groups_of(connection.id)
        changed = clients.unregister(
            connection.id, producer_group=header.producer_group, consumer_group=header.consumer_group
        )
        if client is not None and clients.on_channel(connection.id) is None:
            self._gone("unregistered", client, groups)
        self._notify(changed)
        return RemotingCommand.response()

    def consumer_list(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        header = headers.GetConsumerListByGroupRequestHeader.from_ext_fields(request.ext_fields)
        group = self._services.clients.consumers.get(header.consumer_group)
        if group is None:
            return refuse(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {header.consumer_group}")
        return RemotingCommand.response(body=bodies.ConsumerIdList(consumer_id_list=group.client_ids).encode())

    def check_client(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 46: check the SQL filter of a starting consumer, because a consumer with a refused filter does not
        start."""
        body = bodies.CheckClientRequestBody.decode(request.body)
        try:
            wanted_by(body.subscription_data, self._services.config)
        except FilterUnsupported as exc:
            return refuse(ResponseCode.SYSTEM_ERROR, str(exc))
        except SqlError as exc:
            self._services.context.log.warning(
                "Client %s@%s filter message, but failed to compile expression! sub=%s, error=%s",
                body.client_id,
                body.group,
                body.subscription_data,
                exc,
            )
            return refuse(ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"Invalid MessageSelector. {exc}")
        return RemotingCommand.response()

    def connection_lost(self, connection: Connection) -> None:
        clients = self._services.clients
        client, groups = clients.on_channel(connection.id), clients.groups_of(connection.id)
        changed = clients.channel_lost(connection.id)
        if client is not None:
            self._gone("closed", client, groups)
        self._notify(changed)

    def expire(self) -> None:
        """Every 10 s, remove clients without a heartbeat for 120 s, and close their channels. As in RocketMQ, other
        consumers notice a removal only at their next rebalance (`ConsumerManager.scanNotActiveChannel`)."""
        gone = self._services.clients.expire(now_ms=self._services.now_ms)
        for group, client in gone:
            self._services.context.log.warning(
                "SCAN: remove expired channel from %s. channel=%s, consumerGroup=%s",
                "ConsumerManager consumerTable" if group else "ProducerManager groupChannelTable",
                client.channel.remote_address,
                group,
            )
            self._gone("expired", client, [group] if group else [])
            client.channel.close()
        self._services.locks.expire(now_ms=self._services.now_ms)

    def _gone(self, how: str, client: Client, groups: Sequence[str]) -> None:
        silent_ms = self._services.now_ms - client.seen_ms
        self._record("client_gone", client, {"groups": groups}, f=how, duration_ms=silent_ms)

    def _record(self, event: str, client: Client, more: Mapping[str, object], **fields: object) -> None:
        value = {"client": client.client_id, **more}
        channel = {"op_id": str(client.channel.id), "address": str(client.channel.remote_address)}
        self._services.context.record(event, **channel, value=value, **fields)

    def _notify(self, groups: Iterable[str]) -> None:
        """Tell every member of these groups, oneway, that the group's members have changed."""
        if not self._services.config.notify_consumer_ids_changed_enable:
            return
        for group in groups:
            for channel in self._services.clients.channels_of(group):
                header = headers.NotifyConsumerIdsChangedRequestHeader(consumer_group=group)
                command = RemotingCommand.request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, header, oneway=True)
                try:
                    channel.send(command)
                except RocketMQError as exc:
                    self._services.context.log.warning("cannot notify %s of group %s: %s", channel, group, exc)

    # Offsets

    def query_offset(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 14: a group's committed offset. Without a committed offset the answer is 0 if the queue still has
        offset 0 and its message is recent enough to be in memory, else code 22."""
        header = headers.QueryConsumerOffsetRequestHeader.from_ext_fields(request.ext_fields)
        services, topic, queue_id = self._services, header.topic, header.queue_id
        offset = services.offsets.query(header.consumer_group, topic, queue_id)
        if offset < 0:
            zero = header.set_zero_if_not_found is not False
            if not zero or services.store.min_offset(topic, queue_id) > 0 or not self._in_memory(topic, queue_id):
                return refuse(ResponseCode.QUERY_NOT_FOUND, "Not found, maybe this group consumer boot first")
            offset = 0
        return RemotingCommand.response(header=headers.QueryConsumerOffsetResponseHeader(offset=offset))

    def _in_memory(self, topic: str, queue_id: int) -> bool:
        entry = self._services.store.entry(topic, queue_id, 0)
        return entry is None or self._services.store.max_physical_offset - entry[0] <= IN_MEMORY_BYTES

    def update_offset(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 15: store a group's offset of a queue. Offsets of unknown topics and groups are not stored."""
        header = headers.UpdateConsumerOffsetRequestHeader.from_ext_fields(request.ext_fields)
        services = self._services
        if services.groups.find(header.consumer_group, now_ms=services.now_ms) is None:
            return refuse(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {header.consumer_group} not exist!")
        topic = services.topics.get(header.topic)
        if topic is None:
            return refuse(ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} not exist!")
        if not 0 <= header.queue_id < max(topic.read_queue_nums, topic.write_queue_nums):
            return services.invalid(f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}]")
        # one below 0 is taken, as Apache's broker does, and read as none: ali-ons commits -1 of what it never consumed
        before = services.commit(
            connection, "update", header.consumer_group, header.topic, header.queue_id, header.commit_offset
        )
        if header.commit_offset < before:
            services.context.log.warning(
                "[NOTIFYME]update consumer offset less than store. clientHost=%s, key=%s@%s, queueId=%d, "
                "requestOffset=%d, storeOffset=%d",
                connection.remote_address,
                header.topic,
                header.consumer_group,
                header.queue_id,
                header.commit_offset,
                before,
            )
        return RemotingCommand.response()

    # Locks

    def lock_queues(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 41: lock queues for a client. The answer lists the queues that the client has locked now."""
        body = bodies.LockBatchRequestBody.decode(request.body)
        queues = [queue for queue in sorted(body.mq_set) if self._is_ours(queue.topic, queue.queue_id)]
        held = self._services.locks.lock(body.consumer_group, queues, body.client_id, now_ms=self._services.now_ms)
        return RemotingCommand.response(body=bodies.LockBatchResponseBody(lock_ok_mq_set=frozenset(held)).encode())

    def unlock_queues(self, _: Connection, request: RemotingCommand) -> RemotingCommand:
        """Request 42: release a client's locks of queues."""
        body = bodies.LockBatchRequestBody.decode(request.body)
        self._services.locks.unlock(body.consumer_group, body.mq_set, body.client_id)
        return RemotingCommand.response()

    def _is_ours(self, name: str, queue_id: int) -> bool:
        topic = self._services.topics.get(name)
        return topic is not None and 0 <= queue_id < max(topic.read_queue_nums, topic.write_queue_nums)
