"""Doctor and import are as sure as they are right: what is certain is true, what is likely mostly is."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from nemesrv.operations.inferring.telling import score_of
from tests.operations.importing.calibration import Claim, fitted, made, posted, recordings, table


def wrong(claims: Iterable[Claim]) -> list[Claim]:
    return [one for one in claims if not one.is_right and one.certainty != "unsure"]


@pytest.mark.nightly_but("1")
@pytest.mark.parametrize("times", [1, 4])
def test_of_made_logs_of_each_cause_what_is_claimed_is_true(tmp_path: Path, times: int) -> None:
    claims = [*made(times, tmp_path)]
    assert len(claims) >= 12 * times, "most logs are answered"
    assert [one for one in wrong(claims) if one.certainty == "certain"] == []
    assert len(wrong(claims)) <= len(claims) / 24


def test_of_posted_logs_what_is_claimed_is_true() -> None:
    claims = [one for one in posted(set_aside=False) if one.by == "doctor, posted"]
    assert len(claims) >= 20
    assert wrong(claims) == []


def test_a_fit_finds_how_often_claims_are_right() -> None:
    claims = [Claim("doctor, made", "", "a", "likely", 0.8, at % 5 > 0, share=0.8) for at in range(200)]
    assert score_of(0.8, 0.0, *fitted(claims)) == pytest.approx(0.8, abs=0.02)


def test_the_table_counts_by_how_sure_a_claim_is() -> None:
    claims = [Claim("x", "", "a", "certain", 0.99, True), Claim("x", "", "b", "likely", 0.84, False)]
    rows = ["| certain | 0.99 | 1 of 1 | 1 of 1 |", "| likely 0.80 to 0.90 | 0.84 | 0 of 1 | 0 of 1 |"]
    assert [*table(claims)][2:] == rows


@pytest.mark.nightly("test_of_made_logs_of_each_cause_what_is_claimed_is_true")
def test_of_recorded_incidents_nothing_wrong_is_certain(tmp_path: Path) -> None:
    claims = [*recordings(range(7100, 7120), tmp_path, "all")]
    assert [one for one in wrong(claims) if one.certainty == "certain"] == []
    likely = [one for one in claims if one.certainty == "likely"]
    assert len(wrong(likely)) <= len(likely) / 5
