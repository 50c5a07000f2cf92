"""Is the first NameServer chosen evenly: the test, its power, and how many starts it takes.

A bias of b means here: one of n NameServers is chosen with probability 1/n + b, and the others share the rest evenly.
b is a share of all starts, so 0.1 is ten percentage points: of three NameServers one gets 43.3 % in place of 33.3 %.

The test is Pearson's, Σ (observed − expected)² / expected, which orders outcomes as Σ observed² does.

    exact       its p-value sums the multinomial over all outcomes; of the last two cells a binomial's tails do. Used
                with two and three NameServers always, with more while that is at most OUTCOMES_MAX terms
    χ²          otherwise, from 10 expected starts a NameServer on; power is then that of SIMULATED seeded simulations

The textbook's noncentral χ² is only where the search for the number of starts begins: it promises too much power
(784 starts in place of 813 for a bias of 0.1 over three NameServers). Nothing here knows of histories.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ALPHA = 1e-6
"""How often a verdict may call a fair choice unfair: once in a million runs."""

POWER = 0.99
"""How surely a run that is to find a bias must find it."""

BIAS = 0.1
"""Where the workload names none: first choices are decided when there are enough of them to find this with POWER."""

STARTS_NEEDED = {2: 1295, 3: 1292, 4: 1182, 5: 1075, 6: 987}
NONCENTRALITY_NEEDED = {2: 52.0993269450, 3: 56.2998170826, 4: 59.4587398498, 5: 62.1150268684, 6: 64.4573410783}
"""Of so many NameServers, for BIAS, POWER and ALPHA: else every process that judges works them out and imports SciPy,
for half a second of CPU. A test works them out again."""

OUTCOMES_MAX = 20_000
"""So many terms are summed in a few milliseconds."""

FEW = 2_000
"""So many outcomes are summed one by one sooner than SciPy, half a second of CPU, is imported."""

SIMULATED = 100_000
"""Simulated power is right to ±0.001 at 0.99 (three standard errors)."""

EXACT, CHI_SQUARE = "exact multinomial", "χ²"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a number of starts can tell. `false_alarms`: how often an even choice is called uneven, at most `alpha`
    when exact."""

    name_servers: int
    bias: float
    alpha: float
    starts: int
    power: float
    false_alarms: float
    method: str


def shares(name_servers: int, bias: float = 0.0) -> tuple[float, ...]:
    """The probability of each NameServer, the favoured one first. ValueError for a bias that cannot be."""
    even = 1 / name_servers
    if not 0 <= bias <= 1 - even + 1e-12 or (name_servers == 1 and bias):
        raise ValueError(f"bias {bias:g} is not between 0 and {1 - even:.4g}, the most that {name_servers} allow")
    if name_servers == 1:
        return (1.0,)
    other = max(0.0, (1 - even - bias) / (name_servers - 1))
    return (even + bias, *([other] * (name_servers - 1)))


@lru_cache(maxsize=1)
def has_scipy() -> bool:
    """Whether the extra `statistics` is installed; without it all is exact, and takes longer the more there is."""
    return find_spec("scipy") is not None


def method(starts: int, name_servers: int) -> str:
    """How so many starts are judged: EXACT or CHI_SQUARE."""
    cells = max(name_servers - 2, 0)
    return EXACT if math.comb(starts + cells, cells) <= OUTCOMES_MAX else CHI_SQUARE


def p_value(counts: Sequence[int]) -> float:
    """The probability of counts at least this uneven, when each NameServer is equally likely; 1 without any starts."""
    starts, n = sum(counts), len(counts)
    if n < 2 or not starts:
        return 1.0
    squares = sum(count * count for count in counts)
    if method(starts, n) is EXACT or not has_scipy():
        return _tail(squares, starts, shares(n))
    from scipy import special  # half a second, and an extra of its own

    return float(special.chdtrc(n - 1, squares * n / starts - starts))


