"""Verdicts: what is worst, and JSON both ways."""

import json

from nemesrv.chaos.verdict import Example, Finding, Validity, Verdict, singular, worst
from tests.chaos.builder import invalid


def test_the_worst_verdict_wins_and_none_at_all_is_unknown() -> None:
    assert worst([Validity.VALID, Validity.INVALID, Validity.UNKNOWN]) is Validity.INVALID
    assert worst([Validity.VALID, Validity.UNKNOWN]) is Validity.UNKNOWN
    assert worst([Validity.VALID]) is Validity.VALID
    assert worst([]) is Validity.UNKNOWN


def test_one_thing_is_told_in_the_singular_and_a_number_that_ends_in_one_is_not() -> None:
    said = "1 retries, 1 times, 21 retries, 1,001 sends, 0.1 times, 1 sends in turn, 1 of 2 topics"
    one = "1 retry, 1 time, 21 retries, 1,001 sends, 0.1 times, 1 send in turn, 1 of 2 topics"
    assert singular(said) == one


def test_a_verdict_survives_json() -> None:
    verdict = invalid(
        "routes_converge",
        examined=3,
        measured={"max_ms": 1.5},
        allowed={"bound_ms": 1},
        examples=(Example(who="ns-1", what="broker-a", topic="orders", from_ms=1.0, more={"kind": "must hold"}),),
        why="one differs",
    )
    assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


def test_a_check_that_failed_is_unknown_and_says_why() -> None:
    verdict = Verdict.of_failed_check("routes_converge", ValueError("no such column\n  stack"))
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)
    assert verdict.why == "the check failed: ValueError: no such column"


def test_a_finding_survives_json_but_for_what_says_nothing() -> None:
    finding = Finding(
        subject="ns-0",
        object="broker-a",
        kind="must hold",
        from_ms=100.0,
        to_ms=float("inf"),
        bound_ms=33_000.0,
        formula="R + C",
        tolerance_ms=51.0,
        lag_ms=None,
        over_ms=70_000.0,
        wrong=1,
        wrong_from_ms=120.0,
        after="cut-1 end",
        more={"reason": "closed"},
    )
    document = json.loads(json.dumps(finding.to_json()))
    assert document["verdict"] == "INVALID"
    assert "to_ms" not in document
    assert Finding.from_json(document) == finding


def test_a_finding_is_an_example_from_where_it_was_wrong() -> None:
    finding = Finding(subject="ns-0", object="broker-a", kind="left", from_ms=5.0, to_ms=90.0, over_ms=30.0, wrong=1)
    assert (finding.example.from_ms, finding.example.to_ms) == (5.0, 90.0)
    late = Finding(subject="ns-0", kind="left", from_ms=5.0, to_ms=90.0, wrong_from_ms=60.0, late=1)
    assert (late.example.from_ms, late.example.to_ms, late.validity) == (60.0, None, Validity.UNKNOWN)
