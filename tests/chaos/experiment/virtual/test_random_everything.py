"""The random scenarios of everything at once can be made, and all that the language can say comes up."""

from pathlib import Path

import pytest

from nemesrv.chaos.experiment.harness import Harness
from nemesrv.chaos.faults.kinds import FAULTS
from nemesrv.chaos.shapes import SHAPES

from . import random_scenarios
from .random_everything import random_scenario


def test_the_seeds_make_sound_scenarios_with_some_of_everything() -> None:
    made = [random_scenario(seed) for seed in range(60)]
    assert random_scenario(7) == made[7]
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


@pytest.mark.nightly(
    "chaos/experiment/virtual/test_random_scenarios.py::test_no_check_says_invalid_of_a_random_scenario"
)
@pytest.mark.e2e
@pytest.mark.ray
@pytest.mark.toxiproxy
@pytest.mark.timeout(1800)
def test_no_check_says_invalid_of_them_in_real_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_scenarios, "random_scenario", random_scenario)
    with Harness() as harness:
        for seed in (0, 1, 2, 6, 12):
            assert random_scenarios.wrong(seed, tmp_path, harness) == [], seed
