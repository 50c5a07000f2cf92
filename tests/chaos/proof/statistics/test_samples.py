"""What a history measured: recovery, availability, staleness, windows and routes at the end, of hand-written runs."""

import pytest

from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.proof.statistics.samples import (
    RunSamples,
    changes,
    routes_of,
    samples_of,
    topics_that_differ,
    windows_of,
)
from tests.chaos.builder import BOTH, KILL, HistoryBuilder, cluster, route_of


def learns(builder: HistoryBuilder, at_s: float, *brokers: str, node: str = "producer-0") -> HistoryBuilder:
    return builder.at(at_s).learns(node, *brokers)


def send(builder: HistoryBuilder, at_s: float, type_: str = "ok") -> HistoryBuilder:
    return builder.at(at_s).event("producer-0", "send", type=type_, duration_ms=0.0)


def crash() -> RunSamples:
    """broker-a is killed at 100 s and started again at 200 s; ns-1 and the producer follow later than ns-0."""
    builder = learns(cluster(clients=("producer-0",), workload={"topic": "orders"}), 2, *BOTH)
    send(builder, 50, "fail")
    builder.at(100).fault(*KILL)
    builder.at(100.25).route("ns-0", "orders", "broker-b").at(102).route("ns-1", "orders", "broker-b")
    learns(send(send(send(builder, 101, "fail"), 104), 108), 130, "broker-b")
    builder.at(200).fault(*KILL, end=True).restarted("broker-a")
    builder.at(210).route("ns-0", "orders", *BOTH).at(215).route("ns-1", "orders", *BOTH)
    learns(send(builder, 205), 240, *BOTH)
    return samples_of("run", builder.end(300).rows)


def test_each_observer_is_stale_until_its_route_says_that_the_broker_went_or_came() -> None:
    found = crash()
    assert sorted(found.samples["staleness, NameServers"]) == pytest.approx([250.0, 2_000.0, 10_000.0, 15_000.0])
    assert found.samples["staleness, clients"] == pytest.approx((30_000.0, 40_000.0))
    assert found.cut_short == {}


def test_recovery_and_availability_count_from_the_first_fault() -> None:
    found = crash()
    assert found.samples["recovery time, send"] == pytest.approx((4_000.0, 5_000.0))
    assert found.samples["availability, send"] == (0.75,)
    assert found.samples["recovery time, pull"] == found.samples["availability, pull"] == ()


def test_what_never_comes_right_is_cut_short_and_an_observer_that_never_asks_has_no_sample() -> None:
    builder = learns(
        cluster(name_servers=1, clients=("producer-0", "producer-1"), workload={"topic": "orders"}), 2, *BOTH
    )
    builder.at(100).fault(*KILL).at(101).route("ns-0", "orders", "broker-b")
    found = samples_of("run", builder.end(300).rows)
    assert found.samples["staleness, clients"] == pytest.approx((200_000.0,))
    assert found.cut_short == {"staleness, clients": 1}


def test_a_name_server_started_anew_is_stale_until_its_brokers_are_back() -> None:
    restart = ("f1", "kill", "sigkill", "ns-0")
    builder = cluster(workload={"topic": "orders"}).at(100).fault(*restart)
    builder.at(150).fault(*restart, end=True).restarted("ns-0")
    builder.at(160).route("ns-0", "orders", "broker-b").at(170).route("ns-0", "orders", *BOTH)
    found = samples_of("run", builder.end(300).rows)
    assert sorted(found.samples["staleness, NameServers"]) == pytest.approx([10_000.0, 20_000.0])


def test_a_run_without_changes_has_no_staleness() -> None:
    builder = cluster(clients=("producer-0",)).end(100)
    assert changes(World.of_rows(builder.rows)) == []
    assert not any(samples_of("run", builder.rows).samples.values())
    assert not any(samples_of("run", HistoryBuilder().rows).samples.values())


def registered(builder: HistoryBuilder, at_s: float, code: int = 0) -> HistoryBuilder:
    return builder.at(at_s).registration("ns-0", "broker-a", code=code)


def test_a_period_is_from_one_accepted_registration_to_the_next() -> None:
    builder = registered(registered(registered(cluster(), 10), 40), 50, code=1)
    registered(builder, 70.5)
    assert windows_of(builder.rows)["registration period"] == (30_000, 30_500)


def test_a_drop_comes_so_long_after_the_last_registration() -> None:
    builder = registered(registered(cluster(), 10), 40)
    registered(builder.at(160).drops("ns-0", "broker-a", "expired"), 200).at(201).drops("ns-0", "broker-a")
    found = windows_of(builder.rows)
    assert found["silence before a drop"] == (120_000,)
    assert found["registration period"] == (30_000,)  # what came after the drop is no period


def test_routes_at_the_end_are_told_without_ports_and_after_the_last_start() -> None:
    here, there = cluster(), cluster()
    here.at(5).route("ns-0", "orders", "broker-a").at(6).route("ns-1", "orders", "broker-a")
    moved = route_of("broker-a")
    moved["brokers"]["broker-a"]["0"] = "127.0.0.1:20911"
    there.at(5).event("ns-0", "route", topic="orders", value=moved)
    there.at(6).event("ns-1", "route", topic="orders", value=moved)
    there.at(7).route("ns-0", "gone", "broker-a").at(8).event("ns-0", "route", topic="gone", value=None)
    routes = [routes_of(each.rows, ["ns-0", "ns-1"]) for each in (here, there)]
    assert topics_that_differ(routes[:1], routes[1:]) == {}
    there.at(9).route("ns-1", "orders", "broker-a", "broker-b")
    assert topics_that_differ(routes[:1], [routes_of(there.rows, ["ns-0", "ns-1"])]) == {"orders": (1, 2)}
