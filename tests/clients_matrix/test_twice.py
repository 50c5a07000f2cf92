"""When two runs of the same client agree."""

from typing import Any

from .twice import agreement, compared

WORD = {"rule": "sticky", "measured": "kept", "verdict": "VALID", "why": ""}
TIME = {"rule": "answer_timeout_s", "measured": 3.0, "verdict": "VALID", "why": ""}
BOUND = {"rule": "killed_broker_s", "measured": 19.0, "verdict": "VALID", "why": ""}
COUNT = {"rule": "storm", "measured": 7.0, "verdict": "measured", "why": ""}
STALL = {"rule": "send_stall_s", "measured": 3.5, "verdict": "measured", "why": ""}


def document(*rules: dict[str, Any], late_ms: float = 0.0, **left_out: str) -> dict[str, Any]:
    return {"rules": list(rules), "late_ms": late_ms, "left_out": left_out}


def agree(one: dict[str, Any], more: dict[str, Any], late_ms: float = 0.0) -> bool:
    (pair,) = compared(document(one), document({**one, **more}, late_ms=late_ms))
    return not pair.why


def test_words_are_the_same_and_times_within_their_tolerance() -> None:
    assert agree(WORD, {})
    assert not agree(WORD, {"measured": "moves", "verdict": "INVALID"})
    assert agree(WORD, {"measured": "moves"}), "its profile allows both"
    assert agree(TIME, {"measured": 3.14})
    assert not agree(TIME, {"measured": 3.2})
    assert agree(TIME, {"measured": 3.2}, late_ms=100.0), "this machine was late"
    assert not agree(BOUND, {"measured": "still used", "verdict": "INVALID"})


def test_what_is_within_the_profile_s_bound_agrees() -> None:
    assert agree(BOUND, {"measured": 29.0})
    assert not agree(BOUND, {"measured": 49.0, "verdict": "INVALID"})
    assert not agree({**BOUND, "verdict": "measured"}, {"measured": 29.0}), "no profile says how long it may be"


def test_counts_lie_apart_by_chance_and_stalls_by_the_sends_in_a_row_that_chance_makes() -> None:
    assert agree(COUNT, {"measured": 10.0})
    assert not agree(COUNT, {"measured": 40.0})
    assert not agree(STALL, {"measured": 14.7, "interval": [5.0, 20.0]}), "no send of the first takes so long"
    assert agree(STALL, {"measured": 14.7, "interval": [3.4, 20.0]})


def test_a_run_is_held_against_the_one_that_was_kept() -> None:
    found = document(
        {**WORD, "measured": "moves", "verdict": "INVALID"},
        TIME,
        {**COUNT, "measured": None, "why": "too few"},
        killed_broker_s="it asks nobody",
    )
    before = {**document(WORD, TIME, COUNT, BOUND), "date": "2026-11-22"}
    assert agreement(before, found) == {
        "date": "2026-11-22",
        "rules": 4,
        "agree": 1,
        "not the same": [
            "sticky: kept and moves: they are not the same",
            "killed_broker_s: 19 and nothing: one left it out: it asks nobody",
        ],
        "not decided": ["storm: 7 and nothing: too few"],
    }
    assert agreement(None, found) is None
