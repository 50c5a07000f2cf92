"""What logs say about routes: failed look-ups, the brokers registered at each NameServer, and each node's list of
NameServers. Pure: no I/O.

    Reconstructed (logs with their writers, names, clocks and rows) ─► logged() ─► Logged ─► log_causes.py

Starts, registrations and drops come from the rows of logs_to_rows/, everything else from log lines. Times are UTC
milliseconds, corrected for each log's clock offset.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from ...chaos.history.schema import Row
from ...remoting.topics import is_own
from ..logs_to_rows.line import Line
from ..logs_to_rows.reconstruct import Reconstructed
from ..logs_to_rows.sources import BROKER, CLIENT, NAME_SERVER, Source

LOOK_UPS = frozenset({"route_missing", "route_put", "crc_mismatch"})
"""Events of which no row is made."""
TOPIC_NOT_EXIST = "17"
APART_MS = 120_000
"""Failures further apart are separate."""
_BROKER_NAME = re.compile(r"brokerName=([^,\]}]+)")
_ADDRESS = re.compile(r"(?:\d{1,3}(?:\.\d{1,3}){3}|[\w-]+(?:\.[\w-]+)*):\d{2,5}")
_OF_TOPICS = {
    "topic_registered": "came", "topic_changed": "came", "topic_removed": "gone", "topic_deleted": "deleted"
}  # fmt: skip
_DROPPED = {
    "expired": "it expired, as no registration came in time",
    "unregistered": "it unregistered itself",
    "idle": "its connection was idle and was closed",
    "exception": "its connection failed",
    "closed": "its connection was closed",
}


class At(NamedTuple):
    ms: float
    file: str
    line: int
    zone: tzinfo

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def clock(self) -> str:
        return f"{datetime.fromtimestamp(self.ms / 1000, self.zone):%H:%M:%S}"


@dataclass(slots=True)
class Failure:
    """Successive look-ups of one client that found no route of the topic."""

    client: str
    topic: str
    name_server: str | None
    """Address of the NameServer asked; None if the log does not name it."""
    first: At
    last: At
    times: int = 1
    is_over: bool = False
    """Whether this client learnt a route of the topic soon after."""
    own_list: str = ""
    """The client's own list then, as its log spells it."""

    @property
    def span(self) -> str:
        if self.last.ms - self.first.ms < 1_000:
            return f"at {self.first.clock}"
        return f"from {self.first.clock} to {self.last.clock}"

    @property
    def asked(self) -> str:
        """The last words of a cause's sentence: `producer-0 asked for it at 07:46:04`."""
        return f"{self.client} asked for it {self.span}"


@dataclass(slots=True)
class Stay:
    """A time in which a NameServer's table had a broker's address."""

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


@dataclass(slots=True)
class LoggedNameServer:
    name: str
    addresses: tuple[str, ...]
    first: At
    boots: list[At] = field(default_factory=list)
    stays: list[Stay] = field(default_factory=list)
    topics: list[TopicAt] = field(default_factory=list)
    refused: list[At] = field(default_factory=list)
    """Registrations with a wrong checksum."""
    clusters: dict[str, At] = field(default_factory=dict)
    """Clusters of the brokers that registered there, each with its line."""

    def held(self, ms: float) -> list[Stay]:
        return [stay for stay in self.stays if stay.since.ms <= ms and (stay.until is None or stay.until.ms > ms)]

    def booted(self, ms: float) -> At | None:
        return next((at for at in reversed(self.boots) if at.ms <= ms), None)

    @property
    def is_whole(self) -> bool:
        """Whether the NameServer's log begins when the NameServer started, so that no event is missing."""
        return bool(self.boots) and self.boots[0].ms <= self.first.ms + 2_000


