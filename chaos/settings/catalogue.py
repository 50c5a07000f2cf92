"""The catalogue of settings: RocketMQ's name, class, default, allowed values, and the nodes that have it.

docs/settings.md is generated from it. It has settings that our nodes obey; RocketMQ's others are below and are refused
by name. Defaults are those of the nodes' configurations. Read from Apache RocketMQ 4.9.8 and 5.3.3; `constant`: Java
has a literal instead of a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from ...actors.namesrv.config import known_keys
from ...remoting.node.profile import Profile
from ..topology import NodeKind
from .client_settings import OF_CLIENTS, OF_CONSUMERS, OF_PRODUCERS
from .server_settings import OF_BROKERS, OF_NAME_SERVERS
from .setting import BROKERS, CLIENTS, CONSUMERS, NAME_SERVERS, PRODUCERS, Setting

CATALOGUE: tuple[Setting, ...] = (*OF_NAME_SERVERS, *OF_BROKERS, *OF_CLIENTS, *OF_PRODUCERS, *OF_CONSUMERS)
"""Every setting that our nodes obey. A name may occur twice, for different nodes."""

GROUPS: Mapping[str, tuple[NodeKind, ...]] = {
    "name_servers": NAME_SERVERS,
    "brokers": BROKERS,
    "clients": CLIENTS,
    "producers": PRODUCERS,
    "consumers": CONSUMERS,
}
"""Groups allowed in `config:` beside single nodes; a smaller group's value has priority."""


def group_of(setting: Setting) -> tuple[NodeKind, ...]:
    """The smallest group with every kind of node that has the setting."""
    return min((kinds for kinds in GROUPS.values() if set(setting.taken_by) <= set(kinds)), key=len)


@cache
def settings_for(*kinds: NodeKind) -> Mapping[str, Setting]:
    """Name to setting, for settings of any of these kinds."""
    return MappingProxyType({one.name: one for one in CATALOGUE if set(one.taken_by) & set(kinds)})


# -- settings that RocketMQ has and a scenario cannot set, each with why: none is accepted and then not obeyed

SAID_ELSEWHERE = {
    "messageModel": "say `workload: {broadcasting: true}`",
    "consumeFromWhere": "the workload's consumers read from the first offset",
    "namesrvAddr": "the list is the cluster's own",
    "brokerName": "brokers are named by the cluster",
    "brokerId": "brokers of a scenario are masters, and its slaves have those of their names",
    "brokerClusterName": "the brokers of a scenario are one cluster",
    "listenPort": "the harness gives the ports",
    "producerGroup": "the workload's own",
    "consumerGroup": "the workload's own",
    "deleteTopicWithBrokerRegistration": "a registration of one topic then deletes the others; there is no window",
    "instanceName": "each client is an instance of its own",
}

NOT_OBEYED = frozenset(
    {
        # BrokerConfig, MessageStoreConfig
        "aclEnable",
        "autoCreateTopic",
        "autoDeleteUnusedStats",
        "brokerIP1",
        "brokerIP2",
        "clientManagerThreadPoolQueueCapacity",
        "commercialEnable",
        "compatibleWithOldNameSrv",
        "consumerFallbehindThreshold",
        "deleteWhen",
        "diskMaxUsedSpaceRatio",
        "enableSingleTopicRegister",
        "enableSplitRegistration",
        "fetchNamesrvAddrByAddressServer",
        "fileReservedTime",
        "haListenPort",
        "mappedFileSizeCommitLog",
        "mappedFileSizeConsumeQueue",
        "pullMessageThreadPoolNums",
        "sendMessageThreadPoolNums",
        "slaveReadEnable",
        "storePathCommitLog",
        "storePathRootDir",
        "syncBrokerMemberGroupPeriod",
        "traceOn",
        "transientStorePoolEnable",
        "updateNameServerAddrPeriod",
        "waitTimeMillsInSendQueue",
        "zoneName",
        # ClientConfig, NettyClientConfig
        "clientAsyncSemaphoreValue",
        "clientCallbackExecutorThreads",
        "clientOnewaySemaphoreValue",
        "clientWorkerThreads",
        "concurrentHeartbeatThreadPoolSize",
        "decodeDecompressBody",
        "decodeReadBody",
        "detectInterval",
        "detectTimeout",
        "enableHeartbeatChannelEventListener",
        "enableStreamRequestType",
        "fetchNamesrvAddrInterval",
        "language",
        "namespace",
        "sendLatencyEnable",
        "socksProxyConfig",
        "unitMode",
        "unitName",
        "useHeartbeatV2",
        "useTLS",
        "vipChannelEnabled",
        # DefaultMQProducer, DefaultMQPushConsumer
        "adjustThreadPoolNumsThreshold",
        "allocateMessageQueueStrategy",
        "autoBatch",
        "brokerSuspendMaxTimeMillis",
        "clientRebalance",
        "consumeThreadMin",
        "consumeTimeout",
        "consumeTimestamp",
        "consumerTimeoutMillisWhenSuspend",
        "createTopicKey",
        "defaultTopicQueueNums",
        "popBatchNums",
        "popInvisibleTime",
        "pullInterval",
        "pullThresholdForTopic",
        "pullThresholdSizeForTopic",
        "retryTimesWhenSendAsyncFailed",
        "sendMessageWithVIPChannel",
        "suspendCurrentQueueTimeMillis",
    }
)


def why_not(name: str) -> str | None:
    """Why a RocketMQ setting cannot be set in a scenario; None for an unknown name."""
    if name in SAID_ELSEWHERE:
        return SAID_ELSEWHERE[name]
    if name in NOT_OBEYED or name in known_keys(Profile.V5_X) - settings_for(*NAME_SERVERS).keys():
        return "RocketMQ has it, the nodes of nemesrv do nothing with it"
    return None
