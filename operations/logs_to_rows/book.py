"""Collects from all logs each node's addresses, brokers' names and ids, NameServer lists, and topics. Pure: no I/O."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...chaos.oracle.intervals import grouped
from ...chaos.topology import broker_node
from .line import Line
from .sources import BROKER, NAME_SERVER, Source

_QUEUES = re.compile(
    r"QueueData \[brokerName=(?P<name>[^,\]]*), readQueueNums=(?P<read>\d+), writeQueueNums=(?P<write>\d+), "
    r"perm=(?P<perm>\d+)(?:, topicSys(?:n)?(?:F|f)lag=(?P<flag>\d+))?[^\]]*\]"
)
_BROKER = re.compile(
    r"BrokerData \[(?:cluster=[^,]*, )?brokerName=(?P<name>[^,\]]*), brokerAddrs=\{(?P<addresses>[^}]*)\}"
)
_ADDRESS = re.compile(r"(-?\d+)=([^,\s}]+)")


def queue_row(text: str) -> tuple[str, list[int]] | None:
    """Return the broker name of a QueueData, and [readQueueNums, writeQueueNums, perm, topicSysFlag]; None if the text
    is no QueueData."""
    return next(_queue_rows(text), None)


def _queue_rows(text: str) -> Iterator[tuple[str, list[int]]]:
    for found in _QUEUES.finditer(text):
        yield found["name"], [int(found[part] or 0) for part in ("read", "write", "perm", "flag")]


def route_of(text: str) -> dict[str, Any] | None:
    """Return the topic route in a log line's text; None if the text has neither brokers nor queues, for example
    `null`."""
    brokers = {found["name"]: dict(_ADDRESS.findall(found["addresses"])) for found in _BROKER.finditer(text)}
    queues = dict(_queue_rows(text))
    if not brokers and not queues:
        return None
    return {"brokers": dict(sorted(brokers.items())), "queues": dict(sorted(queues.items()))}


_SPLIT = re.compile(r"[;,\s\[\]]+")
HOST_PORT = re.compile(r"[\w.\-]+:\d{2,5}")
CLIENT_ID = re.compile(r"clientId=([^,\]\s]+)")
_NEAR_LINES_MS = 2_000.0


@dataclass(slots=True)
class Book:
    names: dict[str, Counter[tuple[str, int]]] = field(default_factory=lambda: defaultdict(Counter))
    """Broker address to (broker name, id), with the number of mentions."""
    clusters: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Broker name to its cluster."""
    name_servers: Counter[str] = field(default_factory=Counter)
    lists: list[tuple[str, ...]] = field(default_factory=list)
    topics: dict[str, dict[str, list[int]]] = field(default_factory=lambda: defaultdict(dict))
    """Broker name to topic to its last known row."""
    client_ids: set[str] = field(default_factory=set)
    """ClientIDs that brokers mention."""
    called: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Address to name and id, of brokers whose own log shows a slave or a changing role."""
    had: dict[str, list[Became]] = field(default_factory=dict)
    """Address to its ids, if they changed."""

    def broker(self, address: str) -> tuple[str, int] | None:
        if address in self.called:
            return self.called[address]
        found = self.names.get(address)
        return found.most_common(1)[0][0] if found else None

    def id_at(self, address: str, at_ms: float) -> int | None:
        """Return the broker id of this address at time `at_ms` (UTC); None if unknown."""
        became = id_at(self.had.get(address, ()), at_ms)
        known = self.broker(address)
        return became if became is not None else None if known is None else known[1]

    def addresses(self) -> dict[str, list[str]]:
        """The addresses of each broker, the most frequent address first."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for address, said in self.names.items():
            who, count = said.most_common(1)[0]
            found[broker_node(*self.called.get(address, who))][address] = count
        return {node: [address for address, _ in counted.most_common()] for node, counted in sorted(found.items())}


def addresses_in(text: str | None) -> tuple[str, ...]:
    """Return the `host:port` entries of a list of NameServers, whatever the separators."""
    return tuple(one for one in _SPLIT.split(text or "") if HOST_PORT.fullmatch(one))


def book_of(sources: Sequence[Source]) -> Book:
    book = Book()
    for source in sources:
        if source.kind == NAME_SERVER:
            _of_name_server(source, book)
        else:
            _of_dialler(source, book)
    routes = {address: max(id_ for _, id_ in said) for address, said in book.names.items()}
    book.called, book.had = ids_of(sources, routes)
    return book


def _say(book: Book, address: str, name: str, id_: int, weight: int = 1) -> None:
    if address and name and HOST_PORT.fullmatch(address):
        book.names[address][name, id_] += weight


