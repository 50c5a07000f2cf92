"""The settings of a client, with RocketMQ's names (in snake_case, with units) and RocketMQ's defaults.

Durations are milliseconds on the node's clock, which an experiment can make faster than real time. Upstream:
`ClientConfig`, `DefaultMQProducer`, `NettyClientConfig` (4.9.8; a field whose default 5.3 changed says so).
"""

from dataclasses import dataclass, field, fields
from typing import Any

from ..remoting.node.network import Address
from ..remoting.node.profile import Profile
from .name_servers import JAVA, SelectionRules

CLIENT_IP = "127.0.0.1"
"""The first half of the client id; nothing connects to this address."""
DEFAULT_TOPIC_QUEUE_NUMS = 4
"""Most queues that an unknown topic gets at each broker."""

_RETRY_RESPONSE_CODES_4_9 = frozenset({17, 14, 1, 16, 204, 205})
_RETRY_RESPONSE_CODES_5_3 = _RETRY_RESPONSE_CODES_4_9 | {2, 1500}


def positive(default: int) -> Any:
    """Return a setting that must be more than 0."""
    return field(default=default, metadata={"positive": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """The settings that every client has. The fields from `connect_timeout_ms` on have the defaults of Java's
    `NettyClientConfig`, all fields before have the defaults of `ClientConfig`."""

    namesrv_addr: tuple[Address, ...] = ()
    address_server: Address | None = None
    """Asked for the list where `namesrv_addr` is empty (`rocketmq.namesrv.domain`)."""
    profile: Profile = Profile.V4_9
    selection: SelectionRules = JAVA
    """How it chooses NameServers: as Java's clients, or as one of another language does."""
    poll_name_server_interval_ms: int = positive(30_000)
    heartbeat_broker_interval_ms: int = positive(30_000)
    persist_consumer_offset_interval_ms: int = positive(5_000)
    mq_client_api_timeout_ms: int = positive(3_000)
    connect_timeout_ms: int = positive(3_000)
    client_channel_max_idle_time_ms: int = positive(120_000)
    client_close_socket_if_timeout: bool = True
    lock_timeout_ms: int = positive(3_000)
    """How long a call waits for another that updates a route or chooses a NameServer: a constant in Java
    (`MQClientInstance.LOCK_TIMEOUT_MILLIS`, `NettyRemotingClient.LOCK_TIMEOUT_MILLIS`)."""

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if setting.metadata.get("positive") and value <= 0:
                raise ValueError(f"{setting.name} is {value}; it must be more than 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig(ClientConfig):
    """A producer's settings. Defaults: `DefaultMQProducer`."""

    producer_group: str = "DEFAULT_PRODUCER"
    send_msg_timeout_ms: int = positive(3_000)
    """The budget of one whole send call, retries included."""
    send_msg_max_timeout_per_request_ms: int = -1
    """Cap of each try but the last; -1 is off. 5.3.3 and later, ignored by profile 4.9."""
    compress_msg_body_over_howmuch: int = 4_096
    retry_times_when_send_failed: int = 2
    retry_another_broker_when_not_store_ok: bool = False
    max_message_size: int = positive(4 * 1024 * 1024)
    send_latency_fault_enable: bool = False
    latency_max: tuple[int, ...] = ()
    """The latencies in milliseconds from which a broker is isolated, ascending; empty: the profile's own."""
    not_available_duration: tuple[int, ...] = ()
    """For how many milliseconds, one for each of latency_max; empty: the profile's own."""
    start_detector_enable: bool = False
    """Whether brokers that failed are probed (5.1.4 and later, ignored by profile 4.9)."""

    def __post_init__(self) -> None:
        # The zero-argument super() cannot be used in a dataclass with slots, which makes a second class object.
        ClientConfig.__post_init__(self)
        if not self.producer_group:
            raise ValueError("producer_group is empty; it must be a name")
        if len(self.latency_max) != len(self.not_available_duration) or sorted(self.latency_max) != [*self.latency_max]:
            raise ValueError("latency_max must ascend, and not_available_duration must have as many entries")
        if (retries := self.retry_times_when_send_failed) < 0:
            raise ValueError(f"retry_times_when_send_failed is {retries}; it must be 0 or more")

    @property
    def retry_response_codes(self) -> frozenset[int]:
        """The broker's response codes after which a synchronous send tries again."""
        return _RETRY_RESPONSE_CODES_4_9 if self.profile is Profile.V4_9 else _RETRY_RESPONSE_CODES_5_3
