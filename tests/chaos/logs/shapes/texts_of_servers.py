"""Texts of NameServers, of channels and of brokers, of 4.9 and of 5.x: (text, event, fields)."""

IDENTITY = "BrokerIdentityInfo [clusterName=DefaultCluster, brokerAddr=10.0.0.1:10911]"
ROW = "QueueData [brokerName=broker-a, readQueueNums=4, writeQueueNums=4, perm=6, topicSysFlag=0]"
ROUTE = f"TopicRouteData [orderTopicConf=null, queueDatas=[{ROW}], brokerDatas=[], filterServerTable={{}}]"
QUEUE = "MessageQueue [topic=orders, brokerName=broker-a, queueId=0]"
COMMAND = (
    "RemotingCommand [code=103, language=JAVA, version=407, opaque=3, flag(B)=0, remark=null, extFields={a=b}, "
    "serializeTypeCurrentRPC=JSON]"
)
BROKER = {"address": "10.0.0.1:10911"}
HERE = "10.0.0.9:9876"

NAME_SERVER = [
    ("The Name Server boot success. serializeType=JSON", "name_server_boot", {"serialize": "JSON"}),
    (
        "The Name Server boot success. serializeType=JSON, address 0.0.0.0:9876",
        "name_server_boot",
        {"serialize": "JSON", "address": "0.0.0.0:9876"},
    ),
    ("new broker registered, 10.0.0.1:10911 HAServer: 10.0.0.1:10912", "broker_registered", BROKER),
    (
        f"new broker registered, {IDENTITY} HAService: 10.0.0.1:10912",
        "broker_registered",
        {"cluster": "DefaultCluster", "address": "10.0.0.1:10911", "ha": "10.0.0.1:10912"},
    ),
    (
        "cluster [c] brokerName [broker-a] master address change from null to 10.0.0.1:10911",
        "master_address",
        {"cluster": "c", "broker": "broker-a", "old": "null", **BROKER},
    ),
    (f"new topic registered, T {ROW}", "topic_registered", {"topic": "T", "row": ROW}),
    (f"topic changed, T OLD: {ROW} NEW: {ROW}", "topic_changed", {"topic": "T", "old": ROW, "row": ROW}),
    ("receive registerBroker request,crc32 not match,from 10.0.0.1:4", "crc_mismatch", {"address": "10.0.0.1:4"}),
    (
        "Registering Broker conflicts with the existed one, just ignore.: Cluster:c, BrokerName:b, BrokerId:0, "
        "Old BrokerAddr:10.0.0.1:1, Old Version:2, New BrokerAddr:10.0.0.4:1, New Version:1.",
        "conflict_ignored",
        {"old": "10.0.0.1:1", "address": "10.0.0.4:1", "id": "0"},
    ),
    (
        "Can't register topicConfigWrapper=[T] because broker[0]=10.0.0.1:10911 has not registered.",
        "topic_refused",
        {"id": "0", **BROKER},
    ),
    ("The broker channel expired, 10.0.0.1:10911 120000ms", "broker_expired", {"timeout_ms": "120000", **BROKER}),
    (f"The broker channel expired, {IDENTITY} 10000ms", "broker_expired", {"timeout_ms": "10000", **BROKER}),
    ("start scanNotActiveBroker", "scanned", {}),
    (
        "the broker's channel destroyed, 10.0.0.1:10911, clean it's data structure at once",
        "channel_destroyed",
        BROKER,
    ),
    (
        "the broker's channel destroyed, submit the unregister request at once, broker info: "
        "org.apache.rocketmq.X@1f, submit result: true",
        "channel_destroyed",
        {"broker_info": "org.apache.rocketmq.X@1f", "result": "true"},
    ),
    (
        "remove brokerAddr[1, 10.0.0.1:10911] from brokerAddrTable, because channel destroyed",
        "address_removed",
        {"id": "1", **BROKER},
    ),
    (
        f"unregisterBroker, remove addr from brokerAddrTable Failed, {IDENTITY}",
        "address_removed",
        {"result": "Failed", "cluster": "DefaultCluster", **BROKER},
    ),
    (
        "remove brokerName[broker-a] from brokerAddrTable, because channel destroyed",
        "name_removed",
        {"broker": "broker-a"},
    ),
    ("unregisterBroker, remove name from brokerAddrTable OK, broker-a", "name_removed", {"broker": "broker-a"}),
    (
        "remove brokerName[broker-a], clusterName[c] from clusterAddrTable, because channel destroyed",
        "cluster_name_removed",
        {"broker": "broker-a", "cluster": "c"},
    ),
    (
        "remove the clusterName[c] from clusterAddrTable, because channel destroyed and no broker in this cluster",
        "cluster_removed",
        {"cluster": "c"},
    ),
    ("unregisterBroker, remove name from clusterAddrTable OK, broker-a", "cluster_name_removed", {"result": "OK"}),
    ("unregisterBroker, remove cluster from clusterAddrTable c", "cluster_removed", {"cluster": "c"}),
    ("remove topic[T null], from topicQueueTable, because channel destroyed", "topic_removed", {"row": "null"}),
    (f"remove topic[T {ROW}], from topicQueueTable, because channel destroyed", "topic_removed", {"row": ROW}),
    ("remove topic[T] all queue, from topicQueueTable, because channel destroyed", "topic_gone", {"topic": "T"}),
    ("unregisterBroker, remove from brokerLiveTable OK, 10.0.0.1:10911", "live_removed", {"result": "OK", **BROKER}),
    (f"unregisterBroker, remove from brokerLiveTable OK, {IDENTITY}", "live_removed", {"result": "OK", **BROKER}),
    ("unregisterBroker, remove addr from brokerAddrTable OK, 10.0.0.1:10911", "address_removed", BROKER),
    (f"removeTopicByBrokerName, remove one broker's topic T {ROW}", "topic_removed", {"topic": "T", "row": ROW}),
    ("removeTopicByBrokerName, remove the topic all queue T", "topic_gone", {"topic": "T"}),
    (
        "Couldn't submit the unregister broker request to handler, broker info: X@1f",
        "unregistrations_full",
        {"broker_info": "X@1f"},
    ),
    (
        "min broker id changed to 1, notify [10.0.0.2:10911], offline broker addr null",
        "min_broker_id_changed",
        {"id": "1", "notified": "10.0.0.2:10911", "address": "null"},
    ),
    (
        "wipe write perm of broker[broker-a], client: 127.0.0.1:55128, 7",
        "write_perm_wiped",
        {"broker": "broker-a", "topics": "7"},
    ),
    ("add write perm of broker[broker-a], client: 127.0.0.1:55128, 7", "write_perm_added", {"broker": "broker-a"}),
    (f"deleteTopic, remove one broker's topic broker-a T {ROW}", "topic_deleted", {"broker": "broker-a", "topic": "T"}),
    ("deleteTopic, remove the topic all queue c T", "topic_gone", {"cluster": "c", "topic": "T"}),
    ("deleteTopic, remove the topic all queue T", "topic_gone", {"topic": "T"}),
    ("putKVConfig create new Namespace NS", "kv_namespace", {"namespace": "NS"}),
    (
        "putKVConfig create new config item, Namespace: NS Key: k Value: v w",
        "kv_put",
        {"how": "create new", "namespace": "NS", "key": "k", "value": "v w"},
    ),
    ("putKVConfig update config item, Namespace: NS Key: k Value: v", "kv_put", {"how": "update"}),
    ("deleteKVConfig delete a config item, Namespace: NS Key: k Value: v", "kv_deleted", {"key": "k"}),
    ("load KV config table OK", "kv_loaded", {}),
    ("configTable SIZE: 2", "kv_size", {"size": "2"}),
    ("configTable NS: NS Key: k Value: v", "kv_item", {"namespace": "NS", "key": "k", "value": "v"}),
    ("updateConfig called by 127.0.0.1:4", "config_updated", {"address": "127.0.0.1:4"}),
    (
        "Replace, key: listenPort, value: 9876 -> 9877",
        "config_replaced",
        {"key": "listenPort", "old": "9876", "value": "9877"},
    ),
    ("name server not ready. request code 105 ", "not_ready", {"code": "105"}),
    ("getAllTopicListFromNameserver 127.0.0.1:4 enable false", "topics_asked", {"enable": "false"}),
    ("registerBroker Exception", "error_swallowed", {"method": "registerBroker"}),
    ("onChannelDestroy Exception", "error_swallowed", {"method": "onChannelDestroy"}),
    ("pickupTopicRouteData Exception", "error_swallowed", {"method": "pickupTopicRouteData"}),
    ("scanNotActiveBroker Exception", "error_swallowed", {"method": "scanNotActiveBroker"}),
    ("Failed field [brokerId] decoding", "field_refused", {"field": "brokerId"}),
    ("the custom field <X.brokerId> is null", "field_refused", {"field": "X.brokerId"}),
    ("process request exception", "processing_failed", {}),
    ("process request exception, remoteAddr: 10.0.0.1:4", "processing_failed", {"address": "10.0.0.1:4"}),
    (COMMAND, "command", {"code": "103", "remark": "null", "serialize": "JSON"}),
    (
        "[WATERMARK] ClientQueueSize:0 ClientQueueSlowTime:1 DefaultQueueSize:2 DefaultQueueSlowTime:3",
        "watermark",
        {"size": "0", "default_slow_ms": "3"},
    ),
    ("[WATERMARK] Send Queue Size: 4 SlowTimeMills: 250", "watermark", {"size": "4", "slow_ms": "250"}),
    ("RemotingServer started, listening 0.0.0.0:9876", "server_listens", {"address": "0.0.0.0:9876"}),
    ("shutdown hook was invoked, 1 times.", "server_stops", {"count": "1"}),
    ("Shutdown hook was invoked, 1", "server_stops", {"count": "1"}),
    ("Shutdown hook over, consuming total time(ms): 34", "server_stopped", {"took_ms": "34"}),
    ("shutdown hook done, consuming time total(ms): 34", "server_stopped", {"took_ms": "34"}),
]