def _of_name_server(source: Source, book: Book) -> None:
    recent: list[tuple[float, str]] = []
    removed: tuple[float, str, int] | None = None
    for line in source.lines:
        fields = line.fields
        match line.event:
            case "master_address":
                _say(book, fields["address"], fields["broker"], 0, 5)
                book.clusters[fields["broker"]][fields["cluster"]] += 1
            case "topic_registered" | "topic_changed" | "topic_removed" | "topic_deleted":
                row = queue_row(fields.get("row") or "")
                if row is not None:
                    if line.event in ("topic_registered", "topic_changed"):
                        recent.append((line.stamp_ms, row[0]))
                    book.topics[row[0]][fields["topic"]] = row[1]
            case "broker_registered":
                names = {name for at_ms, name in recent if line.stamp_ms - at_ms <= _NEAR_LINES_MS}
                own = fields.get("address", "")
                if len(names) == 1 and own not in book.names:
                    _say(book, own, names.pop(), 0)
                if fields.get("cluster") and (known := book.broker(own)):
                    book.clusters[known[0]][fields["cluster"]] += 1
                recent.clear()
            case "address_removed" if "id" in fields:
                removed = line.stamp_ms, fields["address"], int(fields["id"])
            case "address_removed" if fields.get("result") != "Failed":
                removed = line.stamp_ms, fields["address"], -1
            case "name_removed" if removed is not None and line.stamp_ms - removed[0] <= _NEAR_LINES_MS:
                known = book.broker(removed[1])
                if known is None or removed[2] == 0:
                    _say(book, removed[1], fields["broker"], max(removed[2], 0), 2)
                removed = None
            case "conflict_ignored":
                if fields.get("id", "").isdigit():
                    _say(book, fields["old"], fields["broker"], int(fields["id"]), 2)


def _of_dialler(source: Source, book: Book) -> None:
    own = dict[str, str]()
    for line in source.lines:
        fields = line.fields
        match line.event:
            case "setting":
                own[fields.get("key", "")] = fields.get("value", "")
                if fields.get("key") == "namesrvAddr":
                    _list(book, fields.get("value"))
            case "broker_boot":
                _say(book, fields["address"], fields["broker"], int(own.get("brokerId") or 0), 3)
                if own.get("brokerClusterName"):
                    book.clusters[fields["broker"]][own["brokerClusterName"]] += 1
                _list(book, fields.get("name_servers"))
            case "name_servers_set" | "name_servers_said":
                _list(book, fields.get("new"))
            case "name_server_chosen":
                book.name_servers[fields["new"]] += 1
            case "registered" | "register_failed" | "unregistered" | "unregister_failed":
                if HOST_PORT.fullmatch(fields["name_server"]):
                    book.name_servers[fields["name_server"]] += 1
            case "producer_connected" | "consumer_connected":
                if (told := CLIENT_ID.search(fields.get("channel", ""))) is not None:
                    book.client_ids.add(told[1])
            case "route_changed":
                for said in (fields.get("old"), fields.get("new")):
                    _of_route(book, fields["topic"], said or "")


def _of_route(book: Book, topic: str, text: str) -> None:
    route = route_of(text) or {"brokers": {}, "queues": {}}
    for name, ids in route["brokers"].items():
        for id_, address in ids.items():
            _say(book, address, name, int(id_))
    for name, row in route["queues"].items():
        book.topics[name].setdefault(topic, row)


def _list(book: Book, text: str | None) -> None:
    found = addresses_in(text)
    if found:
        book.lists.append(found)
        book.name_servers.update(found)


def broker_identity(source: Source, book: Book) -> tuple[str, int, str | None] | None:
    """Return name, id and address of the broker that wrote the log; None if the log does not have them."""
    own = source.settings
    id_ = _id_said(own.get("brokerId", ""))
    booted = next((line.fields for line in reversed(source.lines) if line.event == "broker_boot"), None)
    if booted is not None:
        address = booted["address"]
        return booted["broker"], book.called[address][1] if address in book.called else id_, address
    if own.get("brokerName"):
        addresses = book.addresses().get(broker_node(own["brokerName"], id_), [])
        return own["brokerName"], id_, next(iter(addresses), None)
    return _by_path(source, book)


def _id_said(text: str) -> int:
    return int(text) if text.isdigit() else MASTER


def _by_path(source: Source, book: Book) -> tuple[str, int, str | None] | None:
    hint = source.hint
    for node, addresses in book.addresses().items():
        name, _, id_ = node.partition("/")
        words = {node.lower(), node.lower().replace("/", "-"), f"{name}-{id_}".lower() if id_ else name.lower()}
        if any(has_word(hint, word) for word in words):
            return name, int(id_ or 0), addresses[0]
        for address in addresses:
            host = address.partition(":")[0]
            if not host.startswith("127.") and has_word(hint, host):
                return name, int(id_ or 0), address
    last = hint.rpartition("/")[2]
    return (last, 0, None) if source.kind == BROKER and last else None


