"""What is due of a broker that comes back at another address, by the scenario alone."""

import math

from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.scenarios.loading import parse

CAME_MS = 60_000.0


def world_of(*timeline: dict[str, object], settle_s: float = 200) -> World:
    moves = [
        {"at_s": 20, "do": "kill", "nodes": ["broker-a"]},
        {"at_s": 60, "do": "restart", "nodes": ["broker-a"], "new_address": True},
    ]
    document = {
        "cluster": {"name_servers": 2, "brokers": 2},
        "timeline": sorted([*moves, *timeline], key=lambda entry: float(str(entry["at_s"]))),
        "settle_s": settle_s,
        "checks": ["routes_are_true"],
    }
    return expected_world(parse(document, file="x.yaml")).world


def test_a_node_has_each_address_from_when_its_process_comes() -> None:
    (broker,) = (node for node in world_of().nodes if node.name == "broker-a")
    assert broker.addresses == ("broker-a:1", "broker-a:2")
    assert [broker.address_at(at_ms) for at_ms in (0, CAME_MS - 1, CAME_MS)] == [
        "broker-a:1",
        "broker-a:1",
        "broker-a:2",
    ]


def test_where_a_name_server_cannot_hear_of_the_new_one_clients_may_be_told_of_the_old_one_by_it() -> None:
    world = world_of({"at_s": 10, "do": "black_hole", "links": ["broker-a <-> ns-0"]}, {"at_s": 200, "do": "heal"})
    (told,) = (f for f in world.link_faults("producer-0", "broker-a") if f.by_hand)
    assert told.start_ms == CAME_MS
    assert 10_000 + 130_000 - 3_000 <= told.end_ms < 200_000  # E + S after its last word


def test_where_everybody_hears_of_it_in_time_it_is_no_fault_to_anybody() -> None:
    assert not any(fault.by_hand for fault in world_of().faults)
    assert math.isfinite(world_of().end_ms)
