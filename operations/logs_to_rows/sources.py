"""Groups log files by the process that wrote them, by folder, file name and contents. Pure: no I/O.

ns-0/rocketmqlogs/namesrv.log, otherdays/namesrv.1.log.gz            ─► a NameServer
10.0.0.2/broker.log, 10.0.0.2/remoting.log                           ─► one broker
broker-a.remoting.log, broker-a.broker.log   (all in one folder)     ─► one broker
namesrv-0.log, namesrv-1.log, namesrv-1.log.2026-11-29               ─► two NameServers
app.log (slf4j host), rocketmq_client.log                            ─► a client
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from ...chaos.logs.stream import FileRead
from ...chaos.oracle.intervals import grouped
from .line import UNDATED_MS, WRITTEN_BY, Line

NAME_SERVER, BROKER, CLIENT, ELECTOR = "name_server", "broker", "client", "controller"


_NAMES: tuple[tuple[str, str], ...] = (
    (r"namesrv(?:_default|_traffic|_watermark)?", NAME_SERVER),
    (
        r"broker(?:_default|_traffic|_console)?|remoting|store(?:error)?|transaction|lock|filter|protection|watermark|stats"
        r"|pop|coldctr|rebalance\w*|auth_audit|dledger|commercial",
        BROKER,
    ),
    (r"rocketmq[_-]client|ons|mqclient|rocketmq_cpp|rocketmq-cpp", CLIENT),
    (r"controller(?:_default)?", ELECTOR),
)
_PREFIXED = tuple(
    (
        re.compile(rf"(?P<prefix>.*?)(?:^|[._\-])(?P<base>{names})(?P<tail>[._\-\w]*)", re.IGNORECASE),
        re.compile(rf"[._\-]?(?:{names})(?=[._\-]|$)", re.IGNORECASE),
        kind,
    )
    for names, kind in _NAMES
)
_INNER = re.compile(r"(?:^|/)(?:otherdays|other_days|rocketmqlogs|logs|\.+)(?=/|$)", re.IGNORECASE)
_ENDING = r"\.?(?:log|txt|out|err|gz|zip|zst|zstd|bz2|xz)(?![^\W_])"
_ROLLED = re.compile(
    rf"(?:[._-]?(?:19|20)\d\d[._-]?\d\d[._-]?\d\d(?:[._T-]?\d\d){{0,3}}(?:[._-]\d{{1,3}})?"
    rf"|[._-]\d{{8,14}}|\.\d{{1,3}}|(?:(?<=\.log)|(?<=\.txt))[._-]\d+|{_ENDING})+$",
    re.IGNORECASE,
)
"""What rotation and compression put behind a name; `-0` before `.log` is a node's number."""
_IP = re.compile(r"(?<!\d)\d{1,3}(?:\.\d{1,3}){3}(?!\d)")
_OTHER_FILES = re.compile(
    r"[._-]?(?:all|bak|copy|debug|error|excerpt|gc|info|old|start|stderr|stdout|warn)(?=[._-]|$)", re.IGNORECASE
)
"""Words behind a program's name that are no node's."""


@dataclass(slots=True)
class Source:
    key: str
    """The folder and the common part of its files' names."""
    kind: str = ""
    name: str = ""
    """Node name in the history; set once the topology is known."""
    files: list[str] = field(default_factory=list)
    writer: str = "unknown"
    lines: list[Line] = field(default_factory=list)
    about: FileRead = field(default_factory=FileRead)
    zone_ms: int = 0
    zone_by: str = "layout"
    offset_ms: float = 0.0
    """How far its stamps are ahead, after the zone."""
    bound_ms: float = 500.0
    certainty: str = "unsure"
    why: str = ""
    """How the log's clock is known."""
    pinned: bool = False
    """Whether a mark that does not recur fixes it."""
    client: str | None = None
    """For a client's log without a ClientID: the ClientID in brokers' logs that the log's path contains."""

    @property
    def hint(self) -> str:
        """The file path of the log in lower case, because the path often names the process."""
        return self.key.lower()

    @property
    def settings(self) -> dict[str, str]:
        """The settings that the program logged when it started last."""
        return {line.fields["key"]: line.fields["value"] for line in self.lines if line.event == "setting"}

    @property
    def is_v5(self) -> bool:
        return any(_is_v5(line) for line in self.lines)

    def wall_ms(self, line: Line) -> float:
        """Return when the line was written, in UTC, corrected by the offset of the log's clock."""
        return line.middle_ms - self.zone_ms - self.offset_ms


