"""The random scenarios of everything at once can be made, and all that the language can say comes up."""

from nemesrv.chaos.faults.kinds import FAULTS
from nemesrv.chaos.shapes import SHAPES

from .random_everything import random_scenario


def test_the_seeds_make_sound_scenarios_with_some_of_everything() -> None:
    made = [random_scenario(seed) for seed in range(60)]
    assert random_scenario(7) == made[7]
    steps = [step for scenario in made for step in scenario.timeline]
    done = {step.do for step in steps}
    assert {*FAULTS} <= done
    assert done > {"heal", "rolling_restart", "restart_storm", "name_server_list", "register", "update_topic"}
    assert done > {"wipe_write_perm", "clock_step", "remove", "fill_disk"}
    assert any(step.period_s for step in steps)
    assert any(getattr(step.what, "new_address", False) for step in steps)
    assert any(node.startswith(("producer", "consumer")) for step in steps for node in step.nodes)
    heals = [step for step in steps if step.do == "heal"]
    assert any(step.links for step in heals)
    assert any(getattr(step.what, "faults", ()) for step in heals)
    shapes = {link.split()[0] for step in steps for link in step.links} & set(SHAPES)
    assert len(shapes) > len(SHAPES) / 2
    nodes = [node for scenario in made for node in scenario.nodes.values()]
    assert any(node.joins_at_s for node in nodes)
    assert any(node.client_profile for node in nodes)
    assert any(node.cluster_name for node in nodes)
    assert {"payments"} <= {node.topic for node in nodes}
    assert {"audit"} <= {node.group for node in nodes}
    assert any(node.joins_at_s for scenario in made for name, node in scenario.nodes.items() if name.startswith("ns-"))
    assert any(node.in_order and node.later_orders for node in nodes)
    assert any(scenario.topology().slaves for scenario in made)
    assert any(len(scenario.topics()) > 1 for scenario in made)
    assert any(scenario.phases for scenario in made)
    assert any(scenario.zones for scenario in made)
    assert any(own.get("enableSlaveActingMaster") for scenario in made for own in scenario.config.values())
    assert len({name for scenario in made for own in scenario.config.values() for name in own}) > 30
