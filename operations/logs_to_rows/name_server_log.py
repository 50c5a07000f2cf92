"""Makes history rows from a NameServer's log: registrations, dropped brokers with the reason, routes. Pure: no I/O.

    rocketmqHome=…, boot success            started; the previous process has ended
    shutdown hook was invoked               stopped; so does a log whose end closes all channels
    master address change, new broker …     registration; route of every topic that the broker is known to have
    new topic registered, topic changed     route
    IDLE ─ destroyed ─ remove brokerAddr    broker_dropped idle; expired, exception, closed, unregistered likewise
    wipe write perm                         write_perm

A NameServer logs a topic only for the topic's first broker. So a broker's topics are taken from all logs (book.py),
from the broker's registration on. A table entry older than the log is assumed from the log's first line on, if a later
line shows it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

from .book import Book, queue_row
from .line import Line, starts
from .signs import LEAVING_MS, is_near
from .sources import Source
from .writing import Rows

_LED_TO_MS = 2_500.0
_SAME_MS = 1_500.0
_BOOT_MS = 120_000.0
"""A start logs its settings, and that it serves, within this time."""
WRITE = 2
STOPS = ("server_stops", "server_stopped")
"""First and last line of a server's shutdown hook."""


class NameServerLog:
    def __init__(self, source: Source, book: Book, rows: Rows, max_topics: int) -> None:
        self._source, self._book, self._rows = source, book, rows
        self._put = partial(rows.put_line, source, "name_server")
        self._alive: dict[str, str] = {}
        """Address → broker name."""
        self._ids: dict[str, int] = {}
        """Address → the id under which it registered last."""
        self._tables: dict[str, dict[str, list[int]]] = defaultdict(dict)
        """Topic → broker name → row."""
        self._held: dict[str, Any] = {}
        self._max_topics = max_topics
        self._registered_ms: dict[str, float] = {}
        self._whys: dict[str, list[float]] = defaultdict(list)
        self._expired: dict[str, list[float]] = defaultdict(list)
        self._destroyed: dict[str, list[float]] = defaultdict(list)
        self._is_v5 = source.is_v5
        self._tells_removals = any(line.event == "address_removed" for line in source.lines)
        """Else its lines are a choice of some: a channel that is destroyed takes its broker out."""

    def read(self) -> None:
        lines = self._source.lines
        for line in lines:  # what led to a drop may stand behind it
            if line.event in ("channel_idle", "channel_failed"):
                self._whys[line.event].append(line.stamp_ms)
            elif line.event == "broker_expired":
                self._expired[line.fields["address"]].append(line.stamp_ms)
            elif line.event == "channel_destroyed":
                self._destroyed[line.fields.get("address", "")].append(line.stamp_ms)
        begins = _beginnings(lines)
        ends = {begin - 1 for begin in begins if begin} | {len(lines) - 1}
        stops = {end: since for end in ends if (since := _stops_from(lines, end)) is not None}
        stops |= dict(_hooks(lines, begins))
        stopping = sorted((since, end) for end, since in stops.items())
        if lines and 0 not in begins:
            self._start(lines[0], inferred=True)
            self._was_there(lines[: min(begins, default=len(lines))])
        for number, line in enumerate(lines):
            if number in begins:
                if number:
                    self._rows.incarnations[self._source.name] += 1
                self._start(line, inferred=False)
            if any(since <= number <= end for since, end in stopping):
                if any(number == since for since, _ in stopping):
                    self._put(line, "stopped")
                continue
            self._line(line)

    def _start(self, line: Line, *, inferred: bool) -> None:
        self._alive.clear()
        self._tables.clear()
        self._held.clear()
        self._registered_ms.clear()
        self._put(line, "started", learnt="inferred" if inferred else "log")

    def _was_there(self, lines: Sequence[Line]) -> None:
        """Return the brokers that a line mentions before any line says that they registered."""
        seen: set[str] = set()
        first = self._source.lines[0]
        for line in lines:
            address = line.fields.get("address", "")
            if line.event == "master_address" and line.fields["old"] not in ("null", address):
                seen.add(address)  # it came with this line, in the place of another
                address = line.fields["old"]
            if address in seen or ":" not in address:
                continue
            if line.event == "broker_registered" or (line.event == "master_address" and line.fields["old"] == "null"):
                seen.add(address)
            elif line.event in ("broker_expired", "live_removed", "master_address") or (
                line.event in ("address_removed", "channel_destroyed") and line.fields.get("result") != "Failed"
            ):
                seen.add(address)
                if self._book.broker(address) is not None:
                    self._arrive(first, address, learnt="inferred")

    # --- one line -----------------------------------------------------------------------------------------------------

    def _line(self, line: Line) -> None:
        fields = line.fields
        match line.event:
            case "master_address":
                if fields["old"] not in ("null", fields["address"]):
                    self._alive.pop(fields["old"], None)  # it has another address from now on
                self._arrive(line, fields["address"])
            case "broker_registered":
                self._arrive(line, fields["address"])
            case "topic_registered" | "topic_changed":
                row = queue_row(fields.get("row") or "")
                if row is not None:
                    self._tables[fields["topic"]][row[0]] = row[1]
                    if line.event == "topic_registered":  # the others that have it brought it since, or with theirs
                        for name in self._alive.values():
                            known = self._book.topics[name].get(fields["topic"])
                            if known is not None:
                                self._tables[fields["topic"]].setdefault(name, known)
                    self._route(line, fields["topic"])
            case "topic_deleted":
                self._tables[fields["topic"]].pop(fields["broker"], None)
                self._route(line, fields["topic"])
            case "topic_gone":
                self._tables.pop(fields["topic"], None)
                self._route(line, fields["topic"])
            case "address_removed" if fields.get("result") != "Failed":
                self._drop(line, fields["address"])
            case "channel_destroyed" if not self._tells_removals and fields.get("address") in self._alive:
                self._drop(line, fields["address"])
            case "write_perm_wiped" | "write_perm_added":
                self._write_perm(line)

    def _arrive(self, line: Line, address: str, learnt: str = "log") -> None:
        who = self._book.broker(address)
        if who is None:
            return
        name, at_ms = who[0], self._source.wall_ms(line)
        id_ = 0 if line.event == "master_address" and learnt == "log" else self._book.id_at(address, at_ms) or 0
        self._ids[address] = id_
        before_ms = self._registered_ms.get(address)
        if line.event != "broker_registered" or before_ms is None or line.stamp_ms - before_ms > _SAME_MS:
            place: dict[str, Any] = {"broker_name": name, "broker_id": id_, "address": address}
            self._put(line, "registration", learnt=learnt, code=0, **place)
        self._registered_ms[address] = line.stamp_ms
        if self._alive.get(address) != name:
            self._alive[address] = name
            for topic, row in self._book.topics[name].items():
                self._tables[topic].setdefault(name, list(row))
                self._route(line, topic)

    def _drop(self, line: Line, address: str) -> None:
        who = self._book.broker(address)
        if address not in self._alive and "id" not in line.fields:  # it is removed by its id, whoever stands there
            address = next((one for one in self._alive if who is not None and self._book.broker(one) == who), address)
        if address not in self._alive and "id" in line.fields and who is not None:
            # the line says who stood there: that it came in the other's place is in a line that is not here
            self._alive = {one: name for one, name in self._alive.items() if self._book.broker(one) != who}
            self._alive[address] = who[0]
        was_there = self._alive.pop(address, None) is not None
        self._registered_ms.pop(address, None)
        if who is None:
            return
        name = who[0]
        place: dict[str, Any] = {"broker_name": name, "broker_id": self._ids.pop(address, who[1]), "address": address}
        self._put(line, "broker_dropped", value={"reason": self._reason(line, address)}, **place)
        if not was_there:
            return
        is_gone = name not in self._alive.values()
        for topic, rows in self._tables.items():
            if name in rows:
                if is_gone:
                    del rows[name]
                self._route(line, topic)

    def _reason(self, line: Line, address: str) -> str:
        def was_near(times: Sequence[float]) -> bool:
            return is_near(times, line.stamp_ms, _LED_TO_MS)

        if was_near(self._expired.get(address, ())):
            return "expired"
        is_channel = "id" in line.fields or was_near(self._destroyed.get(address, ()))
        if not is_channel and self._is_v5:  # its line names no address
            is_channel = was_near(self._destroyed.get("", ()))
        if not is_channel:
            return "unregistered"
        if was_near(self._whys["channel_idle"]):
            return "idle"
        return "exception" if was_near(self._whys["channel_failed"]) else "closed"

    def _write_perm(self, line: Line) -> None:
        name, is_wiped = line.fields["broker"], line.event == "write_perm_wiped"
        how = "wiped" if is_wiped else "added"
        self._put(line, "write_perm", broker_name=name, value={how: int(line.fields.get("topics") or 0)})
        for topic, rows in self._tables.items():
            if name in rows:
                read, write, perm, *rest = rows[name]
                rows[name] = [read, write, perm & ~WRITE if is_wiped else 6, *rest]
                self._route(line, topic)

    def _route(self, line: Line, topic: str) -> None:
        rows = self._tables.get(topic) or {}
        addresses: dict[str, dict[str, str]] = defaultdict(dict)
        for address, name in self._alive.items():
            if name in rows:
                addresses[name][str(self._ids.get(address, 0))] = address
        queues = {name: rows[name] for name in sorted(rows) if name in addresses}
        brokers = {name: dict(sorted(addresses[name].items())) for name in queues}
        route = {"brokers": brokers, "queues": {name: list(row) for name, row in queues.items()}} if queues else None
        if topic not in self._held and (route is None or len(self._held) >= self._max_topics):
            return
        if self._held.get(topic) != route:
            self._held[topic] = route
            self._put(line, "route", topic=topic, value=route, f="log")


