"""RocketMQ's own topics are told from a user's, by every name that its servers and clients make of themselves."""

import pytest

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.actors.broker.topics import TopicTable
from nemesrv.remoting.node.profile import Profile
from nemesrv.remoting.topics import NOT_ALLOWED_TO_SEND, SYSTEM_TOPICS, is_own, is_system_topic

OWN = (
    *sorted(SYSTEM_TOPICS),
    "rmq_sys_wheel_timer",
    "RMQ_SYS_EVENT_TOPIC",
    "%RETRY%orders-group",
    "%DLQ%orders-group",
    "%RETRY%MQ_INST_1%orders-group",
    "SCHEDULE_TOPIC_XXXX_V2",
    "DefaultCluster_REPLY_TOPIC",
    "DefaultCluster",
    "DefaultHeartBeatSyncerTopic",
)
USERS = (
    *("orders", "MQ_INST_1%orders", "TBW102-orders", "retry", "DefaultClusters", "SELF_TEST"),
    *("RMQ_orders", "REPLY_TOPIC_orders"),
)


@pytest.mark.parametrize("topic", OWN)
def test_what_rocketmq_made_of_itself_is_its_own(topic: str) -> None:
    assert is_own(topic)


@pytest.mark.parametrize("topic", USERS)
def test_a_user_s_topic_is_not(topic: str) -> None:
    assert not is_own(topic)
    assert not is_system_topic(topic)


def test_topics_of_groups_and_clusters_are_no_system_topics() -> None:
    """`TopicValidator.isSystemTopic`: a broker takes messages for them, and an operator may delete them."""
    assert not [topic for topic in OWN if is_system_topic(topic) and topic[0] in "%D"]


def test_nobody_sends_to_some_system_topics_and_to_others_everybody_may() -> None:
    assert NOT_ALLOWED_TO_SEND < SYSTEM_TOPICS
    assert {"TBW102", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC", "CHECKPOINT_TOPIC"} == SYSTEM_TOPICS - NOT_ALLOWED_TO_SEND


@pytest.mark.parametrize("profile", list(Profile))
def test_all_that_a_broker_begins_with_is_rocketmq_s_own_or_named_after_it(profile: Profile) -> None:
    config = BrokerConfig(profile=profile)
    topics = TopicTable(config, now_ms=0).topic_config_table
    assert {topic for topic in topics if not is_own(topic)} == {config.broker_name}
