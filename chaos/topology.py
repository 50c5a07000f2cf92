"""The nodes of an experiment and which node connects to which: names, directed links, and link expressions.

    broker ──────────────┐
    producer, consumer,  ├──► every NameServer          A link is (node, peer): `node` dials `peer`, through the one
    prober, admin ───────┘                              proxy made for that pair. A NameServer dials nobody, and
    producer, consumer,  ───► every broker              brokers dial those of their own name only.
    prober, admin
    broker-a, broker-a/1 ───► one another               A slave is called by its master's name and its brokerId.
    broker, producer,    ───► address server, where there is one
    consumer

Link expressions name sets of links: `broker-a <-> ns-1`, `producer-0 -> broker-a`, `clients <-> ns-0`, `* -> ns-1`,
`broker-a <-> *`, `zone:east <-> zone:west`. Each side is a node, a group, a zone, or `*`. `a -> b` means the links on
which a connects to b, `a <-> b` the links of both directions. Or a shape's word (shapes.py): `isolate ns-0`, `halves`.
A link expression does not say in which direction bytes are held: the fault's `stream` does, except for shapes of one
direction.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from .shapes import SHAPES, LinkExpressionError, Stream, is_shape, shape_of

CONSUMER_GROUP = "nemesrv-consumers"
PRODUCER_GROUP = "nemesrv-producers"
"""Of all consumers of the workload's topic that name none."""
ADMIN = "admin"
ADDRESS_SERVER = "address-server"
"""Who gives the list of NameServers by HTTP."""
EXTERNAL = "external"
"""A dialler outside the experiment, e.g. a person's own client of `nemesrv up`."""


class NodeKind(StrEnum):
    """What a node is. The value is the node's role in the history."""

    NAME_SERVER = "name_server"
    BROKER = "broker"
    """A master."""
    SLAVE = "slave"
    """A broker under a master's name, with an id above 0."""
    PRODUCER = "producer"
    CONSUMER = "consumer"
    PROBER = "prober"
    ADMIN = "admin"
    """Who asks by hand what a timeline says: there only where one does."""
    ADDRESS_SERVER = "address_server"
    EXTERNAL = "external"


def broker_name(node: str) -> str:
    """Return the brokerName of a broker node; a slave has its master's brokerName."""
    return node.partition("/")[0]


def broker_id(node: str) -> int:
    """Return the brokerId with which a broker starts; 0 for a master."""
    return int(node.partition("/")[2] or 0)


def broker_node(name: str | None, id_: int | None) -> str:
    """Return the node of the broker with this brokerName and brokerId; a slave's node is `broker-a/1`."""
    return f"{name}/{id_}" if id_ and id_ > 0 else str(name)


def node_of_client_id(client_id: str | None) -> str:
    """Return the node of a client's id (`127.0.0.1@consumer-0#1700000000000`); "" if the id names no node."""
    return (client_id or "").rpartition("@")[2].partition("#")[0]


def is_slave(node: str) -> bool:
    """Whether this is a slave's name: broker-a/1, broker-a/2, …"""
    number = node.partition("/")[2]
    return number.isascii() and number.isdigit() and number[:1] != "0"


def later_address(node: str, number: int) -> str:
    """Return the name that links use for a node's later address, such as broker-a@2 for broker-a's second address."""
    return f"{node}@{number}"


def first_address(node: str) -> str:
    """Return the node's own name for a name from `later_address`; any other name is returned unchanged."""
    return node.partition("@")[0]


SPELLED_OUT = 12
"""So many nodes in a row are named one by one."""


def listed(names: Iterable[str]) -> str:
    """The names, separated by commas; a long series is shortened: producer-0 to producer-249."""
    rows: list[list[str]] = []
    for name in names:
        stem, _, number = name.rpartition("-")
        before = rows[-1][-1] if rows else ""
        if number.isdigit() and before == f"{stem}-{int(number) - 1}":
            rows[-1].append(name)
        else:
            rows.append([name])
    return ", ".join(f"{row[0]} to {row[-1]}" if len(row) > SPELLED_OUT else ", ".join(row) for row in rows)


class Link(NamedTuple):
    """A directed link: `node` connects to `peer`."""

    node: str
    peer: str

    def __str__(self) -> str:
        return f"{self.node}->{self.peer}"