def client_by_path(source: Source, book: Book) -> str | None:
    """Return the ClientID whose host or instance name is part of this log's path; None if no ClientID or several match.
    The ClientIDs come from brokers' logs."""
    found = [
        known
        for known in sorted(book.client_ids)
        if "@" in known and any(has_word(source.hint, word.lower()) for word in re.split("[@#]", known)[:2])
    ]
    return found[0] if len(found) == 1 else None


def has_word(text: str, word: str) -> bool:
    return bool(word) and re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.])", text) is not None


MASTER = 0
_OF_SLAVES = frozenset({"slave_synced", "slave_sync_failed", "master_said"})
_EXACT_MS = 1_500.0
"""Servers' stamps have whole seconds."""


class Became(NamedTuple):
    """A broker's id according to its own log: the broker has `id` from the log line `line` on. A broker's first
    `Became` is its first known id, and is no change."""

    source: Source
    line: Line
    id: int


@dataclass(slots=True)
class _Member:
    source: Source
    address: str
    says: list[Became] = field(default_factory=list)
    is_slave: bool = False
    """The broker's log says that the broker is a slave, without an id."""
    changes: bool = False
    """Whether its role changes."""

    @property
    def first_master_ms(self) -> float:
        return min((said.line.stamp_ms for said in self.says if said.id == MASTER), default=math.inf)

    @property
    def own_id(self) -> int | None:
        return next((said.id for said in self.says if said.id > MASTER), None)


def ids_of(
    sources: Sequence[Source], routes: Mapping[str, int]
) -> tuple[dict[str, tuple[str, int]], dict[str, list[Became]]]:
    """Return by address the broker's name and id, and its ids over time, for brokers with slaves or with a changed
    role. `routes` has the broker ids in clients' routes."""
    members = grouped(filter(None, (_member(source) for source in sources if source.kind == BROKER)))
    servers = (source for source in sources if source.kind == NAME_SERVER)
    heard = {line.fields["address"] for one in servers for line in one.lines if line.event == "master_address"}
    called: dict[str, tuple[str, int]] = {}
    had: dict[str, list[Became]] = {}
    for name, of in members.items():
        if not any(one.is_slave or one.changes for one in of):
            continue
        first = min(of, key=lambda one: (one.is_slave, one.first_master_ms, one.address not in heard))
        taken = {MASTER, *(one.own_id for one in of if one is not first and one.own_id is not None)}
        for one in of:
            if one is not first and not (one.is_slave or one.changes):
                continue  # another that claims the name
            is_first = one is first and not (one.is_slave and not one.changes)
            id_ = MASTER if is_first else one.own_id or routes.get(one.address) or _free(taken)
            taken.add(id_)
            called[one.address] = name, id_
            had[one.address] = one.says if one.changes else []
    return called, had


def _free(taken: set[int]) -> int:
    return next(id_ for id_ in range(1, len(taken) + 2) if id_ not in taken)


def _member(source: Source) -> tuple[str, _Member] | None:
    """Return name and ids by the broker's log; None if the log has no name."""
    name, address, set_id = "", "", MASTER
    says: list[Became] = []
    says_slave = changes = False
    began: Line | None = None
    for line in source.lines:
        fields = line.fields
        if line.event == "setting" and fields.get("key") in ("rocketmqHome", "namesrvAddr"):
            began = began or line  # a new process: what it is from here on is said later
        if line.event == "broker_boot":
            name, address = fields["broker"], fields["address"]
        elif line.event == "setting" and fields.get("key") == "brokerId" and fields.get("value", "").isdigit():
            set_id = int(fields["value"])
        elif line.event == "role_changes":
            changes = True
            id_ = MASTER if fields["role"] == "master" else int(fields.get("id") or -1)
            if id_ >= MASTER:
                says.append(Became(source, began or line, id_))
                began = None
        elif line.event == "registered" and fields.get("id", "").isdigit():
            if not says or says[-1].id != int(fields["id"]):
                says.append(Became(source, began or line, int(fields["id"])))
            began = None
        elif line.event in _OF_SLAVES:
            says_slave = True
    if not name:
        return None
    if not says and set_id > MASTER:
        says.append(Became(source, source.lines[0], set_id))
    ids = {said.id for said in says}
    changes = changes or len(ids) > 1
    is_slave = says_slave and not changes and MASTER not in ids
    return name, _Member(source, address, says, is_slave, changes)


def id_at(had: Sequence[Became], at_ms: float) -> int | None:
    """Return the broker's id at time `at_ms`, or its first known id if `at_ms` is earlier; None if no id is known."""
    found = [said.id for said in had if said.source.wall_ms(said.line) <= at_ms + _EXACT_MS]
    return found[-1] if found else had[0].id if had else None
