"""What a Java client says of itself (rocketmq_client.log, or its host's log), and a broker of its NameServers."""

from __future__ import annotations

_V2 = r"(?:sendHeartbeatTo(?:AllBrokerV2|Broker) )?"

SHAPES: tuple[tuple[str, str], ...] = (
    ("name_servers_set", r"name server address updated\. NEW : ?\[(?P<new>[^\]]*)\] ?, OLD: ?(?P<old>.*)"),
    ("name_servers_said", r"[Uu]ser specified name server address: (?P<new>.*)"),
    ("name_servers_said", r"Set user specified name server address: (?P<new>.*)"),
    ("name_servers_fetched", r"name server address changed, old(?:=|: ?)(?P<old>[^,\s]*),? new(?:=|: ?)(?P<new>\S*)"),
    (
        "name_server_chosen",
        r"new name server is chosen\. OLD: (?P<old>\S+) ?, NEW: (?P<new>\S+?)\. namesrvIndex = (?P<index>-?\d+)",
    ),
    ("choice_timeout", r"getAndCreateNameserverChannel: try to lock name server, but timeout, (?P<timeout_ms>\d+)ms"),
    ("choice_failed", r"getAndCreateNameserverChannel: create name server channel exception"),
    ("name_server_removed", r"scanAvailableNameSrv remove (?P<why>unconnected|invalid) address (?P<address>\S+)"),
    (
        "route_changed",
        r"the topic ?\[(?P<topic>[^\]]*)\] route info changed, "
        r"(?:old|(?P<spelt>odl)) ?\[(?P<old>.*)\] ?, ?new ?\[(?P<new>.*)\]",
    ),
    ("route_put", r"topicRouteTable\.put\.? ?Topic = (?P<topic>[^\s,]+), ?TopicRouteData ?\[(?P<new>.*)\]"),
    ("route_error", r"updateTopicRouteInfoFromNameServer Exception.*"),
    ("route_error", r"load topic route from namesrv failed\. topic:(?P<topic>\S+)"),
    ("route_missing", r"get Topic ?\[(?P<topic>[^\]]*)\] ?RouteInfoFromNameServer is not exist value"),
    (
        "route_busy",
        r"updateTopicRouteInfoFromNameServer tryLock timeout (?P<timeout_ms>\d+)ms\.?(?: \[(?P<client>[^\]]*)\])?",
    ),
    ("broker_offline", r"the broker addr ?\[(?P<broker>\S+) (?P<address>[^\]]*)\] is offline, remove it"),
    ("broker_offline", r"the broker ?\[(?P<broker>[^\]]*)\] name's host is offline, remove it"),
    (
        "heartbeat",
        rf"{_V2}send heart ?beat to broker ?\[(?P<broker>\S+) (?:(?P<id>-?\d+) )?(?P<address>[^\]]*)\] "
        r"(?P<result>success|failed)",
    ),
    (
        "heartbeat",
        rf"{_V2}send heart ?beat to broker ?\[(?P<broker>\S+) (?:(?P<id>-?\d+) )?(?P<address>[^\]]*)\] "
        r"(?P<result>exception), because the broker not up, forget it",
    ),
    (
        "heartbeat_of_nobody",
        rf"{_V2}sending hear(?:t)?beat, but no consumer and no producer\.?(?: \[(?P<client>[^\]]*)\])?",
    ),
    (
        "send_retried",
        r"sendKernelImpl exception, (?P<then>resend at once|throw exception|not retry|should not retry).*?"
        r"InvokeID: (?P<invoke>-?\d+), RT: (?P<rt_ms>-?\d+)ms, Broker: (?P<queue>MessageQueue ?\[.*?\]).*",
    ),
    (
        "send_retried",
        r"async send msg by retry (?P<tries>\d+) times\. topic=(?P<topic>[^,]*), brokerAddr=(?P<address>[^,]*), "
        r"brokerName=(?P<broker>\S+)",
    ),
    ("broker_isolated", r"(?P<broker>\S+) will be isolated for (?P<for_ms>\d+) ms\.?"),
    ("broker_unreachable", r"(?P<broker>\S+) is unreachable, it will not be used until it's reachable"),
    ("broker_reachable", r"(?P<broker>\S+) is reachable now, then it can be used\.?"),
    (
        "rebalanced",
        r"(?:client )?rebalanced result changed\. allocateMessageQueueStrategyName=(?P<strategy>[^,]*), "
        r"group=(?P<group>[^,]*), topic=(?P<topic>[^,]*), clientId=(?P<client>[^,]*),.*",
    ),
    ("queue_taken", r"doRebalance, (?P<group>[^,]+), add a new mq, (?P<queue>MessageQueue ?\[.*\])"),
    ("queue_dropped", r"doRebalance, (?P<group>[^,]+), remove unnecessary mq, (?P<queue>MessageQueue ?\[.*\])"),
    ("consumers_unknown", r"doRebalance, (?P<group>\S+) (?P<topic>\S+), get consumer id list failed"),
    (
        "pull_failed",
        r"execute the pull request exception(?:, group=(?P<group>[^,]*), messageQueue=(?P<queue>.*))?",
    ),
    (
        "client_created",
        r"Created a new client Instance, InstanceIndex: ?(?P<index>[^,]*), ClientID: ?(?P<client>[^,]*), "
        r"ClientConfig: ?(?P<config>.*), ClientVersion: ?(?P<version>[^,]*), SerializerType: ?(?P<serialize>\w+)",
    ),
    ("client_created", r"Created new MQClientInstance for clientId: ?\[(?P<client>[^\]]*)\]"),
    (
        "client_created",
        r"created a new client (?:Instance|fatory), FactoryIndex: (?P<index>\S+) ClinetID: (?P<client>\S+) "
        r"(?P<config>.*)",
    ),
    ("client_started", r"the client factory ?\[(?P<client>[^\]]*)\] start OK"),
    ("client_stopped", r"the client factory ?\[(?P<client>[^\]]*)\] shutdown OK"),
    ("group_started", r"the (?P<kind>producer|consumer) ?\[(?P<group>[^\]]*)\] start (?:OK|beginning).*"),
    ("group_stopped", r"the (?P<kind>producer|consumer) ?\[(?P<group>[^\]]*)\] shutdown OK.*"),
    # What a program catches and logs with a line of its own
    ("client_exception", r"No route info of this topic[:,]? (?P<topic>[^\s,]+).*"),
    ("client_exception", r"Send \[(?P<tries>\d+)\] times, still failed, cost \[(?P<cost_ms>\d+)\]ms, Topic: "
     r"(?P<topic>[^,\s]+), BrokersSent: (?P<brokers>.*)"),
    ("client_exception", r"sendDefaultImpl call timeout.*"),
)  # fmt: skip