_EXPRESSION = re.compile(
    r"^\s*(?P<left>(?:zone:\s*)?[^\s<>]+)\s*(?P<arrow><->|->|<-)\s*(?P<right>(?:zone:\s*)?[^\s<>]+)\s*$"
)
_ZONE = "zone:"
GROUPS: Mapping[str, tuple[NodeKind, ...]] = {
    "name_servers": (NodeKind.NAME_SERVER,),
    "brokers": (NodeKind.BROKER, NodeKind.SLAVE),
    "masters": (NodeKind.BROKER,),
    "slaves": (NodeKind.SLAVE,),
    "producers": (NodeKind.PRODUCER,),
    "consumers": (NodeKind.CONSUMER,),
    "clients": (NodeKind.PRODUCER, NodeKind.CONSUMER, NodeKind.PROBER),
    "*": tuple(NodeKind),
}
"""What a name stands for that is no node's."""


class Nodes:
    """Nodes of several kinds: which of them connects to which, and expressions for sets of links."""

    def __init__(self, roles: Mapping[str, str]) -> None:
        """`roles` has each node's role in a history; a node without a role of a cluster's node is left out."""
        known = frozenset(map(str, NodeKind))
        self._kinds = {node: NodeKind(role) for node, role in sorted(roles.items()) if role in known}
        self.zones: Mapping[str, Collection[str]] = {}

    @property
    def kinds(self) -> Mapping[str, NodeKind]:
        """Every node by name."""
        return self._kinds

    def of(self, *kinds: NodeKind) -> tuple[str, ...]:
        return tuple(name for name, kind in self.kinds.items() if kind in kinds)

    def of_kind(self, group: str) -> tuple[str, ...]:
        return self.of(*GROUPS[group])

    def members(self, name: str) -> tuple[str, ...]:
        """Return the nodes of the group of that name, or the node of that name; () for any other name."""
        if name in GROUPS:
            return self.of_kind(name)
        return (name,) if name in self.kinds else ()

    @cached_property
    def links(self) -> tuple[Link, ...]:
        name_servers, brokers = self.of_kind("name_servers"), self.of_kind("brokers")
        links: list[Link] = []
        for node, kind in self.kinds.items():
            if kind not in (NodeKind.NAME_SERVER, NodeKind.ADDRESS_SERVER):
                links += [Link(node, peer) for peer in name_servers]
                own = broker_name(node) if kind in GROUPS["brokers"] else None
                links += [Link(node, peer) for peer in brokers if own in (None, broker_name(peer)) and peer != node]
            if ADDRESS_SERVER in self.kinds and kind in (*GROUPS["brokers"], NodeKind.PRODUCER, NodeKind.CONSUMER):
                links.append(Link(node, ADDRESS_SERVER))
        return tuple(links)

    def parse_links(self, *expressions: str) -> tuple[Link, ...]:
        """Return the links that these expressions name, each once. LinkExpressionError's text says what is allowed."""
        named: dict[Link, None] = {}
        for expression in expressions:
            named |= dict.fromkeys(self._parse_one(expression))
        return tuple(named)

    def parse_streams(self, *expressions: str) -> dict[Link, Stream]:
        """Return the links that these expressions name, each with its directions; some shapes have only one
        direction."""
        found: dict[Link, Stream] = {}
        for expression in expressions:
            if is_shape(expression):
                streams = self._separated(expression)
            else:
                streams = dict.fromkeys(self._parse_one(expression), "both")
            for link, stream in streams.items():
                found[link] = stream if found.get(link, stream) == stream else "both"
        return found

    def _separated(self, expression: str) -> dict[Link, Stream]:
        separates = shape_of(expression, self)
        streams = {link: stream for link in self.links if (stream := separates(*link)) is not None}
        if not streams:
            raise LinkExpressionError(f"{expression!r} separates nobody: nothing lies between its sides")
        return streams

    def _parse_one(self, expression: str) -> Iterable[Link]:
        if is_shape(expression):
            return self._separated(expression)
        match = _EXPRESSION.match(expression)
        if match is None:
            raise LinkExpressionError(
                f"{expression!r} is not `A -> B` or `A <-> B`, where A and B are a node, a group, zone:NAME or *, "
                f"nor a shape ({', '.join(SHAPES)})"
            )
        left, right = self.meant(match["left"], expression), self.meant(match["right"], expression)
        arrow = match["arrow"]
        named = [
            link
            for link in self.links
            if (arrow != "<-" and link.node in left and link.peer in right)
            or (arrow != "->" and link.node in right and link.peer in left)
        ]
        if not named:
            hint = f"write `{match['left']} <-> {match['right']}`"
            reversed_exists = any(link.node in right and link.peer in left for link in self.links)
            raise LinkExpressionError(
                f"{expression!r} names no link: {match['left']} never dials {match['right']}"
                + (f", only the other way round; {hint}" if reversed_exists and arrow == "->" else "")
            )
        return named

    def meant(self, name: str, expression: str) -> frozenset[str]:
        """Return the nodes that a name of a node, group or zone stands for. Raises LinkExpressionError for other
        names."""
        if name.startswith(_ZONE):
            zone = name.removeprefix(_ZONE).strip()
            if zone not in self.zones:
                known = f"zones: has {', '.join(self.zones)}" if self.zones else "the scenario has no `zones:`"
                raise LinkExpressionError(f"{expression!r} names the zone {zone}, which is none; {known}")
            return frozenset(self.zones[zone])
        members = frozenset(self.members(name))
        if name in GROUPS and not members:
            raise LinkExpressionError(f"{expression!r} names {name}, and this cluster has none")
        if not members:
            raise LinkExpressionError(
                f"{expression!r} names {name}, which is no node ({listed(self.kinds)}) and no group "
                f"({', '.join(GROUPS)})" + (f"; write zone:{name} for the zone" if name in self.zones else "")
            )
        return members


