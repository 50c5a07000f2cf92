"""Each text that a program of RocketMQ's writes, of 4.9 and of 5.x, is the event that it tells of, with its fields."""

from __future__ import annotations

import pytest

from nemesrv.chaos.logs.shapes import COUNTED, EVENTS, QUIET, edited_event_of, event_of, setting_of
from nemesrv.chaos.logs.shapes.other_clients import go_event_of

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
    (
        "invokeSync: wait response timeout exception, the channel[null]",
        "request_timeout",
        {"address": "null"},
    ),
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

CLIENTS = [
    (
        "name server address updated. NEW : [10.0.0.9:9876, 10.0.0.8:9876] , OLD: null",
        "name_servers_set",
        {"new": "10.0.0.9:9876, 10.0.0.8:9876", "old": "null"},
    ),
    (f"user specified name server address: {HERE}", "name_servers_said", {"new": HERE}),
    (f"name server address changed, old=a:1, new={HERE}", "name_servers_fetched", {"old": "a:1", "new": HERE}),
    (
        "new name server is chosen. OLD: null , NEW: 10.0.0.9:9876. namesrvIndex = 790",
        "name_server_chosen",
        {"old": "null", "new": "10.0.0.9:9876", "index": "790"},
    ),
    (
        "getAndCreateNameserverChannel: try to lock name server, but timeout, 3000ms",
        "choice_timeout",
        {"timeout_ms": "3000"},
    ),
    ("getAndCreateNameserverChannel: create name server channel exception", "choice_failed", {}),
    (f"the topic[T] route info changed, old[null] ,new[{ROUTE}]", "route_changed", {"topic": "T", "old": "null"}),
    (f"topicRouteTable.put. Topic = T, TopicRouteData[{ROUTE}]", "route_put", {"topic": "T", "new": ROUTE}),
    ("updateTopicRouteInfoFromNameServer Exception", "route_error", {}),
    ("get Topic [T] RouteInfoFromNameServer is not exist value", "route_missing", {"topic": "T"}),
    ("updateTopicRouteInfoFromNameServer tryLock timeout 3000ms. [1@2]", "route_busy", {"client": "1@2"}),
    (
        "the broker addr[broker-a 10.0.0.1:10911] is offline, remove it",
        "broker_offline",
        {"broker": "broker-a", **BROKER},
    ),
    ("the broker[broker-a] name's host is offline, remove it", "broker_offline", {"broker": "broker-a"}),
    (
        "send heart beat to broker[broker-a 0 10.0.0.1:10911] success",
        "heartbeat",
        {"broker": "broker-a", "id": "0", "result": "success", **BROKER},
    ),
    ("send heart beat to broker[broker-a 0 10.0.0.1:10911] failed", "heartbeat", {"result": "failed"}),
    (
        "send heart beat to broker[broker-a 0 10.0.0.1:10911] exception, because the broker not up, forget it",
        "heartbeat",
        {"result": "exception"},
    ),
    ("sending heartbeat, but no consumer and no producer. [1@2]", "heartbeat_of_nobody", {"client": "1@2"}),
    (
        f"sendKernelImpl exception, resend at once, InvokeID: 12, RT: 3003ms, Broker: {QUEUE}",
        "send_retried",
        {"rt_ms": "3003", "queue": QUEUE},
    ),
    (
        "async send msg by retry 2 times. topic=T, brokerAddr=10.0.0.1:10911, brokerName=broker-a",
        "send_retried",
        {"tries": "2", "topic": "T", "broker": "broker-a", **BROKER},
    ),
    ("broker-a will be isolated for 30000 ms.", "broker_isolated", {"broker": "broker-a", "for_ms": "30000"}),
    (
        "broker-a is unreachable, it will not be used until it's reachable",
        "broker_unreachable",
        {"broker": "broker-a"},
    ),
    ("broker-a is reachable now, then it can be used.", "broker_reachable", {"broker": "broker-a"}),
    (
        "rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=g, topic=T, clientId=1@2, mqAllSize=4",
        "rebalanced",
        {"group": "g", "topic": "T", "client": "1@2"},
    ),
    (
        "client rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=g, topic=T, clientId=1@2, x=4",
        "rebalanced",
        {"group": "g"},
    ),
    (f"doRebalance, g, add a new mq, {QUEUE}", "queue_taken", {"group": "g", "queue": QUEUE}),
    (f"doRebalance, g, remove unnecessary mq, {QUEUE}", "queue_dropped", {"group": "g", "queue": QUEUE}),
    ("doRebalance, g T, get consumer id list failed", "consumers_unknown", {"group": "g", "topic": "T"}),
    ("execute the pull request exception", "pull_failed", {}),
    (f"execute the pull request exception, group=g, messageQueue={QUEUE}", "pull_failed", {"queue": QUEUE}),
    (
        "Created a new client Instance, InstanceIndex:0, ClientID:1@2, ClientConfig:ClientConfig [namesrvAddr=a, b=c], "
        "ClientVersion:V4_9_8, SerializerType:JSON",
        "client_created",
        {"client": "1@2", "config": "ClientConfig [namesrvAddr=a, b=c]", "version": "V4_9_8"},
    ),
    ("Created new MQClientInstance for clientId:[1@2]", "client_created", {"client": "1@2"}),
    ("the client factory [1@2] start OK", "client_started", {"client": "1@2"}),
    ("the client factory [1@2] shutdown OK", "client_stopped", {"client": "1@2"}),
    ("the producer [g] start OK. sendMessageWithVIPChannel=false", "group_started", {"kind": "producer", "group": "g"}),
    ("No route info of this topic: T", "client_exception", {"topic": "T"}),
    ("No route info of this topic, T", "client_exception", {"topic": "T"}),
    (
        "Send [3] times, still failed, cost [9015]ms, Topic: T, BrokersSent: [broker-a, broker-b]",
        "client_exception",
        {"tries": "3", "cost_ms": "9015", "topic": "T"},
    ),
    ("sendDefaultImpl call timeout", "client_exception", {}),
]