def _is_v5(line: Line) -> bool:
    fields = line.fields
    if line.event in ("broker_registered", "broker_expired", "live_removed", "address_removed"):
        return "cluster" in fields
    if line.event == "channel_destroyed":
        return "broker_info" in fields
    if line.event in ("scanned", "registration_slow", "conflict_ignored"):
        return True
    if line.event == "setting":
        return fields.get("key") in ("scanNotActiveBrokerInterval", "brokerHeartbeatInterval", "supportActingMaster")
    return line.writer == "java-client-5"


def sources_of(lines: Iterable[Line], files: Sequence[FileRead] = ()) -> list[Source]:
    """Return each process's log in order of file paths, with the lines in the order in which they were written."""
    by_stream = {
        stream: _without_copies(part)
        for (file, prefix), found in grouped(((line.file, line.prefix), line) for line in lines).items()
        for stream, part in _of_each_program(file, prefix, found).items()
    }
    votes_of = {stream: _votes(found) for stream, found in by_stream.items()}
    kinds = {stream: max(votes, key=votes.__getitem__, default="") for stream, votes in votes_of.items()}
    about = {one.file: one for one in files}
    made = []
    for (key, _), streams in sorted(_joined(_by_process(by_stream, kinds), by_stream).items()):
        votes: Counter[str] = Counter()
        for stream in streams:
            votes.update(votes_of[stream])
            votes[kinds[stream]] += 1
        votes.pop("", None)
        kind = votes.most_common(1)[0][0] if votes else CLIENT
        found = [line for stream in streams for line in by_stream[stream]]
        position = {stream: number for number, stream in enumerate(_newest_last(streams))}
        found.sort(key=lambda line: (line.stamp_ms, position[line.file, line.prefix], line.line))
        names = sorted({file for file, _ in streams})
        writer = Counter(line.writer for line in found).most_common(1)[0][0] if found else "unknown"
        source = Source(key, kind, files=names, writer=writer, lines=found)
        counted = [about[file] for file in names if file in about]
        for one in counted or [FileRead(lines=len(found), understood=len(found))]:
            source.about.add(one)
        made.append(source)
    return made


def _without_copies(lines: Iterable[Line]) -> list[Line]:
    """Remove blocks that were pasted twice: the log goes back in time and repeats itself."""
    kept: list[Line] = []
    lines = _once_each(lines)
    place: dict[tuple[object, ...], int] = {}
    copied = -1
    for line in sorted(lines, key=lambda one: one.line):
        key = (line.stamp_ms, line.thread, line.event, *line.fields.values())
        at = place.get(key)
        goes_back = bool(kept) and line.stamp_ms < kept[-1].stamp_ms
        if at is not None and (goes_back if copied < 0 else at > copied):
            copied = at
            continue
        copied = -1
        place[key] = len(kept)
        kept.append(line)
    return kept


_PROGRAMS = {NAME_SERVER: "namesrv", BROKER: "broker", CLIENT: "client"}


def _of_each_program(file: str, prefix: str, lines: list[Line]) -> dict[tuple[str, str], list[Line]]:
    """Split a file with the lines of several programs, pasted together or of one container. A line that any program may
    write belongs to the program that wrote the line before in the same layout."""

    def program_of(line: Line) -> str:
        kind = WRITTEN_BY.get(line.event, "")
        if kind in (BROKER, CLIENT) and line.writer == "java-server":
            return BROKER  # a broker has clients of its own
        return kind

    told = {kind for line in lines if (kind := program_of(line)) in _PROGRAMS}
    if len(told) < 2:
        return {(file, prefix): lines}
    found: dict[tuple[str, str], list[Line]] = defaultdict(list)
    ordered = sorted(lines, key=lambda one: one.line)
    last: dict[str, str] = {}
    for line in reversed(ordered):
        if (kind := program_of(line)) in told:
            last[line.writer] = kind  # by then the first of each layout: whose what stands before it is
    before = next(iter(told))
    for line in ordered:
        kind = program_of(line)
        before = kind if kind in told else last.get(line.writer, before)
        last[line.writer] = before
        name = "/".join(part for part in (prefix, _PROGRAMS[before]) if part)
        found[file, name].append(line._replace(prefix=name))
    return found