@lru_cache(maxsize=64)
def plan(starts: int, name_servers: int, *, bias: float, alpha: float) -> Plan:
    """What so many starts tell about a bias: power and false alarms. ValueError as `shares`."""
    favoured = shares(name_servers, bias)
    how = method(starts, name_servers)
    if name_servers == 1 or not starts:
        power, size = 0.0, 0.0
    elif how is EXACT or not has_scipy():
        squares = _critical_squares(starts, name_servers, alpha)
        power, size = _tail(squares, starts, favoured), _tail(squares, starts, shares(name_servers))
    else:
        power, size = _simulated_power(starts, favoured, alpha), alpha
    return Plan(
        name_servers=name_servers,
        bias=bias,
        alpha=alpha,
        starts=starts,
        power=power,
        false_alarms=size,
        method=how,
    )


@lru_cache(maxsize=64)
def starts_needed(name_servers: int, *, bias: float, power: float, alpha: float) -> int:
    """The number of starts that finds `bias` with `power` when even choices may be called uneven with chance `alpha`.

    Where the power, which falls a little with some starts more because counts are whole, first crosses `power` in a
    bisection. ValueError as `shares`, and for a bias of 0, which no number of starts finds.
    """
    shares(name_servers, bias)
    if name_servers < 2 or bias <= 0:
        raise ValueError(f"bias {bias:g} over {name_servers} NameServers cannot be found by any number of starts")
    if (bias, power, alpha) == (BIAS, POWER, ALPHA) and name_servers in STARTS_NEEDED:
        return STARTS_NEEDED[name_servers]
    return starts_found(name_servers, bias=bias, power=power, alpha=alpha)