@dataclass(frozen=True, kw_only=True)
class Topology(Nodes):
    """The number of nodes of each kind. At most 26 brokers, because they are called broker-a to broker-z."""

    name_servers: int = 3
    brokers: int = 2
    slaves: tuple[str, ...] = ()
    """By name, as in broker-a/1."""
    producers: int = 1
    consumers: int = 1
    prober: bool = True
    admin: bool = False
    external: bool = False
    outside: tuple[str, ...] = ()
    """Clients under test: programs of somebody else, each of these a dialler of its own."""
    address_server: bool = False
    zones: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """The nodes of each zone. A node may be in no zone."""

    def __post_init__(self) -> None:
        if self.name_servers < 1 or not 0 <= self.brokers <= 26 or self.producers < 0 or self.consumers < 0:
            raise ValueError(f"{self} needs at least one NameServer, 0 to 26 brokers, and no negative counts")
        masters = {f"broker-{chr(ord('a') + i)}" for i in range(self.brokers)}
        if any(broker_name(slave) not in masters or not is_slave(slave) for slave in self.slaves):
            raise ValueError(f"{', '.join(self.slaves)} need masters of their names ({', '.join(sorted(masters))})")

    @cached_property
    def kinds(self) -> dict[str, NodeKind]:
        """Every node by name, in the order in which they are started."""
        kinds = {f"ns-{i}": NodeKind.NAME_SERVER for i in range(self.name_servers)}
        kinds |= {f"broker-{chr(ord('a') + i)}": NodeKind.BROKER for i in range(self.brokers)}
        kinds |= {slave: NodeKind.SLAVE for slave in sorted(self.slaves)}
        kinds |= {f"producer-{i}": NodeKind.PRODUCER for i in range(self.producers)}
        kinds |= {f"consumer-{i}": NodeKind.CONSUMER for i in range(self.consumers)}
        if self.prober:
            kinds["prober"] = NodeKind.PROBER
        if self.admin:
            kinds[ADMIN] = NodeKind.ADMIN
        if self.address_server:
            kinds[ADDRESS_SERVER] = NodeKind.ADDRESS_SERVER
        if self.external:
            kinds[EXTERNAL] = NodeKind.EXTERNAL
        kinds |= dict.fromkeys(self.outside, NodeKind.EXTERNAL)
        return kinds

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of all nodes that the experiment runs: all but the clients that connect from outside."""
        return tuple(name for name, kind in self.kinds.items() if kind is not NodeKind.EXTERNAL)

    @property
    def servers(self) -> tuple[str, ...]:
        return self.of(NodeKind.NAME_SERVER, NodeKind.BROKER, NodeKind.SLAVE, NodeKind.ADDRESS_SERVER)

    @property
    def clients(self) -> tuple[str, ...]:
        return self.of_kind("clients")
