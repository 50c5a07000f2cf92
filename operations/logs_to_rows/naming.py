"""Gives each node a name, and finds the address of the NameServer that wrote each log. Pure: no I/O.

A broker's log has the broker's name, and a client's log has the ClientID. The log of a 4.x NameServer does not have the
NameServer's address. The address is found by port, by file path, and by the times of registrations and connections in
other logs.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...chaos.topology import broker_node
from .book import Book, broker_identity, client_by_path, has_word
from .clocks import ANY, AT
from .marks import ENDS_OF, client_id, host_of, marks_of
from .signs import is_near
from .sources import BROKER, CLIENT, NAME_SERVER, Source

_OWN_NAME = re.compile(r"(?:^|[/_.\-])(ns|namesrv|nameserver|name-server)[-_]?(\d+)(?=$|[/_.])", re.IGNORECASE)
_CLIENT_NAME = re.compile(r"(?:^|/)((?:producer|consumer|client)-\d+)(?=$|[/_.\-])", re.IGNORECASE)
GUESS = "a guess"
"""How `Nodes.sure` begins for an address that nothing shows."""
_NEAR_MS = 2_000.0
_APART = 0.4
"""Scores nearer than this are equal; then the order of the lists decides."""
_ENOUGH = 200
"""Number of moments that suffice to distinguish two addresses."""
_MOST = 6
"""With more addresses, not every matching is tried."""


@dataclass(slots=True)
class Nodes:
    name_servers: dict[str, list[str]] = field(default_factory=dict)
    brokers: dict[str, list[str]] = field(default_factory=dict)
    """The node's addresses, the last address first."""
    clients: dict[str, Source] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    of_address: dict[str, str] = field(default_factory=dict)
    sure: dict[str, str] = field(default_factory=dict)
    """NameServer's node to how its address is known."""


def first_names(sources: Sequence[Source], book: Book) -> None:
    """Give each log's node a preliminary name, such as ns-0. NameServers are renamed when the topology is known;
    brokers and clients keep the name."""
    taken: set[str] = set()
    for source in sources:
        if source.kind == BROKER:
            identity = broker_identity(source, book)
            source.name = broker_node(identity[0], identity[1]) if identity is not None else ""
    servers = [source for source in sources if source.kind == NAME_SERVER]
    own = [int(found[2]) for source in servers if (found := _OWN_NAME.search(source.key))]
    for source, number in zip(servers, own if len({*own}) == len(servers) else itertools.count(), strict=False):
        source.name = f"ns-{number}"
    clients = [source for source in sources if source.kind == CLIENT]
    for source in clients:
        if client_id(source) is None:
            source.client = client_by_path(source, book)
    numbers: dict[str, Iterator[int]] = defaultdict(itertools.count)
    for source in clients:
        found = _CLIENT_NAME.search(source.key)
        stem = kind_of_client(source) or "client"
        source.name = found[1].lower() if found else f"{stem}-{next(numbers[stem])}"
    for source in sources:
        base, number = source.name or f"broker-{source.key.rpartition('/')[2]}", 1
        source.name = base
        while source.name in taken:
            number += 1
            source.name = f"{base}.{number}"
        taken.add(source.name)


def kind_of_client(source: Source) -> str:
    """Return producer, consumer, or "" if unknown."""
    name = source.key.lower()
    for line in source.lines:
        if line.event in ("rebalanced", "pull_failed", "consumer_started"):
            return "consumer"
        if line.event in ("send_retried", "producer_started"):
            return "producer"
    return "producer" if "producer" in name else "consumer" if "consumer" in name else ""


def nodes_of(sources: Sequence[Source], book: Book) -> Nodes:
    """Return every node with its addresses. The clocks of the logs must be aligned before."""
    nodes = Nodes()
    servers = [source for source in sources if source.kind == NAME_SERVER]
    addresses = _name_server_addresses(book, servers)
    matched = _matched(servers, addresses, sources, book)
    for source in servers:
        address, how = matched.get(source.name, (None, "no log says it"))
        nodes.name_servers[source.name] = [address] if address else []
        nodes.sure[source.name] = how
    taken = {address for address, _ in matched.values()}
    number = 0
    for address in addresses:
        if address in taken:
            continue
        while f"ns-{number}" in nodes.name_servers:
            number += 1
        nodes.name_servers[f"ns-{number}"] = [address]
        nodes.sure[f"ns-{number}"] = "its log is missing"
    nodes.name_servers = dict(sorted(nodes.name_servers.items()))
    nodes.brokers = book.addresses()
    for source in sources:
        if source.kind == BROKER:
            identity = broker_identity(source, book)
            known = nodes.brokers.setdefault(source.name, [])
            if identity is not None and identity[2] and identity[2] not in known:
                known.insert(0, identity[2])
        elif source.kind == CLIENT:
            nodes.clients[source.name] = source
    for node in nodes.name_servers:
        nodes.roles[node] = "name_server"
    for node in nodes.brokers:
        nodes.roles[node] = "slave" if "/" in node else "broker"
    for node, source in nodes.clients.items():
        nodes.roles[node] = kind_of_client(source) or "producer"
    for kind in (nodes.name_servers, nodes.brokers):
        nodes.of_address |= {address: node for node, found in kind.items() for address in found}
    return nodes


