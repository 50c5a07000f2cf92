"""queue_ownership over hand-written histories, and what it asks the oracle."""

from __future__ import annotations

from typing import Any

import pytest

from nemesrv.chaos.checks.messages.queue_ownership import judge
from nemesrv.chaos.oracle.queue_owners import Holding, Piece, Tables, holdings, judged, pieces, readable
from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.verdict import Example, Validity, Verdict
from tests.chaos.builder import HistoryBuilder, address_of, cluster, route_of

KILL = ("f1", "kill", "sigkill", "broker-a")
A, B = ([[broker, queue_id] for queue_id in range(4)] for broker in ("broker-a", "broker-b"))


def assign(builder: HistoryBuilder, at_s: float, consumer: str, queues: list[list[Any]]) -> HistoryBuilder:
    return builder.at(at_s).event(consumer, "assigned", topic="orders", value=queues)


def group(**run: Any) -> HistoryBuilder:
    """Two consumers, started with everything else at 0 s, own one broker's queues each from 3 s on."""
    builder = cluster(clients=("consumer-0", "consumer-1"), **run)
    return assign(assign(builder, 3, "consumer-0", A), 3, "consumer-1", B)


def check(builder: HistoryBuilder) -> Verdict:
    return judge(*builder.facts())


def test_each_queue_with_one_owner_is_valid() -> None:
    verdict = check(group().end(200))
    assert (verdict.verdict, verdict.examined, verdict.violations) == (Validity.VALID, 8, 0)
    # The routes came at 1 s, after the consumers: P + H + Qr + A = 83 s.
    assert (verdict.allowed["bound_ms"], verdict.measured["quiet_ms"]) == (83_000.0, 116_000.0)
    assert verdict.measured["max_ms"] == 2000.0


def test_a_queue_that_two_own_in_a_quiet_time_is_invalid() -> None:
    builder = assign(assign(group(), 130, "consumer-0", A + B[:1]), 150, "consumer-0", A)
    verdict = check(builder.end(200))
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    assert verdict.examples == (
        Example(
            who="consumer-0",
            what="broker-b",
            topic="orders",
            from_ms=130_000.0,
            to_ms=150_000.0,
            due_ms=84_000.0,
            measured_ms=20_000.0,
            latest_ms=0.0,
            over_ms=20_000.0,
            after="route changed",
            more={
                "kind": "must alone own",
                "group": "all consumers",
                "queue_id": 0,
                "clients": ["consumer-0", "consumer-1"],
            },
        ),
    )


def test_a_queue_that_nobody_owns_in_a_quiet_time_is_invalid() -> None:
    verdict = check(assign(group(), 130, "consumer-1", B[1:]).end(200))
    assert (verdict.verdict, verdict.violations) == (Validity.INVALID, 1)
    assert verdict.examples[0].more["clients"] == []


@pytest.mark.parametrize(("settled_s", "expected"), [(153, Validity.VALID), (156, Validity.INVALID)])
def test_the_queues_of_a_killed_broker_are_gone_and_the_others_shared_anew_in_time(
    settled_s: float, expected: Validity
) -> None:
    """P + Qr + A = 53 s after the tables changed, for a dead broker refuses: by 154 s each queue has one owner."""
    builder = group().at(101).fault(*KILL)
    for name_server in ("ns-0", "ns-1"):
        builder.route(name_server, "orders", "broker-b")
    assign(assign(builder, 120, "consumer-0", B[:2]), settled_s, "consumer-1", B[2:])
    verdict = check(builder.end(260))
    assert (verdict.verdict, verdict.examined) == (expected, 8 + 4)


@pytest.mark.parametrize(("settled_s", "expected"), [(410, Validity.VALID), (490, Validity.INVALID)])
def test_a_consumer_that_can_ask_no_name_server_shares_the_queues_anew_when_it_can(
    settled_s: float, expected: Validity
) -> None:
    """It hears of the killed broker after the heal at 300 s; that it was cut off is no excuse for longer."""
    cuts = [(f"f{n + 2}", "cut", "toxiproxy.disabled", "consumer-0", f"ns-{n}") for n in (0, 1)]
    builder = group().at(90)
    for cut in cuts:
        builder.fault(*cut)
    builder.at(101).fault(*KILL)
    for name_server in ("ns-0", "ns-1"):
        builder.route(name_server, "orders", "broker-b")
    builder.at(300)
    for cut in cuts:
        builder.fault(*cut, end=True)
    assign(assign(builder, 320, "consumer-0", B[:2]), settled_s, "consumer-1", B[2:])
    assert check(builder.end(600)).verdict is expected


def test_with_broadcasting_every_consumer_owns_every_queue() -> None:
    builder = group(workload={"broadcasting": True})
    assert check(builder.end(200)).verdict is Validity.INVALID
    assign(assign(builder, 4, "consumer-0", A + B), 4, "consumer-1", A + B)
    verdict = check(builder)
    assert (verdict.verdict, verdict.examined) == (Validity.VALID, 16)


