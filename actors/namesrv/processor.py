"""A method for each request code that a NameServer answers: the method reads header and body, queries or changes the
route table, and returns the response.

The processor has no channels and timers. After each request the server takes the brokers that the request removed
(`take_dropped`) and the topics whose routes it changed (the route table's `take_changed_topics`).

If a required header field is missing or unreadable, the request is refused with code 1 and a remark that names the
field (docs/compatibility.md); RocketMQ would continue with null. An unknown request code gets no answer in 4.9, and
code 3 in 5.x.

Upstream: `DefaultRequestProcessor`, `ClientRequestProcessor` (5.x), tags rocketmq-all-4.9.8 and rocketmq-all-5.3.3.
"""

import logging
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from ...remoting import fastjson
from ...remoting.bodies import route as bodies
from ...remoting.bodies.register_rows import read_rows
from ...remoting.codes import V3_0_11, V4_9_4, RequestCode, ResponseCode
from ...remoting.command import RemotingCommand
from ...remoting.errors import ProtocolError
from ...remoting.headers import namesrv as headers
from ...remoting.headers.fields import HeaderError
from ...remoting.node.clock import Clock
from ...remoting.node.network import Address
from ...remoting.node.profile import Profile
from ...remoting.node.recording import Recorder
from ...remoting.properties import format_properties, parse_properties
from ..errors import ConfigError
from .config import NamesrvConfig
from .kv_config import ORDER_TOPIC_CONFIG, KVConfig
from .route_cache import RouteCache
from .route_table import UNIT_FLAG, UNIT_SUB_FLAG, RouteTable, filter_by_zone
from .tables import Dropped, MinBrokerIdChanged, Registration, Unregistration

Method = Callable[["Caller", RemotingCommand], RemotingCommand]

NO_CODE_SET = "not set any response code"
"""The remark that a fresh response has upstream, and that 901 forgets to clear."""

_SHOWN_MAX = 1024
"""How many characters of an unknown name an answer's remark repeats."""


class Caller:
    """The sender of a request: its remote address and its channel's id. When a channel is lost, the channel's brokers
    are found by the channel's id."""

    __slots__ = ("channel_id", "remote_address")

    def __init__(self, channel_id: int, remote_address: Address) -> None:
        self.channel_id, self.remote_address = channel_id, remote_address


