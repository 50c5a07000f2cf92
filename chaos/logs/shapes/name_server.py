"""What a NameServer says of itself (namesrv.log, namesrv_default.log), 4.9 and 5.x; and what any server says."""

from __future__ import annotations

ADDRESS = (
    r"(?:BrokerIdentityInfo ?\[clusterName=(?P<cluster>[^,\]]*), ?brokerAddr=(?P<address>[^\]]*)\]|(?P<address_>\S+))"
)
"""A broker as a NameServer calls it: 5.x names the cluster, too."""

RESULT = r"(?P<result>OK|Failed)"

WHY = ", because channel destroyed"

SWALLOW = (
    "registerBroker", "onChannelDestroy", "pickupTopicRouteData", "scanNotActiveBroker", "unregisterBroker",
    "batchUnregisterBroker", "getAllTopicList", "getTopicsByCluster", "getSystemTopicList", "getUnitTopics",
    "deleteTopic", "wipeWritePermOfBroker", "wipeWritePermOfBrokerByLock", "operateWritePermOfBroker", "putKVConfig",
    "deleteKVConfig", "persist", "printAllPeriodically", "registerTopic", "getHasUnitSubTopicList",
    "getHasUnitSubUnUnitTopicList", "addWritePermOfBrokerByLock", "operateWritePermOfBrokerByLock", "getKVConfig",
    "getKVListByNamespace",
)  # fmt: skip
"""What a NameServer does that catches its own errors."""

