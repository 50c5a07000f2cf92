"""What flaps, rolling restarts and restart storms: what they become."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario

PLANNED = yaml.safe_load(Path(__file__).with_name("planned.yaml").read_text(encoding="utf-8"))
LINK = {"links": ["broker-a <-> ns-0"]}
STORM: dict[str, Any] = {"at_s": 50, "do": "restart_storm", "nodes": ["name_servers"]}


def scenario(*timeline: dict[str, Any], **more: Any) -> Scenario:
    return parse({"checks": ["routes_are_true"], "timeline": list(timeline), **more}, file="x.yaml")


def planned(*timeline: dict[str, Any], seed: int | None = 1) -> list[tuple[float, str, tuple[str, ...]]]:
    return [(one.at_s, one.action.do, one.action.nodes) for one in scenario(*timeline).plan(seed).actions]


@pytest.mark.parametrize("what", PLANNED)
def test_entries_become_what_is_said_of_them(what: str) -> None:
    said = PLANNED[what]
    found = scenario(*said["timeline"])
    assert said.get("entries") in (None, [f"{entry.at_s:g} {entry.summary}" for entry in found.timeline])
    plan = [" ".join((f"{at_s:g}", do, *nodes)) for at_s, do, nodes in planned(*said["timeline"])]
    assert said.get("plan") in (None, plan)


def test_what_flaps_for_a_time_has_turns_that_end_with_it_and_is_named_as_it_was() -> None:
    flaps = {"at_s": 20, "do": "cut", "name": "loose", "period_s": 10, "duty": 0.3, "for_s": 40, **LINK}
    found = scenario(flaps)
    assert (found.timeline[-1].at_s, found.timeline[-1].summary) == (60, "heal loose")
    lasted = [(fault.start_ms / 1000, fault.end_ms / 1000) for fault in expected_world(found).world.faults]
    assert lasted == [(20, 23), (30, 33), (40, 43), (50, 53)]


def test_a_storm_is_the_seeds_own_and_explain_without_one_says_so() -> None:
    storm = {"at_s": 20, "do": "restart_storm", "nodes": ["brokers", "ns-0"], "restarts": 6, "for_s": 30, "down_s": 4}
    one = planned(storm)
    assert one == planned(storm)
    assert one != planned(storm, seed=2)
    kills = [(at_s, nodes) for at_s, do, nodes in one if do == "kill"]
    assert all(20 <= at_s <= 50 for at_s, _ in kills)
    assert all((at_s + 4, "restart", nodes) in one for at_s, nodes in kills), "and each is back 4 s later"
    assert expected_world(scenario(storm)).unknown == ("restart_storm of brokers, ns-0 at 20 s, which the seed draws",)


def test_a_restart_storm_keeps_its_own_time() -> None:
    assert [do for _, do, _ in planned({**STORM, "for_s": 20, "restarts": 1})] == ["kill", "restart"]
