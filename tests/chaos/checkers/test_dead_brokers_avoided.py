"""dead_brokers_avoided over hand-written histories."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from nemesrv.chaos.checkers.dead_brokers_avoided import dead_brokers_avoided
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HistoryBuilder, cluster

pytestmark = pytest.mark.spark

KILL = ("f1", "kill", "sigkill", "broker-a")
PAUSE = ("f1", "pause", "sigstop", "broker-a")


def check(builder: HistoryBuilder, spark: SparkSession) -> Verdict:
    history = builder.frame(spark)
    return dead_brokers_avoided(history, World.observe(history))


def send(
    builder: HistoryBuilder, at_s: float, broker: str, *, topic: str = "orders", attempt: int = 0
) -> HistoryBuilder:
    op_id = f"op-{at_s}"
    builder.at(at_s).event("producer-0", "send", type="invoke", op_id=op_id, topic=topic, msg_key=op_id)
    return builder.event("producer-0", "send_attempt", type="invoke", op_id=op_id, attempt=attempt, broker_name=broker)


def pull(builder: HistoryBuilder, at_s: float, broker: str) -> HistoryBuilder:
    return builder.at(at_s).event("consumer-0", "pull", type="invoke", topic="orders", broker_name=broker, queue_id=0)


def crash(last_send_s: float, last_pull_s: float, *, attempt: int = 0, lag_ms: float | None = 1.0) -> HistoryBuilder:
    """broker-a is killed at 100 s and is not back before 200 s; both clients go on with broker-b."""
    builder = cluster(clients=("producer-0", "consumer-0")).at(100).fault(*KILL)
    send(builder, last_send_s, "broker-a", attempt=attempt)
    pull(builder, last_pull_s, "broker-a")
    for at_s in (160, 190):
        pull(send(builder, at_s, "broker-b"), at_s, "broker-b")
    return builder.at(200).fault(*KILL, end=True).restarted("broker-a").end(240, lag_ms)


def test_clients_that_leave_a_killed_broker_within_a_poll_and_a_rebalance_are_valid(spark: SparkSession) -> None:
    assert check(crash(last_send_s=129, last_pull_s=149), spark) == Verdict(
        name="dead_brokers_avoided",
        verdict=Validity.VALID,
        examined=2,
        measured={
            "max_ms": 29_000.0,
            "last_use": [
                {
                    "client": "consumer-0",
                    "broker_name": "broker-a",
                    "fault_id": "f1",
                    "after_ms": 49_000.0,
                    "bound_ms": 50_000.0,
                },
                {
                    "client": "producer-0",
                    "broker_name": "broker-a",
                    "fault_id": "f1",
                    "after_ms": 29_000.0,
                    "bound_ms": 30_000.0,
                },
            ],
        },
        allowed={
            "bound_ms": 30_000.0,
            "formula": "(RTT + event thread) + P",
            "tolerance_ms": 52.0,
            "row": "producer stops targeting the broker after: process crash, kernel closes its connections",
        },
    )


def test_a_producer_that_keeps_using_it_is_invalid(spark: SparkSession) -> None:
    verdict = check(crash(last_send_s=150, last_pull_s=149), spark)
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.INVALID, 2, 1)
    assert verdict.examples == (
        {
            "client": "producer-0",
            "broker_name": "broker-a",
            "fault_id": "f1",
            "topic": "orders",
            "op_id": "op-150",
            "lost_ms": 100_000.0,
            "due_ms": 130_000.0,
            "used_ms": 150_000.0,
            "late_uses": 1,
            "over_ms": 20_000.0,
        },
    )


def test_a_consumer_that_keeps_pulling_from_it_is_invalid(spark: SparkSession) -> None:
    verdict = check(crash(last_send_s=129, last_pull_s=170), spark)
    assert [example["client"] for example in verdict.examples] == ["consumer-0"]
    assert verdict.verdict is Validity.INVALID


def test_a_retry_may_use_the_route_its_send_began_with(spark: SparkSession) -> None:
    assert check(crash(last_send_s=132, last_pull_s=149, attempt=1), spark).verdict is Validity.VALID
    assert check(crash(last_send_s=132, last_pull_s=149, attempt=0), spark).verdict is Validity.INVALID


def test_a_late_use_on_a_machine_later_than_the_cap_is_unknown(spark: SparkSession) -> None:
    verdict = check(crash(last_send_s=135, last_pull_s=149, lag_ms=4000), spark)
    assert (verdict.verdict, verdict.violations) == (Validity.UNKNOWN, 0)


def test_without_a_lost_broker_or_without_anything_at_all_nothing_is_examined(spark: SparkSession) -> None:
    for builder in (HistoryBuilder(), send(cluster(clients=("producer-0",)), 50, "broker-a").end(100)):
        verdict = check(builder, spark)
        assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)


def test_a_client_that_did_nothing_after_the_window_proves_nothing(spark: SparkSession) -> None:
    builder = cluster(clients=("producer-0",)).at(100).fault(*KILL)
    verdict = check(send(builder, 110, "broker-b").end(200), spark)
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)


def test_the_last_broker_of_a_topic_may_be_used_for_ever(spark: SparkSession) -> None:
    builder = cluster(clients=("producer-0",)).at(50).topic("broker-a", "only-here").at(100).fault(*KILL)
    send(builder, 180, "broker-a", topic="only-here")
    verdict = check(send(builder, 190, "broker-b").end(220), spark)
    assert (verdict.verdict, verdict.examined) == (Validity.VALID, 1)


def test_a_broker_that_only_this_client_cannot_reach_is_not_judged(spark: SparkSession) -> None:
    builder = cluster(clients=("producer-0",)).at(100)
    builder.fault("f1", "black_hole", "toxiproxy.bandwidth.rate=0", "producer-0", "broker-a")
    verdict = check(send(builder, 400, "broker-a").end(500), spark)
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)


@pytest.mark.parametrize(("last_s", "expected"), [(262, Validity.VALID), (270, Validity.INVALID)])
def test_a_hung_broker_is_left_after_expiry_and_a_poll_that_its_heartbeat_holds_up(
    spark: SparkSession, last_s: float, expected: Validity
) -> None:
    """E + S + P + J = 120 + 10 + 30 + 3 s."""
    builder = cluster(clients=("producer-0",)).at(100).fault(*PAUSE)
    send(builder, last_s, "broker-a")
    send(builder, 300, "broker-b").at(320).fault(*PAUSE, end=True)
    verdict = check(builder.end(400), spark)
    assert (verdict.verdict, verdict.examined) == (expected, 1)
    assert verdict.allowed["bound_ms"] == 163_000


def test_a_client_whose_name_server_failed_too_has_a_failed_call_more(spark: SparkSession) -> None:
    builder = cluster(clients=("producer-0",)).at(90).fault("f0", "kill", "sigkill", "ns-0").at(100).fault(*KILL)
    send(builder, 160, "broker-a")
    verdict = check(send(builder, 190, "broker-b").end(220), spark)
    assert verdict.verdict is Validity.VALID
    assert verdict.allowed["bound_ms"] == 63_000  # P + (1·P + A)


def test_a_name_server_started_again_has_no_route_to_give_before_it_is_refilled(spark: SparkSession) -> None:
    restart = ("f0", "kill", "sigkill", "ns-0")
    builder = cluster(clients=("producer-0",)).at(60).fault(*restart).at(90).fault(*restart, end=True).restarted("ns-0")
    builder.at(100).fault(*KILL)
    verdict = check(send(builder, 260, "broker-b").end(280), spark)
    assert verdict.verdict is Validity.VALID
    assert verdict.allowed["bound_ms"] == 23_000 + 30_000 + 33_000  # rest of R + C, P, and 1·P + A for the dead server
