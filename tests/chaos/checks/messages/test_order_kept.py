"""order_kept over hand-written histories."""

from typing import Any

import pytest

from nemesrv.chaos.checks.messages.order_kept import judge
from nemesrv.chaos.verdict import Validity
from tests.chaos.builder import KILL, HistoryBuilder, address_of, cluster, example

AT = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}


def sends(*rows: tuple[float, float, int], **at: object) -> HistoryBuilder:
    """(begin, end, offset) of each acknowledged send of producer-0; times in seconds."""
    builder = cluster(clients=("producer-0", "consumer-0"))
    for number, (begin_s, end_s, offset) in enumerate(rows):
        fields = {"duration_ms": (end_s - begin_s) * 1000, "offset": offset, **AT, **at}
        builder.at(end_s).event("producer-0", "send", type="ok", msg_key=f"k-{number}", **fields)
    return builder


def test_later_sends_of_a_producer_have_higher_offsets() -> None:
    verdict = sends((10, 11, 0), (12, 13, 4), (14, 15, 9)).judged(judge)
    assert (verdict.verdict, verdict.examined) == (Validity.VALID, 3)
    assert verdict.measured == {"sends": 3, "out_of_order": 0}


def test_a_later_send_with_a_lower_offset_is_invalid() -> None:
    verdict = sends((10, 11, 0), (12, 13, 9), (14, 15, 4)).judged(judge)
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    (found,) = verdict.examples
    about = {"kind": "send out of order", "msg_key": "k-2", "queue_id": 0, "offset": 4}
    assert found == example("producer-0", "broker-a", topic="orders", from_s=14, to_s=15, **about)


def test_an_offset_given_twice_is_invalid() -> None:
    assert sends((10, 11, 5), (12, 13, 5)).judged(judge).violations == 1


@pytest.mark.parametrize(
    ("sent_s", "offset", "expected"), [(70, 9, Validity.INVALID), (70, 10, Validity.VALID), (99.9, 9, Validity.VALID)]
)
def test_a_new_master_gives_no_offset_again_that_it_had_copied(sent_s: float, offset: int, expected: Validity) -> None:
    builder = cluster(1, ("broker-a", "broker-a/1"), ("producer-0",)).at(sent_s)
    builder.event("producer-0", "send", type="ok", msg_key="k-0", offset=9, duration_ms=1, **AT)
    builder.at(100).fault(*KILL).at(110).act("switch", "broker-a/1")
    builder.at(130).event("producer-0", "send", type="ok", msg_key="k-1", offset=offset, duration_ms=1, **AT)
    assert builder.end(200).judged(judge).verdict is expected


def test_two_messages_of_different_producers_that_were_acknowledged_at_one_offset_accuse_the_broker() -> None:
    """And no pull of the queue: by wrong offsets nobody knows where the queue ends."""
    builder = cluster(1, ("broker-a",), ("producer-0", "producer-1", "consumer-0"), workload={"topic": "orders"})
    pull = {"address": address_of("broker-a"), "value": {"max": 13, "min": 0, "next": 13}, "duration_ms": 9000.0}
    builder.at(40).event("consumer-0", "pull", type="ok", code=19, offset=13, **pull, **AT)
    for at_s, producer in ((20, "producer-0"), (90, "producer-1")):
        builder.at(at_s).event(producer, "send", type="ok", msg_key=producer, offset=13, duration_ms=1, **AT)
    (found,) = builder.end(100).judged(judge).examples
    assert (found.what, found.who) == ("broker-a", "producer-1")
    assert found.more["kind"] == "two messages at one offset"


def test_sends_that_overlap_may_be_stored_in_either_order() -> None:
    assert sends((10, 13, 9), (12, 14, 4)).judged(judge).verdict is Validity.VALID


def test_queues_and_producers_are_in_no_order_with_each_other() -> None:
    builder = sends((10, 11, 9))
    for number, (node, queue_id) in enumerate((("producer-0", 1), ("producer-1", 0))):
        where = {**AT, "queue_id": queue_id}
        builder.at(20).event(node, "send", type="ok", msg_key=f"x-{number}", offset=0, duration_ms=1, **where)
    assert builder.judged(judge).verdict is Validity.VALID


@pytest.mark.parametrize(
    ("ordered", "op_ids", "expected"),
    [
        (True, ("take-0", "take-0"), Validity.INVALID),
        (True, ("take-0", "take-1"), Validity.VALID),
        (False, ("take-0", "take-0"), Validity.VALID),
    ],
)
def test_only_ordered_work_is_handed_over_by_offset(ordered: bool, op_ids: tuple[str, str], expected: Validity) -> None:
    builder = cluster(clients=("producer-0", "consumer-0"), workload={"ordered": ordered})
    builder.at(9).event("producer-0", "send", type="ok", msg_key="k-0", offset=0, **AT)
    for offset, op_id in zip((5, 4), op_ids, strict=True):
        builder.at(10).event("consumer-0", "receive", msg_key=f"r-{offset}", offset=offset, op_id=op_id, **AT)
    verdict = builder.judged(judge)
    assert verdict.verdict is expected
    assert [example.more["msg_key"] for example in verdict.examples] == ["r-4"] * (expected is Validity.INVALID)


