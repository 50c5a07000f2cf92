"""No check finds anything in right nodes, whatever happens to them: some random scenarios, and what these are."""

from pathlib import Path

import pytest

from nemesrv.chaos.experiment.harness import Harness
from nemesrv.chaos.faults.kinds import FAULTS
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import fixed, load, shipped
from nemesrv.chaos.shapes import SHAPES

from . import random_everything, random_scenarios
from .random_scenarios import random_scenario, takes_one_topic_for_all, told, wrong


@pytest.mark.nightly_but("1")
@pytest.mark.parametrize("seed", range(6))
def test_no_check_says_invalid_of_a_random_scenario(tmp_path: Path, seed: int) -> None:
    assert wrong(seed, tmp_path) == [], told(random_scenario(seed))


def test_what_a_name_server_of_4_9_does_wrong_by_itself_is_told_apart(tmp_path: Path) -> None:
    incident = shipped("incidents")["i07-topic-before-the-first-tick"]
    folders = [
        record_virtual(scenario, 1, tmp_path / scenario.cluster.profile).path
        for scenario in (load(incident), fixed(incident))
    ]
    assert [takes_one_topic_for_all(read_rows(folder)) for folder in folders] == [True, False]


def test_the_seeds_make_sound_scenarios_of_everything() -> None:
    made = [random_everything.random_scenario(seed) for seed in range(60)]
    assert random_everything.random_scenario(7) == made[7]
    steps = [step for scenario in made for step in scenario.timeline]
    done = {step.do for step in steps}
    assert {*FAULTS} <= done
    assert done > {
        "heal",
        "rolling_restart",
        "restart_storm",
        "name_server_list",
        "register",
        "clock_step",
        "fill_disk",
    }
    shapes = {link.split()[0] for step in steps for link in step.links} & set(SHAPES)
    assert len(shapes) > len(SHAPES) / 2
    assert any(scenario.topology().slaves for scenario in made)
    assert len({name for scenario in made for own in scenario.config.values() for name in own}) > 30


@pytest.mark.nightly("test_no_check_says_invalid_of_a_random_scenario")
@pytest.mark.e2e
@pytest.mark.ray
@pytest.mark.toxiproxy
@pytest.mark.timeout(1800)
def test_none_says_so_of_everything_in_real_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_scenarios, "random_scenario", random_everything.random_scenario)
    with Harness() as harness:
        for seed in (0, 1, 2, 6, 12):
            assert random_scenarios.wrong(seed, tmp_path, harness) == [], seed
