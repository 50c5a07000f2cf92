"""prompt_answers over hand-written histories: peers that are slow in quiet times, and how slow the machine was."""

from typing import Any

import numpy as np
import pytest

from nemesrv.chaos.checks.service.prompt_answers import (
    Times,
    Who,
    bound_ms,
    in_quiet,
    judge,
    judged,
    of_name_servers,
    sends,
    shared,
)
from nemesrv.chaos.oracle.intervals import Stretch
from nemesrv.chaos.oracle.quiet import settle_ms
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import HOLE, HistoryBuilder, address_of, cluster


def check(builder: HistoryBuilder) -> Verdict:
    """Of NameServers alone, which are judged without Spark."""
    control, world = builder.facts()
    return judged(of_name_servers(control, world).of, control.lateness, world)


def story() -> HistoryBuilder:
    return cluster(clients=("producer-0", "consumer-0"))


def look_ups(builder: HistoryBuilder, *took_ms: float, from_s: float = 10) -> HistoryBuilder:
    """producer-0 asks ns-0 once a second, and each answer takes so long."""
    about = {"f": "route", "type": "ok", "code": 0, "name_server": address_of("ns-0"), "topic": "orders"}
    for number, took in enumerate(took_ms):
        at_s = from_s + number + took / 1000
        builder.at(at_s).event("producer-0", "name_server_call", duration_ms=took, **about)
    return builder


def test_prompt_answers_are_valid() -> None:
    verdict = check(look_ups(story(), *[2.0] * 40).end(120))
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.VALID, 40, 0)
    assert verdict.measured["slowest_ms"] == {"look-up": 2.0}


def test_a_name_server_that_answers_after_two_seconds_is_invalid() -> None:
    verdict = check(look_ups(story(), *[2000.0] * 20).end(120))
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 20)
    (example,) = verdict.examples
    assert (example.who, example.more["kind"]) == ("ns-0", "answered look-ups late")
    assert (example.measured_ms, example.latest_ms, example.over_ms) == (2000.0, 100.0, 1900.0)
    assert (example.more["slow"], example.more["of"]) == (20, 20)


def test_a_few_slow_answers_among_many_are_nobodys_fault() -> None:
    assert check(look_ups(story(), *[2.0] * 38, 2000.0, 2000.0).end(120)).verdict is Validity.VALID
    assert check(look_ups(story(), *[2.0] * 37, *[2000.0] * 3).end(120)).verdict is Validity.INVALID
    assert (
        check(look_ups(story(), *[2.0] * 77, *[2000.0] * 3).end(190)).verdict is Validity.VALID
    )  # of 80, four are 5 %


def test_on_the_virtual_clock_one_slow_answer_is_its_peers_fault() -> None:
    """With sendLatencyFaultEnable a producer leaves a slow broker, so that there is no second (random pair 207)."""
    for took_ms, expected in ((2000.0, Validity.INVALID), (149.0, Validity.VALID)):
        builder = look_ups(story(), *[2.0] * 39, took_ms).run_says(clock="virtual")
        assert check(builder.end(120)).verdict is expected


def registered_late(builder: HistoryBuilder) -> HistoryBuilder:
    for at_s in (10, 40, 70):
        builder.at(at_s + 2).register("broker-a", "ns-1", took_s=2)
    return builder


def test_a_registration_that_is_acknowledged_late_is_invalid() -> None:
    verdict = check(registered_late(story()).end(120))
    assert (verdict.verdict, verdict.examples[0].who) == (Validity.INVALID, "ns-1")
    assert verdict.examples[0].more["operation"] == "registration"


