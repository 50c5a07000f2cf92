"""order_kept over hand-written histories."""

from __future__ import annotations

import pytest

from nemesrv.chaos.checks.messages.order_kept import CHECK, Misplaced, Order, judge
from nemesrv.chaos.verdict import Example, Validity
from tests.chaos.builder import HistoryBuilder, cluster

AT = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}


def sends(*rows: tuple[float, float, int], **at: object) -> HistoryBuilder:
    """(begin, end, offset) of each acknowledged send of producer-0; times in seconds."""
    builder = cluster(clients=("producer-0", "consumer-0"))
    for number, (begin_s, end_s, offset) in enumerate(rows):
        fields = {"duration_ms": (end_s - begin_s) * 1000, "offset": offset, **AT, **at}
        builder.at(end_s).event("producer-0", "send", type="ok", msg_key=f"k-{number}", **fields)
    return builder


def test_later_sends_of_a_producer_have_higher_offsets() -> None:
    verdict = sends((10, 11, 0), (12, 13, 4), (14, 15, 9)).judged(CHECK)
    assert (verdict.verdict, verdict.examined) == (Validity.VALID, 3)
    assert verdict.measured == {"sends": 3, "out_of_order": 0}


def test_a_later_send_with_a_lower_offset_is_invalid() -> None:
    verdict = sends((10, 11, 0), (12, 13, 9), (14, 15, 4)).judged(CHECK)
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    assert verdict.examples == (
        Example(
            who="producer-0",
            what="broker-a",
            topic="orders",
            from_ms=14_000.0,
            to_ms=15_000.0,
            more={
                "kind": "send after one with a higher offset, or the same",
                "msg_key": "k-2",
                "queue_id": 0,
                "offset": 4,
            },
        ),
    )


def test_an_offset_given_twice_is_invalid() -> None:
    assert sends((10, 11, 5), (12, 13, 5)).judged(CHECK).violations == 1


def test_sends_that_overlap_may_be_stored_in_either_order() -> None:
    assert sends((10, 13, 9), (12, 14, 4)).judged(CHECK).verdict is Validity.VALID


def test_queues_and_producers_are_in_no_order_with_each_other() -> None:
    builder = sends((10, 11, 9))
    for number, (node, queue_id) in enumerate((("producer-0", 1), ("producer-1", 0))):
        where = {**AT, "queue_id": queue_id}
        builder.at(20).event(node, "send", type="ok", msg_key=f"x-{number}", offset=0, duration_ms=1, **where)
    assert builder.judged(CHECK).verdict is Validity.VALID


@pytest.mark.parametrize(
    ("ordered", "op_ids", "expected"),
    [
        (True, ("take-0", "take-0"), Validity.INVALID),
        (True, ("take-0", "take-1"), Validity.VALID),
        (False, ("take-0", "take-0"), Validity.VALID),
    ],
)
def test_only_an_ordered_workload_must_hand_over_by_offset_and_only_within_a_holding(
    ordered: bool, op_ids: tuple[str, str], expected: Validity
) -> None:
    builder = cluster(clients=("producer-0", "consumer-0"), workload={"ordered": ordered})
    builder.at(9).event("producer-0", "send", type="ok", msg_key="k-0", offset=0, **AT)
    for offset, op_id in zip((5, 4), op_ids, strict=True):
        builder.at(10).event("consumer-0", "receive", msg_key=f"r-{offset}", offset=offset, op_id=op_id, **AT)
    verdict = builder.judged(CHECK)
    assert verdict.verdict is expected
    assert [example.more["msg_key"] for example in verdict.examples] == ["r-4"] * (expected is Validity.INVALID)


def test_without_an_acknowledged_send_nothing_is_examined() -> None:
    _, world = cluster().facts()
    verdict = judge(Order(), world)
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)


def test_all_that_is_out_of_order_is_counted_and_the_first_five_are_shown() -> None:
    _, world = cluster(workload={"ordered": True}).facts()
    rows = tuple(
        Misplaced("send", at_ms, at_ms + 1, f"k-{at_ms}", "producer-0", "orders", "broker-a", 0, 3)
        for at_ms in range(9, 0, -1)
    )
    verdict = judge(Order(sends=20, receipts=12, out_of_order=9, misplaced=rows), world)
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.INVALID, 32, 9)
    assert verdict.why == "9 of 32 acknowledged sends or receipts are behind a later one of their queue"
    assert [example.from_ms for example in verdict.examples] == [1, 2, 3, 4, 5]
    assert len(verdict.findings) == 9
    assert verdict.allowed["formula"].endswith("a holding hands over by rising offset")
