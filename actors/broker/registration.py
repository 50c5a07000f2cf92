"""A broker's registrations with NameServers: at its start, after 10 s, then every 30 s (registerNameServerPeriod,
limited to 10 to 60 s), and at once for a new topic.

    register    103 to every target in parallel, each waited for 6 s (4.9) or 24 s (5.x); one that fails or hangs
                holds up no other, and is tried again at the next tick
    topic       103 with the one topic, as 4.9 does
    unregister  104 to every target, one after the other, 3 s each

A round of registrations begins only when the previous round has ended, as in RocketMQ. The registration of one topic
carries the DataVersion that the topic's change produced. If the last registration with a NameServer failed, the next
registration sends all topics; RocketMQ can send only the changed topic. A NameServer that had the newest DataVersion
but lacked earlier changes would ignore full registrations as unchanged. Upstream: `BrokerController.registerBrokerAll`,
`BrokerOuterAPI.registerBrokerAll`, `unregisterBrokerAll`.
"""

import asyncio
import math
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from ...remoting.bodies.register import RegisterBrokerBody, TopicConfigSerializeWrapper
from ...remoting.bodies.route import DataVersion, KVTable, TopicConfig
from ...remoting.codes import PERM_READ, PERM_WRITE, RequestCode
from ...remoting.command import RemotingCommand, success
from ...remoting.errors import RocketMQError
from ...remoting.headers import namesrv as headers
from ...remoting.node.network import Address
from ...remoting.node.tasks import Tasks
from ...remoting.top_addressing import TASK, broker_period_s
from ...remoting.transport import RemotingClient
from .services import Services

FIRST_DELAY_S = 10.0
CALL_TIMEOUT_S = 3.0
RW = PERM_READ | PERM_WRITE


