"""Texts of clients, of Java's and of others': (text, event, fields); and those that bear nothing."""

from tests.chaos.logs.shapes.texts_of_servers import BROKER, HERE, QUEUE, ROUTE

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
    "Group: g ClientId: 1@2 updateConsumeOffsetToBroker MessageQueue [topic=T] 5",
    "updateBrokerConfig, new config: [{a=b}] client: /10.0.0.1:1",
    "doRebalance, g, add new mq failed, MessageQueue [topic=T]",
    "[NOTIFYME]putMessage in lock cost time(ms)=900",
    "BrokerController#doRegisterBrokerAll: broker has shutdown, no need to register any more.",
    "AllocateMappedFileService service end",
    "brokerLiveTable SIZE: 3",
    "--------------------------------------------------------",
    "disk space will be full soon, but delete file failed.",
    "process event: term 1, index 2, request code 1005",
]
