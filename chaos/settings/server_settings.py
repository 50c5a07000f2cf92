"""The settings of NameServers and brokers. Classes and defaults were read from Apache RocketMQ 4.9.8 and 5.3.3."""

from __future__ import annotations

from ...actors.namesrv.config import Constants
from ..topology import NodeKind
from .setting import (
    BOTH,
    BROKERS,
    CONSTANTS,
    COUNT,
    MS,
    NAME_SERVERS,
    V4_9,
    V5_X,
    DelayLevels,
    OneOf,
    Truth,
    Whole,
    of_class,
)

ELECTS = DLEDGER, CONTROLLER = ("enableDLegerCommitLog", "enableControllerMode")
"""Settings of brokers that elect the master of their name."""

namesrv_config = of_class("NamesrvConfig", NAME_SERVERS)
route_info_manager_of_name_servers = of_class("RouteInfoManager", NAME_SERVERS)
netty_server_config_of_name_servers = of_class("NettyServerConfig", NAME_SERVERS)
netty_decoder_of_name_servers = of_class("NettyDecoder", NAME_SERVERS)
broker_config = of_class("BrokerConfig", BROKERS)
message_store_config_of_masters = of_class("MessageStoreConfig", (NodeKind.BROKER,))
message_store_config_of_brokers = of_class("MessageStoreConfig", BROKERS)
netty_client_config_of_brokers = of_class("NettyClientConfig", BROKERS)
netty_server_config_of_brokers = of_class("NettyServerConfig", BROKERS)

OF_NAME_SERVERS = (
    namesrv_config(
        "enableControllerInNamesrv",
        Truth(),
        "whether it is the controller, too, of brokers with enableControllerMode",
        fields="",
        profiles=(V5_X,),
        defaults={V5_X: False},
        of_apache=True,
    ),
    route_info_manager_of_name_servers(
        "brokerChannelExpiredTime",
        Whole(1, 3_600_000, "ms"),
        "how long it bears a broker's silence; a 5.x broker says that itself (brokerNotActiveTimeoutMillis)",
        fields=CONSTANTS + "broker_channel_expired_ms",
        symbol="E",
        profiles=(V4_9,),
        constant=(V4_9,),
    ),
    namesrv_config(
        "scanNotActiveBrokerInterval",
        MS,
        "how often it looks for silent brokers",
        symbol="S",
        constant=(V4_9,),
        defaults={V4_9: Constants().scan_4_9_ms},
    ),
    netty_server_config_of_name_servers(
        "serverChannelMaxIdleTimeSeconds",
        Whole(1, 3_600, "s"),
        "how long a channel may be idle until it is closed and its broker dropped",
        symbol="I",
    ),
    netty_decoder_of_name_servers(
        "frameMaxLength",
        Whole(1_024, 16_777_216, "B"),
        "the largest frame that it reads; a longer one closes the channel (a literal, but for the JVM's "
        "property com.rocketmq.remoting.frameMaxLength)",
        fields=CONSTANTS + "frame_max",
        constant=BOTH,
    ),
    namesrv_config(
        "needWaitForService",
        Truth(),
        "whether look-ups are answered with code 1 for waitSecondsForService after the start",
        profiles=(V5_X,),
    ),
    namesrv_config(
        "waitSecondsForService",
        Whole(0, 600, "s"),
        "how long after the start needWaitForService holds",
        profiles=(V5_X,),
    ),
    namesrv_config("orderMessageEnable", Truth(), "order configuration in routes"),
    namesrv_config(
        "returnOrderTopicConfigToBroker", Truth(), "order configuration in answers to registrations", profiles=(V5_X,)
    ),
    namesrv_config(
        "supportActingMaster", Truth(), "whether routes show a slave that acts as master as id 0", profiles=(V5_X,)
    ),
    namesrv_config(
        "notifyMinBrokerIdChanged", Truth(), "whether brokers hear that the least id has changed", profiles=(V5_X,)
    ),
    namesrv_config("enableAllTopicList", Truth(), "whether the list of all topics (206) is given", profiles=(V5_X,)),
    namesrv_config("enableTopicList", Truth(), "whether a cluster's list of topics (224) is given", profiles=(V5_X,)),
    namesrv_config("unRegisterBrokerQueueCapacity", COUNT, "how many unregistrations may wait", profiles=(V5_X,)),
)

