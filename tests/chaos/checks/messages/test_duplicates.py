"""duplicates over hand-written histories."""

from typing import Any

import pytest

from nemesrv.chaos.checks.messages.duplicates import judge
from nemesrv.chaos.verdict import Validity
from tests.chaos.builder import KILL, HistoryBuilder, cluster, example

AT = {"topic": "orders", "broker_name": "broker-a", "queue_id": 0}


def group(**run: Any) -> HistoryBuilder:
    return cluster(clients=("producer-0", "consumer-0", "consumer-1"), **run)


def take(builder: HistoryBuilder, at_s: float, consumer: str, op_id: str = "take-0") -> HistoryBuilder:
    return builder.at(at_s).event(consumer, "queue_taken", op_id=op_id, offset=0, **AT)


def sent(builder: HistoryBuilder, at_s: float, offset: int = 0, *, tries: int = 1, key: str = "") -> HistoryBuilder:
    return builder.at(at_s).event(
        "producer-0", "send", type="ok", msg_key=key or f"k-{offset}", offset=offset, attempt=tries, **AT
    )


def received(
    builder: HistoryBuilder, at_s: float, consumer: str, offset: int = 0, op_id: str | None = "take-0"
) -> HistoryBuilder:
    return builder.at(at_s).event(consumer, "receive", msg_key=f"k-{offset}", offset=offset, op_id=op_id, **AT)


def handed_over(first_s: float) -> HistoryBuilder:
    """k-0 and k-1 are received by consumer-0; consumer-1 takes the queue at 200 s and receives k-1 again."""
    builder = take(group(), 2, "consumer-0")
    received(sent(builder, 50, 0), 50, "consumer-0", 0)
    received(sent(builder, first_s, 1), first_s, "consumer-0", 1)
    received(take(builder, 200, "consumer-1"), 201, "consumer-1", 1)
    return builder.end(400)


def test_what_was_not_committed_when_the_queue_changed_hands_may_come_again() -> None:
    verdict = handed_over(first_s=195).judged(judge)
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.VALID, 3, 0)
    assert verdict.measured == {"messages": 2, "received_again": 1, "stored_again": 0, "oldest_ms": 5000.0}
    assert verdict.allowed["bound_ms"] == 10_000.0


def test_what_was_received_long_before_the_queue_changed_hands_must_not_come_again() -> None:
    verdict = handed_over(first_s=185).judged(judge)
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    (again,) = verdict.examples
    message = {"topic": "orders", "msg_key": "k-1", "queue_id": 0, "offset": 1, "first_client": "consumer-0"}
    of = {"from_s": 185, "to_s": 201, "due_s": 185, "took_s": 15, "allowed_s": 10, "times": {"changed": 200}}
    kind = "received again"
    assert again == example("consumer-1", "broker-a", **of, **message, kind=kind)


def test_what_an_operator_sent_the_group_back_to_comes_again_once_for_each_time() -> None:
    builder = take(group(), 2, "consumer-0")
    for offset in (0, 1):
        received(sent(builder, 50, offset), 50, "consumer-0", offset)
    builder.at(100).offset_reset("orders", "broker-a", 1)
    take(builder, 101, "consumer-0", "take-1")
    received(builder, 102, "consumer-0", 1, "take-1")
    assert builder.end(400).judged(judge).verdict is Validity.VALID
    again = received(take(builder, 200, "consumer-1"), 201, "consumer-1", 1)
    assert again.judged(judge).violations == 1
    assert received(again, 202, "consumer-1", 0).judged(judge).violations == 2  # it was not sent back to that


def test_two_owners_may_both_receive_only_until_the_next_rebalance() -> None:
    assert handed_over(first_s=222).judged(judge).verdict is Validity.VALID  # Qr + A = 23 s
    assert handed_over(first_s=230).judged(judge).verdict is Validity.INVALID


def test_a_consumer_that_stood_still_goes_on_with_its_queue_for_as_long() -> None:
    builder = handed_over(first_s=185)
    verdict = builder.at(190).lag(4000, "consumer-0", until_s=195).judged(judge)
    assert (verdict.verdict, verdict.violations) == (Validity.VALID, 0)


def test_a_receipt_from_a_holding_that_nobody_recorded_is_unknown() -> None:
    builder = take(group(), 2, "consumer-0")
    received(received(sent(builder, 50), 50, "consumer-0"), 51, "consumer-1", op_id=None)
    verdict = builder.end(100).judged(judge)
    assert (verdict.verdict, verdict.violations) == (Validity.UNKNOWN, 0)


