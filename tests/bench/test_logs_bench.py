"""Made-up logs are read whole, and each reader of them has its figure."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from nemesrv.chaos.logs.reading import read_plain
from tests.bench import logs


def test_the_logs_have_what_such_logs_are_full_of(tmp_path: Path) -> None:
    lines = logs.write(tmp_path, 200_000)
    read = read_plain([tmp_path])
    assert sum(file.lines for file in read.files) == lines
    assert {file.writer for file in read.files} == {"java-server", "java-client-4.9"}
    assert {"channel_active", "registered", "route_error", "heartbeat"} <= {row.event for row in read.rows}
    assert sum(file.not_understood for file in read.files) > 0
    assert all(file.understood > file.not_understood for file in read.files)


@pytest.mark.nightly
@pytest.mark.spark
def test_each_reader_has_its_figure_and_sparks_is_judged(spark: SparkSession) -> None:
    console = Console(record=True, width=200)
    figures = logs.run(400_000, spark=spark, console=console)
    assert set(figures.rows[logs.WHAT]) >= {"a loop over lines in Python", "one process, events in memory", logs.READER}
    assert min(figures.rows[logs.WHAT].values()) > 0
    assert [aim.at_least for aim in figures.aims] == [logs.WANTED_PER_S]
    assert "0 MB" in console.export_text()
