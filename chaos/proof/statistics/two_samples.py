"""Tests whether two sides of runs differ: Welch's t-test of one value a run, and its confidence interval of B − A.

A run's value is the median or mean of many clients' values, so means of five runs are nearly normally distributed.
Welch's test allows the two sides different variances. Several quantities are tested together, so p-values have Holm's
correction, and intervals Bonferroni's. Fewer than RUNS_ENOUGH runs on a side give no result.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean

from scipy import stats

RUNS_ENOUGH = 5
"""Runs a side from which something is told."""


class ComparisonOutcome(StrEnum):
    DIFFERS = "differs"
    NO_DIFFERENCE = "no difference found"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One quantity on sides A and B, one value a run. Results are None if there are too few values."""

    name: str
    n_a: int
    n_b: int
    mean_a: float | None
    mean_b: float | None
    estimate: float | None = None
    """The mean of B less that of A; `low` and `high` are its interval."""
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    """In a family corrected by Holm."""
    outcome: ComparisonOutcome | None = None
    """None: shown, and not tested."""
    why: str = ""


Values = Mapping[str, tuple[Sequence[float], Sequence[float]]]
"""Quantity to one value of each run of A, and of B."""


def compare_all(values: Values, *, alpha: float = 0.05, copies: bool = False) -> list[Comparison]:
    """Return a comparison for each quantity that has a value on side A or B, in order. `alpha` is the error level of
    all tests together. `copies`: the runs of a side are one run repeated, so nothing is tested."""
    sides = {name: both for name, both in values.items() if any(both)}
    tested = [name for name, both in sides.items() if min(map(len, both)) >= RUNS_ENOUGH and not copies]
    found = {name: shown(name, *both, alpha=alpha / max(1, len(tested))) for name, both in sides.items()}
    so_far = 0.0
    for rank, name in enumerate(sorted(tested, key=lambda name: found[name].p_value or 0.0)):
        so_far = max(so_far, min(1.0, (found[name].p_value or 0.0) * (len(tested) - rank)))
        outcome = ComparisonOutcome.DIFFERS if so_far <= alpha else ComparisonOutcome.NO_DIFFERENCE
        found[name] = replace(found[name], p_value=so_far, outcome=outcome)
    return [one if name in tested else _untold(one, copies) for name, one in found.items()]


def _untold(one: Comparison, copies: bool) -> Comparison:
    why = f"{one.n_a} and {one.n_b} runs measured it, {RUNS_ENOUGH} a side are needed"
    if copies:
        why = "the runs of a side are one run repeated"
    return replace(
        one, estimate=None, low=None, high=None, p_value=None, outcome=ComparisonOutcome.CANNOT_TELL, why=why
    )


def shown(name: str, a: Sequence[float], b: Sequence[float], *, alpha: float = 0.05) -> Comparison:
    """Return the means of A and B; with two or more values each, also the difference and its confidence interval."""
    mean_a, mean_b = (fmean(values) if values else None for values in (a, b))
    one = Comparison(name=name, n_a=len(a), n_b=len(b), mean_a=mean_a, mean_b=mean_b)
    if min(len(a), len(b)) < 2:
        return one
    if len({*a, *b}) == 1:
        return replace(one, estimate=0.0, low=0.0, high=0.0, p_value=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a side whose values are all the same
        test = stats.ttest_ind(b, a, equal_var=False)
        low, high = test.confidence_interval(1 - alpha)
    estimate = fmean(b) - fmean(a)
    return replace(one, estimate=estimate, low=float(low), high=float(high), p_value=float(test.pvalue))