PEER = "127.0.0.1:41234"
CHANNELS = [
    (f"NETTY SERVER PIPELINE: channelRegistered {PEER}", "channel_registered", {"address": PEER}),
    (f"NETTY SERVER PIPELINE: channelUnregistered, the channel[{PEER}]", "channel_unregistered", {"address": PEER}),
    (f"NETTY SERVER PIPELINE: channelActive, the channel[{PEER}]", "channel_active", {"address": PEER}),
    (f"NETTY SERVER PIPELINE: channelInactive, the channel[{PEER}]", "channel_inactive", {"address": PEER}),
    (f"NETTY SERVER PIPELINE: IDLE exception [{PEER}]", "channel_idle", {"address": PEER}),
    (f"NETTY SERVER PIPELINE: exceptionCaught {PEER}", "channel_failed", {"address": PEER}),
    ("NETTY SERVER PIPELINE: exceptionCaught exception.", "channel_error", {}),
    (
        f"closeChannel: close the connection to remote address[{PEER}] result: true",
        "channel_closing",
        {"address": PEER},
    ),
    (f"decode exception, {PEER}", "decode_failed", {"address": PEER}),
    (f"receive response, but not matched any request, {PEER}", "answer_unmatched", {"address": PEER}),
    (
        f"receive response, cmd={COMMAND}, but not matched any request, address={PEER}, channelId=0a1b",
        "answer_unmatched",
        {"address": PEER, "command": COMMAND},
    ),
    (f"createChannel: begin to connect remote host[{HERE}] asynchronously", "connecting", {"address": HERE}),
    (f"createChannel: connect remote host[{HERE}] success, X@1(success)", "connected", {"address": HERE}),
    (f"NETTY CLIENT PIPELINE: ACTIVE, {HERE}, channelId=0a1b", "connected", {"address": HERE}),
    (
        f"createChannel: connect remote host[{HERE}] failed, X@1(failure: java.net.ConnectException: refused)",
        "connect_failed",
        {"address": HERE, "why": "X@1(failure: java.net.ConnectException: refused)"},
    ),
    (
        f"createChannel: connect remote host[{HERE}] timeout 3000ms, X@1(uncancellable)",
        "connect_timeout",
        {"address": HERE, "timeout_ms": "3000"},
    ),
    (f"NETTY CLIENT PIPELINE: CONNECT  UNKNOWN => {HERE}", "dialled", {"local": "UNKNOWN", "address": HERE}),
    (f"NETTY CLIENT PIPELINE: DISCONNECT {HERE}", "disconnected", {"address": HERE}),
    (f"NETTY CLIENT PIPELINE: CLOSE {HERE}", "closed", {"address": HERE}),
    (f"NETTY CLIENT PIPELINE: CLOSE channel[addr={HERE}, id=0a1b]", "closed", {"address": HERE}),
    (f"NETTY CLIENT PIPELINE: IDLE exception [{HERE}]", "idle", {"address": HERE}),
    (f"NETTY CLIENT PIPELINE: IDLE exception channel[addr={HERE}, id=0a1b]", "idle", {"address": HERE}),
    (f"NETTY CLIENT PIPELINE: channelInactive, the channel[addr={HERE}, id=0a1b]", "inactive", {"address": HERE}),
    (f"NETTY CLIENT PIPELINE: exceptionCaught {HERE}", "dialled_failed", {"address": HERE}),
    (f"NETTY CLIENT PIPELINE: exceptionCaught channel[addr={HERE}, id=0a1b]", "dialled_failed", {"address": HERE}),
    ("NETTY CLIENT PIPELINE: exceptionCaught exception.", "dialled_error", {}),
    (f"closeChannel: begin close the channel[{HERE}] Found: true", "close_begun", {"address": HERE, "found": "true"}),
    (f"closeChannel: begin close the channel[addr={HERE}, id=1] Found: true", "close_begun", {"address": HERE}),
    (f"closeChannel: the channel[{HERE}] was removed from channel table", "channel_forgotten", {"address": HERE}),
    (
        f"closeChannel: the channel[addr={HERE}, id=1] was removed from channel table",
        "channel_forgotten",
        {"address": HERE},
    ),
    (
        "eventCloseChannel: the channel[null] has been removed from the channel table before",
        "channel_forgotten_before",
        {"by": "eventCloseChannel", "address": "null"},
    ),
    (
        f"closeChannel: the channel[addr={HERE}, id=1] has been removed from the channel table before",
        "channel_forgotten_before",
        {"by": "closeChannel", "address": HERE},
    ),
    (
        f"closeChannel: the channel[{HERE}] has been closed before, and has been created again, nothing to do.",
        "channel_made_again",
        {"address": HERE},
    ),
    (
        f"closeChannel: close the connection to remote address[addr={HERE}, id=1] result: true",
        "channel_closing",
        {"address": HERE},
    ),
    ("invokeSync: wait response timeout exception, the channel[null]", "request_timeout", {"address": "null"}),
    (
        f"invokeSync: wait response timeout exception, the channel[addr={HERE}, id=1]",
        "request_timeout",
        {"address": HERE},
    ),
    ("invokeSync: close socket because of timeout, 3000ms, null", "closed_on_timeout", {"address": "null"}),
    (
        f"invokeSync: close socket because of timeout, 3000ms, channel[addr={HERE}, id=1]",
        "closed_on_timeout",
        {"timeout_ms": "3000", "address": HERE},
    ),
    (f"invokeSync: send request exception, so close the channel[{HERE}]", "request_failed", {"address": HERE}),
    (
        f"invokeSync: send request exception, so close the channel[addr={HERE}, id=1]",
        "request_failed",
        {"address": HERE},
    ),
    (f"send a request command to channel </{HERE}> failed.", "write_failed", {"address": HERE}),
    (f"send a request command to channel channel[addr={HERE}, id=1] failed.", "write_failed", {"address": HERE}),
    ("remove timeout request, ResponseFuture [opaque=1]", "answer_late", {"future": "opaque=1"}),
    (
        f"[SCAN] No response after 1700000000 from name server {HERE}, so close it!",
        "name_server_silent",
        {"address": HERE},
    ),
]