def _beginnings(lines: Sequence[Line]) -> set[int]:
    found = starts(lines, ("rocketmqHome", "kvConfigPath", "configStorePath"), _BOOT_MS)
    if found and not any(":" in line.fields.get("address", "") for line in lines[: found[0]]):
        found[0] = 0  # what it logged first, it logged on the way
    return set(found)


def _hooks(lines: Sequence[Line], begins: Collection[int]) -> Iterator[tuple[int, int]]:
    """Return (last line, first line) of each clean stop in the log."""
    number = 0
    while number < len(lines):
        first = number
        number += 1
        if lines[first].event in STOPS:
            while (
                number < len(lines)
                and number not in begins
                and lines[number].stamp_ms - lines[first].stamp_ms < LEAVING_MS
            ):
                number += 1
            yield number - 1, first


def _stops_from(lines: Sequence[Line], end: int) -> int | None:
    """The first line of a stop that ends the log: all channels are closed. None if there is none. Channels closed after
    silence do not belong to a stop, and a stopping NameServer does not scan any more."""
    last_ms = lines[end].stamp_ms
    dropped, known = set[str](), set[str]()
    since = None
    for number in range(end, -1, -1):
        line = lines[number]
        address = line.fields.get("address", "")
        if line.stamp_ms >= last_ms - _LED_TO_MS:
            if line.event in ("channel_idle", "broker_expired") or (line.event == "scanned" and not dropped):
                return None
            if line.event == "address_removed":
                dropped.add(address)
                since = number
        elif line.event in ("master_address", "broker_registered"):
            known.add(address)
        elif line.event == "name_server_boot" or last_ms - line.stamp_ms > 180_000:
            break
    return since if len(dropped) > 1 and known <= dropped else None
