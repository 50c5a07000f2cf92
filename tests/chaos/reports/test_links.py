"""Each check's planted defect: every link of an example leads to a lane and a stretch that contain the event."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from pyspark.sql import SparkSession

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.spark.judge import check_run
from nemesrv.chaos.proof.defects import DEFECTS
from nemesrv.chaos.proof.selftest import scenario_of
from nemesrv.chaos.reports.html import Run, RunToDraw
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.verdict import Example, Validity

pytestmark = pytest.mark.spark

PLANTED: Mapping[str, str] = {
    "answers_are_true": "name-server-answers-code-1",
    "answers_asked_for": "broker-answers-oneway",
    "availability": "client-clears-routes-on-17",
    "client_routes_are_true": "client-takes-no-broker-back",
    "commits_follow_work": "consumer-commits-older-offsets",
    "dead_brokers_avoided": "producer-ignores-new-routes",
    "dead_name_servers_left": "client-is-too-patient",
    "done_by_hand": "name-server-takes-out-nobody",
    "duplicates": "consumer-delivers-twice",
    "living_are_used": "producer-never-uses-a-broker",
    "messages_delivered": "consumer-skips-messages",
    "name_server_selection": "client-skips-an-entry",
    "no_acknowledged_loss": "producer-calls-failures-sent",
    "no_false_eviction": "name-server-expires-the-living",
    "no_resurrection": "name-server-brings-back-the-dead",
    "one_master": "slave-registers-as-master",
    "order_kept": "consumer-delivers-out-of-order",
    "prompt_answers": "broker-acknowledges-late",
    "queue_ownership": "consumer-takes-all-queues",
    "recovery_time": "producer-gives-up-after-a-failure",
    "registrations_are_kept": "name-server-expires-late",
    "routes_are_true": "name-server-never-expires",
    "routes_as_registered": "name-servers-keep-another-permission",
    "routes_converge": "name-server-counts-a-queue-less",
    "timers_kept": "client-polls-late",
}
FEW = ("answers_asked_for", "no_false_eviction", "routes_converge")
"""In the shortest scenarios; the others are nightly."""
NEAR_MS = 1.0
"""A link says milliseconds, a finding tenths of them."""


def test_every_check_that_can_be_wrong_has_a_planted_defect_here() -> None:
    assert {*PLANTED, "exercised"} == set(CHECKS)
    assert all(check in DEFECTS[defect].caught_by for check, defect in PLANTED.items())


@pytest.mark.parametrize(
    "check", [name if name in FEW else pytest.param(name, marks=pytest.mark.nightly) for name in sorted(PLANTED)]
)
def test_every_link_leads_to_a_lane_and_a_time_that_contain_the_event(
    check: str, spark: SparkSession, tmp_path: Path
) -> None:
    defect = DEFECTS[PLANTED[check]]
    folder = record_virtual(scenario_of(defect.scenario), 1, tmp_path / "run", defect)
    (verdict,) = check_run(str(folder.path), (check,), spark)
    assert verdict.verdict is Validity.INVALID
    assert verdict.examples
    told = RunToDraw(Run(name=check), [verdict], folder.path)
    assert told.defect == defect.name
    for example, place in zip(told.verdicts[0].examples, told.of_examples[check], strict=True):
        follow(told, example, place.link())
    follow(told, told.verdicts[0].examples[0], told.of_verdict[check].link())


def follow(told: RunToDraw, example: Example, link: str) -> None:
    """The link leads to a lane of the example's node where what is drawn as over contains the event."""
    where = parse_qs(link.removeprefix("#"))
    from_ms, to_ms = (float(second) * 1000 for second in where["at"][0].split(","))
    (lane,) = [lane for lane in told.shown[where["in"][0]] if lane.key == where["lane"][0]]
    assert example.who in lane.key.split("/") or not example.who
    assert example.from_ms is not None
    begins_ms = example.from_ms
    ends_ms = min(begins_ms if example.to_ms is None else max(example.to_ms, begins_ms), told.world.end_ms)
    assert from_ms - NEAR_MS <= begins_ms <= ends_ms <= to_ms + NEAR_MS
    over = [w for w in lane.windows if w.kind == "over"]
    assert any(w.start_ms - NEAR_MS <= begins_ms <= ends_ms <= w.end_ms + NEAR_MS for w in over)
    assert told.start_ms <= begins_ms <= told.end_ms