BROKERS = [
    (f"register broker[0]to name server {HERE} OK", "registered", {"id": "0", "name_server": HERE}),
    (f"register broker [0] to name server {HERE} OK", "registered", {"id": "0"}),
    (
        f"Registering current broker to name server completed. TargetHost={HERE}",
        "registered",
        {"name_server": HERE},
    ),
    (f"registerBroker Exception, {HERE}", "register_failed", {"name_server": HERE}),
    (
        f"Failed to register current broker to name server. TargetHost={HERE}",
        "register_failed",
        {"name_server": HERE},
    ),
    (
        "Registration to one or more name servers does NOT complete within deadline. Timeout threshold: 24000ms",
        "registration_slow",
        {"timeout_ms": "24000"},
    ),
    (
        f"Query data version from name server {HERE} OK,changed true, broker DataVersion[timestamp=1, counter=2],"
        "name server DataVersion[timestamp=1, counter=1]",
        "data_version_asked",
        {"name_server": HERE, "changed": "true", "version": "DataVersion[timestamp=1, counter=2]"},
    ),
    (
        f"Query data version from name server {HERE} OK, changed false, broker DataVersion[timestamp=1, counter=2], "
        "name server ",
        "data_version_asked",
        {"changed": "false", "theirs": ""},
    ),
    (f"Query data version from name server {HERE}  Exception, X", "data_version_failed", {"name_server": HERE}),
    (f"Query data version from name server {HERE} exception", "data_version_failed", {"name_server": HERE}),
    (f"unregisterBroker OK, NamesrvAddr: {HERE}", "unregistered", {"name_server": HERE}),
    (f"unregisterBroker Exception, {HERE}", "unregister_failed", {"name_server": HERE}),
    (f"unregisterBroker Exception, NamesrvAddr: {HERE}", "unregister_failed", {"name_server": HERE}),
    (f"Update master address from null to {HERE}", "master_said", {"old": "null", "address": HERE}),
    (f"Update slave topic config from master, {HERE}", "slave_synced", {"what": "topic config", "address": HERE}),
    (f"Update slave Subscription Group from master, {HERE}", "slave_synced", {"what": "Subscription Group"}),
    (f"SyncTopicConfig Exception, {HERE}", "slave_sync_failed", {"what": "TopicConfig", "address": HERE}),
    (f"syncTimerCheckPoint Exception, {HERE}", "slave_sync_failed", {"what": "TimerCheckPoint"}),
    (
        "Begin handling broker role change term=3 role=LEADER currStoreRole=SLAVE",
        "election_told",
        {"term": "3", "role": "LEADER"},
    ),
    ("Begin to change to slave brokerName=broker-a brokerId=2", "role_changes", {"role": "slave", "id": "2"}),
    ("Begin to change to master brokerName=broker-a", "role_changes", {"role": "master", "broker": "broker-a"}),
    (
        f"Begin to change to slave, brokerName=broker-a, brokerId=2, newMasterBrokerId=1, newMasterAddress={HERE}, "
        "newMasterEpoch=4",
        "role_changes",
        {"role": "slave", "broker": "broker-a", "id": "2"},
    ),
    (
        f"Begin to change to master, brokerName:broker-a, replicas:{HERE}, new Epoch:4",
        "role_changes",
        {"role": "master", "broker": "broker-a", "epoch": "4"},
    ),
    (f"sendHeartbeat Exception {HERE}", "heartbeat_failed", {"name_server": HERE}),
    ("Skip register for broker is isolated", "registration_skipped", {}),
    ("Register to namesrv after 1700000000000", "registration_delayed", {"at": "1700000000000"}),
    (f"Set user specified name server address: {HERE}", "name_servers_said", {"new": HERE}),
    (f"name server address changed, old: a:1 new: {HERE}", "name_servers_fetched", {"old": "a:1", "new": HERE}),
    (f"scanAvailableNameSrv remove unconnected address {HERE}", "name_server_removed", {"why": "unconnected"}),
    (f"scanAvailableNameSrv remove invalid address {HERE}", "name_server_removed", {"why": "invalid"}),
    (
        "Create new topic by default topic:[TBW102] config:[TopicConfig [topicName=T]] producer:[127.0.0.1:4]",
        "topic_created",
        {"default": "TBW102", "address": "127.0.0.1:4"},
    ),
    ("the topic T not exist, producer: 127.0.0.1:4", "topic_missing", {"topic": "T"}),
    (
        f"The broker[broker-a, 10.0.0.1:10911] boot success. serializeType=JSON and name server is {HERE}",
        "broker_boot",
        {"broker": "broker-a", "address": "10.0.0.1:10911", "name_servers": HERE},
    ),
    ("The broker[b, [fe80::1%utun1]:10911] boot success.", "broker_boot", {"address": "[fe80::1%utun1]:10911"}),
    (
        "new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING channel: ClientChannelInfo [c]",
        "consumer_connected",
        {"group": "g", "model": "CLUSTERING"},
    ),
    ("new producer connected, group: g channel: ClientChannelInfo [c]", "producer_connected", {"group": "g"}),
    (
        "SCAN: remove expired channel from ConsumerManager consumerTable. channel=/127.0.0.1:4, consumerGroup=g",
        "consumer_expired",
        {"channel": "/127.0.0.1:4", "group": "g"},
    ),
    (
        "SCAN: remove expired channel[127.0.0.1:4] from ProducerManager groupChannelTable, producer group name: g",
        "producer_expired",
        {"channel": "127.0.0.1:4", "group": "g"},
    ),
    (
        "ProducerManager#scanNotActiveChannel: remove expired channel[127.0.0.1:4] from ProducerManager "
        "groupChannelTable, producer group name: g",
        "producer_expired",
        {"channel": "127.0.0.1:4", "group": "g"},
    ),
    (
        "the request offset: 9 over flow badly, fix to 3, broker max offset: 3, consumer: /127.0.0.1:4",
        "offset_fixed",
        {"offset": "9", "fixed": "3"},
    ),
    ("the request offset too small. group=g, topic=T, requestOffset=1", "offset_fixed", {}),
    ("the broker stores no queue data, fix the request offset 1 to 0, Topic: T QueueId: 0", "offset_fixed", {}),
    ("the broker store no queue data, fix the request offset 1 to 0, Topic: T QueueId: 0", "offset_fixed", {}),
]

