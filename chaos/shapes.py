"""Named partitions: the links that a shape separates, and in which direction.

    isolate ns-0        halves                  bridge ns-1             ring                 into broker-a
    ns-0 ╳ broker-a     ns-0     ╳ ns-1         ns-0 ═ ns-1 ═ ns-2      broker-a ╳ ns-0      broker-a ◄─╳─ producer-0
         ╳ producer-0   broker-a ╳ broker-b     broker-a ╳ broker-b     broker-b ╳ ns-1      broker-a ────► ns-0

A shape is a link expression that consists of the shape's name and nodes. `halves`, `majority` and `bridge` divide the
nodes of each kind, in order of name, between two sides; nodes of one side reach each other. The prober and outside
clients belong to no side, but are cut from isolated nodes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, Protocol

Stream = Literal["both", "upstream", "downstream"]
Separates = Callable[[str, str], Stream | None]
"""From the connecting node and its peer to the direction that is cut; None: none."""
KINDS = ("name_servers", "brokers", "producers", "consumers")


class Members(Protocol):
    def of_kind(self, group: str) -> Sequence[str]:
        """Return the nodes of one of KINDS, in order of name."""

    @property
    def zones(self) -> Mapping[str, Collection[str]]:
        """Return the nodes of each zone."""

    def meant(self, word: str, expression: str) -> frozenset[str]:
        """Return the nodes that the name of a node, group or zone stands for. Raises ValueError for another name."""


class LinkExpressionError(ValueError):
    """Raised for an invalid link expression; the error's text says what is allowed."""


def is_shape(expression: str) -> bool:
    """Whether the link expression begins with the name of a shape."""
    return expression.split()[:1] != [] and expression.split()[0] in SHAPES


def shape_of(expression: str, members: Members) -> Separates:
    """Return the links that the named partition cuts. Raises LinkExpressionError, which says what is allowed."""
    word, *rest = expression.split()
    return SHAPES[word](expression, rest, members)


def _isolate(expression: str, words: Sequence[str], members: Members) -> Separates:
    """Cuts each of the nodes from everyone else."""
    alone = _named(expression, words, members)
    return lambda node, peer: "both" if node in alone or peer in alone else None


def _into(expression: str, words: Sequence[str], members: Members) -> Separates:
    """Cuts only the direction to these nodes."""
    return _one_way(_named(expression, words, members), into=True)


def _out_of(expression: str, words: Sequence[str], members: Members) -> Separates:
    """Cuts only the direction from these nodes."""
    return _one_way(_named(expression, words, members), into=False)


def _one_way(nodes: frozenset[str], *, into: bool) -> Separates:
    def separates(node: str, peer: str) -> Stream | None:
        if node in nodes and peer in nodes:
            return "both"
        if node not in nodes and peer not in nodes:
            return None
        return "upstream" if (peer in nodes) is into else "downstream"

    return separates


def _halves(expression: str, words: Sequence[str], members: Members) -> Separates:
    """Divides each kind of node into two sides; the first side is the smaller one."""
    _no_words(expression, words)
    return _apart(*_in_two(members, lambda number: number // 2))


def _majority(expression: str, words: Sequence[str], members: Members) -> Separates:
    """Divides each kind of node into a smallest possible majority and the rest."""
    _no_words(expression, words)
    return _apart(*_in_two(members, lambda number: number // 2 + 1))


def _bridge(expression: str, words: Sequence[str], members: Members) -> Separates:
    """Divides the nodes into halves, with some nodes that reach both."""
    both = _named(expression, words, members)
    return _apart(*_in_two(members, lambda number: number // 2, without=both))


def _ring(expression: str, words: Sequence[str], members: Members) -> Separates:
    """Cut each broker and client from a minority of the NameServers, its neighbour from another minority."""
    _no_words(expression, words)
    servers = list(members.of_kind("name_servers"))
    missed = (len(servers) - 1) // 2
    if not missed:
        raise LinkExpressionError(
            f"{expression!r} needs three NameServers or more: a majority of {len(servers)} is all of them"
        )
    lost: set[tuple[str, str]] = set()
    for kind in KINDS[1:]:
        for number, node in enumerate(members.of_kind(kind)):
            lost |= {(node, servers[(number + step) % len(servers)]) for step in range(missed)}
    return lambda node, peer: "both" if (node, peer) in lost else None


def _split_list(expression: str, words: Sequence[str], members: Members) -> Separates:
    """Every second producer and consumer reaches one half of the NameServers, every other one the other half."""
    _no_words(expression, words)
    servers, clients = members.of_kind("name_servers"), [*members.of_kind("producers"), *members.of_kind("consumers")]
    if len(servers) < 2 or len(clients) < 2:
        raise LinkExpressionError(f"{expression!r} needs two NameServers and two clients or more")
    first = set(servers[: len(servers) // 2])
    of_first = set(clients[::2])
    lost = {(client, server) for client in clients for server in servers if (client in of_first) != (server in first)}
    return lambda node, peer: "both" if (node, peer) in lost else None


def _groups(expression: str, words: Sequence[str], members: Members) -> Separates:
    """Groups of nodes that are cut from each other; nodes in no group reach all."""
    sides = [_named(expression, side.split(), members) for side in " ".join(words).split("|")]
    if len(sides) < 2:
        raise LinkExpressionError(f"{expression!r} names one group: write `groups ns-0 broker-a | ns-1 broker-b`")
    twice = next((node for one in sides for other in sides if one is not other for node in sorted(one & other)), None)
    if twice is not None:
        raise LinkExpressionError(f"{expression!r} has {twice} in two groups: each node is in one at most")
    return _apart(*sides)


def _zones(expression: str, words: Sequence[str], members: Members) -> Separates:
    """Zones that are cut from each other; nodes in no zone reach all."""
    _no_words(expression, words)
    if len(members.zones) < 2:
        raise LinkExpressionError(f"{expression!r} needs two `zones:` of the scenario or more; `groups` says its own")
    return _apart(*map(frozenset, members.zones.values()))


SHAPES: dict[str, Callable[[str, Sequence[str], Members], Separates]] = {
    "isolate": _isolate,
    "into": _into,
    "out_of": _out_of,
    "halves": _halves,
    "majority": _majority,
    "ring": _ring,
    "bridge": _bridge,
    "split_list": _split_list,
    "groups": _groups,
    "zones": _zones,
}


def _apart(*sides: frozenset[str]) -> Separates:
    side_of = {node: number for number, side in enumerate(sides) for node in side}

    def separates(node: str, peer: str) -> Stream | None:
        here, there = side_of.get(node), side_of.get(peer)
        return None if here is None or there is None or here == there else "both"

    return separates


def _in_two(
    members: Members, first: Callable[[int], int], without: frozenset[str] = frozenset()
) -> tuple[frozenset[str], frozenset[str]]:
    """Return sides with this many nodes of each kind on the first side, and the others on the second."""
    one: set[str] = set()
    other: set[str] = set()
    for kind in KINDS:
        nodes = [node for node in members.of_kind(kind) if node not in without]
        one |= set(nodes[: first(len(nodes))])
        other |= set(nodes[first(len(nodes)) :])
    return frozenset(one), frozenset(other)


def _named(expression: str, words: Sequence[str], members: Members) -> frozenset[str]:
    if not words:
        raise LinkExpressionError(f"{expression!r} names no node: write `{expression.split()[0]} ns-0`")
    return frozenset(node for word in words for node in members.meant(word, expression))


def _no_words(expression: str, words: Sequence[str]) -> None:
    if words:
        raise LinkExpressionError(f"{expression!r} says too much: `{expression.split()[0]}` stands alone")
