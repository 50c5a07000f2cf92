"""Reconstructs an incident from log lines: which process wrote which log, clocks, topology, timers, history rows,
events in order. No Spark.

gather(spark, places) ─► reconstruct ─► Reconstructed ─► episodes_of (faults) ─► incident.json
"""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta, timezone
from typing import Any

from ...chaos.history.schema import Row
from ...chaos.logs.stream import FileRead
from ...chaos.oracle.timers import Timers
from ...chaos.settings.setting import CONTROLLER, DLEDGER
from ...chaos.topology import broker_node
from ...remoting.topics import is_own
from .align import aligned, refuse_unknown
from .book import Book, book_of
from .clusters import one_cluster
from .dialler_log import DiallerLog, ident
from .line import Line, zone_text
from .name_server_log import NameServerLog
from .naming import GUESS, Nodes, first_names, kind_of_client, nodes_of
from .settings_said import timers_of
from .sources import BROKER, CLIENT, ELECTOR, NAME_SERVER, Source, sources_of
from .timeline import timeline_of, wall_text
from .versions import version_of
from .writing import Rows, lag_rows

ACTING_MASTER = "enableSlaveActingMaster"
MOST_TOPICS, _MANY_TOPICS = 400, 20_000
"""Of how many topics routes are written for each NameServer, if there are more than the second of all, and if not."""
AS_LOGGED = "as logged"
"""The nodes' implementation: not ours, so that rules for ours only do not apply."""
_FAR_MS = 1_000.0 * 60 * 60 * 24 * 30
_JOINS_MS = 1_500.0


@dataclass(slots=True)
class Reconstructed:
    """An incident read from logs, without inferred faults."""

    rows: list[Row]
    found: list[Source]
    nodes: Nodes
    book: Book
    timers_used: Timers
    timers: dict[str, Any]
    timeline: list[dict[str, Any]]
    origin_ms: float
    """UTC of the history's 0."""
    zone: timezone
    """The zone in which most of the logs are stamped; times are shown in it."""
    notes: list[str] = field(default_factory=list)
    apart: list[str] = field(default_factory=list)
    """The notes about logs of another cluster, which are left out."""
    left_out: frozenset[str] = frozenset()
    """The files of these logs."""

    def source_of(self, file: str) -> Source | None:
        return next((source for source in self.found if file in source.files), None)

    def wall_ms(self, file: str, stamp_ms: float) -> float:
        """Return when a line of the file was written, in UTC. The clock of a file that is no source's counts as right,
        in the zone of most of the logs."""
        source = self.source_of(file)
        if source is None:
            return stamp_ms - (self.zone.utcoffset(None) or timedelta()) / timedelta(milliseconds=1)
        return stamp_ms - source.zone_ms - source.offset_ms

    @property
    def sources(self) -> list[dict[str, Any]]:
        return [_source(one) for one in self.found]

    @property
    def topology(self) -> dict[str, Any]:
        clusters: dict[str, list[str]] = defaultdict(list)
        brokers: dict[str, dict[str, list[str]]] = defaultdict(dict)
        for node, addresses in self.nodes.brokers.items():
            name, _, id_ = node.partition("/")
            brokers[name][id_ or "0"] = addresses
            said = self.book.clusters.get(name)
            clusters[said.most_common(1)[0][0] if said else "unknown"].append(node)
        return {
            "clusters": {cluster: sorted(nodes) for cluster, nodes in sorted(clusters.items())},
            "name_servers": self.nodes.name_servers,
            "name_servers_by": self.nodes.sure,
            "brokers": dict(sorted(brokers.items())),
            "clients": {node: _client(self, node, source) for node, source in sorted(self.nodes.clients.items())},
        }

    def to_json(self) -> dict[str, Any]:
        """Return incident.json without `episodes` and `not_seen`."""
        return {
            "format": 1,
            "origin": wall_text(self.origin_ms, self.zone),
            "sources": self.sources,
            "topology": self.topology,
            "timers": self.timers,
            "timeline": self.timeline,
            "notes": self.notes,
        }


def zone_of(sources: Iterable[Source]) -> timezone:
    """Return the time zone of most of these logs. If two zones are equally frequent, the zone that is less ahead of UTC
    is returned."""
    counted = Counter(source.zone_ms for source in sources) or {0: 0}
    return timezone(timedelta(milliseconds=max(counted, key=lambda zone_ms: (counted[zone_ms], -zone_ms))))


