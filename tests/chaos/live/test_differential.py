"""A few whole histories against the same in parts; `python -m tests.chaos.live.differential` does a thousand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from nemesrv.chaos.checkers import CHECKS
from nemesrv.chaos.history import to_table
from nemesrv.chaos.live.carry import TRAFFIC
from nemesrv.chaos.live.merge import MERGES
from nemesrv.chaos.spark import HISTORY_SCHEMA, check_history
from tests.chaos.live.differential import compare, differences
from tests.chaos.live.histories import random_history

pytestmark = pytest.mark.spark

MESSAGE_CHECKS = ("no_acknowledged_loss",)


@pytest.mark.parametrize("seed", range(3))
def test_parts_come_to_the_verdict_of_the_whole(spark: Any, tmp_path: Path, seed: int) -> None:
    found = compare(spark, seed, MESSAGE_CHECKS, tmp_path)
    assert found.differences == []
    assert found.verdicts.keys() == set(MESSAGE_CHECKS)


def test_checks_that_are_said_to_read_no_traffic_judge_the_same_without_it(spark: Any, tmp_path: Path) -> None:
    pq.write_table(to_table(random_history(3)), tmp_path / "history.parquet")
    history = spark.read.schema(HISTORY_SCHEMA).parquet(str(tmp_path)).coalesce(1)
    checks = [name for name in CHECKS if not MERGES[name].traffic]
    with_, without = (check_history(rows, checks) for rows in (history, history.where(~F.col("event").isin(*TRAFFIC))))
    assert checks
    assert with_ == without
    assert any(verdict.examined for verdict in with_)


def test_a_seed_always_makes_the_same_history() -> None:
    assert random_history(5) == random_history(5)
    assert random_history(5) != random_history(6)


def test_a_difference_is_told_in_words() -> None:
    from nemesrv.chaos.verdict import Validity, Verdict

    one = Verdict(name="routes_converge", verdict=Validity.VALID, examined=3)
    other = Verdict(name="routes_converge", verdict=Validity.INVALID, examined=3, violations=1, why="bad")
    assert differences(one, one) == []
    assert differences(one, other) == [
        "routes_converge: verdict is VALID and INVALID",
        "routes_converge: violations is 0 and 1",
        "routes_converge: why is  and bad",
    ]
