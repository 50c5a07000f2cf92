"""A restart with another implementation or at another address: which process of a node is what."""

from functools import partial
from typing import Any

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


# -- NameServers at another address

MOVES = {"at_s": 60, "do": "restart", "nodes": ["ns-0"], "new_address": True}
ALL = ["ns-0", "ns-1", "ns-2"]
FEW = {"producers": 1, "consumers": 1, "sends_per_s": 1, "client_starts": 0}


def of_entries(*timeline: dict[str, Any], by_http: bool = False, **document: Any) -> Scenario:
    cluster = {"name_servers": 3, "brokers": 2, **({"name_server_list": ALL} if by_http else {})}
    rest = {"cluster": cluster, "workload": FEW, "timeline": [*timeline], "settle_s": 340}
    return parse({"checks": ["routes_are_true"], **rest, **document}, file="x.yaml")


def told(found: Scenario) -> list[tuple[float, str, tuple[str, ...]]]:
    return [(entry.at_s, entry.do, entry.nodes or entry.links) for entry in found.timeline]


def test_it_is_one_that_is_removed_and_another_that_nobody_lists() -> None:
    found = of_entries({"at_s": 20, "do": "kill", "nodes": ["ns-0", "broker-a"]}, MOVES)
    assert told(found)[:2] == [(20, "kill", ("broker-a",)), (20, "remove", ("ns-0",))]
    assert found.nodes["ns-3"].joins_at_s == 60
    assert {found.nodes[one].name_servers for one in ("broker-a", "producer-0", "consumer-0")} == {tuple(ALL)}
    assert parse(found.model_dump(mode="json"), file="again.yaml") == found


def test_what_is_said_of_it_later_is_said_of_the_new_one() -> None:
    found = of_entries(
        MOVES,
        {"at_s": 70, "do": "black_hole", "links": ["broker-a <-> ns-0"]},
        {"at_s": 80, "do": "heal"},
        {"at_s": 90, "do": "name_server_list", "name_servers": ALL},
        by_http=True,
    )
    assert told(found)[:2] == [(60, "remove", ("ns-0",)), (70, "black_hole", ("broker-a <-> ns-3",))]
    assert found.timeline[-1].what.model_dump()["name_servers"] == ("ns-3", "ns-1", "ns-2")
    assert "broker-a" not in found.nodes


def test_a_rolling_restart_moves_each_in_turn() -> None:
    rolled = {"at_s": 30, "do": "rolling_restart", "nodes": ["name_servers"], "pause_s": 20, "new_address": True}
    found = of_entries({**rolled, "down_s": 5})
    assert told(found)[:3] == [(30, "remove", ("ns-0",)), (55, "remove", ("ns-1",)), (80, "remove", ("ns-2",))]
    assert {name: found.nodes[name].joins_at_s for name in ("ns-3", "ns-4", "ns-5")} == {
        "ns-3": 35,
        "ns-4": 60,
        "ns-5": 85,
    }