def reconstruct(
    lines: Iterable[Line],
    files: Sequence[FileRead] = (),
    *,
    zones: Mapping[str, int] | None = None,
    offsets: Mapping[str, float] | None = None,
    name: str = "imported",
) -> Reconstructed:
    """Reconstruct the incident. `zones` has time zones in ms ahead of UTC, and `offsets` clock offsets in ms. A key is
    a node, a file, a folder, or `*` for all logs."""
    every = sources_of(lines, files)
    read = [source for source in every if source.lines]
    sources, apart = one_cluster([source for source in read if source.kind != ELECTOR])
    used = {file for source in sources for file in source.files}
    left_out = frozenset(file for source in read if source.kind != ELECTOR for file in source.files) - used
    book = book_of(sources)
    first_names(sources, book)
    for option, given in (("--zone", zones), ("--offset", offsets)):
        refuse_unknown(option, given or {}, every)
    notes = [*apart, *aligned(sources, book, zones, offsets)]
    zone = zone_of(sources)
    notes += [_controller(source, zone) for source in read if source.kind == ELECTOR]
    sources, nowhere = _in_time(sources)
    notes += nowhere
    nodes = nodes_of(sources, book)
    timers, timers_said = timers_of(sources)
    rows = Rows()
    most_topics = MOST_TOPICS if sum(map(len, book.topics.values())) > _MANY_TOPICS else _MANY_TOPICS
    for source in sources:
        if source.kind == NAME_SERVER:
            NameServerLog(source, book, rows, most_topics).read()
        else:
            address = _first(nodes, source.name) if source.kind == BROKER else None
            DiallerLog(source, nodes.roles.get(source.name, "producer"), book, rows, address).read()
    notes += _unread_clients(rows, nodes)
    _heard(rows, nodes, {one.name for one in sources if any(line.event == "master_address" for line in one.lines)})
    stamps = [row["time_ms"] for row in rows.made] or [0.0]
    origin, last = math.floor(min(stamps) / 1000) * 1000.0, max(stamps)
    for source in sources:
        lag_rows(rows, source, nodes.roles.get(source.name, "producer"), last)
    made = _framed(rows, nodes, sources, timers, name, origin, last)
    history = made.on_axis(origin)
    bounds = {source.name: 500.0 + source.bound_ms * (source.offset_ms != 0) for source in sources}
    return Reconstructed(
        rows=history,
        found=sources,
        nodes=nodes,
        book=book,
        timers_used=timers,
        timers=timers_said,
        timeline=timeline_of(history, nodes.of_address, origin, bounds, zone),
        origin_ms=origin,
        zone=zone,
        notes=notes,
        apart=apart,
        left_out=left_out,
    )


_TOLD = 4
_CONTROLLERS = {
    "controller_led": "it began to lead",
    "controller_followed": "it led no more, or another did",
    "controller_lost": "it gave up {broker}",
    "controller_elected": "it elected a master of {broker}",
}


def _controller(source: Source, zone: timezone) -> str:
    """A sentence about a controller's log, which makes no rows."""
    told = [line for line in source.lines if line.event in _CONTROLLERS]
    walls = (wall_text(line.middle_ms - (line.zone_ms or 0), zone) for line in told)
    said = [
        f"{wall[11:19]} {_CONTROLLERS[line.event].format_map(line.fields)} ({line.file}:{line.line})"
        for wall, line in zip(walls, told[:_TOLD], strict=False)
    ]
    more = f" and {len(told) - _TOLD:,} more" if len(told) > _TOLD else ""
    return (
        f"{', '.join(source.files)} is a controller's, {source.about.understood:,} of {source.about.lines:,} lines "
        f"understood, and no part of the history: {'; '.join(said) or 'it tells of no election'}{more}"
    )


def _in_time(sources: Sequence[Source]) -> tuple[list[Source], list[str]]:
    """Sources whose lines belong to one incident by their clocks, and a sentence for each other one."""
    sure = [source for source in sources if source.certainty != "unsure"] or list(sources)
    middle = statistics.median(source.wall_ms(source.lines[0]) for source in sure) if sure else 0.0
    kept = [source for source in sources if abs(source.wall_ms(source.lines[0]) - middle) < _FAR_MS]
    said = [
        f"{source.name} is left out: its first line is of {wall_text(source.wall_ms(source.lines[0]))[:10]}, and "
        f"nothing says by how much its clock was wrong; say --offset {source.name}=…"
        for source in sources
        if source not in kept
    ]
    return kept, said


