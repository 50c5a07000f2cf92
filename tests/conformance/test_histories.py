"""Each stand's history is one that the checks of any run read: the clean twin is VALID, a sabotaged client is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesrv.chaos.checks import CHECKS
from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.scenarios.loading import load
from nemesrv.chaos.verdict import Verdict
from nemesrv.conformance.histories import write_histories
from nemesrv.conformance.scene import ConformPlan
from nemesrv.conformance.subject import Program
from nemesrv.remoting.node.profile import Profile
from tests.conformance.memory import put_through
from tests.conformance.sabotage import DEFECTS, Defect
from tests.conformance.story import Story

CHECK = "name_server_selection"
OF = {Profile.V4_9: "java-4.9", Profile.V5_X: "java-5.3"}
SITUATIONS = {
    Profile.V4_9: ("refused", "syn_dropped", "one_unreachable", "all_gone"),
    Profile.V5_X: ("silent", "closes_each", "broker_killed", "consumer_dies"),
}


def judged(name: str, folder: Path, profile: Profile, defect: Defect | None = None) -> Verdict:
    watched = put_through(name, folder / "data", profile=profile, plant=defect.plant if defect else None)
    (run_dir,) = write_histories(watched, ConformPlan(program=Program(("x",)), profile=profile), OF[profile], folder)
    rows = read_rows(run_dir)
    return CHECKS[CHECK].judge(Control.of_rows(rows), World.of_rows(rows))


@pytest.mark.parametrize(
    ("profile", "name"), [(profile, name) for profile in SITUATIONS for name in SITUATIONS[profile]]
)
def test_the_clean_twin_is_valid(profile: Profile, name: str, tmp_path: Path) -> None:
    verdict = judged(name, tmp_path, profile)
    assert (str(verdict.verdict), verdict.violations) == ("VALID", 0), verdict
    assert verdict.examined > 0


@pytest.mark.parametrize("defect", ["leaves-once", "leaves-on-code-1"])
def test_a_client_that_leaves_who_answers_is_invalid(defect: str, tmp_path: Path) -> None:
    planted = DEFECTS[defect]
    verdict = judged(planted.situations[0], tmp_path, planted.profile, planted)
    assert str(verdict.verdict) == "INVALID"
    assert "sticky" in verdict.why


def test_a_stand_s_folder_says_what_it_is(tmp_path: Path) -> None:
    plan = ConformPlan(program=Program(("x",)), seed=7)
    watched = [Story("refused").ask("ns-0", 0.1).watched(), Story("starts").watched(), Story("list_changes").watched()]
    (run_dir,) = write_histories(watched, plan, "no profile of ours", tmp_path)
    assert run_dir == tmp_path / "stands" / "refused"
    scenario = load(run_dir / "scenario.yaml")
    assert (scenario.name, scenario.seed, scenario.checks) == ("conform-refused", 7, (CHECK,))
    rows = read_rows(run_dir)
    assert {row["event"] for row in rows} >= {"run_begin", "run_end", "name_server_list", "name_server_chosen"}
    assert [row["time_ms"] for row in rows] == sorted(row["time_ms"] for row in rows)
    world = World.of_rows(rows)
    assert [node.name for node in world.of_kind("name_server")] == ["ns-0", "ns-1", "ns-2"]
    assert [node.client_profile for node in world.of_kind("producer")] == ["java-4.9"]
