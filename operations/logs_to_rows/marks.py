"""Finds events that two logs can both have (marks), by which clocks.py compares the logs' clocks. Pure: no I/O.

NameServer          broker                client              key
registration        register … OK                             reg ADDRESS      (first ones weigh more)
unregister          unregisterBroker OK                       unreg ADDRESS
drop                                                          gone ADDRESS     between NameServers
channelActive       connected             connected           conn HOST        the host that connected to a NameServer
channelInactive     CLOSE                 CLOSE               disc HOST; brokers and clients: lost ADDRESS
new topic           topic created                             topic NAME
                    new consumer …        started             client ID
                    channelActive         connected           conn HOST>ADDRESS
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...chaos.oracle.intervals import grouped
from .book import CLIENT_ID, Book, broker_identity, route_of
from .clocks import ANY, AT, HEARD, TOLD, Mark
from .signs import is_near
from .sources import BROKER, CLIENT, NAME_SERVER, Source

_CHANNELS = {"channel_active": "conn", "channel_inactive": "disc", "connected": "conn", "closed": "disc"}
"""Event to the word of its mark's key, at either end."""
ENDS_OF = ("conn ", "disc ")
_HELD, _AT_ONCE_MS = 4, 1_500.0
"""Number of connections of one client, or of their ends, in one moment that had been kept back."""
_RECURS_MS = 45_000.0
"""A registration this long after the last one is not a tick of the timer."""
_APART = 0.3
"""Weight of a mark between two NameServers, each of which may have learnt of another event."""
_BOOT_MS = 60_000.0
_BROUGHT_MS = 1_500.0
"""Topics this near to a broker's first registration came with it and were not created then."""


def marks_of(source: Source, book: Book) -> list[Mark]:
    """Return the events of one log that another log can have, too. Times are the log's time stamps, read as UTC."""
    found = _of_name_server(source) if source.kind == NAME_SERVER else _of_dialler(source, book)
    return list(found) if source.kind == CLIENT else _without_held(list(found))


def _without_held(marks: Sequence[Mark]) -> list[Mark]:
    """Remove connections that a server logged in one burst: the server had hung, so the connections are older."""
    ends = sorted((mark.at_ms, mark.key) for mark in marks if mark.key.startswith(ENDS_OF))
    times = grouped((key, at_ms) for at_ms, key in ends)

    def are_near(mark: Mark) -> int:
        of = times[mark.key]
        return bisect_right(of, mark.at_ms + _AT_ONCE_MS) - bisect_left(of, mark.at_ms - _AT_ONCE_MS)

    return [mark for mark in marks if mark.key not in times or are_near(mark) < _HELD]


def known_hosts(marks: Sequence[list[Mark]], sources: Sequence[Source]) -> list[list[Mark]]:
    """Remove connections of hosts without a log, such as probes and tools."""
    hosts = {
        _host_in(mark.key)
        for source, found in zip(sources, marks, strict=True)
        if source.kind != NAME_SERVER
        for mark in found
        if mark.key.startswith(ENDS_OF) and (AT in mark.key or source.kind == CLIENT)
    }
    return [
        [mark for mark in found if not mark.key.startswith(ENDS_OF) or _host_in(mark.key) in hosts] for found in marks
    ]


def _host_in(key: str) -> str:
    return key.partition(" ")[2].partition(AT)[0].partition(">")[0]


def host_of(address: str) -> str:
    return address.lstrip("/").rpartition(":")[0]


def client_id(source: Source) -> str | None:
    if source.client is not None:
        return source.client
    for line in source.lines:
        if line.event in ("client_created", "client_started") and line.fields.get("client"):
            return line.fields["client"]
    return next((line.fields["client"] for line in source.lines if line.fields.get("client")), None)


def _of_name_server(source: Source) -> Iterator[Mark]:
    last: dict[str, float] = {}
    firsts: list[float] = []
    topics: list[Mark] = []
    for line in source.lines:
        fields, at_ms = line.fields, line.middle_ms
        match line.event:
            case "master_address" | "broker_registered":
                address = fields["address"]
                before = last.get(address)
                is_first = before is None and (line.event == "broker_registered" or fields.get("old") == "null")
                if before is None or at_ms - before >= 1_500:
                    yield from _here(f"reg {address}", at_ms, 1.0)
                if is_first or (before is not None and at_ms - before > _RECURS_MS):
                    yield from _here(f"first {address}", at_ms, 5.0)
                    if is_first:  # a gap of registrations that it bore changed no route
                        yield Mark(f"{TOLD}+{address}", at_ms)
                    firsts.append(at_ms)
                last[address] = at_ms
            case "live_removed":
                yield from _here(f"unreg {fields['address']}", at_ms, 3.0)
            case "address_removed" if fields.get("result") != "Failed":
                yield Mark(f"gone {fields['address']}", at_ms, 2.0)
                yield Mark(f"{TOLD}-{fields['address']}", at_ms)
                last.pop(fields["address"], None)
            case "channel_active" | "channel_inactive":
                yield from _here(
                    f"{_CHANNELS[line.event]} {host_of(fields['address'])}", at_ms, _weight(fields["address"])
                )
            case "topic_registered":
                topics.append(Mark(f"topic {fields['topic']}", at_ms, 2.0))
            case "write_perm_wiped" | "write_perm_added":
                yield Mark(f"{line.event} {fields['broker']}", at_ms, 3.0)
    # those that a broker brought with it are written before it is, or after
    yield from (mark for mark in topics if not is_near(firsts, mark.at_ms, _BROUGHT_MS))


