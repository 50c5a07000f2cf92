"""A run folder judged from end to end, and the ways in which judging itself can fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nemesrv.actors.processes import FOLDER_PREFIX
from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.history import rows as history
from nemesrv.chaos.verdict import Validity, Verdict
from tests import generate
from tests.chaos.builder import cluster
from tests.ran import ran

pytestmark = pytest.mark.spark

SMALL = cluster(clients=["producer-0", "consumer-0"]).end(60)


def test_a_healthy_run_of_real_size_passes_every_check(spark: Any, tmp_path: Path) -> None:
    from nemesrv.chaos.checks.spark.judge import check_run

    generate.write(tmp_path, events=50_000, seed=2)
    verdicts = check_run(tmp_path, CHECKS, spark)
    assert [(verdict.name, verdict.verdict, verdict.why) for verdict in verdicts] == [
        (name, Validity.VALID, "") for name in CHECKS
    ]
    assert all(verdict.examined for verdict in verdicts)


def test_a_failed_check_is_unknown_and_alone(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nemesrv.chaos.checks.plain import verdicts
    from nemesrv.chaos.checks.spark.judge import check_run

    def broken(*_: object) -> Verdict:
        raise ValueError("a bug in the check")

    monkeypatch.setattr(
        verdicts, "CHECKS", {**CHECKS, "routes_converge": replace(CHECKS["routes_converge"], judge=broken)}
    )
    history.write_parquet(SMALL.rows, tmp_path)
    first, second = check_run(tmp_path, ["routes_converge", "no_acknowledged_loss"], spark)
    assert (first.verdict, first.why) == (Validity.UNKNOWN, "the check failed: ValueError: a bug in the check")
    assert (second.verdict, second.why) == (Validity.UNKNOWN, "no send was acknowledged")


def test_one_count_of_the_processes_tells_the_events_and_the_last_time_of_a_history(spark: Any, tmp_path: Path) -> None:
    from nemesrv.chaos.checks.spark.parts import gather

    rows = [row for row in SMALL.rows if row["event"] != "run_end"]
    history.write_parquet(rows, tmp_path)
    spread, world = gather(spark.read.parquet(str(tmp_path / "history")))
    assert spread.events == {row["event"] for row in rows}
    assert world.end_ms == max(row["time_ms"] for row in rows)


def test_of_thousands_of_spans_each_row_is_read_that_lasted_into_one(spark: Any) -> None:
    from nemesrv.chaos.checks.plain.part import Span
    from nemesrv.chaos.checks.spark.parts import _within

    known = [
        ("consumer-0", 2.9, 0.6),
        ("consumer-0", 2.9, None),
        ("consumer-1", 2.9, 0.6),
        ("consumer-0", 4_000.2, None),
    ]
    rows = spark.createDataFrame(known, "node string, time_ms double, duration_ms double")
    spans = {Span("consumer-0", at_ms, at_ms + 0.4) for at_ms in map(float, range(5_000))}
    assert sorted(map(tuple, _within(rows, spans).collect())) == [known[0], known[3]]
    assert _within(rows, ()).collect() == []


def test_a_query_that_spark_ends_is_one_line(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import functions as F

    from nemesrv.chaos.checks.spark import judge as spark_module

    too_much = F.expr("raise_error('more than may be returned')")
    monkeypatch.setattr(spark_module, "gather", lambda history, **_: history.select(too_much).toArrow())
    history.write_parquet(SMALL.rows, tmp_path)
    with pytest.raises(HarnessError, match=r"Spark ended a query while it judged: .*more than may be returned.*: what"):
        spark_module.check_run(tmp_path, ["routes_converge"], spark)


def test_of_what_java_threw_the_first_cause_is_told() -> None:
    from py4j.protocol import Py4JJavaError

    from nemesrv.chaos.checks.spark.judge import _thrown

    class Thrown:
        def __init__(self, message: str, cause: Thrown | None = None) -> None:
            self.getMessage, self.getCause = (lambda: message), (lambda: cause)
            self._target_id, self._gateway_client = "o1", None

    first = Thrown("Total size of serialized results is bigger than spark.driver.maxResultSize\n\tat Task.run")
    wrapped = Py4JJavaError("An error occurred", Thrown("Exception thrown in awaitResult: ", first))
    assert _thrown(wrapped) == "Total size of serialized results is bigger than spark.driver.maxResultSize"


JUDGED_BY_A_DYING_JVM = """
import os, signal, sys
from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.checks.spark import judge
from nemesrv.chaos.checks.spark.session import jvm_pid, session
def dies(history, *_):
    os.kill(jvm_pid(), signal.SIGKILL)
    history.count()
judge.check_history = dies
try:
    judge.check_run(sys.argv[1], ["order_kept"], session())
except HarnessError as exc:
    print(exc)
"""


@pytest.mark.nightly("test_a_query_that_spark_ends_is_one_line")
def test_a_jvm_that_dies_is_a_harness_failure_and_no_verdict(tmp_path: Path) -> None:
    history.write_parquet(SMALL.rows, tmp_path)
    temporary = tmp_path / "tmp"
    (temporary / f"{FOLDER_PREFIX}{ended_pid()}-spark-x").mkdir(parents=True)
    done = ran(
        [sys.executable, "-c", JUDGED_BY_A_DYING_JVM, str(tmp_path)], env={**os.environ, "TMPDIR": str(temporary)}
    )
    assert re.fullmatch(
        rf"Spark's JVM \(pid \d+\) was killed by SIGKILL while it judged: what was recorded is kept, so judge it again "
        rf"with `nemesrv check {tmp_path}`\n",
        done.stdout,
    ), done.stderr
    assert list(temporary.iterdir()) == [], "neither of this JVM nor of one whose harness was killed"


def ended_pid() -> int:
    """A pid that no process has."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    return ended.pid
