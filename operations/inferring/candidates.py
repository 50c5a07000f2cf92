"""The faults that inference considers: each fault's effect on links and nodes, and its price. Pure: no I/O.

A fault's price, in nats (units of log-likelihood), grows with the number of links and nodes that describe it, and is a
little higher for a rare fault. One fault that explains everything is therefore preferred to several faults.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from ...chaos.oracle.intervals import grouped
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


class Form(NamedTuple):
    """A fault's entry in faults.toml."""

    says: str
    price: float = 0.0
    """Additional price compared with a partition or a killed process."""
    modes: Sequence[Mode] = ()
    """Effect on its links; for a fault of nodes, on the links that the node opens, and on those that others open."""
    stream: str | None = None
    undo: str = "heal"
    """The action that ends it."""
    ends_process: bool = False
    more: Mapping[str, float] = {}
    """Further keys of its entry in a timeline."""


def _modes(told: Mapping[str, Any]) -> Iterator[tuple[str, dict[Kind, float]]]:
    """Yield the cost of each sign if nothing is wrong (`NORMAL`), and in each mode."""
    names, *rows = map(str.split, told["costs"].splitlines())
    modes = {name: {row[0]: row[at] for row in rows if row[at] != "."} for at, name in enumerate(names, 1)}
    for name, costs in told["modes"].items():
        modes[name] = modes.get(costs.pop("like", ""), {}) | costs
    for name, costs in modes.items():
        yield name, {Kind[kind]: CERTAINLY_NOT if cost == "no" else float(cost) for kind, cost in costs.items()}


_TOLD = tomllib.loads(Path(__file__).with_name("faults.toml").read_text(encoding="utf-8"))
_COSTS = dict(_modes(_TOLD))
MODES: Mapping[Mode, Mapping[Kind, float]] = {mode: _COSTS[mode.name] for mode in Mode}
FORMS: Mapping[str, Form] = {
    name: Form(modes=[Mode[mode] for mode in about.pop("modes", ())], **about)
    for name, about in _TOLD["faults"].items()
}
OF_LINKS = [name for name, form in FORMS.items() if len(form.modes) == 1]
OF_NODES = [name for name, form in FORMS.items() if len(form.modes) > 1]
APART: Mapping[str, str] = _TOLD["apart"]
"""Two faults in order, `kill, stop`, and the line that would tell one from the other."""


def normal(kind: Kind) -> float:
    return _COSTS["NORMAL"].get(kind, 0.0)


def gain(mode: Mode, kind: Kind) -> float:
    """Return how much likelier this kind of sign is during the fault than without, in nats. A negative number means
    less likely."""
    table = MODES[mode]
    usual = normal(kind)
    return usual - table.get(kind, max(usual, UNEXPECTED) if usual else 0.0)


ONE_FAULT = 4.0
EACH_MORE = 1.0
"""Price of each further node or link expression."""


@dataclass(frozen=True)
class Candidate:
    name: str
    """A key of FORMS."""
    nodes: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    """Link expressions."""
    edges: tuple[tuple[Edge, Mode], ...] = ()

    @property
    def do(self) -> str:
        return self.name.split()[0]

    @property
    def form(self) -> Form:
        return FORMS[self.name]

    @cached_property
    def price(self) -> float:
        said = max(1, len(self.nodes) + len(self.links))
        shaped = sum(0.5 + 0.2 * link.count("|") for link in self.links if is_shape(link))
        return ONE_FAULT + EACH_MORE * (said - 1) + self.form.price + shaped

    @property
    def instant(self) -> bool:
        return not self.form.modes

    @property
    def about(self) -> frozenset[str]:
        """The nodes whose logs would show this fault."""
        return frozenset(self.nodes) | {node for edge, _ in self.edges for node in edge if node}


def of_nodes(name: str, nodes: Iterable[str], seen: Seen) -> Candidate:
    as_dialler, as_peer = FORMS[name].modes
    which = tuple(sorted(set(nodes)))
    edges: dict[Edge, Mode] = {}
    for node in which:
        edges[Edge(node, "")] = as_peer
        for edge in seen.edges_of(node):
            edges[edge] = as_dialler if edge.dialler in which else as_peer
    return Candidate(name, nodes=which, edges=tuple(edges.items()))


def of_links(name: str, links: Iterable[str], edges: Iterable[Edge]) -> Candidate:
    (mode,) = FORMS[name].modes
    return Candidate(name, links=tuple(links), edges=tuple((edge, mode) for edge in sorted(set(edges))))


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
        return [of_nodes(name, [edge.dialler], seen) for name in OF_NODES]
    if sign.kind is Kind.EARLY:
        edges = [one for one in seen.edges_of(edge.peer) if one.peer == edge.peer]
        return [Candidate("clock_step", nodes=(edge.peer,), edges=tuple((one, Mode.CLOCK) for one in edges))]
    found = [of_links(name, [str(edge)], [edge]) for name in OF_LINKS]
    if sign.kind is Kind.LEFT and edge.peer in seen.name_servers:
        everywhere = (one for one in seen.by_edge if one.dialler == edge.dialler and one.peer in seen.name_servers)
        found += [unregistered([edge]), unregistered(everywhere)]
    for node in edge:
        found += [of_nodes(name, [node], seen) for name in OF_NODES]
        if sum(node in one for one in seen.by_edge if one.peer) > 1:
            edges = seen.edges_of(node)
            found += [of_links(name, [f"isolate {node}"], edges) for name in ("black_hole", "packet_loss", "cut")]
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
    at = dict.fromkeys((address.rpartition(":")[0], node) for address, node in seen.addresses.items())
    found = grouped(pair for pair in at if pair[0] not in ("127.0.0.1", "localhost", ""))
    return {host: nodes for host, nodes in found.items() if len(nodes) > 1}
