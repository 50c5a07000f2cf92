"""A recorded run as a folder of logs in Apache's shapes, and what is true of them.

    run folder ─► sources_of ─► Source(node, file, writer, entries) ─► written(folder, sources, clocks) ─► files
                                                        each stamp = true time + the source's offset, in its zone

Servers and 5.x clients write GMT+8, 4.9 clients and hosts of slf4j their machine's zone.
"""

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from nemesrv.chaos.history.rows import read_rows

from .client_lines import client_log
from .entries import Cluster, Entry, number_of
from .server_lines import broker_logs, console, name_server_log

SERVERS_ZONE_H = 8.0


@dataclass(frozen=True, slots=True)
class Source:
    """One log of one node."""

    node: str
    file: str
    """Where it stands in the folder: ns-0/namesrv.log."""
    writer: str
    """server, console, client-4.9, client-5.x or slf4j."""
    entries: Sequence[Entry] = field(repr=False)


@dataclass(frozen=True, slots=True)
class HostClock:
    """How far a node's clock is ahead of the truth, and in which zone its machine is."""

    offset_ms: float = 0.0
    zone_h: float = 0.0
    servers_zone_h: float = SERVERS_ZONE_H


def sources_of(run: Path, *, slf4j: Iterable[str] = ()) -> tuple[Cluster, list[Source]]:
    """Every log of the run, the clients `slf4j` inside a program with a layout of its own."""
    of = Cluster(run, read_rows(run))
    sources = [
        Source(node, f"{node}/namesrv.log", "server", name_server_log(of, node)) for node in of.nodes("name_server")
    ]
    for node in of.nodes("broker"):
        folder = node.replace("/", "-")
        sources += [Source(node, f"{folder}/{file}", "server", log) for file, log in broker_logs(of, node).items()]
        sources.append(Source(node, f"{folder}/nohup.out", "console", console(of, node)))
    for node in of.nodes("producer", "consumer"):
        hosted = node in set(slf4j)
        writer = "slf4j" if hosted else "client-5.x" if of.is_5 else "client-4.9"
        file = "application.log" if hosted else "rocketmq_client.log"
        sources.append(Source(node, f"{node}/{file}", writer, client_log(of, node)))
    return of, [source for source in sources if source.entries]


def lines_of(source: Source, origin_wall_ms: float, clock: HostClock) -> Iterator[str]:
    """The lines of the source's file, as a host with this clock writes them."""
    of_servers = source.writer in ("server", "client-5.x")
    zone = timedelta(hours=clock.servers_zone_h if of_servers else clock.zone_h)
    layout = _LAYOUTS[source.writer]
    for entry in source.entries:
        wall_ms = origin_wall_ms + entry.at_ms + clock.offset_ms
        at = datetime.fromtimestamp(int(wall_ms // 1000), UTC) + zone
        yield from layout(entry, at, int(wall_ms % 1000)).split("\n")


_CLASSES = {
    "RocketmqRemoting": "o.a.r.r.n.N#invokeSync:565",
    "RocketmqClient": "o.a.r.c.i.f.M#updateTopicRoute:760",
    "RocketmqCommon": "o.a.r.c.S#start:61",
}


def _client_5(entry: Entry, at: datetime, ms: int) -> str:
    where = _CLASSES[entry.logger]
    return f"{at:%Y-%m-%d %H:%M:%S}.{ms:03d} {entry.level:<5} [4711] [{entry.thread}] [{where}] - {entry.text}"


_LAYOUTS = {
    "console": lambda entry, at, ms: entry.text,
    "server": lambda entry, at, ms: f"{at:%Y-%m-%d %H:%M:%S} {entry.level} {entry.thread} - {entry.text}",
    "client-4.9": lambda entry, at, ms: f"{at:%Y-%m-%d %H:%M:%S},{ms:03d} {entry.level} {entry.logger} - {entry.text}",
    "client-5.x": _client_5,
    "slf4j": lambda entry, at, ms: (
        f"[{at:%Y-%m-%dT%H:%M:%S},{ms:03d}][{entry.level:<5}][{entry.logger:<25}] {entry.text}"
    ),
}


def written(
    folder: Path, of: Cluster, sources: Iterable[Source], clocks: Mapping[str, HostClock] | None = None
) -> dict[str, Source]:
    """Writes each log below `folder`; file to source."""
    found = {}
    for source in sources:
        path = folder / source.file
        path.parent.mkdir(parents=True, exist_ok=True)
        clock = (clocks or {}).get(source.node, HostClock())
        path.write_text("".join(f"{line}\n" for line in lines_of(source, of.origin_wall_ms, clock)))
        found[source.file] = source
    return found


def rolled(path: Path, parts: int) -> list[Path]:
    """The file as its writer rolls it: all but the newest part are in otherdays/NAME.I.log.gz, 1 the newest of them."""
    lines = path.read_text().splitlines(keepends=True)
    cuts = [len(lines) * part // parts for part in range(parts + 1)]
    path.write_text("".join(lines[cuts[-2] :]))
    found = [path]
    for number, (begin, end) in enumerate(reversed(list(pairwise(cuts[:-1]))), 1):
        older = path.parent / "otherdays" / f"{path.stem}.{number}.log.gz"
        older.parent.mkdir(exist_ok=True)
        older.write_bytes(gzip.compress("".join(lines[begin:end]).encode(), mtime=number_of(path.name)))
        found.append(older)
    return found
