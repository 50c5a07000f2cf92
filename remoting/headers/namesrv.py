"""The headers of requests that a NameServer answers or sends; import them from headers.py. Each class's docstring says
which request codes have the header (codes.py). Requests without a class here have no fields: 106, 206, 304, 318, 319.
Upstream: `protocol/header/namesrv/**`."""

from .fields import HeaderFields, wire


class PutKVConfigRequestHeader(HeaderFields):
    """Request 100."""

    namespace: str
    key: str
    value: str


class GetKVConfigRequestHeader(HeaderFields):
    """Requests 101 and 102."""

    namespace: str
    key: str


DeleteKVConfigRequestHeader = GetKVConfigRequestHeader


class GetKVConfigResponseHeader(HeaderFields):
    value: str | None = None


class RegisterBrokerRequestHeader(HeaderFields):
    """Request 103."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: int
    heartbeat_timeout_millis: int | None = None
    enable_acting_master: bool | None = None
    """None: the broker is older than acting masters."""
    compressed: bool = False
    body_crc32: int = 0
    """0: not checked."""
    zone_name: str | None = wire("__ZONE_NAME", default=None)


class RegisterBrokerResponseHeader(HeaderFields):
    ha_server_addr: str | None = None
    master_addr: str | None = None


class UnRegisterBrokerRequestHeader(HeaderFields):
    """Requests 104 and 322."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: int


QueryDataVersionRequestHeader = UnRegisterBrokerRequestHeader


class GetRouteInfoRequestHeader(HeaderFields):
    """Request 105."""

    topic: str
    accept_standard_json_only: bool | None = None
    zone_mode: bool | None = wire("__ZONE_MODE", default=None)
    zone_name: str | None = wire("__ZONE_NAME", default=None)


class WipeWritePermOfBrokerRequestHeader(HeaderFields):
    """Requests 205 and 327."""

    broker_name: str


AddWritePermOfBrokerRequestHeader = WipeWritePermOfBrokerRequestHeader


class WipeWritePermOfBrokerResponseHeader(HeaderFields):
    wipe_topic_count: int


class AddWritePermOfBrokerResponseHeader(HeaderFields):
    add_topic_count: int


class DeleteTopicFromNamesrvRequestHeader(HeaderFields):
    """Request 216. Without a cluster name the topic is deleted for all clusters."""

    topic: str
    cluster_name: str | None = None


class RegisterTopicRequestHeader(HeaderFields):
    """Request 217."""

    topic: str


class GetKVListByNamespaceRequestHeader(HeaderFields):
    """Request 219."""

    namespace: str


class GetTopicsByClusterRequestHeader(HeaderFields):
    """Request 224."""

    cluster: str


class QueryDataVersionResponseHeader(HeaderFields):
    changed: bool


class GetBrokerMemberGroupRequestHeader(HeaderFields):
    """Request 901."""

    cluster_name: str
    broker_name: str


class BrokerHeartbeatRequestHeader(HeaderFields):
    """Request 904."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: int | None = None
    epoch: int | None = None
    max_offset: int | None = None
    confirm_offset: int | None = None
    heartbeat_timeout_mills: int | None = None
    election_priority: int | None = None


class NotifyMinBrokerIdChangeRequestHeader(HeaderFields):
    """Request 905, from NameServer to broker."""

    min_broker_id: int | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None
