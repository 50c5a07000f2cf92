"""The NameServer as a node: channels and timers around the route table.

    frame -> route_cache -> processor -> route_table        every code but a repeated 105 goes the whole way
    channel closed, failed or idle -> _channel_lost  \\
    every 10 s (5.x: every 5 s)    -> _expire_brokers  }->  _settle: caches, history, notifications
    5.x: queued unregistrations    -> _run_batch      /

Upstream: `NamesrvController`, `BrokerHousekeepingService`, `BatchUnregistrationService`.
"""

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path

from ...remoting.bodies.route import canonical
from ...remoting.codes import LanguageCode, RequestCode, ResponseCode
from ...remoting.command import RemotingCommand
from ...remoting.errors import ProtocolError, RocketMQError
from ...remoting.frame import decode_frame, encode_frame
from ...remoting.headers.namesrv import NotifyMinBrokerIdChangeRequestHeader
from ...remoting.node.network import Address
from ...remoting.node.node import NodeContext
from ...remoting.node.profile import Profile
from ...remoting.node.recording import ignore
from ...remoting.node.tasks import Tasks
from ...remoting.transport import Connection, RemotingClient, RemotingServer
from ...remoting.witness import OF_ROUTES, Witness
from ..standalone import LineLogger
from .config import NamesrvConfig
from .kv_config import KVConfig
from .processor import Caller, DefaultRequestProcessor
from .route_cache import RouteCache, may_be_route_request
from .route_table import RouteTable
from .tables import Dropped, DropReason, MinBrokerIdChanged

_PIPELINE = "NETTY SERVER PIPELINE: "


class ChannelLog:
    def __init__(self, log: logging.Logger) -> None:
        self._log = log

    def opened(self, connection: Connection) -> None:
        address = connection.remote_address
        self._log.info(_PIPELINE + "channelRegistered %s", address)
        self._log.info(_PIPELINE + "channelActive, the channel[%s]", address)

    def closing(self, connection: Connection) -> None:
        address = connection.remote_address
        self._log.info("closeChannel: close the connection to remote address[%s] result: true", address)

    def closed(self, connection: Connection, reason: str) -> None:
        """Log that the channel has ended. `reason`, from the transport, is closed, exception or idle."""
        address = connection.remote_address
        if reason == "idle":
            self._log.warning(_PIPELINE + "IDLE exception [%s]", address)
        elif reason == "exception":
            self._log.warning(_PIPELINE + "exceptionCaught %s", address)
        if reason in ("idle", "exception"):
            self.closing(connection)
        self._log.info(_PIPELINE + "channelInactive, the channel[%s]", address)
        self._log.info(_PIPELINE + "channelUnregistered, the channel[%s]", address)


FIRST_SCAN_S = {Profile.V4_9: 5.0, Profile.V5_X: 0.005}
FIRST_KV_DUMP_S = 60.0
KV_DUMP_PERIOD_S = 600.0
NOTIFY_TIMEOUT_S = 0.3


