"""The parts that all producers and consumers of a client share: channels, chosen NameServer, routes, heartbeats,
scheduler.

| job                                             | first | period |
|-------------------------------------------------|-------|--------|
| route of every published and subscribed topic   | 10 ms | 30 s   |
| forget offline brokers, then heartbeat to all   | 1 s   | 30 s   |
| consumers' offsets to the brokers               | 10 s  | 5 s    |
| the list by HTTP, where none is configured      | 10 s  | 120 s  |

One asyncio task runs all scheduled jobs of a client (FixedRateScheduler). A route query that gets no readable answer
ends the route poll, and the remaining topics wait for the next poll. An answer with an error code does not end the
poll. A consumer rebalances and pulls in separate tasks. Upstream: `MQClientInstance`, `MQClientAPIImpl`,
`ClientRemotingProcessor`.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from ..remoting import top_addressing
from ..remoting.bodies import client as bodies
from ..remoting.bodies.route import TopicRouteData
from ..remoting.codes import MASTER_ID, LanguageCode, RequestCode, ResponseCode
from ..remoting.command import Header, RemotingCommand, success
from ..remoting.errors import ClientError, ResponseError, RocketMQError
from ..remoting.headers.broker import (
    GetConsumerListByGroupRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    UnregisterClientRequestHeader,
)
from ..remoting.headers.fields import HeaderError
from ..remoting.message import MessageQueue
from ..remoting.node.network import Address
from ..remoting.node.node import NodeContext
from ..remoting.node.profile import Profile
from ..remoting.node.recording import record_refused, record_timed_out
from ..remoting.top_addressing import TopAddressing
from ..remoting.topics import RETRY_GROUP_TOPIC_PREFIX, TBW102
from ..remoting.transport import Connection, RemotingClient
from .config import CLIENT_IP, ClientConfig
from .name_server_client import NameServerClient, try_lock
from .route_cache import RouteCache, TopicPublishInfo, borrowed_route, dialable_addresses, publish_info, subscribe_set
from .scheduler import FixedRateScheduler


class ProducerInner(Protocol):
    """The methods that a client instance needs from a registered producer (`MQProducerInner`)."""

    def publish_topics(self) -> Iterable[str]:
        """The producer's topics; the client polls the routes of these topics."""

    def is_publish_info_missing(self, topic: str) -> bool:
        """Whether the producer knows no queue of `topic`, and so needs even an unchanged route."""

    def update_publish_info(self, topic: str, info: TopicPublishInfo) -> None:
        """Use a new route of `topic`; called for every topic of the client instance, not only for this producer's
        topics."""


_WHOLE_CALLS = frozenset(
    {
        RequestCode.GET_ROUTEINFO_BY_TOPIC,
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
    }
)
"""Who asks these records their time-outs, for each is the last part of a longer call's."""


class ConsumerInner(Protocol):
    """The methods that a client instance needs from a registered consumer (`MQConsumerInner`)."""

    def subscriptions(self) -> Iterable[bodies.SubscriptionData]:
        """The consumer's current subscriptions; the client polls the routes of their topics. In clustering the
        subscriptions include the group's %RETRY% topic."""

    def consumer_data(self) -> bodies.ConsumerData:
        """The consumer's part of the heartbeat."""

    def running_info(self) -> bodies.ConsumerRunningInfo:
        """The consumer's answer to GET_CONSUMER_RUNNING_INFO (307)."""

    async def persist_offsets(self) -> None:
        """Write the consumer's offsets. The write runs on the shared scheduler task, so a slow write delays route polls
        and heartbeats."""

    def on_consumer_ids_changed(self) -> None:
        """Rebalance now, because a group's members changed. Must not block."""

    def update_subscribe_info(self, topic: str, queues: frozenset[MessageQueue]) -> None:
        """Use a new route of `topic`; called for every topic of the client instance, not only for subscribed topics."""