def test_what_is_slow_under_a_fault_or_soon_after_it_is_not_looked_at() -> None:
    builder = story().at(5).black_hole("producer-0", "ns-0", until_s=60)
    verdict = check(look_ups(builder, *[2000.0] * 20, from_s=61).end(300))
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        (("broker-b", "ns-1"), Validity.INVALID),
        (("broker-a", "ns-0"), Validity.INVALID),
        (("producer-0", "ns-1"), Validity.INVALID),
        (("broker-a", "ns-1"), Validity.UNKNOWN),
    ],
)
def test_a_fault_between_others_is_no_reason_to_acknowledge_late(link: tuple[str, str], expected: Validity) -> None:
    builder = story().at(5).black_hole(*link, until_s=90)
    assert check(registered_late(builder).end(120)).verdict is expected


def test_a_look_up_may_meet_the_faults_of_every_name_server() -> None:
    """Before it is asked another one may have been dialled."""

    def slow(*hit: str) -> Validity:
        builder = story().at(5).fault("f1", *hit, until_s=60)
        return check(look_ups(builder, *[2000.0] * 20).end(120)).verdict

    assert slow("pause", "sigstop", "ns-1") is slow(*HOLE[1:3], "producer-0", "ns-1") is Validity.UNKNOWN
    assert slow("pause", "sigstop", "broker-a") is slow(*HOLE[1:3], "consumer-0", "ns-0") is Validity.INVALID


def test_sends_are_quiet_by_their_producer_and_broker() -> None:
    builder = cluster(clients=("producer-0", "producer-1")).at(5).black_hole("producer-0", "broker-b", until_s=60)
    _, world = builder.end(300).facts()
    quiet = sends(world)
    assert quiet["producer-0", "broker-a"] == quiet["producer-1", "broker-b"] == [(0, 300_000)]
    assert quiet["producer-0", "broker-b"] == [(0, 5_000), (60_000 + settle_ms(world), 300_000)]


def test_answers_are_slow_by_no_more_than_timers_fired_late() -> None:
    assert check(look_ups(story(), *[2000.0] * 20).end(120, lag_ms=1000)).verdict is Validity.VALID
    assert check(look_ups(story(), *[2900.0] * 20).end(120, lag_ms=600)).verdict is Validity.INVALID
    assert check(look_ups(story(), *[9000.0] * 20).end(120, lag_ms=3000)).verdict is Validity.VALID


def test_one_stall_does_not_excuse_a_peer_that_is_slow_all_the_time() -> None:
    def stalled(*took_ms: float) -> Validity:
        builder = look_ups(story(), *took_ms).at(50).lag(1000, until_s=51)
        for second in range(110):
            builder.at(second).lag(1.0, until_s=second + 1)
        return check(builder.end(120, lag_ms=None)).verdict

    assert stalled(*[2000.0] * 20) is Validity.INVALID
    assert stalled(*[2.0] * 17, *[2000.0] * 3) is Validity.UNKNOWN


def test_levels_are_eighths_of_a_doubling_above_the_bound() -> None:
    took_ms = np.array([1, 100, 101, 110, 200, 399, 401, 1e9])
    times = Times(np.zeros(len(took_ms)), took_ms, took_ms)
    (timed,) = in_quiet("send", "broker-a", times, [Stretch(0.0, 1e9)], 100.0).of.values()
    assert timed.over == dict.fromkeys((0, 1, 8, 15, 16, 96), 1)
    assert bound_ms(story().facts()[1]) == 100.0


def sent(
    builder: HistoryBuilder, at_s: float, number: int, ack_ms: float, arrives_ms: float | None, level: str | None = None
) -> None:
    """A message of producer-0 at broker-a, acknowledged and delivered so much later."""
    key: dict[str, Any] = {"op_id": f"op-{number}", "topic": "orders"}
    where = {"broker_name": "broker-a", "queue_id": 0}
    builder.at(at_s + ack_ms / 1000)
    builder.event("producer-0", "send_attempt", type="ok", op_id=key["op_id"], code=0, duration_ms=ack_ms, **where)
    builder.event("producer-0", "send", type="ok", msg_key=f"k-{number}", duration_ms=ack_ms, f=level, **key, **where)
    if arrives_ms is not None:
        builder.at(at_s + (ack_ms + arrives_ms) / 1000)
        builder.event("consumer-0", "receive", msg_key=f"k-{number}", topic="orders", offset=number, **where)


