"""Every body by one name: import them from here.

Where they are: route_bodies.py (topics, routes, clusters, KV), register_body.py (registration), client_bodies.py
(heartbeats, consumers, locks, statistics). Each has encode() -> bytes and decode(bytes), and to_json(), from_json().
"""

from __future__ import annotations

from .client_bodies import (
    CheckClientRequestBody,
    Connection,
    ConsumerConnection,
    ConsumerData,
    ConsumerIdList,
    ConsumeStats,
    GetConsumerListByGroupResponseBody,
    GroupList,
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
    OffsetWrapper,
    ProducerConnection,
    ProducerData,
    SubscriptionData,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicOffset,
    TopicStatsTable,
    UnlockBatchRequestBody,
)
from .register_body import RegisterBrokerBody, TopicConfigSerializeWrapper
from .route_bodies import (
    MULTI_TAG,
    SINGLE_TAG,
    BrokerData,
    BrokerMemberGroup,
    ClusterInfo,
    DataVersion,
    GetBrokerMemberGroupResponseBody,
    KVConfigSerializeWrapper,
    KVTable,
    QueueData,
    TopicConfig,
    TopicList,
    TopicRouteData,
)

__all__ = [
    "MULTI_TAG",
    "SINGLE_TAG",
    "BrokerData",
    "BrokerMemberGroup",
    "CheckClientRequestBody",
    "ClusterInfo",
    "Connection",
    "ConsumeStats",
    "ConsumerConnection",
    "ConsumerData",
    "ConsumerIdList",
    "DataVersion",
    "GetBrokerMemberGroupResponseBody",
    "GetConsumerListByGroupResponseBody",
    "GroupList",
    "HeartbeatData",
    "KVConfigSerializeWrapper",
    "KVTable",
    "LockBatchRequestBody",
    "LockBatchResponseBody",
    "OffsetWrapper",
    "ProducerConnection",
    "ProducerData",
    "QueueData",
    "RegisterBrokerBody",
    "SubscriptionData",
    "SubscriptionGroupConfig",
    "SubscriptionGroupWrapper",
    "TopicConfig",
    "TopicConfigSerializeWrapper",
    "TopicList",
    "TopicOffset",
    "TopicRouteData",
    "TopicStatsTable",
    "UnlockBatchRequestBody",
]
