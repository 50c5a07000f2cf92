"""What a client is promised after a fault or a heal: where one fault at a time meets it, and leaves it enough."""

import math
from typing import Any

import pytest

from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.oracle.reach import moments
from nemesrv.chaos.oracle.recovery import bound
from nemesrv.chaos.scenarios.loading import parse

KILL, RESTART = {"do": "kill", "nodes": ["broker-a"]}, {"do": "restart", "nodes": ["broker-a"]}


def bounds(
    timeline: list[dict[str, Any]], client: str = "producer-0", operation: str = "send", **document: Any
) -> dict[str, float]:
    """Moment to how long the client's first good operation may take."""
    document = {"workload": {"sends_per_s": 10}, "cluster": {"brokers": 3}, "timeline": timeline, **document}
    document["checks"] = ["recovery_time"]
    world = expected_world(parse(document, file="x.yaml")).world
    return {f"{m.fault_id} {m.phase}": bound(world, client, operation, m).latest_ms for m in moments(world)}


def test_a_second_fault_before_the_client_has_settled_ends_all_promises() -> None:
    crash = [{"at_s": 20, **KILL}, {"at_s": 60, **RESTART}]
    pause = {"do": "pause", "nodes": ["broker-b"]}
    alone = bounds(crash)
    assert (alone["kill-1 start"], alone["kill-1 end"]) == (100, 18_600), (
        "1/rate; four lost queues and two more, each T"
    )
    soon = bounds([*crash, {"at_s": 100, **pause}])
    assert (soon["kill-1 start"], soon["pause-2 start"]) == (100, math.inf)
    late = bounds([*crash, {"at_s": 150, **pause}])
    assert late["pause-2 start"] == 18_600


def test_what_begins_together_is_one_fault_until_the_first_of_it_is_over() -> None:
    hang = {"do": "pause", "nodes": ["broker-b"]}
    resume = {"do": "resume", "nodes": ["broker-b"]}
    both = bounds([{"at_s": 20, **KILL}, {"at_s": 20, **hang}, {"at_s": 60, **RESTART}, {"at_s": 200, **resume}])
    assert both["pause-2 start"] == (2 * 2 * 4 + 2) * 3_100, "four queues of each, and routes lose one after the other"
    assert both["kill-1 end"] == math.inf


def test_what_is_done_to_another_client_is_not_felt() -> None:
    timeline = [{"at_s": 20, **KILL}, {"at_s": 30, "do": "kill", "nodes": ["producer-1"]}, {"at_s": 60, **RESTART}]
    assert bounds(timeline)["kill-1 end"] == 18_600
    assert bounds(timeline, "consumer-0", "pull")["kill-1 end"] < math.inf
    others = [{"at_s": 20, **KILL}, {"at_s": 30, "do": "kill", "nodes": ["consumer-1"]}, {"at_s": 60, **RESTART}]
    assert bounds(others, "consumer-0", "pull")["kill-1 end"] == math.inf, "its group's queues change hands"


@pytest.mark.parametrize(("killed_s", "within_ms"), [(100, 100), (80, math.inf)])
def test_a_client_that_had_left_has_settled_when_the_way_is_healed(killed_s: float, within_ms: float) -> None:
    timeline = [
        {"at_s": 20, "do": "black_hole", "links": ["producer-0 <-> ns-1"]},
        {"at_s": 70, "do": "heal"},
        {"at_s": killed_s, **KILL},
    ]
    assert bounds(timeline)["kill-1 start"] == within_ms, "P + (1·P + A) after 20 s"


def test_a_producer_that_lost_every_broker_is_promised_one_when_they_are_back_in_its_routes() -> None:
    timeline = [
        {"at_s": 20, "do": "kill", "nodes": ["broker-a", "broker-b", "broker-c"]},
        {"at_s": 60, "do": "restart", "nodes": ["broker-a", "broker-b", "broker-c"]},
    ]
    assert set(bounds(timeline).values()) == {math.inf, 33_000 + 30_000 + 2 * 3_100}


def test_what_ends_for_somebody_else_brings_no_lost_broker_back() -> None:
    timeline = [
        {"at_s": 20, "do": "stop", "nodes": ["broker-a"]},
        {"at_s": 25, "do": "restart", "nodes": ["producer-1"]},
        {"at_s": 290, **RESTART},
    ]
    for client, operation in (("producer-0", "send"), ("consumer-0", "pull")):
        *before, back_ms = bounds(timeline, client, operation, cluster={"brokers": 1}).values()
        assert set(before) == {math.inf}
        assert back_ms < math.inf


@pytest.mark.parametrize(("queues", "after_ms"), [(1, 33_000 + 30_000 + 20_000 + 40_000), (4, 60_000)])
def test_a_group_with_too_few_queues_is_promised_one_after_the_heal(queues: int, after_ms: float) -> None:
    timeline = [
        {"at_s": 20, "do": "black_hole", "links": ["groups broker-b broker-c | name_servers"]},
        {"at_s": 250, "do": "heal"},
    ]
    found = bounds(timeline, "consumer-0", "pull", workload={"queues": queues, "consumers": 3})
    assert [*found.values()] == [math.inf if queues == 1 else 60_000, after_ms]


def test_where_one_fault_takes_a_broker_and_hides_another_nothing_is_promised() -> None:
    timeline = [{"at_s": 20, "do": "black_hole", "links": ["producer-0 <-> broker-a", "broker-b <-> name_servers"]}]
    assert set(bounds(timeline).values()) == {math.inf}


@pytest.mark.parametrize("operation", ["send", "pull", "name_server_call"])
def test_a_client_whose_start_may_fail_at_a_lost_name_server_is_promised_nothing(operation: str) -> None:
    """It is made anew then, and asks the first entry of its list again."""
    timeline = [{"at_s": 20, "do": "kill", "nodes": ["ns-0"]}]
    document = parse({"timeline": timeline, "checks": ["recovery_time"]}, file="x.yaml")
    world = expected_world(document).world
    client = "consumer-0" if operation == "pull" else "producer-0"
    crash = moments(world)[0]
    assert bound(world, client, operation, crash, routed=True).latest_ms < math.inf
    assert bound(world, client, operation, crash, routed=False).latest_ms == math.inf


def test_a_producer_whose_name_servers_are_on_no_brokers_list_is_promised_nothing() -> None:
    nodes = {"producer-0": {"name_servers": ["ns-0"]}, "broker-a": {"name_servers": ["ns-1"]}}
    cut = [{"at_s": 20, "do": "black_hole", "links": ["producer-0 <-> ns-0"]}]
    found = bounds(cut, cluster={"brokers": 1, "name_servers": 2}, nodes=nodes)
    assert set(found.values()) == {math.inf}


def test_a_master_that_waits_for_a_slave_is_like_a_broker_that_hangs() -> None:
    cut = [{"at_s": 20, "do": "black_hole", "links": ["broker-a/1 <-> broker-a"]}, {"at_s": 90, "do": "heal"}]
    cluster = {"brokers": 3, "slaves": 1}
    assert bounds(cut, cluster=cluster)["black_hole-1 start"] == 100, "an ASYNC_MASTER waits for nobody"
    sync = {"brokers": {"brokerRole": "SYNC_MASTER"}}
    assert bounds(cut, cluster=cluster, config=sync)["black_hole-1 start"] == 18_600, "four queues and two more, each T"
