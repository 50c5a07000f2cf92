"""What logs tell of routes: who asked whom in vain, who was registered where and until when, who lists whom. Pure.

    Reconstructed (logs with their writers, names and clocks) ─► told_by() ─► Told ─► log_causes.py

All moments are UTC in milliseconds, by the clock that the logs were put on.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...remoting.topics import is_own
from ..logs_to_rows.line import Line
from ..logs_to_rows.reconstruct import Reconstructed
from ..logs_to_rows.sources import BROKER, CLIENT, NAME_SERVER, Source

NO_ROUTE, NO_ANSWER = "no route", "no answer"
TOPIC_NOT_EXIST = "17"
APART_MS = 120_000
"""Failures further apart are two."""
LED_TO_MS = 15_000
"""So long before a broker's removal stands what it was removed for."""
_BROKER_NAME = re.compile(r"brokerName=([^,\]}]+)")
_ADDRESS = re.compile(r"(?:\d{1,3}(?:\.\d{1,3}){3}|[\w-]+(?:\.[\w-]+)*):\d{2,5}")


class At(NamedTuple):
    ms: float
    file: str
    line: int

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(slots=True)
class Failure:
    """A client's look-ups that failed alike, one after the other."""

    client: str
    kind: str
    topic: str
    """"": the log does not say it."""
    name_server: str | None
    """The address that it asked; None: its log does not say it."""
    first: At
    last: At
    times: int = 1
    how: str = ""


@dataclass(slots=True)
class Stay:
    """How long a NameServer held a broker's address."""

    address: str
    since: At
    until: At | None = None
    how: str = ""


class TopicAt(NamedTuple):
    at: At
    topic: str
    broker: str
    what: str
    """`came`, `gone` with its broker, or `deleted`."""


class Wiped(NamedTuple):
    at: At
    broker: str
    by: str
    topics: int
    is_given_back: bool


@dataclass(slots=True)
class ServerTold:
    """A NameServer, as its log tells of it."""

    name: str
    addresses: tuple[str, ...]
    first: At
    boots: list[At] = field(default_factory=list)
    stays: list[Stay] = field(default_factory=list)
    topics: list[TopicAt] = field(default_factory=list)
    wiped: list[Wiped] = field(default_factory=list)
    conflicts: list[tuple[At, str, str, str]] = field(default_factory=list)
    """Broker's name, the address that has it, the one that wanted it."""
    refused: list[tuple[At, str]] = field(default_factory=list)
    """Registrations whose checksum was wrong, and from where."""
    not_ready: list[At] = field(default_factory=list)

    def held(self, ms: float) -> list[Stay]:
        return [stay for stay in self.stays if stay.since.ms <= ms and (stay.until is None or stay.until.ms > ms)]

    def booted(self, ms: float) -> At | None:
        return next((at for at in reversed(self.boots) if at.ms <= ms), None)

    @property
    def is_whole(self) -> bool:
        """Whether its log begins with its start: what it does not tell of did not happen."""
        return bool(self.boots) and self.boots[0].ms <= self.first.ms + 2_000


@dataclass(slots=True)
class BrokerTold:
    """A broker, as its log tells of it."""

    name: str
    addresses: tuple[str, ...]
    lists: list[tuple[At, frozenset[str]]] = field(default_factory=list)
    registered: dict[str, list[At]] = field(default_factory=lambda: defaultdict(list))
    failed: dict[str, list[At]] = field(default_factory=lambda: defaultdict(list))
    creates_topics: bool | None = None

    def listed(self, ms: float) -> frozenset[str] | None:
        """Its list then; None: it does not say one."""
        before = [names for at, names in self.lists if at.ms <= ms]
        return before[-1] if before else self.lists[0][1] if self.lists else None


