"""Finds what people did by hand, as log lines state: a write permission wiped, a foreign broker registered under a
broker's name, a topic deleted, a list of NameServers changed or incomplete. Pure: no I/O.

Effects of an action by hand are not used as signs of a fault. For example, a NameServer that was removed from the list
loses its brokers.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any

from ...chaos.oracle.intervals import grouped
from ...chaos.topology import broker_node
from ...chaos.verdict import seconds
from ..logs_to_rows.signs import (
    CLOSES,
    Edge,
    Kind,
    Row,
    Seen,
    Sign,
    bundles,
    is_inferred,
    is_near,
    is_registration,
    value_of,
)
from .conclusions import role_changes
from .standing import standing_in
from .telling import GAINED, LIKELY_SCORE, Episode, Hypothesis, act, doubted, named_in

TOGETHER_MS = 10_000.0
"""Lines of several servers within this time belong to one act."""
LIST_PERIOD_MS = 120_000.0
"""Period of fetchNameServerAddr at brokers and clients."""
SAID_MS = 2_500.0
TWICE = 2
ROUTES_MS = 180_000.0
"""How long clients may use a stranger's route after the stranger is gone."""
REPLACED_MS = 125_000.0
_REPLACED = frozenset({Kind.CLOSED_BY_PEER_SEEN, Kind.SILENCE, Kind.MISSED})
_LEFT_ALONE = frozenset({Kind.SILENCE, *CLOSES})


def acts_in(seen: Seen) -> tuple[list[Episode], dict[Sign, float]]:
    """Return the actions by hand as episodes, and the signs that these actions explain."""
    taken: dict[Sign, float] = {}
    found = [
        *standing_in(seen, taken),
        *_permissions(seen),
        *_strangers(seen, taken),
        *_roles(seen),
        *_topics(seen),
        *_lists(seen, taken),
    ]
    for episode in found:
        _doubt(seen, episode.hypotheses[0])
    if not any(one.hypotheses[0].fault == "name_server_list" for one in found):
        found += [*_parts_of_the_list(seen), *_own_lists(seen)]
    return found, taken


def _doubt(seen: Seen, one: Hypothesis) -> None:
    """Return why an act is not certain. The clock of its log is unsure, or (for lists) the owner of the log is, or a
    NameServer's log is missing."""
    worth = dict.fromkeys(one.observers, GAINED)
    named = {node for entry in one.timeline for node in entry.get("nodes") or ()}
    if named and named <= {*seen.name_servers} and not all(map(seen.is_written, seen.name_servers)):
        worth = dict.fromkeys(one.observers, 0.0)
    certainty = doubted(seen, one.certainty, worth, named_in(one.timeline) - one.observers)
    if certainty != one.certainty:
        one.certainty, one.score = certainty, min(one.score, LIKELY_SCORE)


def _bundles(rows: Iterable[Row]) -> list[list[Row]]:
    return bundles(rows, itemgetter("time_ms"), TOGETHER_MS)


def _nodes(rows: Iterable[Row]) -> list[str]:
    return sorted({str(row["node"]) for row in rows})


def _at_s(rows: Sequence[Row]) -> float:
    return round(float(min(row["time_ms"] for row in rows)) / 1000, 3)


def _entry(rows: Sequence[Row], do: str, **about: Any) -> dict[str, Any]:
    return {"at_s": _at_s(rows), "do": do, "nodes": _nodes(rows), **about}


def _where(rows: Sequence[Row]) -> str:
    return f"at {', '.join(_nodes(rows))} at {_at_s(rows):.1f} s"


def _permissions(seen: Seen) -> Iterator[Episode]:
    rows = (row for row in seen.rows if row["event"] == "write_perm" and row.get("broker_name"))
    for broker, told in grouped((str(row["broker_name"]), row) for row in rows).items():
        wiped = _bundles(row for row in told if "wiped" in value_of(row))
        added = _bundles(row for row in told if "wiped" not in value_of(row))
        for bundle in wiped:
            back = next((some for some in added if some[0]["time_ms"] >= bundle[0]["time_ms"]), [])
            timeline = [_entry(bundle, "wipe_write_perm", broker=broker)]
            sentence, to_ms = f"the write permission of {broker} was wiped {_where(bundle)}", None
            if back:
                added.remove(back)
                timeline.append(_entry(back, "add_write_perm", broker=broker))
                sentence, to_ms = f"{sentence}, and added again at {_at_s(back):.1f} s", float(back[0]["time_ms"])
            yield act("wipe_write_perm", sentence, timeline, [*bundle, *back], to_ms=to_ms)
        for bundle in added:
            sentence = f"the write permission of {broker} was added {_where(bundle)}"
            yield act("add_write_perm", sentence, [_entry(bundle, "add_write_perm", broker=broker)], bundle)