OTHERS = [
    (
        f"wait response timeout or get NULL response of code:105, so closeTransport of addr:{HERE}",
        "request_timeout",
        {"code": "105", "address": HERE},
    ),
    ("wait response timeout or get NULL response of code:105, so closeTransport of addr:", "request_timeout", {}),
    (f"can not connect to server:{HERE}", "connect_failed", {"address": HERE}),
    (f"connect server with addr:{HERE} success", "connected", {"address": HERE}),
    (f"updateNameServerAddressList: [{HERE};a:1]", "name_servers_set", {"new": f"{HERE};a:1"}),
    (f"user specfied name server address: {HERE}", "name_servers_said", {"new": HERE}),
    ("Get topic[T] route failed [TOPIC_NOT_EXIST].", "route_missing", {"topic": "T"}),
    ("Get topic[T] route failed [Null Response].", "route_error", {"topic": "T", "said": "Null Response"}),
    (f"tcpTransport with server disconnected, erase server:{HERE}", "closed", {"address": HERE}),
    (f"disconnect:{HERE} completely", "disconnected", {"address": HERE}),
    ("updateTopicRouteInfoFromNameServer changed:T", "route_changed", {"topic": "T"}),
    ("MQClientFactory:1@2 start", "client_started", {"client": "1@2"}),
    ("sendHeartbeat to broker:10.0.0.1:10911 failed", "heartbeat", {"result": "failed", **BROKER}),
    (
        "[mq:client_api] get Topic [T] RouteInfoFromNameServer is not exist value",
        "route_missing",
        {"topic": "T"},
    ),
    ("[mq:client] the broker[broker-a] name's host is offline, remove it", "broker_offline", {"broker": "broker-a"}),
    ("[mq:remoting_client] remoting client started", "client_started", {}),
]