def _here(key: str, at_ms: float, weight: float) -> Iterator[Mark]:
    """Return the mark at this NameServer, whose address is not known yet, and the mark as other NameServers log it."""
    yield Mark(f"{key}{AT}{ANY}", at_ms, weight)
    yield Mark(key, at_ms, _APART * weight)


def _followed(fields: Mapping[str, str], at_ms: float) -> Iterator[Mark]:
    """Yield brokers that a client's new route lacks or has again; a NameServer logged this up to a poll before."""
    old, new = (route_of(fields.get(which) or "") or {} for which in ("old", "new"))
    before, after = _addresses(old), _addresses(new)
    if before:
        yield from (Mark(f"{HEARD}-{address}", at_ms) for address in sorted(before - after))
        yield from (Mark(f"{HEARD}+{address}", at_ms) for address in sorted(after - before))


def _addresses(route: Mapping[str, Any]) -> set[str]:
    return {address for ids in route.get("brokers", {}).values() for address in ids.values()}


def _weight(address: str) -> float:
    return 0.2 if host_of(address).startswith("127.") else 3.0


def _of_dialler(source: Source, book: Book) -> Iterator[Mark]:
    identity = broker_identity(source, book) if source.kind == BROKER else None
    own = identity[2] if identity is not None else None
    client = client_id(source) if source.kind != BROKER else None
    host = host_of(own) if own else client.partition("@")[0] if client and "@" in client else source.name
    last: dict[str, float] = {}
    lost: dict[str, float] = {}
    dialled: dict[str, float] = {}
    known_ms = source.lines[0].middle_ms if source.lines else 0.0
    """Since when there would be a registration in the log, if there was one before."""
    boots = {line.middle_ms for line in source.lines if line.event in ("broker_boot", "setting")}
    for line in source.lines:
        fields, at_ms = line.fields, line.middle_ms
        match line.event:
            case "registered":
                before = last.get(fields["name_server"])
                yield Mark(f"reg {own}{AT}{fields['name_server']}", at_ms, 1.0)
                begins = before is None and any(abs(at_ms - boot) < _BOOT_MS for boot in boots)
                if begins or at_ms - (known_ms if before is None else before) > _RECURS_MS:
                    yield Mark(f"first {own}{AT}{fields['name_server']}", at_ms, 5.0)
                last[fields["name_server"]] = at_ms
            case "unregistered":
                yield Mark(f"unreg {own}{AT}{fields['name_server']}", at_ms, 3.0)
            case "topic_created":
                name = re.search(r"topicName=([^,\]]+)", fields.get("config", ""))
                if name is not None:
                    yield Mark(f"topic {name[1]}", at_ms, 2.0)
            case "producer_connected" | "consumer_connected":
                known = CLIENT_ID.search(fields.get("channel", ""))
                if known is not None:
                    yield Mark(f"client {known[1]}>{own}", at_ms, 1.0)
            case "channel_active" | "channel_inactive" if own:
                key = f"{_CHANNELS[line.event]} {host_of(fields['address'])}>{own}"
                yield Mark(key, at_ms, _weight(fields["address"]))
            case "connected" | "connecting":
                address = fields["address"]
                before_ms = dialled.get(address, -1e18)
                if line.event == "connecting":
                    dialled[address] = at_ms
                if line.event == "connected" or at_ms - before_ms > _RECURS_MS:  # not each try of many in vain
                    yield Mark(f"conn {host}{'>' if address in book.names else AT}{address}", at_ms, 3.0)
            case "closed":
                address = fields.get("address", "")
                is_broker, is_new = address in book.names, at_ms - lost.get(address, -1e18) > _RECURS_MS
                lost[address] = at_ms
                if is_new:
                    yield Mark(f"lost {address}", at_ms, 0.5)
                if is_new and is_broker:
                    yield Mark(f"gone {address}", at_ms, 2.0)
                if is_new or not is_broker:
                    yield Mark(f"disc {host}{'>' if is_broker else AT}{address}", at_ms, 3.0)
            case "heartbeat":
                if client and fields.get("address") and fields.get("result") == "success":
                    yield Mark(f"client {client}>{fields['address']}", at_ms, 1.0)
            case "route_changed":
                yield from _followed(fields, at_ms)
