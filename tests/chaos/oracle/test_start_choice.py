"""The start choice test is right: against tables, brute force and simulation, and over our own selector."""

import itertools
import math
import sys

import numpy as np
import pytest
from scipy import special, stats

from nemesrv.chaos.oracle.choosing import start_choice
from nemesrv.chaos.oracle.choosing.start_choice import (
    EXACT,
    chi_square_limit,
    chi_square_tail,
    detectable_bias,
    method,
    p_value,
    power_of,
    shares,
    starts_needed,
)
from nemesrv.chaos.scenarios.loading import find
from tests.ran import ran

ALPHA, POWER, BIAS = 1e-3, 0.99, 0.1


def brute_force_p(counts: list[int]) -> float:
    starts, n = sum(counts), len(counts)
    squares, total = sum(c * c for c in counts), 0.0
    for outcome in itertools.product(range(starts + 1), repeat=n):
        if sum(outcome) == starts and sum(c * c for c in outcome) >= squares:
            total += math.factorial(starts) / math.prod(math.factorial(c) for c in outcome) / n**starts
    return total


@pytest.mark.parametrize(
    "counts", [[3, 1], [0, 7], [5, 4], [4, 2, 1], [6, 0, 0], [2, 2, 2], [3, 2, 0, 1], [4, 0, 0, 0]]
)
def test_the_p_value_is_the_sum_over_all_outcomes_at_least_as_uneven(counts: list[int]) -> None:
    assert p_value(counts) == pytest.approx(brute_force_p(counts), rel=1e-9)


def test_nothing_and_a_list_of_one_are_never_uneven() -> None:
    assert p_value([]) == p_value([0, 0]) == p_value([50]) == 1.0


def test_a_bias_is_a_share_of_all_starts() -> None:
    assert shares(3, 0.1) == pytest.approx((0.43333, 0.28333, 0.28333), abs=1e-4)
    assert sum(shares(9, 0.5)) == pytest.approx(1)
    assert shares(3, 2 / 3) == pytest.approx((1, 0, 0))
    for name_servers, bias in ((3, 0.67), (3, -0.1), (1, 0.1)):
        with pytest.raises(ValueError, match="bias"):
            shares(name_servers, bias)


def test_three_name_servers_need_813_starts_for_ten_points_at_alpha_one_in_a_thousand() -> None:
    needed = starts_needed(3, bias=BIAS, power=POWER, alpha=ALPHA)
    assert (needed, method(needed, 3)) == (813, EXACT)
    assert power_of(needed, 3, bias=BIAS, alpha=ALPHA) >= POWER > power_of(needed - 1, 3, bias=BIAS, alpha=ALPHA)
    assert 0.9e-3 < power_of(needed, 3, bias=0.0, alpha=ALPHA) <= ALPHA
    assert detectable_bias(needed, 3, power=POWER, alpha=ALPHA) == pytest.approx(BIAS, rel=0.03)


@pytest.mark.parametrize("name_servers", start_choice.STARTS_NEEDED)
def test_the_numbers_that_every_verdict_uses_are_those_that_are_worked_out(name_servers: int) -> None:
    used = {"power": start_choice.POWER, "alpha": start_choice.ALPHA}
    found = start_choice.starts_found(name_servers, bias=start_choice.BIAS, **used)
    assert start_choice.STARTS_NEEDED[name_servers] == found
    assert start_choice.NONCENTRALITY_NEEDED[name_servers] == pytest.approx(
        start_choice.noncentrality_found(name_servers, **used), rel=1e-9
    )


@pytest.mark.parametrize("degrees", [1, 2, 5, 8])
def test_the_chi_squares_are_those_of_scipy(degrees: int) -> None:
    for x in (0.01, 1.0, 7.5, 40.0, 90.0):
        assert chi_square_tail(x, degrees) == pytest.approx(special.chdtrc(degrees, x), rel=1e-12)
    for alpha in (0.5, 1e-3, 1e-6, 1e-12):
        limit = chi_square_limit(alpha, degrees)
        assert limit == pytest.approx(special.chdtri(degrees, alpha), rel=1e-9)
        found = start_choice.noncentrality_found(degrees + 1, POWER, alpha)
        assert found == pytest.approx(special.chndtrinc(limit, degrees, 1 - POWER), rel=1e-9)


@pytest.mark.parametrize("counts", [[70, 50], [70, 50, 50], [40, 20, 20, 20]])
def test_the_exact_tail_of_many_starts_is_scipys(counts: list[int]) -> None:
    n, starts, squares = len(counts), sum(counts), sum(count * count for count in counts)
    first = np.indices([starts + 1] * (n - 1)).reshape(n - 1, -1).T
    first = first[first.sum(axis=1) <= starts]
    outcomes = np.column_stack([first, starts - first.sum(axis=1)])
    uneven = outcomes[(outcomes * outcomes).sum(axis=1) >= squares]
    assert method(starts, n) == EXACT
    assert p_value(counts) == pytest.approx(stats.multinomial(starts, [1 / n] * n).pmf(uneven).sum(), rel=1e-9)


def test_the_start_choice_needs_no_scipy() -> None:
    code = (
        "import sys\nsys.modules['scipy'] = None\nfrom nemesrv.chaos.oracle.choosing.start_choice import *\n"
        "p_value([4, 2, 1]), p_value([110, 90, 100, 95, 105, 100, 80, 120, 100])\n"
        "power_of(7, 3, bias=BIAS, alpha=ALPHA), power_of(900, 9, bias=BIAS, alpha=ALPHA)\n"
        "starts_needed(3, bias=0.3, power=0.9, alpha=1e-3), detectable_bias(7, 9, power=0.9, alpha=1e-3)\nprint('done')"
    )
    done = ran([sys.executable, "-c", code], check=True, timeout=120)
    assert done.stdout == "done\n"


def test_one_always_chosen_is_found_and_too_few_starts_find_nothing() -> None:
    assert p_value([20, 0, 0]) < 1e-6
    assert power_of(5, 3, bias=2 / 3, alpha=1e-6) == 0.0
    assert detectable_bias(5, 3, power=POWER, alpha=1e-6) is None
    assert starts_needed(3, bias=2 / 3, power=POWER, alpha=1e-6) == 14
    with pytest.raises(ValueError, match="cannot be found"):
        starts_needed(3, bias=0, power=POWER, alpha=ALPHA)


def test_the_shipped_scenario_starts_makes_the_starts_that_its_verdict_needs() -> None:
    scenario = find("starts")
    bias = scenario.workload.start_bias
    assert bias == BIAS
    needed = starts_needed(scenario.cluster.name_servers, bias=bias, power=POWER, alpha=1e-6)
    assert needed <= scenario.workload.client_starts
