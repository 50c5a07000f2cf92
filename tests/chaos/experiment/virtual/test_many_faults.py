"""Whole runs of many faults: those that overlap and end apart, series, clients that die, half-open links, lost SYNs."""

from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks.record.control import Control
from nemesrv.chaos.checks.service.exercised import judged as exercised
from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.oracle.promises import ObligationKind, obligations
from nemesrv.chaos.oracle.quiet import calm
from nemesrv.chaos.oracle.reach import moments
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from tests.chaos.judged import found_wrong


def scenario(timeline: list[dict[str, Any]], settle_s: float = 150, name_servers: int = 2, **more: Any) -> Scenario:
    cluster = {"name_servers": name_servers, "brokers": 2, "profile": more.pop("profile", "4.9")}
    workload = {"client_starts": 0, "sends_per_s": 1, **more.pop("workload", {})}
    rest = {"timeline": timeline, "settle_s": settle_s, "checks": ["routes_are_true"], **more}
    return parse({"cluster": cluster, "workload": workload, **rest}, file="many.yaml")


def right(of: Scenario, path: Path, seed: int = 1) -> tuple[list[Any], World]:
    """Its rows; every fault had its effect, every client worked, and nothing is wrong."""
    folder = record_virtual(of, seed, path / "run").path
    rows = read_rows(folder)
    world = World.of_rows(rows)
    clients = frozenset(node.name for node in world.of_kind("producer", "consumer"))
    assert exercised(Control.of_rows(rows), world, clients).findings == ()
    assert found_wrong(folder) == {}
    return list(rows), world


# -- faults that overlap ----------------------------------------------------------------------------------------------

APART = scenario(
    [
        {"at_s": 20, "do": "black_hole", "name": "east", "links": ["brokers <-> ns-0"]},
        {"at_s": 100, "do": "black_hole", "links": ["broker-a <-> ns-1"]},
        {"at_s": 190, "do": "heal", "links": ["broker-a <-> ns-0"]},
        {"at_s": 230, "do": "heal", "faults": ["east"]},
        {"at_s": 260, "do": "heal", "faults": ["black_hole-2"]},
    ],
    settle_s=100,
    name_servers=3,
)


def test_what_overlaps_ends_apart_and_every_link_is_as_it_should_be_in_between(tmp_path: Path) -> None:
    _, world = right(APART, tmp_path, seed=3)
    lasted = {
        (fault.fault_id, fault.source, fault.target): round((fault.end_ms - world.timeline_ms) / 1000)
        for fault in world.faults
    }
    assert lasted == {
        ("east", "broker-a", "ns-0"): 190,
        ("east", "broker-b", "ns-0"): 230,
        ("black_hole-2", "broker-a", "ns-1"): 260,
    }


def test_each_heal_of_a_fault_is_a_moment_of_its_own_and_explain_has_the_same() -> None:
    of_east = [(m.at_ms / 1000, m.phase) for m in moments(expected_world(APART).world) if m.fault_id == "east"]
    assert of_east == [(20, "start"), (190, "end"), (230, "end")]


# -- series -----------------------------------------------------------------------------------------------------------


def test_every_turn_is_a_fault_of_its_own_and_nothing_is_wrong(tmp_path: Path) -> None:
    timeline: list[dict[str, Any]] = [
        {"at_s": 20, "do": "cut", "links": ["broker-a <-> ns-0"], "period_s": 20, "duty": 0.25},
        {"at_s": 90, "do": "heal"},
        {"at_s": 110, "do": "rolling_restart", "nodes": ["name_servers"], "pause_s": 40},
        {"at_s": 240, "do": "restart_storm", "nodes": ["brokers", "consumers", "ns-0"], "restarts": 6, "for_s": 40},
        {"at_s": 300, "do": "heal"},
    ]
    _, world = right(scenario(timeline, name_servers=3), tmp_path)
    assert [round((f.end_ms - f.start_ms) / 1000) for f in world.faults if f.fault_id == "cut-1"] == [5, 5, 5, 5]
    restarted = [len(world.lives_of(f"ns-{number}")) for number in range(3)]
    assert restarted[1:] == [2, 2]
    assert restarted[0] >= 2


