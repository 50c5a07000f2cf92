"""Each check's planted defect: every link of an example leads to a lane and a stretch that contain the event."""

from pathlib import Path
from urllib.parse import parse_qs

import pytest
from pyspark.sql import SparkSession

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.check import Group
from nemesrv.chaos.checks.spark.judge import check_run
from nemesrv.chaos.proof.defects import DEFECTS, Defect
from nemesrv.chaos.proof.selftest import scenario_of
from nemesrv.chaos.reports.html import Run, RunToDraw
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.verdict import Example, Validity

pytestmark = pytest.mark.spark

CAN_BE_WRONG = sorted(name for name, check in CHECKS.items() if check.group is not Group.EXERCISED)
NEAR_MS = 1.0
"""A link says milliseconds, a finding tenths of them."""


def planted_for(check: str) -> Defect:
    """The first that this check alone must find, else the first that it must."""
    found = [defect for defect in DEFECTS.values() if check in defect.caught_by]
    return next((defect for defect in found if defect.caught_by == {check}), found[0])


@pytest.mark.nightly_but("no_false_eviction", "routes_converge")  # in the shortest scenarios
@pytest.mark.parametrize("check", CAN_BE_WRONG)
def test_every_link_leads_to_a_lane_and_a_time_of_the_event(check: str, spark: SparkSession, tmp_path: Path) -> None:
    defect = planted_for(check)
    folder = record_virtual(scenario_of(defect.scenario), 1, tmp_path / "run", defect)
    verdict, *_ = check_run(str(folder.path), (check,), spark)  # others may join it
    assert verdict.verdict is Validity.INVALID
    assert verdict.examples
    told = RunToDraw(Run(name=check), [verdict], folder.path)
    assert told.defect == defect.name
    for example, place in zip(told.verdicts[0].examples, told.of_examples[check], strict=True):
        follow(told, example, CHECKS[check].accused(example), place.link())
    first = told.verdicts[0].examples[0]
    follow(told, first, CHECKS[check].accused(first), told.of_verdict[check].link())


def follow(told: RunToDraw, example: Example, node: str, link: str) -> None:
    """The link leads to a lane of the guilty node where what is drawn as over contains the event."""
    where = parse_qs(link.removeprefix("#"))
    from_ms, to_ms = (float(second) * 1000 for second in where["at"][0].split(","))
    (lane,) = [lane for lane in told.shown[where["in"][0]] if lane.key == where["lane"][0]]
    assert not node or f"/{node}/" in f"/{lane.key}/"  # a slave is called broker-a/1
    assert example.from_ms is not None
    begins_ms = example.from_ms
    ends_ms = min(begins_ms if example.to_ms is None else max(example.to_ms, begins_ms), told.world.end_ms)
    assert from_ms - NEAR_MS <= begins_ms <= ends_ms <= to_ms + NEAR_MS
    over = [w for w in lane.windows if w.kind == "over"]
    assert any(w.start_ms - NEAR_MS <= begins_ms <= ends_ms <= w.end_ms + NEAR_MS for w in over)
    assert told.start_ms <= begins_ms <= told.end_ms