def _strangers(seen: Seen, taken: dict[Sign, float]) -> Iterator[Episode]:
    """Yield registrations under a broker's name and id from another address."""
    own = {node: address for address, node in reversed([*seen.addresses.items()])}
    own |= _first_registered(seen)
    foreign: dict[tuple[str, str], list[Row]] = defaultdict(list)
    last_own: dict[str, float] = {}
    told: dict[tuple[str, str], list[Row]] = defaultdict(list)
    """Broker and address to what NameServers' logs say of its registrations."""
    for row in seen.rows:
        if not is_registration(row):
            continue
        broker, address = broker_node(row["broker_name"], row.get("broker_id")), str(row.get("address"))
        if not is_inferred(row):
            told[broker, address].append(row)
        # a broker's own log says with whom it registers, and not as what
        if is_inferred(row) or (seen.addresses.get(address, broker) == broker and address == own.get(broker, address)):
            last_own[broker] = float(row["time_ms"])
        else:
            foreign[broker, address].append(row)
    for (broker, address), rows in foreign.items():
        times = sorted(float(row["time_ms"]) for row in rows)
        gaps = sorted(b - a for a, b in pairwise(times) if b - a > SAID_MS)
        every_ms = gaps[len(gaps) // 2] if gaps else None
        from_ms, to_ms = times[0], times[-1]
        was = seen.addresses.get(address, "")
        if was != broker and was.partition("/")[0] == broker.partition("/")[0]:
            continue  # another broker of the name: its role changed
        there = told.get((broker, own.get(broker, "")), ())
        if (moved := _moved(seen, broker, told[broker, address], there)) is not None:
            yield moved
            continue
        still = last_own.get(broker, 0.0) > from_ms + seen.timers.R_ms or broker not in own
        name, _, id_ = broker.partition("/")
        about: dict[str, Any] = {"broker": name, "address": address} | ({"broker_id": int(id_)} if id_ else {})
        timeline = [_entry(rows, "register", **about)]
        if every_ms is not None:
            timeline[0]["every_s"] = round(every_ms / 1000)
        ended, gone = None, []
        for edge, signs in seen.by_edge.items():
            if edge.peer == broker and edge.dialler in seen.clients:  # whose routes name the stranger
                taken.update(
                    {s: 5.0 for s in signs if from_ms <= s.at_ms <= to_ms + ROUTES_MS and s.kind in _LEFT_ALONE}
                )
        for node in _nodes(rows):
            for sign in seen.by_edge.get(Edge(broker, node), ()):
                within = to_ms - SAID_MS <= sign.at_ms <= to_ms + (every_ms or 0.0) + 2 * SAID_MS
                if sign.kind is Kind.LEFT and within:
                    gone.append(sign)
                    taken[sign] = 7.0
                elif sign.kind in _REPLACED and from_ms <= sign.at_ms <= to_ms + REPLACED_MS:
                    taken[sign] = 5.0  # 4.9 takes whoever has the id, whatever its address
        if gone:
            ended = min(sign.at_ms for sign in gone)
            nodes = sorted({sign.edge.peer for sign in gone})
            timeline.append({"at_s": round(ended / 1000, 3), "do": "unregister", "nodes": nodes, **about})
        if still:
            sentence = f"{address} registered as {broker} too, at {', '.join(_nodes(rows))} from {_at_s(rows):.1f} s on"
            certainty = "certain"
        else:
            sentence = f"{broker} registers from {address} since {_at_s(rows):.1f} s, and from its old address no more"
            certainty = "likely"
        yield act("register", sentence, timeline, rows, from_ms=from_ms, to_ms=ended, certainty=certainty)


def _moved(seen: Seen, broker: str, ours: Sequence[Row], theirs: Sequence[Row]) -> Episode | None:
    """Return a life at one address followed by a life at the other, if the broker moved. `ours` and `theirs` are the
    rows of its registrations at the two addresses.

    The result is None if the two lives overlap, or if nothing ended the first life. The episode is certain if
    NameServers lost the first address, and the broker's own log has the start of the second life.
    """
    if not ours or not theirs:
        return None
    old, new = sorted((ours, theirs), key=lambda rows: float(rows[0]["time_ms"]))
    ended_ms, began_ms = float(old[-1]["time_ms"]), float(new[0]["time_ms"])
    if ended_ms >= began_ms:
        return None
    was, is_ = str(old[0].get("address")), str(new[0].get("address"))
    later = [row for row in seen.rows if row["time_ms"] >= ended_ms]
    lost = [row for row in later if row["event"] == "broker_dropped" and row.get("address") == was]
    until_ms = began_ms + seen.timers.R_ms
    boots = [row for row in later if row["event"] == "started" and row["node"] == broker and row["time_ms"] <= until_ms]
    if not (lost or boots):
        return None
    return act(
        "address_changed",
        f"{broker} came back at another address: {was} until {seconds(ended_ms)}, {is_} from {seconds(began_ms)} "
        "on, one life after the other",
        [],
        [old[-1], *lost[:2], *boots[:1], new[0]],
        from_ms=began_ms,
        certainty="certain" if lost and boots else "likely",
    )


def _first_registered(seen: Seen) -> dict[str, str]:
    """Return for each broker with several addresses the address that NameServers had first. The other addresses are
    additional ones."""
    rows = (row for row in seen.rows if is_registration(row) and not is_inferred(row))
    at = [str(row.get("address")) for row in rows]
    return {node: address for address in reversed(at) if (node := seen.addresses.get(address)) is not None}


def _roles(seen: Seen) -> Iterator[Episode]:
    """Yield brokers that became master or slave: by hand, by a controller or by an election."""
    for one in role_changes(seen):
        entry = {"at_s": _at_s(one.rows), "do": "switch", "nodes": [one.node]}
        timeline = [] if one.term or not one.is_master else [entry]
        yield act("switch", one.sentence, timeline, one.rows, from_ms=one.at_ms, certainty="likely")


def _topics(seen: Seen) -> Iterator[Episode]:
    drops = sorted(float(row["time_ms"]) for row in seen.rows if row["event"] == "broker_dropped")
    servers, brokers = set(seen.name_servers), set(seen.brokers)
    gone: dict[str, list[Row]] = defaultdict(list)
    changed: dict[tuple[str, str], list[Row]] = defaultdict(list)
    has: dict[tuple[str, str], Any] = {}
    for row in seen.rows:
        node, topic = str(row["node"]), str(row.get("topic"))
        if is_inferred(row):
            continue
        if row["event"] == "route" and node in servers and topic not in brokers and _is_nothing(row):
            if not is_near(drops, row["time_ms"], SAID_MS):  # with its last broker a topic goes by itself
                gone[topic].append(row)
        elif row["event"] == "topic" and node in brokers:
            before = has.get((node, topic))
            if _is_nothing(row):
                gone[topic].append(row)
                has.pop((node, topic), None)
                continue
            now = {key: value_of(row).get(key) for key in ("read", "write", "perm")}
            if before is not None and before != now:
                changed[topic, str(sorted(now.items()))].append(row)
            has[node, topic] = now
    for topic, rows in gone.items():
        for bundle in _bundles(rows):
            sentence = f"topic {topic} was deleted {_where(bundle)}"
            certainty = "certain" if all(row["event"] == "topic" for row in bundle) else "likely"
            entry = _entry(bundle, "delete_topic", topic=topic)
            yield act("delete_topic", sentence, [entry], bundle, certainty=certainty)
    for (topic, _), rows in changed.items():
        for bundle in _bundles(rows):
            is_ = value_of(bundle[0])
            about = {"read_queues": is_.get("read"), "write_queues": is_.get("write"), "perm": is_.get("perm")}
            entry = _entry(bundle, "update_topic", topic=topic, **about)
            yield act("update_topic", f"topic {topic} was changed {_where(bundle)}", [entry], bundle)


def _is_nothing(row: Row) -> bool:
    value = row.get("value")
    return value is None or (isinstance(value, Mapping) and not ({*value} - {"learnt", "file", "line"}))


def _list_of(row: Row) -> list[str]:
    value = row.get("value")
    if isinstance(value, Mapping):
        value = value.get("list", value.get("new"))
    return [str(entry) for entry in value] if isinstance(value, list | tuple) else []


def _lists(seen: Seen, taken: dict[Sign, float]) -> Iterator[Episode]:
    had: dict[tuple[str, Any], frozenset[str]] = {}
    changes: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in seen.rows:
        if row["event"] != "name_server_list" or str(row["node"]) not in seen.kinds:
            continue
        now, key = frozenset(_list_of(row)), (str(row["node"]), row.get("incarnation"))
        if now and key in had and had[key] != now:
            changes[tuple(sorted(now))].append(row)
        had[key] = now or had.get(key, frozenset())
    for addresses, rows in changes.items():
        names = [seen.addresses.get(address, address) for address in addresses]
        first_ms, last_ms = float(rows[0]["time_ms"]), float(rows[-1]["time_ms"])
        from_ms = max(seen.first_ms, min(first_ms, last_ms - LIST_PERIOD_MS))
        at_ms = (from_ms + first_ms) / 2
        entry = {"at_s": round(at_ms / 1000, 3), "do": "name_server_list", "name_servers": names}
        when = f"between {from_ms / 1000:.1f} and {first_ms / 1000:.1f} s"
        sentence = f"the list of NameServers changed to {', '.join(names)} {when}"
        yield act("name_server_list", sentence, [entry], rows, from_ms=at_ms, bounds=(first_ms - from_ms) / 2)
        for edge, signs in seen.by_edge.items():
            if edge.peer in seen.name_servers and edge.peer not in names:
                taken.update({sign: 5.0 for sign in signs if sign.at_ms >= from_ms})


def _parts_of_the_list(seen: Seen) -> Iterator[Episode]:
    """Yield brokers whose own log never mentions a NameServer with which others register."""
    used: dict[str, set[str]] = defaultdict(set)
    brokers, servers = {*seen.brokers}, {*seen.name_servers}
    for edge in seen.by_edge:
        if edge.dialler in brokers and edge.peer in servers:
            used[edge.dialler].add(edge.peer)
    everybody = set().union(*used.values())
    for broker, its in sorted(used.items()):
        lacks = sorted(everybody - its)
        if not lacks or not seen.is_written(broker):
            continue
        first_ms = seen.own[broker][0]
        attempts = sum(sign.observer == broker for server in its for sign in seen.by_edge[Edge(broker, server)])
        if attempts < TWICE or all(_ends_before(seen, server, first_ms) for server in lacks):
            continue
        only = ", ".join(sorted(its))
        sentence = f"{broker} never registered with {', '.join(lacks)}, nor tried to: its list has {only} alone"
        row = {"time_ms": first_ms, "node": broker, "event": "register", "broker_name": broker}
        nodes = {broker: {"name_servers": sorted(its)}}
        yield act("part_of_the_list", sentence, [], [row], certainty="likely", nodes=nodes)


def _own_lists(seen: Seen) -> Iterator[Episode]:
    """Yield clients whose log has another list than all others. A list with host names, or without any known
    NameServer, is not judged."""
    clients, servers = {*seen.clients}, {*seen.name_servers}
    first: dict[str, Row] = {}
    lists: dict[str, frozenset[str]] = {}
    for row in seen.rows:
        node = str(row["node"])
        if row["event"] == "name_server_list" and node in clients and node not in first and _list_of(row):
            first[node] = row
            lists[node] = frozenset(seen.addresses.get(entry, entry) for entry in _list_of(row))
    for node, own in sorted(lists.items()):
        others = {listed for other, listed in lists.items() if other != node}
        if len(lists) <= TWICE or len(others) != 1 or own in others or not own & servers:
            continue
        (usual,) = others
        if not usual <= servers or any(_is_host_name(entry) for entry in own - servers):
            continue
        lacks, more = ", ".join(sorted(usual - own)), ", ".join(sorted(own - usual))
        differs = " and ".join(filter(None, (lacks and f"lacks {lacks}", more and f"has {more}, which no other has")))
        nodes = {node: {"name_servers": sorted(own)}}
        sentence = f"{node} has a list of NameServers of its own: it {differs}"
        yield act("own_list", sentence, [], [first[node]], certainty="likely", nodes=nodes)


def _is_host_name(entry: str) -> bool:
    return any(letter.isalpha() for letter in entry.rpartition(":")[0])


def _ends_before(seen: Seen, server: str, at_ms: float) -> bool:
    seen_at = [sign.at_ms for edge, signs in seen.by_edge.items() if edge.peer == server for sign in signs]
    return max(seen_at, default=0.0) < at_ms