def starts_found(name_servers: int, *, bias: float, power: float, alpha: float) -> int:
    """`starts_needed`, worked out."""

    def enough(starts: int) -> bool:
        return plan(starts, name_servers, bias=bias, alpha=alpha).power >= power

    one = _noncentrality(1, name_servers, bias)
    low, high = 0, max(1, math.ceil(noncentrality_found(name_servers, power, alpha) / one))
    while not enough(high):
        low, high = high, high + max(1, high // 20)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def detectable_bias(starts: int, name_servers: int, *, power: float, alpha: float) -> float | None:
    """The smallest bias that so many starts find with `power`, by the noncentral χ²; None when they find none."""
    if name_servers < 2 or not starts:
        return None
    needed = _noncentrality_needed(name_servers, power, alpha)
    bias = math.sqrt(needed / _noncentrality(starts, name_servers, 1.0))
    return bias if bias <= 1 - 1 / name_servers else None


def smallest_bias(starts: int, name_servers: int, *, power: float, alpha: float) -> float | None:
    """As `detectable_bias`, but by the test's own power where it is exact; None when they find none."""
    if name_servers < 2 or not starts:
        return None
    if method(starts, name_servers) is not EXACT and has_scipy():
        return detectable_bias(starts, name_servers, power=power, alpha=alpha)
    low, high = 0.0, 1 - 1 / name_servers - 1e-6
    if plan(starts, name_servers, bias=high, alpha=alpha).power < power:
        return None
    while high - low > 0.001:
        middle = (low + high) / 2
        enough = plan(starts, name_servers, bias=middle, alpha=alpha).power >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def _noncentrality(starts: int, name_servers: int, bias: float) -> float:
    return starts * name_servers**2 * bias**2 / (name_servers - 1)


def _noncentrality_needed(name_servers: int, power: float, alpha: float) -> float:
    if (power, alpha) == (POWER, ALPHA) and name_servers in NONCENTRALITY_NEEDED:
        return NONCENTRALITY_NEEDED[name_servers]
    return noncentrality_found(name_servers, power, alpha)


def noncentrality_found(name_servers: int, power: float, alpha: float) -> float:
    """What `_noncentrality` must be, worked out."""
    from scipy import special

    limit = special.chdtri(name_servers - 1, alpha)
    return float(special.chndtrinc(limit, name_servers - 1, 1 - power))


def _simulated_power(starts: int, favoured: Sequence[float], alpha: float) -> float:
    import numpy as np
    from scipy import special

    n = len(favoured)
    counts = np.random.default_rng([starts, n]).multinomial(starts, favoured, size=SIMULATED)
    statistic = (counts * counts).sum(axis=1) * n / starts - starts
    return float((statistic >= special.chdtri(n - 1, alpha)).mean())


def _critical_squares(starts: int, name_servers: int, alpha: float) -> int:
    """The smallest Σ count² whose p-value is at most `alpha`; more than there can be when none is."""
    even = shares(name_servers)
    low, high = starts * starts // name_servers, starts * starts + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _tail(middle, starts, even) <= alpha else (middle, high)
    return high


def _tail(squares: int, starts: int, shares_: Sequence[float]) -> float:
    """P(Σ count² ≥ `squares`), exactly: every outcome of all NameServers but two, times the tails of those two."""
    import numpy as np

    if math.comb(starts + len(shares_) - 1, starts) <= FEW:
        return _tail_of_few(squares, starts, shares_)
    try:
        from scipy import special
    except ImportError:  # an extra of its own
        return _tail_of_few(squares, starts, shares_)
    *outer, p, q = shares_
    left, log_chance, reached = np.array([starts]), np.zeros(1), np.zeros(1, dtype=np.int64)
    rest = 1.0
    for share in outer:
        choices = left + 1
        of = np.repeat(np.arange(len(left)), choices)
        taken = np.arange(len(of)) - (np.cumsum(choices) - choices)[of]
        here, now = left[of], min(1.0, share / rest)
        ways = special.gammaln(here + 1) - special.gammaln(taken + 1) - special.gammaln(here - taken + 1)
        chance = ways + special.xlogy(taken, now) + special.xlog1py(here - taken, -now)
        log_chance, reached = log_chance[of] + chance, reached[of] + taken * taken
        left, rest = here - taken, rest - share
    chances = np.exp(log_chance) * _two_cells(squares - reached, left, p / (p + q) if p + q > 0 else 0.5)
    return min(1.0, float(chances.sum()))


def _tail_of_few(squares: int, starts: int, shares_: Sequence[float]) -> float:
    """The same by every outcome of all NameServers: for few starts, and without SciPy."""
    import numpy as np

    log_ways = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, starts + 1)))))  # of k!
    with np.errstate(divide="ignore"):
        log_shares = np.log(np.asarray(shares_, dtype=float))
    left, log_chance, reached = np.array([starts]), np.full(1, log_ways[starts]), np.zeros(1, dtype=np.int64)
    for log_share in log_shares[:-1]:
        choices = left + 1
        of = np.repeat(np.arange(len(left)), choices)
        taken = np.arange(len(of)) - (np.cumsum(choices) - choices)[of]
        log_chance = log_chance[of] + _times(taken, log_share) - log_ways[taken]
        reached, left = reached[of] + taken * taken, left[of] - taken
    log_chance = log_chance + _times(left, log_shares[-1]) - log_ways[left]
    return min(1.0, float(np.exp(log_chance[reached + left * left >= squares]).sum()))


def _times(counts: NDArray[np.int64], log_share: float) -> NDArray[np.float64]:
    """count · log share, and 0 for nothing, whatever the share."""
    import numpy as np

    if math.isinf(log_share):
        return np.where(counts == 0, 0.0, -np.inf).astype(np.float64)
    return (counts * log_share).astype(np.float64)


def _two_cells(squares: NDArray[np.int64], starts: NDArray[np.int64], share: float) -> NDArray[np.float64]:
    """P(y² + (m − y)² ≥ squares) for y of m = `starts`: the two tails where |2y − m| ≥ √(2·squares − m²)."""
    import numpy as np
    from scipy import special

    over = np.maximum(2 * squares - starts * starts, 0)
    apart = np.ceil(np.sqrt(over)).astype(np.int64)
    apart -= (apart - 1) ** 2 >= over  # the root of a square may have been rounded up
    apart = np.maximum(apart, 0)
    below, above = (starts - apart) // 2, (starts + apart + 1) // 2
    tails = special.bdtr(np.maximum(below, 0), starts, share) + special.bdtrc(above - 1, starts, share)
    chances: NDArray[np.float64] = np.where(apart > starts, 0.0, np.where(apart == 0, 1.0, tails))
    return chances