EARLIER = [
    ("The Name Server boot success.", "name_server_boot", {}),
    ("new broker registerd, 10.0.0.1:10911 HAServer: 10.0.0.1:10912", "broker_registered", BROKER),
    (f"new topic registerd, T {ROW}", "topic_registered", {"topic": "T", "row": ROW}),
    ("The broker[broker-a, 10.0.0.1:10911] boot success.", "broker_boot", {"broker": "broker-a", **BROKER}),
    (f"register broker to name server {HERE} OK", "registered", {"name_server": HERE}),
    ("update slave topic config from master, 10.0.0.1:10911", "slave_synced", BROKER),
    ("syncTopicConfig Exception, 10.0.0.1:10911", "slave_sync_failed", BROKER),
    ("shutdown hook over, consuming time total(ms): 12", "server_stopped", {"took_ms": "12"}),
    (
        "Registered Broker conflicts with the existed one, just ignore.: Cluster:c, BrokerName:b, BrokerId:0, "
        "Old BrokerAddr:10.0.0.1:1, Old Version:2, New BrokerAddr:10.0.0.4:1, New Version:1.",
        "conflict_ignored",
        {"old": "10.0.0.1:1", "address": "10.0.0.4:1"},
    ),
    ("the topic[T] route info changed, odl[null] ,new[TopicRouteData []]", "route_changed", {"topic": "T"}),
    ("invokeOneway: send request exception, so close the channel[10.0.0.9:9876]", "request_failed", {"address": HERE}),
    (
        "created a new client Instance, FactoryIndex: 0 ClinetID: 10.0.0.7@41 ClientConfig [namesrvAddr=x] V3_5_8, "
        "serializeType=JSON",
        "client_created",
        {"client": "10.0.0.7@41"},
    ),
    (
        "sendHeartbeatToAllBrokerV2 send heart beat to broker[broker-a 0 10.0.0.1:10911] failed",
        "heartbeat",
        {"broker": "broker-a", "result": "failed", **BROKER},
    ),
    ("load topic route from namesrv failed. topic:T", "route_error", {"topic": "T"}),
]
"""Of 3.x and of the first 4.x, of the latest 5.x, and of a proxy."""

