"""What is taken for plain in large histories is so, and the checks of messages say the same of large and small ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from nemesrv.chaos.checks.dataframes.messages import messages
from nemesrv.chaos.checks.dataframes.order import in_doubt, sends_of
from nemesrv.chaos.checks.dataframes.plain_pages import pages, place
from nemesrv.chaos.checks.dataframes.shared import shared_scan
from nemesrv.chaos.checks.messages import duplicates, no_acknowledged_loss, order_kept
from nemesrv.chaos.verdict import Validity, Verdict
from tests import generate
from tests.chaos.builder import HistoryBuilder, cluster, frame, judged

pytestmark = pytest.mark.spark

OF_MESSAGES = (no_acknowledged_loss.CHECK, order_kept.CHECK, duplicates.CHECK)
Rows = Sequence[dict[str, Any]]


def verdicts(history: DataFrame, *, large: bool) -> list[Verdict]:
    if not large:
        return [judged(check, history) for check in OF_MESSAGES]
    with shared_scan(history, history):
        return [judged(check, history) for check in OF_MESSAGES]


def plain_of(history: DataFrame) -> int:
    with shared_scan(history, history):
        return messages(history).plain


@pytest.mark.parametrize("defect", [None, "lost_message", "order_broken", "received_twice"])
def test_a_history_read_by_pages_gets_the_verdicts_of_one_read_by_messages(
    defect: str | None, spark: SparkSession
) -> None:
    history = frame(spark, generate.rows_of(10_000, 5, defect)).cache()
    assert plain_of(history) > 300
    assert verdicts(history, large=True) == verdicts(history, large=False)


def stored(
    builder: HistoryBuilder, key: str, offset: int, *, tries: int = 1, broker: str = "broker-a"
) -> HistoryBuilder:
    """A message sent, received and read at that offset."""
    at = {"topic": "orders", "broker_name": broker, "queue_id": 0, "offset": offset, "msg_key": key}
    builder.event("producer-0", "send", type="ok", duration_ms=1.0, attempt=tries, **at)
    builder.event("consumer-0", "receive", op_id="take-0", **at)
    return builder.event("reader", "read", **at)


def queue_of(count: int) -> HistoryBuilder:
    """That many messages in a row in one queue, a second apart, taken once."""
    builder = cluster(clients=("producer-0", "consumer-0"))
    builder.event("consumer-0", "queue_taken", op_id="take-0", topic="orders", broker_name="broker-a", queue_id=0)
    for offset in range(count):
        stored(builder.at(10 + offset), f"k-{offset}", offset)
    return builder


def test_all_messages_of_a_clean_queue_are_plain(spark: SparkSession) -> None:
    history = queue_of(130).end(200).frame(spark)
    assert plain_of(history) == 130
    assert [(v.verdict, v.examined) for v in verdicts(history, large=True)] == [(Validity.VALID, 130)] * 3


def test_a_copy_stored_in_the_page_after_its_message_is_found(spark: SparkSession) -> None:
    """The first page of 64 is plain by itself; only the key tells that the stray of the second is a copy."""
    builder = queue_of(64)
    where = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}
    builder.at(90).event("reader", "read", offset=64, msg_key="k-63", **where)
    history = builder.end(200).frame(spark)
    large = verdicts(history, large=True)
    assert large == verdicts(history, large=False)
    assert large[2].verdict is Validity.INVALID
    assert "stored 2 times by 1 tries" in str(large[2].examples)


@pytest.mark.parametrize(
    ("plain", "change"),
    [
        pytest.param(86, lambda rows: [r for r in rows if (r.get("msg_key"), r["event"]) not in LOST], id="lost"),
        pytest.param(
            86,
            lambda rows: [r for r in rows if (r.get("msg_key"), r["event"]) != ("k-7", "receive")],
            id="received by nobody",
        ),
        pytest.param(86, lambda rows: [renamed(r, "receive", "k-7", "k-8") for r in rows], id="received as another"),
        pytest.param(85, lambda rows: [renamed(r, "read", "k-7", "k-99") for r in rows], id="read as another"),
        pytest.param(86, lambda rows: [renamed(r, "", "k-7", None) for r in rows], id="nameless"),
        pytest.param(
            86, lambda rows: [r | {"attempt": 2} if r.get("msg_key") == "k-7" else r for r in rows], id="retried"
        ),
        pytest.param(
            86,
            lambda rows: [*rows, *(r | {"seq": 9_000 + r["seq"]} for r in rows if r.get("offset") == 7)],
            id="sent twice",
        ),
        pytest.param(
            149,
            lambda rows: [r | {"offset": None} if r.get("msg_key") == "k-7" else r for r in rows],
            id="no queue offset",
        ),
        pytest.param(86, lambda rows: [unsure(r) if r.get("msg_key") == "k-7" else r for r in rows], id="unsure"),
    ],
)
def test_one_message_that_is_not_plain_makes_its_page_looked_into(
    plain: int, change: Callable[[Rows], Rows], spark: SparkSession
) -> None:
    """86 messages are in later pages; one of them has a key that is looked up, or the message has no page at all."""
    history = frame(spark, change(queue_of(150).end(200).rows))
    assert plain_of(history) == plain
    assert verdicts(history, large=True) == verdicts(history, large=False)


LOST = {("k-7", "receive"), ("k-7", "read")}


def renamed(row: dict[str, Any], event: str, old: str, new: str | None) -> dict[str, Any]:
    is_it = row.get("msg_key") == old and event in (row["event"], "")
    return row | {"msg_key": new} if is_it else row


def unsure(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"type": "info", "offset": None} if row["event"] == "send" else row


def test_a_page_is_plain_when_its_three_sets_are_one(spark: SparkSession) -> None:
    rng, rows, expected = random.Random(7), [], {}
    for queue in range(120):
        truth = sorted(rng.sample(range(64), rng.randint(1, 12)))
        sets = {event: [(f"k-{queue}-{offset}", offset) for offset in truth] for event in ("send", "receive", "read")}
        spoiled = rng.choice([None, None, "drop", "twice", "swap"])
        victim = sets[rng.choice(sorted(sets))]
        if spoiled == "drop":
            victim.remove(rng.choice(victim))
        elif spoiled == "twice":
            victim.append(rng.choice(victim))
        elif spoiled == "swap" and len(victim) > 1:
            (key, _), (_, offset) = victim[:2]
            victim[:2] = [(key, offset), (victim[1][0], victim[0][1])]
        else:
            spoiled = None
        expected[queue] = spoiled is None
        where = {"topic": "orders", "broker_name": "broker-a", "queue_id": queue, "role": "x", "incarnation": 0}
        for event, found in sets.items():
            rows += [{"event": event, "msg_key": k, "offset": o, "type": "ok", **where} for k, o in found]
    rows = [row | {"time_ms": float(n), "seq": n, "node": "x"} for n, row in enumerate(rows)]
    history = frame(spark, rows)
    numbers = {row[0]: row[1] for row in history.select(place(), "queue_id").distinct().collect()}
    found = {numbers[row["place"]]: row["is_plain"] for row in pages(history).collect()}
    assert found == expected


def test_a_queue_is_in_doubt_exactly_when_a_send_has_a_later_one_before_it(spark: SparkSession) -> None:
    rng, rows, expected = random.Random(11), [], {}
    for queue in range(150):
        sends = []
        for offset in rng.sample(range(40), rng.randint(1, 12)):
            began = offset * 10.0 + rng.choice([0.0] * 12 + [35.0, 140.0])
            sends.append((offset, began, began + rng.choice([1.0, 15.0])))
        if rng.random() < 0.1:
            sends.append(rng.choice(sends))
        pairs = [sorted(pair) for pair in combinations(sends, 2)]
        expected[queue] = any(low[0] == high[0] or high[2] < low[1] for low, high in pairs)
        for offset, began, ended in sends:
            row = {"event": "send", "type": "ok", "offset": offset, "queue_id": queue, "time_ms": ended}
            rows.append(row | {"duration_ms": ended - began, "node": f"producer-{rng.randint(0, 3)}"})
    fixed = {"topic": "orders", "broker_name": "broker-a", "role": "producer", "incarnation": 0}
    history = frame(spark, [row | fixed | {"seq": n, "msg_key": f"k-{n}"} for n, row in enumerate(rows)])
    numbers = {row[0]: row[1] for row in history.select(place(), "queue_id").distinct().collect()}
    found = {numbers[row["place"]]: row["in_doubt"] for row in in_doubt(sends_of(history)).collect()}
    assert found == expected
    assert {True, False} == set(expected.values())
