"""The headers of requests that a NameServer answers or sends (codes.md section 1); import them from headers.py.

Requests without a class here have no fields: 106, 206, 304, 318, 319. Upstream: `protocol/header/namesrv/**`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .fields import HeaderFields, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class PutKVConfigRequestHeader(HeaderFields):
    """100"""

    namespace: str
    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetKVConfigRequestHeader(HeaderFields):
    """101"""

    namespace: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetKVConfigResponseHeader(HeaderFields):
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteKVConfigRequestHeader(HeaderFields):
    """102"""

    namespace: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerResponseHeader(HeaderFields):
    ha_server_addr: str | None = None
    master_addr: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnRegisterBrokerRequestHeader(HeaderFields):
    """104"""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GetRouteInfoRequestHeader(HeaderFields):
    """105"""

    topic: str
    accept_standard_json_only: bool | None = None
    zone_mode: bool | None = wire("__ZONE_MODE", default=None)
    zone_name: str | None = wire("__ZONE_NAME", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WipeWritePermOfBrokerRequestHeader(HeaderFields):
    """205"""

    broker_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WipeWritePermOfBrokerResponseHeader(HeaderFields):
    wipe_topic_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddWritePermOfBrokerRequestHeader(HeaderFields):
    """327"""

    broker_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddWritePermOfBrokerResponseHeader(HeaderFields):
    add_topic_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicFromNamesrvRequestHeader(HeaderFields):
    """216; without a cluster name the whole topic goes."""

    topic: str
    cluster_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterTopicRequestHeader(HeaderFields):
    """217"""

    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetKVListByNamespaceRequestHeader(HeaderFields):
    """219"""

    namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetTopicsByClusterRequestHeader(HeaderFields):
    """224"""

    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDataVersionRequestHeader(HeaderFields):
    """322"""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDataVersionResponseHeader(HeaderFields):
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GetBrokerMemberGroupRequestHeader(HeaderFields):
    """901"""

    cluster_name: str
    broker_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyMinBrokerIdChangeRequestHeader(HeaderFields):
    """905, from NameServer to broker"""

    min_broker_id: int | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None
