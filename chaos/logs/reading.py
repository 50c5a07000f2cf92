"""Reads logs from anywhere into rows with Spark, and counts each file's lines. The entry point of chaos/logs.

    logs = skimmed(spark, ["collected/", "ns-1.zip", "s3a://incident/*.log.gz"], {"broker_registered", …}, hosts_in)
    logs.rows      of these events, here: file │ line │ prefix │ stamp_ms │ resolution_ms │ zone │ … │ event │ fields
    logs.files     of each: writer, lines understood, not understood, continued, most frequent unknown
    logs.notes     what could not be read, one sentence each

Logs are read once, with one task per file or range of a large file. Each task writes its rows into a temporary folder.
Spark's executors must see the logs and this folder at the same path. `read_plain` reads small logs without Spark.
"""

from __future__ import annotations

import gc
import pickle
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from multiprocessing import get_context
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from .files import LogError, Part, Plan, planned, read_part
from .skim import Aside, Silent, Skim, taken
from .stream import OWN_LOGGER, FileRead, LogRow, Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = TypeVar("Item")
Found = TypeVar("Found")
SHAPES_SHOWN = 20
OF_A_RUN = "a log of nemesrv's own run"
_TASK = 8 << 20
_FIRST_YEAR_MS = 1_325_376_000_000
"""2012: a clock with an earlier time was not set, because nobody ran RocketMQ then."""


@dataclass(slots=True)
class LogsRead:
    rows: list[LogRow]
    files: list[FileRead]
    notes: list[str]
    listeners: Sequence[Any] = ()


class Listener(Protocol):
    """Gets the bytes of one part of a file while the part is read, so that no part is read twice."""

    def block(self, data: bytes, silent: Silent | None) -> None:
        """Take whole lines, and which of them state no cause of trouble; None: any line may state one."""

    def finished(self) -> None:
        """Hear that the part is read."""


Listens = Callable[[str], Listener]
"""Makes the listener of a part of this file."""


def read_plain(
    places: Sequence[str | Path], events: frozenset[str] | None = None, listens: Listens | None = None
) -> LogsRead:
    """Return the rows of these events (None: of all), read in this process, in the order of files and lines."""
    plan = planned(places)
    told = [_heard(part, listens, events) for part in plan.parts]
    reads = [read for read, _, _ in told]
    rows = _numbered((rows for _, rows, _ in told), _offsets(reads))
    return _logs_read(plan, reads, sorted(rows, key=attrgetter("file", "line")), [one for *_, one in told])


LARGE = 256 << 20
"""Bytes of logs from which on all cores read them."""


def are_large(places: Sequence[str | Path]) -> bool:
    """Whether the logs at these places are large. Missing places are reported only later, when the logs are read."""
    try:
        sizes = {part.path: part.size for part in planned(places).parts}
    except LogError:
        return any("://" in str(place) for place in places)
    return sum(sizes.values()) > LARGE


def skimmed(
    spark: SparkSession | None,
    places: Sequence[str | Path],
    events: Collection[str],
    hosts_in: Callable[[list[LogRow]], Collection[str]],
    listens: Listens | None = None,
) -> LogsRead:
    """Return the rows of these events, unordered; lines of other events are only counted. Without Spark, processes on
    this machine, one per core, read the logs, which must be on this machine, too. `hosts_in` gets all rows except
    connections, and returns the hosts whose connections are wanted, too. `listens` makes a listener for each part of a
    file. Raises LogError if one of `places` does not exist, or if there is no log at all. The result has a note for
    every file that cannot be read.
    """
    ours = [Path(tempfile.mkdtemp(prefix="nemesrv-events-"))]
    try:
        plan = planned(_here(spark, places, ours))
        work = partial(_parts_read, str(ours[0]), frozenset(events), listens=listens)
        told = sorted(_mapped(spark, work, _bins(plan)), key=attrgetter("number"))
        offsets = _offsets([one.read for one in told])
        rows = _numbered(_written(ours[0], told), offsets)
        hosts = frozenset(hosts_in(rows))
        held = [(one.number, offsets[one.number], one.read.file) for one in told if one.aside]
        if held:
            rows += _mapped(spark, partial(_taken, str(ours[0]), hosts), held)
        return _logs_read(plan, [one.read for one in told], rows, [one.listener for one in told])
    finally:
        for each in ours:
            shutil.rmtree(each, ignore_errors=True)


