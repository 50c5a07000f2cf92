"""Reads the log lines from which a history is made: with Spark, or on this machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...chaos.logs.reading import Listens, are_large, read_plain, skimmed
from ...chaos.logs.stream import RELATIVE_MS, FileRead, LogRow
from .book import CLIENT_ID, HOST_PORT
from .line import UNDATED_MS, USED, Line, zone_ms_of
from .marks import host_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHANNELS = ("channel_active", "channel_inactive")
"""Connection lines, which may fill a server's log; many are of probes and tools without a log."""


class Gathered(NamedTuple):
    lines: list[Line]
    files: list[FileRead]
    notes: list[str]
    shapes: list[tuple[int, str]]
    """Patterns of lines that were not understood, commonest first."""
    listeners: Sequence[Any] = ()


def gather(
    spark: SparkSession | None,
    places: Sequence[Path | str],
    more: frozenset[str] | None = frozenset(),
    listens: Listens | None = None,
) -> Gathered:
    """Return the log lines from which a history is made, and the lines of the events in `more` (None: of all events,
    read in this process). `places` are files, folders or URLs. `listens` makes a listener for each part of a file.
    Without Spark, this process reads logs that are small, and all cores read large ones. Raises LogError if a place
    does not exist, or if there is no log."""

    def wanted(rows: Iterable[LogRow]) -> set[str]:
        return hosts_in(line for line in lines_of_rows(rows) if line.is_whole and line.event not in _CHANNELS)

    events = None if more is None else USED | more
    if events is None or (spark is None and not are_large(places)):
        read = read_plain(places, events, listens)
    else:
        read = skimmed(spark, places, events, wanted, listens)
    lines = _dated([line for line in lines_of_rows(read.rows) if line.is_whole])
    hosts = hosts_in(line for line in lines if line.event not in _CHANNELS)
    kept = [line for line in lines if events is None or line.event not in _CHANNELS or _peer(line) in hosts]
    notes = [*read.notes, *_unused(read.files, kept)]
    return Gathered(kept, read.files, notes, _shapes(read.files), read.listeners)


def _dated(lines: list[Line]) -> list[Line]:
    """Leaves out lines without a date, if other lines of their log have one, because it is unknown when they were
    written."""
    dated = {(line.file, line.prefix) for line in lines if not RELATIVE_MS <= line.stamp_ms < UNDATED_MS}
    return [
        line for line in lines if not RELATIVE_MS <= line.stamp_ms < UNDATED_MS or (line.file, line.prefix) not in dated
    ]


_MUCH = 0.2


def _unused(files: Sequence[FileRead], kept: Iterable[Line]) -> Iterator[str]:
    """A sentence for each file, or large part of one, without a used line, with its share of all lines."""
    used = {line.file for line in kept}
    total = sum(one.lines for one in files)
    for one in files:
        if not one.understood:
            continue  # who read it said so
        if one.file not in used:
            why = "none of what was understood tells of a registration, a connection or a route"
            if one.first_ms is None:
                why = "no line of it has a date"
            unknown = f", {one.not_understood:,} of them not understood" if one.not_understood else ""
            size = f"{one.lines:,} lines, {one.lines / total:.0%} of all{unknown}"
            yield f"{one.file} gives no events ({size}): {why}; only errors that its lines state count"
        elif one.not_understood > _MUCH * one.lines:
            share = one.not_understood / one.lines
            yield f"{one.file}: {one.not_understood:,} of its {one.lines:,} lines ({share:.0%}) are of no known shape"


def not_quoted(notes: Iterable[str], quoted: Iterable[str]) -> list[str]:
    """Remove the note that a file was not understood if an answer quotes the file."""
    said = tuple(f"{file}: none of its " for file in quoted)
    return [note for note in notes if not note.startswith(said)]


def _peer(line: Line) -> str:
    host, _, port = line.fields["address"].removeprefix("/").rpartition(":")
    return host if port.isdigit() else ""


def hosts_in(lines: Iterable[Line]) -> set[str]:
    """Return the hosts that are known as a broker's or client's. Other hosts' connections are in no other log, and so
    help no comparison."""
    addresses, clients = set[str](), set[str]()
    for line in lines:
        addresses.update(line.fields[key] for key in ("address", "old") if key in line.fields)
        clients.add(line.fields.get("client", ""))
        clients.update(CLIENT_ID.findall(line.fields.get("channel", "")))
        if line.event == "route_changed":
            addresses.update(HOST_PORT.findall(line.fields["new"]))
    found = {host_of(address) for address in addresses} | {client.partition("@")[0] for client in clients}
    return found - {""}


def _shapes(files: Sequence[FileRead]) -> list[tuple[int, str]]:
    counted: Counter[str] = Counter()
    for one in files:
        counted.update(one.shapes)
    return sorted(((count, shape) for shape, count in counted.items()), reverse=True)[:10]


def lines_of_rows(rows: Iterable[LogRow]) -> Iterator[Line]:
    """Return a `Line` for each row that chaos/logs read and that has a time."""
    for row in rows:
        stamp_ms, resolution_ms, zone_ms = row.stamp_ms, row.resolution_ms, zone_ms_of(row.zone)
        if row.outer_ms is not None:  # a container's own stamp, which is in UTC
            stamp_ms, resolution_ms, zone_ms = row.outer_ms, 1, 0
        if stamp_ms is not None:
            yield Line(
                row.file,
                row.prefix or "",
                row.line,
                float(stamp_ms),
                resolution_ms,
                zone_ms,
                row.thread or "",
                row.writer,
                row.event,
                row.fields,
            )
