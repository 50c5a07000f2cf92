"""Folders of logs by Spark give the rows and counts that are read without it."""

import gzip
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nemesrv.chaos.logs import files
from nemesrv.chaos.logs.files import LogError, planned
from nemesrv.chaos.logs.reading import _TASK, LogsRead, _bins, _copied, _parts_read, _written, read_plain, skimmed

EVENTS = frozenset({
    "name_server_boot", "setting", "broker_registered", "broker_expired", "error_swallowed", "address_removed",
    "name_server_chosen",
})  # fmt: skip
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
    (tmp_path / "notes.md").write_text("Notes on the night of the 20th.\n")
    return tmp_path


def test_every_file_says_what_became_of_its_lines(folder: Path) -> None:
    logs = read_plain([folder])
    brief = [
        (file.file, file.writer, file.lines, file.understood, file.not_understood, file.continued)
        for file in logs.files
    ]
    assert brief == [
        ("ns-0/namesrv.log", "java-server", 9, 6, 1, 2),
        ("ns-0/otherdays/namesrv.1.log.gz", "java-server", 9, 6, 1, 2),
        ("rocketmq_client.log.3", "java-client-4.9", 2, 1, 0, 1),
    ]
    assert logs.files[0].shapes == {"frobnicated #": 1}
    assert logs.notes == [f"{folder}: 1 files begin with no line of RocketMQ's and are not used: notes.md"]
    assert [row.event for row in logs.rows[:6]] == [
        *("name_server_boot", "setting", "broker_registered", "broker_expired"),
        *("error_swallowed", "address_removed"),
    ]


def test_a_task_leaves_its_rows_in_a_file_and_tells_the_counts(folder: Path) -> None:
    parts = planned([folder]).parts
    (told,) = _parts_read(str(folder), EVENTS, [(3, parts[0])])
    assert (told.number, told.read.lines, told.rows) == (3, 9, 6)
    (rows,) = _written(folder, [told])
    assert rows[2].fields == {"address": "10.0.0.1:10911", "ha": "10.0.0.1:10912"}


def test_little_files_are_one_task(folder: Path) -> None:
    assert [len(each) for each in _bins(planned([folder]))] == [3]


def test_ranges_of_a_large_file_are_tasks_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "RANGE", _TASK)
    with (tmp_path / "a.log").open("wb") as file:
        file.truncate(5 * _TASK)
    assert [len(each) for each in _bins(planned([tmp_path]))] == [1] * 5


@pytest.mark.spark
@pytest.mark.parametrize("range_size", [files.RANGE, 100])
def test_spark_reads_what_is_read_without_it(
    folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, range_size: int
) -> None:
    plain = read_plain([folder])
    monkeypatch.setattr(files, "RANGE", range_size)
    logs = skimmed(spark, [folder], EVENTS, lambda rows: ())
    assert LogsRead(sorted(logs.rows, key=lambda row: (row.file, row.line)), logs.files, logs.notes) == plain


@pytest.mark.spark
def test_spark_copies_what_is_elsewhere_and_says_what_is_not_there(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> None:
    here = _copied(spark, f"file://{folder}/ns-*", tmp_path_factory.mktemp("here") / "0")
    assert [file.file for file in read_plain([here]).files] == ["ns-0/namesrv.log", "ns-0/otherdays/namesrv.1.log.gz"]
    with pytest.raises(LogError, match=r'nowhere://host/a.log cannot be read: .*No FileSystem for scheme "nowhere"'):
        skimmed(spark, ["nowhere://host/a.log"], EVENTS, lambda rows: ())