_ID = "BrokerIdentityInfo{clusterName='c', brokerName='broker-a', brokerId=2}"
CONTROLLERS = [
    ("Controller n0 change role to leader, try process a initial proposal", "controller_led", {"who": "n0"}),
    ("Controller start leadership, term: 3.", "controller_led", {"term": "3"}),
    ("Controller n0 change role to Follower, leaderId:n1", "controller_followed", {"who": "n0"}),
    (f"new broker registered, {_ID}, brokerId:2", "controller_heard", {"broker": "broker-a", "id": "2"}),
    (f"new broker registered, brokerIdentityInfo: {_ID}", "controller_heard", {"broker": "broker-a", "id": "2"}),
    (
        f"The broker channel [id: 0x1, L:/10.0.0.9:9878 - R:/10.0.0.1:4] expired, brokerInfo {_ID}, expired 10000ms",
        "controller_lost",
        {"broker": "broker-a", "id": "2"},
    ),
    (f"Broker expired, brokerInfo {_ID}, expired 10000ms", "controller_lost", {"broker": "broker-a", "id": "2"}),
    ("Broker c-broker-a-2 inactive", "controller_lost", {"broker": "broker-a", "id": "2"}),
    (
        "The broker with brokerId: 2 in broker-set: broker-a has been inactive",
        "controller_lost",
        {"broker": "broker-a", "id": "2"},
    ),
    (
        "Elect a new master in broker-set: broker-a done, result: ElectMasterResponseHeader{masterBrokerId=1}",
        "controller_elected",
        {"broker": "broker-a"},
    ),
]
