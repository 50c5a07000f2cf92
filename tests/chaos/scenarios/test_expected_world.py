"""Wall clocks, acts by hand and full disks in a scenario: what the oracle makes of them."""

from typing import Any

import pytest

from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.oracle.lists import due_ms
from nemesrv.chaos.oracle.promises import ObligationKind, obligations
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario


def of(*timeline: dict[str, Any], **more: Any) -> Scenario:
    document = {"cluster": {"name_servers": 2, "brokers": 2}, "checks": ["routes_are_true"], "timeline": list(timeline)}
    return parse({**document, **more}, file="x.yaml")


def kept(world: World) -> list[tuple[float, float]]:
    """When ns-0 must hold broker-a, in seconds."""
    found = [o for o in obligations(world) if (o.name_server, o.broker) == ("ns-0", "broker-a")]
    return [(round(o.from_ms / 1000), round(o.to_ms / 1000)) for o in found if o.demand is ObligationKind.RETURN]


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ([("clock_step", {"by_s": 80})], False),  # E − R − B = 84 s
        ([("clock_step", {"by_s": 90})], True),
        ([("clock_step", {"by_s": 130})], True),
        ([("clock_step", {"by_s": -1000})], False),
        ([("clock_drift", {"rate": 3})], False),  # 36 s · 3 < 120 s
        ([("clock_drift", {"rate": 4})], True),
        ([("clock_freeze", {})], False),
    ],
)
def test_only_a_clock_that_gains_enough_drops_anybody(changes: list[tuple[str, dict[str, Any]]], lost: bool) -> None:
    timeline = [{"at_s": 50, "do": do, "nodes": ["ns-0"], **more} for do, more in changes]
    later = {"at_s": 400, "do": "clock_freeze", "nodes": ["ns-1"]}  # and then all are set right
    spans = kept(expected_world(of(*timeline, later, settle_s=40)).world)
    assert spans[0][1] == 50 if lost else spans[0][1] >= 400


def test_a_clock_that_stood_still_and_is_set_right_is_a_step() -> None:
    freeze = {"at_s": 50, "do": "clock_freeze", "nodes": ["ns-0"]}
    world = expected_world(of(freeze, {"at_s": 180, "do": "clock_sync", "nodes": ["ns-0"]}, settle_s=200)).world
    assert [round(change.step_ms) for change in world.clocks["ns-0"]] == [0, 130_000]
    assert [round(world.wall_ms("ns-0", 1000 * at_s) / 1000) for at_s in (40, 100, 179, 181)] == [40, 50, 50, 181]
    assert [span[1] for span in kept(world)] == [180, 380]


def test_a_small_step_may_drop_a_broker_while_no_list_names_the_name_server() -> None:
    without = {"at_s": 20, "do": "name_server_list", "name_servers": ["ns-1"]}
    step = {"at_s": 50, "do": "clock_step", "nodes": ["ns-0"], "by_s": 30}
    served = {"name_servers": 2, "brokers": 2, "name_server_list": ["ns-0", "ns-1"]}
    world = expected_world(of(without, step, cluster=served, settle_s=300)).world
    changes = [fault.fault for fault in world.link_faults("broker-a", "ns-0")]
    assert "clock_step" in changes


REGISTER = {"at_s": 5, "do": "register", "nodes": ["ns-0"], "broker": "broker-x", "address": "10.9.9.9:10911"}


def test_who_acts_by_hand_is_a_node_only_where_somebody_does() -> None:
    assert "admin" not in of().topology().nodes
    assert "admin" in of(REGISTER).topology().nodes
    assert [str(link) for link in of(REGISTER).topology().parse_links("admin -> ns-1")] == ["admin->ns-1"]


def test_a_process_that_goes_on_registering_does_so_until_it_is_unregistered() -> None:
    undone = {**REGISTER, "at_s": 70, "do": "unregister"}
    world = expected_world(of({**REGISTER, "every_s": 30}, undone)).world
    assert [(act.f, round(act.ended_ms)) for act in world.acts] == [
        ("register", 5001),
        ("register", 35001),
        ("register", 65001),
        ("unregister", 70001),
    ]


def test_a_disk_is_full_as_long_as_said_and_free_when_the_timeline_is_over() -> None:
    filled = [
        {"at_s": 5, "do": "fill_disk", "nodes": ["broker-a"], "for_s": 20},
        {"at_s": 60, "do": "fill_disk", "nodes": ["broker-b"]},
    ]
    world = expected_world(of(*filled)).world
    spans = [(disk.broker, round((disk.surely.end_ms - disk.surely.start_ms) / 1000)) for disk in world.full_disks]
    assert spans == [("broker-a", 20), ("broker-b", 0)]


def test_a_broker_that_cannot_reach_the_address_server_may_keep_its_list_until_it_can() -> None:
    timeline = [
        {"at_s": 50, "do": "black_hole", "links": ["broker-a <-> address-server"]},
        {"at_s": 60, "do": "name_server_list", "name_servers": ["ns-1"]},
        {"at_s": 250, "do": "heal"},
    ]
    served = {"name_servers": 2, "brokers": 2, "name_server_list": ["ns-0", "ns-1"]}
    world = expected_world(of(*timeline, cluster=served, settle_s=250)).world
    due_s = [(due_ms(world, broker, world.served[1]) - world.timeline_ms) / 1000 for broker in ("broker-a", "broker-b")]
    assert due_s == pytest.approx([250 + 123, 60 + 123], abs=0.1)
