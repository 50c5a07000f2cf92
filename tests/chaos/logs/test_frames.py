"""Folders of logs by Spark give the events that the tail of a run gives of the same files."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nemesrv.chaos.logs.frames import log_counts, log_events, log_files
from nemesrv.chaos.logs.lines import Counted, LogEvent, Tail, parsed

NAMESRV = """\
2026-11-20 20:17:34 INFO main - The Name Server boot success. serializeType=JSON
2026-11-20 20:17:34 INFO main - listenPort=9876
2026-11-20 20:17:40 INFO RemotingExecutorThread_1 - new broker registered, 10.0.0.1:10911 HAServer: 10.0.0.1:10912
2026-11-20 20:19:44 WARN NSScheduledThread1 - The broker channel expired, 10.0.0.1:10911 120000ms
2026-11-20 20:19:45 ERROR t - registerBroker Exception
java.lang.NullPointerException: zwölf
\tat org.apache.rocketmq.namesrv.Somewhere
2026-11-20 20:19:46 INFO t - remove brokerAddr[0, 10.0.0.1:10911] from brokerAddrTable, because channel destroyed
"""
CLIENT = (
    "2026-11-20 12:18:51,122 INFO RocketmqRemoting - new name server is chosen. OLD: null , NEW: 10.0.0.9:9876. "
    "namesrvIndex = 790\r\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ns-0" / "otherdays").mkdir(parents=True)
    (tmp_path / "ns-0" / "namesrv.log").write_text(NAMESRV, encoding="utf-8")
    with gzip.open(tmp_path / "ns-0" / "otherdays" / "namesrv.1.log.gz", "wt", encoding="utf-8") as file:
        file.write(NAMESRV.replace("2026-11-20", "2026-11-19"))
    (tmp_path / "rocketmq_client.log.3").write_bytes(CLIENT.encode() + b"2026-11-20 \xff\xfe\n")
    (tmp_path / "notes.txt").write_text(NAMESRV)
    return tmp_path


def tailed(folder: Path) -> tuple[list[LogEvent], dict[str, Counted]]:
    """As a run reads them: in pieces, as they come."""
    events, counts = [], dict[str, Counted]()
    for path, name in log_files(folder):
        raw = Path(path).read_bytes()
        data = gzip.decompress(raw) if name.endswith(".gz") else raw
        tail, counts[name] = Tail(name), Counted()
        for at in range(0, len(data), 7):
            for number, line in tail.fed(data[at : at + 7]):
                if (event := parsed(name, number, line, counts[name], UTC)) is not None:
                    events.append(event)
    return sorted(events), counts


def rows(found: Iterator[LogEvent] | list[LogEvent]) -> list[tuple[object, ...]]:
    return [(one.file, one.line, one.time, one.event, sorted(one.fields.items())) for one in found]


def test_only_logs_are_read_and_rotated_ones_too(folder: Path) -> None:
    names = [name for _path, name in log_files(folder)]
    assert names == ["ns-0/namesrv.log", "ns-0/otherdays/namesrv.1.log.gz", "rocketmq_client.log.3"]


def test_a_place_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is no file and no folder"):
        log_files(tmp_path / "nowhere")


@pytest.mark.spark
def test_spark_reads_what_the_tail_of_a_run_reads(folder: Path, spark: SparkSession) -> None:
    events, counts = tailed(folder)
    assert len(events) == 9
    found = [LogEvent(*row) for row in log_events(spark, folder, zone=UTC).collect()]
    utc = [one._replace(time=one.time and one.time.astimezone(UTC)) for one in found]
    assert rows(sorted(utc, key=lambda one: one[:2])) == rows(events)
    counted = {row.file: Counted(row.events, row.other, row.continued) for row in log_counts(spark, folder).collect()}
    assert counted == counts
    assert counts["ns-0/namesrv.log"] == Counted(events=4, other=2, continued=2)
