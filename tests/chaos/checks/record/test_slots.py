"""Spark counts the same slots as plain Python does, one operation at a time."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession

from nemesrv.chaos.checks.dataframes.gathering import gather
from nemesrv.chaos.checks.dataframes.operations import slots_of as gathered
from nemesrv.chaos.checks.plain.slots import slots
from nemesrv.chaos.checks.record.slots import Slot
from tests import generate
from tests.chaos.builder import HistoryBuilder, cluster, frame
from tests.chaos.checks.slots import slots_of

pytestmark = pytest.mark.spark


def at_random(seed: int) -> HistoryBuilder:
    """Operations of all kinds and ends, with and without a duration, some of nobody's, around a fault."""
    settings = {name: {"brokerRole": "SYNC_MASTER"} for name in ("broker-a", "broker-b")}
    brokers = ("broker-a", "broker-a/1", "broker-b")
    clients = ("producer-0", "consumer-0")
    rng, builder = random.Random(seed), cluster(brokers=brokers, clients=clients, settings=settings)
    kill = ("f1", "kill", "sigkill", "broker-a")
    builder.at(100).fault(*kill).at(200).fault(*kill, end=True).restarted("broker-a")
    for _ in range(300):
        node = rng.choice(("producer-0", "consumer-0", "prober"))
        fields = {"type": rng.choice(("invoke", "ok", "ok", "fail", "info")), "code": rng.choice((None, 0, 11, 17))}
        fields["broker_name"] = rng.choice((None, "broker-a", "broker-b"))
        fields["duration_ms"] = rng.choice((None, 0.0, 10.0, 3_000.0, 120_000.0))
        builder.at(rng.choice((100.0, 200.0, rng.uniform(1, 420)))).event(
            node, rng.choice(("send", "pull", "name_server_call", "send_attempt")), **fields
        )
    return builder.end(400)


@pytest.mark.parametrize("seed", range(3))
def test_slots_are_what_one_operation_at_a_time_comes_to(spark: SparkSession, seed: int) -> None:
    builder = at_random(seed)
    found = gathered(*gather(builder.frame(spark)))
    expected, _ = slots_of(builder)
    assert found.edges == expected.edges
    assert sorted(found.slots, key=key) == expected.slots


def test_slots_of_a_generated_run_are_what_one_operation_at_a_time_comes_to(spark: SparkSession) -> None:
    rows = generate.rows_of(6_000, 5)
    gathering, world = gather(frame(spark, rows))
    found = gathered(gathering, world)
    assert sorted(found.slots, key=key) == slots(rows, world, found.edges)
    assert len(found.slots) > 100


def key(slot: Slot) -> tuple[object, ...]:
    return slot[:5]
