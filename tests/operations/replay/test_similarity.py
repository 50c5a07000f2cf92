"""How alike two lists of transitions are: 1 for the same, lower for what is missing, beside, out of order or late."""

import pytest

from nemesrv.chaos.history.matching import matched
from nemesrv.chaos.history.transitions import Transition
from nemesrv.operations.replay.similarity import similarity


def t(at_s: float, node: str, kind: str, subject: str, how: str = "") -> Transition:
    return Transition(at_s * 1000, node, kind, subject, how)


PARTITION = [
    t(115, "ns-0", "lost", "broker-a", "silent"),
    t(115, "ns-0", "route", "orders", "broker-b"),
    t(130, "producer-0", "took", "orders", "broker-b"),
    t(141, "producer-1", "took", "orders", "broker-b"),
    t(176, "ns-0", "came", "broker-a"),
    t(176, "ns-0", "route", "orders", "broker-a, broker-b"),
]


def later(by_s: float) -> list[Transition]:
    return [one._replace(at_ms=one.at_ms + 1000 * by_s) for one in PARTITION]


def test_the_same_is_1_and_so_is_what_stamps_cannot_tell_apart() -> None:
    assert similarity(PARTITION, PARTITION).similarity == 1
    assert similarity(PARTITION, later(0.5)).similarity == 1
    assert "6 of 6 transitions came, in the same order" in similarity(PARTITION, PARTITION).sentence
    of_logs = similarity(PARTITION, PARTITION, of_logs=True).sentence
    assert "6 of 6 transitions that the logs show came, in the same order" in of_logs


def test_nothing_on_both_sides_says_nothing() -> None:
    found = similarity([], [])
    assert (found.similarity, found.happens) == (None, "nothing")
    assert similarity([], PARTITION).similarity == similarity(PARTITION, []).similarity == 0


def test_a_missing_and_an_extra_transition_lower_the_part_that_came() -> None:
    found = similarity(PARTITION, [*PARTITION[:-1], t(180, "ns-1", "lost", "broker-b", "silent")])
    assert (found.missing, found.extra) == (1, 1)
    assert found.came == pytest.approx(10 / 12)
    assert (found.order, found.time) == (1, 1)


def test_another_way_to_lose_a_broker_is_another_transition() -> None:
    closed = [one._replace(how="closed") if one.kind == "lost" else one for one in PARTITION]
    assert similarity(PARTITION, closed).missing == 1
    assert similarity([one._replace(how="unknown") for one in PARTITION[:1]], closed[:1]).similarity == 1


def test_later_by_half_a_period_halves_the_part_in_time_and_by_a_whole_one_it_is_nothing() -> None:
    found = similarity(PARTITION, later(15.5))
    assert found.time == pytest.approx(0.5)
    assert (found.came, found.order) == (1, 1)
    assert similarity(PARTITION, later(31)).similarity == 0
    assert found.median_ms == found.worst_ms == 15_500


def test_the_sentence_names_the_worst_transition_and_never_rounds_up_to_again() -> None:
    found = similarity(PARTITION, [*PARTITION[:-1], PARTITION[-1]._replace(at_ms=196_800)])
    assert "20.8 s at worst: ns-0: orders is at broker-a, broker-b" in found.sentence
    nearly = similarity(PARTITION, later(3.62))
    assert (nearly.happens, round(nearly.similarity or 0, 3)) == ("in part", 0.896)
    assert "Similarity 0.89 (from 0.9 on it happens again, from 0.5 on in part)." in nearly.sentence


def test_what_is_within_the_exactness_of_the_stamps_counts_as_in_time() -> None:
    assert similarity(PARTITION, later(5), exact_ms=lambda _node: 5_000).similarity == 1
    assert similarity(PARTITION, later(5)).time == pytest.approx(1 - 4.5 / 30)


def test_two_that_change_places_lower_the_order_but_not_within_the_exactness() -> None:
    swapped = [*PARTITION]
    swapped[2], swapped[3] = PARTITION[2]._replace(at_ms=141_000), PARTITION[3]._replace(at_ms=130_000)
    assert similarity(PARTITION, swapped).order < 1
    assert similarity(PARTITION, swapped, exact_ms=lambda _node: 11_000).order == 1


def test_a_match_is_one_to_one_in_order_and_never_further_than_the_expiry() -> None:
    flaps = [
        t(at, "ns-0", kind, "broker-a", how) for at in (10, 50, 90) for kind, how in (("lost", "closed"), ("came", ""))
    ]
    pairs = matched(flaps, flaps[2:])
    both = [(pair.original.at_ms, pair.replay.at_ms) for pair in pairs if pair.original and pair.replay]
    assert both == [(at, at) for at in (50_000, 50_000, 90_000, 90_000)]
    assert [pair.apart_ms for pair in matched([t(0, "a", "came", "b")], [t(121, "a", "came", "b")])] == [None, None]
    assert [pair.apart_ms for pair in matched([t(0, "a", "came", "b")], [t(119, "a", "came", "b")])] == [119_000]


def test_thousands_of_one_kind_are_matched_in_order_of_time() -> None:
    many = [t(number, "producer-0", "chose", "ns-0") for number in range(1000)]
    found = similarity(many, many[:-1])
    assert (found.matched, found.missing, found.extra) == (999, 1, 0)