@pytest.mark.parametrize(
    ("ack_ms", "arrives_ms", "level", "kinds"),
    [
        (2.0, 3.0, None, set()),
        (2.0, -1.0, None, set()),
        (2000.0, 3.0, None, {"acknowledged sends late"}),
        (2.0, 4000.0, None, {"handed messages over late"}),
        (2.0, 1003.0, "1", set()),
        (2.0, 4000.0, "1", {"handed delayed messages over late"}),
    ],
)
def test_a_broker_that_acknowledges_late_or_wakes_no_pull_is_invalid(
    ack_ms: float, arrives_ms: float, level: str | None, kinds: set[str]
) -> None:
    builder = story()
    for number in range(20):
        sent(builder, 70 + number, number, ack_ms, arrives_ms, level)
    sent(builder, 5, 99, 2.0, 9000.0)  # before every queue had its consumer
    verdict = builder.end(120).judged(judge)
    assert verdict.verdict is (Validity.INVALID if kinds else Validity.VALID)
    assert {example.more["kind"] for example in verdict.examples} == kinds
    assert {(example.who, example.more["slow"]) for example in verdict.examples} <= {("broker-a", 20)}
    assert verdict.examined == 21 + 20


@pytest.mark.parametrize(("arrives_ms", "expected"), [(1003.0, Validity.VALID), (2000.0, Validity.INVALID)])
def test_without_long_polling_a_message_comes_at_the_next_check(arrives_ms: float, expected: Validity) -> None:
    builder = cluster(clients=("producer-0", "consumer-0"), settings={"broker-a": {"longPollingEnable": False}})
    for number in range(20):
        sent(builder, 70 + number, number, 2.0, arrives_ms)
    assert builder.end(120).judged(judge).verdict is expected


def test_a_fault_of_its_link_to_another_broker_makes_no_send_of_a_producer_slow() -> None:
    def slow(broker: str) -> tuple[Validity, int]:
        builder = story().at(30).black_hole("producer-0", broker)
        for number in range(20):
            sent(builder, 40 + number, number, 2000.0, None)
        verdict = builder.end(120).judged(judge)
        return verdict.verdict, verdict.violations

    assert slow("broker-b") == (Validity.INVALID, 20)
    assert slow("broker-a") == (Validity.UNKNOWN, 0)


def test_deliveries_are_looked_at_when_the_queues_of_a_broker_that_joined_must_have_been_shared() -> None:
    nodes = {"broker-a": {"joins_at_s": 100}}
    builder = cluster(brokers=("broker-b",), clients=("producer-0", "consumer-0"), nodes=nodes)
    _, world = builder.at(100).topic("broker-a", "orders").node("broker-a").end(400).facts()
    assert shared(world) == [(53_000, 100_000), (100_000 + 69_000 + 89_000 + 30_000, 400_000)]


@pytest.mark.parametrize(
    ("source", "quiet"), [("producer-0", [(53_000, 400_000)]), ("consumer-0", [(53_000, 100_000)])]
)
def test_what_is_done_to_a_producer_makes_no_delivery_late(source: str, quiet: list[tuple[float, float]]) -> None:
    builder = cluster(brokers=("broker-a",), clients=("producer-0", "consumer-0"))
    _, world = builder.at(100).black_hole(source, "broker-a").end(400).facts()
    assert shared(world) == quiet


def test_who_is_timed_is_told_by_what_was_asked_of_whom_since_when() -> None:
    control, world = look_ups(story(), *[2.0] * 10, *[2000.0] * 5).end(120).facts()
    whole = of_name_servers(control, world).of
    (who,) = whole
    assert who == Who("look-up", "ns-0", 0.0)
    assert (whole[who].count, sum(whole[who].over.values())) == (15, 5)
