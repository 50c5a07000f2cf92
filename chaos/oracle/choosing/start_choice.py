"""Whether the first NameServer is chosen evenly: the test, its power, and the number of starts that it needs.

A bias of b means here: one of n NameServers is chosen with probability 1/n + b, and the others share the rest evenly.
b is a share of all starts, so 0.1 is ten percentage points: of three NameServers one gets 43.3 % in place of 33.3 %.

The test is Pearson's, Σ (observed − expected)² / expected, which orders outcomes as Σ observed² does.

    exact       its p-value sums the multinomial over all outcomes; of the last two cells a binomial's tails do. Used
                with two and three NameServers always, with more while that is at most OUTCOMES_MAX terms
    χ²          otherwise, from 10 expected starts a NameServer on; power is then that of SIMULATED seeded simulations

The textbook's noncentral χ² is only where the search for the number of starts begins: it promises too much power
(784 starts in place of 813 for a bias of 0.1 over three NameServers). Nothing here knows of histories, and nothing
needs SciPy, which takes half a second to import.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from ...arrow import Floats, Numbers, np

ALPHA = 1e-6
"""How often a verdict may call a fair choice unfair: once in a million runs."""

POWER = 0.99
"""How surely a run that is to find a bias must find it."""

BIAS = 0.1
"""Where the workload names none: first choices are decided when there are enough of them to find this with POWER."""

STARTS_NEEDED = {2: 1295, 3: 1292, 4: 1182, 5: 1075, 6: 987}
NONCENTRALITY_NEEDED = {2: 52.0993269450, 3: 56.2998170826, 4: 59.4587398498, 5: 62.1150268684, 6: 64.4573410783}
"""Of so many NameServers, for BIAS, POWER and ALPHA: else every process that judges works them out. A test works them
out again."""

OUTCOMES_MAX = 20_000
"""So many terms are summed in a few milliseconds."""

SIMULATED = 100_000
"""Simulated power is right to ±0.001 at 0.99 (three standard errors)."""

_DEGREES_MORE_MAX = 400
_NEGLIGIBLE = 1e-18

EXACT, CHI_SQUARE = "exact multinomial", "χ²"


def shares(name_servers: int, bias: float = 0.0) -> tuple[float, ...]:
    """The probability of each NameServer, the favoured one first. ValueError for a bias that cannot be."""
    even = 1 / name_servers
    if not 0 <= bias <= 1 - even + 1e-12:
        raise ValueError(f"bias {bias:g} is not between 0 and {1 - even:.4g}, the most that {name_servers} allow")
    other = max(0.0, (1 - even - bias) / max(1, name_servers - 1))
    return (even + bias, *([other] * (name_servers - 1)))


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
    if method(starts, n) is EXACT:
        return _tail(squares, starts, shares(n))
    return chi_square_tail(squares * n / starts - starts, n - 1)


@lru_cache(maxsize=64)
def power_of(starts: int, name_servers: int, *, bias: float, alpha: float) -> float:
    """How often so many starts find this bias; of a bias of 0, how often an even choice is called uneven. ValueError as
    `shares`."""
    favoured = shares(name_servers, bias)
    if name_servers == 1 or not starts:
        return 0.0
    if method(starts, name_servers) is EXACT:
        return _tail(_critical_squares(starts, name_servers, alpha), starts, favoured)
    return _simulated_power(starts, favoured, alpha)


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
        return power_of(starts, name_servers, bias=bias, alpha=alpha) >= power

    one = _noncentrality(1, name_servers, bias)
    low, high = 0, max(1, math.ceil(noncentrality_found(name_servers, power, alpha) / one))
    while not enough(high):
        low, high = high, high + max(1, high // 20)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def detectable_bias(starts: int, name_servers: int, *, power: float, alpha: float) -> float | None:
    """The smallest bias that so many starts find with `power`, by the noncentral χ²; None if they find none."""
    if name_servers < 2 or not starts:
        return None
    needed = _noncentrality_needed(name_servers, power, alpha)
    bias = math.sqrt(needed / _noncentrality(starts, name_servers, 1.0))
    return bias if bias <= 1 - 1 / name_servers else None


def smallest_bias(starts: int, name_servers: int, *, power: float, alpha: float) -> float | None:
    """As `detectable_bias`, but by the test's own power where it is exact; None if they find none."""
    if name_servers < 2 or not starts:
        return None
    if method(starts, name_servers) is not EXACT:
        return detectable_bias(starts, name_servers, power=power, alpha=alpha)
    low, high = 0.0, 1 - 1 / name_servers - 1e-6
    if power_of(starts, name_servers, bias=high, alpha=alpha) < power:
        return None
    while high - low > 0.001:
        middle = (low + high) / 2
        enough = power_of(starts, name_servers, bias=middle, alpha=alpha) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def _noncentrality(starts: int, name_servers: int, bias: float) -> float:
    return starts * name_servers**2 * bias**2 / (name_servers - 1)


