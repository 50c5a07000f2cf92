"""RocketMQ's own topics by name: system topics, topics that accept no sends, topics that no user created. Upstream:
`TopicValidator` (4.9 and 5.x), `MixAll`, `KeyBuilder`, the proxy's `heartbeatSyncerTopicName`."""

TBW102 = "TBW102"
"""The template of topics that are made at their first send (`TopicValidator.AUTO_CREATE_TOPIC_KEY_TOPIC`)."""
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TRANSACTION_DISCARD_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
RETRY_GROUP_TOPIC_PREFIX = "%RETRY%"
DLQ_GROUP_TOPIC_PREFIX = "%DLQ%"
DEFAULT_CLUSTER = "DefaultCluster"

NOT_ALLOWED_TO_SEND = frozenset(
    {SCHEDULE_TOPIC, HALF_TOPIC, OP_TOPIC, TRANSACTION_DISCARD_TOPIC, "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT"}
)
"""Both ends hold to it: the client sends nothing there, and the broker takes nothing."""
SYSTEM_TOPICS = NOT_ALLOWED_TO_SEND | {TBW102, "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC", "CHECKPOINT_TOPIC"}
SYSTEM_PREFIX = "rmq_sys_"
_OTHERS = frozenset({DEFAULT_CLUSTER, "DefaultHeartBeatSyncerTopic"})
_OTHER_STARTS = ("%", "RMQ_SYS_", SCHEDULE_TOPIC, "CID_", "checkpoint_")
_OTHER_ENDS = "_REPLY_TOPIC"


def is_system_topic(topic: str) -> bool:
    """Whether Java's `TopicValidator.isSystemTopic` is true; it is false for topics of groups, clusters and brokers."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_PREFIX)


def is_own(topic: str) -> bool:
    """Whether RocketMQ created the topic itself.

    RocketMQ creates system topics, topics of groups (%RETRY%, %DLQ%, also in a namespace) and of replies, and the
    default cluster's topic. `is_own` is False for topics of other clusters and of brokers, because nemesrv does not
    know their names.
    """
    return is_system_topic(topic) or topic in _OTHERS or topic.startswith(_OTHER_STARTS) or topic.endswith(_OTHER_ENDS)
