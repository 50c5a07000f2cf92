"""What a history measured: recovery, availability and staleness of hand-written runs."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.proof.statistics.samples import RunSamples, changes, samples_of
from tests.chaos.builder import HistoryBuilder, cluster, route_of

pytestmark = pytest.mark.spark

KILL = ("f1", "kill", "sigkill", "broker-a")
BOTH = ("broker-a", "broker-b")


def learns(builder: HistoryBuilder, at_s: float, *brokers: str, node: str = "producer-0") -> HistoryBuilder:
    return builder.at(at_s).event(node, "route_changed", topic="orders", value=route_of(*brokers))


def send(builder: HistoryBuilder, at_s: float, type_: str = "ok") -> HistoryBuilder:
    return builder.at(at_s).event("producer-0", "send", type=type_, duration_ms=0.0)


def crash(spark: SparkSession) -> RunSamples:
    """broker-a is killed at 100 s and started again at 200 s; ns-1 and the producer follow later than ns-0."""
    builder = learns(cluster(clients=("producer-0",), workload={"topic": "orders"}), 2, *BOTH)
    send(builder, 50, "fail")
    builder.at(100).fault(*KILL)
    builder.at(100.25).route("ns-0", "orders", "broker-b").at(102).route("ns-1", "orders", "broker-b")
    learns(send(send(send(builder, 101, "fail"), 104), 108), 130, "broker-b")
    builder.at(200).fault(*KILL, end=True).restarted("broker-a")
    builder.at(210).route("ns-0", "orders", *BOTH).at(215).route("ns-1", "orders", *BOTH)
    learns(send(builder, 205), 240, *BOTH)
    return samples_of("run", builder.end(300).frame(spark))


def test_each_observer_is_stale_until_its_route_says_that_the_broker_went_or_came(spark: SparkSession) -> None:
    found = crash(spark)
    assert sorted(found.samples["staleness, NameServers"]) == pytest.approx([250.0, 2_000.0, 10_000.0, 15_000.0])
    assert found.samples["staleness, clients"] == pytest.approx((30_000.0, 40_000.0))
    assert found.cut_short == {}


def test_recovery_and_availability_count_from_the_first_fault(spark: SparkSession) -> None:
    found = crash(spark)
    assert found.samples["recovery time, send"] == pytest.approx((4_000.0, 5_000.0))
    assert found.samples["availability, send"] == (0.75,)
    assert found.samples["recovery time, pull"] == found.samples["availability, pull"] == ()


def test_what_never_comes_right_is_cut_short_and_an_observer_that_never_asks_has_no_sample(spark: SparkSession) -> None:
    builder = learns(
        cluster(name_servers=1, clients=("producer-0", "producer-1"), workload={"topic": "orders"}), 2, *BOTH
    )
    builder.at(100).fault(*KILL).at(101).route("ns-0", "orders", "broker-b")
    found = samples_of("run", builder.end(300).frame(spark))
    assert found.samples["staleness, clients"] == pytest.approx((200_000.0,))
    assert found.cut_short == {"staleness, clients": 1}


def test_a_name_server_started_anew_is_stale_until_its_brokers_are_back(spark: SparkSession) -> None:
    restart = ("f1", "kill", "sigkill", "ns-0")
    builder = cluster(workload={"topic": "orders"}).at(100).fault(*restart)
    builder.at(150).fault(*restart, end=True).restarted("ns-0")
    builder.at(160).route("ns-0", "orders", "broker-b").at(170).route("ns-0", "orders", *BOTH)
    found = samples_of("run", builder.end(300).frame(spark))
    assert sorted(found.samples["staleness, NameServers"]) == pytest.approx([10_000.0, 20_000.0])


def test_a_run_without_changes_has_no_staleness(spark: SparkSession) -> None:
    builder = cluster(clients=("producer-0",)).end(100)
    history = builder.frame(spark)
    assert changes(World.of_rows(builder.rows)) == []
    assert not any(samples_of("run", history).samples.values())
    assert not any(samples_of("run", HistoryBuilder().frame(spark)).samples.values())
