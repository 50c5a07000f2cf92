"""Clients that are killed, paused and started again: what they owe, and what their mates owe meanwhile."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks.plain.verdicts import found_wrong
from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.checks.service.exercised import Evidence
from nemesrv.chaos.checks.service.exercised import judge as exercised
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.quiet import calm
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario

ONE_AFTER_THE_OTHER: list[dict[str, Any]] = [
    {"at_s": 20, "do": "kill", "nodes": ["producer-0"], "for_s": 40},
    {"at_s": 30, "do": "kill", "nodes": ["consumer-0"], "for_s": 60},
    {"at_s": 120, "do": "pause", "nodes": ["consumer-1"], "for_s": 40},
    {"at_s": 190, "do": "stop", "nodes": ["consumer-2"]},
]


def scenario(timeline: list[dict[str, Any]]) -> Scenario:
    document = {"name": "clients", "cluster": {"name_servers": 2, "brokers": 2}, "timeline": timeline, "settle_s": 150,
                "workload": {"client_starts": 0, "consumers": 3, "sends_per_s": 2},
                "checks": ["queue_ownership"]}  # fmt: skip
    return parse(document, file="clients.yaml")


def test_clients_come_and_go_and_nothing_is_wrong(tmp_path: Path) -> None:
    folder = record_virtual(scenario(ONE_AFTER_THE_OTHER), 1, tmp_path / "run").path
    rows = read_rows(folder)
    world, control = World.of_rows(rows), Control.of_rows(rows)
    assert [len(world.lives_of(node)) for node in ("producer-0", "consumer-0", "consumer-1", "consumer-2")] == [
        2,
        2,
        1,
        2,
    ]
    clients = frozenset(node.name for node in world.of_kind("producer", "consumer"))
    assert exercised(Evidence(control, worked=clients), world).findings == ()
    sent = [row["msg_key"] for row in rows if row["event"] == "send" and row["type"] == "ok"]
    assert len(sent) == len(set(sent)), "the next process of a producer uses no key again"
    assert any(key.startswith("producer-0.1-") for key in sent)
    assert found_wrong(folder) == {}


def test_a_client_that_dies_disturbs_no_other() -> None:
    timeline = [{"at_s": 40, "do": "kill", "nodes": ["producer-0"], "for_s": 20}]
    world = expected_world(scenario(timeline)).world
    assert [(stretch.start_ms < 0, stretch.end_ms) for stretch in calm(world)] == [(True, world.end_ms)]


def test_the_harness_own_client_is_nobodys_to_kill() -> None:
    with pytest.raises(ScenarioError, match="one of ns-0, ns-1, broker-a, broker-b, producer-0"):
        scenario([{"at_s": 5, "do": "kill", "nodes": ["prober"]}])
