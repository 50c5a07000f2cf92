"""The hand-written histories of these tests, which are judged plainly, are judged by Spark, too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.builder import BY_SPARK_TOO

HERE = Path(__file__).parent
FILES = (
    "clients/test_dead_brokers_avoided.py",
    "messages/test_duplicates.py",
    "service/test_exercised.py",
    "messages/test_order_kept.py",
)


@pytest.mark.spark
def test_spark_comes_to_the_same_in_every_history_that_is_told_here() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not spark"]
    files = [str(HERE / name) for name in (*FILES, "service/test_prompt_answers.py")]
    done = subprocess.run(
        [*command, *files], env={**os.environ, BY_SPARK_TOO: "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_histories_of_those_files_are_judged_where_that_can_be_asked() -> None:
    assert [name for name in FILES if ".judged(CHECK" not in (HERE / name).read_text(encoding="utf-8")] == []
