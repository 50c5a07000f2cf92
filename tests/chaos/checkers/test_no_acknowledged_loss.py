"""no_acknowledged_loss over hand-written histories."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from nemesrv.chaos.checkers.no_acknowledged_loss import no_acknowledged_loss
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HistoryBuilder

pytestmark = pytest.mark.spark

AT = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}
ALLOWED = {"bound_ms": None, "formula": "0 lost", "tolerance_ms": 0, "row": "an acknowledged send is durable"}


def check(builder: HistoryBuilder, spark: SparkSession) -> Verdict:
    history = builder.frame(spark)
    return no_acknowledged_loss(history, World.observe(history))


def sends() -> HistoryBuilder:
    """k-0 and k-1 were acknowledged, k-2 may have been stored, k-3 was refused; only k-0 was received."""
    builder = HistoryBuilder()
    for offset, type_ in enumerate(("ok", "ok", "info", "fail")):
        builder.at(offset).event("producer-0", "send", type="invoke", op_id=f"o-{offset}", msg_key=f"k-{offset}")
        builder.event("producer-0", "send", type=type_, op_id=f"o-{offset}", msg_key=f"k-{offset}", offset=offset, **AT)
    builder.event("consumer-0", "receive", msg_key="k-0", offset=0, **AT)
    return builder.event("consumer-0", "receive", msg_key="k-0", offset=0, **AT)


def test_what_nobody_received_but_the_final_read_holds_is_not_lost(spark: SparkSession) -> None:
    builder = sends().at(10).event("reader", "read", msg_key="k-1", offset=1, **AT)
    assert check(builder.event("reader", "read_done", offset=2, **AT), spark) == Verdict(
        name="no_acknowledged_loss",
        verdict=Validity.VALID,
        examined=2,
        measured={"acknowledged": 2, "received": 1, "only_in_final_reads": 1, "lost": 0, "unread": 0},
        allowed=ALLOWED,
    )


def test_what_neither_a_consumer_nor_a_complete_final_read_holds_is_lost(spark: SparkSession) -> None:
    assert check(sends().at(10).event("reader", "read_done", offset=1, **AT), spark) == Verdict(
        name="no_acknowledged_loss",
        verdict=Validity.INVALID,
        examined=2,
        violations=1,
        measured={"acknowledged": 2, "received": 1, "only_in_final_reads": 0, "lost": 1, "unread": 0},
        allowed=ALLOWED,
        examples=({"msg_key": "k-1", **AT, "offset": 1, "client": "producer-0", "at_ms": 1000.0},),
        why="1 of 2 acknowledged sends are neither received nor in the final reads",
    )


def test_where_the_final_read_of_that_queue_is_incomplete_nobody_knows(spark: SparkSession) -> None:
    other = {**AT, "queue_id": 1}
    verdict = check(sends().at(10).event("reader", "read_done", offset=0, **other), spark)
    assert (verdict.verdict, verdict.violations, verdict.measured["unread"]) == (Validity.UNKNOWN, 0, 1)
    assert [example["msg_key"] for example in verdict.examples] == ["k-1"]
    assert "incomplete" in verdict.why


def test_a_run_without_acknowledged_sends_is_unknown(spark: SparkSession) -> None:
    verdict = check(HistoryBuilder(), spark)
    assert (verdict.verdict, verdict.examined, verdict.why) == (Validity.UNKNOWN, 0, "no send was acknowledged")
