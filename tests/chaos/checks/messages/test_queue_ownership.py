"""queue_ownership over hand-written histories, and what it asks the oracle."""

from typing import Any

import pytest

from nemesrv.chaos.checks.messages.queue_ownership import judge
from nemesrv.chaos.oracle.queue_owners import Holding, Piece, Seen, holdings, pieces, readable
from nemesrv.chaos.verdict import Validity, Verdict
from tests.chaos.builder import KILL, PAUSE, HistoryBuilder, address_of, cluster, example, judging, route_of

CONSUMERS = ("consumer-0", "consumer-1")
A, B = ([[broker, queue_id] for queue_id in range(4)] for broker in ("broker-a", "broker-b"))


def assign(builder: HistoryBuilder, at_s: float, consumer: str, queues: list[list[Any]]) -> HistoryBuilder:
    return builder.at(at_s).event(consumer, "assigned", topic="orders", value=queues)


def group(**run: Any) -> HistoryBuilder:
    """Two consumers, started at 0 s, have their routes at 1 s, are listed at 2 s, own a broker's queues each from 3 s
    on."""
    builder = cluster(clients=CONSUMERS, **run)
    for consumer in CONSUMERS:
        builder.at(1).learns(consumer, "broker-a", "broker-b")
        builder.at(2).hears("broker-a", consumer).hears("broker-b", consumer)
    return assign(assign(builder, 3, "consumer-0", A), 3, "consumer-1", B)


check = judging(judge)


def test_each_queue_with_one_owner_is_valid() -> None:
    verdict = check(group().end(200))
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.VALID, 8, 0)
    # The brokers listed both at 2 s: Qr + A = 23 s.
    assert (verdict.allowed["bound_ms"], verdict.measured["quiet_ms"]) == (23_000.0, 175_000.0)
    assert verdict.measured["max_ms"] == 1000.0


def test_a_queue_that_two_own_in_a_quiet_time_is_invalid() -> None:
    builder = assign(assign(group(), 130, "consumer-0", A + B[:1]), 150, "consumer-0", A)
    verdict = check(builder.end(200))
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    (two,) = verdict.examples
    owned = {"group": "nemesrv-consumers", "topic": "orders", "queue_id": 0, "clients": ["consumer-0", "consumer-1"]}
    of = {"from_s": 130, "to_s": 150, "due_s": 25, "took_s": 20, "allowed_s": 0, "after": "broker-a listed others"}
    assert two == example("consumer-0", "broker-b", **of, **owned, kind="must have one owner")


def test_a_queue_that_nobody_owns_in_a_quiet_time_is_invalid() -> None:
    verdict = check(assign(group(), 130, "consumer-1", B[1:]).end(200))
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    assert (verdict.examples[0].more["clients"], verdict.examples[0].more["holder"]) == ([], "consumer-1")


@pytest.mark.parametrize(("latency_ms", "expected"), [(10, Validity.INVALID), (500, Validity.VALID)])
def test_a_round_over_a_slow_link_takes_longer_than_one_call(latency_ms: int, expected: Validity) -> None:
    slow = ("f0", "latency", "toxiproxy.latency", "consumer-1", "broker-b")
    builder = group().at(50).fault(*slow, value={"latency_ms": latency_ms})
    assign(builder, 101, "consumer-1", []).at(102).learns("consumer-1", "broker-a", "broker-b")
    builder = assign(builder, 130, "consumer-1", B).at(200).fault(*slow, end=True)
    assert check(builder.end(300)).verdict is expected


@pytest.mark.parametrize(
    ("fault", "is_cut", "in_time_s", "late_s"),
    [
        (KILL, False, 172, 176),  # Qr + A = 23 s
        (PAUSE, False, 190, 196),  # and 5 s for each of the four queues, of which the hung broker is asked
        (KILL, True, 208, 212),  # and for each 3 s for the lock, and 2 C for the look-up: two NameServers are listed
    ],
)
def test_queues_are_shared_once_the_last_consumer_knows_the_loss(
    fault: Any, is_cut: bool, in_time_s: float, late_s: float
) -> None:
    """One learns at 120 s that the broker is gone, the other at 150 s; it may be cut off from a NameServer."""
    for settled_s, expected in ((in_time_s, Validity.VALID), (late_s, Validity.INVALID)):
        builder = group().at(101).fault(*fault).at(120).learns("consumer-0", "broker-b")
        assign(builder, 121, "consumer-0", B[:2]).at(150).learns("consumer-1", "broker-b")
        if is_cut:
            builder.at(155).black_hole("consumer-1", "ns-0", until_s=200, fault_id="f2")
        assert check(assign(builder, settled_s, "consumer-1", B[2:]).end(260)).verdict is expected


@pytest.mark.parametrize(("back_s", "expected"), [(172, Validity.VALID), (176, Validity.INVALID)])
def test_a_forgotten_consumer_has_its_queues_when_all_list_it_again(back_s: float, expected: Validity) -> None:
    """Until its heartbeat at 150 s the others are right to leave it out, however long that is."""
    builder = group().at(100).forgets("broker-a", "consumer-1", "expired")
    assign(builder, 110, "consumer-1", []).at(150).hears("broker-a", "consumer-1")
    assert check(assign(builder, back_s, "consumer-1", B).end(260)).verdict is expected


@pytest.mark.parametrize(("expires_s", "expected"), [(220, Validity.VALID), (110, Validity.INVALID)])
def test_a_consumer_that_is_listed_twice_shares_by_three(expires_s: float, expected: Validity) -> None:
    builder = group().at(100).hears("broker-a", "consumer-1", "its next channel")
    assign(builder, 101, "consumer-1", B[:2]).at(expires_s).forgets("broker-a", "consumer-1", "expired")
    assert check(assign(builder, 221, "consumer-1", B).end(300)).verdict is expected