class NameServer:
    """One NameServer. Planted defects of the self-test replace the instance's `_expire_brokers` or `_channel_lost`."""

    def __init__(self, context: NodeContext, config: NamesrvConfig, *, listen: Address) -> None:
        self._context, self._listen = context, listen
        self._log = context.log
        self._channels = ChannelLog(context.log)
        log_each = context.log.log_each if isinstance(context.log, LineLogger) else None
        self.table = RouteTable(config.profile, options=config.route_options, say=context.log.log, say_each=log_each)
        self.kv_config = KVConfig(_path(config.kv_config_path, context, "kvConfig.json"), say=context.log.log)
        self.cache = RouteCache()
        self.processor = DefaultRequestProcessor(
            config,
            table=self.table,
            kv_config=self.kv_config,
            cache=self.cache,
            clock=context.clock,
            log=context.log,
            record=context.record,
            config_path=_path(config.config_store_path, context, "namesrv.properties"),
        )
        self._server = RemotingServer(
            **context.seams,
            handler=self._handle,
            on_open=self._channels.opened,
            on_close=self._closed,
            idle_s=config.server_channel_max_idle_time_seconds,
            frame_max=config.constants.frame_max,
            fast_path=self._fast_path,
            witness=None if context.record is ignore else Witness(context.record, OF_ROUTES),
            language=LanguageCode.JAVA,
            version=config.profile.version,
        )
        self._client = RemotingClient(**context.seams, language=LanguageCode.JAVA, version=config.profile.version)
        self._recorded_routes: dict[str, object] = {}
        self._unregistrations = asyncio.Event()
        self._tasks = Tasks()
        self._stopping = False

    @property
    def config(self) -> NamesrvConfig:
        """The NameServer's current settings; UPDATE_NAMESRV_CONFIG replaces them."""
        return self.processor.config

    # -- lifecycle ---------------------------------------------------------------------------------------------------

    async def listen(self) -> Address:
        """Read the KV file and bind the port. Raises ValueError (unreadable KV file), OSError (port in use)."""
        self.kv_config.load()
        return await self._server.listen(self._listen)

    async def start(self) -> None:
        self.processor.started_ms = self._context.clock.now_ms()
        self._tasks.spawn(self._scan())
        self._tasks.spawn(self._dump_kv_config())
        if self.config.profile is Profile.V5_X:
            self._tasks.spawn(self._unregister_worker())

    async def stop(self) -> None:
        """Close every channel and wait until all are closed. The route table stays, and no broker is notified."""
        self._stopping = True
        await self._tasks.cancel()
        await self._server.close()
        await self._client.close()

    def _handle(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        response = self.processor(Caller(connection.id, connection.remote_address), request)
        self._settle(self.processor.take_dropped())
        return response

    def _fast_path(self, frame: bytes, connection: Connection) -> bytes | None:
        """The answer to a route request, from the cache where possible; None sends any other frame the ordinary way."""
        answer = self.cache.answer(frame)
        if answer is not None or not may_be_route_request(frame):
            return answer
        try:
            request = decode_frame(frame)
            if request.code != RequestCode.GET_ROUTEINFO_BY_TOPIC or request.is_response or request.is_oneway:
                return None
            caller = Caller(connection.id, connection.remote_address)
            response = self.processor.route_info_by_topic(caller, request)
            response.opaque, response.serialize_type = request.opaque, request.serialize_type
            response.language, response.version = LanguageCode.JAVA, self.config.profile.version
            answer = encode_frame(response)
        except ProtocolError:  # the ordinary path says so in the proper way
            return None
        if response.code == ResponseCode.SUCCESS and request.ext_fields:
            self.cache.learn(frame, request.opaque, request.ext_fields["topic"], answer, response.body)
        return answer

    # -- channels and timers -----------------------------------------------------------------------------------------

    def _closed(self, connection: Connection, reason: str) -> None:
        self._channels.closed(connection, reason)
        if not self._stopping:
            self._channel_lost(connection, reason)

    def _channel_lost(self, connection: Connection, reason: str) -> None:
        """A channel closed, failed or was idle for too long: the broker behind it leaves the table. Each event removes
        one of several brokers on the channel (`NettyConnectManageHandler`)."""
        address = str(connection.remote_address)
        why = DropReason(reason) if reason in list(DropReason) else DropReason.CLOSED
        # a reset and an idle channel are two events there: that one, and the close that it leads to
        for _ in range(1 if why is DropReason.CLOSED else 2):
            self._settle(self.table.on_channel_destroy(connection.id, address, why))

    def _expire_brokers(self) -> None:
        """One tick of the scan: brokers that were silent for too long leave the table, their channels close."""
        expired = self.table.expire(now_ms=self._context.clock.now_ms())
        self._settle(expired.dropped)
        if expired.channel_ids:
            connections = self._server.connections
            for channel_id in expired.channel_ids:
                if channel_id in connections:
                    self._channels.closing(connections[channel_id])
                    connections[channel_id].close()

    async def _scan(self) -> None:
        clock, period_s = self._context.clock, self.config.scan_interval_s
        due_s = clock.monotonic_s() + FIRST_SCAN_S[self.config.profile]
        while True:
            await clock.sleep(max(0.0, due_s - clock.monotonic_s()))
            due_s += period_s
            began_s = clock.monotonic_s()
            try:
                self._expire_brokers()
            except Exception:
                self._log.exception("scanNotActiveBroker exception")
            self._context.record_ended(began_s, "scheduled_task", f="scanNotActiveBroker")

    async def _dump_kv_config(self) -> None:
        await self._context.clock.sleep(FIRST_KV_DUMP_S)
        while True:
            self.kv_config.say_all()
            await self._context.clock.sleep(KV_DUMP_PERIOD_S)

    async def _unregister_worker(self) -> None:
        """5.x: take out whatever is queued, as one batch, as soon as this task gets its turn."""
        while True:
            await self._unregistrations.wait()
            self._unregistrations.clear()
            try:
                batch = self.table.run_unregistrations()
                self._settle(batch.dropped)
                self._notify(batch.notifications)
            except Exception:
                self._log.exception("Handle unregister broker request failed")

    # -- consequences ------------------------------------------------------------------------------------------------

    def _settle(self, dropped: Iterable[Dropped]) -> None:
        """Called after everything that may have changed the table: records routes, deletes stale answers, wakes the
        worker, notifies brokers."""
        for broker in dropped:
            self._context.record(
                "broker_dropped",
                broker_name=broker.broker_name,
                broker_id=broker.broker_id,
                address=broker.address,
                value={"reason": broker.reason.value},
            )
        changed = self.table.take_changed_topics()
        if changed:
            self.cache.forget(changed)
            if self._context.record is not ignore:
                self._record_routes(sorted(changed))
        if self.table.unregistrations_waiting:
            self._unregistrations.set()
        self._notify(self.processor.take_notifications())

    def _record_routes(self, topics: Iterable[str]) -> None:
        for topic in topics:
            route = self.table.route(topic)
            value = None if route is None else canonical(route)
            if value == self._recorded_routes.get(topic):
                continue
            if value is None:
                self._recorded_routes.pop(topic, None)
            else:
                self._recorded_routes[topic] = value
            self._context.record("route", topic=topic, value=value)

    def _notify(self, notifications: Iterable[MinBrokerIdChanged]) -> None:
        for notification in notifications:
            self._log.info(
                "min broker id changed to %s, notify %s, offline broker addr %s",
                notification.min_broker_id,
                list(notification.notify),
                notification.offline_broker_addr or "null",
            )
            for address in notification.notify:
                self._tasks.spawn(self._notify_one(address, notification))

    async def _notify_one(self, address: str, notification: MinBrokerIdChanged) -> None:
        header = NotifyMinBrokerIdChangeRequestHeader(
            min_broker_id=notification.min_broker_id,
            min_broker_addr=notification.min_broker_addr,
            offline_broker_addr=notification.offline_broker_addr,
            ha_broker_addr=notification.ha_broker_addr,
        )
        request = RemotingCommand.request(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, header, oneway=True)
        said, began_s = header.to_ext_fields(), self._context.clock.monotonic_s()
        try:
            await self._client.oneway(Address.parse(address), request, timeout_s=NOTIFY_TIMEOUT_S)
        except (RocketMQError, ValueError) as exc:  # it is oneway: nobody waits for it, and brokers ask by themselves
            self._log.warning("notify %s of min broker id %s failed: %s", address, notification.min_broker_id, exc)
        took_ms = (self._context.clock.monotonic_s() - began_s) * 1000
        about = {"broker_name": notification.broker_name, "address": address, "duration_ms": took_ms}
        self._context.record("min_broker_id_told", value=said, **about)


def _path(configured: str, context: NodeContext, name: str) -> Path | None:
    if configured:
        return Path(configured)
    return None if context.data_dir is None else context.data_dir / name
