"""What happened, in words: who, when, how long, what was allowed and by how much that was exceeded."""

from typing import Any

import pytest

from nemesrv.chaos.checks import happened
from nemesrv.chaos.reports.sentences import example_sentence
from nemesrv.chaos.verdict import Example, Finding, Verdict


def example(kind: str, from_s: float, to_s: float | None = None, **values: Any) -> Example:
    """Of ns-0 and broker-a, in a run whose timeline starts at 10 s."""
    times = {"from_ms": (10 + from_s) * 1000, "to_ms": None if to_s is None else (10 + to_s) * 1000}
    return Example(**{"who": "ns-0", "what": "broker-a", **times, **values, "more": {"kind": kind, **values["more"]}})


@pytest.mark.parametrize(
    ("kind", "when_s", "values", "said"),
    [
        (
            "must not be dropped",
            (42.0, 70.0),
            {"measured_ms": 28_000.0, "latest_ms": 0.0, "over_ms": 28_000.0, "times": {"back": 80_000.0}}
            | {"more": {"reason": "unregistered", "registered_before_ms": 2_000.0}},
            "ns-0 dropped broker-a at 42.0 s (unregistered), 2.0 s after broker-a's last registration, though ns-0 had "
            "to keep broker-a; broker-a was missing for 28.0 s; never allowed; back at 70.0 s",
        ),
        (
            "must hold",
            (90.0, 90.0008),
            {"topic": "orders", "due_ms": 30_000.0, "measured_ms": 0.8, "latest_ms": 0.0, "over_ms": 0.8},
            "ns-0 did not list broker-a (topic orders) at 90.0 s, for 0.8 ms; never allowed",
        ),
        (
            "must hold",
            (42.0, 90.0),
            {"measured_ms": 42_000.0, "earliest_ms": 90_000.0, "latest_ms": 130_000.0, "over_ms": 48_000.0}
            | {"after": "f1 start"},
            "ns-0 dropped broker-a at 42.0 s, 42.0 s after f1 start; allowed not before 90.0 s: 48.0 s too soon",
        ),
        (
            "must not hold",
            (150.0, 152.5),
            {"due_ms": 160_000.0, "measured_ms": 132_500.0, "latest_ms": 130_000.0, "over_ms": 2_500.0}
            | {"after": "f1 start"},
            "ns-0 still listed broker-a until 152.5 s, 132.5 s after f1 start; allowed 130.0 s: 2.5 s over",
        ),
        (
            "must have an owner",
            (20.0, 30.0),
            {"topic": "orders", "measured_ms": 10_000.0, "latest_ms": 0.0, "over_ms": 10_000.0}
            | {"more": {"queue_id": 3, "clients": [], "holder": "consumer-0"}},
            "consumer-0 had to own queue 3 of broker-a (topic orders), but no member of ns-0 owned the queue from 20.0 "
            "to 30.0 s, for 10.0 s; never allowed",
        ),
    ],
)
def test_each_kind_has_its_sentence_counted_from_the_timeline(
    kind: str, when_s: tuple[float, float], values: dict[str, Any], said: str
) -> None:
    assert example_sentence(example(kind, *when_s, **{"more": {}, **values}), 10_000.0) == said


def test_a_kind_without_a_sentence_is_told_by_its_name_with_its_other_moments() -> None:
    one = example("astray", 5.0, times={"changed": 12_000.0}, more={"offset": 7})
    assert example_sentence(one, 10_000.0) == "ns-0: astray broker-a, at 5.0 s; changed at 2.0 s, offset 7"


def test_what_is_allowed_and_what_was_over_add_up_to_the_length_that_is_told() -> None:
    over = {"measured_ms": 90_000.0, "latest_ms": 40_000.0, "over_ms": 50_000.0}
    said = "ns-0: astray broker-a, from 60.6 to 110.6 s"
    told = example_sentence(example("astray", 60.6, 110.6, more={}, **over), 10_000.0)
    assert told == f"{said} (90.0 s in all); allowed 40.0 s: 50.0 s over"
    assert example_sentence(example("astray", 60.6, 110.6, more={}), 10_000.0) == f"{said} (50.0 s)"


def test_a_moment_that_rounds_to_nothing_has_no_sign() -> None:
    assert example_sentence(example("lost", -0.00001, more={}), 10_000.0).endswith("at 0.0 s")


def test_every_moment_of_findings_and_examples_is_counted_from_the_timeline_and_no_length_is() -> None:
    finding = Finding(
        subject="consumer-0",
        kind="must have left",
        from_ms=33_000.0,
        to_ms=90_000.0,
        bound_ms=30_000.0,
        measured_ms=35_000.0,
        over_ms=5_000.0,
        wrong=1,
        wrong_from_ms=33_000.0,
        wrong_to_ms=38_000.0,
        times={"lost": 3_000.0},
    )
    verdict = Verdict.nothing_examined(
        "", name="dead_name_servers_left", findings=(finding,), examples=(finding.example,)
    )
    moved = verdict.since_timeline(3_000.0)
    (found,), (shown,) = moved.findings, moved.examples
    assert (found.from_ms, found.to_ms, found.wrong_from_ms, found.wrong_to_ms) == (30_000, 87_000, 30_000, 35_000)
    assert (shown.from_ms, shown.to_ms, shown.due_ms, shown.times) == (30_000, 35_000, 30_000, {"lost": 0})
    assert (found.measured_ms, found.bound_ms, found.over_ms) == (35_000, 30_000, 5_000)
    assert (shown.measured_ms, shown.latest_ms, shown.over_ms) == (35_000, 30_000, 5_000)
    assert Example.from_json(shown.to_json()) == shown
    assert Finding.from_json(found.to_json()).times == found.times


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        (
            "committed without the queue",
            {"topic": "orders", "more": {}},
            "ns-0 committed for a queue of broker-a (topic orders) after ns-0 had given up the queue, at 5.0 s",
        ),
        (
            "each R",
            {"measured_ms": 42_000.0, "latest_ms": 30_000.0, "over_ms": 12_000.0, "more": {}},
            "ns-0 did not run broker-a on time, at 5.0 s; allowed 30.0 s: 12.0 s over",
        ),
        (
            "each H",
            {"to_ms": 18_000.0, "measured_ms": 27_000.0, "earliest_ms": 30_000.0, "latest_ms": 30_000.0}
            | {"over_ms": 3_000.0, "more": {}},
            "ns-0 ran broker-a, at 5.0 s (27.0 s, counted from -22.0 s); allowed not before 30.0 s: 3.0 s too soon",
        ),
        (
            "never used in 26 sends",
            {"more": {}},
            "ns-0 sent nothing to broker-a in 26 sends, though ns-0's route had broker-a, at 5.0 s",
        ),
    ],
)
def test_an_act_wrong_by_itself_is_told_with_its_allowed_time(kind: str, values: dict[str, Any], said: str) -> None:
    assert example_sentence(example(kind, 5.0, **values), 10_000.0) == said


def test_every_sentence_can_be_made_of_what_an_example_has() -> None:
    for kind in (*happened._STATES, *happened._ACTS):
        one = example(kind, 5.0, 9.0, topic="orders", measured_ms=4_000.0, more={})
        assert "{" not in example_sentence(one)
