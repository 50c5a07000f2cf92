"""Two samples: what is told, how often it is wrong, and how often a planted difference is found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from nemesrv.chaos.proof.statistics import two_samples
from nemesrv.chaos.proof.statistics.two_samples import (
    Comparison,
    Kind,
    Outcome,
    attainable_p,
    compare_all,
    describe_all,
    hodges_lehmann,
)

ALPHA = 0.05


def one(a: object, b: object, kind: Kind = Kind.TIMES, **settings: object) -> Comparison:
    (found,) = compare_all({"it": (kind, list(a), list(b))}, **settings)  # type: ignore[call-overload,arg-type]
    return found


def test_a_clear_difference_is_told_with_its_interval() -> None:
    told = one(range(100, 110), range(200, 210))
    assert told.outcome is Outcome.DIFFERS
    assert (told.estimate, told.effect, told.n_a, told.n_b) == (100.0, 1.0, 10, 10)
    assert told.p_value == pytest.approx(attainable_p(10, 10))
    assert told.low is not None
    assert told.high is not None
    assert 90 < told.low < 100 < told.high < 110


def test_the_same_numbers_are_no_difference_whatever_they_are() -> None:
    for kind in Kind:
        told = one([1.0] * 30, [1.0] * 25, kind)
        assert (told.outcome, told.p_value, told.effect) == (Outcome.NO_DIFFERENCE, 1.0, 0.0)
        assert (told.estimate, told.low, told.high) == (0.0, 0.0, 0.0)


def test_with_too_few_samples_nothing_can_be_told_however_far_apart_they_are() -> None:
    """Three a side: the most extreme of 20 orders has p = 0.1."""
    told = one([1, 2, 3], [1001, 1002, 1003])
    assert (told.outcome, told.p_value, told.low) == (Outcome.CANNOT_TELL, None, None)
    assert "no order has p below 0.1" in told.why
    assert (told.median_a, told.median_b) == (2.0, 1002.0)
    assert one([], [1, 2, 3]).why == "no samples of A"
    assert compare_all({"it": (Kind.TIMES, [], [])}) == []


def test_a_quantity_with_few_samples_takes_nothing_from_the_others() -> None:
    few, many = ([1, 2], [3, 4]), (list(range(5)), list(range(10, 15)))
    told = compare_all({"few": (Kind.TIMES, *few), "many": (Kind.TIMES, *many)})
    assert [each.outcome for each in told] == [Outcome.CANNOT_TELL, Outcome.DIFFERS]
    assert told[1].p_holm == told[1].p_value


def test_of_quantities_with_equal_numbers_none_is_chosen_over_another() -> None:
    """Four a side could be told if it were one quantity alone (p = 0.029), not as one of two."""
    samples = {name: (Kind.TIMES, [1, 2, 3, 4], [11, 12, 13, 14]) for name in ("one", "two")}
    assert [each.outcome for each in compare_all(samples)] == [Outcome.CANNOT_TELL] * 2
    assert one([1, 2, 3, 4], [11, 12, 13, 14]).outcome is Outcome.DIFFERS


def test_p_values_are_corrected_by_holm_s_steps() -> None:
    rng = np.random.default_rng(1)
    samples = {
        str(shift): (Kind.TIMES, rng.normal(0, 1, 40).tolist(), rng.normal(shift, 1, 40).tolist())
        for shift in (0.0, 0.6, 2.0)
    }
    told = {each.name: each for each in compare_all(samples)}
    assert told["2.0"].p_holm == pytest.approx(3 * (told["2.0"].p_value or 0))
    assert told["0.6"].p_holm == pytest.approx(2 * (told["0.6"].p_value or 0))
    assert told["0.0"].p_holm == told["0.0"].p_value


def test_shares_that_are_mostly_one_differ_by_their_means() -> None:
    """Their median difference is 0; one in three of B's lost a tenth."""
    told = one([1.0] * 30, [1.0] * 20 + [0.9] * 10, Kind.SHARES)
    assert told.outcome is Outcome.DIFFERS
    assert told.estimate == pytest.approx(-0.1 / 3)
    assert told.low is not None
    assert told.high is not None
    assert told.low < -0.1 / 3 < told.high < 0


def test_the_same_seed_says_the_same_to_the_last_digit() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 5, 12), rng.integers(1, 6, 12)
    for kind in Kind:
        assert one(a, b, kind, seed=7) == one(a, b, kind, seed=7)


@pytest.mark.parametrize(("n", "draw"), [(8, "exponential"), (40, "exponential"), (40, "integers")])
def test_clean_twins_are_called_different_no_oftener_than_alpha(n: int, draw: str) -> None:
    """250 comparisons of three quantities each, the same distribution on both sides; bound: alpha and 3 errors."""
    rng, alarms, runs = np.random.default_rng(n), 0, 250

    def sample() -> list[float]:
        values = rng.exponential(10, n) if draw == "exponential" else rng.integers(0, 8, n)
        return [float(value) for value in values]

    for _ in range(runs):
        told = compare_all({str(i): (Kind.TIMES, sample(), sample()) for i in range(3)}, alpha=ALPHA)
        alarms += any(each.outcome is Outcome.DIFFERS for each in told)
    assert alarms / runs <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / runs)