def _heard(rows: Rows, nodes: Nodes, tells_all: Collection[str]) -> None:
    """Add registrations by brokers' logs that the NameServer's own log lacks: 5.x logs only the first."""
    own: dict[tuple[str, str], list[float]] = defaultdict(list)
    lives: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for row in rows.made:
        if row["role"] == "name_server" and row["event"] == "started":
            lives[row["node"]].append((row["time_ms"], row["incarnation"]))
        elif row["role"] == "name_server" and row["event"] == "registration":
            broker = nodes.of_address.get(row["address"], broker_node(row["broker_name"], row["broker_id"]))
            own[row["node"], broker].append(row["time_ms"])
    more: list[Row] = []
    for row in rows.made:
        if row["event"] != "register" or row.get("type") != "ok":
            continue
        server = nodes.of_address.get(str(row.get("name_server")))
        address = next(iter(nodes.brokers.get(row["node"], ())), None)
        name, _, own_id = row["node"].partition("/")
        id_ = int((row.get("value") or {}).get("id", own_id or 0))
        if server in tells_all and not id_:
            continue  # 4.9 prints each registration of a master: what it does not, did not arrive
        if server is None or server not in lives or address is None:
            continue
        at_ms = row["time_ms"]
        if any(abs(at_ms - one) <= _JOINS_MS for one in own[server, row["node"]]):
            continue
        told: Row = {"time_ms": at_ms, "node": server, "role": "name_server", "event": "registration"}
        told["incarnation"] = max((n for since, n in lives[server] if since <= at_ms), default=0)
        told |= {"broker_name": name, "broker_id": id_, "address": address, "code": 0}
        more.append(told | {"value": {**(row.get("value") or {}), "learnt": "inferred"}})
    rows.made += more


def _framed(
    rows: Rows,
    nodes: Nodes,
    sources: Sequence[Source],
    timers: Timers,
    name: str,
    origin: float,
    last: float,
) -> Rows:
    named = {source.name: source for source in sources}
    lists = _lists(rows, nodes)
    topics = _topics_of_clients(rows)
    begin: dict[str, Any] = {
        "scenario": name,
        "seed": 0,
        "profile": timers.profile.value,
        "time_scale": 1.0,
        "timers": timers.to_json(),
        "workload": {"topic": next(iter(topics.values()), ""), "client_starts": 0},
        "topic_of": topics,
        "timeline": [],
        "availability_floor": None,
        "defect": None,
        "clock": "real",
        "origin_wall_ms": origin,
        "imported": True,
        "logs_of": sorted(named),
        "doubts": _doubts(nodes, sources),
        "nodes": {node: {"name_servers": found} for node, found in lists.items()},
    }
    if settings := _of_roles(sources):
        begin["settings"] = settings
    framed = Rows()
    framed.put(origin, "harness", "harness", "run_begin", value=begin)
    for node, role in nodes.roles.items():
        found = nodes.name_servers.get(node) or nodes.brokers.get(node) or []
        said: dict[str, Any] = {"kind": role, "learnt": "log" if node in named else "inferred"}
        if role != "harness":
            said["implementation"] = AS_LOGGED
        if len(found) > 1:
            said["addresses"] = found
        if nodes.sure.get(node, "").startswith(GUESS):
            said["address_by"] = "guess"
        framed.put(origin, "harness", "harness", "node", source=node, address=next(iter(found), None), value=said)
    framed.put(origin, "harness", "harness", "phase", phase="steady")
    for node, role in nodes.roles.items():
        if node not in named:
            framed.put(origin, node, role, "started", learnt="inferred", address=_first(nodes, node))
    framed.made += rows.made
    framed.incarnations = rows.incarnations
    framed.put(last + 1_000.0, "harness", "harness", "run_end")
    return framed


def _of_roles(sources: Sequence[Source]) -> dict[str, dict[str, bool]]:
    """Return each broker's settings that let its role change, from its log or by their effects."""
    found: dict[str, dict[str, bool]] = defaultdict(dict)
    for source in sources:
        if source.kind != BROKER:
            continue
        said = (key for key, value in source.settings.items() if value.strip().lower() == "true")
        found[source.name] |= {key: True for key in said if key in (DLEDGER, CONTROLLER, ACTING_MASTER)}
        for line in source.lines:
            if line.event == "election_told":
                found[source.name][DLEDGER] = True
            elif line.event == "role_changes" and "epoch" in line.fields:
                found[source.name][CONTROLLER] = True
    return {name: settings for name, settings in found.items() if settings}


