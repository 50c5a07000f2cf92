"""Flapping links, rolling restarts and a restart storm in one run: the matrix holds at each turn; nothing is wrong."""

from pathlib import Path
from typing import Any

from nemesrv.chaos.checks.plain.verdicts import found_wrong
from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.checks.service.exercised import Evidence
from nemesrv.chaos.checks.service.exercised import judge as exercised
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario

FEW_SENDS = {"client_starts": 0, "sends_per_s": 1}

TIMELINE: list[dict[str, Any]] = [
    {"at_s": 20, "do": "cut", "links": ["broker-a <-> ns-0"], "period_s": 20, "duty": 0.25},
    {"at_s": 90, "do": "heal"},
    {"at_s": 110, "do": "rolling_restart", "nodes": ["name_servers"], "pause_s": 40},
    {"at_s": 240, "do": "restart_storm", "nodes": ["brokers", "consumers", "ns-0"], "restarts": 6, "for_s": 40},
    {"at_s": 300, "do": "heal"},
]


def scenario(timeline: list[dict[str, Any]]) -> Scenario:
    document = {"name": "series", "cluster": {"name_servers": 3, "brokers": 2}, "timeline": timeline, "settle_s": 150,
                "workload": FEW_SENDS, "checks": ["routes_are_true"]}  # fmt: skip
    return parse(document, file="series.yaml")


def test_every_turn_is_a_fault_of_its_own_and_nothing_is_wrong(tmp_path: Path) -> None:
    folder = record_virtual(scenario(TIMELINE), 1, tmp_path / "run").path
    rows = read_rows(folder)
    world = World.of_rows(rows)
    assert [round((f.end_ms - f.start_ms) / 1000) for f in world.faults if f.fault_id == "cut-1"] == [5, 5, 5, 5]
    restarted = [len(world.lives_of(f"ns-{number}")) for number in range(3)]
    assert restarted[1:] == [2, 2]
    assert restarted[0] >= 2
    clients = frozenset(node.name for node in world.of_kind("producer", "consumer"))
    assert exercised(Evidence(Control.of_rows(rows), worked=clients), world).findings == ()
    assert found_wrong(folder) == {}


def test_the_next_is_restarted_so_long_after_the_one_before_listens(tmp_path: Path) -> None:
    rolling = {"at_s": 20, "do": "rolling_restart", "nodes": ["brokers"], "pause_s": 15, "by": "kill", "down_s": 5}
    rows = read_rows(record_virtual(scenario([rolling]), 1, tmp_path / "run").path)
    first, second = (fault for fault in World.of_rows(rows).faults if fault.target is None)
    assert (first.source, second.source) == ("broker-a", "broker-b")
    assert 15_000 <= second.start_ms - first.end_ms < 16_000
