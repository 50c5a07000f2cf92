"""A restart with another implementation or at another address: which process of a node is what."""

from functools import partial

import yaml

from nemesrv.chaos.experiment import programs
from nemesrv.chaos.experiment.nodes import NodePlan
from nemesrv.chaos.scenarios.loading import find, parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.topology import NodeKind
from nemesrv.remoting.node.network import Address

BEGINS = "cluster: {name_servers: 2, brokers: 2, implementation: apache-4.9.7}\nchecks: [routes_are_true]\ntimeline:\n"
OURS = BEGINS.replace(", implementation: apache-4.9.7", "")
MOVE = "{at_s: 20, do: restart, nodes: [broker-a], new_address: true}"


def scenario(*steps: str, begins: str = BEGINS) -> Scenario:
    return parse(yaml.safe_load(begins + "".join(f"  - {step}\n" for step in steps)), file="s.yaml")


def test_each_process_of_a_node_is_what_the_last_restart_before_it_said() -> None:
    found = scenario(
        "{at_s: 20, do: rolling_restart, nodes: [name_servers], pause_s: 40, implementation: apache-5.3.3}",
        "{at_s: 120, do: restart, nodes: [ns-0]}",
        "{at_s: 130, do: kill, nodes: [broker-a]}",
        "{at_s: 140, do: restart, nodes: [broker-a]}",
        "{at_s: 200, do: restart, nodes: [broker-a], implementation: apache-5.3.3}",
    )
    assert found.upgrades() == {
        "ns-0": ("apache-4.9.7", "apache-5.3.3", "apache-5.3.3"),
        "ns-1": ("apache-4.9.7", "apache-5.3.3"),
        "broker-a": ("apache-4.9.7", "apache-4.9.7", "apache-5.3.3"),
    }
    assert parse(yaml.safe_load(found.to_yaml()), file="again.yaml").upgrades() == found.upgrades()


def test_a_restart_that_says_nothing_of_it_is_written_as_before() -> None:
    plain = scenario("{at_s: 20, do: restart, nodes: [ns-0]}", begins=OURS)
    assert plain.upgrades() == plain.addresses() == {}
    assert not any(key in plain.to_yaml().split("timeline:")[1] for key in ("implementation", "new_address"))


def test_a_node_s_factory_has_the_program_of_every_process() -> None:
    found = find("upgrade-servers")
    listen = {
        name: Address("127.0.0.1", 10_000 + 10 * number)
        for number, name in enumerate(found.topology().of(NodeKind.NAME_SERVER, NodeKind.BROKER))
    }
    plan = NodePlan(scenario=found, listen=listen, advertised=listen)
    for name, kind in (("ns-2", NodeKind.NAME_SERVER), ("broker-b", NodeKind.BROKER)):
        factory = plan.factory(name, kind)
        assert isinstance(factory, partial)
        assert factory.func is programs.in_turn
        assert {each.func for each in factory.args[0]} == {programs.apache_server}
        assert [each.args[0].implementation for each in factory.args[0]] == ["apache-4.9.7", "apache-5.3.3"]


def test_each_process_has_the_address_that_the_last_restart_before_it_gave() -> None:
    found = scenario(
        MOVE,
        "{at_s: 60, do: restart, nodes: [broker-a]}",
        "{at_s: 100, do: rolling_restart, nodes: [brokers], new_address: true}",
        begins=OURS,
    )
    assert found.addresses() == {
        "broker-a": ("broker-a", "broker-a@2", "broker-a@2", "broker-a@3"),
        "broker-b": ("broker-b", "broker-b@2"),
    }
    assert parse(yaml.safe_load(found.to_yaml()), file="again.yaml").addresses() == found.addresses()