def test_all_that_is_out_of_order_is_counted_and_the_first_five_are_shown() -> None:
    verdict = sends(*((number, number + 0.5, 20 - number) for number in range(10))).judged(judge)
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.INVALID, 10, 9)
    assert verdict.why == "9 of 10 acknowledged sends, answers or receipts are out of order or say what is not so"
    assert [example.from_ms for example in verdict.examples] == [1000, 2000, 3000, 4000, 5000]
    assert len(verdict.findings) == 9


def answered(
    asked: int,
    code: int,
    low: int,
    high: int,
    next_: int,
    broker: str = "broker-a",
    held_ms: float = 15_001.0,
    made_by: str = "ours",
    settings: dict[str, Any] | None = None,
    by_hand: dict[str, Any] | None = None,
    **handed: int,
) -> list[tuple[Any, ...]]:
    """Who is wrong about what, where offsets 0 to 4 were acknowledged by 20 s, the pull took from 30 to 31 s (held: to
    45 s), offset 5 was sent at 50 s and the final read found an end of 6. `by_hand`: an operator's, at 20 s."""
    run: dict[str, Any] = {"workload": {"topic": "orders", "body_bytes": 100}}
    run["settings"] = {"broker-a": settings or {}}
    builder = cluster(brokers=("broker-a", "broker-a/1"), clients=("producer-0", "consumer-0"), **run)
    for offset in range(6):
        at_s = 16 + offset if offset < 5 else 50
        builder.at(at_s).event("producer-0", "send", type="ok", msg_key=f"k-{offset}", offset=offset, **AT)
    said = dict(sorted({"max": high, "min": low, "next": next_, **handed}.items()))
    took_ms = held_ms if code == 19 else 1000.0
    pull = {"code": code, "address": address_of(broker), "duration_ms": took_ms, "value": said}
    builder.at(30 + took_ms / 1000).event("consumer-0", "pull", type="ok", offset=asked, **pull, **AT)
    builder.made_by(made_by, "broker-a")
    if by_hand:
        builder.at(20).act("update_config", broker, value={"settings": by_hand})
    verdict = builder.at(60).event("prober", "read_done", offset=6, **AT).end(70).judged(judge)
    return [(one.what, str(one.more["kind"]).removeprefix("answered a wrong ")) for one in verdict.examples]


def test_an_answer_to_a_pull_has_the_ends_of_its_queue_and_its_next_offset() -> None:
    """`DefaultMessageStore.getMessage`: handed over, nothing new, none wanted, too far, too low, in their order."""
    for code, asked, next_ in ((0, 3, 5), (0, 3, 4), (19, 5, 5), (21, 9, 5)):
        assert answered(asked, code, 0, 5, next_) == [], (code, asked, next_)
    assert answered(1, 21, 2, 5, 2) == answered(5, 20, 0, 5, 5, "broker-a/1") == []


@pytest.mark.parametrize(
    ("code", "asked", "next_"),
    [(0, 3, 3), (0, 3, 6), (19, 5, 6), (19, 5, 4), (20, 3, 5), (20, 3, 3), (21, 9, 4), (21, 9, 9)],
)
def test_a_broker_that_sends_a_consumer_on_to_a_wrong_offset_is_accused(code: int, asked: int, next_: int) -> None:
    assert answered(asked, code, 0, 5, next_) == [("broker-a", "next offset")]


def test_a_broker_that_says_that_nothing_matched_at_the_end_of_a_queue_is_accused() -> None:
    kind = "code 20 for 19"
    assert answered(5, 20, 0, 5, 5) == answered(5, 20, 0, 5, 6) == [("broker-a", kind)]


def test_a_broker_that_says_that_there_is_nothing_yet_beyond_the_end_of_a_queue_is_accused() -> None:
    assert answered(6, 19, 0, 5, 6) == [("broker-a", "code 19 for 21")]
    assert answered(5, 19, 0, 5, 5) == []


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({}, 1),
        ({"maxTransferCountOnMessageInMemory": 2}, 1),
        ({"maxTransferCountOnMessageInMemory": 1}, 0),
        ({"maxTransferBytesOnMessageInMemory": 1_000}, 0),
    ],
)
def test_an_answer_has_as_many_messages_as_its_brokers_settings_allow(settings: dict[str, Any], found: int) -> None:
    handed = {"count": 1, "first": 3, "last": 3, "rising": 1}
    wrong = answered(3, 0, 0, 5, 4, settings=settings, **handed)
    assert wrong == [("broker-a", "answered too few messages")] * found


