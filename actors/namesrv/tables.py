"""Data types of the NameServer's tables, requests and results, without the rules that change them.

    topic_queue_table     topic        -> broker name -> QueueData
    broker_addr_table     broker name  -> BrokerGroup (cluster, broker id -> address)
    cluster_addr_table    cluster      -> set of broker names
    broker_live_table     live key     -> LiveInfo (last update, data version, channel, HA address)
    filter_server_table   live key     -> addresses of filter servers
    topic_queue_mapping_info_table     topic -> broker name -> mapping info      (5.x, static topics)

A live key is ("", broker address) in 4.9 and (cluster, broker address) in 5.x, as in RocketMQ. route_table.py has the
rules that add brokers and answer requests, unregister.py the rules that remove brokers.

Upstream: `RouteInfoManager`, tags rocketmq-all-4.9.8 and rocketmq-all-5.3.3.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from ...remoting.bodies.register_rows import NO_PIECES, Pieces
from ...remoting.bodies.route import BrokerData, DataVersion, QueueData, Row
from ...remoting.codes import PERM_INHERIT, PERM_READ, PERM_WRITE
from ...remoting.node.profile import Profile

BROKER_CHANNEL_EXPIRED_MS = 120_000
"""How long a broker may be silent, in milliseconds, unless its 5.x registration says otherwise."""

LiveKey = tuple[str, str]


class Say(Protocol):
    """A function like `logging.Logger.log`, with which the tables log their changes in RocketMQ's wording."""

    def __call__(self, level: int, msg: str, /, *args: object) -> None: ...


def silent(level: int, msg: str, /, *args: object) -> None:
    """Log nothing."""


class SayEach(Protocol):
    """A function that logs `(level, msg, item, *args)` for each of `items`, quicker than calls of `Say`."""

    def __call__(self, level: int, msg: str, items: Sequence[str], /, *args: object) -> None: ...


def one_by_one(say: Say) -> SayEach:
    """Return a function that logs many items by calling `say` once for each, for a log that cannot log many at once."""

    def say_each(level: int, msg: str, items: Sequence[str], /, *args: object) -> None:
        for item in items:
            say(level, msg, item, *args)

    return say_each


class DropReason(StrEnum):
    UNREGISTERED = "unregistered"
    CLOSED = "closed"
    EXCEPTION = "exception"
    IDLE = "idle"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteOptions:
    """The NamesrvConfig settings that the tables use (5.x only), and, in 4.9 and 5.x, the constant time after which a
    silent broker is removed."""

    support_acting_master: bool = False
    delete_topic_with_broker_registration: bool = False
    notify_min_broker_id_changed: bool = False
    unregister_queue_capacity: int = 3000
    broker_channel_expired_ms: int = BROKER_CHANNEL_EXPIRED_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One REGISTER_BROKER, decoded. If `filter_servers` is None, the broker's filter servers stay; an empty tuple
    removes them. `rows` has the broker's topics; topics unchanged since the last registration can be missing."""

    cluster_name: str
    broker_name: str
    broker_addr: str
    broker_id: int
    ha_server_addr: str
    channel_id: int
    data_version: DataVersion
    rows: Sequence[Row] = ()
    pieces: Pieces = NO_PIECES
    """What the rows were read from, left out or not."""
    filter_servers: tuple[str, ...] | None = None
    queue_mappings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    zone_name: str | None = None
    heartbeat_timeout_ms: int | None = None
    enable_acting_master: bool | None = None
    """None: the header field is absent, which 5.x calls an old version broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MinBrokerIdChanged:
    """A NOTIFY_MIN_BROKER_ID_CHANGE to send, oneway, to each address in `notify`."""

    broker_name: str
    min_broker_id: int
    min_broker_addr: str
    offline_broker_addr: str | None
    ha_broker_addr: str | None
    notify: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """The result of a registration. `refused` is the remark of a registration refused because of 5.x's single-topic
    rule or a limit."""

    refused: str | None = None
    master_addr: str | None = None
    ha_server_addr: str | None = None
    notification: MinBrokerIdChanged | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unregistration:
    """A broker to remove, because the broker unregistered or its channel was lost."""

    cluster_name: str
    broker_name: str
    broker_addr: str
    broker_id: int
    reason: DropReason = DropReason.UNREGISTERED

    def __str__(self) -> str:
        return (
            f"UnRegisterBrokerRequestHeader [clusterName={self.cluster_name}, brokerAddr={self.broker_addr},"
            f" brokerName={self.broker_name}, brokerId={self.broker_id}]"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A broker address that has just left broker_addr_table, and the reason."""

    broker_name: str
    broker_id: int
    address: str
    reason: DropReason


@dataclass(slots=True, kw_only=True)
class LiveInfo:
    last_update_ms: int
    heartbeat_timeout_ms: int
    data_version: DataVersion
    channel_id: int
    ha_server_addr: str
    pieces: Pieces = NO_PIECES
    """The pieces that its last registration was read from, if all its rows went into the table."""
    rows_version: int = 0
    """The `rows_version` of its group after its last registration."""


@dataclass(slots=True, kw_only=True)
class BrokerGroup:
    """A master and its slaves under one broker name."""

    cluster: str
    broker_name: str
    rows_version: int = 0
    """A number that changes with each change of a row of this broker name, and never repeats."""
    addrs: dict[int, str] = field(default_factory=dict)
    enable_acting_master: bool = False
    zone_name: str | None = None

    @property
    def min_id(self) -> int:
        return min(self.addrs, default=0)

    def data(self, profile: Profile) -> BrokerData:
        """Return a copy of the group as sent to clients; in 4.9 without enableActingMaster and zoneName."""
        return BrokerData(
            cluster=self.cluster,
            broker_name=self.broker_name,
            broker_addrs=dict(self.addrs),
            enable_acting_master=self.enable_acting_master if profile is Profile.V5_X else None,
            zone_name=self.zone_name if profile is Profile.V5_X else None,
        )


class Shown:
    """A topic's QueueData as RocketMQ's logs show it (`null` for None); the text is made only when logged."""

    __slots__ = ("_row", "_text")

    def __init__(self, row: QueueData | None) -> None:
        self._row, self._text = row, ""

    def __str__(self) -> str:
        row = self._row
        if row is None:
            return "null"
        self._text = self._text or (
            f"QueueData [brokerName={row.broker_name}, readQueueNums={row.read_queue_nums},"
            f" writeQueueNums={row.write_queue_nums}, perm={row.perm}, topicSysFlag={row.topic_sys_flag}]"
        )
        return self._text


class ShownTopics:
    """A registration's topics as RocketMQ 5.x logs them; TopicConfig fields that are not stored show their defaults."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __str__(self) -> str:
        shown = ", ".join(
            f"{name}=TopicConfig [topicName={name}, readQueueNums={row.read_queue_nums},"
            f" writeQueueNums={row.write_queue_nums}, perm={_perm_text(row.perm)}, topicFilterType=SINGLE_TAG,"
            f" topicSysFlag={row.topic_sys_flag}, order=false, attributes={{}}]"
            for name, row in self._rows
        )
        return f"{{{shown}}}"


def _perm_text(perm: int) -> str:
    """Return the permission's text, as RocketMQ's `PermName.perm2String` does."""
    return "".join(
        letter if perm & bit else "-" for letter, bit in (("R", PERM_READ), ("W", PERM_WRITE), ("X", PERM_INHERIT))
    )
