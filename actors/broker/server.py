"""The broker as a node, master or slave: its channels and timers around store, tables and processors.

    request -> BrokerProcessor -> store / tables          channel closed -> who was on it, what waited on it
    message stored -> held pulls, delay levels            topic changed  -> history, NameServers
    every 5 s: held pulls, tables to disk                 every 10 s: silent clients
    its port: all requests                                its VIP port, two below: all but pulls
    a slave: the master's commit log, and each 10 s its tables; it stores nothing that clients send

Upstream: `BrokerController`, `BrokerStartup`, `ClientHousekeepingService`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import TypeVar

from ...remoting.bodies.route import TopicConfig
from ...remoting.codes import LanguageCode, RequestCode
from ...remoting.command import RemotingCommand
from ...remoting.headers.namesrv import RegisterBrokerResponseHeader
from ...remoting.node.network import Address
from ...remoting.node.node import NodeContext
from ...remoting.node.recording import ignore, record_refused, record_timed_out
from ...remoting.node.tasks import Tasks
from ...remoting.properties import format_properties, parse_properties
from ...remoting.top_addressing import TASK, TopAddressing
from ...remoting.topics import HALF_TOPIC, SCHEDULE_TOPIC
from ...remoting.transport import Connection, RemotingClient, RemotingServer
from ...remoting.witness import BrokerWitness
from .config import BrokerConfig
from .files import read_whole, write_whole
from .groups import SubscriptionGroups
from .long_poll import PullHolds
from .member_group import MemberGroup
from .offsets import ConsumerOffsets
from .processors.processor import Answer, BrokerProcessor, not_supported
from .registration import Registration
from .replication import LogCopying, LogServing
from .schedule import ScheduleService
from .services import Services
from .slave_synchronize import SlaveSynchronize
from .store import MessageStore, scheduled_tags_code
from .topics import TopicTable

CLIENT_SCAN_S = 10.0
_NOT_VIP = frozenset((RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE))
T = TypeVar("T")

ROLE_FILE = "role.properties"
"""The file that keeps the role which the broker was given by hand, where its configuration is in no file of its own.
RocketMQ writes the role into the file that the broker was started with."""


class Broker:
    """One broker. Planted defects of the self-test replace the instance's `_registration_targets` or `store._write`.

    `advertised` is the address that the broker registers; if None, brokerIP1 (or the listening host) and the listening
    port are used. The broker's files are under the context's data_dir if it is set, else under storePathRootDir. `vip`:
    listen at the VIP port, too.
    """

    def __init__(
        self,
        context: NodeContext,
        config: BrokerConfig,
        *,
        listen: Address,
        advertised: Address | None = None,
        vip: bool = False,
    ) -> None:
        directory = context.data_dir if context.data_dir is not None else Path(config.store_path_root_dir).expanduser()
        self._settings = directory / "config"
        self._keeps_role = context.data_dir is not None
        if self._keeps_role and (kept := read_whole(self._settings / ROLE_FILE)) is not None:
            config = config.updated(parse_properties(kept), source=ROLE_FILE)
        self._context, self._config = context, config
        self._listen, self._advertised = listen, advertised
        self.store = MessageStore(
            directory,
            file_size=config.mapped_file_size_commit_log,
            max_message_size=config.max_message_size,
            sync_flush=config.flush_disk_type == "SYNC_FLUSH",
            tags_code_of=scheduled_tags_code(SCHEDULE_TOPIC, config.delay_levels_ms),
            log=context.log,
        )
        self._server = self._remoting_server(self._handle)
        self._vip_server = self._remoting_server(self._handle_vip) if vip else None
        self._client = RemotingClient(
            **context.seams,
            connect_timeout_s=config.connect_timeout_millis / 1000,
            idle_s=config.client_channel_max_idle_time_seconds,
            close_on_timeout=config.client_close_socket_if_timeout,
            on_timed_out=lambda *wait: record_timed_out(context.record, *wait),
            on_refused=lambda *answer: record_refused(context.record, *answer),
            language=LanguageCode.JAVA,
            version=config.profile.version,
        )
        by_http = config.address_server if not config.namesrv_addr else None
        self._addressing = None if by_http is None else TopAddressing(context, by_http)
        self._fetched: tuple[Address, ...] = ()
        self._tasks = Tasks()
        self._role_tasks: tuple[asyncio.Task[object], ...] = ()
        self._started_ms = context.clock.now_ms()
        self._store_is_open = self._serves = False

    # Lifecycle

    async def listen(self) -> Address:
        """Recover the store and bind the port; return the address for peers. Raises StoreError (store in use or
        damaged), ValueError (unreadable table file), OSError (port not free)."""
        context = self._context
        recovery = self.store.open()
        self._store_is_open = True
        try:
            self._assemble()
            bound = await self._server.listen(self._listen)
            await self._listen_vip(bound.vip_channel)
        except BaseException:
            self._close_store()
            raise
        context.record("boot", value={"recovered": recovery.recovered, "truncated_bytes": recovery.truncated_bytes})
        if recovery.truncated_bytes:
            context.log.warning("recovery cut off a torn tail of %d B", recovery.truncated_bytes)
        own = self._advertised or bound
        self.services.address = Address(self._config.broker_ip1 or own.host, own.port)
        self.store.store_host = _store_host(self.services.address)
        return self._advertised or self.services.address

    async def _listen_vip(self, address: Address) -> None:
        """Listen at the VIP port, too. If the VIP port cannot be opened, a warning says why, and the broker runs
        without a VIP port; Apache's broker would not start."""
        if self._vip_server is None:
            return
        try:
            if address.port <= 0:
                raise OSError("there is no such port")
            await self._vip_server.listen(address)
        except OSError as exc:
            self._context.log.warning(
                "cannot listen on the VIP port %s: %s; Java clients 3.5.8 to 4.4.0 cannot send to this broker "
                "(com.rocketmq.sendMessageWithVIPChannel=false has them send at its own port); "
                "stop what uses the port, or choose another listenPort",
                address,
                exc.strerror or exc,
            )

    async def start(self) -> None:
        """Begin the periodic work, and register with every NameServer. Returns after the first registration round."""
        self._serves = True
        for topic in self.services.topics.topic_config_table.values():
            self._record_topic(topic.topic_name, topic)
        self._begin_role()
        self._tasks.spawn(self._check_held_pulls())
        self._tasks.spawn(self._scan_clients())
        self._tasks.spawn(
            self._every(lambda: self.services.config.flush_consumer_offset_interval / 1000, self._persist)
        )
        await self._registration.start()
        if self.services.config.acts_as_master:
            self._tasks.spawn(self._members.run())
        names = ";".join(map(str, self._registration_targets()))
        self._context.log.info("%s", self.boot_line + (f" and name server is {names}" if names else ""))

    def _begin_role(self) -> None:
        if self.services.config.is_slave:
            work = [self._copying.run(), self._synchronize.run()]
        else:
            self._processor.half_messages.open()
            self._schedule.start()
            work = [self._check_transactions()]
        self._role_tasks = tuple(map(self._tasks.spawn, work))

    def _change_role(self, old: BrokerConfig) -> None:
        """Continue with another broker id. NameServers are told, and delete the old id's address
        (`BrokerController.changeToMaster`, `changeToSlave`)."""
        config = self.services.config
        self._context.log.info("change from %s %d to %s %d", *_role(old), *_role(config))
        if self._keeps_role:
            role = {"brokerId": str(config.broker_id), "brokerRole": config.broker_role}
            write_whole(self._settings / ROLE_FILE, format_properties(role).encode())
        for task in self._role_tasks:
            task.cancel()
        self._schedule.stop()
        self._serving.stop()
        self._begin_role()
        for topic in self.services.topics.topic_config_table.values():
            self._record_topic(topic.topic_name, topic)
        self._registration.changed()

    def have_topics(self, topics: Mapping[str, int]) -> None:
        """Create these topics (name to queue count) for the broker's first registration. Call before `start`."""
        for topic, queues in topics.items():
            config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
            self.services.topics.begin_with(config, now_ms=self.services.now_ms)
        self.services.topics.persist()  # they are the next process's, too, if this one is killed before it writes any

    async def stop(self) -> None:
        """Unregister from every NameServer in turn, close all channels, and write all files completely."""
        await self._tasks.cancel()
        if self._store_is_open:
            await self._registration.stop()
            self._schedule.stop()
            self._serving.stop()
        await self._server.close()
        if self._vip_server is not None:
            await self._vip_server.close()
        await self._client.close()
        if self._store_is_open:
            for pull in self.services.holds.take_all():
                pull.request.abandon()
            self._persist()
            self._close_store()

    def fill_disk(self, is_full: bool) -> None:
        """Store no more messages, as if the disk were full, or store messages again. The words are those of RocketMQ's
        store (`DefaultMessageStore.CleanCommitLogService.isSpaceToDelete`)."""
        self.store.disk_is_full = is_full
        if is_full:
            self._context.log.error("physic disk maybe full soon 0.97, so mark disk full")
        else:
            self._context.log.info("physic disk space OK 0.6, so mark disk ok")

    @property
    def boot_line(self) -> str:
        """RocketMQ's boot line for this broker, without the list of NameServers."""
        return f"The broker[{self._config.broker_name}, {self.services.address}] boot success. serializeType=JSON"

    # What a self-test replaces

    def _registration_targets(self) -> Sequence[Address]:
        return self.services.config.namesrv_addr or self._fetched

    async def _fetch_name_servers(self) -> None:
        assert self._addressing is not None
        fetched = await self._addressing.fetch()
        if fetched:
            self._fetched = fetched
            self._context.record("name_server_list", f=TASK, value=[str(address) for address in fetched])

    # Parts

    def _assemble(self) -> None:
        context, config, now_ms = self._context, self._config, self._context.clock.now_ms()
        settings, log = self._settings, context.log
        self.services = Services(
            context=context,
            config=config,
            address=self._advertised or self._listen,
            store=self.store,
            topics=TopicTable(
                config, now_ms=now_ms, path=settings / "topics.json", on_change=self._topic_changed, log=log
            ),
            groups=SubscriptionGroups(config, now_ms=now_ms, path=settings / "subscriptionGroup.json", log=log),
            offsets=ConsumerOffsets(settings / "consumerOffset.json"),
            holds=PullHolds(limit=config.max_held_pulls),
            arrived=self._arrived,
            copied=lambda end: self._serving.copied(end),
        )
        self._copying = LogCopying(self.services, self._client, self._copied)
        self._serving = LogServing(self.services, self._copying)
        self._schedule = ScheduleService(self.services, settings / "delayOffset.json")
        fetch = None if self._addressing is None else self._fetch_name_servers
        self._synchronize = SlaveSynchronize(self.services, self._client, self._schedule)
        self._registration = Registration(
            self.services, self._client, lambda: self._registration_targets(), fetch, self._registered
        )
        self._members = MemberGroup(
            self.services, self._client, lambda: self._registration_targets(), self._members_changed
        )
        self._processor = BrokerProcessor(
            self.services,
            self._schedule,
            self._serving,
            self._members,
            reconfigured=self._reconfigured,
            told=self._registration.told,
            started_ms=self._started_ms,
        )
        self._pull, self._clients = self._processor.pull, self._processor.clients

    def _remoting_server(self, handler: Callable[[Connection, RemotingCommand], Answer]) -> RemotingServer:
        context, config = self._context, self._config
        return RemotingServer(
            **context.seams,
            handler=handler,
            on_open=self._opened,
            on_close=self._channel_lost,
            idle_s=config.server_channel_max_idle_time_seconds,
            witness=None if context.record is ignore else BrokerWitness(context.record),
            language=LanguageCode.JAVA,
            version=config.profile.version,
        )

    def _opened(self, connection: Connection) -> None:
        """Refuse requests until the broker starts, though its port is bound."""
        if not self._serves:
            connection.close()

    def _handle(self, connection: Connection, request: RemotingCommand) -> Answer:
        return self._processor(connection, request)

    def _handle_vip(self, connection: Connection, request: RemotingCommand) -> Answer:
        """Handle a request at the VIP port, where no pull is served (`fastRemotingServer`)."""
        return not_supported(request.code) if request.code in _NOT_VIP else self._processor(connection, request)

    def _channel_lost(self, connection: Connection, _: str) -> None:
        self._pull.connection_lost(connection)
        self._serving.connection_lost(connection)
        self._clients.connection_lost(connection)

    def _arrived(self, topic: str, queue_id: int) -> None:
        if topic == SCHEDULE_TOPIC:
            self._schedule.arrived(queue_id)
        self._wake(topic, queue_id)
        self._serving.appended()

    def _copied(self, topic: str, queue_id: int) -> None:
        """A slave copied messages. A slave of 4.9 wakes no held pull: the next check, within 5 s, answers them
        (`DefaultMessageStore.ReputMessageService`)."""
        if self._config.is_5x:
            self._wake(topic, queue_id)

    def _wake(self, topic: str, queue_id: int) -> None:
        """Without longPollingEnable no message wakes a held pull; the next check, within shortPollingTimeMills, answers
        the pulls (`ReputMessageService.doReput`)."""
        if self._config.long_polling_enable:
            self._pull.arrived(topic, queue_id)

    def _registered(self, answer: RegisterBrokerResponseHeader) -> None:
        """A NameServer has named the slave's master. If the answer names no master, the slave goes on copying from the
        last master."""
        if not self.services.config.is_slave:
            return
        self._synchronize.master = Address.parse(answer.master_addr) if answer.master_addr else None
        if self._synchronize.master is not None:
            self._copying.follow(self._synchronize.master)

    def _members_changed(self, master: Address | None) -> None:
        """Handle that a slave's group has another master, or no master (`onMasterOnline`, `onMasterOffline`)."""
        self._synchronize.master = master
        if master is not None:
            self._copying.follow(master)

    def _topic_changed(self, name: str, topic: TopicConfig | None) -> None:
        self._record_topic(name, topic)
        if topic is None:
            return
        if name == HALF_TOPIC and not self.services.config.is_5x:
            self._registration.changed()  # what its check of half messages makes 4.9 tells with all else
        else:
            self._registration.topic_changed(topic, self.services.topics.data_version)

    def _record_topic(self, name: str, topic: TopicConfig | None) -> None:
        """Record the topic as NameServers take it from this broker. NameServers take no topics from a slave."""
        if self.services.config.is_slave:
            return
        value = None
        if topic is not None:
            sent = self._registration.as_permitted(topic)
            value = {"read": sent.read_queue_nums, "write": sent.write_queue_nums, "perm": sent.perm}
            value["version"] = self.services.topics.data_version.counter
        self._context.record("topic", topic=name, value=value)

    def _reconfigured(self, old: BrokerConfig) -> None:
        self.services.groups.auto_create = self.services.config.auto_create_subscription_group
        if _role(old) != _role(self.services.config):
            self._change_role(old)
        if old.broker_permission != self.services.config.broker_permission:
            self.services.topics.touch(now_ms=self.services.now_ms)
            for topic in self.services.topics.topic_config_table.values():
                self._record_topic(topic.topic_name, topic)
            self._registration.changed()

    # Periodic work

    async def _every(self, period_s: Callable[[], float], work: Callable[[], object]) -> None:
        while True:
            await self._context.clock.sleep(period_s())
            self._turn(work)

    def _turn(self, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except Exception:  # one failed turn must not end the others
            self._context.log.exception("periodic work failed")
            return None

    async def _check_held_pulls(self) -> None:
        """Check held pulls; the wait comes after each check (`PullRequestHoldService`)."""
        clock = self._context.clock
        while True:
            await clock.sleep(self._pull.check_period_s)
            begin_s = clock.monotonic_s()
            self._ran("checkHoldRequest", begin_s, self._turn(self._pull.check) or None)

    async def _scan_clients(self) -> None:
        """Look for silent clients at a fixed rate (`ClientHousekeepingService`)."""
        clock = self._context.clock
        due_s = clock.monotonic_s() + CLIENT_SCAN_S
        while True:
            await clock.sleep(max(0.0, due_s - clock.monotonic_s()))
            due_s += CLIENT_SCAN_S
            begin_s = clock.monotonic_s()
            self._turn(self._clients.expire)
            self._ran("scanExceptionChannel", begin_s)

    async def _check_transactions(self) -> None:
        """Check half messages; the wait comes after each check (`TransactionalMessageCheckService`)."""
        while True:
            await self._context.clock.sleep(self.services.config.transaction_check_period_s)
            try:
                await self._processor.transactions.check()
            except Exception:  # as _turn
                self._context.log.exception("the check of half messages failed")

    def _ran(self, task: str, begin_s: float, value: object = None) -> None:
        self._context.record_ended(begin_s, "scheduled_task", f=task, value=value)

    def _persist(self) -> None:
        """Write all changed tables to disk. If one table cannot be written, the other tables are still written."""
        for table in (self.services.offsets, self.services.topics, self.services.groups, self._schedule):
            try:
                table.persist()
            except OSError as exc:
                self._context.log.error("cannot write a table under %s: %s", self._settings, exc)

    def _close_store(self) -> None:
        if self._store_is_open:
            self._store_is_open = False
            self.store.close()


def _role(config: BrokerConfig) -> tuple[str, int]:
    return config.broker_role, config.broker_id


def _store_host(address: Address) -> Address:
    """The IP address that records and message ids have. For a host name, the loopback address."""
    try:
        ip_address(address.host)
    except ValueError:
        return Address("127.0.0.1", address.port)
    return address
