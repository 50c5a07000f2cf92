"""What a broker says of itself (broker.log), 4.9 and 5.x."""

from __future__ import annotations

SHAPES: tuple[tuple[str, str], ...] = (
    (
        "broker_boot",
        r"The broker ?\[(?P<broker>[^,]*), (?P<address>[^\]]*)\] boot success\."
        r"(?: serializeType=(?P<serialize>\w+))?(?: and name server is (?P<name_servers>\S+))?",
    ),
    ("registered", r"register broker(?: ?\[(?P<id>-?\d+)\])? ?to name server (?P<name_server>\S+) OK"),
    ("registered", r"(?P<spelt>Registering) current broker to name server completed\. TargetHost=(?P<name_server>\S+)"),
    ("register_failed", r"registerBroker Exception, (?P<name_server>[^\s:]+:\d+).*"),
    (
        "register_failed",
        r"Failed to register current broker to name server\. TargetHost=(?P<name_server>[^\s:]+:\d+).*",
    ),
    (
        "registration_slow",
        r"Registration to one or more name servers does NOT complete within deadline\. Timeout threshold: "
        r"(?P<timeout_ms>\d+)ms",
    ),
    ("registration_skipped", r"Skip register for broker is isolated"),
    ("registration_delayed", r"Register to namesrv after (?P<at>.*)"),
    (
        "data_version_asked",
        r"Query data version from name server (?P<name_server>\S+) OK, ?changed (?P<changed>\w+), ?broker "
        r"(?P<version>DataVersion ?\[[^\]]*\]), ?name server ?(?P<theirs>.*)",
    ),
    ("data_version_failed", r"Query data version from name server (?P<name_server>\S+) +[Ee]xception.*"),
    ("unregistered", r"unregisterBroker OK, NamesrvAddr: (?P<name_server>\S+)"),
    ("unregister_failed", r"unregisterBroker Exception, (?:NamesrvAddr: )?(?P<name_server>[^\s:]+:\d+).*"),
    ("master_said", r"Update master address from (?P<old>\S+) to (?P<address>\S+)"),
    ("slave_synced", r"[Uu]pdate slave (?P<what>[\w ]+) from master, (?P<address>\S+)"),
    ("slave_sync_failed", r"[Ss]ync(?P<what>[A-Z]\w+) Exception, (?P<address>[^\s:]+:\d+).*"),
    ("election_told", r"Begin handling broker role change term=(?P<term>-?\d+) role=(?P<role>\w+) currStoreRole=\w+"),
    ("role_changes", r"Begin to change to (?P<role>slave),? brokerName=(?P<broker>[^\s,]+),? brokerId=(?P<id>-?\d+).*"),
    (
        "role_changes",
        r"Begin to change to (?P<role>master),? brokerName[=:](?P<broker>[^\s,]+)(?:, .*new Epoch:(?P<epoch>\d+))?.*",
    ),
    ("heartbeat_failed", r"sendHeartbeat Exception (?P<name_server>\S+)"),
    (
        "topic_created",
        r"Create new topic by default topic: ?\[(?P<default>[^\]]*)\] config: ?\[(?P<config>.*)\] "
        r"producer: ?\[(?P<address>[^\]]*)\]",
    ),
    (
        "topic_created",
        r"create new topic by default topic ?\[(?P<default>[^\]]*)\], ?(?P<config>TopicConfig ?\[.*\]) ?"
        r"producer: ?(?P<address>\S+)",
    ),
    ("topic_missing", r"the topic (?P<topic>\S+) not exist, producer: (?P<address>\S+)"),
    (
        "consumer_connected",
        r"new consumer connected, group: (?P<group>\S+) (?P<type>\S+) (?P<model>\S+) channel: (?P<channel>.*)",
    ),
    ("producer_connected", r"new producer connected, group: (?P<group>\S+) channel: (?P<channel>.*)"),
    (
        "consumer_expired",
        r"SCAN: remove expired channel from ConsumerManager consumerTable\. channel=(?P<channel>[^,]*), "
        r"consumerGroup=(?P<group>\S+)",
    ),
    (
        "producer_expired",
        r"(?:ProducerManager#scanNotActiveChannel: |SCAN: )?remove expired channel ?\[(?P<channel>[^\]]*)\] from "
        r"ProducerManager groupChannelTable, producer group name: (?P<group>\S+)",
    ),
    (
        "offset_fixed",
        r"the request offset: (?P<offset>-?\d+) over flow badly, fix to (?P<fixed>-?\d+), broker max offset: "
        r"(?P<max>-?\d+), consumer: (?P<address>\S+)",
    ),
    ("offset_fixed", r"the request offset too small.*"),
    ("offset_fixed", r"the broker stores? no queue data.*"),
)