def test_without_quiet_nothing_is_examined() -> None:
    for builder in (group().end(20), cluster(clients=("consumer-0",)).end(300)):
        verdict = check(builder)
        assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)


def stretches(builder: HistoryBuilder) -> list[tuple[float, float]]:
    """Where the story is judged, in seconds."""
    control, world = builder.facts()
    return [(one.start_ms / 1000, one.end_ms / 1000) for one in Seen(world, control.rows).judged("orders", CONSUMERS)]


@pytest.mark.parametrize("link", [("consumer-0", "broker-a"), ("broker-a",), ("consumer-0",)])
def test_while_a_consumer_cannot_ask_a_broker_nothing_is_judged(link: tuple[str, ...]) -> None:
    """Until the next rebalance after it: Qr + A."""
    fault = ("f1", "pause" if len(link) == 1 else "black_hole", "", *link)
    builder = group().at(100).fault(*fault, until_s=110)
    assert stretches(builder.end(500)) == [(25, 100), (110 + 20 + 3, 500)]


@pytest.mark.parametrize("fault", [("kill", "sigkill", "ns-0"), ("black_hole", "", "broker-a", "ns-0")])
def test_what_no_member_sees_changes_nothing(fault: tuple[str, ...]) -> None:
    builder = group().at(100).fault("f1", *fault)
    assert stretches(builder.end(300)) == [(25, 300)]


def test_members_whose_routes_differ_are_not_judged() -> None:
    assert stretches(group().at(100).learns("consumer-0", "broker-a").end(300)) == [(25, 100)]


@pytest.mark.parametrize("fault", [("pause", "sigstop", "broker-a"), ("black_hole", "", "consumer-0", "broker-a")])
def test_a_hung_apache_broker_counts_members_twice_until_channels_expire(fault: tuple[str, ...]) -> None:
    """122 s on 4.9.7: expiry 120 s, scan 10 s, then Qr + A. It does not say whom it lists."""
    builder = group().at(100).fault("f1", *fault, until_s=300)
    assert stretches(builder.made_by("apache-4.9.7", "broker-a").end(500))[-1] == (300 + 120 + 10 + 20 + 3, 500)


@pytest.mark.parametrize(
    ("consumer_of", "quiet_from_s"), [("ours", 105 + 20 + 3), ("apache-4.9.7", 105 + 120 + 10 + 20 + 3)]
)
def test_an_apache_broker_that_cost_no_call_lists_whom_it_listed(consumer_of: str, quiet_from_s: float) -> None:
    builder = group().made_by("apache-4.9.7", "broker-a").made_by(consumer_of, "consumer-0")
    builder.at(105).event("broker-a", "timer_lag", lag_ms=5_000.0, duration_ms=5_000.0)
    assert stretches(builder.end(500))[-1] == (quiet_from_s, 500)


@pytest.mark.parametrize("call", ["HEART_BEAT", "PULL_MESSAGE"])
def test_an_apache_broker_that_let_a_call_time_out_may_count_its_member_twice_and_ours_does_not(call: str) -> None:
    """The consumers share by three members from 130 s on, until 150 s."""

    def story(made_by: str) -> Verdict:
        builder = group().at(120).event("consumer-0", "timed_out", f=call, address=address_of("broker-a"))
        assign(assign(builder, 130, "consumer-1", B[:2]), 150, "consumer-1", B)
        return check(builder.made_by(made_by, "broker-a").end(400))

    assert story("apache-5.5.0").verdict is Validity.VALID
    assert story("ours").verdict is Validity.INVALID


def test_a_holding_ends_with_the_next_row_or_with_the_process() -> None:
    builder = assign(group(), 10, "consumer-0", A[:1]).at(20).fault("f1", "kill", "sigkill", "consumer-0")
    control, world = builder.end(30).facts()
    held = holdings(world, control.rows("assigned"))["orders"]
    assert held["broker-a", 0] == [Holding("consumer-0", 3000, 20_000)]
    assert held["broker-a", 1] == [Holding("consumer-0", 3000, 10_000)]


def test_pieces_are_where_there_is_not_one_owner() -> None:
    queue = ("broker-a", 0)
    held = [Holding("x", 0, 10), Holding("y", 8, 20), Holding("x", 25, 40)]
    assert pieces(queue, held, 0, 40) == [Piece(queue, 8, 10, ("x", "y")), Piece(queue, 20, 25, ())]


def test_only_readable_queues_are_there_to_own() -> None:
    route = route_of("broker-a", "broker-b")
    route["queues"]["broker-b"] = [4, 4, 2, 0]
    assert readable(route) == {("broker-a", queue_id) for queue_id in range(4)}
    assert readable(None) == frozenset()


@pytest.mark.parametrize("taken", [True, False])
def test_a_group_shares_queues_out_by_its_living_slave_where_a_broker_name_has_no_master(taken: bool) -> None:
    builder = cluster(1, ("broker-a", "broker-a/1"), CONSUMERS)
    builder.at(10).fault(*KILL)
    for consumer, queues in zip(CONSUMERS, (A[:2], A[2:]), strict=True):
        builder.at(20).learns(consumer, "broker-a/1").at(21).hears("broker-a/1", consumer)
        assign(builder, 22, consumer, queues)
    builder.at(100).fault("f2", "kill", "sigkill", "consumer-1").forgets("broker-a/1", "consumer-1", "closed")
    builder.at(101).event("consumer-0", "assigned", topic="orders", value=A if taken else A[:2])
    verdict = check(builder.end(200))
    assert (verdict.verdict, verdict.violations) == ((Validity.VALID, 0) if taken else (Validity.INVALID, 2))