@pytest.mark.parametrize(("first_s", "expected"), [(90, Validity.VALID), (80, Validity.INVALID)])
def test_a_killed_broker_forgets_the_commits_of_its_last_flush_too(first_s: float, expected: Validity) -> None:
    builder = take(group(), 2, "consumer-0")
    received(sent(builder, first_s), first_s, "consumer-0")
    builder.at(100).fault(*KILL, until_s=180).restarted("broker-a")
    received(take(builder, 220, "consumer-1"), 221, "consumer-1")
    assert builder.end(400).judged(judge).verdict is expected


@pytest.mark.parametrize(("tries", "expected"), [(2, Validity.VALID), (1, Validity.INVALID)])
def test_a_message_is_stored_no_oftener_than_it_was_tried(tries: int, expected: Validity) -> None:
    builder = received(sent(take(group(), 2, "consumer-0"), 50, tries=tries), 50, "consumer-0")
    for offset in (0, 7):
        builder.at(99).event("prober", "read", msg_key="k-0", offset=offset, **AT)
    verdict = builder.end(100).judged(judge)
    assert (verdict.verdict, verdict.measured["stored_again"]) == (expected, 1)


@pytest.mark.parametrize(
    ("read_again", "what", "guilty"),
    [(0, "alone stored 2 times by 1 try", "broker-a"), (1, "sent 2 times in 1 try", "producer-0")],
)
def test_a_message_read_as_often_as_stored_was_sent_too_often(read_again: int, what: str, guilty: str) -> None:
    builder = received(sent(take(group(), 2, "consumer-0"), 50), 50, "consumer-0")
    for _ in range(read_again):
        builder.event("broker-a", "send_read_again", op_id="1", msg_key="k-0")
    for offset in (0, 7):
        builder.at(99).event("prober", "read", msg_key="k-0", offset=offset, **AT)
    (found,) = builder.end(100).judged(judge).findings
    assert (found.kind, found.subject, found.object) == (what, guilty, "broker-a")


@pytest.mark.parametrize(
    ("fault", "at_s", "expected"),
    [
        ("", 60, Validity.INVALID),
        ("signal.SIGTERM", 60, Validity.INVALID),
        ("signal.SIGKILL", 60, Validity.VALID),
        ("signal.SIGKILL", 70, Validity.INVALID),
    ],
)
def test_only_a_killed_broker_delivers_a_delayed_message_again(fault: str, at_s: int, expected: Validity) -> None:
    builder = take(group(), 2, "consumer-0")
    sent(builder, 50, 900).rows[-1]["f"] = "2"
    if fault:
        builder.at(at_s).fault("f-1", "kill" if "KILL" in fault else "stop", fault, "broker-a", until_s=80)
    for offset in (3, 4):
        builder.at(300).event("prober", "read", msg_key="k-900", offset=offset, **AT)
    received(builder, 55, "consumer-0", 3)
    assert builder.end(400).judged(judge).verdict is expected


@pytest.mark.parametrize(
    ("share", "topic", "attempt", "found"),
    [
        (0.0, "orders", 1, ("consumer-0", "sent back after success")),
        (1.0, "orders", 1, None),
        (1.0, "%RETRY%nemesrv-consumers", 2, ("consumer-0", "sent back after success")),
        (1.0, "%RETRY%nemesrv-consumers", 1, ("broker-a", "failed again as a first try")),
    ],
)
def test_a_consumer_sends_back_what_its_listener_fails_once(
    share: float, topic: str, attempt: int, found: tuple[str, str] | None
) -> None:
    builder = received(sent(take(group(workload={"failing_share": share}), 2, "consumer-0"), 50), 50, "consumer-0")
    failed = {"msg_key": "k-0", "offset": 0, "op_id": "take-0", **AT, "topic": topic, "attempt": attempt}
    examples = builder.at(51).event("consumer-0", "sent_back", f="broker", **failed).end(100).judged(judge).examples
    assert [(one.who or one.what, one.more["kind"]) for one in examples] == ([found] if found else [])


@pytest.mark.parametrize(("again_s", "found"), [(55.9, ["tried again too soon"]), (56, []), (None, [])])
def test_what_a_consumer_could_not_send_back_its_listener_gets_again_after_5_s(
    again_s: float | None, found: list[str]
) -> None:
    builder = sent(take(group(workload={"failing_share": 1.0}), 2, "consumer-0"), 50)
    failed = {"msg_key": "k-0", "offset": 0, "op_id": "take-0", "attempt": 1, "duration_ms": 1000.0, **AT}
    builder.at(51).event("consumer-0", "sent_back", f="kept", **failed)
    if again_s is not None:
        received(builder, again_s, "consumer-0")
    assert [one.more["kind"] for one in builder.end(100).judged(judge).examples] == found