@dataclass(slots=True)
class Told:
    failures: list[Failure] = field(default_factory=list)
    servers: list[ServerTold] = field(default_factory=list)
    brokers: list[BrokerTold] = field(default_factory=list)
    clients: dict[str, frozenset[str]] = field(default_factory=dict)
    """Each client's NameServers."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Address → node."""
    holders: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Topic → names of brokers that any log names for it."""
    registering: frozenset[str] = frozenset()
    """Names of all brokers that any log names."""
    created: dict[str, At] = field(default_factory=dict)
    """Topic → when a first send created it."""

    def server(self, address: str | None) -> ServerTold | None:
        return next((one for one in self.servers if address in one.addresses), None)

    def broker_of(self, address: str) -> str:
        """The name, without an id, of who registers this address."""
        return self.names.get(address, address).partition("/")[0]


def told_by(found: Reconstructed) -> Told:
    """All that these logs tell of routes."""
    registering = frozenset(name.partition("/")[0] for name in found.nodes.brokers)
    told = Told(names=found.nodes.of_address, registering=registering)
    for source in found.found:
        if not source.lines:
            continue
        if source.kind == NAME_SERVER:
            addresses = tuple(found.nodes.name_servers.get(source.name, ()))
            told.servers.append(_server(source, addresses, told))
        elif source.kind == BROKER:
            addresses = tuple(found.nodes.brokers.get(source.name, ()))
            told.brokers.append(_broker(source, addresses, told))
        elif source.kind == CLIENT:
            told.failures += _client(source, told)
    return told


def _at(source: Source, line: Line) -> At:
    return At(source.wall_ms(line), line.file, line.line)


# --- NameServers


def _server(source: Source, addresses: tuple[str, ...], told: Told) -> ServerTold:
    server = ServerTold(source.name, addresses, _at(source, source.lines[0]))
    open_ = dict[str, Stay]()
    why = dict[str, tuple[float, str]]()
    given = defaultdict[str, list[float]](list)
    wiped = list[Wiped]()
    for line in source.lines:
        at, fields = _at(source, line), line.fields
        address = fields.get("address", "")
        match line.event:
            case "name_server_boot":
                for stay in open_.values():
                    stay.until, stay.how = at, "restarted"
                open_.clear()
                server.boots.append(at)
            case "broker_registered" | "master_address":
                if address not in open_:
                    open_[address] = Stay(address, at)
                    server.stays.append(open_[address])
                _claimed(server, line, at)
            case "broker_expired":
                why[address] = at.ms, f"expired after {int(fields['timeout_ms']) // 1000} s without a registration"
            case "channel_destroyed":
                if at.ms - why.get(address, (-LED_TO_MS, ""))[0] > LED_TO_MS:
                    why[address] = at.ms, "its connection was closed"
            case "address_removed" if fields.get("result") != "Failed":
                if (stay_ := open_.pop(address, None)) is not None:
                    stay_.until, stay_.how = at, _reason(why, address, at.ms)
            case "topic_registered":
                _topic(server, told, at, fields["topic"], fields.get("row", ""), "came")
            case "topic_removed" if fields.get("row", "null") != "null":
                _topic(server, told, at, fields["topic"], fields["row"], "gone")
            case "topic_deleted":
                _topic(server, told, at, fields["topic"], fields.get("row", ""), "deleted")
            case "topic_changed":
                _topic(server, told, at, fields["topic"], fields.get("row", ""), "came")
            case "write_perm_wiped":
                wiped.append(Wiped(at, fields["broker"], address, int(fields["topics"]), is_given_back=False))
            case "write_perm_added":
                given[fields["broker"]].append(at.ms)
            case "conflict_ignored":
                server.conflicts.append((at, fields["broker"], fields["old"], address))
            case "crc_mismatch":
                server.refused.append((at, address))
            case "not_ready" if fields.get("code") == "105":
                server.not_ready.append(at)
    server.wiped = [one._replace(is_given_back=any(ms > one.at.ms for ms in given[one.broker])) for one in wiped]
    return server


def _reason(why: Mapping[str, tuple[float, str]], address: str, ms: float) -> str:
    for each in (address, ""):  # 5.x does not name whose connection it was
        since, said = why.get(each, (-LED_TO_MS, ""))
        if said and ms - since <= LED_TO_MS:
            return said
    return "it unregistered itself"


def _claimed(server: ServerTold, line: Line, at: At) -> None:
    """4.x has no word for two brokers of one name: the master's address goes to and fro."""
    old, address = line.fields.get("old", "null"), line.fields.get("address", "")
    if line.event == "master_address" and old not in ("null", address):
        server.conflicts.append((at, line.fields["broker"], old, address))


