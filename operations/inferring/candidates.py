"""The faults that inference considers: each fault's effect on links and nodes, and its price. Pure: no I/O.

A fault's price, in nats (units of log-likelihood), grows with the number of links and nodes that describe it, and is a
little higher for a rare fault. One fault that explains everything is therefore preferred to several faults.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from operator import itemgetter

from ...chaos.shapes import is_shape
from ..logs_to_rows.signs import Edge, Kind, Seen, Sign, bundles

CERTAINLY_NOT = 12.0
UNEXPECTED = 7.0
"""Most that a sign can cost which a mode does not list: its cost if nothing is wrong."""


class Mode(StrEnum):
    """What a fault does to a link. A DIALLER_ mode is a fault of the connecting process, a PEER_ mode a fault of the
    other process."""

    HELD = "held"
    LOST = "lost"
    DOWN_HELD = "answers held"
    DOWN_LOST = "answers lost"
    CUT = "cut"
    RESET = "reset"
    SLOW = "slow"
    STALE = "half-open"
    DIALLER_GONE = "dialler gone"
    PEER_GONE = "peer gone"
    DIALLER_LEFT = "dialler left"
    PEER_LEFT = "peer left"
    DIALLER_HUNG = "dialler hung"
    PEER_HUNG = "peer hung"
    PEER_OFF = "peer's host off"
    CLOCK = "peer's clock"
    BY_HAND = "unregistered by hand"


_TABLE = """\
                       NORMAL HELD LOST CUT DOWN_HELD DOWN_LOST RESET SLOW
