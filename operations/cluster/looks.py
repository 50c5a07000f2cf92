"""What a watch sees at one moment: each NameServer's whole table, and those brokers that it asked. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .server_answers import parts_of_list


class BrokerId(NamedTuple):
    name: str
    number: int

    def __str__(self) -> str:
        return self.name if self.number == 0 else f"{self.name}/{self.number}"


class TopicRow(NamedTuple):
    """A topic at one broker, as a route answer has it."""

    broker_name: str
    read_queues: int
    write_queues: int
    perm: int


Route = frozenset[TopicRow]
RecordedRoute = Mapping[str, Any]
"""{"brokers": {name: {id: address}}, "queues": {name: [read, write, perm, flag]}}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameServerLook:
    """What one NameServer answered; `why` where it gave no answer, and then the rest is empty."""

    why: str | None = None
    brokers: Mapping[BrokerId, str] = field(default_factory=dict)
    """Broker to host:port."""
    clusters: frozenset[str] = frozenset()
    topics: frozenset[str] | None = None
    """All that it has; None: not asked this time, or it does not tell."""
    routes: Mapping[str, Route | None] = field(default_factory=dict)
    """Of the topics that were looked up this time; None: code 17."""
    tables: Mapping[str, RecordedRoute | None] = field(default_factory=dict)
    """The same of those that are recorded, as the history has routes."""
    answered_s: float | None = None
    """When its last answer came; None: at the end of the look."""
    settings: Mapping[str, str] | None = None
    """Its configuration (319); None: not asked this time, or it does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLook:
    """What one broker answered when it was asked for its configuration."""

    why: str | None = None
    lists: frozenset[str] = frozenset()
    version: tuple[int, int, int] | None = None
    """stateVersion, timestamp and counter of its dataVersion."""
    period_s: float | None = None
    """registerNameServerPeriod."""
    settings: Mapping[str, str] = field(default_factory=dict)
    answered_by: int = 0
    """The MQVersion that it writes into its answers."""
    booted_ms: int | None = None
    """bootTimestamp by its own clock (28); None: not asked, or it does not tell."""


class Member(NamedTuple):
    """A consumer of a group."""

    group: str
    client_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    at_s: float
    """When the last answer was there."""
    name_servers: Mapping[str, NameServerLook]
    brokers: Mapping[str, BrokerLook] = field(default_factory=dict)
    """By address: who was asked this time."""
    clients: Mapping[Member, frozenset[str]] = field(default_factory=dict)
    """Those that told their own list of NameServers (307) this time."""
    gone: frozenset[Member] = frozenset()
    """Those that a broker no longer has."""
    began_s: float | None = None
    """When the first question was sent; None: at the same time."""


def broker_look(
    settings: Mapping[str, str],
    version: tuple[int, int, int] | None,
    *,
    answered_by: int = 0,
    booted_ms: int | None = None,
) -> BrokerLook:
    """From a broker's configuration (26), and, where it was asked for it, its runtime info (28)."""
    period = settings.get("registerNameServerPeriod", "")
    return BrokerLook(
        lists=parts_of_list(settings.get("namesrvAddr", "")),
        version=version,
        period_s=int(period) / 1000 if period.isdigit() else None,
        settings=settings,
        answered_by=answered_by,
        booted_ms=booted_ms,
    )
