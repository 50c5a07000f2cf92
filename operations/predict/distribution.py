"""Samples of one quantity: quantiles, and whether two samples differ by more than chance. Never is infinity. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

NEVER = math.inf


def quantile(values: Sequence[float], share: float) -> float:
    """The least value that at least this share of all does not exceed; NaN of none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def distance(a: Sequence[float], b: Sequence[float], grain: float = 0.0) -> float:
    """The largest difference between the shares of both that are at or below a value (Kolmogorov and Smirnov's D).

    Steps that lie within `grain` of each other count as one: what both call at once may be a millisecond apart.
    """
    first, second = sorted(a), sorted(b)
    worst = 0.0
    for low, high, n_low, n_high in (
        (first, second, len(first), len(second)),
        (second, first, len(second), len(first)),
    ):
        for value in low:
            # by how much `low` is ahead of `high` even where `high` is taken to be sooner by the grain
            worst = max(worst, bisect_right(low, value) / n_low - bisect_right(high, value + grain) / n_high)
    return worst


def by_chance(a: Sequence[float], b: Sequence[float], grain: float = 0.0) -> float:
    """The probability of a distance so large or larger where both are of one distribution; 1 where one is empty.

    The asymptotic distribution with Stephens' correction, which is right to a few percent from four values on, and errs
    on the side of no difference where values are equal.
    """
    if not a or not b:
        return 1.0
    size = math.sqrt(len(a) * len(b) / (len(a) + len(b)))
    scaled = (size + 0.12 + 0.11 / size) * distance(a, b, grain)
    if scaled < 0.2:
        return 1.0
    terms = [(1.0 if k % 2 else -1.0) * math.exp(-2 * (k * scaled) ** 2) for k in range(1, 101)]
    return min(1.0, max(0.0, 2 * sum(terms)))
