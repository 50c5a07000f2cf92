"""What `watch` reads at one time (a look): each NameServer's whole table, and the answers of some brokers. Plain
values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .server_answers import parts_of_list


class BrokerId(NamedTuple):
    name: str
    number: int

    def __str__(self) -> str:
        return self.name if self.number == 0 else f"{self.name}/{self.number}"


class TopicRow(NamedTuple):
    """A topic's queues and permission at one broker, from a NameServer's route."""

    broker_name: str
    read_queues: int
    write_queues: int
    perm: int


Route = frozenset[TopicRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class NameServerLook:
    """One NameServer's answers in one reading. If the NameServer did not answer, `why` is the reason, and the other
    fields are empty."""

    why: str | None = None
    brokers: Mapping[BrokerId, str] = field(default_factory=dict)
    """Broker to host:port."""
    topics: frozenset[str] | None = None
    """All topics of the NameServer; None: not asked this time, or not answered."""
    routes: Mapping[str, Route | None] = field(default_factory=dict)
    """Routes of the topics looked up this time; None: code 17."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLook:
    why: str | None = None
    lists: frozenset[str] = frozenset()
    version: tuple[int, int, int] | None = None
    """stateVersion, timestamp and counter of its dataVersion."""
    period_s: float | None = None
    """registerNameServerPeriod."""


class Member(NamedTuple):
    """A consumer of a group, by its client id."""

    group: str
    client_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    at_s: float
    """Time of the last answer."""
    name_servers: Mapping[str, NameServerLook]
    brokers: Mapping[str, BrokerLook] = field(default_factory=dict)
    """By address: the brokers asked this time."""
    clients: Mapping[Member, frozenset[str]] = field(default_factory=dict)
    """Clients that answered with their own list of NameServers (307) this time."""
    gone: frozenset[Member] = frozenset()
    """Clients that their broker no longer has."""


def broker_look(settings: Mapping[str, str], version: tuple[int, int, int] | None) -> BrokerLook:
    period = settings.get("registerNameServerPeriod", "")
    return BrokerLook(
        lists=parts_of_list(settings.get("namesrvAddr", "")),
        version=version,
        period_s=int(period) / 1000 if period.isdigit() else None,
    )
