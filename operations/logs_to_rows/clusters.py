"""Groups logs by cluster. Two logs belong to one cluster if a NameServer list, a registration, a route or a connection
links their nodes. Pure: no I/O.

eu/ns-0 ─ 10.0.2.1:10911 ─ eu/broker-a ─ 10.0.1.1:9876 ─ eu/producer-0      one cluster, the larger: imported
us/ns-0 ─ 10.7.2.1:10911 ─ us/broker-a ─ 10.7.1.1:9876                      another: left out, with a message

Equal broker names do not put two logs into one cluster, because every cluster may have a broker-a. A log that names no
known broker or NameServer belongs to the cluster of its folder. A NameServer's log without any link belongs to a
cluster whose logs list NameServers.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from ...chaos.oracle.intervals import grouped
from .book import HOST_PORT, book_of
from .marks import client_id, host_of
from .signs import heads
from .sources import BROKER, CLIENT, NAME_SERVER, Source

_SYSTEM_LIST = "192.0.2."
_OF_BROKERS = frozenset(
    {"master_address", "broker_registered", "broker_expired", "live_removed", "address_removed", "conflict_ignored"}
)
"""Events of a NameServer's log with the address of a registered broker."""
_PEERS = frozenset({"channel_active", "channel_inactive", "channel_destroyed", "channel_idle"})
_DIALLED = frozenset({"connected", "heartbeat"})
_SHOWN = 6


@dataclass(frozen=True, slots=True)
class _Said:
    """What one log shows about its cluster: names, addresses, lists."""

    brokers: frozenset[str]
    name_servers: frozenset[str]
    others: frozenset[str]
    """Addresses of an unknown kind that it connected to."""
    hosts: frozenset[str]
    """Hosts that connected to it."""
    own_host: str | None


def one_cluster(sources: Sequence[Source]) -> tuple[list[Source], list[str]]:
    """Return the logs of the cluster that has most log lines, and a sentence about the logs that are left out."""
    groups, why = clusters_of(sources), "no list, registration or connection joins two"
    if len(groups) == 1:
        groups, why = _incidents(sources)
    if len(groups) == 1:
        return list(sources), []
    kept = {id(source) for source in groups[0]}
    return [source for source in sources if id(source) in kept], [_sentence(groups, why)]


def _incidents(sources: Sequence[Source]) -> tuple[list[list[Source]], str]:
    """Return the logs of each folder, if two folders have logs of one broker that one life cannot have written.
    Otherwise return a single group."""
    booted = [(one, {line.fields["address"] for line in one.lines if line.event == "broker_boot"}) for one in sources]
    at = grouped((address, source) for source, addresses in booted for address in addresses)
    for address, logs in sorted(at.items()):
        for one, other in combinations(logs, 2):
            if not (when := _two_lives(one, other)):
                continue
            depth = _shared(one, other)
            groups = grouped(("/".join(source.key.split("/")[: depth + 1]), source) for source in sources)
            if all({BROKER, NAME_SERVER} <= {source.kind for source in group} for group in groups.values()):
                return sorted(
                    groups.values(), key=_size, reverse=True
                ), f"each has its own log of the broker at {address}, {when}"
    return [list(sources)], ""


_APART_MS = 3_600_000.0
"""Least time between two incidents of one cluster; logs of two days follow each other at once."""


def _two_lives(one: Source, other: Source) -> str:
    """Return when both logs were written, if neither continues or copies the other."""
    ours, theirs = ({(line.stamp_ms, line.event) for line in each.lines} for each in (one, other))
    between_ms = max(min(ours)[0] - max(theirs)[0], min(theirs)[0] - max(ours)[0])
    if between_ms >= _APART_MS:
        return f"{between_ms / _APART_MS:.1f} hours apart"
    is_copy = len(ours & theirs) >= min(len(ours), len(theirs)) / 2
    return "" if between_ms >= 0 or is_copy else "of the same time"


def clusters_of(sources: Sequence[Source]) -> list[list[Source]]:
    """Return the logs of each cluster, the cluster with most log lines first."""
    said = [_said(source) for source in sources]
    groups = [
        members
        for members in _joined(said)
        if any(said[one].brokers for one in members)
        and any(said[one].name_servers or sources[one].kind == NAME_SERVER for one in members)
    ]
    groups.sort(key=lambda members: -sum(len(sources[one].lines) for one in members))
    groups = _with_their_own(groups, sources, said)
    if len(groups) < 2:
        return [list(sources)]
    placed = {one for members in groups for one in members}
    near = [list(members) for members in groups]
    for one in sorted(set(range(len(sources))) - placed):
        shared = [max(_shared(sources[one], sources[other]) for other in members) for members in groups]
        near[shared.index(max(shared))].append(one)
    return [[sources[one] for one in sorted(members)] for members in near]


