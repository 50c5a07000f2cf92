"""Faults that overlap end apart: by link, by name, each with its own matrix and its own windows."""

from pathlib import Path
from typing import Any

from nemesrv.chaos.checks.plain.verdicts import found_wrong
from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.checks.service.exercised import Evidence
from nemesrv.chaos.checks.service.exercised import judge as exercised
from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.reach import moments
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario

FEW_SENDS = {"client_starts": 0, "sends_per_s": 1}

APART: list[dict[str, Any]] = [
    {"at_s": 20, "do": "black_hole", "name": "east", "links": ["brokers <-> ns-0"]},
    {"at_s": 100, "do": "black_hole", "links": ["broker-a <-> ns-1"]},
    {"at_s": 190, "do": "heal", "links": ["broker-a <-> ns-0"]},
    {"at_s": 230, "do": "heal", "faults": ["east"]},
    {"at_s": 260, "do": "heal", "faults": ["black_hole-2"]},
]


def scenario(timeline: list[dict[str, Any]] = APART) -> Scenario:
    document = {"name": "apart", "cluster": {"name_servers": 3, "brokers": 2}, "timeline": timeline, "settle_s": 100,
                "workload": FEW_SENDS, "checks": ["routes_are_true"]}  # fmt: skip
    return parse(document, file="apart.yaml")


def test_what_overlaps_ends_apart_and_every_link_is_as_it_should_be_in_between(tmp_path: Path) -> None:
    folder = record_virtual(scenario(), 3, tmp_path / "run").path
    rows = read_rows(folder)
    world, control = World.of_rows(rows), Control.of_rows(rows)
    lasted = {
        (fault.fault_id, fault.source, fault.target): round((fault.end_ms - world.timeline_ms) / 1000)
        for fault in world.faults
    }
    assert lasted == {
        ("east", "broker-a", "ns-0"): 190,
        ("east", "broker-b", "ns-0"): 230,
        ("black_hole-2", "broker-a", "ns-1"): 260,
    }
    clients = frozenset(node.name for node in world.of_kind("producer", "consumer"))
    assert exercised(Evidence(control, worked=clients), world).findings == ()
    assert found_wrong(folder) == {}


def test_each_heal_of_a_fault_is_a_moment_of_its_own_and_explain_has_the_same() -> None:
    of_east = [(m.at_ms / 1000, m.phase) for m in moments(expected_world(scenario()).world) if m.fault_id == "east"]
    assert of_east == [(20, "start"), (190, "end"), (230, "end")]
