"""no_resurrection over hand-written histories."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from nemesrv.chaos.checkers.no_resurrection import no_resurrection
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HistoryBuilder, cluster

pytestmark = pytest.mark.spark

KILL = ("f1", "kill", "sigkill", "broker-a")
LINK = ("f1", "black_hole", "toxiproxy.bandwidth.rate=0", "broker-a", "ns-0")
BOTH = ("broker-a", "broker-b")


def check(builder: HistoryBuilder, spark: SparkSession) -> Verdict:
    history = builder.frame(spark)
    return no_resurrection(history, World.observe(history))


def crash(*told: tuple[float, str, tuple[str, ...]]) -> HistoryBuilder:
    """broker-a is killed at 100 s and back at 200 s; `told`: when, which node, and the brokers of its route then."""
    builder = cluster(clients=("producer-0",))
    client(builder.at(2), BOTH)
    builder.at(100).fault(*KILL).at(100.01).route("ns-0", "orders", "broker-b").route("ns-1", "orders", "broker-b")
    client(builder.at(115), ("broker-b",))
    for at_s, node, brokers in told:
        client(builder.at(at_s), brokers) if node == "producer-0" else builder.at(at_s).route(node, "orders", *brokers)
    builder.at(200).fault(*KILL, end=True).restarted("broker-a").topic("broker-a", "orders")
    return builder.at(200.2).route("ns-0", "orders", *BOTH).route("ns-1", "orders", *BOTH).end(260)


def client(builder: HistoryBuilder, brokers: tuple[str, ...]) -> HistoryBuilder:
    value = {"brokers": {broker: {"0": "127.0.0.1:1"} for broker in brokers}}
    return builder.event("producer-0", "route_changed", topic="orders", value=value)


def test_a_dead_broker_that_stays_dropped_is_valid(spark: SparkSession) -> None:
    assert check(crash(), spark) == Verdict(
        name="no_resurrection",
        verdict=Validity.VALID,
        examined=3,
        measured={"max_ms": None, "dropped_by_name_servers": 2, "dropped_by_clients": 1, "returns": 0},
        allowed={
            "bound_ms": 0.0,
            "formula": "never",
            "tolerance_ms": 51.0,
            "row": "a broker that is down sends no registration",
        },
    )


def test_a_dead_broker_that_returns_to_a_table_is_invalid(spark: SparkSession) -> None:
    verdict = check(crash((150, "ns-0", BOTH), (160, "ns-0", ("broker-b",))), spark)
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    assert verdict.examples == (
        {
            "name_server": "ns-0",
            "broker_name": "broker-a",
            "after": "f1 start",
            "topic": "orders",
            "at_ms": 150_000.0,
            "to_ms": 160_000.0,
            "dropped_ms": 100_010.0,
            "down_since_ms": 100_000.0,
            "down_until_ms": 200_000.0,
        },
    )


def test_a_dead_broker_that_returns_to_a_clients_routes_is_invalid(spark: SparkSession) -> None:
    verdict = check(crash((150, "producer-0", BOTH)), spark)
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    assert [(e["client"], e["at_ms"], e["dropped_ms"]) for e in verdict.examples] == [
        ("producer-0", 150_000.0, 115_000.0)
    ]


def test_a_client_may_go_back_and_forth_until_its_window_is_over(spark: SparkSession) -> None:
    builder = crash((120, "producer-0", BOTH), (129, "producer-0", ("broker-b",)))
    assert check(builder, spark).verdict is Validity.VALID


def test_what_lands_a_moment_before_the_row_of_the_restart_is_the_restart(spark: SparkSession) -> None:
    assert check(crash((199.97, "ns-0", BOTH)), spark).verdict is Validity.VALID


def partition(back_s: float) -> HistoryBuilder:
    """ns-0 loses broker-a's link at 100 s, drops it at 215 s and is healed at 300 s."""
    builder = cluster().at(100).fault(*LINK).at(215).route("ns-0", "orders", "broker-b")
    builder.at(300).fault(*LINK, end=True) if back_s > 300 else builder
    builder.at(back_s).route("ns-0", "orders", *BOTH)
    if back_s < 300:
        builder.at(300).fault(*LINK, end=True)
    return builder.end(360)


def test_a_broker_behind_a_partition_comes_back_after_the_heal_and_not_before(spark: SparkSession) -> None:
    assert check(partition(300.1), spark).verdict is Validity.VALID
    assert check(partition(260), spark).verdict is Validity.INVALID


def test_under_a_fault_that_lets_registrations_through_a_broker_may_come_and_go(spark: SparkSession) -> None:
    builder = cluster().at(100).fault(*LINK, stream="downstream").at(110).route("ns-0", "orders", "broker-b")
    builder.at(130).route("ns-0", "orders", *BOTH).at(300).fault(*LINK, stream="downstream", end=True)
    verdict = check(builder.end(360), spark)
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)


def test_a_return_on_a_machine_later_than_the_cap_is_unknown(spark: SparkSession) -> None:
    builder = crash((103.3, "ns-0", BOTH), (104, "ns-0", ("broker-b",)))
    assert check(builder.at(100).lag(3_500, "ns-0", until_s=104), spark).verdict is Validity.UNKNOWN


def test_without_a_lost_broker_or_without_anything_at_all_nothing_is_examined(spark: SparkSession) -> None:
    for builder in (HistoryBuilder(), cluster(clients=("producer-0",)).end(100)):
        verdict = check(builder, spark)
        assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)