GO = [
    (
        'msg="connect to namesrv failed." namesrv="127.0.0.1:9876" topic=T',
        "route_error",
        {"topic": "T", "name_servers": HERE.replace("10.0.0.9", "127.0.0.1")},
    ),
    (
        "connect to namesrv failed.                   namesrv=a:1 topic=T",
        "route_error",
        {"topic": "T", "name_servers": "a:1"},
    ),
    ('msg="the topic route info changed" changeTo="{}" changedFrom="<nil>" topic=T', "route_changed", {"new": "{}"}),
    (
        "get consumer list of group from broker error brokerAddr=a:1 consumerGroup=g",
        "consumers_unknown",
        {"group": "g"},
    ),
    (
        "the broker: [name=%s, ID=%d, addr=%s,] is offline, remove it brokerAddr=a:1 brokerID=0 brokerName=b",
        "broker_offline",
        {"broker": "b", "id": "0", "address": "a:1"},
    ),
    ('msg="send heart beat to broker error" underlayError="dial \\"x\\""', "heartbeat", {"said": 'dial "x"'}),
]

QUIET_TEXTS = [
    "[TOPIC_PUT_NUMS] [orders] Stats In One Minute, SUM: 1 TPS: 0.2 AVGPT: 1.0",
    "Port: 10911, RequestCode Distribution: {11:5, 34:2}",
    "[persistAll] Group: g ClientId: 1@2 updateConsumeOffsetToBroker MessageQueue [topic=T] 5",
    "[WATERMARK] Pull Queue Size: 0 SlowTimeMills: 0",
]


@pytest.mark.parametrize(("text", "event", "fields"), NAME_SERVER + CHANNELS + BROKERS + CLIENTS + OTHERS)
def test_a_text_is_the_event_that_it_tells_of(text: str, event: str, fields: dict[str, str]) -> None:
    found = event_of(text)
    assert found is not None
    assert found[0] == event
    assert found[0] in EVENTS
    assert fields.items() <= found[1].items()


@pytest.mark.parametrize(("text", "event", "fields"), GO)
def test_a_message_of_go_has_its_values_as_fields(text: str, event: str, fields: dict[str, str]) -> None:
    found = go_event_of(text)
    assert found is not None
    assert found[0] == event
    assert fields.items() <= found[1].items()


@pytest.mark.parametrize("text", QUIET_TEXTS)
def test_what_bears_nothing_is_understood_and_quiet(text: str) -> None:
    found = event_of(text)
    assert found is not None
    assert found[0] in QUIET


@pytest.mark.parametrize("text", ["kvConfigPath=/root/namesrv/kvConfig.json", "remove brokerAddr[", "", "the", "[x] y"])
def test_a_text_of_no_known_shape_is_none(text: str) -> None:
    assert event_of(text) is None


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("listenPort=9876", "listenPort", "9876"),
        ("tls.server.keyPath = null", "tls.server.keyPath", "null"),
        ("a=", "a", ""),
    ],
)
def test_a_setting_is_its_key_and_value(text: str, key: str, value: str) -> None:
    assert setting_of(text) == ("setting", {"key": key, "value": value})


def test_every_event_that_is_counted_is_one() -> None:
    assert set(EVENTS) >= QUIET | COUNTED


CUT = {
    "new broker registered, 10.0.0.1:10911 HASer": ("broker_registered", {"address": "10.0.0.1:10911"}),
    "the topic[T] route info changed, old[null] ,new[TopicRouteData [orde...": ("route_changed", {"topic": "T"}),
    "new name server is chosen. OLD: 10.0.0.9:9876 , NEW: 10.0.0.8:98": (
        "name_server_chosen",
        {"old": "10.0.0.9:9876"},
    ),
    "remove topic[T QueueData [brokerName=broker-a, readQ…": ("topic_removed", {"topic": "T"}),
}


@pytest.mark.parametrize("text", CUT)
def test_a_cut_line_says_what_is_whole_in_it(text: str) -> None:
    event, fields = CUT[text]
    assert event_of(text) is None
    assert edited_event_of(text) == (event, fields | {"cut": "true"})


@pytest.mark.parametrize(
    "text",
    ["new broker registered, 10.0.0.1:109", "The broker channel expired, 10.0", "new broker regis", "the broker"],
)
def test_half_an_address_is_none(text: str) -> None:
    assert edited_event_of(text) is None


def test_spaces_too_many_are_no_matter() -> None:
    text = "  register  broker[0]  to name  server 10.0.0.9:9876   OK "
    assert edited_event_of(text) == ("registered", {"id": "0", "name_server": HERE})
