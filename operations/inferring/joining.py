"""Joins simultaneous faults into one: several links, several nodes, or a partition such as `halves`. Pure: no I/O."""

from collections.abc import Iterable, Sequence
from itertools import product

from ...chaos.oracle.intervals import grouped
from ...chaos.shapes import shape_of
from ...chaos.topology import Nodes
from ..logs_to_rows.signs import WORKS, Edge, Seen, Sign, heads
from .candidates import FORMS, OF_LINKS, OF_NODES, Candidate, of_links, of_nodes, unregistered
from .explains import Bounds, Fit, fits, with_signs_of

PARTED = 4
"""Number of links from which on a partition of groups is considered."""
SIDES = 4


def shaped(name: str, expression: str, seen: Seen) -> Candidate | None:
    """Return the fault `name` on every link that the partition `expression` separates, for example `isolate ns-0`."""
    try:
        separates = shape_of(expression, Nodes(seen.kinds))
    except ValueError:
        return None
    edges = [edge for edge in seen.by_edge if edge.peer and separates(edge.dialler, edge.peer) == "both"]
    return of_links(name, [expression], edges) if edges else None


def shapes_of(seen: Seen) -> list[Candidate]:
    """Return the partitions `halves` and `majority` as candidates, each as black hole, packet loss and cut."""
    kinds = product(("black_hole", "packet_loss", "cut"), ("halves", "majority"))
    found = [shaped(name, said, seen) for name, said in kinds]
    return [one for one in found if one is not None and len(one.edges) >= PARTED]


def joined(seen: Seen, chosen: Sequence[Fit], taken: dict[Sign, float]) -> list[Fit]:
    """Return the faults after joining simultaneous faults wherever one fault with a lower price explains them all."""
    left = list(chosen)
    while (better := _one_join(seen, left, taken)) is not None:
        members, fit = better
        left = [one for one in left if one not in members] + [fit]
    return _without_idle(seen, left, taken)


def _without_idle(seen: Seen, left: list[Fit], taken: dict[Sign, float]) -> list[Fit]:
    """Return the faults, but leave out each fault whose signs the other faults explain, too."""
    for one in sorted(left, key=lambda fit: fit.net):
        others = [fit for fit in left if fit is not one]
        again = [_anew(seen, fit, others, taken) for fit in others]
        if others and sum(fit.net for fit in again) >= sum(fit.net for fit in left) - 0.01:
            return _without_idle(seen, again, taken)
    return left


def _anew(seen: Seen, fit: Fit, among: Sequence[Fit], taken: dict[Sign, float]) -> Fit:
    """Return the fault, fitted again to all signs that only this fault explains."""
    rest = with_signs_of((other for other in among if other is not fit), taken)
    own = {sign for sign, _ in fit.signs}
    found = [one for one in fits(fit.candidate, seen, rest) if any(sign in own for sign, _ in one.signs)]
    return max([fit, *found], key=lambda one: one.net)


def _one_join(seen: Seen, left: Sequence[Fit], taken: dict[Sign, float]) -> tuple[list[Fit], Fit] | None:
    for members in _of_one_moment(seen, left):
        rest = with_signs_of((other for other in left if other not in members), taken)
        alone = sum(one.net for one in members)
        found = (fit for candidate in unions(seen, members) for fit in fits(candidate, seen, rest))
        best = max((fit for fit in found if _same_signs(fit, members)), key=lambda fit: fit.net, default=None)
        if best is not None and best.net > alone + 0.01:
            return members, best
    return None


def _same_signs(fit: Fit, members: Sequence[Fit]) -> bool:
    own = {sign for sign, _ in fit.signs}
    return all(any(sign in own for sign, _ in one.signs) for one in members)


def _family(fit: Fit) -> str:
    name = fit.candidate.name
    if name in ("black_hole", "packet_loss") or name.endswith("stream") or name == "latency":
        return f"links {fit.candidate.form.stream or ''}"
    return name


def _of_one_moment(seen: Seen, left: Sequence[Fit]) -> Iterable[list[Fit]]:
    """Return sets of faults of one family whose begins and ends all overlap: the largest, then each pair."""
    ordered = sorted(left, key=lambda fit: fit.start.to_ms)
    pairs: list[list[Fit]] = []
    for position, first in enumerate(ordered):
        group, start, end = [first], first.start, first.end
        for other in ordered[position + 1 :]:
            tolerance = max(first.tolerance_ms(seen), other.tolerance_ms(seen))
            if _family(other) != _family(first) or not start.meets(other.start, tolerance):
                continue
            if (end is None) != (other.end is None) or (end and other.end and not end.meets(other.end, tolerance)):
                continue
            pairs.append([first, other])
            group.append(other)
            start = Bounds(max(start.from_ms, other.start.from_ms), min(start.to_ms, other.start.to_ms))
            if end and other.end:
                end = Bounds(max(end.from_ms, other.end.from_ms), min(end.to_ms, other.end.to_ms))
        if len(group) > 2:
            yield group
    yield from pairs


