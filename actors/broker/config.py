"""A broker's settings: RocketMQ's names and defaults, from a properties file or from Python.

`BrokerConfig.from_properties` reads RocketMQ's own `-c` files. Keys of a `-c` file that this broker does not use (such
as thread pool sizes) are ignored. A wrong value is refused with an error that names the key. Upstream: `BrokerConfig`,
`MessageStoreConfig`, `NettyServerConfig`, `BrokerStartup`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ...remoting.codes import PERM_READ, PERM_WRITE
from ...remoting.headers.fields import as_text, camel_case
from ...remoting.node.network import Address
from ...remoting.node.profile import Profile
from ...remoting.topics import DEFAULT_CLUSTER
from ..errors import ConfigError

_DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def _checked(default: object, holds: Callable[[Any], object], allowed: str) -> Any:
    return field(default=default, metadata={"check": lambda value: (holds(value), allowed)})


def _one_of(default: str, *others: str) -> Any:
    return _checked(default, lambda value: value in (default, *others), " or ".join((default, *others)))


def _within(default: int, least: int, most: int, unit: str = "") -> Any:
    return _checked(default, lambda value: least <= value <= most, f"{least} to {most}{unit}")


def _positive(default: int, unit: str = "") -> Any:
    return _checked(default, lambda value: value > 0, f"more than 0{unit}")


def _0_or_more(default: int) -> Any:
    return _checked(default, lambda value: value >= 0, "0 ms or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """All of a broker's settings. Durations are in milliseconds. `java_name` gives RocketMQ's spelling of a setting."""

    broker_name: str = _checked("broker-a", lambda name: name.strip(), "a name")
    broker_id: int = 0
    broker_role: str = _one_of("ASYNC_MASTER", "SYNC_MASTER", "SLAVE")
    """ASYNC_MASTER, SYNC_MASTER (a send waits until a slave has it) or SLAVE, whose brokerId is above 0."""
    slave_read_enable: bool = False
    """Whether the broker sends a consumer that is far behind to a slave (whichBrokerWhenConsumeSlowly). Slaves serve
    pulls in any case."""
    cluster_name: str = _checked(DEFAULT_CLUSTER, lambda name: name.strip(), "a name")
    namesrv_addr: tuple[Address, ...] = ()
    address_server: Address | None = None
    """The HTTP server that gives the list of NameServers where `namesrv_addr` is empty
    (`fetchNamesrvAddrByAddressServer`)."""
    broker_ip1: str = ""
    """The host registered with NameServers and written into messages; empty: the listening host."""
    listen_port: int = _within(10911, 0, 65535)
    bind_address: str = ""
    """Where the stand-alone broker listens; empty means on the address that it tells, brokerIP1."""
    profile: Profile = Profile.V4_9
    broker_permission: int = _checked(
        PERM_READ | PERM_WRITE, lambda bits: bits in (0, 2, 4, 6), "2 (write), 4 (read), 6 (both) or 0"
    )

    default_topic_queue_nums: int = _within(8, 1, 65536)
    auto_create_topic_enable: bool = True
    auto_create_subscription_group: bool = True
    cluster_topic_enable: bool = True
    broker_topic_enable: bool = True
    trace_topic_enable: bool = False
    msg_trace_topic_name: str = "RMQ_SYS_TRACE_TOPIC"
    trace_on: bool = True
    region_id: str = "DefaultRegion"

    register_name_server_period: int = _positive(30_000, " ms")
    register_broker_timeout_mills: int = _0_or_more(0)
    """0 means the profile's own: 6000 in 4.9, 24000 in 5.x."""
    broker_not_active_timeout_millis: int = _0_or_more(0)
    """How long a NameServer of 5.x shall keep this broker without a word from it, in milliseconds; 4.9 does not send
    it. 0 means 120000, and 10000 with enableSlaveActingMaster."""
    enable_slave_acting_master: bool = False
    """5.x: whether the slave with the least id acts as master while the group has no master. The broker then sends a
    heartbeat each second."""
    broker_heartbeat_interval: int = _positive(1000)
    connect_timeout_millis: int = _positive(3000)
    client_channel_max_idle_time_seconds: int = _positive(120)
    client_close_socket_if_timeout: bool = True
    server_channel_max_idle_time_seconds: int = _positive(120)
    force_register: bool = True
    compressed_register: bool = False
    notify_consumer_ids_changed_enable: bool = True

    long_polling_enable: bool = True
    short_polling_time_mills: int = _positive(1000, " ms")
    lite_pull_message_enable: bool = True
    enable_property_filter: bool = False
    """Whether consumers may filter by SQL92."""
    max_held_pulls: int = _positive(100_000)
    """How many pull requests may wait at once (in Java `pullThreadPoolQueueCapacity` bounds them)."""
    flush_consumer_offset_interval: int = _positive(5000, " ms")

    store_reply_message_enable: bool = True
    """Whether the broker stores a reply, too, and does not only push it to the client that asked."""
    reject_transaction_message: bool = False
    transaction_time_out: int = _0_or_more(6000)
    transaction_check_max: int = _positive(15)
    transaction_check_interval: int = _0_or_more(0)
    """0 means the profile's own: 60000 in 4.9, 30000 in 5.x."""

    store_path_root_dir: str = "~/store"
    mapped_file_size_commit_log: int = 1 << 30
    flush_disk_type: str = _one_of("ASYNC_FLUSH", "SYNC_FLUSH")
    max_message_size: int = _within(4 << 20, 1, 16_000_000, " B")
    max_transfer_bytes_on_message_in_memory: int = _positive(256 * 1024)
    max_transfer_count_on_message_in_memory: int = _positive(32)
    message_delay_level: str = _DELAY_LEVELS

    def __post_init__(self) -> None:
        checks = [(f.name, *f.metadata["check"](getattr(self, f.name))) for f in fields(self) if f.metadata]
        is_id = self.broker_id > 0 if self.is_slave else self.broker_id == 0
        id_ = "1 or more with brokerRole SLAVE" if self.is_slave else "0, or 1 or more with brokerRole SLAVE"
        has_room = self.max_message_size + 65_536 <= self.mapped_file_size_commit_log <= 1 << 40
        room = "room for the largest message (maxMessageSize + 65536 B), at most 1 TiB"
        checks += [("broker_id", is_id, id_), ("mapped_file_size_commit_log", has_room, room)]
        for name, holds, allowed in checks:
            if not holds:
                raise ConfigError("BrokerConfig", java_name(name), _text(getattr(self, name)), allowed)
        parse_delay_levels(self.message_delay_level)

    @property
    def is_5x(self) -> bool:
        return self.profile is Profile.V5_X

    @property
    def is_slave(self) -> bool:
        return self.broker_role == "SLAVE"

    @property
    def acts_as_master(self) -> bool:
        """Whether enableSlaveActingMaster is on, a setting that 4.9 does not have."""
        return self.enable_slave_acting_master and self.is_5x

    @property
    def not_active_ms(self) -> int:
        """How long NameServers shall keep a broker that sends nothing, in milliseconds."""
        return self.broker_not_active_timeout_millis or (10_000 if self.acts_as_master else 120_000)

    @property
    def register_timeout_s(self) -> float:
        default = 24_000 if self.is_5x else 6000
        return (self.register_broker_timeout_mills or default) / 1000

    @property
    def register_period_s(self) -> float:
        """The period between full registrations, limited to 10 to 60 s (`BrokerController.start`)."""
        return max(10_000, min(self.register_name_server_period, 60_000)) / 1000

    @property
    def transaction_check_period_s(self) -> float:
        default = 30_000 if self.is_5x else 60_000
        return (self.transaction_check_interval or default) / 1000

    @property
    def delay_levels_ms(self) -> tuple[int, ...]:
        return parse_delay_levels(self.message_delay_level)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], *, source: str = "properties") -> BrokerConfig:
        """Return the defaults, changed by `properties`. ConfigError names `source`, key, value and allowed values."""
        return cls().updated(properties, source=source)

    def updated(self, properties: Mapping[str, str], *, source: str = "properties") -> BrokerConfig:
        """Return a copy with the known keys of `properties` set; unknown keys are ignored. Raises ConfigError as
        `from_properties` does."""
        parsed: dict[str, object] = {}
        for key in _PYTHON_NAMES.keys() & properties.keys():
            parsed[_PYTHON_NAMES[key]] = _parse(source, key, properties[key].strip())
        try:
            return replace(self, **parsed)  # type: ignore[arg-type]  # parsed by field type
        except ConfigError as exc:
            raise ConfigError(source, exc.key, exc.value, exc.allowed) from None

    def to_properties(self) -> dict[str, str]:
        """Return each setting's value as text, by RocketMQ's name of the setting, for GET_BROKER_CONFIG (26)."""
        own = {java_name(f.name): _text(getattr(self, f.name)) for f in fields(self) if f.name not in _OURS_ONLY}
        return _NOT_OBEYED | own