def _mapped(
    spark: SparkSession | None, work: Callable[[Item], Sequence[Found]], items: Sequence[Item]
) -> Iterable[Found]:
    if spark is None and len(items) == 1:
        return work(items[0])
    if spark is None:
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
            return [*chain.from_iterable(processes.map(work, items))]
    found: list[Found] = spark.sparkContext.parallelize(items, max(1, len(items))).flatMap(work).collect()
    return found


class _PartRead(NamedTuple):
    number: int
    read: FileRead
    rows: int
    """How many rows it wrote into its file."""
    aside: int
    """How many lines it put aside."""
    listener: Any


def _written(folder: Path, told: Iterable[_PartRead]) -> Iterator[list[LogRow]]:
    """Yield the rows that each task wrote."""
    for one in told:
        path = _rows_file(folder, one.number)
        if one.rows and not path.exists():
            raise LogError(f"{folder}: executors wrote their events elsewhere: give a folder that all machines see")
        yield pickle.loads(path.read_bytes()) if one.rows else []


# --- tasks


def _bins(plan: Plan) -> list[list[tuple[int, Part]]]:
    """Return the work of each task: one part, or several small files."""
    bins = list[list[tuple[int, Part]]]()
    room = 0
    for number, part in enumerate(plan.parts):
        size = (part.size if part.end is None else part.end - part.start) or 1
        if not bins or size > room:
            bins.append([])
            room = _TASK
        bins[-1].append((number, part))
        room -= size
    return bins


def _rows_file(folder: str | Path, number: int) -> Path:
    return Path(folder, f"rows-{number:06}.pickle")


def _aside(folder: str, number: int) -> Path:
    return Path(folder, f"aside-{number:06}.parquet")


def _parts_read(
    folder: str,
    events: frozenset[str],
    parts: Sequence[tuple[int, Part]],
    listens: Listens | None = None,
) -> list[_PartRead]:
    """Read these parts. Rows of these events, and connections of hosts, are files in that folder."""
    gc.disable()  # nothing here is a circle, and looking for some takes a tenth of the time
    try:
        return [_part_read(folder, events, number, part, listens) for number, part in parts]
    finally:
        gc.enable()


def _part_read(folder: str, events: frozenset[str], number: int, part: Part, listens: Listens | None) -> _PartRead:
    aside = Aside(_aside(folder, number))
    read, rows, listener = _heard(part, listens, events, aside)
    aside.close()
    if rows:
        _rows_file(folder, number).write_bytes(pickle.dumps(rows))
    return _PartRead(number, read, len(rows), aside.lines, listener)


def _heard(
    part: Part, listens: Listens | None, events: frozenset[str] | None = None, aside: Aside | None = None
) -> tuple[FileRead, list[LogRow], Listener | None]:
    """Return what was read of the part, its rows of these events (None: all), and its listener, which heard it."""
    listener = None if listens is None else listens(part.file)
    found, read = read_part(part, Skim(events, aside, None if listener is None else listener.block))
    rows = list(found)
    if listener is not None:
        listener.finished()
    return read, rows, listener


def _taken(folder: str, hosts: frozenset[str], held: tuple[int, int, str]) -> list[LogRow]:
    """Return the rows of these hosts' connections from the lines that the first step put aside."""
    number, offset, file = held
    found = list[LogRow]()
    for line, text in taken(_aside(folder, number), hosts):
        reader = Reader(file, first_line=line + offset)
        found += (*reader.rows([text]), *reader.finished())
    return found


# --- what became of the files