def unions(seen: Seen, members: Sequence[Fit]) -> Iterable[Candidate]:
    """Yield each single fault that has the same effect as all faults in `members` together."""
    names = list(dict.fromkeys(one.candidate.name for one in members))
    nodes = {node for one in members for node in one.candidate.nodes}
    edges = {edge for one in members for edge, _ in one.candidate.edges if edge.peer}
    for name in names:
        if name in OF_NODES:
            yield of_nodes(name, nodes, seen)
        elif name == "unregister":
            if len({edge.dialler for edge in edges}) == 1:
                yield unregistered(edges)
        elif name in OF_LINKS:
            yield of_links(name, expressions(edges, seen), edges)
            if FORMS[name].stream is None:
                yield from _shapes(name, members, edges, seen)


def variants(candidate: Candidate, seen: Seen) -> list[Candidate]:
    """Return a candidate for each kind of fault, on the links or nodes of `candidate`."""
    edges = [edge for edge, _ in candidate.edges if edge.peer]
    if candidate.name in OF_LINKS:
        found = [of_links(name, candidate.links, edges) for name in OF_LINKS]
        ends = set.intersection(*({*edge} for edge in edges)) if edges else set()
        return found + [of_nodes(name, [node], seen) for node in sorted(ends) for name in OF_NODES]
    if candidate.name in OF_NODES:
        found = [of_nodes(name, candidate.nodes, seen) for name in OF_NODES]
        apart = f"isolate {' '.join(candidate.nodes)}"
        return found + [one for name in OF_LINKS if (one := shaped(name, apart, seen)) is not None]
    return []


def _shapes(name: str, members: Sequence[Fit], edges: set[Edge], seen: Seen) -> Iterable[Candidate]:
    said = ["halves", "majority", *(f"isolate {node}" for node in sorted({n for edge in edges for n in edge}))]
    if len(edges) >= PARTED and (groups := _groups(members, edges, seen)) is not None:
        said.append(groups)
    for expression in said:
        candidate = shaped(name, expression, seen)
        if candidate is not None and edges & {edge for edge, _ in candidate.edges}:
            yield candidate


def _groups(members: Sequence[Fit], edges: set[Edge], seen: Seen) -> str | None:
    """Return `groups A B | C D`, if working links join the nodes to few sides and these links all lie between sides."""
    from_ms = max(one.start.to_ms for one in members)
    to_ms = min((one.end.from_ms for one in members if one.end is not None), default=seen.last_ms)
    works = [
        (edge.dialler, edge.peer)
        for edge, signs in seen.by_edge.items()
        if edge.peer and edge not in edges and any(s.kind in WORKS and from_ms < s.at_ms < to_ms for s in signs)
    ]
    of, met = heads(works), {node for pair in works for node in pair}
    sides = grouped((of(node), node) for node in sorted(met | {node for edge in edges for node in edge}))
    if not 2 <= len(sides) <= SIDES or any(of(edge.dialler) == of(edge.peer) for edge in edges):
        return None
    if len(sides) == 2 and min(map(len, sides.values())) == 1:
        return None  # one node apart from all others has a shorter name
    return "groups " + " | ".join(" ".join(nodes) for nodes in sorted(sides.values()))


def expressions(edges: Iterable[Edge], seen: Seen) -> list[str]:
    """Return these links in as few scenario expressions as possible, such as `brokers <-> ns-0`."""
    left, said = set(edges), []
    for group, members in (("brokers", seen.brokers), ("clients", seen.clients)):
        for peer in sorted({edge.peer for edge in left}):
            whole = {Edge(member, peer) for member in members}
            if len(whole) > 1 and whole <= left:
                said.append(f"{group} <-> {peer}")
                left -= whole
    servers = seen.name_servers
    for dialler in sorted({edge.dialler for edge in left}):
        whole = {Edge(dialler, server) for server in servers}
        if len(whole) > 1 and whole <= left:
            said.append(f"{dialler} <-> name_servers")
            left -= whole
    return said + [str(edge) for edge in sorted(left)]
