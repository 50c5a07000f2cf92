"""The random timelines of what happens to links and processes can be made, and some of every action comes up."""

from __future__ import annotations

from nemesrv.chaos.shapes import SHAPES

from .random_actions import random_scenario, told


def test_the_seeds_make_sound_timelines_with_some_of_everything() -> None:
    made = [random_scenario(seed) for seed in range(60)]
    assert random_scenario(7) == made[7]
    steps = [step for scenario in made for step in scenario.timeline]
    done = {step.do for step in steps}
    assert done >= {"half_open", "syn_drop", "rolling_restart", "restart_storm", "heal", "kill", "pause", "packet_loss"}
    assert any(step.period_s for step in steps)
    assert any(node.startswith("producer") for step in steps for node in step.nodes)
    heals = [step for step in steps if step.do == "heal"]
    assert any(step.links for step in heals)
    assert any(getattr(step.what, "faults", ()) for step in heals)
    words = {link.split()[0] for step in steps for link in step.links}
    assert words >= set(SHAPES) - {"zones"}
    assert all(told(scenario) for scenario in made)
