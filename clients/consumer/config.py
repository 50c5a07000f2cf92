"""The settings and subscriptions of a push consumer, with RocketMQ's names and defaults. Upstream:
`DefaultMQPushConsumer`, `DefaultMQPushConsumerImpl`, `ProcessQueue`."""

from dataclasses import dataclass
from enum import StrEnum

from ...remoting.topics import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX
from ..config import ClientConfig, positive
from .process_queue import FlowLimits


def retry_topic(group: str) -> str:
    """Return the name of the group's retry topic, in which the broker stores messages that failed."""
    return RETRY_GROUP_TOPIC_PREFIX + group


def dead_letter_topic(group: str) -> str:
    """Return the name of the topic in which the broker stores the group's messages that failed too often."""
    return DLQ_GROUP_TOPIC_PREFIX + group


class MessageModel(StrEnum):
    """Whether the members of a consumer group share a topic's queues. The values are the texts on the wire."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


CONSUME_FROM_WHERE = "CONSUME_FROM_FIRST_OFFSET"
"""Where a group starts in a queue if the group committed no offset, as on the wire; the only place that workloads
need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    """A push consumer's settings. Defaults: `DefaultMQPushConsumer`."""

    consumer_group: str = "DEFAULT_CONSUMER"
    subscriptions: tuple[tuple[str, str], ...] = ()
    """(topic, expression) pairs; an expression is `*` or tags joined by `||`."""
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_thread_max: int = positive(20)
    """How many listener calls run at once."""
    consume_message_batch_max_size: int = positive(1)
    """How many messages one listener call gets."""
    pull_batch_size: int = positive(32)
    pull_threshold_for_queue: int = positive(1_000)
    pull_threshold_size_for_queue_mib: int = positive(100)
    consume_concurrently_max_span: int = positive(2_000)
    max_reconsume_times: int = 16
    """How often a message that fails comes back before it goes to the dead-letter topic."""
    post_subscription_when_pull: bool = False
    pull_time_delay_when_exception_ms: int = 1_000
    rebalance_interval_ms: int = positive(20_000)
    rebalance_min_interval_ms: int = positive(1_000)
    """The wait after a round that left queues unbalanced; 5.2.0 and later, ignored by profile 4.9."""
    await_termination_when_shutdown_ms: int = 0
    """How long stopping waits for listener calls that run."""

    def __post_init__(self) -> None:
        ClientConfig.__post_init__(self)
        if not self.consumer_group:
            raise ValueError("consumer_group is empty; it must be a name")

    @property
    def flow_limits(self) -> FlowLimits:
        return FlowLimits(
            messages=self.pull_threshold_for_queue,
            size_bytes=self.pull_threshold_size_for_queue_mib * 1024 * 1024,
            span=self.consume_concurrently_max_span,
        )
