"""What bounds a first good pull where NameServers name too few brokers for everybody to have a queue, and a first good
send where a look-up's whole time goes into a dial."""

from __future__ import annotations

import pytest

from nemesrv.chaos.experiment.expectation import expected_world
from nemesrv.chaos.oracle.reach import moments
from nemesrv.chaos.oracle.recovery import bound
from nemesrv.chaos.scenarios.loading import parse


def pulls_bounded_by(queues: int) -> dict[str, float]:
    """Moment to the bound of consumer-0's first pull, while two of three brokers lose all NameServers for long."""
    timeline = [
        {"at_s": 20, "do": "black_hole", "name": "lost", "links": ["groups broker-b broker-c | name_servers"]},
        {"at_s": 150, "do": "latency", "name": "late", "latency_ms": 3000, "links": ["producer-0 -> ns-0"]},
        {"at_s": 250, "do": "heal"},
    ]  # fmt: skip
    document = {"checks": ["recovery_time"], "timeline": timeline, "cluster": {"brokers": 3},
                "workload": {"queues": queues, "consumers": 3}}  # fmt: skip
    world = expected_world(parse(document, file="x.yaml")).world
    return {f"{m.fault_id} {m.phase}": bound(world, "consumer-0", "pull", m).latest_ms for m in moments(world)}


def test_a_consumer_may_have_no_queue_while_too_few_brokers_are_named_and_until_they_are_back() -> None:
    few = pulls_bounded_by(queues=1)
    assert few["late start"] > 133_000, "as long as they are cut off, and R + C"
    assert few["lost end"] > few["lost start"] == 40_000, "two long polls; after the heal R + C + P + Qr more"


def test_with_a_queue_for_each_consumer_nothing_is_waited_for() -> None:
    assert set(pulls_bounded_by(queues=4).values()) == {40_000}


@pytest.mark.parametrize(("loss", "is_bounded"), [("packet_loss", False), ("syn_drop", False), ("cut", True)])
def test_a_dial_whose_syns_are_lost_takes_a_look_ups_whole_time(loss: str, is_bounded: bool) -> None:
    """The next NameServer is dialled and not asked, its connection closed; the next look-up begins with that dial."""
    timeline = [
        {"at_s": 20, "do": loss, "name": "lost", "links": ["producer-0 <-> ns-1"]},
        {"at_s": 30, "do": "kill", "nodes": ["ns-0"]},
        {"at_s": 40, "do": "restart", "nodes": ["ns-0"]},
        {"at_s": 250, "do": "heal"},
    ]
    document = {"checks": ["recovery_time"], "timeline": timeline, "cluster": {"name_servers": 2, "brokers": 2}}
    world = expected_world(parse(document, file="x.yaml")).world
    (back,) = [moment for moment in moments(world) if (moment.fault_id, moment.phase) == ("kill-1", "end")]
    assert (bound(world, "producer-0", "send", back, routed=False).latest_ms < 100_000) is is_bounded
    assert bound(world, "producer-1", "send", back, routed=False).latest_ms < 100_000


@pytest.mark.parametrize("closes", [True, False])
def test_a_producer_without_a_route_may_stay_with_a_name_server_that_does_not_answer(*, closes: bool) -> None:
    """Random scenario 90317: with clientCloseSocketIfTimeout off each send asked the same one for ever."""
    timeline = [
        {"at_s": 20, "do": "black_hole", "name": "lost", "links": ["producer-0 <-> ns-1"]},
        {"at_s": 40, "do": "pause", "nodes": ["consumer-0"]},
        {"at_s": 250, "do": "heal"},
    ]
    document = {"checks": ["recovery_time"], "timeline": timeline, "cluster": {"name_servers": 2, "profile": "4.9"},
                "config": {"clients": {"clientCloseSocketIfTimeout": closes}}}  # fmt: skip
    world = expected_world(parse(document, file="x.yaml")).world
    (later,) = [moment for moment in moments(world) if (moment.fault_id, moment.phase) == ("pause-1", "start")]
    assert (bound(world, "producer-0", "send", later, routed=False).latest_ms < 100_000) is closes
    assert bound(world, "producer-1", "send", later, routed=False).latest_ms < 100_000


@pytest.mark.parametrize(("do", "refuses"), [("pause", False), ("kill", True)])
@pytest.mark.parametrize("healed_s", [30, 35])
def test_a_broker_whose_link_is_cut_and_healed_refuses_only_if_what_it_is_under_now_does(
    do: str, refuses: bool, healed_s: float
) -> None:
    """Random scenario 51025: a link healed as its broker was paused made its sends "refused"."""
    timeline = [
        {"at_s": 29.961, "do": "cut", "name": "link", "links": ["producer-0 <-> broker-a"]},
        {"at_s": 30, "do": do, "nodes": ["broker-a"]},
        {"at_s": healed_s, "do": "heal"},
    ]
    document = {"checks": ["recovery_time"], "timeline": timeline, "cluster": {"brokers": 2},
                "workload": {"sends_per_s": 4}}  # fmt: skip
    world = expected_world(parse(document, file="x.yaml")).world
    (lost,) = [moment for moment in moments(world) if (moment.fault_id, moment.phase) == (f"{do}-1", "start")]
    assert (bound(world, "producer-0", "send", lost).latest_ms == 250) is refuses
    assert bound(world, "producer-1", "send", lost).latest_ms == bound(world, "producer-0", "send", lost).latest_ms


def test_who_joins_while_the_address_server_is_out_of_reach_has_its_list_a_period_later_at_the_most() -> None:
    """It asks each 120 s; that comes before the poll."""

    def bounded_by(joins_at_s: float) -> float:
        timeline = [
            {"at_s": 20, "do": "reset", "name": "list", "links": ["producer-0 <-> address-server"]},
            {"at_s": 30, "do": "cut", "name": "lost", "links": ["producers <-> ns-1"]},
            {"at_s": 100, "do": "heal"},
        ]
        cluster = {"name_servers": 2, "brokers": 2, "name_server_list": ["ns-0", "ns-1"]}
        nodes = {"producer-0": {"joins_at_s": joins_at_s}}
        document = {"checks": ["recovery_time"], "timeline": timeline, "cluster": cluster, "nodes": nodes}
        world = expected_world(parse(document, file="x.yaml")).world
        (heal,) = [moment for moment in moments(world) if (moment.fault_id, moment.phase) == ("lost", "end")]
        return bound(world, "producer-0", "name_server_call", heal).latest_ms

    in_time_ms, late_ms = bounded_by(5), bounded_by(50)
    assert late_ms == in_time_ms + 123_000