_ALL_TWICE = 0.9


def _once_each(lines: Iterable[Line]) -> list[Line]:
    """Leave out every second line of a log that two appenders wrote."""
    told = list(lines)
    often = Counter((line.stamp_ms, line.thread, line.event, *line.fields.values()) for line in told)
    if len(told) < 2 or sum(count % 2 == 0 for count in often.values()) < _ALL_TWICE * len(often):
        return told
    seen: Counter[tuple[object, ...]] = Counter()
    kept = []
    for line in sorted(told, key=lambda one: one.line):
        key = (line.stamp_ms, line.thread, line.event, *line.fields.values())
        seen[key] += 1
        if seen[key] % 2:
            kept.append(line)
    return kept


def _votes(lines: Sequence[Line]) -> Counter[str]:
    """For each kind of program, the number of lines that only this kind writes. A controller scans like a
    NameServer."""
    events = Counter(line.event for line in lines if line.event in WRITTEN_BY)
    if any(WRITTEN_BY[event] == ELECTOR for event in events):
        del events["scanned"]
    votes: Counter[str] = Counter()
    for event, count in events.items():
        votes[WRITTEN_BY[event]] += count
    return votes


def _counted(streams: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Folders in which numbers before names only count: `01-broker.log`, `02-remoting.log`."""
    named: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for file, _ in streams:
        folder, _, name = file.rpartition("/")
        found = next((found for pattern, *_ in _PREFIXED if (found := pattern.fullmatch(name)) is not None), None)
        if found is not None:
            named[folder].append((found["prefix"], found["base"].lower()))
    return frozenset(
        folder
        for folder, names in named.items()
        if all(prefix.isdigit() for prefix, _ in names) and len({base for _, base in names}) == len(names)
    )


def _joined(
    by_process: Mapping[tuple[str, str], list[tuple[str, str]]], by_stream: Mapping[tuple[str, str], Sequence[Line]]
) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Join logs without a known owner to the only other log in their folder."""
    found = {key: list(streams) for key, streams in by_process.items()}
    for key, streams in by_process.items():
        writers = {line.writer for stream in streams for line in by_stream[stream]}
        if key[1] or writers != {"java-server"}:
            continue
        folder = streams[0][0].rpartition("/")[0]
        beside = [
            other
            for other, others in by_process.items()
            if other[1] in (NAME_SERVER, BROKER) and others[0][0].rpartition("/")[0] == folder
        ]
        if len(beside) == 1:
            found[beside[0]] += found.pop(key)
    return found


class _Place(NamedTuple):
    """What a file's path says about the process that wrote the file."""

    home: str
    """The folder, and what stands before the program's name."""
    kind: str
    unit: str = ""
    """One process writes the files of a unit one after the other."""
    node: str = ""
    """The program and what stands behind its name; "" if nothing does."""
    number: str = ""
    """The date or number of a rotation."""


def _by_process(
    by_stream: Mapping[tuple[str, str], Sequence[Line]], kinds: Mapping[tuple[str, str], str]
) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Group the logs by the process that wrote them."""
    counted = _counted(by_stream)
    places = {stream: _place(*stream, kinds[stream], counted) for stream in by_stream}
    nodes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for place in places.values():
        nodes[place.home, place.kind] |= {place.node} - {""}
    by_place: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for stream, place in places.items():
        beside = nodes[place.home, place.kind]
        node = place.node or (next(iter(beside)) if len(beside) == 1 else "")  # remoting.log beside broker-a.log
        by_place["/".join(filter(None, (place.home, node))) or place.kind, place.kind].append(stream)
    found: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for (key, kind), streams in by_place.items():
        units = [[by_stream[one] for one in streams if places[one].unit == places[stream].unit] for stream in streams]
        are_apart = any(_are_apart(*pair, kind) for unit in units for pair in combinations(unit, 2))
        for stream in streams:
            number = places[stream].number[1:] if are_apart else ""
            found[f"{key}/{_PROGRAMS.get(kind, kind)}-{number}" if number else key, kind].append(stream)
    return found


def kind_by_name(file: str) -> str:
    return _place(file, "", "").kind


def client_named(file: str) -> str | None:
    """Return a client's name by the path of a file without a known writer; None if a server wrote the file."""
    place = _place(file, "", "")
    return (place.home or file) if place.kind in ("", CLIENT) else None


def _place(file: str, prefix: str, kind: str, counted: Collection[str] = ()) -> _Place:
    folder, _, name = file.rpartition("/")
    numbered = folder not in counted
    while (shorter := _INNER.sub("", folder)) != folder:
        folder = shorter
    plain = name[: len(_ROLLED.sub("", _IP.sub(lambda ip: "x" * len(ip[0]), name)))]
    number = re.sub(_ENDING, "", name[len(plain) :])
    for pattern, programs, named in _PREFIXED:
        found = pattern.fullmatch(plain)
        if found is not None and (not kind or named == kind or (kind == CLIENT and named == BROKER)):
            before = found["prefix"] if numbered else ""
            behind = _OTHER_FILES.sub("", programs.sub("", found["tail"]))
            home = "/".join(filter(None, (folder, prefix or before)))
            node = f"{_PROGRAMS.get(kind or named, named)}{behind}" if behind and not prefix else ""
            node = re.sub(r"^client[._-](?=[a-z])", "", node)  # the client's own name, as a folder's
            return _Place(home, kind or named, plain, node, number)
    return _Place("/".join(filter(None, (folder, plain, prefix))), kind, plain, "", number)


_SLACK_MS = 60_000.0


def _are_apart(one: Sequence[Line], other: Sequence[Line], kind: str) -> bool:
    """Return whether two files with equal names but for a number are of different nodes: the files name different
    nodes as their own, or each file goes on after the other began."""
    named, others = _own_names(one, kind), _own_names(other, kind)
    if named and others and not named & others:
        return True
    if not _overlap(one, other):
        return False
    lines, others_lines = ({_told(line): line for line in found} for found in (one, other))
    copied = lines.keys() & others_lines.keys()  # pasted twice, and then cut into files
    return _overlap(*([line for told, line in of.items() if told not in copied] for of in (lines, others_lines)))


def _told(line: Line) -> tuple[object, ...]:
    return line.stamp_ms, line.event, *line.fields.values()


def _overlap(one: Sequence[Line], other: Sequence[Line]) -> bool:
    if not one or not other:
        return False
    (first, last), (others_first, others_last) = _ends(one), _ends(other)
    is_dated = min(first, others_first) >= UNDATED_MS
    return is_dated and last > others_first + _SLACK_MS and others_last > first + _SLACK_MS


def _own_names(lines: Iterable[Line], kind: str) -> set[str]:
    if kind == BROKER:
        booted = {line.fields["broker"] for line in lines if line.event == "broker_boot"}
        settings = (line.fields for line in lines if line.event == "setting")
        return booted | {said["value"] for said in settings if said["key"] == "brokerName"}
    boots = {line.fields.get("address") or "0.0.0.0" for line in lines if line.event == "name_server_boot"}
    return {address for address in boots if not address.startswith("0.0.0.0")}


def _ends(lines: Sequence[Line]) -> tuple[float, float]:
    """Return the stamps of the first and the last line; a clock that was set back within a file changes neither."""
    first, last = (pick(lines, key=lambda line: line.line).stamp_ms for pick in (min, max))
    return min(first, last), max(first, last)


def _newest_last(streams: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Sort rotated files before the file from which they were rotated, also at equal time stamps."""

    def age(stream: tuple[str, str]) -> tuple[int, str]:
        found = re.findall(r"[._-](\d+)(?=[._-]|$)", stream[0].rpartition("/")[2])
        return -int(found[-1]) if found else 0, stream[0]

    return sorted(streams, key=age)
