"""Two samples: what is told, how often it is wrong, and how often a planted difference is found."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from nemesrv.chaos.proof.statistics.two_samples import RUNS_ENOUGH, Comparison, ComparisonOutcome, compare_all, shown

ALPHA = 0.05


def one(a: Sequence[float], b: Sequence[float]) -> Comparison:
    (found,) = compare_all({"it": ([*map(float, a)], [*map(float, b)])}, alpha=ALPHA)
    return found


def test_a_clear_difference_is_told_with_its_interval() -> None:
    told = one(range(100, 110), range(200, 210))
    assert told.outcome is ComparisonOutcome.DIFFERS
    assert (told.mean_a, told.mean_b, told.estimate, told.n_a, told.n_b) == (104.5, 204.5, 100.0, 10, 10)
    assert told.low == pytest.approx(97.155, abs=0.01)
    assert told.high == pytest.approx(102.845, abs=0.01)


def test_the_same_numbers_are_no_difference_and_other_numbers_that_are_all_the_same_are_one() -> None:
    told = one([1.0] * 30, [1.0] * 25)
    assert (told.outcome, told.p_value) == (ComparisonOutcome.NO_DIFFERENCE, 1.0)
    assert (told.estimate, told.low, told.high) == (0.0, 0.0, 0.0)
    told = one([1.0] * 5, [3.0] * 5)
    assert (told.outcome, told.estimate, told.low, told.high) == (ComparisonOutcome.DIFFERS, 2.0, 2.0, 2.0)


def test_with_too_few_samples_nothing_can_be_told_however_far_apart_they_are() -> None:
    told = one([1, 2, 3, 4], [1001, 1002, 1003, 1004, 1005])
    assert (told.outcome, told.p_value, told.low) == (ComparisonOutcome.CANNOT_TELL, None, None)
    assert told.why == "4 and 5 runs measured it, 5 a side are needed"
    assert (told.mean_a, told.mean_b) == (2.5, 1003.0)
    assert one([], [1, 2, 3]).mean_a is None
    assert compare_all({"it": ([], [])}) == []


def test_copies_of_one_run_are_shown_and_not_tested() -> None:
    (told,) = compare_all({"it": ([5.0] * 5, [3.0] * 5)}, copies=True)
    assert (told.outcome, told.p_value, told.mean_a, told.mean_b) == (ComparisonOutcome.CANNOT_TELL, None, 5.0, 3.0)
    assert told.why == "the runs of a side are one run repeated"


def test_a_quantity_with_few_samples_takes_nothing_from_the_others() -> None:
    many = (list(range(5)), list(range(5, 10)))
    told = compare_all({"few": ([1, 2], [3, 4]), "many": many})
    assert [each.outcome for each in told] == [ComparisonOutcome.CANNOT_TELL, ComparisonOutcome.DIFFERS]
    assert told[1] == compare_all({"many": many})[0]


def test_p_values_are_corrected_by_holm_s_steps() -> None:
    rng = np.random.default_rng(1)
    samples = {
        str(shift): (rng.normal(0, 1, 40).tolist(), rng.normal(shift, 1, 40).tolist()) for shift in (0.0, 0.6, 2.0)
    }
    alone = {name: shown(name, *both).p_value or 0.0 for name, both in samples.items()}
    told = {each.name: each.p_value for each in compare_all(samples)}
    assert told["2.0"] == pytest.approx(3 * alone["2.0"])
    assert told["0.6"] == pytest.approx(2 * alone["0.6"])
    assert told["0.0"] == alone["0.0"]


@pytest.mark.parametrize("draw", ["exponential", "integers", "shares"])
def test_clean_twins_are_called_different_no_oftener_than_alpha(draw: str) -> None:
    """400 comparisons of three quantities, five runs a side, the same distribution; bound: alpha and 3 errors."""
    rng, runs = np.random.default_rng(8), 400

    def sample() -> list[float]:
        values = {
            "exponential": rng.exponential(10, RUNS_ENOUGH),
            "integers": rng.integers(0, 8, RUNS_ENOUGH),
            "shares": np.where(rng.random(RUNS_ENOUGH) < 0.3, rng.random(RUNS_ENOUGH), 1.0),
        }
        return [float(value) for value in values[draw]]

    alarms = 0
    for _ in range(runs):
        told = compare_all({str(number): (sample(), sample()) for number in range(3)}, alpha=ALPHA)
        alarms += any(each.outcome is ComparisonOutcome.DIFFERS for each in told)
    assert alarms / runs <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / runs)


def test_a_difference_of_two_deviations_is_found_in_ten_runs_a_side_nine_times_of_ten() -> None:
    rng, runs = np.random.default_rng(100), 200
    found = sum(
        one(rng.normal(0, 1, 10), rng.normal(2, 1, 10)).outcome is ComparisonOutcome.DIFFERS for _ in range(runs)
    )
    assert found / runs >= 0.9


@pytest.mark.parametrize("n", [5, 15])
def test_the_interval_covers_the_true_shift_as_often_as_it_says(n: int) -> None:
    rng, runs, covered = np.random.default_rng(n), 400, 0
    for _ in range(runs):
        a, b = (rng.exponential(10, n) for _ in range(2))
        told = shown("it", a.tolist(), (b + 5).tolist(), alpha=ALPHA)
        assert told.low is not None
        assert told.high is not None
        assert told.p_value is not None
        covered += told.low <= 5 <= told.high
        assert (told.p_value <= ALPHA) == (not told.low <= 0 <= told.high), "test and interval agree"
    assert covered / runs >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs)


def test_of_one_value_a_side_no_interval_is_claimed() -> None:
    told = shown("drop", [100.0], [20.0])
    assert (told.mean_a, told.mean_b, told.estimate, told.outcome) == (100.0, 20.0, None, None)
    assert shown("drop", [100.0], []).mean_b is None