def _name_server_addresses(book: Book, servers: Sequence[Source]) -> list[str]:
    own = [address for source in servers if (address := _boot_address(source)) is not None]
    longest = max(book.lists, key=len, default=())
    found = dict.fromkeys([*longest, *(address for address, _ in book.name_servers.most_common()), *own])
    return [address for address in found if not address.startswith("192.0.2.") and address not in book.names]


def _boot_address(source: Source) -> str | None:
    found = None
    for line in source.lines:
        if line.event == "name_server_boot" and line.fields.get("address"):
            found = line.fields["address"]
    return None if found is None or found.startswith("0.0.0.0") else found


def _matched(
    servers: Sequence[Source], addresses: Sequence[str], sources: Sequence[Source], book: Book
) -> Mapping[str, tuple[str, str]]:
    """Return each NameServer's address, and how the address is known, best pairs first."""
    seen: dict[str, dict[str, list[float]]] = {address: {} for address in addresses}
    for source in sources:
        for address, moments in _moments(source, book).items() if source.kind != NAME_SERVER else ():
            for what, times in moments.items() if address in seen else ():
                seen[address][what] = sorted([*seen[address].get(what, ()), *times])
    told = {source.name: _moments(source, book)[ANY] for source in servers}
    scores = {
        (source.name, address): _score(source, address, seen[address], told[source.name])
        for source in servers
        for address in addresses
    }
    names = [source.name for source in servers]
    best, second = _best(names, addresses, scores)
    total = sum(scores[pair][0] for pair in best)
    found: dict[str, tuple[str, str]] = {}
    for name, address in best:
        score, why = scores[name, address]
        if score < 0 and len(addresses) != len(servers):
            continue
        rival = total - second.get((name, address), -1e9)
        is_clear = len(addresses) == len(servers) == 1 or rival > _APART
        found[name] = address, why if is_clear else f"{GUESS}, by the order of the lists ({why or 'nothing tells'})"
    return found


_Pair = tuple[str, str]


def _best(
    names: Sequence[str], addresses: Sequence[str], scores: Mapping[_Pair, tuple[float, str]]
) -> tuple[list[_Pair], dict[_Pair, float]]:
    """Return the best complete matching (the first of equals), and for each pair the best total without the pair."""
    if not names or not addresses:
        return [], {}
    if len(names) > _MOST or len(addresses) > _MOST:
        pairs, taken = [], set[str]()
        for name in names:
            left = [address for address in addresses if address not in taken]
            if left:
                address = max(left, key=lambda one: scores[name, one][0])
                taken.add(address)
                pairs.append((name, address))
        return pairs, {}
    few, many, turned = (names, addresses, False) if len(names) <= len(addresses) else (addresses, names, True)
    totals = []
    for chosen in itertools.permutations(many, len(few)):
        pairs = [(other, one) if turned else (one, other) for one, other in zip(few, chosen, strict=True)]
        totals.append((sum(scores[pair][0] for pair in pairs), pairs))
    _, best = max(totals, key=lambda one: round(one[0], 1))
    return best, {pair: max((total for total, pairs in totals if pair not in pairs), default=-1e9) for pair in best}


def _score(
    source: Source, address: str, seen: Mapping[str, Sequence[float]], told: Mapping[str, Sequence[float]]
) -> tuple[float, str]:
    host, port = host_of(address), address.rpartition(":")[2]
    if _boot_address(source) == address:
        return 200.0, "it says so when it boots"
    score, why = 0.0, []
    own = source.settings.get("listenPort")
    if own is not None and own != port:
        score -= 5.0
    elif own is not None:
        score += 3.0
    if not host.startswith("127.") and (has_word(source.hint, host.lower()) or _is_part(source.hint, host.lower())):
        score += 100.0
        why.append("its path names the host")
    told = {kind: times for kind, times in told.items() if kind.startswith("reg") or kind in seen}
    hits = sum(is_near(seen.get(kind, ()), at_ms, _NEAR_MS) for kind, times in told.items() for at_ms in times)
    misses = sum(not is_near(told.get(kind, ()), at_ms, _NEAR_MS) for kind, times in seen.items() for at_ms in times)
    total = sum(map(len, told.values())) + sum(map(len, seen.values()))
    if total:
        score += 30.0 * (hits - 0.5 * misses) / min(total, _ENOUGH)
        why.append(f"{hits} of its moments are in other logs with that address")
    return score, "; ".join(why)


def _is_part(path: str, host: str) -> bool:
    """Whether the log's folder is a numbered word of the host's name: `prod01/` of `mq-namesrv-prod01.corp.example`."""
    words = {word for word in re.split(r"[^a-z0-9]+", host) if re.fullmatch(r"[a-z]+\d+", word)}
    return not host.replace(".", "").isdigit() and any(part in words for part in path.split("/"))


def _moments(source: Source, book: Book) -> dict[str, dict[str, list[float]]]:
    """Return by a NameServer's address (`ANY`: the log's own) when a broker registered there, and when a host connected
    or closed its connection."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    shift_ms, unknown = source.zone_ms + source.offset_ms, (source.name, "None")
    for mark in sorted(marks_of(source, book), key=lambda one: one.at_ms):
        what, _, address = mark.key.partition(AT)
        if address and what.startswith(("reg ", *ENDS_OF)) and what.partition(" ")[2] not in unknown:
            found[address][what].append(mark.at_ms - shift_ms)
    return found
