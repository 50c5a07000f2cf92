"""Do two samples differ: p-value, confidence interval, effect, and whether there was enough to tell. Pure functions.

    times     Mann-Whitney's U: exact without ties below ENOUGH samples a side, by seeded permutations with ties, by the
              normal approximation with tie correction from there on. The interval is that of the Hodges-Lehmann shift
              (median of all differences), by the same U (exact below ENOUGH), so that test and interval agree
    shares    seeded permutation test of the difference of means, with a seeded bootstrap interval (BCa): shares that
              are mostly 1 have a shift of 0 however much their means differ

Several quantities are one family: Holm's correction of the p-values, and intervals that hold together (Bonferroni). A
quantity with so few samples that no order of them could be called a difference is one about which nothing can be told;
that depends on the numbers of samples alone, so leaving it out of the family is no peeking.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

RESAMPLES = 9_999
DESCRIBED = 2_000
"""Resamples of what is shown and not tested."""
ENOUGH = 20
"""Samples a side from which the normal approximation of U is used."""
PAIRS_MAX = 2_000
"""Samples a side that pairwise differences are made of; of more, a seeded choice."""
POWER = 0.9

Numbers = NDArray[np.float64]


class Kind(StrEnum):
    TIMES = "times"
    SHARES = "shares"


class Outcome(StrEnum):
    DIFFERS = "differs"
    NO_DIFFERENCE = "no difference found"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One quantity in two samples, B against A. `estimate`, `low` and `high` are B − A in the samples' unit."""

    name: str
    kind: Kind
    n_a: int
    n_b: int
    outcome: Outcome
    median_a: float | None = None
    median_b: float | None = None
    mean_a: float | None = None
    mean_b: float | None = None
    p99_a: float | None = None
    p99_b: float | None = None
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    """Of the interval alone; all of a family hold together with 1 − alpha."""
    p_value: float | None = None
    p_holm: float | None = None
    effect: float | None = None
    """Cliff's δ, −1..1: how much likelier B's value is above A's than below it."""
    detectable: float | None = None
    """The |δ| that so many samples find with power 0.9 (Noether, normal approximation); None: none."""
    why: str = ""


