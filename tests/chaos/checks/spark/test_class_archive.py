"""The JVM of a small history starts with the archive of Spark's classes, and as well without one that it can use."""

import sys
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks.spark import settings
from nemesrv.chaos.checks.spark.session import jvm_pid
from tests.ran import ran


def test_a_session_has_the_archive_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "CLASSES", tmp_path / "classes.jsa")
    assert settings.class_options() == []
    settings.CLASSES.write_bytes(b"classes")
    assert settings.class_options() == [f"-XX:SharedArchiveFile={tmp_path / 'classes.jsa'}"]


_COUNT_BY_SPARK = """
import sys
from nemesrv.chaos.checks.spark.session import session, stop
spark = session(options=[f"-XX:SharedArchiveFile={sys.argv[1]}"])
print(spark.range(3).count())
stop(spark)
"""


@pytest.mark.nightly("test_a_session_has_the_archive_where_there_is_one")
@pytest.mark.spark
def test_a_jvm_starts_with_classes_that_it_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "classes.jsa").write_bytes(b"no classes at all")
    command = [sys.executable, "-c", _COUNT_BY_SPARK, str(tmp_path / "classes.jsa")]
    assert ran(command, check=True, timeout=300).stdout.split() == ["3"]


@pytest.mark.nightly("test_a_session_has_the_archive_where_there_is_one")
@pytest.mark.spark
def test_the_session_of_a_small_history_has_the_archive_that_set_up_made(spark: Any) -> None:
    if not settings.CLASSES.is_file():
        pytest.skip("no archive of Spark's classes: python -m tests.spark_classes makes it")
    assert settings.CLASSES.name in Path(f"/proc/{jvm_pid()}/maps").read_text()
