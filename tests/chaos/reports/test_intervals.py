"""What the oracle demands in small worlds, as lanes show it: who must, may and must not, from when until when."""

from itertools import pairwise

from nemesrv.chaos.oracle.world import World
from nemesrv.chaos.reports.html.rule_stretches import rules
from tests.chaos.builder import HOLE, KILL, HistoryBuilder, cluster

CLIENTS = ("producer-0", "consumer-0")

Told = list[tuple[str, float, float]]


def ruled(builder: HistoryBuilder, subject: str, broker: str) -> Told:
    """The stretches of one subject and broker as (rule, from s, to s)."""
    found = rules(World.of_rows(builder.rows))[subject, broker]
    return [(one.kind, one.start_ms / 1000, one.end_ms / 1000) for one in found]


def crash() -> HistoryBuilder:
    builder = cluster(clients=CLIENTS).at(100).fault(*KILL, until_s=190).at(191)
    return builder.restarted("broker-a").end(400)


def partition() -> HistoryBuilder:
    return cluster(clients=CLIENTS).at(100).fault(*HOLE, until_s=300).end(400)


def test_a_name_server_must_hold_a_silent_broker_may_drop_it_and_must_not_hold_it_in_turn() -> None:
    assert ruled(partition(), "ns-0", "broker-a") == [
        ("may", 0, 33),
        ("must", 33, 100),
        ("must", 100, 190),
        ("may", 190, 230),
        ("must_not", 230, 300),
        ("may", 300, 333),
        ("must", 333, 400),
    ]
    assert ruled(partition(), "ns-1", "broker-a") == [("may", 0, 33), ("must", 33, 400)]


def test_clients_go_on_with_a_broker_that_another_name_server_still_names() -> None:
    for client in CLIENTS:
        assert ruled(partition(), client, "broker-a") == [("may", 0, 400)]


def test_a_client_must_not_use_a_killed_broker_after_a_poll_and_a_consumer_after_a_rebalance_more() -> None:
    assert ruled(crash(), "producer-0", "broker-a") == [("may", 0, 130), ("must_not", 130, 191), ("may", 191, 400)]
    assert ruled(crash(), "consumer-0", "broker-a")[1] == ("must_not", 150, 191)


def test_every_subject_is_told_without_gaps_from_its_start_to_the_end() -> None:
    for (subject, broker), told in rules(World.of_rows(crash().rows)).items():
        assert (told[0].start_ms, told[-1].end_ms) == (0, 400_000), (subject, broker)
        assert all(before.end_ms == after.start_ms for before, after in pairwise(told))


def test_a_stretch_says_its_window_and_its_fault() -> None:
    told = rules(World.of_rows(crash().rows))["ns-1", "broker-a"]
    (found,) = (one for one in told if one.kind == "must_not")
    assert (found.start_ms, found.end_ms) == (100_000, 191_000)
    assert found.text == (
        "ns-1 must not hold broker-a from 100.0 s to 191.0 s (91.0 s), 0.0 s to 91.0 s after f1. "
        "Window: process crash, kernel closes its connections"
    )


def test_the_world_of_rows_is_that_of_decoded_and_of_encoded_values() -> None:
    builder = crash()
    encoded = [row | {"value": None} if row.get("value") is None else row for row in builder.rows]
    assert World.of_rows(reversed(encoded)) == World.of_rows(builder.rows)
    assert World.of_rows(builder.rows).end_ms == 400_000
    assert World.of_rows([], last_ms=7).end_ms == 7
