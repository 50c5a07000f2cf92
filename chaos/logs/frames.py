"""Folders of RocketMQ's logs as a DataFrame of events: one row an event, with its file and line. Spark.

    spark ─► log_events(spark, "collected/") ─► file │ line │ time │ event │ fields
             log_counts(spark, "collected/") ─► file │ events │ other │ continued

The same reader as while a run lasts (lines.py), one task a file, a line at a time: a file may be larger than the
memory. Rotated files (`rocketmq_client.log.3`, `otherdays/namesrv.1.log.gz`) are files of their own. Executors have to
see the folders at the same path.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from .lines import Counted, LogEvent, events_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENTS_SCHEMA = "file string, line long, time timestamp, event string, fields map<string, string>"
COUNTS_SCHEMA = "file string, events long, other long, continued long"
_IS_LOG = re.compile(r".*\.log(\.\d+)?(\.gz)?")


def log_files(*places: Path | str) -> list[tuple[str, str]]:
    """(path, name by which rows call it) of each log in these folders and files, below a folder by its path there.

    FileNotFoundError for a place that is not there.
    """
    found: list[tuple[str, str]] = []
    for place in map(Path, places):
        if place.is_file():
            found.append((str(place.resolve()), place.name))
        elif place.is_dir():
            files = sorted(path for path in place.rglob("*") if path.is_file() and _IS_LOG.fullmatch(path.name))
            found += [(str(path.resolve()), str(path.relative_to(place))) for path in files]
        else:
            raise FileNotFoundError(f"{place} is no file and no folder: logs are read from files and folders of them")
    return found


def log_events(spark: SparkSession, *places: Path | str, zone: tzinfo | None = None) -> DataFrame:
    """Every event of the logs, in no order. `zone`: of stamps that do not say theirs; None: they have no time."""

    def read(path: str, name: str) -> Iterator[LogEvent]:
        with opened(path) as lines:
            yield from events_of(name, lines, zone=zone)

    return _by_file(spark, places, read, EVENTS_SCHEMA)


def log_counts(spark: SparkSession, *places: Path | str) -> DataFrame:
    """How many events each file has, how many records of no known shape, and how many lines that go on with one."""

    def read(path: str, name: str) -> Iterator[tuple[object, ...]]:
        counted = Counted()
        with opened(path) as lines:
            for _event in events_of(name, lines, counted):
                pass
        yield name, counted.events, counted.other, counted.continued

    return _by_file(spark, places, read, COUNTS_SCHEMA)


def opened(path: str) -> IO[str]:
    """The lines of a log, compressed or not; what is no UTF-8 in it is replaced."""
    open_: Callable[..., Any] = gzip.open if path.endswith(".gz") else open
    return cast(IO[str], open_(path, "rt", encoding="utf-8", errors="replace", newline="\n"))


def _by_file(
    spark: SparkSession,
    places: Iterable[Path | str],
    read: Callable[[str, str], Iterator[tuple[object, ...]]],
    schema: str,
) -> DataFrame:
    files = log_files(*places)
    if not files:
        return spark.createDataFrame([], schema)
    rows = spark.sparkContext.parallelize(files, len(files)).flatMap(lambda file: map(tuple, read(*file)))
    return spark.createDataFrame(rows, schema, verifySchema=False)