class DefaultRequestProcessor:
    def __init__(
        self,
        config: NamesrvConfig,
        *,
        table: RouteTable,
        kv_config: KVConfig,
        cache: RouteCache,
        clock: Clock,
        log: logging.Logger,
        record: Recorder,
        config_path: Path | None = None,
    ) -> None:
        self.config = config
        self.started_ms = clock.now_ms()
        self._table, self._kv, self._cache = table, kv_config, cache
        self._clock, self._log, self._record = clock, log, record
        self._config_path = config_path
        self._5_x = config.profile is Profile.V5_X
        self._dropped: list[Dropped] = []
        self._notifications: list[MinBrokerIdChanged] = []
        self._methods = self._methods_by_code()

    def _methods_by_code(self) -> dict[int, Method]:
        methods: dict[int, Method] = {
            RequestCode.PUT_KV_CONFIG: self._put_kv_config,
            RequestCode.GET_KV_CONFIG: self._get_kv_config,
            RequestCode.DELETE_KV_CONFIG: self._delete_kv_config,
            RequestCode.QUERY_DATA_VERSION: self._query_data_version,
            RequestCode.REGISTER_BROKER: self._register_broker,
            RequestCode.UNREGISTER_BROKER: self._unregister_broker,
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self.route_info_by_topic,
            RequestCode.GET_BROKER_CLUSTER_INFO: self._broker_cluster_info,
            RequestCode.WIPE_WRITE_PERM_OF_BROKER: self._wipe_write_perm_of_broker,
            RequestCode.ADD_WRITE_PERM_OF_BROKER: self._add_write_perm_of_broker,
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: self._all_topic_list,
            RequestCode.DELETE_TOPIC_IN_NAMESRV: self._delete_topic,
            RequestCode.GET_KVLIST_BY_NAMESPACE: self._kv_list_by_namespace,
            RequestCode.GET_TOPICS_BY_CLUSTER: self._topics_by_cluster,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: self._system_topic_list,
            RequestCode.GET_UNIT_TOPIC_LIST: partial(self._flagged_topic_list, UNIT_FLAG, UNIT_FLAG),
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: partial(self._flagged_topic_list, UNIT_SUB_FLAG, UNIT_SUB_FLAG),
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: partial(
                self._flagged_topic_list, UNIT_FLAG | UNIT_SUB_FLAG, UNIT_SUB_FLAG
            ),
            RequestCode.UPDATE_NAMESRV_CONFIG: self._update_config,
            RequestCode.GET_NAMESRV_CONFIG: self._get_config,
        }
        if self._5_x:
            methods |= {
                RequestCode.REGISTER_TOPIC_IN_NAMESRV: self._register_topic,
                RequestCode.GET_BROKER_MEMBER_GROUP: self._broker_member_group,
                RequestCode.BROKER_HEARTBEAT: self._broker_heartbeat,
            }
        return methods

    def __call__(self, caller: Caller, request: RemotingCommand) -> RemotingCommand | None:
        """The response; None where RocketMQ does not answer. No request of a peer makes it raise."""
        method = self._methods.get(request.code)
        if method is None:
            if not self._5_x:
                return None
            code = ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            return RemotingCommand.response(code, f" request type {request.code} not supported")
        try:
            return method(caller, request)
        except HeaderError as exc:
            self._log.error("Failed field [%s] decoding", exc.field)
            return _refused(str(exc))
        except ProtocolError as exc:
            self._log.error("process request exception, remoteAddr: %s: %s", caller.remote_address, exc)
            return _refused(f"{type(exc).__name__}: {exc}")

    def take_dropped(self) -> list[Dropped]:
        """Return the brokers that requests have removed since the last call of `take_dropped`."""
        dropped, self._dropped = self._dropped, []
        return dropped

    def take_notifications(self) -> list[MinBrokerIdChanged]:
        """Return the notifications to brokers that registrations have caused since the last call of
        `take_notifications`."""
        notifications, self._notifications = self._notifications, []
        return notifications

    # -- routes ------------------------------------------------------------------------------------------------------

    def route_info_by_topic(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        """Request 105: the topic's route, in the JSON dialect that the client can read, or code 17."""
        header = headers.GetRouteInfoRequestHeader.from_ext_fields(request.ext_fields)
        if not self._ready():
            self._log.warning("name server not ready. request code %s ", request.code)
            return _refused("name server not ready")
        # 4.9.0 to 4.9.3 knew only the default dialect; both profiles here are newer
        standard_json = request.version >= V4_9_4 or bool(header.accept_standard_json_only)
        zone = header.zone_name if self._5_x and header.zone_mode else None
        if zone and zone.strip():
            route = self._route(header.topic)
            body = None if route is None else filter_by_zone(route, zone).encode(standard_json=False)
        else:
            body = self._route_body(header.topic, standard_json)
        if body is not None:
            return RemotingCommand.response(body=body)
        return topic_not_exist(header.topic, self.config.profile)

    def _ready(self) -> bool:
        if not self._5_x or not self.config.need_wait_for_service:
            return True
        return self._clock.now_ms() - self.started_ms >= self.config.wait_seconds_for_service * 1000

    def _route(self, topic: str) -> bodies.TopicRouteData | None:
        route = self._table.route(topic)
        if route is not None and self.config.order_message_enable:
            return replace(route, order_topic_conf=self._kv.get(ORDER_TOPIC_CONFIG, topic))
        return route

    def _route_body(self, topic: str, standard_json: bool) -> bytes | None:
        body = self._cache.body(topic, standard_json)
        if body is None:
            route = self._route(topic)
            if route is None:
                return None
            body = route.encode(standard_json=standard_json)
            self._cache.keep_body(topic, standard_json, body)
        return body

    def _broker_cluster_info(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        return RemotingCommand.response(body=self._table.cluster_info().encode())

    # -- brokers -----------------------------------------------------------------------------------------------------

    def _register_broker(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        header = headers.RegisterBrokerRequestHeader.from_ext_fields(request.ext_fields)
        for name, value in (("brokerName", header.broker_name), ("brokerAddr", header.broker_addr)):
            if not value:  # what Java reads from an empty text in a ROCKETMQ header is null
                raise HeaderError(name, None)
        response = self._registered(caller, request, header)
        self._record(
            "registration",
            broker_name=header.broker_name,
            broker_id=header.broker_id,
            address=header.broker_addr,
            code=response.code,
        )
        return response

    def _registered(
        self, caller: Caller, request: RemotingCommand, header: headers.RegisterBrokerRequestHeader
    ) -> RemotingCommand:
        if header.body_crc32 and zlib.crc32(request.body) & 0x7FFFFFFF != header.body_crc32:
            self._log.warning("receive registerBroker request,crc32 not match,from %s", caller.remote_address)
            return _refused("crc32 not match", header={})
        try:
            last = self._table.standing(header.cluster_name, header.broker_name, header.broker_addr, header.broker_id)
            read = read_rows(request.body, header.broker_name, version=request.version, last=last)
            body = read.body
            queue_mappings = {
                topic: bodies.TopicQueueMappingInfo.from_json(info).to_json()
                for topic, info in body.queue_mappings.items()
            }
        except ProtocolError as exc:
            self._log.error("process request exception, remoteAddr: %s: %s", caller.remote_address, exc)
            return _refused(f"Failed to decode RegisterBrokerBody, {exc}")
        filter_servers = None if request.version < V3_0_11 else body.filter_server_list  # that old a broker sends none
        result = self._table.register(
            Registration(
                cluster_name=header.cluster_name,
                broker_name=header.broker_name,
                broker_addr=header.broker_addr,
                broker_id=header.broker_id,
                ha_server_addr=header.ha_server_addr,
                channel_id=caller.channel_id,
                data_version=body.data_version,
                rows=read.rows,
                pieces=read.pieces,
                filter_servers=filter_servers,
                queue_mappings=queue_mappings,
                zone_name=header.zone_name,
                heartbeat_timeout_ms=header.heartbeat_timeout_millis,
                enable_acting_master=header.enable_acting_master,
            ),
            now_ms=self._clock.now_ms(),
        )
        if result.refused is not None:
            return _refused(result.refused, header={})
        if result.notification is not None:
            self._notifications.append(result.notification)
        order_conf = None
        if not self._5_x or self.config.return_order_topic_config_to_broker:
            order_conf = self._kv.namespace(ORDER_TOPIC_CONFIG)
        return RemotingCommand.response(
            header=headers.RegisterBrokerResponseHeader(
                ha_server_addr=result.ha_server_addr, master_addr=result.master_addr
            ),
            body=b"" if order_conf is None else bodies.KVTable(table=order_conf).encode(),
        )

    def _unregister_broker(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        header = headers.UnRegisterBrokerRequestHeader.from_ext_fields(request.ext_fields)
        unregistration = Unregistration(
            cluster_name=header.cluster_name,
            broker_name=header.broker_name,
            broker_addr=header.broker_addr,
            broker_id=header.broker_id,
        )
        if not self._5_x:
            self._dropped += self._table.unregister(unregistration)
        elif not self._table.submit_unregister(unregistration):
            self._log.warning(
                "Couldn't submit the unregister broker request to handler, broker info: %s", unregistration
            )
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR)
        return RemotingCommand.response()

    def _query_data_version(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        header = headers.QueryDataVersionRequestHeader.from_ext_fields(request.ext_fields)
        version = bodies.DataVersion.decode(request.body)
        changed, held = self._table.query_data_version(
            header.cluster_name, header.broker_addr, version, now_ms=self._clock.now_ms()
        )
        return RemotingCommand.response(
            header=headers.QueryDataVersionResponseHeader(changed=changed),
            body=b"" if held is None else self._encoded(held),
        )

    def _encoded(self, version: bodies.DataVersion) -> bytes:
        """The data version as JSON. 5.x writes stateVersion even if it is 0; 4.9 never writes it."""
        fields: dict[str, object] = {"counter": version.counter, "timestamp": version.timestamp}
        if self._5_x:
            fields["stateVersion"] = version.state_version
        return fastjson.dumps(fields)

    def _broker_heartbeat(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        header = headers.BrokerHeartbeatRequestHeader.from_ext_fields(request.ext_fields)
        self._table.heartbeat(header.cluster_name, header.broker_addr, now_ms=self._clock.now_ms())
        return RemotingCommand.response()

    def _broker_member_group(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        header = headers.GetBrokerMemberGroupRequestHeader.from_ext_fields(request.ext_fields)
        group = bodies.BrokerMemberGroup(
            cluster=header.cluster_name,
            broker_name=header.broker_name,
            broker_addrs=self._table.broker_addrs(header.broker_name),
        )
        body = bodies.GetBrokerMemberGroupResponseBody(broker_member_group=group).encode()
        return RemotingCommand.response(remark=NO_CODE_SET, body=body)

    def _wipe_write_perm_of_broker(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        header = headers.WipeWritePermOfBrokerRequestHeader.from_ext_fields(request.ext_fields)
        count = self._table.wipe_write_perm(header.broker_name)
        self._record("write_perm", broker_name=header.broker_name, value={"wiped": count})
        self._log.info(
            "wipe write perm of broker[%s], client: %s, %s", header.broker_name, caller.remote_address, count
        )
        return RemotingCommand.response(header=headers.WipeWritePermOfBrokerResponseHeader(wipe_topic_count=count))

    def _add_write_perm_of_broker(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        header = headers.AddWritePermOfBrokerRequestHeader.from_ext_fields(request.ext_fields)
        count = self._table.add_write_perm(header.broker_name)
        self._record("write_perm", broker_name=header.broker_name, value={"added": count})
        self._log.info("add write perm of broker[%s], client: %s, %s", header.broker_name, caller.remote_address, count)
        return RemotingCommand.response(header=headers.AddWritePermOfBrokerResponseHeader(add_topic_count=count))

    # -- topics ------------------------------------------------------------------------------------------------------

    def _all_topic_list(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        if self._5_x:
            enabled = self.config.enable_all_topic_list
            shown = "true" if enabled else "false"
            self._log.warning("getAllTopicListFromNameserver /%s enable %s", caller.remote_address, shown)
            if not enabled:
                return _refused("disable")
        return _topic_list(self._table.topics())

    def _delete_topic(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        header = headers.DeleteTopicFromNamesrvRequestHeader.from_ext_fields(request.ext_fields)
        self._table.delete_topic(header.topic, header.cluster_name)
        return RemotingCommand.response()

    def _register_topic(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        header = headers.RegisterTopicRequestHeader.from_ext_fields(request.ext_fields)
        if request.body:
            self._table.register_topic(header.topic, bodies.TopicRouteData.decode(request.body).queue_datas)
        return RemotingCommand.response()

    def _topics_by_cluster(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        if not self._lists_topics():
            return _refused("disable")
        header = headers.GetTopicsByClusterRequestHeader.from_ext_fields(request.ext_fields)
        return _topic_list(self._table.topics_of_cluster(header.cluster))

    def _system_topic_list(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        names, broker_addr = self._table.system_topics()
        return _topic_list(names, broker_addr)

    def _flagged_topic_list(self, mask: int, wanted: int, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        return _topic_list(self._table.topics_flagged(mask, wanted)) if self._lists_topics() else _refused("disable")

    def _lists_topics(self) -> bool:
        return not self._5_x or self.config.enable_topic_list

    # -- KV ----------------------------------------------------------------------------------------------------------

    def _put_kv_config(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        fields = request.ext_fields or {}
        namespace, key = fields.get("namespace"), fields.get("key")
        if namespace is None or key is None:
            return _refused("namespace or key is null")
        try:
            self._kv.put(namespace, key, fields.get("value"))
        except ValueError as exc:
            return _refused(str(exc))
        self._after_kv(namespace)
        return RemotingCommand.response()

    def _get_kv_config(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        header = headers.GetKVConfigRequestHeader.from_ext_fields(request.ext_fields)
        value = self._kv.get(header.namespace, header.key)
        if value is not None:
            return RemotingCommand.response(header=headers.GetKVConfigResponseHeader(value=value))
        namespace, key = header.namespace[:_SHOWN_MAX], header.key[:_SHOWN_MAX]
        remark = f"No config item, Namespace: {namespace} Key: {key}"
        return RemotingCommand.response(ResponseCode.QUERY_NOT_FOUND, remark, header={})

    def _delete_kv_config(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        header = headers.DeleteKVConfigRequestHeader.from_ext_fields(request.ext_fields)
        self._kv.delete(header.namespace, header.key)
        self._after_kv(header.namespace)
        return RemotingCommand.response()

    def _kv_list_by_namespace(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        header = headers.GetKVListByNamespaceRequestHeader.from_ext_fields(request.ext_fields)
        items = self._kv.namespace(header.namespace)
        if items is not None:
            return RemotingCommand.response(body=bodies.KVTable(table=items).encode())
        remark = f"No config item, Namespace: {header.namespace[:_SHOWN_MAX]}"
        return RemotingCommand.response(ResponseCode.QUERY_NOT_FOUND, remark)

    def _after_kv(self, namespace: str) -> None:
        if namespace == ORDER_TOPIC_CONFIG and self.config.order_message_enable:
            self._cache.clear()

    # -- own settings ------------------------------------------------------------------------------------------------

    def _update_config(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        """318: known keys take their new values at once; listen port and thread numbers only after a restart."""
        self._log.info("updateConfig called by %s", caller.remote_address)
        if not request.body:
            return RemotingCommand.response()
        try:
            properties = parse_properties(request.body)
        except ValueError as exc:
            return _refused(f"string2Properties error: {exc}")
        if self.config.black_list & properties.keys():
            return RemotingCommand.response(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
        try:
            config = self.config.updated(properties, source="updateConfig")
        except ConfigError as exc:
            return _refused(str(exc))
        before, after = self.config.properties(), config.properties()
        for key in after:
            if before.get(key) != after[key]:
                self._log.info("Replace, key: %s, value: %s -> %s", key, before.get(key), after[key])
        self.config = config
        self._table.set_options(config.route_options)
        self._cache.clear()
        self._store_config()
        return RemotingCommand.response()

    def _store_config(self) -> None:
        if self._config_path is None:
            return
        try:
            self._config_path.parent.mkdir(parents=True, exist_ok=True)
            temporary = self._config_path.with_name(self._config_path.name + ".tmp")
            temporary.write_text(format_properties(self.config.stored_properties()), encoding="utf-8")
            temporary.replace(self._config_path)
        except OSError as exc:
            self._log.error("persist string2File error, %s: %s", self._config_path, exc)

    def _get_config(self, caller: Caller, request: RemotingCommand) -> RemotingCommand:
        return RemotingCommand.response(body=format_properties(self.config.properties()).encode())


def topic_not_exist(topic: str, profile: Profile) -> RemotingCommand:
    return RemotingCommand.response(
        ResponseCode.TOPIC_NOT_EXIST,
        f"No topic route info in name server for the topic: {topic[:_SHOWN_MAX]}\n"
        f"See {profile.faq_url} for further details.",
    )


def _refused(remark: str, *, header: Mapping[str, str] | None = None) -> RemotingCommand:
    return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, remark, header=header)


def _topic_list(topics: tuple[str, ...], broker_addr: str | None = None) -> RemotingCommand:
    return RemotingCommand.response(body=bodies.TopicList(topic_list=topics, broker_addr=broker_addr).encode())
