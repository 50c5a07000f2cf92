"""A restart at another address: which process of a node has which, and what is refused."""

import pytest
import yaml

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario

BEGINS = "cluster: {name_servers: 2, brokers: 2}\nchecks: [routes_are_true]\ntimeline:\n"
MOVE = "{at_s: 20, do: restart, nodes: [broker-a], new_address: true}"


def scenario(*steps: str, begins: str = BEGINS) -> Scenario:
    return parse(yaml.safe_load(begins + "".join(f"  - {step}\n" for step in steps)), file="s.yaml")


def test_each_process_has_the_address_that_the_last_restart_before_it_gave() -> None:
    found = scenario(
        MOVE,
        "{at_s: 60, do: restart, nodes: [broker-a]}",
        "{at_s: 100, do: rolling_restart, nodes: [brokers], new_address: true}",
    )
    assert found.addresses() == {
        "broker-a": ("broker-a", "broker-a@2", "broker-a@2", "broker-a@3"),
        "broker-b": ("broker-b", "broker-b@2"),
    }
    assert parse(yaml.safe_load(found.to_yaml()), file="again.yaml").addresses() == found.addresses()


def test_a_restart_that_says_nothing_of_it_is_written_as_before() -> None:
    plain = scenario("{at_s: 20, do: restart, nodes: [broker-a]}")
    assert plain.addresses() == {}
    assert "new_address" not in plain.to_yaml()


@pytest.mark.parametrize(
    ("steps", "key", "allowed"),
    [
        (
            ("{at_s: 20, do: restart, nodes: [producer-0], new_address: true}",),
            "timeline.0.new_address",
            "producer-0 is neither",
        ),
        (
            (MOVE, "{at_s: 60, do: restart_storm, nodes: [brokers], restarts: 3}"),
            "timeline.1.nodes",
            "only the seed tells",
        ),
        (
            (MOVE, "{at_s: 60, do: unregister, nodes: [ns-0], broker: broker-a}"),
            "timeline.1",
            "not about broker-a",
        ),
    ],
)
def test_what_would_lose_sight_of_it_is_refused(steps: tuple[str, ...], key: str, allowed: str) -> None:
    with pytest.raises(ScenarioError, match=allowed) as refused:
        scenario(*steps)
    assert refused.value.key == key


def test_it_is_for_programs_of_ours_alone() -> None:
    begins = "cluster: {name_servers: 2, brokers: 2, implementation: apache-5.3.3}\nchecks: [exercised]\ntimeline:\n"
    with pytest.raises(ScenarioError, match="all ours: ns-0 is not"):
        scenario(MOVE, begins=begins)
