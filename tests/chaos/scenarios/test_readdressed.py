"""NameServers that come back at another address: what a scenario says of one, and what it is then."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks.plain.verdicts import found_wrong
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import found_defect, parse
from nemesrv.chaos.scenarios.model import Scenario

MOVES = {"at_s": 60, "do": "restart", "nodes": ["ns-0"], "new_address": True}
ALL = ["ns-0", "ns-1", "ns-2"]
FEW = {"producers": 1, "consumers": 1, "sends_per_s": 1, "client_starts": 0}


def scenario(*timeline: dict[str, Any], by_http: bool = False, **document: Any) -> Scenario:
    cluster = {"name_servers": 3, "brokers": 2, **({"name_server_list": ALL} if by_http else {})}
    rest = {"cluster": cluster, "workload": FEW, "timeline": [*timeline], "settle_s": 340}
    return parse({"checks": ["routes_are_true"], **rest, **document}, file="x.yaml")


def told(found: Scenario) -> list[tuple[float, str, tuple[str, ...]]]:
    return [(entry.at_s, entry.do, entry.nodes or entry.links) for entry in found.timeline]


def test_it_is_one_that_is_removed_and_another_that_nobody_lists() -> None:
    found = scenario({"at_s": 20, "do": "kill", "nodes": ["ns-0", "broker-a"]}, MOVES)
    assert told(found)[:2] == [(20, "kill", ("broker-a",)), (20, "remove", ("ns-0",))]
    assert found.nodes["ns-3"].joins_at_s == 60
    assert {found.nodes[one].name_servers for one in ("broker-a", "producer-0", "consumer-0")} == {tuple(ALL)}
    assert parse(found.model_dump(mode="json"), file="again.yaml") == found


def test_what_is_said_of_it_later_is_said_of_the_new_one() -> None:
    found = scenario(
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
    found = scenario({**rolled, "down_s": 5})
    assert told(found)[:3] == [(30, "remove", ("ns-0",)), (55, "remove", ("ns-1",)), (80, "remove", ("ns-2",))]
    assert {name: found.nodes[name].joins_at_s for name in ("ns-3", "ns-4", "ns-5")} == {
        "ns-3": 35,
        "ns-4": 60,
        "ns-5": 85,
    }


@pytest.mark.parametrize("defect", [None, "broker-never-takes-a-new-list"])
def test_brokers_that_never_take_the_new_address_are_found(defect: str | None, tmp_path: Path) -> None:
    found = scenario(
        MOVES, {"at_s": 90, "do": "name_server_list", "name_servers": ALL}, by_http=True, checks=["routes_are_true"]
    )
    planted = None if defect is None else found_defect(defect, file="x.yaml")
    folder = record_virtual(found, 1, tmp_path / "run", planted)
    wrong = found_wrong(folder.path)
    assert ("routes_are_true" in wrong) if defect else not wrong
