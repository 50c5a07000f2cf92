"""The headers of requests that a NameServer answers or sends (codes.md section 1); import them from headers.py.
Requests without a class here have no fields: 106, 206, 304, 318, 319. Upstream: `protocol/header/namesrv/**`."""

from .fields import HeaderFields, wire


class PutKVConfigRequestHeader(HeaderFields):
    """100"""

    namespace: str
    key: str
    value: str


class GetKVConfigRequestHeader(HeaderFields):
    """101 and 102"""

    namespace: str
    key: str


DeleteKVConfigRequestHeader = GetKVConfigRequestHeader


class GetKVConfigResponseHeader(HeaderFields):
    value: str | None = None


class RegisterBrokerRequestHeader(HeaderFields):
    """103"""

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
    """104 and 322"""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: int


QueryDataVersionRequestHeader = UnRegisterBrokerRequestHeader


class GetRouteInfoRequestHeader(HeaderFields):
    """105"""

    topic: str
    accept_standard_json_only: bool | None = None
    zone_mode: bool | None = wire("__ZONE_MODE", default=None)
    zone_name: str | None = wire("__ZONE_NAME", default=None)


class WipeWritePermOfBrokerRequestHeader(HeaderFields):
    """205 and 327"""

    broker_name: str


AddWritePermOfBrokerRequestHeader = WipeWritePermOfBrokerRequestHeader


class WipeWritePermOfBrokerResponseHeader(HeaderFields):
    wipe_topic_count: int


class AddWritePermOfBrokerResponseHeader(HeaderFields):
    add_topic_count: int


class DeleteTopicFromNamesrvRequestHeader(HeaderFields):
    """216; without a cluster name the whole topic goes."""

    topic: str
    cluster_name: str | None = None


class RegisterTopicRequestHeader(HeaderFields):
    """217"""

    topic: str


class GetKVListByNamespaceRequestHeader(HeaderFields):
    """219"""

    namespace: str


class GetTopicsByClusterRequestHeader(HeaderFields):
    """224"""

    cluster: str


class QueryDataVersionResponseHeader(HeaderFields):
    changed: bool


class GetBrokerMemberGroupRequestHeader(HeaderFields):
    """901"""

    cluster_name: str
    broker_name: str


class BrokerHeartbeatRequestHeader(HeaderFields):
    """904"""

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
    """905, from NameServer to broker"""

    min_broker_id: int | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None