def test_a_broker_that_says_a_wrong_end_or_beginning_is_accused_and_a_slave_may_lack_some() -> None:
    assert answered(3, 0, 0, 4, 4) == answered(5, 19, 0, 6, 5) == [("broker-a", "end")]
    assert answered(3, 0, 4, 5, 4) == [("broker-a", "first offset")]
    assert answered(3, 0, 0, 4, 4, "broker-a/1") == []
    assert answered(5, 19, 0, 6, 5, "broker-a/1") == [("broker-a/1", "end")]
    assert answered(9, 21, 0, 5, 0, "broker-a/1") == [("broker-a/1", "next offset")]


@pytest.mark.parametrize(("cut_s", "wrong"), [(None, True), (50, False)])
def test_a_slave_has_what_its_master_acknowledged_in_quiet_times(cut_s: float | None, wrong: bool) -> None:
    builder = cluster(1, ("broker-a", "broker-a/1"), ("producer-0", "consumer-0"), workload={"topic": "orders"})
    if cut_s is not None:
        builder.at(cut_s).fault("f1", "cut", "toxiproxy.disabled", "broker-a/1", "broker-a")
    for offset in range(4):
        builder.at(100 + offset).event("producer-0", "send", type="ok", offset=offset, duration_ms=1, **AT)
    said = {"code": 19, "value": {"max": 2, "min": 0, "next": 2}, "address": address_of("broker-a/1")}
    builder.at(150).event("consumer-0", "pull", type="ok", offset=2, duration_ms=15_001.0, **said, **AT)
    found = builder.end(200).judged(judge)
    assert [example.what for example in found.examples] == (["broker-a/1"] if wrong else [])


@pytest.mark.parametrize(
    ("kind", "next_", "handed"),
    [
        ("", 5, {"count": 2, "first": 3, "last": 4, "rising": 2}),
        ("answered too many messages", 5, {"count": 33, "first": 3, "last": 4, "rising": 33}),
        ("unordered answer", 5, {"count": 2, "first": 4, "last": 4, "rising": 1}),
        ("unordered answer", 5, {"count": 3, "first": 2, "last": 4, "rising": 3}),
        ("next offset", 4, {"count": 2, "first": 3, "last": 4, "rising": 2}),
        ("next offset", 5, {"count": 2, "first": 3, "last": 3, "rising": 2}),
        ("answered too few messages", 4, {"count": 1, "first": 3, "last": 3, "rising": 1}),
    ],
)
def test_messages_of_an_answer_rise_from_the_offset_to_the_next(kind: str, next_: int, handed: dict[str, int]) -> None:
    assert answered(3, 0, 0, 5, next_, **handed) == ([("broker-a", kind)] if kind else [])


@pytest.mark.parametrize(("last", "found"), [(4, []), (3, [("broker-a", "next offset")])])
def test_apaches_broker_may_hand_over_what_came_after_it_had_read_the_end(last: int, found: list[object]) -> None:
    handed = {"count": last - 2, "first": 3, "last": last, "rising": last - 2}
    assert answered(3, 0, 0, 4, 5, made_by="apache-4.9.7", **handed) == found


@pytest.mark.parametrize(("held_ms", "kind"), [(15_001.0, ""), (14_900.0, "answered a pull too soon")])
def test_a_pull_that_finds_nothing_is_held_for_as_long_as_it_asks(held_ms: float, kind: str) -> None:
    assert answered(5, 19, 0, 5, 5, held_ms=held_ms) == ([("broker-a", kind)] if kind else [])


def test_a_broker_goes_by_the_settings_that_an_operator_gave_it_while_it_ran() -> None:
    short: dict[str, Any] = {"longPollingEnable": "false", "shortPollingTimeMills": 2000}
    assert answered(5, 19, 0, 5, 5, held_ms=2001.0, by_hand=short) == []
    assert answered(5, 19, 0, 5, 5, held_ms=900.0, by_hand=short) == [("broker-a", "answered a pull too soon")]
    one = {"count": 1, "first": 3, "last": 3, "rising": 1}
    for few in ({"maxTransferCountOnMessageInMemory": 1}, {"maxTransferBytesOnMessageInMemory": 700}):
        assert answered(3, 0, 0, 5, 4, by_hand=few, **one) == []


def test_an_operator_may_send_a_group_anywhere() -> None:
    builder = cluster(clients=("producer-0", "consumer-0")).at(10)
    builder.event("producer-0", "send", type="ok", msg_key="k-0", offset=8, **AT)
    builder.at(20).offset_reset("orders", "broker-a", 2)
    said = {"max": 9, "min": 0, "next": 2}
    builder.at(31).event("consumer-0", "pull", type="ok", offset=9, code=21, duration_ms=1.0, value=said, **AT)
    assert builder.judged(judge).verdict is Validity.VALID
