"""queue_ownership over hand-written histories: where a group begins on a queue that it never had."""

from typing import Any

import pytest

from nemesrv.chaos.checks.messages.queue_ownership import first_takes
from tests.chaos.builder import HistoryBuilder, cluster


def takes(*offsets: int, topic: str = "orders", **workload: Any) -> HistoryBuilder:
    """consumer-0 took queue 0 of broker-a at these offsets, one after the other."""
    builder = cluster(1, ("broker-a",), ("consumer-0",), workload={"topic": "orders", **workload})
    for number, offset in enumerate(offsets):
        of = {"topic": topic, "broker_name": "broker-a", "queue_id": 0, "op_id": f"take-{number}", "offset": offset}
        builder.at(10 + 20 * number).event("consumer-0", "queue_taken", **of)
    return builder


def wrong(builder: HistoryBuilder) -> list[int]:
    control, world = builder.end(100).facts()
    return [finding.wrong for finding in first_takes(control, world)]


@pytest.mark.parametrize(("offsets", "wrong_"), [((0,), 0), ((0, 7), 0), ((7,), 1), ((7, 9), 1)])
def test_a_group_begins_at_the_first_message_and_later_where_it_was(offsets: tuple[int, ...], wrong_: int) -> None:
    assert wrong(takes(*offsets)) == [wrong_]


def test_who_broadcasts_begins_at_the_end_and_a_groups_retries_where_they_are() -> None:
    assert wrong(takes(7, broadcasting=True)) == []
    assert wrong(takes(7, topic="%RETRY%nemesrv-consumers")) == []


def test_an_operator_may_say_where() -> None:
    assert wrong(takes(7).at(5).offset_reset("orders", "broker-a", 7)) == []


@pytest.mark.parametrize(
    ("value", "offset", "said"),
    [
        ({"answered": 7}, 7, ("first answered", "broker-a", 1)),
        ({"answered": -1}, 7, ("first taken", None, 1)),
        ({"answered": None}, 0, ("answered no offset", "broker-a", 1)),
        ({"answered": 0}, 0, ("first taken", None, 0)),
        ({}, 0, ("first taken", None, 0)),
    ],
)
def test_who_begins_where_the_broker_said_or_is_told_of_no_offset_accuses_the_broker(
    value: dict[str, Any], offset: int, said: tuple[str, str | None, int]
) -> None:
    builder = cluster(1, ("broker-a",), ("consumer-0",), workload={"topic": "orders"})
    of = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0, "op_id": "take-0", "offset": offset}
    builder.at(10).event("consumer-0", "queue_taken", value=value, **of)
    (found,) = first_takes(*builder.end(100).facts())
    assert (found.kind, found.more.get("holder"), found.wrong) == said


def test_programs_that_others_made_are_not_held_to_it() -> None:
    assert wrong(takes(7).made_by("apache-4.9.7", "broker-a")) == []
