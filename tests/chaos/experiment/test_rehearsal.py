"""A planted defect that never acts is found out before the run, and the run is not VALID."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos import runner
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.experiment import rehearsal
from nemesrv.chaos.experiment.experiment import Experiment
from nemesrv.chaos.experiment.harness import Harness
from nemesrv.chaos.experiment.run_folder import RunFolder
from nemesrv.chaos.experiment.virtual.stage import VirtualStage
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.proof.defects import DEFECTS, Defect
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.topology import NodeKind

QUIET = {
    "checks": ["routes_converge"],
    "steady_s": 5,
    "settle_s": 5,
    "workload": {"client_starts": 0, "sends_per_s": 1},
}
PAUSED = [{"at_s": 5, "do": "pause", "nodes": ["broker-a"]}, {"at_s": 160, "do": "resume", "nodes": ["broker-a"]}]


def scenario(**more: Any) -> Scenario:
    return parse({**QUIET, **more}, file="mine.yaml")


def test_a_defect_that_changes_nothing_never_acts_and_a_real_run_is_rehearsed_as_well() -> None:
    nothing = Defect(name="nothing", what="", kinds=(NodeKind.BROKER,), plant=lambda _broker: None, source=Path("x"))
    assert not rehearsal.acts(nothing, scenario(timers={"time_scale": 0.1}), 1)


@pytest.mark.parametrize(("timeline", "recorded"), [(PAUSED, 1), ([], 2)])
def test_on_the_virtual_clock_a_run_is_its_own_rehearsal_and_once_more_recorded_where_its_defect_never_acts(
    timeline: list[dict[str, Any]], recorded: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[bool] = []

    def record(*words: Any, defect_acts: bool = True) -> None:
        said.append(defect_acts)
        recording(*words, defect_acts=defect_acts)

    recording = runner.record
    monkeypatch.setattr(runner, "record", record)
    monkeypatch.setattr(runner, "judge", lambda history, _engine, _spark, _say: history)
    options = runner.Options(seed=1, virtual=True, out=tmp_path / "run", quiet=True, defect="name-server-never-expires")
    runner.run_one(scenario(timeline=timeline), options, Harness())
    assert said == [True, False][:recorded]
    rows = read_rows(tmp_path / "run")
    assert [row["event"] for row in rows].count("run_begin") == 1
    assert [row["value"]["f"] for row in rows if row["event"] == "not_done"] == ["defect"] * (recorded - 1)


def test_a_users_defect_that_cannot_be_planted_is_a_wrong_input_and_no_failed_harness(tmp_path: Path) -> None:
    (mine := tmp_path / "mine.py").write_text('NODES = ["ns-0"]\ndef plant(node): node.config.nothing\n')
    options = runner.Options(seed=1, virtual=True, out=tmp_path / "run", quiet=True, defect=str(mine))
    with pytest.raises(ScenarioError, match=r"--defect: plant\(node\) of .*mine.py, line 2: AttributeError"):
        runner.run_one(scenario(), options, Harness())


@pytest.mark.parametrize("acts", [True, False])
def test_the_history_says_of_a_defect_that_it_never_acts(acts: bool, tmp_path: Path) -> None:
    defect, folder = DEFECTS["name-server-never-expires"], RunFolder.create("mine", tmp_path / "run")
    mine = scenario(timeline=[{"at_s": 1, "do": "cut", "links": ["broker-a <-> ns-1"], "for_s": 1}])
    Experiment(scenario=mine, seed=1, folder=folder, stage=VirtualStage(), defect=defect, defect_acts=acts).run()
    said = [(row["source"], row["value"]) for row in read_rows(folder.path) if row["event"] == "not_done"]
    why = (
        "the planted defect name-server-never-expires changes nothing in this scenario: without the defect, every row "
        "is the same (seed 1). The defect is in ns-0; the timeline acts on broker-a <-> ns-1. Checks find the defect "
        f"with this command: {defect.command}"
    )
    assert said == ([] if acts else [("harness", {"f": "defect", "why": why})])