def _offsets(reads: Iterable[FileRead]) -> list[int]:
    """Return for each part how many lines of its file are in the parts before it."""
    before: Counter[str] = Counter()
    offsets = []
    for read in reads:
        offsets.append(before[read.file])
        before[read.file] += read.lines
    return offsets


def _numbered(found: Iterable[Iterable[LogRow]], offsets: Iterable[int]) -> list[LogRow]:
    """Return the rows of all parts, with the numbers of their lines in the whole file."""
    each = zip(found, offsets, strict=True)
    return [row._replace(line=row.line + offset) if offset else row for rows, offset in each for row in rows]


def _logs_read(
    plan: Plan, reads: Iterable[FileRead], rows: list[LogRow], listeners: Iterable[Listener | None]
) -> LogsRead:
    found: dict[str, FileRead] = {}
    for read in reads:
        found.setdefault(read.file, FileRead(read.file)).add(read)
    for file in found.values():
        file.shapes = Counter(dict(file.shapes.most_common(SHAPES_SHOWN)))
        file.notes += _odd(file)
    notes = [*plan.notes, *(note for file in found.values() for note in file.notes)]
    return LogsRead(rows, [*found.values()], notes, tuple(one for one in listeners if one is not None))


def _odd(read: FileRead) -> Iterator[str]:
    if read.relative:
        yield (
            f"{read.file}: {read.relative:,} records have no date: their times are relative, by the time of day or, "
            "without one, a second apart, from 2000-01-01 on"
        )
    if read.undated:
        yield f"{read.file}: {read.undated:,} records have a stamp that is no time; they have none"
    if read.backwards:
        yield f"{read.file}: its stamps go back by more than a minute {read.backwards:,} times, as when a clock is set"
    if read.first_ms is not None and read.first_ms < _FIRST_YEAR_MS:
        yield f"{read.file}: its first stamp is of {_day(read.first_ms)}, before RocketMQ was: that clock was not set"
    if read.last_ms is not None and read.last_ms > (time.time() + 2 * 86_400) * 1000:
        yield f"{read.file}: its last stamp is of {_day(read.last_ms)}, which is to come: that clock was not set"
    if read.lines and not read.understood:
        is_own = any(shape.startswith(OWN_LOGGER) for shape in read.shapes)
        why = f"it is {OF_A_RUN}" if is_own else "it may be no log of RocketMQ's"
        count = f"{read.lines:,} " if read.lines > 1 else ""
        yield f"{read.file}: none of its {count}lines was understood: {why}"


def _day(ms: int) -> str:
    with suppress(ValueError, OverflowError, OSError):
        return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d}"
    return f"the year {1970 + ms // 31_556_952_000}"


# --- files elsewhere


def _here(spark: SparkSession | None, places: Sequence[str | Path], ours: list[Path]) -> list[str | Path]:
    """Return the places as paths on this machine. Spark copies files from Hadoop's file systems to it."""
    here, folder = list[str | Path](), None
    for number, place in enumerate(places):
        scheme, found, _rest = str(place).partition("://")
        if not found or scheme == "file" or spark is None:
            here.append(place)
            continue
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="nemesrv-logs-"))
            ours.append(folder)
        here.append(_copied(spark, str(place), folder / str(number)))
    return here


def _copied(spark: SparkSession, uri: str, folder: Path) -> Path:
    jvm: Any = spark.sparkContext._jvm
    java: Any = spark.sparkContext._jsc
    folder.mkdir()
    try:
        path = jvm.org.apache.hadoop.fs.Path(uri)
        system = path.getFileSystem(java.hadoopConfiguration())
        matches = system.globStatus(path)
        for status in matches or ():
            system.copyToLocalFile(False, status.getPath(), jvm.org.apache.hadoop.fs.Path(str(folder)), True)
    except Exception as exc:  # py4j's, with Java's reason in it
        reason = str(getattr(exc, "java_exception", exc)).splitlines()[0]
        raise LogError(f"{uri} cannot be read: {reason}") from exc
    if not any(folder.iterdir()):
        raise LogError(f"{uri} is not there: logs are read from files, folders, archives and patterns like logs/*.log")
    return folder
