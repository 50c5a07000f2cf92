"""When two runs of the same client agree."""

import sys
from pathlib import Path
from typing import Any

import pytest

from .__main__ import main
from .twice import agreement, compared, status, told

WORD = {"rule": "sticky", "measured": "kept", "verdict": "VALID", "why": ""}
TIME = {"rule": "answer_timeout_s", "measured": 3.0, "verdict": "VALID", "why": ""}
BOUND = {"rule": "killed_broker_s", "measured": 19.0, "verdict": "VALID", "why": ""}
COUNT = {"rule": "storm", "measured": 7.0, "verdict": "measured", "why": ""}
STALL = {"rule": "send_stall_s", "measured": 3.5, "verdict": "measured", "why": ""}


def document(*rules: dict[str, Any], late_ms: float = 0.0, **left_out: str) -> dict[str, Any]:
    return {"rules": list(rules), "late_ms": late_ms, "left_out": left_out}


def of_pair(one: dict[str, Any], more: dict[str, Any], late_ms: float = 0.0) -> int:
    return status(list(compared(document(one), document({**one, **more}, late_ms=late_ms))))


def test_words_are_the_same_and_times_within_their_tolerance() -> None:
    assert of_pair(WORD, {}) == 0
    assert of_pair(WORD, {"measured": "moves", "verdict": "INVALID"}) == 1
    assert of_pair(WORD, {"measured": "moves"}) == 0, "its profile allows both"
    assert of_pair(TIME, {"measured": 3.14}) == 0
    assert of_pair(TIME, {"measured": 3.2}) == 1
    assert of_pair(TIME, {"measured": 3.2}, late_ms=100.0) == 0, "this machine was late"
    assert of_pair(BOUND, {"measured": "still used", "verdict": "INVALID"}) == 1


def test_what_is_within_the_profile_s_bound_agrees() -> None:
    assert of_pair(BOUND, {"measured": 29.0}) == 0
    assert of_pair(BOUND, {"measured": 49.0, "verdict": "INVALID"}) == 1
    assert of_pair({**BOUND, "verdict": "measured"}, {"measured": 29.0}) == 1, "no profile says how long it may be"


def test_counts_lie_apart_by_chance_and_stalls_by_the_sends_in_a_row_that_chance_makes() -> None:
    assert of_pair(COUNT, {"measured": 10.0}) == 0
    assert of_pair(COUNT, {"measured": 40.0}) == 1
    assert of_pair(STALL, {"measured": 14.7, "interval": [5.0, 20.0]}) == 1, "no send of the first takes so long"
    assert of_pair(STALL, {"measured": 14.7, "interval": [3.4, 20.0]}) == 0


def test_when_in_a_rebalance_a_consumer_ended_is_chance() -> None:
    taken = {"rule": "queues_of_stopped_s", "measured": 0.6, "verdict": "measured", "why": ""}
    assert of_pair(taken, {"measured": 8.6}) == 0
    assert of_pair(taken, {"measured": 31.0}) == 1
    assert of_pair(taken, {"measured": "never", "verdict": "INVALID"}) == 1


def test_what_one_of_them_left_open_is_told() -> None:
    pairs = list(compared(document(WORD, TIME), document(WORD, {**TIME, "measured": None, "why": "too few"})))
    assert status(pairs) == 3
    assert told(pairs).splitlines() == [
        "1 of 2 rules agree",
        "  not decided   answer_timeout_s: 3 and nothing: too few",
    ]
    pairs = list(compared(document(WORD, TIME), document(WORD, answer_timeout_s="it asks nobody")))
    assert (
        told(pairs).splitlines()[1]
        == "  not the same  answer_timeout_s: 3 and nothing: one left it out: it asks nobody"
    )
    assert status(pairs) == 1


def test_a_run_is_held_against_the_one_that_was_kept() -> None:
    found = document(
        {**WORD, "measured": "moves", "verdict": "INVALID"}, TIME, {**COUNT, "measured": None, "why": "too few"}
    )
    before = {**document(WORD, TIME, COUNT), "date": "2026-11-22"}
    assert agreement(before, found) == {
        "date": "2026-11-22",
        "rules": 3,
        "agree": 1,
        "not the same": ["sticky: kept and moves: they are not the same"],
        "not decided": ["storm: 7 and nothing: too few"],
    }
    assert agreement(None, found) is None


@pytest.mark.nightly
@pytest.mark.java
@pytest.mark.timeout(3_000)
def test_two_runs_of_a_client_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["clients", "--twice", "java-4.9.8", "--out", str(tmp_path)])
    assert main() in (0, 3), "two runs do not agree; 3: a machine that was late left a rule undecided"
