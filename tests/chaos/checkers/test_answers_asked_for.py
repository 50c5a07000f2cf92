"""answers_asked_for over hand-written histories."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from nemesrv.chaos.checkers.answers_asked_for import answers_asked_for
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HistoryBuilder, address_of, cluster

pytestmark = pytest.mark.spark


def check(builder: HistoryBuilder, spark: SparkSession) -> Verdict:
    history = builder.frame(spark)
    return answers_asked_for(history, World.observe(history))


def calls() -> HistoryBuilder:
    builder = cluster(clients=("consumer-0",)).at(5)
    builder.event("consumer-0", "pull", type="invoke", broker_name="broker-a", offset=0)
    builder.event("consumer-0", "pull", type="ok", broker_name="broker-a", offset=0)
    return builder.event("consumer-0", "name_server_call", f="route", type="ok", name_server=address_of("ns-0"))


def test_answers_to_calls_are_valid(spark: SparkSession) -> None:
    verdict = check(calls().end(10), spark)
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.VALID, 2, 0)


def test_answers_that_nobody_asked_for_are_invalid(spark: SparkSession) -> None:
    builder = calls()
    for at_s in (6, 7, 8):
        value = {"reason": f"code 0, opaque {at_s}"}
        builder.at(at_s).event("consumer-0", "unasked_answer", address=address_of("broker-a"), value=value)
    verdict = check(builder.end(10), spark)
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.INVALID, 5, 3)
    assert verdict.why == "3 answers of 1 peers were not asked for"
    assert verdict.examples == (
        {"client": "consumer-0", "peer": "broker-a", "answer": "code 0, opaque 6", "at_ms": 6000.0},
        {"client": "consumer-0", "peer": "broker-a", "answer": "code 0, opaque 8", "at_ms": 8000.0},
    )


def test_a_history_without_answers_is_unknown(spark: SparkSession) -> None:
    verdict = check(cluster(clients=("consumer-0",)).end(10), spark)
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)
    assert verdict.why == "no call was answered"