SHAPES: tuple[tuple[str, str], ...] = (
    (
        "name_server_boot",
        r"The Name Server boot success\.(?: serializeType=(?P<serialize>\w+))?(?:, address (?P<address>\S+))?",
    ),
    (
        "broker_registered",
        rf"new broker (?:registered|(?P<spelt>registerd)), {ADDRESS} HA(?:Server|Service): (?P<ha>\S*)",
    ),
    (
        "master_address",
        r"cluster \[(?P<cluster>[^\]]*)\] brokerName \[(?P<broker>[^\]]*)\] master address change from (?P<old>\S+) "
        r"to (?P<address>\S+)",
    ),
    ("topic_registered", r"new topic register(?:e)?d, (?P<topic>\S+) (?P<row>QueueData ?\[.*\])"),
    ("topic_registered", r"Register topic route:(?P<topic>[^,]+), (?P<row>.*QueueData ?\[.*\])"),
    ("topic_changed", r"topic changed, (?P<topic>\S+) OLD: (?P<old>QueueData ?\[.*\]) NEW: (?P<row>QueueData ?\[.*\])"),
    ("crc_mismatch", r"receive registerBroker request, ?crc32 not match, ?from (?P<address>\S+)"),
    (
        "conflict_ignored",
        r"Regist(?:ering|ered) Broker conflicts with the existed one, just ignore\.: *Cluster: ?(?P<cluster>[^,]*), "
        r"BrokerName: ?(?P<broker>[^,]*), BrokerId: ?(?P<id>[^,]*), Old BrokerAddr: ?(?P<old>[^,]*), .*"
        r"New BrokerAddr: ?(?P<address>[^,]*),.*",
    ),
    (
        "topic_refused",
        r"Can't register topicConfigWrapper=.* because broker\[(?P<id>[^\]]*)\]=(?P<address>\S+) has not .*",
    ),
    ("broker_expired", rf"The broker channel expired, {ADDRESS} (?P<timeout_ms>\d+)ms"),
    ("scanned", r"start scanNotActiveBroker"),
    (
        "channel_destroyed",
        r"the broker's channel destroyed, (?:submit the unregister request at once, broker info: (?P<broker_info>.*), "
        r"submit result: (?P<result>\w+)|(?P<address>\S+), clean it's data structure at once)",
    ),
    ("address_removed", rf"remove brokerAddr ?\[(?P<id>-?\d+), (?P<address>[^\]]+)\] from brokerAddrTable{WHY}"),
    ("name_removed", rf"remove brokerName ?\[(?P<broker>[^\]]*)\] from brokerAddrTable{WHY}"),
    (
        "cluster_name_removed",
        rf"remove brokerName ?\[(?P<broker>[^\]]*)\], clusterName ?\[(?P<cluster>[^\]]*)\] from clusterAddrTable{WHY}",
    ),
    ("cluster_removed", rf"remove the clusterName ?\[(?P<cluster>[^\]]*)\] from clusterAddrTable{WHY}.*"),
    ("topic_gone", rf"remove topic ?\[(?P<topic>\S+)\] all queue, from topicQueueTable{WHY}"),
    ("topic_removed", rf"remove topic ?\[(?P<topic>\S+) (?P<row>QueueData ?\[.*\]|null)\], from topicQueueTable{WHY}"),
    ("live_removed", rf"unregisterBroker, remove from brokerLiveTable {RESULT}, {ADDRESS}"),
    ("address_removed", rf"unregisterBroker, remove addr from brokerAddrTable {RESULT}, {ADDRESS}"),
    ("name_removed", r"unregisterBroker, remove name from brokerAddrTable OK, (?P<broker>\S+)"),
    ("cluster_name_removed", rf"unregisterBroker, remove name from clusterAddrTable {RESULT}, (?P<broker>\S+)"),
    ("cluster_removed", r"unregisterBroker, remove cluster from clusterAddrTable (?P<cluster>\S+)"),
    (
        "topic_removed",
        r"removeTopicByBrokerName, remove one broker's topic (?P<topic>\S+) (?P<row>QueueData ?\[.*\])",
    ),
    ("topic_gone", r"removeTopicByBrokerName, remove the topic all queue (?P<topic>\S+)"),
    (
        "unregistrations_full",
        r"Couldn't submit the unregister broker request to handler, broker info: (?P<broker_info>.*)",
    ),
    (
        "min_broker_id_changed",
        r"min broker id changed to (?P<id>-?\d+), notify \[(?P<notified>[^\]]*)\], "
        r"offline broker addr (?P<address>\S+)",
    ),
    (
        "write_perm_wiped",
        r"wipe write perm of broker ?\[(?P<broker>[^\]]*)\], client: (?P<address>\S+), (?P<topics>\d+)",
    ),
    (
        "write_perm_added",
        r"add write perm of broker ?\[(?P<broker>[^\]]*)\], client: (?P<address>\S+), (?P<topics>\d+)",
    ),
    (
        "topic_deleted",
        r"deleteTopic, remove one broker's topic (?P<broker>\S+) (?P<topic>\S+) (?P<row>QueueData ?\[.*\])",
    ),
    ("topic_gone", r"deleteTopic, remove the topic all queue (?:(?P<cluster>\S+) )?(?P<topic>\S+)"),
    ("kv_namespace", r"putKVConfig create new Namespace (?P<namespace>\S+)"),
    (
        "kv_put",
        r"putKVConfig (?P<how>create new|update) config item, Namespace: (?P<namespace>\S*) Key: (?P<key>\S*) "
        r"Value: (?P<value>.*)",
    ),
    ("kv_deleted", r"deleteKVConfig delete a config item, Namespace: (?P<namespace>\S*) Key: (?P<key>\S*).*"),
    ("kv_loaded", r"load KV config table OK"),
    ("kv_size", r"configTable SIZE: (?P<size>\d+)"),
    ("kv_item", r"configTable NS: (?P<namespace>\S*) Key: (?P<key>\S*) Value: (?P<value>.*)"),
    ("config_updated", r"updateConfig called by (?P<address>\S+)"),
    ("config_replaced", r"Replace, key: (?P<key>[^,]*), value: (?P<old>.*) -> (?P<value>.*)"),
    ("not_ready", r"name server not ready\. request code (?P<code>\d+) ?"),
    ("topics_asked", r"getAllTopicListFromNameserver (?P<address>\S+) enable (?P<enable>\w+)"),
    # Of any server: what it met with and swallowed
    (
        "error_swallowed",
        rf"(?P<method>{'|'.join(SWALLOW)})(?: Interrupted)? ?Exception",
    ),
    ("field_refused", r"Failed field \[(?P<field>[^\]]*)\] decoding"),
    ("field_refused", r"the custom field <(?P<field>[^>]*)> is null"),
    ("processing_failed", r"process request exception(?:, remoteAddr: (?P<address>\S+))?"),
    (
        "command",
        r"RemotingCommand \[code=(?P<code>-?\d+), language=(?P<language>\w+), version=(?P<version>-?\d+), "
        r"opaque=(?P<opaque>-?\d+), flag\(B\)=(?P<flag>[01]+), remark=(?P<remark>.*?), extFields=(?P<fields>.*), "
        r"serializeTypeCurrentRPC=(?P<serialize>\w+)\]",
    ),
    ("server_listens", r"RemotingServer started, listening (?P<address>\S+)"),
    ("server_stops", r"[Ss]hutdown hook was invoked, (?P<count>\d+)(?: times)?\.?"),
    (
        "server_stopped",
        r"[Ss]hutdown hook (?:over, consuming|done, consuming) (?:total )?time ?(?:total)?\(ms\): (?P<took_ms>\d+)",
    ),
    (
        "watermark",
        r"\[WATERMARK\] ?(?P<queue>.*?) ?(?:Queue Size|Size): ?(?P<size>\d+) ?SlowTimeMills: ?(?P<slow_ms>\d+)",
    ),
    (
        "watermark",
        r"\[WATERMARK\] ClientQueueSize: ?(?P<size>\d+) ClientQueueSlowTime: ?(?P<slow_ms>\d+) "
        r"DefaultQueueSize: ?(?P<default_size>\d+) DefaultQueueSlowTime: ?(?P<default_slow_ms>\d+)",
    ),
)