def _with_their_own(
    groups: Sequence[list[int]], sources: Sequence[Source], said: Sequence[_Said]
) -> list[list[int]]:  # fmt: skip
    """Join NameServers' logs, which do not have their own address, with the logs that list NameServers without a log,
    unless they use different addresses for one broker name."""
    alone = [members for members in groups if all(sources[one].kind == NAME_SERVER for one in members)]
    found = [list(members) for members in groups if members not in alone]
    for members in alone:
        names = _names(sources, members)
        for group in found:
            listed = frozenset[str]().union(*(said[one].name_servers for one in group))
            own = sum(sources[one].kind == NAME_SERVER for one in group)
            theirs = _names(sources, group)
            if len(listed) >= own + len(members) and all(
                names[node] & theirs[node] for node in names.keys() & theirs.keys()
            ):
                group += members
                break
        else:
            found.append(members)
    return found


def _names(sources: Sequence[Source], members: Iterable[int]) -> dict[str, set[str]]:
    book = book_of([sources[one] for one in members])
    return {node: set(addresses) for node, addresses in book.addresses().items()}


def _joined(said: Sequence[_Said]) -> list[list[int]]:
    hosts = grouped((one.own_host, number) for number, one in enumerate(said) if one.own_host is not None)
    links: list[tuple[int | str, int | str]] = []
    for number, one in enumerate(said):
        links += ((number, address) for address in one.brokers | one.name_servers | one.others)
        links += ((number, other) for host in one.hosts & hosts.keys() for other in hosts[host])
    find = heads(links)
    return [*grouped((find(number), number) for number in range(len(said))).values()]


def _said(source: Source) -> _Said:
    brokers, name_servers, others, hosts = set[str](), set[str](), set[str](), set[str]()
    own: str | None = None
    for line in source.lines:
        address = line.fields.get("address") or ""
        match line.event:
            case event if event in _OF_BROKERS and source.kind == NAME_SERVER:
                brokers |= {address, line.fields.get("old") or ""}
            case event if event in _PEERS and source.kind in (NAME_SERVER, BROKER):
                hosts.add(host_of(address))
            case "broker_boot":
                own = host_of(address)
            case event if event in _DIALLED and source.kind != NAME_SERVER:
                others.add(address)
    if source.kind != NAME_SERVER:
        book = book_of([source])
        brokers, name_servers = {*book.names}, {*book.name_servers}
    if source.kind == CLIENT and (known := client_id(source)) and "@" in known:
        own = known.partition("@")[0]
    return _Said(
        _whole(brokers),
        _whole(name_servers),
        _whole(others),
        frozenset(host for host in hosts if not host.startswith("127.")),
        own or None,
    )


def _whole(found: Iterable[str]) -> frozenset[str]:
    return frozenset(one for one in found if HOST_PORT.fullmatch(one) is not None and not one.startswith(_SYSTEM_LIST))


def _shared(one: Source, other: Source) -> int:
    """Number of folders that the paths of two logs share, from the top."""
    pairs = zip(one.key.split("/"), other.key.split("/"), strict=False)
    return next((depth for depth, (a, b) in enumerate(pairs) if a != b), min(one.key.count("/"), other.key.count("/")))


def _sentence(groups: Sequence[Sequence[Source]], why: str) -> str:
    kept, *left = groups
    by_group = [{file for source in group for file in source.files} for group in groups]
    told = []
    for number, group in enumerate(left, 1):
        others = set().union(*(files for position, files in enumerate(by_group) if position != number))
        kinds = Counter(source.kind for source in group)
        places = _places(by_group[number], others)
        mixed = sorted(by_group[number] & others)
        how = f"read it alone, from {_listed(places)}" if places else "it has no file of its own"
        how += f", with its lines of {_listed(mixed)} in files of their own" if mixed else ""
        told.append(
            f"left out {'is' if number == 1 else 'is also'} that with {kinds[NAME_SERVER]} NameServers', "
            f"{kinds[BROKER]} brokers' and {kinds[CLIENT]} clients' logs ({_size(group):,} lines): {how}"
        )
    others = set().union(*by_group[1:])
    places = _places(by_group[0], others) or sorted(by_group[0])
    return (
        f"these logs are of {len(groups)} clusters, of which {why}; what is read is the larger, "
        f"of {_listed(places)} ({_size(kept):,} lines); {'; '.join(told)}"
    )


def _size(group: Iterable[Source]) -> int:
    return sum(len(source.lines) for source in group)


def _listed(places: Sequence[str]) -> str:
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    return ", ".join(places[:_SHOWN]) + more


def _places(files: Iterable[str], others: Iterable[str]) -> list[str]:
    taken = set[str]()
    for file in others:
        taken.add(file)
        taken.update(_folders(file))
    found = dict[str, None]()
    for file in sorted(files):
        place = next((folder for folder in (*_folders(file), file) if folder not in taken), None)
        if place is not None:
            found[place] = None
    return [place if place in files else f"{place}/" for place in found]


def _folders(file: str) -> list[str]:
    parts = file.split("/")[:-1]
    return ["/".join(parts[: end + 1]) for end in range(len(parts)) if "/".join(parts[: end + 1])]