def _noncentrality_needed(name_servers: int, power: float, alpha: float) -> float:
    if (power, alpha) == (POWER, ALPHA) and name_servers in NONCENTRALITY_NEEDED:
        return NONCENTRALITY_NEEDED[name_servers]
    return noncentrality_found(name_servers, power, alpha)


def noncentrality_found(name_servers: int, power: float, alpha: float) -> float:
    """What `_noncentrality` must be, worked out: of it the noncentral χ² is below the limit with chance 1 - `power`.
    The noncentral χ² is the central one with 2·j degrees more, j from a Poisson distribution."""
    degrees = name_servers - 1
    limit = chi_square_limit(alpha, degrees)
    below = [1 - chi_square_tail(limit, degrees)]
    while below[-1] > 0 and len(below) < _DEGREES_MORE_MAX:
        below.append(1 - chi_square_tail(limit, degrees + 2 * len(below)))

    def missed(noncentrality: float) -> float:
        half = noncentrality / 2
        log_chances = (j * math.log(half) - half - math.lgamma(j + 1) for j in range(len(below)))
        return sum(math.exp(log_chance) * of for log_chance, of in zip(log_chances, below, strict=True))

    return _where_it_falls_to(1 - power, missed)


def chi_square_tail(x: float, degrees: int) -> float:
    """P(χ² ≥ x) with so many degrees of freedom."""
    if x <= 0:
        return 1.0
    half, first = x / 2, 1 if degrees % 2 else 2
    logs = (i / 2 * math.log(half) - half - math.lgamma(i / 2 + 1) for i in range(first, degrees, 2))
    least = math.erfc(math.sqrt(half)) if degrees % 2 else math.exp(-half)
    return min(1.0, least + sum(map(math.exp, logs)))


def chi_square_limit(alpha: float, degrees: int) -> float:
    """The x that χ² reaches with chance `alpha`."""
    return _where_it_falls_to(alpha, lambda x: chi_square_tail(x, degrees))


def _where_it_falls_to(value: float, falling: Callable[[float], float]) -> float:
    """The x > 0 at which a function that falls from 1 is `value`."""
    low, high = 0.0, 1.0
    while falling(high) > value:
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > value else (low, middle)
    return high


def _simulated_power(starts: int, favoured: Sequence[float], alpha: float) -> float:
    n = len(favoured)
    counts = np.random.default_rng([starts, n]).multinomial(starts, favoured, size=SIMULATED)
    statistic = (counts * counts).sum(axis=1) * n / starts - starts
    return float((statistic >= chi_square_limit(alpha, n - 1)).mean())


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
    log_factorial = np.array([math.lgamma(k + 1) for k in range(starts + 1)])
    *outer, p, q = shares_
    left, log_chance, reached = np.array([starts]), np.zeros(1), np.zeros(1, dtype=np.int64)
    rest = 1.0
    for share in outer:
        choices = left + 1
        of = np.repeat(np.arange(len(left)), choices)
        taken = np.arange(len(of)) - (np.cumsum(choices) - choices)[of]
        here, now = left[of], min(1.0, share / rest)
        ways = log_factorial[here] - log_factorial[taken] - log_factorial[here - taken]
        log_chance = log_chance[of] + ways + _times(taken, now) + _times(here - taken, 1 - now)
        reached = reached[of] + taken * taken
        left, rest = here - taken, rest - share
    if not outer:
        taken = np.arange(starts + 1)
        ways = log_factorial[starts] - log_factorial[taken] - log_factorial[starts - taken]
        chances = np.exp(ways + _times(taken, p) + _times(starts - taken, q))
        return min(1.0, float(chances[taken**2 + (starts - taken) ** 2 >= squares].sum()))
    assert p == q, "only the first NameServer may be favoured"
    return min(1.0, float((np.exp(log_chance) * _two_cells(squares - reached, left, log_factorial)).sum()))


def _times(counts: Numbers, share: float) -> Floats:
    """count · log share, and 0 for nothing, whatever the share."""
    if share <= 0:
        return np.where(counts == 0, 0.0, -np.inf).astype(np.float64)
    return (counts * math.log(share)).astype(np.float64)


def _two_cells(squares: Numbers, starts: Numbers, log_factorial: Floats) -> Floats:
    """P(y² + (m − y)² ≥ squares) for y of m = `starts`, each as likely as m − y: twice the tail where
    m − 2y ≥ √(2·squares − m²), its terms added up from the largest."""
    over = np.maximum(2 * squares - starts * starts, 0)
    apart = np.ceil(np.sqrt(over)).astype(np.int64)
    apart -= (apart - 1) ** 2 >= over  # the root of a square may have been rounded up
    apart = np.maximum(apart, 0)
    y = np.maximum((starts - apart) // 2, 0)
    ways = log_factorial[starts] - log_factorial[y] - log_factorial[starts - y]
    term = np.where(apart > starts, 0.0, np.exp(ways - starts * math.log(2)))
    tail = np.zeros(len(term))
    while (term > tail * _NEGLIGIBLE).any():
        tail += term
        term *= y / (starts - y + 1)
        y = np.maximum(y - 1, 0)
    return np.where(apart == 0, 1.0, np.minimum(1.0, 2 * tail))