class Registration:
    """The registrations of one broker. For each round, `targets` returns the NameServers to register with. After the
    round, `answered` gets the header of the first successful answer, in which a slave finds its master."""

    def __init__(
        self,
        services: Services,
        client: RemotingClient,
        targets: Callable[[], Sequence[Address]],
        fetch: Callable[[], Awaitable[object]] | None = None,
        answered: Callable[[headers.RegisterBrokerResponseHeader], None] | None = None,
    ) -> None:
        self._answered = answered
        self._fetch = fetch
        self._services = services
        self._client = client
        self._targets = targets
        self._one_round = asyncio.Lock()
        self._behind: set[Address] = set()
        self._tasks = Tasks()
        self._periodic: asyncio.Task[None] | None = None
        self._stopped = False

    async def start(self) -> None:
        """Register with every NameServer, then periodically in the background."""
        await self._round(None, None)
        self._periodic = self._spawn(self._periodically())

    async def stop(self) -> None:
        """Stop the periodic registration, and unregister from every NameServer, one after the other."""
        self._stopped = True
        await self._tasks.cancel()
        for target in self._targets():
            await self._unregister(target)

    def topic_changed(self, topic: TopicConfig, version: DataVersion) -> None:
        if not self._stopped:
            self._spawn(self._round([topic], version))

    async def told(self) -> None:
        """Wait until each NameServer has answered the registration of what has changed, or the time-out has passed."""
        if rounds := [task for task in self._tasks if task is not self._periodic]:
            await asyncio.wait(rounds)

    def changed(self) -> None:
        """Register every topic with every NameServer at once, even if forceRegister is false (`registerBrokerAll(…,
        true)` of `changeToMaster`, `changeToSlave`, `updateBrokerConfig`)."""
        if not self._stopped:
            self._spawn(self._round(None, None))

    async def register_all(self) -> None:
        """Register all topics; with forceRegister false, only if a NameServer has another DataVersion or does not
        answer."""
        if self._services.config.force_register or await self._need_register():
            await self._round(None, None)

    # Rounds

    async def _periodically(self) -> None:
        """Register at a fixed rate: a slow round does not move the next one. The list of NameServers is fetched before
        each round."""
        clock, config = self._services.context.clock, self._services.config
        due_s = clock.monotonic_s() + FIRST_DELAY_S
        fetch_due_s = math.inf if self._fetch is None else due_s
        while True:
            await clock.sleep(max(0.0, min(due_s, fetch_due_s) - clock.monotonic_s()))
            if self._fetch is not None and fetch_due_s <= due_s:
                fetch_due_s += broker_period_s(config.profile)
                await self._task(TASK, self._fetch)
            else:
                due_s += self._services.config.register_period_s
                await self._task("registerBrokerAll", self.register_all)

    async def _task(self, name: str, work: Callable[[], Awaitable[object]]) -> None:
        """Run one periodic round and record it. A round that fails does not end the period."""
        context = self._services.context
        began_s = context.clock.monotonic_s()
        try:
            await work()
        except Exception:
            context.log.exception("%s Exception", name)
        context.record_ended(began_s, "scheduled_task", f=name)

    async def _round(self, changed: Sequence[TopicConfig] | None, version: DataVersion | None) -> None:
        """Register the `changed` topics with the data version `version` at all NameServers; None: the whole table, as
        it is when the round begins."""
        answers: list[RemotingCommand] = []  # in the order in which they came (`handleRegisterBrokerResult`)

        async def register(target: Address) -> None:
            if (answer := await self._register(target, changed, version)) is not None:
                answers.append(answer)

        async with self._one_round:
            await asyncio.gather(*map(register, self._targets()))
        first = next(iter(answers), None)
        if first is not None and first.body:
            self._take_order_conf(first.body)
        if first is not None and self._answered is not None:
            self._answered(headers.RegisterBrokerResponseHeader.from_ext_fields(first.ext_fields))

    async def _register(
        self, target: Address, changed: Sequence[TopicConfig] | None, version: DataVersion | None
    ) -> RemotingCommand | None:
        """Register with one NameServer and record how it went; its answer when it accepted."""
        services = self._services
        clock, log = services.context.clock, services.context.log
        if changed is None or version is None or target in self._behind:
            changed, version = list(services.topics.topic_config_table.values()), services.topics.data_version
        begin_s = clock.monotonic_s()
        outcome = "ok"
        code: int | None = None
        response: RemotingCommand | None = None
        try:
            response = await self._client.invoke(
                target, self._command(changed, version), timeout_s=services.config.register_timeout_s
            )
            code = response.code
            success(response)
            self._behind.discard(target)
            if services.config.is_5x:
                log.info("Registering current broker to name server completed. TargetHost=%s", target)
            else:
                log.info("register broker[%d]to name server %s OK", services.config.broker_id, target)
        except RocketMQError as exc:
            self._behind.add(target)
            outcome, response = ("fail" if exc.definite else "info"), None
            text_5x = "Failed to register current broker to name server. TargetHost=%s: %s"
            log.warning(text_5x if services.config.is_5x else "registerBroker Exception, %s: %s", target, exc)
        value: dict[str, object] = {"topics": len(changed), "version": version.counter}
        if response is not None and services.config.is_slave:
            answered = headers.RegisterBrokerResponseHeader.from_ext_fields(response.ext_fields)
            value |= {"master": answered.master_addr, "ha": answered.ha_server_addr}
        services.context.record_ended(
            begin_s,
            "register",
            type=outcome,
            name_server=str(target),
            code=code,
            value=value,
        )
        return response

    def _command(self, changed: Sequence[TopicConfig], version: DataVersion) -> RemotingCommand:
        services, config = self._services, self._services.config
        wrapper = TopicConfigSerializeWrapper.of(tuple(map(self.as_permitted, changed)), version)
        body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=()).encode(
            compressed=config.compressed_register, version=config.profile.version
        )
        v5 = config.is_5x
        header = headers.RegisterBrokerRequestHeader(
            **self._identity,
            ha_server_addr=str(Address(services.address.host, services.address.port + 1)),
            heartbeat_timeout_millis=config.not_active_ms if v5 else None,
            enable_acting_master=config.acts_as_master if v5 else None,
            compressed=config.compressed_register,
            body_crc32=zlib.crc32(body) & 0x7FFFFFFF,
        )
        return self._request(RequestCode.REGISTER_BROKER, header.to_ext_fields(), body)

    @property
    def _identity(self) -> dict[str, Any]:
        config = self._services.config
        whose = {"cluster_name": config.cluster_name, "broker_name": config.broker_name}
        return {**whose, "broker_id": config.broker_id, "broker_addr": str(self._services.address)}

    def as_permitted(self, topic: TopicConfig) -> TopicConfig:
        """If brokerPermission lacks read or write, return the topic with brokerPermission (4.9), or with the common
        bits (5.x)."""
        permission = self._services.config.broker_permission
        if permission & RW == RW:
            return topic
        return replace(topic, perm=topic.perm & permission if self._services.config.is_5x else permission)

    def _take_order_conf(self, body: bytes) -> None:
        try:
            table = KVTable.decode(body).table
        except RocketMQError as exc:
            self._services.context.log.warning("a NameServer's order configuration cannot be read: %s", exc)
            return
        self._services.topics.set_order(table, now_ms=self._services.now_ms)

    # 322 and 104

    async def _need_register(self) -> bool:
        """Whether a NameServer has another data version, or does not answer (forceRegister=false)."""
        return any(await asyncio.gather(*map(self._is_changed, self._targets())))

    async def _is_changed(self, target: Address) -> bool:
        services, config = self._services, self._services.config
        header = headers.QueryDataVersionRequestHeader(**self._identity)
        version, clock = services.topics.data_version, services.context.clock
        command = self._request(RequestCode.QUERY_DATA_VERSION, header.to_ext_fields(), version.encode())
        begin_s, outcome, answered = clock.monotonic_s(), "ok", True
        try:
            response = success(await self._client.invoke(target, command, timeout_s=config.register_timeout_s))
            answered = headers.QueryDataVersionResponseHeader.from_ext_fields(response.ext_fields).changed
            remote = DataVersion.decode(response.body) if response.body else None
        except RocketMQError as exc:
            services.context.log.error("Query data version from name server %s  Exception, %s", target, exc)
            outcome = "fail" if exc.definite else "info"
        services.context.record_ended(
            begin_s,
            "data_version",
            type=outcome,
            name_server=str(target),
            value={"changed": answered},
        )
        if outcome != "ok":
            return True
        changed = answered or remote is None or not version.same(remote, config.profile)
        services.context.log.warning(
            "Query data version from name server %s OK,changed %s, broker %s,name server %s",
            target,
            str(changed).lower(),
            version,
            remote or "",
        )
        return changed

    async def _unregister(self, target: Address) -> None:
        services, header = self._services, headers.UnRegisterBrokerRequestHeader(**self._identity)
        command = self._request(RequestCode.UNREGISTER_BROKER, header.to_ext_fields(), b"")
        try:
            success(await self._client.invoke(target, command, timeout_s=CALL_TIMEOUT_S))
            services.context.log.info("unregisterBroker OK, NamesrvAddr: %s", target)
        except RocketMQError as exc:
            services.context.log.warning("unregisterBroker Exception, %s: %s", target, exc)

    def _request(self, code: RequestCode, fields: dict[str, str], body: bytes) -> RemotingCommand:
        """Make the request that a NameServer gets: planted defects change it here."""
        return RemotingCommand.request(code, fields, body)

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = self._tasks.spawn(work)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._services.context.log.error("registration failed", exc_info=task.exception())