@dataclass(slots=True)
class LoggedBroker:
    name: str
    lists: list[tuple[At, frozenset[str]]] = field(default_factory=list)
    registered: dict[str, list[At]] = field(default_factory=lambda: defaultdict(list))
    failed: dict[str, list[At]] = field(default_factory=lambda: defaultdict(list))
    creates_topics: bool | None = None
    cluster: str = ""

    def listed(self, ms: float) -> frozenset[str] | None:
        """Return the node's list of NameServers at time `ms`, or its first list if `ms` is earlier; None if the node's
        log has no list."""
        before = [names for at, names in self.lists if at.ms <= ms]
        return before[-1] if before else self.lists[0][1] if self.lists else None


@dataclass(slots=True)
class Logged:
    failures: list[Failure] = field(default_factory=list)
    servers: list[LoggedNameServer] = field(default_factory=list)
    brokers: list[LoggedBroker] = field(default_factory=list)
    clients: dict[str, frozenset[str]] = field(default_factory=dict)
    """Each client's NameServers."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Address to node."""
    holders: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Topic to the brokers that any log names for it."""
    registering: frozenset[str] = frozenset()
    """All brokers that any log names."""
    created: dict[str, At] = field(default_factory=dict)
    """Topic to the time of the first send that created it."""
    zone: tzinfo = UTC
    """The zone in which times are told."""

    @property
    def listed(self) -> frozenset[str]:
        """The NameServers that at least one client lists."""
        return frozenset().union(*self.clients.values())

    def server(self, address: str | None) -> LoggedNameServer | None:
        return next((one for one in self.servers if address in one.addresses), None)

    def broker_of(self, address: str) -> str:
        return self.names.get(address, address).partition("/")[0]

    def called(self, address: str) -> str:
        name = self.names.get(address)
        return address if name is None or name == address else f"{address} ({name})"


def logged(found: Reconstructed, topic: str | None = None) -> Logged:
    """Return all that these logs say about routes. RocketMQ's own topics are left out, except `topic`."""
    registering = frozenset(name.partition("/")[0] for name in found.nodes.brokers)
    logs = Logged(names=found.nodes.of_address, registering=registering, zone=found.zone)
    rows = defaultdict[str, list[tuple[At, Row]]](list)
    for row in found.rows:
        value = row.get("value")
        if isinstance(value, dict) and "file" in value:
            at = At(found.origin_ms + row["time_ms"], value["file"], value["line"], found.zone)
            rows[row["node"]].append((at, row))
    for source in found.found:
        name = source.name
        if not source.lines:
            continue
        if source.kind == NAME_SERVER:
            addresses = tuple(found.nodes.name_servers.get(name, ()))
            server = LoggedNameServer(name, addresses, _at(source, source.lines[0], logs))
            _stays(server, rows[name])
            _name_server(source, server, logs)
            logs.servers.append(server)
        elif source.kind == BROKER:
            broker = LoggedBroker(name)
            for at, row in rows[name]:
                if row["event"] == "register":
                    (broker.registered if row["type"] == "ok" else broker.failed)[row["name_server"]].append(at)
            _broker(source, broker, logs)
            logs.brokers.append(broker)
        elif source.kind == CLIENT:
            logs.failures += _client(source, logs, topic)
    return logs


def _at(source: Source, line: Line, logs: Logged) -> At:
    return At(source.wall_ms(line), line.file, line.line, logs.zone)


# --- NameServers


def _stays(server: LoggedNameServer, rows: Iterable[tuple[At, Row]]) -> None:
    """Note when the NameServer started, and from when to when it had each broker's address."""
    open_ = dict[str, Stay]()
    for at, row in rows:
        address = row.get("address", "")
        match row["event"]:
            case "started" | "stopped":
                for stay in open_.values():
                    stay.until, stay.how = at, "the NameServer was restarted"
                open_.clear()
                if row["event"] == "started" and row["value"]["learnt"] == "log":
                    server.boots.append(at)
            case "registration":
                if address not in open_:
                    open_[address] = Stay(address, at)
                    server.stays.append(open_[address])
            case "broker_dropped" if address in open_:
                ended = open_.pop(address)
                ended.until, ended.how = at, _DROPPED[row["value"]["reason"]]