def _doubts(nodes: Nodes, sources: Sequence[Source]) -> dict[str, list[str]]:
    """Sources with an uncertain clock, and NameServers with an uncertain address: nothing about them is `certain`."""
    many = len(sources) > 1  # of one log alone the clock is by its own right
    return {
        "clocks": sorted(one.name for one in sources if many and one.certainty == "unsure"),
        "periods": sorted(one.name for one in sources if many and not one.pinned),
        "addresses": sorted(node for node, how in nodes.sure.items() if how.startswith(GUESS)),
    }


def _first(nodes: Nodes, node: str) -> str | None:
    return next(iter(nodes.name_servers.get(node) or nodes.brokers.get(node) or ()), None)


def _lists(rows: Rows, nodes: Nodes) -> dict[str, list[str]]:
    """Return, by a client's or broker's name, its first list of NameServers, unless the list has all NameServers."""
    found: dict[str, list[str]] = {}
    for row in sorted(rows.made, key=lambda one: one["time_ms"]):
        if row["event"] == "name_server_list" and row["node"] not in found and isinstance(row["value"], list):
            entries: list[str] = row["value"]
            found[row["node"]] = [nodes.of_address.get(address, address) for address in entries]
    everybody = set(nodes.name_servers)
    return {node: entries for node, entries in found.items() if set(entries) != everybody}


def _topics_of_clients(rows: Rows) -> dict[str, str]:
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows.made:
        topic = row.get("topic")
        if row["event"] == "route_changed" and topic and not is_own(topic):
            counts[row["node"]][str(topic)] += 1
    return {node: max(sorted(of), key=lambda topic: of[topic]) for node, of in sorted(counts.items())}


def _source(source: Source) -> dict[str, Any]:
    about = source.about
    ends = [source.wall_ms(source.lines[0]), source.wall_ms(source.lines[-1])]
    return {
        "source": source.name,
        "kind": source.kind,
        "files": source.files,
        "writer": source.writer,
        **_version(source),
        "zone": zone_text(source.zone_ms),
        "zone_by": source.zone_by,
        "offset_ms": round(source.offset_ms, 1),
        "bound_ms": round(source.bound_ms, 1),
        "certainty": source.certainty,
        "why": source.why,
        "lines": about.lines,
        "understood": about.understood,
        "not_understood": about.not_understood,
        "continued": about.continued,
        "first": wall_text(ends[0]) if abs(ends[0]) < 1e14 else None,
        "last": wall_text(ends[1]) if abs(ends[1]) < 1e14 else None,
    }


def _version(source: Source) -> dict[str, Any]:
    if (found := version_of(source.lines)) is not None:
        return {"version": found.said, "version_by": f"{found.by.file}:{found.by.line}"}
    is_java_4 = source.kind != CLIENT or source.writer == "java-client-4.9"
    return {"version": "5.x" if source.is_v5 else "4.x" if is_java_4 else None, "version_by": None}


def _unread_clients(rows: Rows, nodes: Nodes) -> list[str]:
    """Return a sentence about the clients that brokers' logs name and of whose host no client's log was read."""
    read = [ident(source)["address"] for source in nodes.clients.values()]
    named = {str(row["value"]["client"]) for row in rows.made if row["event"] == "client_heartbeat"} - {"None"}
    unread = sorted({one.partition("#")[0] for one in named if one.partition("@")[0] not in read})
    if not unread or None in read:  # a log that does not say whose it is may be theirs
        return []
    who = ", ".join(unread[:_TOLD]) + (f" and {len(unread) - _TOLD} more" if len(unread) > _TOLD else "")
    return [f"what {who} suffered is not known: a broker's log names them, and their own logs are missing"]


def _client(one: Reconstructed, node: str, source: Source) -> dict[str, Any]:
    in_use: list[str] = []
    sat: list[dict[str, Any]] = []
    for row in one.rows:
        if row["node"] != node:
            continue
        if row["event"] == "name_server_list":
            in_use = [one.nodes.of_address.get(address, address) for address in row["value"]]
        elif row["event"] == "name_server_chosen":
            if sat:
                sat[-1]["to_ms"] = row["time_ms"]
            server = one.nodes.of_address.get(row["name_server"], row["name_server"])
            sat.append({"name_server": server, "from_ms": row["time_ms"], "to_ms": None})
    kind = one.nodes.roles[node] if kind_of_client(source) else "unknown"
    return {**ident(source), "kind": kind, "name_servers": in_use, "sat_on": sat}