def compare_all(
    samples: Mapping[str, tuple[Kind, Sequence[float], Sequence[float]]],
    *,
    alpha: float = 0.05,
    seed: int = 0,
) -> list[Comparison]:
    """One comparison for each quantity with samples on either side, in order; `alpha` holds for all together."""
    values = {
        name: (kind, np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
        for name, (kind, a, b) in samples.items()
        if len(a) or len(b)
    }
    tested = _testable({name: (len(a), len(b)) for name, (_, a, b) in values.items()}, alpha)
    found: list[Comparison] = []
    for index, (name, (kind, a, b)) in enumerate(values.items()):
        if name in tested:
            rng = np.random.default_rng([seed, index])
            found.append(_compared(name, kind, a, b, alpha=alpha / len(tested), rng=rng))
        else:
            found.append(_untold(name, kind, a, b, alpha))
    return _by_holm(found, alpha)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A quantity that is shown and not tested: both sides' number of values and median with its interval, and B − A."""

    name: str
    n: tuple[int, int]
    median: tuple[float | None, float | None]
    interval: tuple[tuple[float, float] | None, tuple[float, float] | None]
    difference: tuple[float, float, float] | None
    """B − A (Hodges-Lehmann), from, to."""


def describe_all(
    values: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, alpha: float, seed: int
) -> list[Described]:
    """One for each quantity, in order."""
    found = []
    for index, (name, both) in enumerate(values.items()):
        rng = np.random.default_rng([seed, index])
        a, b = (np.asarray(side, dtype=np.float64) for side in both)
        found.append(
            Described(
                name=name,
                n=(len(a), len(b)),
                median=(_median(a), _median(b)),
                interval=(_interval(a, alpha, rng), _interval(b, alpha, rng)),
                difference=hodges_lehmann(a, b, alpha, rng) if len(a) and len(b) else None,
            )
        )
    return found


def _median(values: Numbers) -> float | None:
    return float(np.median(values)) if len(values) else None


def _interval(values: Numbers, alpha: float, rng: np.random.Generator) -> tuple[float, float] | None:
    """Of the median, by bootstrap; None where one value says nothing of its own spread."""
    if len(values) < 2:
        return None
    medians = np.median(rng.choice(values, (DESCRIBED, min(len(values), DESCRIBED))), axis=1)
    low, high = np.quantile(medians, (alpha / 2, 1 - alpha / 2))
    return float(low), float(high)


def attainable_p(n_a: int, n_b: int) -> float:
    """The smallest two-sided p-value that any order of so many samples can have; 1 when a side has none."""
    return min(1.0, 2 / math.comb(n_a + n_b, n_a)) if n_a and n_b else 1.0


def _testable(sizes: Mapping[str, tuple[int, int]], alpha: float) -> set[str]:
    """The quantities of the largest family in which each one alone could be called different."""
    by_ease = sorted(attainable_p(*size) for size in sizes.values())
    for count in range(len(by_ease), 0, -1):
        among_equals = count < len(by_ease) and by_ease[count] == by_ease[count - 1]
        if by_ease[count - 1] <= alpha / count and not among_equals:  # of equals none is chosen over another
            return {name for name, size in sizes.items() if attainable_p(*size) <= by_ease[count - 1]}
    return set()


def _summary(name: str, kind: Kind, a: Numbers, b: Numbers, outcome: Outcome, why: str = "") -> Comparison:
    def of(values: Numbers, function: str) -> float | None:
        if not len(values):
            return None
        return float(np.quantile(values, 0.99) if function == "p99" else getattr(np, function)(values))

    return Comparison(
        name=name,
        kind=kind,
        n_a=len(a),
        n_b=len(b),
        outcome=outcome,
        median_a=of(a, "median"),
        median_b=of(b, "median"),
        mean_a=of(a, "mean"),
        mean_b=of(b, "mean"),
        p99_a=of(a, "p99"),
        p99_b=of(b, "p99"),
        why=why,
    )


def _untold(name: str, kind: Kind, a: Numbers, b: Numbers, alpha: float) -> Comparison:
    if not len(a) or not len(b):
        why = f"no samples of {'A' if not len(a) else 'B'}"
    else:
        why = f"of {len(a)} and {len(b)} samples no order has p below {attainable_p(len(a), len(b)):.2g}"
    return _summary(name, kind, a, b, Outcome.CANNOT_TELL, why)


def _compared(name: str, kind: Kind, a: Numbers, b: Numbers, *, alpha: float, rng: np.random.Generator) -> Comparison:
    u_b = float(stats.mannwhitneyu(b, a, method="asymptotic").statistic)
    if kind is Kind.TIMES:
        p_value = _rank_p(a, b, rng)
        estimate, low, high = hodges_lehmann(a, b, alpha, rng)
    else:
        p_value = _mean_p(a, b, rng)
        estimate, low, high = _mean_interval(a, b, alpha, rng)
    spread = math.sqrt((len(a) + len(b) + 1) / (3 * len(a) * len(b)))
    detectable = float(special.ndtri(1 - alpha / 2) + special.ndtri(POWER)) * spread
    return replace(
        _summary(name, kind, a, b, Outcome.NO_DIFFERENCE),
        estimate=estimate,
        low=low,
        high=high,
        confidence=1 - alpha,
        p_value=p_value,
        effect=2 * u_b / (len(a) * len(b)) - 1,
        detectable=detectable if detectable <= 1 else None,
    )


def _same(a: Numbers, b: Numbers) -> bool:
    return len(np.unique(np.concatenate([a, b]))) == 1


def _rank_p(a: Numbers, b: Numbers, rng: np.random.Generator) -> float:
    if _same(a, b):
        return 1.0
    how: object = "asymptotic"
    if min(len(a), len(b)) < ENOUGH:
        ties = len(np.unique(np.concatenate([a, b]))) < len(a) + len(b)
        how = stats.PermutationMethod(n_resamples=RESAMPLES, rng=rng) if ties else "exact"
    return float(stats.mannwhitneyu(a, b, alternative="two-sided", method=how).pvalue)


def hodges_lehmann(a: Numbers, b: Numbers, alpha: float, rng: np.random.Generator) -> tuple[float, float, float]:
    """The median of all differences b − a, and its interval of confidence 1 − alpha."""
    if max(len(a), len(b)) > PAIRS_MAX:
        a, b = (v if len(v) <= PAIRS_MAX else rng.choice(v, PAIRS_MAX, replace=False) for v in (a, b))
    n, m = len(a), len(b)
    differences = np.sort(np.subtract.outer(b, a), axis=None)
    if min(n, m) < ENOUGH:
        outside = _outside(n, m, alpha)
    else:
        _, tied = np.unique(np.concatenate([a, b]), return_counts=True)
        total = n + m
        ties = float((tied**3 - tied).sum()) / (total * (total - 1))
        spread = math.sqrt(max(0.0, n * m / 12 * (total + 1 - ties)))
        outside = math.floor(n * m / 2 - float(special.ndtri(1 - alpha / 2)) * spread - 0.5)
    if outside < 0:
        return float(np.median(differences)), -math.inf, math.inf
    return float(np.median(differences)), float(differences[outside]), float(differences[n * m - 1 - outside])


def _outside(n: int, m: int, alpha: float) -> int:
    """The highest U that n and m values have, or a lower one, in alpha / 2 of all orders at most; -1: there is none."""
    n, m = sorted((n, m))
    orders = [1] + [0] * (n * m)  # how many have each U: the Gaussian binomial coefficient
    for i in range(1, n + 1):
        for u in range(n * m, m + i - 1, -1):
            orders[u] -= orders[u - m - i]
        for u in range(i, n * m + 1):
            orders[u] += orders[u - i]
    most = alpha / 2 * math.comb(n + m, n)
    return sum(so_far <= most for so_far in accumulate(orders)) - 1


def _difference_of_means(a: Numbers, b: Numbers, axis: int = -1) -> Numbers:
    difference: Numbers = np.mean(b, axis=axis) - np.mean(a, axis=axis)
    return difference


def _mean_p(a: Numbers, b: Numbers, rng: np.random.Generator) -> float:
    if _same(a, b):
        return 1.0
    test = stats.permutation_test(
        (a, b), _difference_of_means, vectorized=True, n_resamples=RESAMPLES, batch=1_000, rng=rng
    )
    return float(test.pvalue)


def _mean_interval(a: Numbers, b: Numbers, alpha: float, rng: np.random.Generator) -> tuple[float, float, float]:
    estimate = float(b.mean() - a.mean())
    if len(np.unique(a)) == 1 and len(np.unique(b)) == 1:
        return estimate, estimate, estimate
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a degenerate bootstrap says so by its NaN
        for method in ("BCa", "percentile"):
            interval = stats.bootstrap(
                (a, b),
                _difference_of_means,
                confidence_level=1 - alpha,
                n_resamples=RESAMPLES,
                batch=1_000,
                method=method,
                rng=rng,
            ).confidence_interval
            if np.isfinite(interval.low) and np.isfinite(interval.high):
                break
    return estimate, float(interval.low), float(interval.high)


def _by_holm(found: Sequence[Comparison], alpha: float) -> list[Comparison]:
    """With `p_holm` and the outcome that follows from it."""
    tested = sorted((c.p_value, index) for index, c in enumerate(found) if c.p_value is not None)
    corrected: dict[int, float] = {}
    so_far = 0.0
    for rank, (p_value, index) in enumerate(tested):
        so_far = max(so_far, min(1.0, p_value * (len(tested) - rank)))
        corrected[index] = so_far
    return [
        c
        if index not in corrected
        else replace(
            c,
            p_holm=corrected[index],
            outcome=Outcome.DIFFERS if corrected[index] <= alpha else Outcome.NO_DIFFERENCE,
        )
        for index, c in enumerate(found)
    ]
