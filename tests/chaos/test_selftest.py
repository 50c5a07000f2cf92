"""A few planted defects, run on the virtual clock and judged by every check; the whole table is `make selftest`."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nemesrv.chaos.defects import DEFECTS
from nemesrv.chaos.judging import Judged, of_run
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.selftest import Outcome, plan_of, scenario_of
from nemesrv.chaos.spark.judge import check_run
from nemesrv.chaos.verdict import Validity
from tests.chaos.checkers.consistency import contradictions

pytestmark = pytest.mark.spark

FEW = ("broker-answers-oneway", "name-server-expires-the-living")
"""In one scenario, the shortest."""


@pytest.mark.parametrize(
    ("defect", "scenario"), [(defect and defect.name, scenario) for defect, scenario in plan_of(FEW)]
)
def test_a_planted_defect_is_killed_and_its_clean_twin_is_clean(
    defect: str | None, scenario: str, spark: SparkSession, tmp_path: Path
) -> None:
    planted, made = DEFECTS.get(defect or ""), scenario_of(scenario)
    folder = record_virtual(made, 1, tmp_path / "run", planted)
    verdicts = check_run(folder.path, made.checks, spark)
    outcome = Outcome.of(Judged(of_run(folder, made), verdicts), planted)
    assert (outcome.result, outcome.found & outcome.meant) == ("killed" if planted else "clean", outcome.meant)
    assert [text for verdict in verdicts for text in contradictions(verdict)] == []


@pytest.mark.parametrize(
    ("defect", "scenario"), [(defect and defect.name, scenario) for defect, scenario in plan_of(DEFECTS)]
)
def test_no_verdict_on_a_defect_or_its_clean_twin_contradicts_its_own_figures(
    defect: str | None, scenario: str, spark: SparkSession, tmp_path: Path
) -> None:
    made = scenario_of(scenario)
    folder = record_virtual(made, 1, tmp_path / "run", DEFECTS.get(defect or ""))
    verdicts = check_run(folder.path, made.checks, spark)
    assert [text for verdict in verdicts for text in contradictions(verdict)] == []
    assert [str(v.verdict) for v in verdicts if v.verdict is Validity.INVALID] or defect is None
