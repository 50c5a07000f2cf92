"""The widened random scenarios can be made, and some of everything comes up."""

from .random_language import random_scenario


def test_the_seeds_make_sound_scenarios_with_some_of_everything() -> None:
    made = [random_scenario(seed) for seed in range(40)]
    assert random_scenario(7) == made[7]
    assert any(scenario.config for scenario in made)
    nodes = [node for scenario in made for node in scenario.nodes.values()]
    assert any(node.joins_at_s for node in nodes)
    assert any(node.name_servers for node in nodes)
    assert any(node.cluster_name for node in nodes)
    assert any(len(scenario.topics()) > 1 for scenario in made)
    assert any(node.topic == "payments" for node in nodes)
    assert any(node.group == "audit" for node in nodes)
    assert any(scenario.phases for scenario in made)
    assert any(node.joins_at_s for scenario in made for name, node in scenario.nodes.items() if name.startswith("ns-"))
    assert any(action.do == "remove" for scenario in made for action in scenario.timeline)
    assert any(action.do == "name_server_list" for scenario in made for action in scenario.timeline)
    assert any(scenario.zones for scenario in made)
    assert any(scenario.topology().slaves for scenario in made)
