"""When two runs of the same client agree."""

from pathlib import Path
from typing import Any

import pytest

from .__main__ import conform
from .catalogue import CLIENTS
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


def test_when_in_a_rebalance_a_consumer_ended_is_chance() -> None:
    taken = {"rule": "queues_of_stopped_s", "measured": 0.6, "verdict": "measured", "why": ""}
    assert agree(taken, {"measured": 8.6})
    assert not agree(taken, {"measured": 31.0})
    assert not agree(taken, {"measured": "never", "verdict": "INVALID"})


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


@pytest.mark.nightly
@pytest.mark.java
@pytest.mark.timeout(3_000)
def test_two_runs_of_a_client_agree(tmp_path: Path) -> None:
    found = [conform(CLIENTS["java-4.9.8"], tmp_path / which, 60) for which in ("one", "other")]
    assert found[0] is not None
    assert found[1] is not None
    kept = agreement({**found[0], "date": ""}, found[1])
    assert kept is not None
    assert kept["not the same"] == []
