"""What the servers of a live cluster said of one topic when they were asked: plain values, which causes.py reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ...remoting.bodies.route import BrokerData, TopicConfig, TopicRouteData
from ...remoting.codes import MASTER_ID


def parts_of_list(text: str) -> frozenset[str]:
    """The entries of a namesrvAddr."""
    return frozenset(part.strip() for part in text.split(";") if part.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class NameServerSeen:
    """What one NameServer answered. Where it gave no answer at all, `why` says so and the rest is empty."""

    address: str
    why: str | None = None
    code: int | None = None
    """Of the look-up of the topic (105)."""
    remark: str | None = None
    route: TopicRouteData | None = None
    strict: bool | None = None
    """Whether an older client's look-up was answered in JSON that every parser reads; None: there was no route."""
    brokers: Mapping[str, BrokerData] = field(default_factory=dict)
    """Its whole table (106), by broker name."""
    clusters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    topics: frozenset[str] | None = None
    """All it has (206); None: it does not tell (5.x with enableAllTopicList=false)."""

    @property
    def answers(self) -> bool:
        return self.why is None

    @property
    def routed(self) -> frozenset[str]:
        """The brokers that its route of the topic names."""
        return frozenset() if self.route is None else frozenset(data.broker_name for data in self.route.broker_datas)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSeen:
    """What one broker answered. Where it gave no answer at all, `why` says so."""

    name: str
    broker_id: int
    address: str
    why: str | None = None
    topic: TopicConfig | None = None
    topics: frozenset[str] | None = None
    """All that it has, asked only where the topic is nowhere."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Its configuration (26)."""

    @property
    def answers(self) -> bool:
        return self.why is None

    @property
    def lists(self) -> frozenset[str]:
        """The NameServers of its own configuration."""
        return parts_of_list(self.settings.get("namesrvAddr", ""))

    @property
    def creates_topics(self) -> bool:
        return self.settings.get("autoCreateTopicEnable", "true") == "true"

    def __str__(self) -> str:
        return self.name if self.broker_id == MASTER_ID else f"{self.name}/{self.broker_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSeen:
    """A consumer of the group that was asked about, and the NameServers of its own list (307)."""

    client_id: str
    lists: frozenset[str] = frozenset()
    why: str | None = None


@dataclass(frozen=True, kw_only=True)
class Seen:
    """All answers about one topic."""

    topic: str
    name_servers: tuple[NameServerSeen, ...]
    brokers: tuple[BrokerSeen, ...] = ()
    """Whoever is in any table, and who was named besides."""
    clients: tuple[ClientSeen, ...] = ()

    @cached_property
    def answering(self) -> tuple[NameServerSeen, ...]:
        return tuple(server for server in self.name_servers if server.answers)

    @cached_property
    def masters(self) -> tuple[BrokerSeen, ...]:
        return tuple(broker for broker in self.brokers if broker.broker_id == MASTER_ID)

    @cached_property
    def holders(self) -> tuple[BrokerSeen, ...]:
        """The masters that have the topic."""
        return tuple(broker for broker in self.masters if broker.topic is not None)

    def registered_at(self, broker: BrokerSeen) -> Iterator[NameServerSeen]:
        """The NameServers whose table has this broker at this address."""
        for server in self.answering:
            data = server.brokers.get(broker.name)
            if data is not None and broker.address in data.broker_addrs.values():
                yield server

    def speaks_our_names(self, broker: BrokerSeen) -> bool:
        """Whether its list can be held against the addresses we were given: behind a proxy, or by another name of the
        host, every NameServer that holds the broker would look unlisted."""
        held = [server.address for server in self.registered_at(broker)]
        return bool(broker.lists) and bool(held) and all(address in broker.lists for address in held)
