"""Verdicts: what is worst, and JSON both ways."""

from __future__ import annotations

import json

from nemesrv.chaos.verdict import Validity, Verdict, worst


def test_the_worst_verdict_wins_and_none_at_all_is_unknown() -> None:
    assert worst([Validity.VALID, Validity.INVALID, Validity.UNKNOWN]) is Validity.INVALID
    assert worst([Validity.VALID, Validity.UNKNOWN]) is Validity.UNKNOWN
    assert worst([Validity.VALID]) is Validity.VALID
    assert worst([]) is Validity.UNKNOWN


def test_a_verdict_survives_json() -> None:
    verdict = Verdict(
        name="routes_converge",
        verdict=Validity.INVALID,
        examined=3,
        violations=1,
        measured={"max_ms": 1.5},
        allowed={"bound_ms": 1},
        examples=({"topic": "orders"},),
        why="one differs",
    )
    assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


def test_a_check_that_failed_is_unknown_and_says_why() -> None:
    verdict = Verdict.of_failed_check("routes_converge", ValueError("no such column\n  stack"))
    assert (verdict.verdict, verdict.examined) == (Validity.UNKNOWN, 0)
    assert verdict.why == "the check failed: ValueError: no such column"