def _topic(server: ServerTold, told: Told, at: At, topic: str, row: str, what: str) -> None:
    names = _BROKER_NAME.findall(row)
    for name in names or [""]:
        server.topics.append(TopicAt(at, topic, name, what))
        if name:
            told.holders[topic].add(name)


# --- brokers


def _broker(source: Source, addresses: tuple[str, ...], told: Told) -> BrokerTold:
    broker = BrokerTold(source.name, addresses)
    for line in source.lines:
        at, fields = _at(source, line), line.fields
        server = fields.get("name_server", "")
        match line.event:
            case "registered":
                broker.registered[server].append(at)
            case "register_failed":
                broker.failed[server].append(at)
            case "name_servers_said" | "name_servers_set" | "name_servers_fetched":
                if names := frozenset(_ADDRESS.findall(fields.get("new", ""))):
                    broker.lists.append((at, names))
            case "setting" if fields["key"] == "namesrvAddr" and not broker.lists:
                if names := frozenset(_ADDRESS.findall(fields["value"])):
                    broker.lists.append((at, names))
            case "setting" if fields["key"] == "autoCreateTopicEnable":
                broker.creates_topics = fields["value"].strip() == "true"
            case "topic_created":
                topic = re.search(r"topicName=([^,\]]+)", fields.get("config", ""))
                if topic is not None:
                    told.created.setdefault(topic[1], at)
                    told.holders[topic[1]].add(source.name.partition("/")[0])
    return broker


# --- clients


def _client(source: Source, told: Told) -> Iterator[Failure]:
    asked: str | None = None
    names = frozenset[str]()
    open_ = dict[tuple[str, str, str | None], Failure]()
    for line in source.lines:
        at, fields = _at(source, line), line.fields
        match line.event:
            case "name_server_chosen":
                asked = fields.get("new", asked)
            case "name_servers_said" | "name_servers_set" | "name_servers_fetched":
                names = frozenset(_ADDRESS.findall(fields.get("new", ""))) or names
            case "route_changed" | "route_put":
                said = f"{fields.get('old', '')} {fields.get('new', '')}"
                told.holders[fields["topic"]] |= set(_BROKER_NAME.findall(said))
            case "route_missing" | "route_error" | "client_exception":
                failure = _failure(source.name, line, at, asked)
                if failure is None:
                    continue
                key = failure.kind, failure.topic, failure.name_server
                last = open_.get(key)
                if last is not None and at.ms - last.last.ms <= APART_MS:
                    last.times += at.ms - last.last.ms >= 1_000  # one look-up writes several lines
                    last.last = at
                else:
                    open_[key] = failure
                    yield failure
    told.clients[source.name] = names


def _failure(client: str, line: Line, at: At, asked: str | None) -> Failure | None:
    fields = line.fields
    topic = fields.get("topic", "")
    said = fields.get("said", "") or fields.get("text", "")
    if line.event == "route_missing" or fields.get("code") == TOPIC_NOT_EXIST or said.startswith("No route info"):
        if not topic or is_own(topic):
            return None
        return Failure(client, NO_ROUTE, topic, asked, at, at)
    if line.event == "client_exception":
        if fields.get("tries") is None and topic and "exception" not in fields:
            return Failure(client, NO_ROUTE, topic, asked, at, at)
        return None
    if line.event == "route_error" and "code" not in fields and (said or {"exception", "name_servers"} & fields.keys()):
        address = next(iter(_ADDRESS.findall(said)), None) or asked
        how = "no connection" if "connect to" in said else "none in time" if "imeout" in str(fields) else "none at all"
        return Failure(client, NO_ANSWER, "", address, at, at, how=how)
    return None
