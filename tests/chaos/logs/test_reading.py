"""Folders of logs by Spark give the rows and counts that are read without it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nemesrv.chaos.logs.files import LogError, planned
from nemesrv.chaos.logs.reading import _TASK, PlainLogs, _bins, _copied, _Tasks, read_logs, read_plain
from nemesrv.chaos.logs.stream import LogRow

NAMESRV = """\
2026-11-20 20:17:34 INFO main - The Name Server boot success. serializeType=JSON
2026-11-20 20:17:34 INFO main - listenPort=9876
2026-11-20 20:17:40 INFO RemotingExecutorThread_1 - new broker registered, 10.0.0.1:10911 HAServer: 10.0.0.1:10912
2026-11-20 20:19:44 WARN NSScheduledThread1 - The broker channel expired, 10.0.0.1:10911 120000ms
2026-11-20 20:19:45 ERROR t - registerBroker Exception
java.lang.NullPointerException: zwölf
\tat org.apache.rocketmq.namesrv.Somewhere
2026-11-20 20:19:46 INFO t - remove brokerAddr[0, 10.0.0.1:10911] from brokerAddrTable, because channel destroyed
2026-11-20 20:19:47 INFO t - frobnicated 4711
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
    (tmp_path / "notes.md").write_text(NAMESRV)
    return tmp_path


def test_every_file_says_what_became_of_its_lines(folder: Path) -> None:
    logs = read_plain([folder])
    brief = [
        (f.file, f.series, f.age, f.writer, f.lines, f.understood, f.not_understood, f.continued) for f in logs.files
    ]
    assert brief == [
        ("ns-0/namesrv.log", "ns-0/namesrv.log", 0, "java-server", 9, 6, 1, 2),
        ("ns-0/otherdays/namesrv.1.log.gz", "ns-0/namesrv.log", 1, "java-server", 9, 6, 1, 2),
        ("rocketmq_client.log.3", "rocketmq_client.log", 0, "java-client-4.9", 2, 1, 0, 1),
    ]
    assert logs.files[0].shapes == [(1, "frobnicated #")]
    assert logs.notes == [f"{folder}: 1 files are no logs by their names and were not read: notes.md"]
    assert [row.event for row in logs.rows[:6]] == [
        "name_server_boot",
        "setting",
        "broker_registered",
        "broker_expired",
        "error_swallowed",
        "address_removed",
    ]


def test_a_task_leaves_its_events_as_parquet_and_tells_the_counts(folder: Path) -> None:
    parts = planned([folder]).parts
    tasks = _Tasks(str(folder))
    ((number, told),) = tasks([(3, parts[0])])
    assert (number, told["lines"], told["rows"]) == (3, 9, 6)
    rows = pq.read_table(folder / "events-000003.parquet").to_pylist()
    assert {row["part"] for row in rows} == {3}
    assert dict(rows[2]["fields"]) == {"address": "10.0.0.1:10911", "ha": "10.0.0.1:10912"}


def test_little_files_are_one_task(folder: Path) -> None:
    assert [len(each) for each in _bins(planned([folder]))] == [3]


def test_ranges_of_a_large_file_are_tasks_of_their_own(tmp_path: Path) -> None:
    with (tmp_path / "a.log").open("wb") as file:
        file.truncate(5 * _TASK)
    assert [len(each) for each in _bins(planned([tmp_path], range_size=_TASK))] == [1] * 5


@pytest.mark.spark
@pytest.mark.parametrize("range_size", [None, 100])
def test_spark_reads_what_is_read_without_it(folder: Path, spark: SparkSession, range_size: int | None) -> None:
    ranged = {} if range_size is None else {"range_size": range_size}
    plain, logs = read_plain([folder], "+02:00"), read_logs(spark, [folder], "+02:00", **ranged)
    try:
        rows = sorted((LogRow(*row) for row in logs.events.collect()), key=lambda row: (row.file, row.line))
        assert PlainLogs(rows, logs.files, logs.notes) == plain
    finally:
        logs.close()
    assert not any(each.exists() for each in logs._ours)


@pytest.mark.spark
def test_spark_copies_what_is_elsewhere_and_says_what_is_not_there(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> None:
    here = _copied(spark, f"file://{folder}/ns-*", tmp_path_factory.mktemp("here") / "0")
    assert [file.file for file in read_plain([here]).files] == ["ns-0/namesrv.log", "ns-0/otherdays/namesrv.1.log.gz"]
    with pytest.raises(LogError, match=r'nowhere://host/a.log cannot be read: .*No FileSystem for scheme "nowhere"'):
        read_logs(spark, ["nowhere://host/a.log"])