def _name_server(source: Source, server: LoggedNameServer, logs: Logged) -> None:
    for line in source.lines:
        at, fields = _at(source, line, logs), line.fields
        if "cluster" in fields and line.event in ("master_address", "broker_registered"):
            server.clusters.setdefault(fields["cluster"], at)
        match line.event:
            case event if event in _OF_TOPICS and (event != "topic_removed" or fields.get("row", "null") != "null"):
                names = _BROKER_NAME.findall(fields.get("row", ""))
                server.topics += (TopicAt(at, fields["topic"], name, _OF_TOPICS[event]) for name in names or [""])
                logs.holders[fields["topic"]].update(names)
            case "crc_mismatch":
                server.refused.append(at)


# --- brokers


def _broker(source: Source, broker: LoggedBroker, logs: Logged) -> None:
    own = source.settings
    broker.cluster = own.get("brokerClusterName", "").strip()
    broker.creates_topics = own["autoCreateTopicEnable"].strip() == "true" if "autoCreateTopicEnable" in own else None
    for line in source.lines:
        at, fields = _at(source, line, logs), line.fields
        match line.event:
            case "name_servers_said" | "name_servers_set" | "name_servers_fetched":
                if names := frozenset(_ADDRESS.findall(fields.get("new", ""))):
                    broker.lists.append((at, names))
            case "setting" if fields["key"] == "namesrvAddr" and not broker.lists:
                if names := frozenset(_ADDRESS.findall(fields["value"])):
                    broker.lists.append((at, names))
            case "topic_created":
                topic = re.search(r"topicName=([^,\]]+)", fields.get("config", ""))
                if topic is not None:
                    logs.created.setdefault(topic[1], at)
                    logs.holders[topic[1]].add(source.name.partition("/")[0])


# --- clients


def _client(source: Source, logs: Logged, about: str | None) -> Iterator[Failure]:
    asked: str | None = None
    names, own_list = frozenset[str](), ""
    open_ = dict[tuple[str, str | None], Failure]()
    for line in source.lines:
        at, fields = _at(source, line, logs), line.fields
        match line.event:
            case "name_server_chosen":
                asked = fields.get("new", asked)
            case "name_servers_said" | "name_servers_set" | "name_servers_fetched":
                own_list = fields.get("new", "")
                names = frozenset(_ADDRESS.findall(own_list)) or names
            case "route_changed" | "route_put":
                for one in open_.values():
                    one.is_over |= one.topic == fields["topic"] and at.ms - one.last.ms <= APART_MS
                said = f"{fields.get('old', '')} {fields.get('new', '')}"
                logs.holders[fields["topic"]] |= set(_BROKER_NAME.findall(said))
            case "route_missing" | "route_error" | "client_exception":
                failure = _failure(source.name, line, at, asked, about)
                if failure is None:
                    continue
                failure.own_list = own_list
                key = failure.topic, failure.name_server
                last = open_.get(key)
                if last is not None and at.ms - last.last.ms <= APART_MS:
                    last.times += at.ms - last.last.ms >= 1_000  # one look-up writes several lines
                    last.last = at
                else:
                    open_[key] = failure
                    yield failure
    logs.clients[source.name] = names


def _failure(client: str, line: Line, at: At, asked: str | None, about: str | None) -> Failure | None:
    fields = line.fields
    topic = fields.get("topic", "")
    said = fields.get("said", "") or fields.get("text", "")
    if line.event == "route_missing" or fields.get("code") == TOPIC_NOT_EXIST or said.startswith("No route info"):
        if not topic or (is_own(topic) and topic != about):
            return None
        return Failure(client, topic, asked, at, at)
    if line.event == "client_exception" and fields.get("tries") is None and topic and "exception" not in fields:
        return Failure(client, topic, asked, at, at)
    return None
