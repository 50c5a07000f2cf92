"""Settings that RocketMQ has and a scenario cannot set, each with why: none is accepted and then not obeyed."""

from __future__ import annotations

from ...actors.namesrv.config import known_keys
from ...remoting.node.profile import Profile
from .catalogue import CATALOGUE, settings_for
from .setting import NAME_SERVERS

_SAID_ELSEWHERE = {
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
_NOT_OBEYED = frozenset(
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


def said_elsewhere() -> dict[str, str]:
    """Settings that another key of the scenario says, or that it leaves to nobody; with which."""
    return dict(_SAID_ELSEWHERE)


def not_obeyed() -> frozenset[str]:
    """Settings that our nodes do nothing with."""
    ours = {one.name for one in CATALOGUE}
    of_name_servers = known_keys(Profile.V5_X) - settings_for(*NAME_SERVERS).keys()
    return (_NOT_OBEYED | of_name_servers) - ours - _SAID_ELSEWHERE.keys()


def why_not(name: str) -> str | None:
    """Why a setting that RocketMQ has cannot be set in a scenario; None for a name that it does not have either."""
    if name in _SAID_ELSEWHERE:
        return _SAID_ELSEWHERE[name]
    if name in _NOT_OBEYED or name in known_keys(Profile.V5_X) - settings_for(*NAME_SERVERS).keys():
        return "RocketMQ has it, the nodes of nemesrv do nothing with it"
    return None