def parse_delay_levels(text: str) -> tuple[int, ...]:
    """Return the delays of a text such as `"1s 5s 1m"`, in milliseconds. Raises ConfigError if the text is empty or an
    entry is no duration."""
    levels = []
    for entry in text.split():
        number, unit = entry[:-1], entry[-1:]
        if not (number.isascii() and number.isdigit()) or unit not in _UNIT_MS:
            break
        levels.append(int(number) * _UNIT_MS[unit])
    if not levels or len(levels) != len(text.split()):
        raise ConfigError("BrokerConfig", "messageDelayLevel", text, "numbers followed by s, m, h or d, with spaces")
    return tuple(levels)


_SPECIAL_NAMES = {"broker_ip1": "brokerIP1", "cluster_name": "brokerClusterName"}
_OURS_ONLY = frozenset({"profile", "max_held_pulls", "broker_not_active_timeout_millis", "address_server"})


_NOT_OBEYED = {"fileReservedTime": "72", "filterServerNums": "0", "useTLS": "false"}
"""RocketMQ's defaults of settings that our broker does not have. 4.9's `mqadmin exportConfigs` fails without them."""


def java_name(name: str) -> str:
    """Return RocketMQ's spelling of a setting's name: `"listenPort"` for `"listen_port"`."""
    return _SPECIAL_NAMES.get(name) or camel_case(name)


_PYTHON_NAMES = {java_name(f.name): f.name for f in fields(BrokerConfig)}
_DEFAULTS = BrokerConfig()


def parse_name_servers(text: str) -> tuple[Address, ...]:
    """Return `"a:9876;b:9876"` as addresses. Raises ValueError, whose message names the entry that is no address."""
    return tuple(Address.parse(part) for part in text.split(";") if part.strip())


def _parse(source: str, key: str, text: str) -> object:
    name = _PYTHON_NAMES[key]
    default = getattr(_DEFAULTS, name)
    try:
        if name == "namesrv_addr":
            return parse_name_servers(text)
        if name == "profile":
            return Profile(text)
        if isinstance(default, bool):
            return {"true": True, "false": False}[text.lower()]
        return int(text) if isinstance(default, int) else text
    except (KeyError, ValueError):
        raise ConfigError(source, key, text, _allowed(name, default)) from None


def _allowed(name: str, default: object) -> str:
    if name == "namesrv_addr":
        return "host:port;host:port"
    if name == "profile":
        return " or ".join(Profile)
    return "true or false" if isinstance(default, bool) else "a whole number"


def _text(value: object) -> str:
    return ";".join(map(str, value)) if isinstance(value, tuple) else as_text(value)