OK                     .      no   no   no  no        no        9     3
ARRIVED                .      no   no   no  0.5       3         6     1
OPEN                   .      0    8    no  0         8         0.5   0
NO_ANSWER              7      0.1  0.5  5   1.5       1         .     1.5
NO_DIAL                7      4    0.1  6   5         0.2       .     .
REFUSED                8      9    9    0.1 9         9         .     .
FAILED                 7      0.3  0.3  0.3 1         1         1     3
BROKEN                 7      8    8    3   8         8         0.1   .
HALF                   8      6    6    9   0.1       0.2       .     2.5
HALF_LATE              8      8    8    .   5         5         .     0.1
LATE                   4      0.5  1    .   1         1         .     0.1
CLOSED_BY_DIALLER_SEEN 6      7    7    0.1 6         6         0.3   .
CLOSED_BY_PEER_SEEN    7      8    8    0.1 1.5       7         0.3   3
CLOSED_AFTER           1      4    4    2   0.1       4         1     0.1
SILENCE                9      0.2  0.2  9   7         0.3       14    .
EARLY                  10     11   11   11  .         .         .     .
MISSED                 5      0.1  0.1  0.1 5         0.3       0.2   4
LEFT                   12     9    9    9   12        12        12    .
GONE                   9      0.7  0.7  0.7 .         1         1     .
BOOT                   8      .    .    .   .         .         .     .
STOPPED                8      .    .    .   .         .         .     .
OWN_MISSED             5      .    .    .   .         .         .     .
"""
"""Cost of each sign if nothing is wrong, and in each mode, in nats. `no`: impossible; `.`: not listed."""


def _columns() -> Iterator[tuple[str, dict[Kind, float]]]:
    names, *rows = map(str.split, _TABLE.splitlines())
    for at, name in enumerate(names, 1):
        said = {Kind[row[0]]: row[at] for row in rows if row[at] != "."}
        yield name, {kind: CERTAINLY_NOT if cost == "no" else float(cost) for kind, cost in said.items()}


_COLUMNS = dict(_columns())
NORMAL = _COLUMNS.pop("NORMAL")
_HELD, _LOST, _CUT = _COLUMNS["HELD"], _COLUMNS["LOST"], _COLUMNS["CUT"]
_ENDED = {Kind.BOOT: 0.1, Kind.OWN_MISSED: 0.1}
_DIALS_NO_MORE = dict.fromkeys((Kind.NO_ANSWER, Kind.REFUSED, Kind.NO_DIAL), CERTAINLY_NOT)

MODES: Mapping[Mode, Mapping[Kind, float]] = {
    **{Mode[name]: costs for name, costs in _COLUMNS.items()},
    Mode.STALE: _HELD | {Kind.SILENCE: 8, Kind.GONE: 8},
    Mode.DIALLER_GONE: _CUT | _DIALS_NO_MORE,
    Mode.PEER_GONE: _CUT | _ENDED,
    Mode.DIALLER_LEFT: _CUT | _DIALS_NO_MORE | {Kind.LEFT: 0.1, Kind.CLOSED_BY_PEER_SEEN: 1.5},
    Mode.PEER_LEFT: _CUT | _ENDED | {Kind.STOPPED: 0.1},
    Mode.DIALLER_HUNG: _HELD | {Kind.NO_ANSWER: 6, Kind.NO_DIAL: 6, Kind.FAILED: 6, Kind.OPEN: CERTAINLY_NOT},
    Mode.PEER_HUNG: _HELD | {Kind.OWN_MISSED: 0.1},
    Mode.PEER_OFF: _LOST | _ENDED,
    Mode.BY_HAND: {Kind.LEFT: 0.1, Kind.GONE: 2},
    Mode.CLOCK: {Kind.OK: 0, Kind.ARRIVED: 0, Kind.OPEN: 0, Kind.EARLY: 0.1, Kind.SILENCE: 3, Kind.GONE: 4},
}


def normal(kind: Kind) -> float:
    return NORMAL.get(kind, 0.0)


def gain(mode: Mode, kind: Kind) -> float:
    """Return how much likelier this kind of sign is during the fault than without, in nats. A negative number means
    less likely."""
    table = MODES[mode]
    usual = normal(kind)
    return usual - table.get(kind, max(usual, UNEXPECTED) if usual else 0.0)


ONE_FAULT = 4.0
EACH_MORE = 1.0
"""Price of each further node or link expression."""

LINK_MODES: Mapping[str, tuple[Mode, str | None, float]] = {
    "black_hole": (Mode.HELD, None, 0.0),
    "packet_loss": (Mode.LOST, None, 0.2),
    "black_hole upstream": (Mode.HELD, "upstream", 1.2),
    "packet_loss upstream": (Mode.LOST, "upstream", 1.4),
    "black_hole downstream": (Mode.DOWN_HELD, "downstream", 1.2),
    "packet_loss downstream": (Mode.DOWN_LOST, "downstream", 1.4),
    "cut": (Mode.CUT, None, 1.0),
    "latency": (Mode.SLOW, None, 1.0),
    "reset": (Mode.RESET, None, 1.5),
    "half_open": (Mode.STALE, None, 3.0),
}
"""Name of the fault: effect on the link, stream, and additional price compared with a partition."""
NODE_MODES: Mapping[str, tuple[Mode, Mode, float]] = {
    "kill": (Mode.DIALLER_GONE, Mode.PEER_GONE, 0.0),
    "stop": (Mode.DIALLER_LEFT, Mode.PEER_LEFT, 0.2),
    "pause": (Mode.DIALLER_HUNG, Mode.PEER_HUNG, 0.0),
    "host_lost": (Mode.DIALLER_HUNG, Mode.PEER_OFF, 1.0),
}
"""Effect on the links that the node opens, and on the links that other nodes open to the node."""
INSTANT_PRICES = {"clock_step": 1.0, "unregister": 1.5}
ENDS_PROCESS = frozenset({"kill", "stop", "host_lost"})


@dataclass(frozen=True)
class Candidate:
    name: str
    """A key of LINK_MODES, NODE_MODES or INSTANT_PRICES."""
    nodes: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    """Link expressions."""
    edges: tuple[tuple[Edge, Mode], ...] = ()

    @property
    def do(self) -> str:
        return self.name.split()[0]

    @property
    def stream(self) -> str | None:
        return LINK_MODES[self.name][1] if self.name in LINK_MODES else None

    @property
    def ends_process(self) -> bool:
        return self.name in ENDS_PROCESS

    @cached_property
    def price(self) -> float:
        said = max(1, len(self.nodes) + len(self.links))
        seldom = INSTANT_PRICES.get(self.name) or (LINK_MODES.get(self.name) or NODE_MODES[self.name])[2]
        shaped = sum(0.5 + 0.2 * link.count("|") for link in self.links if is_shape(link))
        return ONE_FAULT + EACH_MORE * (said - 1) + seldom + shaped

    @property
    def instant(self) -> bool:
        return self.name in INSTANT_PRICES

    @property
    def about(self) -> frozenset[str]:
        """The nodes whose logs would show this fault."""
        return frozenset(self.nodes) | {node for edge, _ in self.edges for node in edge if node}


def of_nodes(name: str, nodes: Iterable[str], seen: Seen) -> Candidate:
    as_dialler, as_peer, _ = NODE_MODES[name]
    which = tuple(sorted(set(nodes)))
    edges: dict[Edge, Mode] = {}
    for node in which:
        edges[Edge(node, "")] = as_peer
        for edge in seen.edges_of(node):
            edges[edge] = as_dialler if edge.dialler in which else as_peer
    return Candidate(name, nodes=which, edges=tuple(edges.items()))


def of_links(name: str, links: Iterable[str], edges: Iterable[Edge]) -> Candidate:
    mode = LINK_MODES[name][0]
    return Candidate(name, links=tuple(links), edges=tuple((edge, mode) for edge in sorted(set(edges))))


def isolated(name: str, node: str, seen: Seen) -> Candidate:
    return of_links(name, [f"isolate {node}"], seen.edges_of(node))


def all_of(name: str, edge: Edge, seen: Seen) -> list[Candidate]:
    """Return the fault `name` on all links from a node of `edge` to the whole group of the other node (brokers, clients
    or NameServers)."""
    found = []
    servers = set(seen.name_servers)
    if edge.peer in servers and len(servers) > 1:
        edges = [one for one in seen.edges_of(edge.dialler) if one.peer in servers and one.dialler == edge.dialler]
        found.append(of_links(name, [f"{edge.dialler} <-> name_servers"], edges))
    for group, members in (("brokers", seen.brokers), ("clients", seen.clients)):
        if edge.dialler in members and len(members) > 1:
            edges = [one for one in seen.edges_of(edge.peer) if one.dialler in members and one.peer == edge.peer]
            found.append(of_links(name, [f"{group} <-> {edge.peer}"], edges))
    return found


def candidates_for(sign: Sign, seen: Seen) -> list[Candidate]:
    edge = sign.edge
    if not edge.peer:
        return [of_nodes(name, [edge.dialler], seen) for name in NODE_MODES]
    if sign.kind is Kind.EARLY:
        edges = [one for one in seen.edges_of(edge.peer) if one.peer == edge.peer]
        return [Candidate("clock_step", nodes=(edge.peer,), edges=tuple((one, Mode.CLOCK) for one in edges))]
    found = [of_links(name, [str(edge)], [edge]) for name in LINK_MODES]
    if sign.kind is Kind.LEFT and edge.peer in seen.name_servers:
        everywhere = (one for one in seen.by_edge if one.dialler == edge.dialler and one.peer in seen.name_servers)
        found += [unregistered([edge]), unregistered(everywhere)]
    for node in edge:
        found += [of_nodes(name, [node], seen) for name in NODE_MODES]
        if sum(node in one for one in seen.by_edge if one.peer) > 1:
            found += [isolated(name, node, seen) for name in ("black_hole", "packet_loss", "cut")]
    for name in ("black_hole", "packet_loss", "cut", "black_hole downstream"):
        found += all_of(name, edge, seen)
    return found


def unregistered(edges: Iterable[Edge]) -> Candidate:
    """Return the fault "unregistered by hand" for the broker and the NameServers of these links."""
    which = sorted(set(edges))
    nodes = tuple(edge.peer for edge in which)
    return Candidate("unregister", nodes=nodes, edges=tuple((one, Mode.BY_HAND) for one in which))


AT_ONCE_MS = 2_000.0


def together(seen: Seen) -> list[Candidate]:
    """Return faults that ended the processes of several brokers, or of several NameServers, at the same time."""
    ends: list[tuple[float, str]] = []
    for edge, signs in seen.by_edge.items():
        for sign in signs:
            if sign.kind in (Kind.CLOSED_BY_PEER_SEEN, Kind.LEFT) and edge.peer in seen.name_servers:
                ends.append((sign.at_ms, edge.dialler))
            elif sign.kind is Kind.CLOSED_BY_DIALLER_SEEN and edge.peer in seen.name_servers:
                ends.append((sign.at_ms, edge.peer))
    found: dict[tuple[str, ...], None] = {}
    for bundle in bundles(ends, itemgetter(0), AT_ONCE_MS):
        for members in (seen.brokers, seen.name_servers):
            nodes = tuple(sorted({one for _, one in bundle if one in members}))
            if len(nodes) > 1:
                found.setdefault(nodes)
    return [of_nodes(name, nodes, seen) for nodes in found for name in ("kill", "stop")]


def hosts_of(seen: Seen) -> dict[str, list[str]]:
    """Return the nodes on each machine that runs at least two nodes. The key is the machine's address."""
    found: dict[str, list[str]] = {}
    for address, node in seen.addresses.items():
        host = address.rpartition(":")[0]
        if host not in ("127.0.0.1", "localhost", "") and node not in found.setdefault(host, []):
            found[host].append(node)
    return {host: nodes for host, nodes in found.items() if len(nodes) > 1}