def test_the_next_is_restarted_so_long_after_the_one_before_listens(tmp_path: Path) -> None:
    rolling = {"at_s": 20, "do": "rolling_restart", "nodes": ["brokers"], "pause_s": 15, "by": "kill", "down_s": 5}
    rows = read_rows(record_virtual(scenario([rolling], name_servers=3), 1, tmp_path / "run").path)
    first, second = (fault for fault in World.of_rows(rows).faults if fault.target is None)
    assert (first.source, second.source) == ("broker-a", "broker-b")
    assert 15_000 <= second.start_ms - first.end_ms < 16_000


# -- clients that are killed, paused and started again ----------------------------------------------------------------


def test_clients_come_and_go_and_nothing_is_wrong(tmp_path: Path) -> None:
    timeline: list[dict[str, Any]] = [
        {"at_s": 20, "do": "kill", "nodes": ["producer-0"], "for_s": 40},
        {"at_s": 30, "do": "kill", "nodes": ["consumer-0"], "for_s": 60},
        {"at_s": 120, "do": "pause", "nodes": ["consumer-1"], "for_s": 40},
        {"at_s": 190, "do": "stop", "nodes": ["consumer-2"]},
    ]
    rows, world = right(scenario(timeline, workload={"consumers": 3, "sends_per_s": 2}), tmp_path)
    lives = {node: len(world.lives_of(node)) for node in ("producer-0", "consumer-0", "consumer-1", "consumer-2")}
    assert lives == {"producer-0": 2, "consumer-0": 2, "consumer-1": 1, "consumer-2": 2}
    sent = [row["msg_key"] for row in rows if row["event"] == "send" and row["type"] == "ok"]
    assert len(sent) == len(set(sent)), "the next process of a producer uses no key again"
    assert any(key.startswith("producer-0.1-") for key in sent)


def test_a_client_that_dies_disturbs_no_other() -> None:
    timeline = [{"at_s": 40, "do": "kill", "nodes": ["producer-0"], "for_s": 20}]
    world = expected_world(scenario(timeline, workload={"consumers": 3})).world
    assert [(stretch.start_ms < 0, stretch.end_ms) for stretch in calm(world)] == [(True, world.end_ms)]


# -- half-open links and dropped SYNs: what must be seen while they last, and what breaks it --------------------------

LINKS = ["broker-a <-> ns-0", "clients <-> ns-1", "producer-0 <-> broker-b"]


def parted(do: str, *meanwhile: dict[str, Any], links: list[str] = LINKS[:1], **more: Any) -> Scenario:
    timeline = [{"at_s": 20, "do": do, "links": links}, *meanwhile, {"at_s": 220, "do": "heal"}]
    return scenario(timeline, settle_s=100, **more)


@pytest.mark.nightly_but("half_open-4.9", "syn_drop-5.x")
@pytest.mark.parametrize("profile", ["4.9", "5.x"])
@pytest.mark.parametrize("do", ["half_open", "syn_drop"])
def test_the_tables_keep_whoever_can_still_register(do: str, profile: str, tmp_path: Path) -> None:
    folder = record_virtual(parted(do, links=LINKS, profile=profile), 3, tmp_path / "run").path
    assert {fault.fault for fault in World.of_rows(read_rows(folder)).faults} == {do}
    assert found_wrong(folder) == {}


@pytest.mark.nightly("test_the_tables_keep_whoever_can_still_register")
def test_who_is_started_again_while_syns_are_dropped_is_promised_to_nobody_until_the_heal(tmp_path: Path) -> None:
    asked = parted("syn_drop", {"at_s": 60, "do": "restart", "nodes": ["broker-a"]})
    demands = [
        (o.demand, o.from_ms / 1000, o.to_ms / 1000)
        for o in obligations(expected_world(asked).world)
        if (o.name_server, o.broker) == ("ns-0", "broker-a") and o.to_ms > 20_000
    ]
    assert demands == [(ObligationKind.KEEP, 20, 54), (ObligationKind.RETURN, 253, 320)], "two faults at once"
    assert found_wrong(record_virtual(asked, 3, tmp_path / "run").path) == {}


def test_what_is_demanded_of_a_half_open_link_follows_the_settings() -> None:
    def kept(**of_broker_a: Any) -> list[float]:
        world = expected_world(parted("half_open", config={"broker-a": of_broker_a})).world
        found = [o for o in obligations(world) if (o.name_server, o.broker) == ("ns-0", "broker-a")]
        return [o.to_ms / 1000 for o in found if o.demand is ObligationKind.KEEP]

    assert kept() == [220]
    assert kept(clientCloseSocketIfTimeout=False) == [110]
    assert kept(registerNameServerPeriod=60_000) == [80], "two periods are too long"
