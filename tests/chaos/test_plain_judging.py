"""What is judged without Spark comes to the same as with it: whole runs in which brokers and NameServers are lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks.plain.verdicts import verdicts
from nemesrv.chaos.checks.spark.judge import check_run
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.model import CHECK_NAMES
from tests.chaos.builder import said
from tests.chaos.experiment.virtual.random_scenarios import random_scenario


@pytest.mark.spark
@pytest.mark.parametrize("seed", [9027, 9061])
def test_a_check_says_the_same_without_spark(spark: Any, tmp_path: Path, seed: int) -> None:
    record_virtual(random_scenario(seed), seed, tmp_path)
    plain = {verdict.name: said(verdict) for verdict in verdicts(tmp_path)}
    assert plain == {verdict.name: said(verdict) for verdict in check_run(tmp_path, sorted(plain), spark)}
    assert {*CHECK_NAMES} == plain.keys()