_VERSION_NAMES = {Profile.V4_9: "V4_9_8", Profile.V5_X: "V5_3_3"}
"""As mqadmin shows it."""


class FindBrokerResult(NamedTuple):
    address: Address
    slave: bool
    version: int
    """What the broker's last heartbeat answer said; 0 before the first."""


class MQClientInstance:
    """The parts that all producers and consumers of one client process share.

    `remoting` has the client's channels; requests carry language PYTHON and the profile's version. `name_server` calls
    the chosen NameServer. `route_cache` has the routes and broker addresses. `client_id` is ip@node#start
    time in ms.
    """

    def __init__(self, context: NodeContext, config: ClientConfig, name_servers: Sequence[Address]) -> None:
        self._context = context
        self._config = config
        self.client_id = f"{CLIENT_IP}@{context.name}#{context.clock.now_ms()}"  # as Java makes it pid#nanos
        self.remoting = RemotingClient(
            **context.seams,
            handler=self._handle,
            connect_timeout_s=config.connect_timeout_ms / 1000,
            idle_s=config.client_channel_max_idle_time_ms / 1000,
            close_on_timeout=config.client_close_socket_if_timeout,
            language=LanguageCode.PYTHON,
            version=config.profile.version,
            on_event=self._on_channel_event,
            on_timed_out=self._on_timed_out,
            on_refused=lambda *answer: record_refused(context.record, *answer),
        )
        self.name_server = NameServerClient(
            context,
            self.remoting,
            name_servers,
            config.profile,
            lock_timeout_s=config.lock_timeout_ms / 1000,
            rules=config.selection,
        )
        by_http = config.address_server if not name_servers else None
        self._addressing = None if by_http is None else TopAddressing(context, by_http)
        self.route_cache = RouteCache(context.record, self._on_route_applied)
        self._producers: dict[str, ProducerInner] = {}
        self._consumers: dict[str, ConsumerInner] = {}
        self._subscribe_info_given: dict[str, set[str]] = {}
        self._broker_version_table: dict[str, dict[Address, int]] = {}
        self._route_lock = asyncio.Lock()
        self._heartbeat_lock = asyncio.Lock()
        self._scheduler = FixedRateScheduler(context.clock, context.log, context.record_ended)
        self._started = False

    @property
    def api_timeout_s(self) -> float:
        """The time limit of one call to a NameServer or a broker (`mqClientApiTimeout`)."""
        return self._config.mq_client_api_timeout_ms / 1000

    # -- lifecycle and membership

    async def start(self) -> None:
        """Take the configured list of NameServers and begin the scheduled jobs; a second call does nothing."""
        if self._started:
            return
        self._started = True
        self._context.record("client_id", value={"client": self.client_id})
        self.name_server.start()
        config, add = self._config, self._scheduler.add
        if self._addressing is not None:
            await self._fetch_name_servers()
            add(
                top_addressing.TASK,
                lambda: self._fetch_name_servers(top_addressing.TASK),
                initial_s=top_addressing.FIRST_S,
                period_s=top_addressing.CLIENT_PERIOD_S,
            )
        poll_s = config.poll_name_server_interval_ms / 1000
        add("updateTopicRouteInfoFromNameServer", self.poll_routes, initial_s=0.010, period_s=poll_s)
        heartbeat_s = config.heartbeat_broker_interval_ms / 1000
        add("sendHeartbeatToAllBroker", self._clean_and_heartbeat, initial_s=1.0, period_s=heartbeat_s)
        persist_s = config.persist_consumer_offset_interval_ms / 1000
        add("persistAllConsumerOffset", self._persist_all_offsets, initial_s=10.0, period_s=persist_s)
        self._scheduler.start()

    async def _fetch_name_servers(self, task: str | None = None) -> None:
        """Ask the address server for the list, and take the list if it has changed."""
        assert self._addressing is not None
        fetched = await self._addressing.fetch()
        if fetched is not None:
            self.name_server.update_addresses(fetched, task)

    async def stop(self) -> None:
        """End the jobs and close every channel. Before `stop`, the caller unregisters producers and consumers."""
        await self._scheduler.stop()
        await self.remoting.close()

    def register_producer(self, group: str, producer: ProducerInner) -> None:
        """From now on poll the routes of the producer's topics, and name the producer's group in heartbeats. Raises
        ClientError if the group already has a producer on this client."""
        if group in self._producers:
            raise ClientError(f"The producer group[{group}] has been created before, specify another name please.")
        self._producers[group] = producer

    async def unregister_producer(self, group: str) -> None:
        """Forget the producer and send UNREGISTER_CLIENT (35) to every broker."""
        if self._producers.pop(group, None) is not None:
            await self._unregister_client(UnregisterClientRequestHeader(client_id=self.client_id, producer_group=group))

    def register_consumer(self, group: str, consumer: ConsumerInner) -> None:
        """From now on poll the routes of the consumer's topics for the consumer, and name the consumer's group in
        heartbeats. Raises ClientError if the group already has a consumer on this client."""
        if group in self._consumers:
            raise ClientError(f"The consumer group[{group}] has been created before, specify another name please.")
        self._consumers[group] = consumer
        self._subscribe_info_given[group] = set()

    async def unregister_consumer(self, group: str) -> None:
        """Forget the consumer and send UNREGISTER_CLIENT (35) to every broker."""
        if self._consumers.pop(group, None) is not None:
            del self._subscribe_info_given[group]
            await self._unregister_client(UnregisterClientRequestHeader(client_id=self.client_id, consumer_group=group))

    # -- routes

    async def poll_routes(self) -> None:
        """Query the routes of all subscribed and published topics, one after the other.

        The first query without a readable answer ends the poll and raises TransportError or ProtocolError.
        """
        self._before_poll()
        topics = {data.topic: None for consumer in self._consumers.values() for data in consumer.subscriptions()}
        topics |= {topic: None for producer in self._producers.values() for topic in producer.publish_topics()}
        for topic in topics:
            await self.update_route(topic)

    def _before_poll(self) -> None:
        self.route_cache._before_poll()

    async def update_route(self, topic: str) -> bool:
        """Ask the NameServer for the route of `topic`.

        Returns whether the route was stored, because it had changed or a producer or consumer lacked it. If the
        NameServer answers with an error code, mostly 17, the cached route stays. Raises TransportError or ProtocolError
        without a readable answer.
        """
        return await self._update_route(topic, topic)

    async def borrow_route(self, topic: str) -> bool:
        """Query the route of TBW102 and store it as the route of `topic`. The first send to `topic` then creates the
        topic at the broker."""
        return await self._update_route(topic, TBW102)

    async def _update_route(self, topic: str, asked: str) -> bool:
        if not await try_lock(self._route_lock, self._context.clock, self._config.lock_timeout_ms / 1000):
            self._context.log.warning("route of %s not updated: another update takes longer than the lock wait", topic)
            return False
        try:
            route = await self.name_server.query_route(asked, self.api_timeout_s)
            if asked != topic:
                route = borrowed_route(route)
            return self.route_cache.take(topic, route, needed=self._is_route_needed(topic))
        except ResponseError as exc:
            if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX) and topic != TBW102:
                self._context.log.warning("route of %s not updated: %s", topic, exc)
            return False
        finally:
            self._route_lock.release()

    def _is_route_needed(self, topic: str) -> bool:
        if any(producer.is_publish_info_missing(topic) for producer in self._producers.values()):
            return True
        return any(
            topic not in self._subscribe_info_given[group]
            and any(data.topic == topic for data in consumer.subscriptions())
            for group, consumer in self._consumers.items()
        )

    def _on_route_applied(self, topic: str, route: TopicRouteData) -> None:
        if self._producers:
            info = publish_info(topic, route)
            for producer in self._producers.values():
                producer.update_publish_info(topic, info)
        if self._consumers:
            queues = subscribe_set(topic, route)
            for group, consumer in self._consumers.items():
                self._subscribe_info_given[group].add(topic)
                consumer.update_subscribe_info(topic, queues)

    def find_broker_address_in_publish(self, broker_name: str) -> Address | None:
        return self.route_cache.broker_addr_table.get(broker_name, {}).get(MASTER_ID)

    def find_broker_address_in_subscribe(self, broker_name: str, broker_id: int) -> FindBrokerResult | None:
        """Return the address of broker `broker_id`; None if no broker of that name has an address. For a slave's id
        without an address, the id + 1 is taken; if that has none either, or the id is the master's, any broker of the
        name is taken."""
        addresses = self.route_cache.broker_addr_table.get(broker_name, {})
        slave = broker_id != MASTER_ID
        address = addresses.get(broker_id)
        if address is None and slave:
            address = addresses.get(broker_id + 1)
        if address is None and addresses:
            found_id, address = next(iter(addresses.items()))
            slave = found_id != MASTER_ID
        if address is None:
            return None
        return FindBrokerResult(address, slave, self._broker_version_table.get(broker_name, {}).get(address, 0))

    async def find_broker(self, queue: MessageQueue, broker_id: int = MASTER_ID) -> FindBrokerResult:
        """Return the address of the queue's broker. If the address is unknown, query the topic's route once. Raises
        ClientError if the address stays unknown, and TransportError or ProtocolError without a readable route
        answer."""
        found = self.find_broker_address_in_subscribe(queue.broker_name, broker_id)
        if found is None:
            await self.update_route(queue.topic)
            found = self.find_broker_address_in_subscribe(queue.broker_name, broker_id)
        if found is None:
            raise ClientError(f"The broker[{queue.broker_name}] not exist")
        return found

    def find_broker_address_by_topic(self, topic: str) -> Address | None:
        """Return the master's address of a random broker name in the topic's cached route; without a master, the
        address of a random slave."""
        route = self.route_cache.route(topic)
        if route is None or not route.broker_datas:
            return None
        broker = self._context.rng.choice(route.broker_datas)
        addresses = dialable_addresses(broker.broker_addrs)
        if not addresses:
            return None
        return addresses.get(MASTER_ID) or self._context.rng.choice(list(addresses.values()))

    # -- brokers

    async def find_consumer_id_list(self, topic: str, group: str) -> list[str] | None:
        """Return the group's client ids from one broker of `topic` (request 38); None if the broker gives no list."""
        address = self.find_broker_address_by_topic(topic)
        if address is None:
            await self.update_route(topic)
            address = self.find_broker_address_by_topic(topic)
        if address is None:
            return None
        header = GetConsumerListByGroupRequestHeader(consumer_group=group)
        try:
            response = await self._call_broker(address, RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
            if response.code == ResponseCode.SUCCESS and response.body:
                ids = list(bodies.GetConsumerListByGroupResponseBody.decode(response.body).consumer_id_list)
                self._context.record("members_listed", topic=topic, address=str(address), value=ids)
                return ids
            raise ResponseError.for_code(response.code, response.remark)
        except RocketMQError as exc:
            self._context.log.warning("consumer ids of group %s from %s: %s", group, address, exc)
            return None

    async def send_heartbeat_to_all(self) -> None:
        """Send a heartbeat to every known broker, one after the other; a client without consumers sends heartbeats only
        to masters. Failures are logged. No heartbeat is sent while another call sends heartbeats, or if no producer or
        consumer is registered."""
        if self._heartbeat_lock.locked():
            self._context.log.warning("heartbeat skipped: another is under way")
            return
        if not self._producers and not self._consumers:
            return
        async with self._heartbeat_lock:
            body = bodies.HeartbeatData(
                client_id=self.client_id,
                producer_data_set=tuple(bodies.ProducerData(group_name=group) for group in self._producers),
                consumer_data_set=tuple(consumer.consumer_data() for consumer in self._consumers.values()),
            ).encode()
            for broker_name, addresses in list(self.route_cache.broker_addr_table.items()):
                for broker_id, address in addresses.items():
                    if self._consumers or broker_id == MASTER_ID:
                        await self._send_heartbeat(broker_name, address, body)

    async def _send_heartbeat(self, broker_name: str, address: Address, body: bytes) -> None:
        try:
            response = success(await self._call_broker(address, RequestCode.HEART_BEAT, None, body))
        except RocketMQError as exc:
            self._context.log.warning("heartbeat to broker %s %s failed: %s", broker_name, address, exc)
        else:
            self._broker_version_table.setdefault(broker_name, {})[address] = response.version

    async def _unregister_client(self, header: Header) -> None:
        for addresses in list(self.route_cache.broker_addr_table.values()):
            for address in addresses.values():
                try:
                    success(await self._call_broker(address, RequestCode.UNREGISTER_CLIENT, header))
                except RocketMQError as exc:
                    self._context.log.warning("unregister at broker %s failed: %s", address, exc)
                else:
                    self._context.record("unregistered", address=str(address))

    async def _call_broker(
        self, address: Address, code: int, header: Header | None, body: bytes = b""
    ) -> RemotingCommand:
        command = RemotingCommand.request(code, header, body)
        return await self.remoting.invoke(address, command, timeout_s=self.api_timeout_s)

    async def _clean_and_heartbeat(self) -> None:
        if await try_lock(self._route_lock, self._context.clock, self._config.lock_timeout_ms / 1000):
            try:
                for address in self.route_cache.clean_offline_brokers():
                    self._context.log.info("the broker address %s is offline, remove it", address)
            finally:
                self._route_lock.release()
        await self.send_heartbeat_to_all()

    async def _persist_all_offsets(self) -> None:
        for consumer in list(self._consumers.values()):
            await consumer.persist_offsets()

    # -- what brokers ask of this client, and what channels do

    def _handle(self, connection: Connection, command: RemotingCommand) -> RemotingCommand | None:
        if command.code == RequestCode.GET_CONSUMER_RUNNING_INFO:
            return self._consumer_running_info(command)
        if command.code != RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            remark = f" request type {command.code} not supported"
            return RemotingCommand.response(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
        self._context.record("members_changed", address=str(connection.remote_address))
        # Java wakes the one rebalance thread, which looks at every group of the instance.
        for consumer in list(self._consumers.values()):
            consumer.on_consumer_ids_changed()
        return None

    def _consumer_running_info(self, command: RemotingCommand) -> RemotingCommand:
        try:
            group = GetConsumerRunningInfoRequestHeader.from_ext_fields(command.ext_fields).consumer_group
        except HeaderError as exc:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, str(exc))
        consumer = self._consumers.get(group)
        if consumer is None:
            remark = f"The Consumer Group <{group}> not exist in this consumer"
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, remark)
        said = consumer.running_info()
        properties = {
            **said.properties,
            "instanceName": "DEFAULT",
            "PROP_CLIENT_VERSION": _VERSION_NAMES[self._config.profile],
            "PROP_NAMESERVER_ADDR": "".join(f"{at};" for at in self.name_server.selector.addresses),
        }
        return RemotingCommand.response(ResponseCode.SUCCESS, body=replace(said, properties=properties).encode())

    def _on_channel_event(self, event: str, address: Address, reason: str) -> None:
        if event == "unasked":
            self._context.record("unasked_answer", address=str(address), value={"reason": reason})
        else:
            self._context.record("channel", f=event, address=str(address), value={"reason": reason})

    def _on_timed_out(self, address: Address, code: int | None, waited_s: float) -> None:
        if code not in _WHOLE_CALLS:
            record_timed_out(self._context.record, address, code, waited_s)