def test_without_quiet_or_without_anything_nothing_is_examined() -> None:
    for builder in (HistoryBuilder(), group().end(60), cluster(clients=("consumer-0",)).end(300)):
        verdict = check(builder)
        assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)


def stretches(builder: HistoryBuilder) -> list[tuple[float, float]]:
    """Where the story is judged, in seconds."""
    world = World.of_rows(builder.rows)
    tables = Tables(world, [row for row in builder.rows if row["event"] == "route"])
    return [(found.start_ms / 1000, found.end_ms / 1000) for found in judged(world, ["orders"], tables)]


def test_a_broker_that_one_name_server_cannot_hear_leaves_no_quiet_until_all_has_settled() -> None:
    hole = ("f1", "black_hole", "toxiproxy.bandwidth.rate=0", "broker-a", "ns-0")
    builder = group().at(100).fault(*hole).at(300).fault(*hole, end=True)
    # R + C + (P + H + Qr + A) = 33 + 83 s after the heal
    assert stretches(builder.end(500)) == [(84, 100), (416, 500)]


def test_brokers_that_hang_hold_up_the_polls_of_the_consumers_and_those_that_refuse_do_not() -> None:
    hole, cut = (
        ("f1", "black_hole", "toxiproxy.bandwidth.rate=0", "consumer-0", "broker-a"),
        ("f2", "cut", "toxiproxy.disabled", "consumer-0", "broker-b"),
    )
    builder = group().at(100).fault(*hole).at(110).fault(*hole, end=True)
    assert stretches(builder.end(500)) == [(84, 100), (110 + 33 + 30 + 3 + 30 + 20 + 3, 500)]
    builder = group().at(100).fault(*cut).at(110).fault(*cut, end=True)
    assert stretches(builder.end(500)) == [(84, 100), (110 + 33 + 30 + 30 + 20 + 3, 500)]


@pytest.mark.parametrize(
    "fault",
    [
        ("f1", "pause", "sigstop", "broker-a"),
        ("f1", "black_hole", "toxiproxy.bandwidth.rate=0", "consumer-0", "broker-a"),
    ],
)
def test_an_apache_broker_that_was_hung_counts_members_twice_until_their_channels_expire_and_ours_does_not(
    fault: tuple[str, ...],
) -> None:
    """122 s on 4.9.7: expiry 120 s, scan 10 s, then Qr + A; of ours R + C + P + J + H + Qr + A as ever."""
    builder = group().at(100).fault(*fault).at(300).fault(*fault, end=True)
    assert stretches(builder.end(500))[-1] == (300 + 33 + 30 + 3 + 30 + 20 + 3, 500)
    builder = group().at(100).fault(*fault).at(300).fault(*fault, end=True)
    assert stretches(builder.made_by("apache-4.9.7", "broker-a").end(500))[-1] == (300 + 120 + 10 + 20 + 3, 500)


def test_an_apache_broker_that_let_a_heartbeat_time_out_may_count_its_member_twice_and_ours_does_not() -> None:
    """The consumers share by three members from 130 s on, until 150 s."""

    def story(made_by: str) -> Verdict:
        builder = group().at(120).event("consumer-0", "timed_out", f="HEART_BEAT", address=address_of("broker-a"))
        assign(assign(builder, 130, "consumer-1", B[:2]), 150, "consumer-1", B)
        return check(builder.made_by(made_by, "broker-a").end(400))

    assert story("apache-5.5.0").verdict is Validity.VALID
    assert story("ours").verdict is Validity.INVALID


def test_a_lost_name_server_changes_nothing_while_no_route_changes() -> None:
    builder = group().at(100).fault("f1", "kill", "sigkill", "ns-0")
    assert stretches(builder.end(300)) == [(84, 300)]


def test_tables_that_differ_are_not_judged() -> None:
    builder = group().at(100)
    builder.route("ns-0", "orders", "broker-a")
    assert stretches(builder.end(300)) == [(84, 100)]


def test_a_holding_ends_with_the_next_row_or_with_the_process() -> None:
    builder = assign(group(), 10, "consumer-0", A[:1]).at(20).fault("f1", "kill", "sigkill", "consumer-0")
    rows = [row | {"incarnation": 0} for row in builder.rows if row["event"] == "assigned"]
    held = holdings(World.of_rows(builder.end(30).rows), rows)["orders"]
    assert held["broker-a", 0] == [Holding("consumer-0", 3000, 20_000)]
    assert held["broker-a", 1] == [Holding("consumer-0", 3000, 10_000)]


def test_pieces_are_where_there_is_not_one_owner() -> None:
    queue = ("broker-a", 0)
    held = [Holding("x", 0, 10), Holding("y", 8, 20), Holding("x", 25, 40)]
    assert pieces(queue, held, 0, 40) == [Piece(queue, 8, 10, ("x", "y")), Piece(queue, 20, 25, ())]


def test_only_readable_queues_are_there_to_own() -> None:
    route = route_of("broker-a", "broker-b")
    assert route is not None
    route["queues"]["broker-b"] = [4, 4, 2, 0]
    assert readable(route) == {("broker-a", queue_id) for queue_id in range(4)}
    assert readable(None) == frozenset()