@pytest.mark.parametrize(
    ("event", "f", "found"), [("receive", "broker", 1), ("sent_back", "broker", 1), ("sent_back", "kept", 0)]
)
def test_what_a_consumer_sent_back_its_listener_gets_from_the_retry_topic_only(event: str, f: str, found: int) -> None:
    builder = sent(take(group(workload={"failing_share": 1.0}), 2, "consumer-0"), 50)
    received(builder, 50, "consumer-0", 1)
    failed = {"msg_key": "k-0", "offset": 0, "op_id": "take-0", "attempt": 1, "duration_ms": 10.0, **AT}
    builder.at(51).event("consumer-0", "sent_back", f=f, **failed)
    builder.at(56.5).event("consumer-0", event, f="kept" if event == "sent_back" else None, **failed)
    kinds = [one.more["kind"] for one in builder.end(100).judged(judge).examples]
    assert kinds.count("sent back and tried again") == found


@pytest.mark.parametrize(("asked_s", "found"), [(250.995, 0), (240, 1)])
def test_a_consumer_sends_a_message_back_to_the_messages_broker(asked_s: float, found: int) -> None:
    builder = sent(take(group(workload={"failing_share": 1.0}), 2, "consumer-0"), 50)
    received(builder, 50, "consumer-0", 1)
    builder.at(asked_s).event("broker-a", "request_read", f="CONSUMER_SEND_MSG_BACK", op_id="1", value={})
    failed = {"msg_key": "k-0", "offset": 0, "op_id": "take-0", "attempt": 1, "duration_ms": 10.0, **AT}
    builder.at(251).event("consumer-0", "sent_back", f="anew", **failed)
    kinds = [one.more["kind"] for one in builder.end(400).judged(judge).examples]
    assert kinds.count("sent back elsewhere") == found


@pytest.mark.parametrize(("f", "crash", "found"), [("broker", "", 1), ("kept", "", 0), ("broker", "broker-a", 0)])
def test_a_broker_stores_once_what_a_consumer_sends_back_once(f: str, crash: str, found: int) -> None:
    builder = sent(take(group(workload={"failing_share": 1.0}), 2, "consumer-0"), 50)
    failed = {"msg_key": "k-0", "offset": 0, "op_id": "take-0", "attempt": 1, "duration_ms": 10.0, **AT}
    builder.at(51).event("consumer-0", "sent_back", f=f, **failed)
    if crash:
        builder.at(55).fault("f-1", "kill", "signal.SIGKILL", crash, until_s=58)
    for offset in (0, 1):
        where = {**AT, "topic": "%RETRY%nemesrv-consumers"}
        builder.at(61).event("consumer-0", "receive", msg_key="k-0", offset=offset, op_id="take-1", **where)
    examples = builder.end(100).judged(judge).examples
    assert [one.more["kind"] for one in examples].count("stored more often than sent back") == found


@pytest.mark.parametrize(("size", "found"), [(1, 1), (2, 0)])
def test_a_batch_is_sent_back_whole(size: int, found: int) -> None:
    """Random seed 1776054: of half the messages, and not of k-0."""
    run: dict[str, Any] = {"settings": {"consumer-0": {"consumeMessageBatchMaxSize": size}}}
    builder = take(group(workload={"failing_share": 0.5}, **run), 2, "consumer-0")
    received(sent(builder, 50, 1), 50, "consumer-0", 1)
    failed = {"msg_key": "k-0", "offset": 0, "op_id": "take-0", "attempt": 1, **AT}
    builder.at(51).event("consumer-0", "sent_back", f="broker", **failed)
    assert len(builder.end(100).judged(judge).examples) == found


def test_each_further_receipt_is_examined_so_no_more_is_wrong_than_was_examined() -> None:
    builder = sent(take(group(), 2, "consumer-0"), 50)
    for number in range(4):
        received(builder, 50 + number, "consumer-0")
    verdict = builder.end(100).judged(judge)
    assert (verdict.violations, verdict.examined) == (3, 4)


def test_what_nothing_explains_is_shown_before_what_lateness_may_explain() -> None:
    builder = sent(take(group(), 2, "consumer-0"), 50)
    received(received(builder, 50, "consumer-0", op_id=None), 51, "consumer-1", op_id=None)
    verdict = builder.end(100).judged(judge)
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 2)
    assert verdict.why.startswith("1 duplicates may be the machine's lateness (up to 1 ms)")
    verdict = received(received(builder, 60, "consumer-0", 1), 61, "consumer-0", 1).judged(judge)
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.INVALID, 4, 1)
    assert [example.more["msg_key"] for example in verdict.examples] == ["k-1"]