OF_BROKERS = (
    broker_config(
        "registerNameServerPeriod",
        Whole(10_000, 60_000, "ms"),
        "how often it registers with every NameServer; RocketMQ clamps it to these bounds",
        symbol="R",
    ),
    broker_config(
        "registerBrokerTimeoutMills",
        MS,
        "how long it waits for the answer to a registration",
        symbol="B",
        defaults={V4_9: 6_000, V5_X: 24_000},
    ),
    broker_config(
        "brokerNotActiveTimeoutMillis",
        MS,
        "how long NameServers bear its silence; with enableSlaveActingMaster, where alone Java sends it, 10000",
        symbol="E",
        profiles=(V5_X,),
        defaults={V4_9: 120_000, V5_X: 120_000},
    ),
    broker_config(
        "enableSlaveActingMaster",
        Truth(),
        "whether the slave with the least id acts as master while there is none",
        profiles=(V5_X,),
    ),
    broker_config(
        "brokerHeartbeatInterval",
        Whole(100, 60_000, "ms"),
        "with enableSlaveActingMaster: how often it says that it lives (904)",
        profiles=(V5_X,),
    ),
    message_store_config_of_masters(
        "brokerRole",
        OneOf(("ASYNC_MASTER", "SYNC_MASTER")),
        "whether a master answers a send before a slave has it, or after; a slave is SLAVE",
    ),
    broker_config(
        CONTROLLER,
        Truth(),
        "whether a controller gives the brokers of a name their ids, and elects its master (docs/apache.md)",
        fields="",
        profiles=(V5_X,),
        defaults={V5_X: False},
        of_apache=True,
    ),
    message_store_config_of_brokers(
        DLEDGER,
        Truth(),
        "whether the brokers of a name are a DLedger group, which elects its master (docs/apache.md)",
        fields="",
        defaults=dict.fromkeys(BOTH, False),
        of_apache=True,
    ),
    netty_client_config_of_brokers(
        "connectTimeoutMillis", MS, "how long connecting to a NameServer may take", symbol="C"
    ),
    netty_client_config_of_brokers(
        "clientCloseSocketIfTimeout",
        Truth(),
        "whether a channel to a NameServer is closed after an answer that did not come (false up to 4.9.0)",
        symbol="Z",
    ),
    netty_client_config_of_brokers(
        "clientChannelMaxIdleTimeSeconds",
        Whole(1, 3_600, "s"),
        "how long a channel to a NameServer may be idle until it is closed",
        symbol="i",
    ),
    netty_server_config_of_brokers(
        "serverChannelMaxIdleTimeSeconds",
        Whole(1, 3_600, "s"),
        "how long a client's channel may be idle until it is closed",
    ),
    broker_config("forceRegister", Truth(), "whether it registers without asking first (322)"),
    broker_config("compressedRegister", Truth(), "whether registrations are compressed"),
    broker_config("brokerPermission", Whole(2, 6, also=0), "2 write, 4 read, 6 both, 0 neither"),
    broker_config("autoCreateTopicEnable", Truth(), "topics made by their first send"),
    broker_config("defaultTopicQueueNums", Whole(1, 65_536), "of TBW102"),
    broker_config("autoCreateSubscriptionGroup", Truth(), "groups made by their first heartbeat"),
    broker_config("clusterTopicEnable", Truth(), "whether it has its cluster's topic"),
    broker_config("brokerTopicEnable", Truth(), "whether it has a topic of its name"),
    broker_config("traceTopicEnable", Truth(), "whether it has the topic of traces"),
    broker_config("notifyConsumerIdsChangedEnable", Truth(), "whether consumers hear at once that their group changed"),
    broker_config("longPollingEnable", Truth(), "whether pulls without a message wait"),
    broker_config("shortPollingTimeMills", MS, "how long they wait without longPollingEnable"),
    broker_config("enablePropertyFilter", Truth(), "whether consumers may filter by SQL92"),
    broker_config("rejectTransactionMessage", Truth(), "whether it refuses transactional messages"),
    broker_config("transactionTimeOut", MS, "how old a half message is when its producer is asked first"),
    broker_config("transactionCheckMax", COUNT, "how often a producer is asked until the message is set aside"),
    broker_config(
        "transactionCheckInterval",
        MS,
        "how long after one check of half messages the next begins",
        defaults={V4_9: 60_000, V5_X: 30_000},
    ),
    broker_config(
        "storeReplyMessageEnable", Truth(), "whether a reply is stored, too, when it was pushed to who asked"
    ),
    broker_config("flushConsumerOffsetInterval", MS, "how often committed offsets are written to disk"),
    message_store_config_of_brokers(
        "flushDiskType", OneOf(("ASYNC_FLUSH", "SYNC_FLUSH")), "whether a message is on disk before it is acknowledged"
    ),
    message_store_config_of_brokers("maxMessageSize", Whole(1, 16_000_000, "B"), "the largest body it stores"),
    message_store_config_of_brokers(
        "maxTransferBytesOnMessageInMemory", Whole(1, 1 << 30, "B"), "what one pull gets at most"
    ),
    message_store_config_of_brokers(
        "maxTransferCountOnMessageInMemory", COUNT, "how many messages one pull gets at most"
    ),
    message_store_config_of_brokers("messageDelayLevel", DelayLevels(), "the delay of level 1, 2, …"),
)