def test_clean_twins_of_shares_are_called_different_no_oftener_than_alpha(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two_samples, "RESAMPLES", 499)
    rng, runs = np.random.default_rng(5), 100
    alarms = 0
    for _ in range(runs):
        a, b = (np.where(rng.random(12) < 0.3, rng.random(12), 1.0) for _ in range(2))
        alarms += one(a, b, Kind.SHARES).outcome is Outcome.DIFFERS
    assert alarms / runs <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / runs)


@pytest.mark.parametrize("n", [25, 60])
def test_a_planted_difference_is_found_with_the_power_that_is_stated(n: int) -> None:
    """δ as `detectable` says, planted as a shift of normal times; 300 experiments, bound: three errors below 0.9."""
    rng, runs = np.random.default_rng(100 + n), 300
    delta = one(rng.normal(0, 1, n), rng.normal(0, 1, n), alpha=ALPHA).detectable
    assert delta is not None
    shift = math.sqrt(2) * float(special.ndtri((1 + delta) / 2))  # P(B > A) = Φ(shift / √2) = (1 + δ) / 2
    found = sum(one(rng.normal(0, 1, n), rng.normal(shift, 1, n)).outcome is Outcome.DIFFERS for _ in range(runs))
    assert 0.9 - 3 * math.sqrt(0.09 / runs) <= found / runs


@pytest.mark.parametrize("n", [5, 6, 15, 60])
def test_the_interval_covers_the_true_shift_as_often_as_it_says(n: int) -> None:
    rng, runs, covered = np.random.default_rng(n), 400, 0
    for _ in range(runs):
        _, low, high = hodges_lehmann(rng.exponential(10, n), rng.exponential(10, n) + 5, ALPHA, rng)
        covered += low <= 5 <= high
    assert covered / runs >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs)


def test_five_a_side_have_an_interval_in_a_family_of_six() -> None:
    apart = {str(n): (Kind.TIMES, range(5), range(10 + n, 15 + n)) for n in range(6)}
    for n, told in enumerate(compare_all(apart, alpha=ALPHA)):
        assert told.outcome is Outcome.DIFFERS
        assert (told.low, told.estimate, told.high) == (6 + n, 10 + n, 14 + n)


def test_of_few_samples_test_and_interval_agree_exactly() -> None:
    rng, differ = np.random.default_rng(10), 0
    for n in range(300):
        a, b = rng.normal(0, 1, 4 + n % 9), rng.normal(1.2, 1, 5 + n % 7)
        _, low, high = hodges_lehmann(a, b, ALPHA, rng)
        exact = stats.mannwhitneyu(a, b, method="exact").pvalue
        assert (not low <= 0 <= high) == (exact <= ALPHA)
        differ += exact <= ALPHA
    assert 100 < differ < 290


def test_test_and_interval_agree_with_scipy_s_on_the_side_of_zero() -> None:
    rng, differ = np.random.default_rng(9), 0
    for _ in range(200):
        a, b = rng.normal(0, 1, 30), rng.normal(0.5, 1, 30)
        told = one(a, b)
        assert told.p_value == pytest.approx(float(stats.mannwhitneyu(a, b).pvalue))
        assert told.low is not None
        assert told.high is not None
        differ += (told.outcome is Outcome.DIFFERS) != (not told.low <= 0 <= told.high)
    assert differ <= 2  # the approximation's continuity correction, at the very edge


def test_what_is_described_has_a_median_and_an_interval_that_holds_what_was_measured() -> None:
    slow, fast = [120.0 + n for n in range(6)], [20.0 + n for n in range(6)]
    (shown,) = describe_all({"drop": (slow, fast)}, alpha=0.05, seed=1)
    assert (shown.n, shown.median) == ((6, 6), (122.5, 22.5))
    assert shown.interval[0] is not None
    assert 120 <= shown.interval[0][0] <= 122.5 <= shown.interval[0][1] <= 125
    assert shown.difference is not None
    assert shown.difference[0] == pytest.approx(-100)
    assert -106 <= shown.difference[1] <= -100 <= shown.difference[2] <= -94


def test_of_one_value_a_side_no_interval_is_claimed() -> None:
    (shown,) = describe_all({"drop": ([100.0], [20.0])}, alpha=0.05, seed=1)
    assert shown.interval == (None, None)
    assert shown.difference == (-80.0, -math.inf, math.inf)
    (only,) = describe_all({"drop": ([100.0], [])}, alpha=0.05, seed=1)
    assert (only.median, only.difference) == ((100.0, None), None)
